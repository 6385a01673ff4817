//! What the parser takes, what it refuses and how it says so, and what it does with hostile text.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_predicate::{Aggregate, Expr, ExprError, MAX_NESTING, ParseErrorKind, Predicate};

/// The canonical form of a text.
fn canonical(text: &str) -> String {
    text.parse::<Expr>().unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

#[test]
fn one_form_for_what_is_the_same() {
    for (text, form) in [
        ("a AND (b AND (c AND d))", "a AND b AND c AND d"),
        ("((a OR b) OR c) AND d", "(a OR b OR c) AND d"),
        ("a AND b OR c AND d", "a AND b OR c AND d"),
        ("NOT NOT a", "a"),
        ("NOT a IN (1, 2)", "a NOT IN (1, 2)"),
        ("NOT (a BETWEEN 1 AND 2)", "a NOT BETWEEN 1 AND 2"),
        ("NOT a IS NULL", "a IS NOT NULL"),
        ("a NOT LIKE 'x%'", "a NOT LIKE 'x%'"),
        ("a != 1 and b == 2", "a <> 1 AND b = 2"),
        ("+a - - 5", "a - -5"),
        ("-(-5)", "5"),
        ("a - (b - c) - d", "a - (b - c) - d"),
        ("(a * b) / c % d", "a * b / c % d"),
        ("1.50 < 01.5e1", "1.5 < 15.0"),
        ("a = 9223372036854775807", "a = 9223372036854775807"),
        ("a = 9223372036854775808", "a = 9223372036854775808.0"),
        ("a = -9223372036854775808", "a = -9223372036854775808"),
        ("d >= DATE '2024-01-31'", "d >= CAST('2024-01-31' AS other)"),
        ("a LIKE '50!%!_%' ESCAPE '!'", "a LIKE '50!%!_%' ESCAPE '!'"),
        ("\"select\" = 'it''s'", "\"select\" = 'it''s'"),
        ("(a = 1) IS NULL", "(a = 1) IS NULL"),
        ("a = TRUE OR NULL", "a = true OR null"),
    ] {
        assert_eq!(canonical(text), form, "{text}");
        assert_eq!(canonical(form), form);
    }
}

#[test]
fn what_is_left_out_is_refused_by_name_and_place() {
    for (text, message) in [
        ("a = (SELECT 1)", "line 1, column 6: a subquery: not part of the predicate language"),
        ("a IN (SELECT 1)", "line 1, column 7: a subquery: not part of the predicate language"),
        (
            "a = 1 AND lower(b) = 'x'",
            "line 1, column 11: a function: not part of the predicate language",
        ),
        (
            "other.a = 1",
            "line 1, column 1: a column of another table: not part of the predicate language",
        ),
        ("a IN (1, b)", "line 1, column 10: a column here: not part of the predicate language"),
        (
            "a LIKE '%x'",
            "line 1, column 8: a pattern other than a text and then %: not part of the predicate language",
        ),
        (
            "a LIKE 'x\\%'",
            "line 1, column 8: a backslash in a pattern without ESCAPE: not part of the predicate language",
        ),
        (
            "a IS TRUE",
            "line 1, column 1: an IS other than IS [NOT] NULL: not part of the predicate language",
        ),
        ("a || b = 'c'", "line 1, column 3: this sign: not part of the predicate language"),
        ("a = ?", "line 1, column 5: a placeholder: not part of the predicate language"),
        ("CASE WHEN a THEN 1 END", "line 1, column 1: CASE: not part of the predicate language"),
        ("a + 'x' = 1", "line 1, column 1: + takes a number, but this is a string"),
        ("a = 1 AND 2", "line 1, column 1: AND takes a condition, but this is a number"),
        ("a\n = = 1", "line 2, column 4: Expected: an expression, found: ="),
        ("a = 'x", "line 1, column 5: Unterminated string literal"),
        ("a = 1 b", "line 1, column 7: expected the end, found: b"),
        ("", "Expected: an expression, found: EOF"),
    ] {
        assert_eq!(text.parse::<Expr>().unwrap_err().to_string(), message, "{text}");
    }
    let join = "FROM a, b WHERE a.x = b.x".parse::<Predicate>().unwrap_err();
    assert_eq!(join.kind, ParseErrorKind::Unsupported("a join"));
    let number = "FROM t WHERE v + 1".parse::<Predicate>().unwrap_err();
    assert_eq!(
        number.to_string(),
        "line 1, column 14: WHERE takes a condition, but this is a number"
    );
    for text in ["avg(v)", "count(v)", "sum(DISTINCT v)", "count(*) + 1", "v"] {
        assert!(text.parse::<Aggregate>().is_err(), "{text}");
        assert_eq!(Aggregate::from_sql(text).to_string(), text);
    }
}

#[test]
fn a_predicate_may_name_its_table() {
    let predicate: Predicate = "FROM accounts WHERE accounts.balance > 0".parse().unwrap();
    assert_eq!(predicate.table(), Some("accounts"));
    assert_eq!(predicate.to_string(), "FROM accounts WHERE balance > 0");
    let predicate: Predicate = "balance > 0".parse().unwrap();
    assert_eq!((predicate.table(), predicate.to_string().as_str()), (None, "balance > 0"));
}

#[test]
fn long_lists_and_chains_are_read() {
    let list: Vec<String> = (-100_000..100_000).map(|i| i.to_string()).collect();
    let text = format!("a IN ({})", list.join(", "));
    assert_eq!(canonical(&text), text);
    let chain = vec!["a"; 900].join(" OR ");
    assert_eq!(canonical(&chain), chain);
    let sum = vec!["1"; 1000].join(" + ");
    assert_eq!(canonical(&sum), sum);
}

/// The kind of the error, on a thread with a small stack.
fn refused(text: String) -> ParseErrorKind {
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let parse = move || text.parse::<Predicate>().unwrap_err().kind;
    small.spawn(parse).unwrap().join().unwrap()
}

#[test]
fn hostile_text_is_refused_and_overflows_no_stack() {
    let too_deep = ParseErrorKind::Expr(ExprError::TooDeep);
    let too_large = ParseErrorKind::Expr(ExprError::TooLarge);
    let depth = 100_000;
    assert_eq!(refused("(".repeat(depth)), too_deep);
    assert_eq!(refused(format!("{}a{}", "(".repeat(depth), ")".repeat(depth))), too_deep);
    assert_eq!(refused(format!("{}a", "- ".repeat(5000))), too_deep);
    refused(format!("{}a", "NOT ".repeat(5000)));
    assert_eq!(refused("NOT ".repeat(depth)), too_large);
    assert_eq!(refused(format!("a{}", " + 1".repeat(depth))), too_large);
    assert_eq!(refused(format!("1{}", " + 1".repeat(6000))), too_large);
    assert_eq!(refused(format!("a{}", " IS NULL".repeat(depth))), too_large);
    assert_eq!(refused(format!("a{}", " IS NULL".repeat(1500))), too_deep);
    assert_eq!(refused(format!("a{}", " IN (1)".repeat(1500))), too_deep);
    assert_eq!(refused(format!("a{}", ".a".repeat(depth))), too_large);
    assert_eq!(
        refused(format!("a{}", "::int".repeat(3000))),
        ParseErrorKind::Unsupported("a cast")
    );
    assert_eq!(refused(format!("a{}", "[1]".repeat(depth))), too_large);
    assert_eq!(refused("CASE ".repeat(depth)), too_large);
    assert_eq!(refused("CASE ".repeat(800)), ParseErrorKind::Unsupported("CASE"));
    assert_eq!(refused("a IN (".repeat(depth)), too_large);
    assert_eq!(refused("a IN (".repeat(1000)), too_deep);
    for open in [
        "f(",
        "CAST(",
        "EXISTS(",
        "(SELECT ",
        "ARRAY[",
        "INTERVAL (",
        "{a:",
        "a[",
        "a.(",
        "PRIOR ",
        "INTERVAL ",
        "STRUCT<",
        "ARRAY<",
        "a IN ((",
        "NOT (",
        "TRIM(",
        "EXTRACT(",
        "POSITION(",
        "MAP {",
        "((a, ",
        "(a) -> (",
        "a BETWEEN (",
        "f((",
        "- (",
    ] {
        let started = std::time::Instant::now();
        refused(open.repeat(800));
        assert!(started.elapsed().as_secs() < 10, "{open}");
    }
}

#[test]
fn as_deep_as_may_be_is_read() {
    let mut text = "a".to_owned();
    for _ in 0..MAX_NESTING {
        text = format!("1 - ({text})");
    }
    // The innermost operand is no operator and takes no parentheses.
    let text = text.replace("(a)", "a");
    assert_eq!(canonical(&text), text);
    let deeper = format!("1 - ({text})");
    assert_eq!(deeper.parse::<Expr>().unwrap_err().kind, ParseErrorKind::Expr(ExprError::TooDeep));
}
