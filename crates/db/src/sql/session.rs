//! The transactions of one session on a database that speaks SQL.

use isolario_model::Value;
use isolario_workload::TableOp;

use super::product::Client;
use super::statements::{Prepared, Query, Statements};
use crate::database::{
    Access, ConditionalResult, Connection, Receipt, RegisterValue, SqlResult, read_then_write,
};
use crate::error::DbError;
use crate::remote::Stage;
use crate::table::TableResult;

pub(crate) struct Session<C> {
    line: Line<C>,
    statements: Statements,
}

struct Line<C> {
    client: C,
    /// What a lost answer to a statement would mean: one outside of any transaction commits by itself.
    stage: Stage,
}

impl<C: Client> Prepared for Line<C> {
    fn ask(&mut self, query: &Query, values: &[i64]) -> Result<SqlResult, DbError> {
        let bound: Vec<i64> = query.binds.iter().map(|number| values[number - 1]).collect();
        self.client.ask(&query.sql, &bound, self.stage)
    }
}

impl<C: Client> Session<C> {
    pub(crate) fn new(client: C, statements: Statements) -> Session<C> {
        Session { line: Line { client, stage: Stage::Statement }, statements }
    }
}

/// Sends statements until one of them changes something.
fn change(line: &mut impl Prepared, queries: &[Query], values: &[i64]) -> Result<(), DbError> {
    for query in queries {
        if line.ask(query, values)?.changed > 0 {
            break;
        }
    }
    Ok(())
}

impl<C: Client> Connection for Session<C> {
    fn is_read_only(&self) -> bool {
        self.line.client.is_read_only()
    }

    fn writes_by_predicate_alone(&self) -> bool {
        self.line.client.writes_by_predicate_alone()
    }

    fn id(&mut self) -> Result<Option<u64>, DbError> {
        Ok(self.line.client.number())
    }

    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        self.line.stage = Stage::Statement;
        if !self.line.client.begin(access)? {
            self.line.stage = Stage::Commit;
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Option<String> {
        self.line.client.snapshot()
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        let Session { line, statements } = self;
        match &statements.own_tables {
            Some(tables) if tables.have(key) => tables.read(line, key),
            _ => {
                let found = line.ask(&statements.read, &[key as i64])?.rows;
                found.first().and_then(|row| row.first()).map_or(Ok(None), |held| number(key, held))
            }
        }
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        let Session { line, statements } = self;
        match &statements.own_tables {
            Some(tables) if tables.have(key) => tables.write(line, key, value),
            _ => change(line, &statements.write, &[key as i64, value]),
        }
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.line.ask(&self.statements.delete, &[key as i64]).map(drop)
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        let found = self.line.ask(&self.statements.read_list, &[key as i64])?;
        for value in found.rows.iter().flatten() {
            match value {
                Value::Int(element) => elements.push(*element),
                Value::Text(text) => take_elements(key, text, elements)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        change(&mut self.line, &self.statements.append, &[key as i64, element])
    }

    /// Where one statement does it, what was there instead would be another question, and perhaps the answer of
    /// another moment.
    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        let Some([if_absent, if_equal]) = &self.statements.conditional else {
            return read_then_write(self, key, expected, new);
        };
        let query = if expected.is_none() { if_absent } else { if_equal };
        let values = [key as i64, new, expected.unwrap_or_default()];
        match self.line.ask(query, &values)?.changed {
            0 => Ok(ConditionalResult::Failed { seen: None }),
            _ => Ok(ConditionalResult::Applied),
        }
    }

    fn table(&mut self, op: &TableOp, found: &mut TableResult) -> Result<(), DbError> {
        self.statements.rows.run(&mut self.line, op, found)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        match self.line.stage {
            Stage::Commit => Ok(Receipt::default()),
            _ => self.line.client.commit(),
        }
    }

    fn shadow(&mut self) -> Option<Vec<(i64, i64)>> {
        self.line.client.shadow()
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        match self.line.stage {
            Stage::Commit => Ok(()),
            _ => self.line.client.rollback(),
        }
    }
}

/// The value of a register, as a number or as its text.
fn number(key: u64, held: &Value) -> Result<RegisterValue, DbError> {
    let text = match held {
        Value::Nil => return Ok(None),
        Value::Int(number) => return Ok(Some(*number)),
        Value::Text(text) => text.to_string(),
        other => other.to_string(),
    };
    text.parse().map(Some).map_err(|_| {
        DbError::fatal(format!("register {key} has {text:?}, which no client of this run wrote"))
    })
}

/// Takes the elements of a list that is kept as a text, with commas between them.
fn take_elements(key: u64, text: &str, elements: &mut Vec<i64>) -> Result<(), DbError> {
    for element in text.split(',') {
        elements.push(element.parse().map_err(|_| {
            DbError::fatal(format!(
                "list {key} has an element {element:?}, which no client of this run wrote"
            ))
        })?);
    }
    Ok(())
}
