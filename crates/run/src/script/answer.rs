//! What a script expects of a step, and whether that is what came.

use std::fmt;

use isolario_model::Value;

use super::worker::Reply;
use isolario_db::DbError;
use isolario_db::RegisterValue;

/// What is to come of a step if all goes as written. A step of which nothing is said must succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expectation {
    /// It has to wait for another session.
    pub waits: bool,
    /// It fails; with this code, if one is given.
    pub fails: Option<Option<String>>,
    /// It answers with one of these; with anything, if there are none.
    pub answers: Vec<ExpectedAnswer>,
    /// The answers are those that must *not* come.
    pub negated: bool,
}

/// An answer that a script speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpectedAnswer {
    /// What a register holds.
    Value(RegisterValue),
    /// The elements of a list.
    List(Vec<i64>),
    /// Rows, in any order.
    Rows(Vec<Vec<String>>),
    /// So many rows are returned, or changed.
    Count(u64),
}

impl Expectation {
    /// Whether it says anything at all.
    pub fn is_silent(&self) -> bool {
        *self == Expectation::default()
    }

    /// Whether that is what came of a step.
    pub fn is_satisfied_by(&self, waited: bool, result: &Result<Reply, DbError>) -> bool {
        let came = match (&self.fails, result) {
            (Some(code), Err(error)) => code.is_none() || *code == error.code,
            (None, Ok(reply)) => {
                let any = self.answers.iter().any(|answer| answer.is(reply));
                self.answers.is_empty() || any != self.negated
            }
            _ => false,
        };
        came && (waited || !self.waits)
    }
}

impl ExpectedAnswer {
    fn is(&self, reply: &Reply) -> bool {
        match (self, reply) {
            (ExpectedAnswer::Value(value), Reply::Value(seen)) => value == seen,
            (ExpectedAnswer::List(elements), Reply::List(seen)) => elements == seen,
            (ExpectedAnswer::Rows(rows), Reply::Rows { rows: seen, .. }) => {
                let mut seen: Vec<Vec<String>> =
                    seen.iter().map(|row| row.iter().map(shown).collect()).collect();
                let mut rows = rows.clone();
                rows.sort();
                seen.sort();
                rows == seen
            }
            (ExpectedAnswer::Count(count), Reply::Rows { rows, changed }) => {
                *count == (*changed).max(rows.len() as u64)
            }
            _ => false,
        }
    }
}

/// A value as scripts write it: text without quotes, so that a number is a number whichever type
/// the database gives it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Nil => "null".to_owned(),
        Value::Text(text) => text.to_string(),
        other => other.to_string(),
    }
}

/// Rows as scripts write them.
pub(super) fn write_rows(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    if rows.is_empty() {
        return f.write_str("no rows");
    }
    for (at, row) in rows.iter().enumerate() {
        let gap = if at == 0 { "" } else { ", " };
        write!(f, "{gap}({})", row.join(", "))?;
    }
    Ok(())
}

impl fmt::Display for ExpectedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectedAnswer::Value(None) => f.write_str("nothing"),
            ExpectedAnswer::Value(Some(value)) => write!(f, "{value}"),
            ExpectedAnswer::List(elements) => {
                let elements: Vec<_> = elements.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", elements.join(", "))
            }
            ExpectedAnswer::Rows(rows) => write_rows(f, rows),
            ExpectedAnswer::Count(1) => f.write_str("1 row"),
            ExpectedAnswer::Count(count) => write!(f, "{count} rows"),
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.waits {
            parts.push("waits".to_owned());
        }
        match &self.fails {
            Some(Some(code)) => parts.push(format!("fails {code}")),
            Some(None) => parts.push("fails".to_owned()),
            None => {}
        }
        if !self.answers.is_empty() {
            let answers: Vec<_> = self.answers.iter().map(ToString::to_string).collect();
            let not = if self.negated { "not " } else { "" };
            parts.push(format!("{not}{}", answers.join(" or ")));
        }
        f.write_str(&parts.join(", "))
    }
}
