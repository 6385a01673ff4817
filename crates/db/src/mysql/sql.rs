//! Statements as text, and values as the server prints them.

use isolario_model::Value;
use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Column, Conn};

use super::errors::classify;
use crate::error::DbError;
use crate::remote::Stage;
use crate::sql::{SqlConnection, SqlResult, decimal, hexadecimal};

pub(super) struct SqlSession {
    conn: Conn,
}

impl SqlSession {
    pub(super) fn new(conn: Conn) -> SqlSession {
        SqlSession { conn }
    }
}

impl SqlConnection for SqlSession {
    fn statement(&mut self, sql: &str, ends: bool) -> Result<SqlResult, DbError> {
        let stage = if ends { Stage::Commit } else { Stage::Statement };
        let failed = |error| classify(error, stage);
        let mut result = self.conn.query_iter(sql).map_err(failed)?;
        let columns: Vec<Column> = result.columns().as_ref().to_vec();
        let mut answer = SqlResult {
            columns: columns.iter().map(|column| column.name_str().into_owned()).collect(),
            ..SqlResult::default()
        };
        if let Some(rows) = result.iter() {
            for row in rows {
                let row = row.map_err(failed)?.unwrap();
                answer
                    .rows
                    .push(columns.iter().zip(row).map(|(of, sent)| value(of, sent)).collect());
            }
        }
        drop(result);
        answer.changed = match columns.is_empty() {
            true => self.conn.affected_rows(),
            false => answer.rows.len() as u64,
        };
        Ok(answer)
    }

    fn id(&self) -> Option<u64> {
        Some(u64::from(self.conn.connection_id()))
    }
}

/// What was sent for a column: text, whatever its type.
fn value(column: &Column, sent: mysql::Value) -> Value {
    let mysql::Value::Bytes(bytes) = sent else { return Value::Nil };
    let Ok(text) = std::str::from_utf8(&bytes) else { return hexadecimal(&bytes) };
    match column.column_type() {
        ColumnType::MYSQL_TYPE_TINY
        | ColumnType::MYSQL_TYPE_SHORT
        | ColumnType::MYSQL_TYPE_INT24
        | ColumnType::MYSQL_TYPE_LONG
        | ColumnType::MYSQL_TYPE_LONGLONG
        | ColumnType::MYSQL_TYPE_YEAR => whole(text),
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => decimal(text),
        ColumnType::MYSQL_TYPE_VARCHAR
        | ColumnType::MYSQL_TYPE_VAR_STRING
        | ColumnType::MYSQL_TYPE_STRING
        | ColumnType::MYSQL_TYPE_BLOB
        | ColumnType::MYSQL_TYPE_TINY_BLOB
        | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
        | ColumnType::MYSQL_TYPE_LONG_BLOB => Value::Text(text.into()),
        _ => Value::Other(text.into()),
    }
}

fn whole(text: &str) -> Value {
    let small = text.parse::<i64>().map(Value::from);
    small.or_else(|_| text.parse::<u64>().map(Value::from)).unwrap_or(Value::Other(text.into()))
}
