//! Statements as text, and values as the server sends them.

use std::error::Error;

use futures_util::TryStreamExt;
use isolario_model::Value;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Row, RowStream};

use super::Line;
use crate::error::DbError;
use crate::remote::Stage;
use crate::sql::{SqlConnection, SqlResult, decimal, hexadecimal};

pub(super) struct SqlSession {
    line: Line,
    id: u64,
}

impl SqlSession {
    pub(super) fn new(line: Line) -> Result<SqlSession, DbError> {
        let id: i64 = line.query("SELECT pg_backend_pid()::BIGINT")?;
        Ok(SqlSession { line, id: id.unsigned_abs() })
    }
}

impl SqlConnection for SqlSession {
    /// One round trip: the statement is parsed, bound and run at once.
    fn statement(&mut self, sql: &str, ends: bool) -> Result<SqlResult, DbError> {
        let stage = if ends { Stage::Commit } else { Stage::Statement };
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

    fn id(&self) -> Option<u64> {
        Some(self.id)
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
