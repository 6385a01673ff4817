//! The rules of each dialect, one by one.

use isolario_predicate::{
    Aggregate, Decimal, Dialect, EvalError, Expr, Literal, Operand, Predicate, Truth,
};

fn row() -> Vec<(&'static str, Literal)> {
    vec![
        ("zero", Literal::Int(0)),
        ("seven", Literal::Int(7)),
        ("min", Literal::Int(i64::MIN)),
        ("max", Literal::Int(i64::MAX)),
        ("half", Literal::Decimal(Decimal::parse("0.5").unwrap())),
        ("nothing", Literal::Null),
        ("yes", Literal::Bool(true)),
        ("lower", Literal::Text("ab".into())),
        ("upper", Literal::Text("AB".into())),
        ("accent", Literal::Text("é".into())),
        ("date", Literal::Other("2024-01-01".into())),
    ]
}

/// What PostgreSQL, SQLite and MySQL make of a condition: T, F, U, or the first letter of an error.
fn outcomes(text: &str) -> String {
    let condition: Expr = text.parse().unwrap();
    let row = row();
    let of = |dialect| match condition.truth(&row.as_slice(), dialect) {
        Ok(Truth::True) => 'T',
        Ok(Truth::False) => 'F',
        Ok(Truth::Unknown) => 'U',
        Err(EvalError::UnknownColumn(_)) => 'n',
        Err(EvalError::Types { .. }) => 't',
        Err(EvalError::DivisionByZero) => 'd',
        Err(EvalError::Overflow) => 'o',
        Err(EvalError::Inexact) => 'i',
        Err(EvalError::Collation) => 'c',
        Err(error) => panic!("{error}"),
    };
    Dialect::ALL.map(of).iter().collect()
}

#[test]
fn each_dialect_has_its_rules() {
    for (text, expected) in [
        // Three truth values.
        ("nothing = nothing", "UUU"),
        ("nothing IS NULL AND NOT nothing = 1", "UUU"),
        ("nothing = 1 OR seven = 7", "TTT"),
        ("seven IN (1, NULL)", "UUU"),
        ("seven NOT IN (1, NULL, 7)", "FFF"),
        ("seven BETWEEN 8 AND nothing", "FFF"),
        ("nothing BETWEEN 1 AND 2", "UUU"),
        // Integers.
        ("seven / 2 = 3", "TTF"),
        ("seven / 2 = 3.5", "FFT"),
        ("-seven / 2 = -3", "TTF"),
        ("-seven % 4 = -3", "TTT"),
        ("seven / 3 > 2", "FFi"),
        ("seven / zero = 1", "dUU"),
        ("seven % zero IS NULL", "dTT"),
        ("max + 1 > 0", "ooo"),
        ("-min > 0", "ooo"),
        ("min % -1 = 0", "TTT"),
        ("min / -1 > 0", "ooT"),
        // Decimals.
        ("half = 0.50", "TTT"),
        ("half + 0.25 = 0.75", "TTT"),
        ("half + 0.1 = 0.6", "TiT"),
        ("half * 3 % 1 = 0.5", "TFT"),
        ("-half % 0.25 = 0", "TUi"),
        ("half / 4 = 0.125", "TTT"),
        ("half / 3 < 1", "iii"),
        ("max < 9223372036854775808", "TTT"),
        ("max < 9223372036854775809", "TiT"),
        ("max < 1e400", "TTT"),
        ("1e400 + 1 > 0", "ooo"),
        // Booleans.
        ("yes", "TTT"),
        ("yes = (seven = 7)", "TTT"),
        ("yes = 1", "tTT"),
        ("seven", "tTT"),
        ("NOT zero", "tTT"),
        ("yes + 1 = 2", "tTT"),
        // Texts.
        ("lower = upper", "FFT"),
        ("lower LIKE 'A%'", "FTT"),
        ("lower < upper", "cFF"),
        ("lower < 'b'", "TTT"),
        ("lower < 'B'", "cFT"),
        ("lower < 'a-'", "cFc"),
        ("accent = 'e'", "FFc"),
        ("accent = 'é'", "TTT"),
        ("lower = 'ab '", "FFc"),
        ("accent LIKE 'é%'", "TTT"),
        ("accent LIKE 'É%'", "FFc"),
        // Types.
        ("lower = 1", "ttt"),
        ("lower + 1 = 1", "ttt"),
        ("seven LIKE '7%'", "ttt"),
        ("date = CAST('2024-01-01' AS other)", "TTT"),
        ("date < CAST('2025-01-01' AS other)", "ttt"),
        ("absent = 1", "nnn"),
        // What is not needed does not fail.
        ("zero <> 0 AND seven / zero > 1", "FFF"),
        ("seven / zero > 1 OR seven = 7", "TTT"),
        ("zero = 0 AND absent = 1", "nnn"),
        ("seven / zero = nothing", "UUU"),
        ("(seven / zero + nothing) IS NULL", "TTT"),
        ("seven BETWEEN nothing AND absent", "nnn"),
        ("seven BETWEEN 8 AND absent", "FFF"),
    ] {
        assert_eq!(outcomes(text), expected, "{text}");
    }
}

#[test]
fn dialects_that_differ_are_told() {
    let row = row();
    let agreed = |text: &str| text.parse::<Expr>().unwrap().agreed_truth(&row.as_slice());
    assert_eq!(agreed("seven > 6"), Ok(Truth::True));
    assert_eq!(agreed("seven / 2 = 3"), Err(EvalError::DialectsDiffer));
    assert_eq!(agreed("seven / zero IS NULL"), Err(EvalError::DialectsDiffer));
    assert_eq!(agreed("absent = 1"), Err(EvalError::UnknownColumn("absent".into())));
}

#[test]
fn a_predicate_matches_where_its_condition_is_true() {
    let row = row();
    let matches = |text: &str| Predicate::from_sql(text).matches(&row.as_slice(), Dialect::Sqlite);
    assert_eq!(matches("FROM t WHERE seven = 7"), Ok(true));
    assert_eq!(matches("nothing = 7"), Ok(false));
    assert_eq!(matches("seven = (SELECT 7)"), Err(EvalError::Unparsed));
}

#[test]
fn aggregates_over_rows() {
    let rows: Vec<Vec<_>> = [Literal::Int(4), Literal::Null, Literal::Int(-1), Literal::Int(2)]
        .into_iter()
        .map(|value| vec![("v", value)])
        .collect();
    let over = |text: &str, rows: &[Vec<(&'static str, Literal)>], dialect| {
        let function: Aggregate = text.parse().unwrap();
        let value = function.over(rows.iter().map(Vec::as_slice), dialect);
        value.map(|value| format!("{value:?}"))
    };
    for dialect in Dialect::ALL {
        for (text, of_all, of_none) in [
            ("count(*)", "Int(4)", "Int(0)"),
            ("exists(*)", "Bool(true)", "Bool(false)"),
            ("sum(v)", "Int(5)", "Null"),
            ("min(v * 2)", "Int(-2)", "Null"),
            ("max(v)", "Int(4)", "Null"),
        ] {
            assert_eq!(over(text, &rows, dialect).as_deref(), Ok(of_all), "{text}");
            assert_eq!(over(text, &[], dialect).as_deref(), Ok(of_none), "{text}");
            let nulls = &rows[1..2];
            if text.contains('v') {
                assert_eq!(over(text, nulls, dialect).as_deref(), Ok("Null"), "{text}");
            }
        }
        assert_eq!(over("sum(w)", &rows, dialect), Err(EvalError::UnknownColumn("w".into())));
    }
    let large = vec![vec![("v", Literal::Int(i64::MAX))]; 2];
    assert_eq!(over("sum(v)", &large, Dialect::Sqlite), Err(EvalError::Overflow));
    let sum: Aggregate = "sum(v)".parse().unwrap();
    let sum = sum.over(large.iter().map(Vec::as_slice), Dialect::Postgres).unwrap();
    let twice = Decimal::parse("18446744073709551614").unwrap();
    assert_eq!(sum.is(Operand::Decimal(twice.as_ref()), Dialect::Postgres), Ok(true));
}
