//! The transactions of one session.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Instant;

use isolario_model::Stamp;
use serde_json::{Value, json};

use super::gateway::{Gateway, entry, has_succeeded, revision, text};
use crate::database::{Access, ConditionalResult, Connection, Receipt, RegisterValue};
use crate::error::DbError;
use crate::remote::Stage;

/// The code of a commit that was refused since something had changed.
const CHANGED: &str = "compare";

/// The revision of a key that is not there.
const NEVER: &str = "0";

pub(super) struct Session {
    gateway: Gateway,
    /// Whether reads may be old.
    stale: bool,
    /// Whether the transaction is a single operation.
    single: bool,
    /// The revision of every key that was read.
    reads: BTreeMap<String, String>,
    /// What to write.
    writes: BTreeMap<String, Option<String>>,
    /// The place of the last answer among all that happened.
    place: Option<Stamp>,
}

/// Times that all sessions of this process agree about.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Where something stands that changed nothing: after the change that made the revision. Among others
/// there it stands by the clock, at a moment between its call and its answer.
fn after(answer: &Value) -> Option<Stamp> {
    let logical = EPOCH.elapsed().as_nanos() as u64;
    revision(answer).map(|physical| Stamp { physical, logical: logical.max(1) })
}

/// Where a change stands, which has a revision of its own.
fn at(answer: &Value) -> Option<Stamp> {
    revision(answer).map(|physical| Stamp { physical, logical: 0 })
}

impl Session {
    pub(super) fn new(gateway: Gateway, stale: bool) -> Session {
        let (reads, writes) = (BTreeMap::new(), BTreeMap::new());
        Session { gateway, stale, single: false, reads, writes, place: None }
    }

    /// Reads a key, or what this transaction is going to write to it.
    fn get(&mut self, key: String) -> Result<Option<String>, DbError> {
        if let Some(own) = self.writes.get(&key) {
            return Ok(own.clone());
        }
        let found = self.gateway.read(&key, self.stale, Stage::Statement)?;
        self.place = after(&found);
        let (value, revision) = match entry(&found)? {
            Some((value, revision)) => (Some(value), revision),
            None => (None, NEVER.to_owned()),
        };
        let earlier = self.reads.get(&key).filter(|earlier| **earlier != revision);
        if earlier.is_some() && !self.stale {
            return Err(changed(format!("{key} changed between two reads")));
        }
        // The first revision is the one to compare: a key that changed since stays changed.
        self.reads.entry(key).or_insert(revision);
        Ok(value)
    }

    /// A single step: if all comparisons hold, the changes; otherwise what is there.
    fn step(
        &self,
        compare: &[Value],
        changes: &[Value],
        otherwise: &[Value],
    ) -> Result<Value, DbError> {
        let request = json!({"compare": compare, "success": changes, "failure": otherwise});
        self.gateway.ask("kv/txn", &request, Stage::Commit)
    }
}

fn register(key: u64) -> String {
    format!("isolario/register/{key}")
}

fn list(key: u64) -> String {
    format!("isolario/list/{key}")
}

fn changed(message: String) -> DbError {
    DbError::retryable(message).with_code(CHANGED)
}

fn number(value: &str) -> Result<i64, DbError> {
    value.parse().map_err(|_| {
        DbError::fatal(format!("found the value {value:?}, which no client of this run wrote"))
    })
}

fn is_unchanged((key, revision): (&String, &String)) -> Value {
    json!({"target": "MOD", "result": "EQUAL", "key": text(key), "mod_revision": revision})
}

fn change((key, value): (&String, &Option<String>)) -> Value {
    match value {
        Some(value) => put(key, value),
        None => json!({"request_delete_range": {"key": text(key)}}),
    }
}

fn put(key: &str, value: &str) -> Value {
    json!({"request_put": {"key": text(key), "value": text(value)}})
}

impl Connection for Session {
    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        self.single = access == Access::Single;
        self.reads.clear();
        self.writes.clear();
        self.place = None;
        Ok(())
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        self.get(register(key))?.as_deref().map(number).transpose()
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        self.writes.insert(register(key), Some(value.to_string()));
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.writes.insert(register(key), None);
        Ok(())
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        let found = self.get(list(key))?;
        for element in found.iter().flat_map(|text| text.split(',')) {
            elements.push(number(element)?);
        }
        Ok(())
    }

    /// etcd cannot append: this reads the list and writes a longer one.
    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        let key = list(key);
        let longer = match self.get(key.clone())? {
            Some(elements) => format!("{elements},{element}"),
            None => element.to_string(),
        };
        self.writes.insert(key, Some(longer));
        Ok(())
    }

    /// One step of the server, which tells what was there instead.
    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        if !self.single {
            return Err(DbError::unsupported("conditional writes among other operations"));
        }
        let key = register(key);
        let compare = match expected {
            None => is_unchanged((&key, &NEVER.to_owned())),
            Some(value) => {
                let value = text(&value.to_string());
                json!({"target": "VALUE", "result": "EQUAL", "key": text(&key), "value": value})
            }
        };
        let otherwise = json!({"request_range": {"key": text(&key)}});
        let done = self.step(&[compare], &[put(&key, &new.to_string())], &[otherwise])?;
        if has_succeeded(&done) {
            self.place = at(&done);
            return Ok(ConditionalResult::Applied);
        }
        self.place = after(&done);
        let found = entry(&done["responses"][0]["response_range"])?;
        let seen = found.map(|(value, _)| number(&value)).transpose()?;
        Ok(ConditionalResult::Failed { seen: Some(seen) })
    }

    /// A transaction that only read is compared too: what it saw held at one moment. A single key
    /// needs no comparison, and whoever asks for stale reads does not care.
    fn commit(&mut self) -> Result<Receipt, DbError> {
        let receipt = |place: Option<Stamp>| place.map_or_else(Receipt::default, Receipt::at);
        if self.writes.is_empty() && (self.stale || self.reads.len() <= 1) {
            return Ok(receipt(self.place.filter(|_| !self.stale)));
        }
        let compare: Vec<_> = self.reads.iter().map(is_unchanged).collect();
        let changes: Vec<_> = self.writes.iter().map(change).collect();
        let done = self.step(&compare, &changes, &[])?;
        match (has_succeeded(&done), changes.is_empty()) {
            (false, _) => Err(changed("a key that was read has changed since".to_owned())),
            (true, false) => Ok(receipt(at(&done))),
            (true, true) => Ok(receipt(after(&done))),
        }
    }

    /// Nothing has been sent yet.
    fn rollback(&mut self) -> Result<(), DbError> {
        Ok(())
    }
}
