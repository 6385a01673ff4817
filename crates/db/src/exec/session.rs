//! A connection, by a driver of its own.

use std::time::Duration;

use isolario_model::Stamp;
use serde_json::{Value, json};

use super::process::Process;
use super::wire::field;
use crate::database::{Access, Conditional, Connection, Held, Receipt};
use crate::error::{DbError, ErrorClass};

pub(super) struct Session {
    process: Process,
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
    pub(super) fn new(process: Process, patience: Duration) -> Session {
        Session { process, patience, single: false }
    }

    fn ask(&mut self, request: &Value, effect: Effect) -> Result<Value, DbError> {
        let answer = self.process.ask(request, self.patience);
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

    fn conditional(&mut self, request: &Value) -> Result<Conditional, DbError> {
        let answer = self.ask(request, self.write_effect())?;
        if field::<bool>(&answer, "applied")? {
            return Ok(Conditional::Applied);
        }
        // Nothing seen is something else than not having looked.
        let seen = match answer.get("seen") {
            Some(_) => Some(field::<Held>(&answer, "seen")?),
            None => None,
        };
        Ok(Conditional::Failed { seen })
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
        self.ask(&json!({ "do": "begin", "access": access }), Effect::Pending).map(|_| ())
    }

    fn read(&mut self, key: u64) -> Result<Held, DbError> {
        let answer = self.ask(&json!({ "do": "read", "key": key }), Effect::Pending)?;
        field(&answer, "value")
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        let request = json!({ "do": "write", "key": key, "value": value });
        self.ask(&request, self.write_effect()).map(|_| ())
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.ask(&json!({ "do": "delete", "key": key }), self.write_effect()).map(|_| ())
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        let answer = self.ask(&json!({ "do": "read-list", "key": key }), Effect::Pending)?;
        *elements = field(&answer, "elements")?;
        Ok(())
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        let request = json!({ "do": "append", "key": key, "element": element });
        self.ask(&request, self.write_effect()).map(|_| ())
    }

    fn insert_if_absent(&mut self, key: u64, value: i64) -> Result<Conditional, DbError> {
        self.conditional(&json!({ "do": "insert", "key": key, "value": value }))
    }

    fn compare_and_set(
        &mut self,
        key: u64,
        expected: Held,
        new: i64,
    ) -> Result<Conditional, DbError> {
        self.conditional(&json!({ "do": "cas", "key": key, "expected": expected, "new": new }))
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        let answer = self.ask(&json!({ "do": "commit" }), Effect::Possible)?;
        // It has committed, whatever else the driver says of it.
        let stamp = |name| {
            let parts: Option<(u64, u64)> = field(&answer, name).ok()?;
            parts.map(|(physical, logical)| Stamp { physical, logical })
        };
        Ok(Receipt { snapshot: stamp("snapshot"), commit: stamp("commit") })
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        self.ask(&json!({ "do": "rollback" }), Effect::Pending).map(|_| ())
    }
}
