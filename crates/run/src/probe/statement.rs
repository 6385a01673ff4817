//! Statements of scripts in SQL, as far as a history has words for them.
//!
//! A history of rows needs to know which rows a statement read or wrote, and what they held. That
//! can be told of a few forms of statements on the table that every script finds. All others are
//! refused by name: a history that leaves something out would let the checkers judge what did not
//! happen.

use isolario_predicate::Predicate;

/// The table that scripts find, and its columns: the key of a row, and what it holds.
pub(super) const TABLE: &str = "isolario_register";
pub(super) const KEY: &str = "k";
pub(super) const VALUE: &str = "v";

/// A statement whose effect can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// New rows, by key and value.
    Insert(Vec<(i64, i64)>),
    /// A read of rows.
    Select(Selection),
    /// The same new value for some rows.
    Update(Which, i64),
    /// A delete of rows.
    Delete(Which),
    /// A cursor over the row of a key.
    Declare(String, Selection),
    /// A read of the row that a cursor has come to.
    Fetch(String),
    /// A new value for the row that a cursor has come to.
    UpdateCurrent(String, i64),
    /// A savepoint, or an index made or dropped: nothing that a history has.
    Nothing,
    /// A return to a savepoint.
    RollbackTo,
}

/// Which rows are read, and where an answer has their columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) which: Which,
    /// The column of the answer that has the key. It may be missing where one key is asked for.
    pub(super) key_at: Option<usize>,
    pub(super) value_at: usize,
}

/// Which rows a statement is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The row of this key.
    Key(i64),
    /// Those that satisfy a condition.
    Matching(Predicate),
}

impl Which {
    /// `WHERE …`, or nothing: then it is about all rows.
    pub(super) fn parse(text: &str) -> Result<Which, String> {
        let condition = match after(text, "WHERE") {
            Some(condition) => condition,
            None if text.is_empty() => "TRUE",
            None => return Err(format!("what {text:?} means for the rows")),
        };
        if let Some((column, key)) = condition.split_once('=')
            && column.trim().eq_ignore_ascii_case(KEY)
            && let Ok(key) = number(key)
        {
            return Ok(Which::Key(key));
        }
        let unclear = || format!("which rows satisfy {condition:?}");
        let predicate = format!("FROM {TABLE} WHERE {condition}").parse::<Predicate>();
        let predicate = predicate.map_err(|_| unclear())?;
        // Names are looked up as they are written.
        let is_known = |name: &str| name == KEY || name == VALUE;
        match predicate.condition().is_some_and(|condition| condition.columns().all(is_known)) {
            true => Ok(Which::Matching(predicate)),
            false => Err(unclear()),
        }
    }
}

impl Statement {
    /// Reads a statement; says what cannot be told of it, otherwise.
    pub(super) fn parse(text: &str) -> Result<Statement, String> {
        let text = text.trim().trim_end_matches(';');
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = text.as_str();
        if let Some(rest) = after(text, "INSERT INTO isolario_register") {
            return insert(rest);
        }
        if let Some(rest) = after(text, "UPDATE isolario_register SET v =") {
            return update(rest);
        }
        if let Some(rest) = after(text, "DELETE FROM isolario_register") {
            return Ok(Statement::Delete(Which::parse(rest)?));
        }
        const NOTHING: [&str; 4] = ["SAVEPOINT", "RELEASE SAVEPOINT", "CREATE INDEX", "DROP INDEX"];
        if NOTHING.iter().any(|words| after(text, words).is_some()) {
            return Ok(Statement::Nothing);
        }
        if after(text, "ROLLBACK TO SAVEPOINT").is_some() {
            return Ok(Statement::RollbackTo);
        }
        if let Some(rest) = after(text, "FETCH") {
            return Ok(Statement::Fetch(name(rest)?));
        }
        if let Some(rest) = after(text, "DECLARE") {
            let (cursor, query) = split(rest, " CURSOR FOR ").ok_or_else(|| unknown(text))?;
            let selection = select(query)?;
            return match selection.which {
                Which::Key(_) => Ok(Statement::Declare(name(cursor)?, selection)),
                Which::Matching(_) => Err("which row a cursor over several rows is at".to_owned()),
            };
        }
        select(text).map(Statement::Select)
    }
}

/// What comes after a beginning of whole words, in whatever case.
fn after<'t>(text: &'t str, words: &str) -> Option<&'t str> {
    let (head, rest) = text.split_at_checked(words.len())?;
    let is_whole = rest.is_empty() || rest.starts_with([' ', '(']);
    (head.eq_ignore_ascii_case(words) && is_whole).then(|| rest.trim_start())
}

/// What stands before and after words, in whatever case.
fn split<'t>(text: &'t str, words: &str) -> Option<(&'t str, &'t str)> {
    let at = text.to_ascii_lowercase().find(&words.to_ascii_lowercase())?;
    Some((&text[..at], &text[at + words.len()..]))
}

/// The most rows that one statement may insert by a series.
const MOST_ROWS: i64 = 100_000;

fn unknown(text: &str) -> String {
    format!("what {text:?} reads and writes")
}

fn name(text: &str) -> Result<String, String> {
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match !text.is_empty() && is_name(text) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!("which cursor {text:?} is")),
    }
}

fn number(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| format!("what {text:?} evaluates to"))
}

/// `VALUES (1, 10), (2, 20)`, with the names of the columns before it or without them; or
/// `SELECT n, n FROM generate_series(1, 1000) n`.
fn insert(rest: &str) -> Result<Statement, String> {
    let compact: String = rest.split(' ').collect();
    let lower = compact.to_ascii_lowercase();
    let values = lower.strip_prefix("(k,v)").unwrap_or(&lower);
    let series = values.strip_prefix("selectn,nfromgenerate_series(");
    if let Some(bounds) = series.and_then(|rest| rest.strip_suffix(")n")) {
        let (first, last) = bounds.split_once(',').unwrap_or((bounds, ""));
        let (first, last) = (number(first)?, number(last)?);
        return match last.checked_sub(first) {
            Some(0..MOST_ROWS) => Ok(Statement::Insert((first..=last).map(|n| (n, n)).collect())),
            _ => Err(format!("which rows {rest:?} are, of which there may be {MOST_ROWS}")),
        };
    }
    let values = values.strip_prefix("values(").and_then(|rest| rest.strip_suffix(')'));
    let values = values.ok_or_else(|| format!("which rows {rest:?} are"))?;
    let row = |text: &str| {
        let (key, value) = text.split_once(',').ok_or_else(|| format!("which row {text:?} is"))?;
        Ok((number(key)?, number(value)?))
    };
    Ok(Statement::Insert(values.split("),(").map(row).collect::<Result<_, String>>()?))
}

fn update(rest: &str) -> Result<Statement, String> {
    if let Some((value, cursor)) = split(rest, " WHERE CURRENT OF ") {
        return Ok(Statement::UpdateCurrent(name(cursor)?, number(value)?));
    }
    let (value, condition) = match split(rest, " WHERE ") {
        Some((value, _)) => (value, &rest[value.len() + 1..]),
        None => (rest, ""),
    };
    Ok(Statement::Update(Which::parse(condition)?, number(value)?))
}

/// How a query may end that locks what it reads.
const LOCKS: [&str; 3] = [" FOR UPDATE", " FOR SHARE", " LOCK IN SHARE MODE"];

fn select(text: &str) -> Result<Selection, String> {
    let query = after(text, "SELECT").ok_or_else(|| unknown(text))?;
    let (columns, rest) = split(query, " FROM isolario_register").ok_or_else(|| unknown(text))?;
    let locked = LOCKS.iter().find_map(|lock| split(rest, lock).filter(|(_, end)| end.is_empty()));
    let which = Which::parse(locked.map_or(rest, |(condition, _)| condition).trim_start())?;
    let columns: Vec<&str> = match columns {
        "*" => vec![KEY, VALUE],
        columns => columns.split(',').map(str::trim).collect(),
    };
    let at = |name: &str| columns.iter().position(|column| column.eq_ignore_ascii_case(name));
    if let Some(other) = columns.iter().find(|column| !is_column(column)) {
        return Err(format!("what {other:?} is computed from"));
    }
    let value_at = at(VALUE).ok_or("what the rows held that were returned")?;
    match (at(KEY), &which) {
        (None, Which::Matching(_)) => Err("the keys of the rows that were returned".to_owned()),
        (key_at, _) => Ok(Selection { which, key_at, value_at }),
    }
}

fn is_column(name: &str) -> bool {
    name.eq_ignore_ascii_case(KEY) || name.eq_ignore_ascii_case(VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(condition: &str) -> Which {
        Which::Matching(format!("FROM isolario_register WHERE {condition}").parse().unwrap())
    }

    #[test]
    fn statements_of_one_table_are_understood() {
        let selection = |which, key_at, value_at| Selection { which, key_at, value_at };
        for (text, statement) in [
            (
                "insert into isolario_register values (1, 10),(2,  -20)",
                Statement::Insert(vec![(1, 10), (2, -20)]),
            ),
            (
                "INSERT INTO isolario_register (k, v) VALUES (3, 30);",
                Statement::Insert(vec![(3, 30)]),
            ),
            (
                "SELECT k, v FROM isolario_register WHERE v % 3 = 0",
                Statement::Select(selection(matching("v % 3 = 0"), Some(0), 1)),
            ),
            (
                "SELECT * FROM isolario_register",
                Statement::Select(selection(matching("TRUE"), Some(0), 1)),
            ),
            (
                "select V from isolario_register where K = 1 for update",
                Statement::Select(selection(Which::Key(1), None, 0)),
            ),
            (
                "UPDATE isolario_register SET v = 12 WHERE v = 10",
                Statement::Update(matching("v = 10"), 12),
            ),
            ("UPDATE isolario_register SET v = 12", Statement::Update(matching("TRUE"), 12)),
            ("DELETE FROM isolario_register WHERE k = 2", Statement::Delete(Which::Key(2))),
            (
                "DECLARE c CURSOR FOR SELECT v FROM isolario_register WHERE k = 1",
                Statement::Declare("c".to_owned(), selection(Which::Key(1), None, 0)),
            ),
            ("FETCH c", Statement::Fetch("c".to_owned())),
            (
                "UPDATE isolario_register SET v = 11 WHERE CURRENT OF c",
                Statement::UpdateCurrent("c".to_owned(), 11),
            ),
        ] {
            assert_eq!(Statement::parse(text), Ok(statement), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        for (text, what) in [
            ("UPDATE isolario_register SET v = v + 1", "what \"v + 1\" evaluates to"),
            ("SELECT count(*) FROM isolario_register", "what \"count(*)\" is computed from"),
            ("SELECT k FROM isolario_register", "what the rows held that were returned"),
            ("SELECT v FROM isolario_register", "the keys of the rows that were returned"),
            (
                "SELECT k, v FROM isolario_register ORDER BY k LIMIT 1",
                "what \"ORDER BY k LIMIT 1\" means for the rows",
            ),
            (
                "SELECT k, v FROM isolario_register WHERE v > 1 LIMIT 1",
                "which rows satisfy \"v > 1 LIMIT 1\"",
            ),
            ("DELETE FROM isolario_register WHERE w = 1", "which rows satisfy \"w = 1\""),
            (
                "INSERT INTO isolario_register VALUES (1, 10) ON CONFLICT DO NOTHING",
                "which rows \"VALUES (1, 10) ON CONFLICT DO NOTHING\" are",
            ),
            ("INSERT INTO isolario_register VALUES (1, 1 + 1)", "what \"1+1\" evaluates to"),
            ("SELECT k, v FROM accounts", "what \"SELECT k, v FROM accounts\" reads and writes"),
            ("SELECT k, v FROM isolario_registers", "what \"s\" means for the rows"),
            ("CREATE TABLE t (x INT)", "what \"CREATE TABLE t (x INT)\" reads and writes"),
            ("FETCH ALL FROM c", "which cursor \"ALL FROM c\" is"),
            (
                "DECLARE c CURSOR FOR SELECT k, v FROM isolario_register",
                "which row a cursor over several rows is at",
            ),
        ] {
            assert_eq!(Statement::parse(text), Err(what.to_owned()), "{text}");
        }
    }
}
