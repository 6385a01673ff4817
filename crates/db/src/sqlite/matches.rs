//! Which rows satisfy a condition that the language of predicates has no form for: SQLite is asked.
//!
//! The *matches oracle* of Clark et al. (Section 4) may be a database. This one is SQLite, in memory and
//! without a table: a row is handed over as constants, with the types that the history gives its
//! columns, and SQLite's own rules decide, also where other databases have others (`LIKE` does not tell
//! upper case from lower case, for one).
//!
//! ```
//! use isolario_db::matches::Sqlite;
//! use isolario_model::{Predicate, RowRef, TupleParts};
//!
//! let sqlite = Sqlite::new()?;
//! let text = "FROM people WHERE substr(name, 2, 1) = 'd'";
//! let predicate = Predicate::asked(text, sqlite.oracle(text).ok_or("not a condition")?);
//!
//! let key = TupleParts { table: "people", columns: &[("id", 1.into())] };
//! let held = TupleParts { table: "", columns: &[("name", "Ada".into())] };
//! let row = RowRef { key: (&key).into(), value: (&held).into() };
//! assert_eq!(row.matches_everywhere(&predicate), Ok(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::{Arc, Mutex};

use isolario_model::MatchesOracle;
use isolario_predicate::{Columns, Operand};
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use crate::locked::locked;

/// How many statements are kept prepared: histories repeat a few conditions.
const STATEMENTS: usize = 256;

/// What gives another answer at another time, or depends on more than the row.
const VOLATILE: [&str; 12] = [
    "changes",
    "date",
    "datetime",
    "julianday",
    "last_insert_rowid",
    "random",
    "randomblob",
    "strftime",
    "time",
    "timediff",
    "total_changes",
    "unixepoch",
];

/// The same, without parentheses.
const VOLATILE_WORDS: [&str; 3] = ["current_date", "current_time", "current_timestamp"];

/// SQLite, to be asked.
#[derive(Debug)]
pub struct Sqlite(Arc<Mutex<Connection>>);

impl Sqlite {
    /// A database in memory.
    pub fn new() -> Result<Sqlite, rusqlite::Error> {
        let connection = Connection::open_in_memory()?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Else the quoted name of a column that is not there would pass for a text.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        Ok(Sqlite(Arc::new(Mutex::new(connection))))
    }

    /// Somebody who knows which rows satisfy a condition: `FROM table WHERE condition`, or the condition
    /// alone. None where the answer would not be one about a row alone.
    pub fn oracle(&self, text: &str) -> Option<Arc<dyn MatchesOracle>> {
        let (table, condition) = parts(text)?;
        let words = words(condition)?;
        let is_volatile = |word: &Word<'_>| {
            let lower = word.text.to_ascii_lowercase();
            let names: &[&str] = if word.is_call { &VOLATILE } else { &VOLATILE_WORDS };
            names.contains(&&*lower)
        };
        if words.iter().any(is_volatile) {
            return None;
        }
        let mut names: Vec<Box<str>> = words.iter().map(|word| word.text.into()).collect();
        names.sort_unstable();
        names.dedup();
        Some(Arc::new(Condition {
            sqlite: Arc::clone(&self.0),
            table: table.map(Into::into),
            text: condition.into(),
            names,
        }))
    }
}

/// A condition on the rows of a table.
#[derive(Debug)]
struct Condition {
    sqlite: Arc<Mutex<Connection>>,
    table: Option<Box<str>>,
    text: Box<str>,
    /// What may be names of columns.
    names: Vec<Box<str>>,
}

impl MatchesOracle for Condition {
    fn is_match(&self, table: &str, row: &dyn Columns<'_>) -> Option<bool> {
        if self.table.as_deref().is_some_and(|asked| !table.is_empty() && asked != table) {
            return Some(false);
        }
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for name in &self.names {
            if let Some(operand) = row.column(name) {
                values.push(constant(operand)?);
                columns.push(format!("?{} AS \"{}\"", values.len(), name.replace('"', "\"\"")));
            }
        }
        let columns = if columns.is_empty() { "1".to_owned() } else { columns.join(", ") };
        // Parentheses keep out what would be another clause of the statement.
        let sql = format!("SELECT (\n{}\n) IS TRUE FROM (SELECT {columns})", self.text);
        let sqlite = locked(&self.sqlite);
        let mut statement = sqlite.prepare_cached(&sql).ok()?;
        statement.query_row(params_from_iter(values), |answer| answer.get(0)).ok()
    }
}

/// A value as SQLite has it; none where it has no such values.
fn constant(operand: Operand<'_>) -> Option<ToSqlOutput<'_>> {
    let value = match operand {
        Operand::Null => ValueRef::Null,
        Operand::Bool(is) => ValueRef::Integer(is.into()),
        Operand::Int(number) => ValueRef::Integer(number),
        Operand::Text(text) => ValueRef::Text(text.as_bytes()),
        // Exact decimals would become inexact ones, and other types be taken for texts.
        _ => return None,
    };
    Some(ToSqlOutput::Borrowed(value))
}

/// The table of a predicate, if it names one, and its condition.
fn parts(text: &str) -> Option<(Option<&str>, &str)> {
    let Some(rest) = after_word(text, "FROM") else {
        return Some((None, after_word(text, "WHERE").unwrap_or(text)));
    };
    let rest = rest.trim_start();
    let (table, rest) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => rest.split_once(char::is_whitespace)?,
    };
    // A quote within the name, several tables, a function: not one table by its name.
    let is_name = !table.is_empty() && !rest.starts_with('"') && !table.contains(['"', ',', '(']);
    let condition = after_word(rest, "WHERE")?;
    is_name.then_some((Some(table), condition))
}

/// What follows a word that a text begins with.
fn after_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (first, rest) = text.trim_start().split_at_checked(word.len())?;
    let is_word = !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    (first.eq_ignore_ascii_case(word) && is_word).then_some(rest)
}

/// A word of a condition.
struct Word<'t> {
    text: &'t str,
    /// Whether it is the name of a function.
    is_call: bool,
}

/// The words of a condition outside of its texts, quoted names among them. None where there are
/// parameters, comments or several statements.
fn words(condition: &str) -> Option<Vec<Word<'_>>> {
    let mut words = Vec::new();
    let mut rest = condition;
    while let Some(next) = rest.chars().next() {
        match next {
            '\'' => {
                let end = rest[1..].find('\'')?;
                rest = &rest[end + 2..];
            }
            '"' => {
                let (text, after) = rest[1..].split_once('"')?;
                words.push(Word { text, is_call: false });
                rest = after;
            }
            _ if next.is_alphanumeric() || next == '_' => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
                let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
                words.push(Word { text, is_call: after.trim_start().starts_with('(') });
                rest = after;
            }
            '?' | ':' | '@' | '$' | ';' | '[' | '`' | '#' => return None,
            _ if rest.starts_with("--") || rest.starts_with("/*") => return None,
            _ => rest = &rest[next.len_utf8()..],
        }
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use isolario_model::{Predicate, RowRef, TupleParts, ValueRef};
    use isolario_predicate::{Arithmetic, Comparison, Dialect, EvalError, Expr, Literal};

    use super::*;

    fn held(a: i64, name: ValueRef<'_>, text: &str) -> Option<Result<bool, EvalError>> {
        let sqlite = Sqlite::new().unwrap();
        let predicate = Predicate::asked(text, sqlite.oracle(text)?);
        let key = TupleParts { table: "t", columns: &[("id", 7.into())] };
        let held = TupleParts { table: "", columns: &[("a", a.into()), ("name", name)] };
        let row = RowRef { key: (&key).into(), value: (&held).into() };
        Some(row.matches_everywhere(&predicate))
    }

    #[test]
    fn what_the_language_has_no_form_for_is_known() {
        for (text, is) in [
            ("name LIKE '%d_'", true),
            ("FROM t WHERE name LIKE '%x%'", false),
            ("from \"t\" where substr(\"name\", 1, 1) = 'A' AND id = 7", true),
            ("FROM other WHERE 1", false),
            ("length(name) = a", true),
            ("abs(a - 5) > 2 OR 'it''s' = name", false),
            ("nullif(a, 3)", false),
        ] {
            assert_eq!(held(3, "Ada".into(), text), Some(Ok(is)), "{text}");
        }
        assert_eq!(held(3, ValueRef::Nil, "name LIKE '%'"), Some(Ok(false)));
    }

    #[test]
    fn what_is_not_about_a_row_has_no_answer() {
        for text in [
            "random() > a",
            "date('now') > name",
            "name < CURRENT_TIMESTAMP",
            "a = ?1",
            "a = 1; DROP TABLE t",
            "a = 1 -- or not",
            "FROM t, u WHERE t.a = u.a",
            "name = 'A",
        ] {
            assert_eq!(held(3, "Ada".into(), text), None, "{text}");
        }
        for text in
            ["nobody = 1", "\"nobody\" = 'nobody'", "a > 1 LIMIT 1", "a > (SELECT max(a) FROM t)"]
        {
            assert_eq!(held(3, "Ada".into(), text), Some(Err(EvalError::Unparsed)), "{text}");
        }
        let decimal = isolario_model::DecimalRef::from_canonical("1.5").unwrap();
        let found = held(3, ValueRef::Decimal(decimal), "abs(name) > 1");
        assert_eq!(found, Some(Err(EvalError::Unparsed)));
    }

    /// Conditions of the language on a few columns, one per number.
    fn condition(number: u64) -> Expr {
        let mut left = number;
        let mut pick = |of: u64| {
            let picked = left % of;
            left /= of;
            picked as usize
        };
        let int = |i| Expr::literal(Literal::Int(i));
        let arithmetic = [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply];
        let comparisons = [Comparison::Equal, Comparison::Less, Comparison::GreaterOrEqual];
        let sum = Expr::column("a").arithmetic(arithmetic[pick(3)], Expr::column("b")).unwrap();
        let first = sum.compare(comparisons[pick(3)], int(pick(4) as i64)).unwrap();
        let second = match pick(3) {
            0 => Expr::column("b").is_null().unwrap(),
            1 => Expr::column("b").compare(comparisons[pick(3)], Expr::column("a")).unwrap(),
            _ => Expr::column("t").starts_with(["x", "xy", ""][pick(3)]).unwrap(),
        };
        let second = if pick(2) == 0 { second } else { second.negated_condition().unwrap() };
        if pick(2) == 0 { first.and(second).unwrap() } else { first.or(second).unwrap() }
    }

    #[test]
    fn it_agrees_with_the_evaluator_on_what_both_know() {
        let sqlite = Sqlite::new().unwrap();
        let values = [ValueRef::Nil, 0.into(), 1.into(), (-2).into(), 3.into()];
        let texts = [ValueRef::Nil, "".into(), "xyz".into(), "xx".into()];
        let (mut random, mut compared) = (1u64, 0);
        for _ in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = random >> 20;
            let condition = condition(number);
            let text = condition.to_string();
            let asked = Predicate::asked(&text, sqlite.oracle(&text).unwrap());
            let known = Predicate::rows("", condition).unwrap();
            let at = |of: usize, shift: u32| (random >> shift) as usize % of;
            let columns =
                [("a", values[at(5, 33)]), ("b", values[at(5, 41)]), ("t", texts[at(4, 49)])];
            let held = TupleParts { table: "", columns: &columns };
            let row = RowRef { key: 1.into(), value: (&held).into() };
            let Ok(is) = row.matches(&known, Dialect::Sqlite) else { continue };
            assert_eq!(row.matches_everywhere(&asked), Ok(is), "{text} on {held:?}");
            compared += 1;
        }
        assert!(compared > 2500, "{compared}");
    }
}
