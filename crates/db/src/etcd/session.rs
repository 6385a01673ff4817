//! The transactions of one session.

use std::collections::BTreeMap;

use isolario_model::Stamp;
use serde_json::{Value, json};

use super::gateway::{Done, Entry, Gateway, text};
use crate::database::{Access, Conditional, Connection, Held, Receipt};
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
}

impl Session {
    pub(super) fn new(gateway: Gateway, stale: bool) -> Session {
        let (reads, writes) = (BTreeMap::new(), BTreeMap::new());
        Session { gateway, stale, single: false, reads, writes }
    }

    /// Reads a key, or what this transaction is going to write to it.
    fn get(&mut self, key: String) -> Result<Option<String>, DbError> {
        if let Some(own) = self.writes.get(&key) {
            return Ok(own.clone());
        }
        let found = self.gateway.read(&key, self.stale, Stage::Statement)?;
        let (value, revision) = match found {
            Some(Entry { value, mod_revision }) => (Some(value), mod_revision),
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
    ) -> Result<Done, DbError> {
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
    value.parse().map_err(|_| DbError::fatal(format!("there is a value {value:?} nobody wrote")))
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
        Ok(())
    }

    fn read(&mut self, key: u64) -> Result<Held, DbError> {
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
        expected: Held,
        new: i64,
    ) -> Result<Conditional, DbError> {
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
        let mut done = self.step(&[compare], &[put(&key, &new.to_string())], &[otherwise])?;
        if done.succeeded {
            return Ok(Conditional::Applied);
        }
        let found = done.responses.pop().and_then(|mut answer| answer.response_range.kvs.pop());
        let seen = found.map(|entry| number(&entry.value)).transpose()?;
        Ok(Conditional::Failed { seen: Some(seen) })
    }

    /// A transaction that only read is compared too: what it saw held at one moment. A single key
    /// needs no comparison, and whoever asks for stale reads does not care.
    fn commit(&mut self) -> Result<Receipt, DbError> {
        if self.writes.is_empty() && (self.stale || self.reads.len() <= 1) {
            return Ok(Receipt::default());
        }
        let compare: Vec<_> = self.reads.iter().map(is_unchanged).collect();
        let changes: Vec<_> = self.writes.iter().map(change).collect();
        let done = self.step(&compare, &changes, &[])?;
        match (done.succeeded, done.header.revision.parse()) {
            (false, _) => Err(changed("a key that was read has changed since".to_owned())),
            // A step that changes something has a revision of its own.
            (true, Ok(physical)) if !changes.is_empty() => {
                Ok(Receipt::at(Stamp { physical, logical: 0 }))
            }
            (true, _) => Ok(Receipt::default()),
        }
    }

    /// Nothing has been sent yet.
    fn rollback(&mut self) -> Result<(), DbError> {
        Ok(())
    }
}
