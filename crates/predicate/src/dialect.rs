//! Whose rules an expression is evaluated by.

use std::cmp::Ordering;
use std::fmt;

/// A database's reading of SQL.
///
/// The databases agree on most of this language. Where they do not, each dialect has its own rule,
/// and an expression is evaluated by the rules of one. What a dialect leaves to declared types or
/// collations, which a row does not tell, is an error and not a guess.
///
/// | rule | PostgreSQL | SQLite | MySQL |
/// |---|---|---|---|
/// | `/` of integers | the fraction is cut off | the fraction is cut off | a decimal |
/// | `/` and `%` by zero | an error | null | null |
/// | booleans | a type of their own | the integers 0 and 1 | the integers 0 and 1 |
/// | a number as a condition | an error | true unless zero | true unless zero |
/// | arithmetic on decimals | exact | floating point | exact |
/// | `%` of decimals | exact | of their whole parts | exact |
/// | equal texts | the same bytes | the same bytes | as the collation has it |
/// | the order of texts | as the collation has it | by bytes | as the collation has it |
/// | letters in `LIKE` | case counts | case does not count (ASCII) | as the collation has it |
///
/// - *Collations.* MySQL's usual ones ignore case, accents and, some of them, spaces at the end. So
///   texts of printable ASCII without such spaces are compared without case, and others refused
///   unless they are the same. Only letters and digits have an order that does not depend on the
///   collation; in PostgreSQL, where case may count or not, only as long as both give the same.
/// - *Floating point.* SQLite has no decimals. The result is told where floating point and exact
///   arithmetic have the same one, and refused otherwise. Numbers of up to 15 digits compare as
///   decimals do.
/// - *Quotients* with more digits than a database keeps are refused: how they are rounded depends on
///   declared types. So is a remainder of zero of a negative decimal in MySQL: MariaDB has a
///   negative zero there, which is less than zero.
/// - *Overflow* is an error in all: integers have 64 bits, and PostgreSQL and MySQL
///   refuse larger results; SQLite would go over to floating point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// PostgreSQL, and CockroachDB but for `/` of integers.
    Postgres,
    /// SQLite.
    Sqlite,
    /// MySQL, MariaDB, TiDB.
    MySql,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 3] = [Dialect::Postgres, Dialect::Sqlite, Dialect::MySql];

    /// Whether booleans are the integers 0 and 1.
    pub(crate) fn booleans_are_integers(self) -> bool {
        self != Dialect::Postgres
    }

    /// Whether two texts are equal; none where that depends on the collation.
    pub(crate) fn texts_equal(self, a: &str, b: &str) -> Option<bool> {
        let folds = self == Dialect::MySql;
        if a == b || !folds {
            return Some(a == b);
        }
        let plain = |text: &str| {
            text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && !text.ends_with(' ')
        };
        (plain(a) && plain(b)).then(|| a.eq_ignore_ascii_case(b))
    }

    /// Which of two texts comes first; none where that depends on the collation.
    pub(crate) fn order_of_texts(self, a: &str, b: &str) -> Option<Ordering> {
        if a == b || self == Dialect::Sqlite {
            return Some(a.cmp(b));
        }
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let folded = || {
            let lower = |byte: u8| byte.to_ascii_lowercase();
            a.bytes().map(lower).cmp(b.bytes().map(lower))
        };
        match self {
            _ if !(plain(a) && plain(b)) => None,
            Dialect::Postgres => Some(a.cmp(b)).filter(|by_bytes| *by_bytes == folded()),
            _ => Some(folded()),
        }
    }

    /// Whether a text begins with another one; none where that depends on the collation.
    pub(crate) fn starts_with(self, text: &str, prefix: &str) -> Option<bool> {
        let folded = || {
            let start = text.as_bytes().get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        match self {
            Dialect::Postgres => Some(text.starts_with(prefix)),
            Dialect::Sqlite => Some(folded()),
            Dialect::MySql if text.starts_with(prefix) => Some(true),
            Dialect::MySql => (text.is_ascii() && prefix.is_ascii()).then(folded),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Postgres => "PostgreSQL",
            Dialect::Sqlite => "SQLite",
            Dialect::MySql => "MySQL",
        })
    }
}
