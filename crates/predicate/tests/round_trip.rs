//! What is printed is read back as the same thing, whatever it is.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isolario_predicate::{
    Aggregate, Arithmetic, Comparison, Decimal, Expr, ExprError, Literal, Predicate,
};
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z_][a-z0-9_]{0,5}",
        1 => prop::sample::select(vec!["null", "TRUE", "from", "cast", "not", "interval", "date"])
            .prop_map(str::to_owned),
        1 => "\\PC{1,6}",
    ]
}

fn text() -> impl Strategy<Value = Box<str>> {
    prop_oneof!["[a-c%_!\\\\']{0,6}", "\\PC{0,6}"].prop_map(Into::into)
}

fn number() -> impl Strategy<Value = Literal> {
    let digits = "-?[0-9]{1,25}(\\.[0-9]{1,25})?(e-?[0-9]{1,2})?";
    prop_oneof![
        (-9..9i64).prop_map(Literal::Int),
        any::<i64>().prop_map(Literal::Int),
        Just(Literal::Int(i64::MIN)),
        digits.prop_map(|digits| Literal::Decimal(Decimal::parse(&digits).unwrap())),
    ]
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        4 => number(),
        1 => Just(Literal::Null),
        1 => any::<bool>().prop_map(Literal::Bool),
        2 => text().prop_map(Literal::Text),
        1 => text().prop_map(Literal::Other),
    ]
}

fn comparison() -> impl Strategy<Value = Comparison> {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    prop::sample::select(vec![Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual])
}

fn arithmetic() -> impl Strategy<Value = Arithmetic> {
    use Arithmetic::{Add, Divide, Modulo, Multiply, Subtract};
    prop::sample::select(vec![Add, Subtract, Multiply, Divide, Modulo])
}

/// Builds an expression, or leaves out what does not fit its operator.
fn or_left(built: Result<Expr, ExprError>, left: &Expr) -> Expr {
    built.unwrap_or_else(|_| left.clone())
}

/// Expressions of any type, of any operator over any operands that it takes.
fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        2 => name().prop_map(|name| Expr::column(&name)),
        1 => literal().prop_map(Expr::literal),
    ];
    leaf.prop_recursive(12, 60, 3, |inner| {
        let two = || (inner.clone(), inner.clone());
        prop_oneof![
            3 => (two(), comparison())
                .prop_map(|((a, b), how)| or_left(a.clone().compare(how, b), &a)),
            3 => (two(), arithmetic())
                .prop_map(|((a, b), how)| or_left(a.clone().arithmetic(how, b), &a)),
            3 => two().prop_map(|(a, b)| or_left(a.clone().and(b), &a)),
            3 => two().prop_map(|(a, b)| or_left(a.clone().or(b), &a)),
            1 => (inner.clone(), two())
                .prop_map(|(a, (low, high))| or_left(a.clone().between(low, high), &a)),
            1 => inner.clone().prop_map(|a| or_left(a.clone().negate(), &a)),
            2 => inner.clone().prop_map(|a| or_left(a.clone().negated_condition(), &a)),
            1 => inner.clone().prop_map(|a| or_left(a.clone().is_null(), &a)),
            1 => (inner.clone(), prop::collection::vec(literal(), 1..5))
                .prop_map(|(a, list)| or_left(a.clone().is_in(list), &a)),
            1 => (inner, text()).prop_map(|(a, prefix)| or_left(a.clone().starts_with(&prefix), &a)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn expressions(expr in expr()) {
        let text = expr.to_string();
        prop_assert_eq!(text.parse(), Ok(expr.clone()), "{}", text);
    }

    #[test]
    fn predicates_and_aggregates(table in prop_oneof![Just(String::new()), name()], expr in expr()) {
        if let Ok(predicate) = Predicate::rows(&table, expr.clone()) {
            let text = predicate.to_string();
            prop_assert_eq!(text.parse(), Ok(predicate.clone()), "{}", text);
            prop_assert_eq!(Predicate::from_sql(&text), predicate);
        }
        let sum = Aggregate::sum(expr.clone()).ok();
        let functions = [Aggregate::Count, Aggregate::Exists, Aggregate::Min(expr.clone())];
        for function in functions.into_iter().chain(sum).chain([Aggregate::Max(expr)]) {
            let text = function.to_string();
            prop_assert_eq!(text.parse(), Ok(function.clone()), "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused_and_never_lost(text in "[ -~]{0,40}|\\PC{0,20}") {
        let predicate = Predicate::from_sql(&text);
        if let Predicate::Unparsed(kept) = &predicate {
            prop_assert_eq!(&**kept, text.as_str());
        } else {
            prop_assert_eq!(Predicate::from_sql(&predicate.to_string()), predicate);
        }
    }

    #[test]
    fn words_of_sql_in_any_order(words in prop::collection::vec(prop::sample::select(vec![
        "a", "1", "-", "+", "(", ")", "AND", "OR", "NOT", "IN", "LIKE", "'x%'", "IS", "NULL", "=",
        "<", "BETWEEN", ",", "CASE", "WHEN", "END", "CAST", "AS", "other", "SELECT", "FROM",
        "WHERE", "*", "EXISTS", "ANY", "::", ".", "[", "]", "ESCAPE", "INTERVAL", "{", "}",
    ]), 0..24)) {
        let text = words.join(" ");
        if let Ok(predicate) = text.parse::<Predicate>() {
            prop_assert_eq!(predicate.to_string().parse(), Ok(predicate));
        }
        if let Ok(function) = text.parse::<Aggregate>() {
            prop_assert_eq!(function.to_string().parse(), Ok(function));
        }
    }
}

#[test]
fn every_keyword_can_be_the_name_of_a_column_and_of_a_table() {
    let mut lost = Vec::new();
    for word in sqlparser::keywords::ALL_KEYWORDS {
        for name in [word.to_lowercase(), (*word).to_owned()] {
            let column = Expr::column(&name);
            let equal = column.clone().compare(Comparison::Equal, column.clone()).unwrap();
            let predicate = Predicate::rows(&name, column.clone().and(equal).unwrap()).unwrap();
            let aggregate = Aggregate::Min(column);
            if predicate.to_string().parse() != Ok(predicate)
                || aggregate.to_string().parse() != Ok(aggregate)
            {
                lost.push(name);
            }
        }
    }
    assert_eq!(lost, [""; 0]);
}
