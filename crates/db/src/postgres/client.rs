//! A connection, and values as the server sends them.

use std::collections::HashMap;
use std::error::Error;

use futures_util::TryStreamExt;
use futures_util::future::try_join;
use isolario_model::Value;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Row, RowStream, Statement};

use super::Line;
use super::changefeed::timestamp;
use super::shadow::Shadow;
use crate::database::{Access, Receipt, SqlResult};
use crate::error::DbError;
use crate::remote::Stage;
use crate::sql::{Client, Reported, decimal, hexadecimal};

/// What a session asks for besides the results.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Nothing.
    None,
    /// The snapshot of each operation by predicate: at this level each has its own.
    Statements,
    /// The snapshot that a transaction begins with, and keeps.
    Transactions,
    /// From CockroachDB: when a transaction committed, if the answer is the moment of its rows.
    Commits {
        /// Whether it is. At read committed it need not be.
        are_told: bool,
    },
}

impl Evidence {
    pub(super) fn reported(self) -> Reported {
        match self {
            Evidence::None | Evidence::Commits { .. } => Reported::Nothing,
            Evidence::Transactions => Reported::Deletes,
            Evidence::Statements => Reported::Statements,
        }
    }
}

/// Commits, and tells when that was: within a transaction the first statement does both, and the second
/// one ends it (CockroachDB's release notes of 23.1).
const COMMIT_AND_TELL: &str = "SHOW COMMIT TIMESTAMP; COMMIT";

/// Takes the snapshot of a transaction, and tells it.
const SNAPSHOT: &str = "SELECT txid_current_snapshot()::text";

pub(super) struct PgClient {
    pub(super) line: Line,
    /// The usual statements, and those that were prepared when they were first needed.
    prepared: HashMap<String, Statement>,
    evidence: Evidence,
    /// Reads the snapshot of each transaction.
    shadow: Option<Shadow>,
    /// What the transaction began with.
    snapshot: Option<String>,
    /// Whether the server takes no writes.
    is_standby: bool,
}

impl PgClient {
    pub(super) fn new(line: Line) -> PgClient {
        PgClient {
            line,
            prepared: HashMap::new(),
            evidence: Evidence::None,
            shadow: None,
            snapshot: None,
            is_standby: false,
        }
    }

    pub(super) fn on_standby(self, is_standby: bool) -> PgClient {
        PgClient { is_standby, ..self }
    }

    pub(super) fn with(self, evidence: Evidence, shadow: Option<Shadow>) -> PgClient {
        PgClient { evidence, shadow, ..self }
    }

    /// Prepares statements ahead of the transactions that need them: within one, others would wait for it.
    pub(super) fn prepare<'s>(
        &mut self,
        statements: impl IntoIterator<Item = &'s str>,
    ) -> Result<(), DbError> {
        let mut statements = statements.into_iter();
        statements.try_for_each(|sql| self.prepared(sql, Stage::Connect).map(drop))
    }

    fn prepared(&mut self, sql: &str, stage: Stage) -> Result<Statement, DbError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.line.ask(stage, self.line.client.prepare(sql))?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Client for PgClient {
    /// One round trip: the statement is parsed, bound and run at once.
    fn run(&mut self, sql: &str, stage: Stage) -> Result<SqlResult, DbError> {
        let without: [(i32, Type); 0] = [];
        let asked = async { collect(self.line.client.query_typed_raw(sql, without).await?).await };
        let (rows, changed) = self.line.ask(stage, asked)?;
        let names =
            |row: &Row| row.columns().iter().map(|column| column.name().to_owned()).collect();
        Ok(SqlResult {
            columns: rows.first().map(names).unwrap_or_default(),
            rows: rows.iter().map(values).collect::<Result<_, _>>()?,
            changed,
        })
    }

    fn ask(&mut self, sql: &str, values: &[i64], stage: Stage) -> Result<SqlResult, DbError> {
        let statement = self.prepared(sql, stage)?;
        let client = &self.line.client;
        let asked =
            async { collect(client.query_raw(&statement, values.iter().copied()).await?).await };
        let (rows, changed) = self.line.ask(stage, asked)?;
        let rows = rows.iter().map(elements_or_values).collect::<Result<_, _>>()?;
        Ok(SqlResult { rows, changed, ..SqlResult::default() })
    }

    /// Few ask, and a round trip on every connection would be for nothing. A line that is broken shows at the next
    /// statement.
    fn number(&self) -> Option<u64> {
        let id: i64 = self.line.query("SELECT pg_backend_pid()::BIGINT").ok()?;
        u64::try_from(id).ok()
    }

    /// A single operation is a statement outside of any transaction, unless it has to be told when it committed.
    fn begin(&mut self, access: Access) -> Result<bool, DbError> {
        let begin = match access {
            Access::Single if self.evidence != Evidence::Commits { are_told: true } => {
                return Ok(false);
            }
            Access::Single | Access::Write => "BEGIN",
            Access::Read => "BEGIN READ ONLY",
        };
        if self.evidence != Evidence::Transactions {
            self.line.batch(Stage::Statement, begin)?;
            return Ok(true);
        }
        let snapshot = self.prepared(SNAPSHOT, Stage::Statement)?;
        // Both are sent at once, and the answers come one after the other.
        let client = &self.line.client;
        let both = try_join(client.batch_execute(begin), client.query_one(&snapshot, &[]));
        let ((), told) = self.line.ask(Stage::Statement, both)?;
        self.snapshot = told.get(0);
        Ok(true)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        if let Some(shadow) = &mut self.shadow {
            shadow.look(&self.line)?;
        }
        if self.evidence != (Evidence::Commits { are_told: true }) {
            self.line.batch(Stage::Commit, "COMMIT")?;
            return Ok(Receipt::default());
        }
        let told = self.line.simple(Stage::Commit, COMMIT_AND_TELL)?.first_text();
        Ok(Receipt { snapshot: None, commit: told.as_deref().and_then(timestamp) })
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        self.line.batch(Stage::Statement, "ROLLBACK")
    }

    fn is_read_only(&self) -> bool {
        self.is_standby
    }

    fn writes_by_predicate_alone(&self) -> bool {
        matches!(self.evidence, Evidence::Commits { .. })
    }

    fn snapshot(&mut self) -> Option<String> {
        self.snapshot.take()
    }

    fn shadow(&mut self) -> Option<Vec<(i64, i64)>> {
        self.shadow.as_mut()?.seen.take()
    }
}

async fn collect(stream: RowStream) -> Result<(Vec<Row>, u64), tokio_postgres::Error> {
    let mut stream = std::pin::pin!(stream);
    let mut rows = Vec::new();
    while let Some(row) = stream.try_next().await? {
        rows.push(row);
    }
    Ok((rows, stream.rows_affected().unwrap_or_default()))
}

/// The elements of an array that is all that a row holds, or its values.
fn elements_or_values(row: &Row) -> Result<Vec<Value>, DbError> {
    match row.columns() {
        [only] if *only.type_() == Type::INT8_ARRAY => {
            Ok(row.get::<_, Vec<i64>>(0).into_iter().map(Value::Int).collect())
        }
        _ => values(row),
    }
}

fn values(row: &Row) -> Result<Vec<Value>, DbError> {
    let value = |column| {
        let sent: Option<Sent> = row.try_get(column).map_err(|error| {
            DbError::aborted(format!("column {column} of an answer cannot be read: {error}"))
        })?;
        Ok(sent.map_or(Value::Nil, |sent| sent.0))
    };
    (0..row.len()).map(value).collect()
}

/// A value of any type.
struct Sent(Value);

impl<'a> FromSql<'a> for Sent {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Sent(match *kind {
            Type::BOOL => Value::Bool(bool::from_sql(kind, raw)?),
            Type::INT2 => i16::from_sql(kind, raw)?.into(),
            Type::INT4 => i32::from_sql(kind, raw)?.into(),
            Type::INT8 => i64::from_sql(kind, raw)?.into(),
            Type::OID => u32::from_sql(kind, raw)?.into(),
            Type::NUMERIC => numeric(raw).map_or_else(|| hexadecimal(raw), |text| decimal(&text)),
            Type::FLOAT4 => Value::Other(f32::from_sql(kind, raw)?.to_string().into()),
            Type::FLOAT8 => Value::Other(f64::from_sql(kind, raw)?.to_string().into()),
            Type::DATE => match raw.try_into() {
                Ok(days) => Value::Other(date(i32::from_be_bytes(days)).into()),
                Err(_) => hexadecimal(raw),
            },
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => {
                Value::Text(std::str::from_utf8(raw)?.into())
            }
            // Whoever wants to read other types asks for them as text.
            _ => hexadecimal(raw),
        }))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A number of the type `numeric`: how many groups of four digits there are, how many of them minus
/// one stand before the point, the sign, the number of digits after the point, and the groups.
/// (PostgreSQL's source, `numeric_send`.)
fn numeric(raw: &[u8]) -> Option<String> {
    let mut words = raw.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let (count, weight, sign, scale) =
        (words.next()?, words.next()? as i16, words.next()?, words.next()?);
    let groups: Vec<u16> = words.collect();
    if groups.len() != usize::from(count) || !matches!(sign, 0 | 0x4000) {
        return None;
    }
    let group = |place: i32| {
        let index = usize::try_from(i32::from(weight) - place).ok();
        index.and_then(|index| groups.get(index)).copied().unwrap_or(0)
    };
    let mut text = if sign == 0 { String::new() } else { "-".to_owned() };
    text += &group(i32::from(weight).max(0)).to_string();
    for place in (0..i32::from(weight)).rev() {
        text += &format!("{:04}", group(place));
    }
    if scale > 0 {
        let groups = 1..=i32::from(scale.div_ceil(4));
        let digits: String = groups.map(|place| format!("{:04}", group(-place))).collect();
        text.push('.');
        text += &digits[..usize::from(scale)];
    }
    Some(text)
}

/// A day, counted from the first of January 2000. Years begin in March here, so that the day that only
/// some of them have is their last.
fn date(days: i32) -> String {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // From the first of March 2000.
    let days = i64::from(days) - 60;
    let (cycle, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..=9 => (year, month + 3),
        _ => (year + 1, month - 9),
    };
    format!("{:04}-{month:02}-{day:02}", 2000 + 400 * cycle + year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_printed() {
        let sent = |words: &[u16]| -> Option<String> {
            let raw: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            numeric(&raw)
        };
        assert_eq!(sent(&[0, 0, 0, 0]).unwrap(), "0");
        assert_eq!(sent(&[1, 0, 0, 0, 42]).unwrap(), "42");
        assert_eq!(sent(&[2, 1, 0x4000, 0, 12, 3]).unwrap(), "-120003");
        assert_eq!(sent(&[2, 0, 0, 2, 3, 1400]).unwrap(), "3.14");
        assert_eq!(sent(&[1, 0xffff, 0, 5, 5]).unwrap(), "0.00050");
        assert_eq!(sent(&[1, 1, 0, 1, 7]).unwrap(), "70000.0");
        assert_eq!(sent(&[0, 0, 0xc000, 0]), None, "not a number");
    }

    #[test]
    fn days_are_dates() {
        for (days, expected) in [
            (0, "2000-01-01"),
            (59, "2000-02-29"),
            (60, "2000-03-01"),
            (366, "2001-01-01"),
            (-1, "1999-12-31"),
            (-10_957, "1970-01-01"),
            (9816, "2026-11-16"),
            (36_583, "2100-02-28"),
            (36_584, "2100-03-01"),
        ] {
            assert_eq!(date(days), expected);
        }
    }
}
