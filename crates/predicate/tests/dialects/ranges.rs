//! Ranges of columns: never too small, and as small as they should be for what indexes answer.

use std::ops::Bound;

use isolario_predicate::{Columns, Dialect, Expr, Range, Truth};

use crate::random::{DECIMAL, INTEGERS, Random, volume};

#[test]
fn what_matches_lies_in_the_range() {
    let mut random = Random::new(3);
    let (mut matched, mut narrow) = (0, 0);
    for _ in 0..volume() / 20 {
        let condition = random.condition(3);
        for _ in 0..20 {
            let row = random.row();
            for dialect in Dialect::ALL {
                if condition.truth(&row.as_slice(), dialect) != Ok(Truth::True) {
                    continue;
                }
                for name in INTEGERS.into_iter().chain([DECIMAL]) {
                    let range = condition.range_of(name);
                    let value = row.as_slice().column(name).unwrap();
                    assert!(range.contains(value), "{condition}: {name}={value:?} in {range:?}");
                    matched += 1;
                    narrow += usize::from(!range.is_all());
                }
            }
        }
    }
    assert!(narrow * 50 > matched, "{narrow} of {matched} ranges say something");
}

#[test]
fn comparisons_with_constants_are_ranges() {
    let range = |text: &str| text.parse::<Expr>().unwrap().range_of("a");
    for (text, whole_numbers) in [
        ("a = 5", (5, 5)),
        ("5 < a", (6, i64::MAX)),
        ("a < 5 AND a >= -2 AND b = 7", (-2, 4)),
        ("a BETWEEN 1 AND 9 AND a <> 3", (1, 9)),
        ("a IN (4, NULL, 1, 2)", (1, 4)),
        ("a = 1 OR a = 7", (1, 7)),
        ("a > 2.5 AND a <= 4.5", (2, 5)),
        ("a > 5 AND a < 6", (1, 0)),
        ("a > 9 AND a < 3", (1, 0)),
        ("a = NULL", (1, 0)),
        ("a = NULL OR a = 2", (2, 2)),
        ("a > 1e30", (1, 0)),
        ("a < 1e30 AND a > -1e30", (i64::MIN, i64::MAX)),
        ("a > 9223372036854775807", (1, 0)),
    ] {
        assert_eq!(range(text).whole_numbers(), whole_numbers, "{text}");
    }
    for text in ["a = b", "NOT a = 5", "a = 5 OR b = 5", "a + 1 = 5", "a = 'x'", "a IN (1, 'x')"] {
        assert_eq!(range(text), Range::ALL, "{text}");
    }
    assert_eq!(range("a > 5").lower, Bound::Excluded(5));
}
