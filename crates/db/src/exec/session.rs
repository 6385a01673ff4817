//! A connection by a driver.

use std::time::Duration;

use isolario_model::Stamp;
use isolario_workload::{Function, RowValues as Row, TableOp, ValueRange};
use serde_json::{Value, json};

use super::process::Line;
use super::wire::field;
use crate::database::{Access, ConditionalResult, Connection, Receipt, RegisterValue};
use crate::error::{DbError, ErrorClass};
use crate::table::TableResult;

pub(super) struct Session {
    line: Line,
    patience: Duration,
    /// Whether the next operation may take effect at once.
    single: bool,
}

/// Whether a lost answer leaves open what happened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing is for good before the commit.
    Pending,
    /// It may have happened.
    Possible,
}

impl Session {
    pub(super) fn new(line: Line, patience: Duration) -> Session {
        Session { line, patience, single: false }
    }

    fn ask(&mut self, request: Value, effect: Effect) -> Result<Value, DbError> {
        let answer = self.line.ask(request, self.patience);
        answer.map_err(|error| match effect {
            // Words of the driver count; without any, nobody can tell.
            Effect::Possible if error.disconnected || error.class == ErrorClass::Fatal => {
                DbError { class: ErrorClass::Unknown, disconnected: true, ..error }
            }
            _ => error,
        })
    }

    fn write_effect(&self) -> Effect {
        if self.single { Effect::Possible } else { Effect::Pending }
    }

    fn conditional(&mut self, request: Value) -> Result<ConditionalResult, DbError> {
        let answer = self.ask(request, self.write_effect())?;
        if field::<bool>(&answer, "applied")? {
            return Ok(ConditionalResult::Applied);
        }
        // Nothing seen is something else than not having looked.
        let seen = match answer.get("seen") {
            Some(_) => Some(field::<RegisterValue>(&answer, "seen")?),
            None => None,
        };
        Ok(ConditionalResult::Failed { seen })
    }
}

impl Connection for Session {
    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        self.single = access == Access::Single;
        let access = match access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Single => "single",
        };
        self.ask(json!({ "do": "begin", "access": access }), Effect::Pending).map(|_| ())
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        let answer = self.ask(json!({ "do": "read", "key": key }), Effect::Pending)?;
        field(&answer, "value")
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        let request = json!({ "do": "write", "key": key, "value": value });
        self.ask(request, self.write_effect()).map(|_| ())
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.ask(json!({ "do": "delete", "key": key }), self.write_effect()).map(|_| ())
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        let answer = self.ask(json!({ "do": "read-list", "key": key }), Effect::Pending)?;
        *elements = field(&answer, "elements")?;
        Ok(())
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        let request = json!({ "do": "append", "key": key, "element": element });
        self.ask(request, self.write_effect()).map(|_| ())
    }

    fn insert_if_absent(&mut self, key: u64, value: i64) -> Result<ConditionalResult, DbError> {
        self.conditional(json!({ "do": "insert", "key": key, "value": value }))
    }

    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        self.conditional(json!({ "do": "cas", "key": key, "expected": expected, "new": new }))
    }

    fn table(&mut self, op: &TableOp, found: &mut TableResult) -> Result<(), DbError> {
        let request = match *op {
            TableOp::Insert { key, held } => row_request("insert-row", key, Some(held)),
            TableOp::Update { key, held } => row_request("update-row", key, Some(held)),
            TableOp::Read { key } => row_request("read-row", key, None),
            TableOp::Increment { .. } => {
                return Err(DbError::unsupported("increments in one step"));
            }
            TableOp::RangeRead { range } => range_request("read-range", range),
            TableOp::RangeUpdate { range, b, version } => {
                let mut request = range_request("update-range", range);
                request["set"] = json!({ "b": b, "v": version });
                request
            }
            TableOp::Delete { range, .. } => range_request("delete-range", range),
            TableOp::Aggregate { function, range } => {
                let mut request = range_request("aggregate", range);
                let (name, of) = function_words(function);
                (request["function"], request["of"]) = (json!(name), json!(of));
                request
            }
        };
        let answer = self.ask(request, Effect::Pending)?;
        match *op {
            TableOp::Insert { .. } => {}
            TableOp::Update { key, held } => {
                if field::<bool>(&answer, "found")? {
                    found.rows.push((key, Some(held)));
                }
            }
            TableOp::Delete { .. } => {
                let ids: Vec<u32> = field(&answer, "ids")?;
                found.rows.extend(ids.into_iter().map(|id| (id, None)));
            }
            _ => {
                let rows: Vec<[i64; 4]> = field(&answer, "rows")?;
                for [id, a, b, version] in rows {
                    let strange = |_| {
                        DbError::fatal(format!(
                            "the driver answered with row id {id}, which is out of range"
                        ))
                    };
                    let id = u32::try_from(id).map_err(strange)?;
                    found.rows.push((id, Some(Row { a, b, version })));
                }
                if let TableOp::Aggregate { .. } = op {
                    found.value = field(&answer, "value")?;
                }
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        let answer = self.ask(json!({ "do": "commit" }), Effect::Possible)?;
        // It has committed, whatever else the driver says of it.
        let stamp = |name| {
            let parts: Option<(u64, u64)> = field(&answer, name).ok()?;
            parts.map(|(physical, logical)| Stamp { physical, logical })
        };
        Ok(Receipt { snapshot: stamp("snapshot"), commit: stamp("commit") })
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        self.ask(json!({ "do": "rollback" }), Effect::Pending).map(|_| ())
    }
}

fn row_request(what: &str, key: u32, held: Option<Row>) -> Value {
    match held {
        None => json!({ "do": what, "id": key }),
        Some(Row { a, b, version }) => {
            json!({ "do": what, "id": key, "a": a, "b": b, "v": version })
        }
    }
}

fn range_request(what: &str, range: ValueRange) -> Value {
    json!({ "do": what, "column": range.column.name(), "low": range.low, "high": range.high })
}

fn function_words(function: Function) -> (&'static str, Option<&'static str>) {
    match function {
        Function::Count => ("count", None),
        Function::Sum(of) => ("sum", Some(of.name())),
        Function::Min(of) => ("min", Some(of.name())),
        Function::Max(of) => ("max", Some(of.name())),
    }
}
