//! The transactions of one session, watched or plain.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use isolario_model::Stamp;

use super::COUNTER;
use super::wire::{Reply, Wire, refused};
use crate::database::{Access, ConditionalResult, Connection, Receipt, RegisterValue};
use crate::error::DbError;
use crate::remote::Stage;

/// Sets a key to a value if another one is there (nothing is the empty text). Redis runs a script
/// from beginning to end with nothing in between.
const COMPARE_AND_SET: &str = "local seen = redis.call('GET', KEYS[1]) or ''
if seen ~= ARGV[1] then return seen end
redis.call('SET', KEYS[1], ARGV[2])
return 1";

/// The same, and which one it is of all that took effect.
const COUNTED_COMPARE_AND_SET: &str = "local count = redis.call('INCR', KEYS[2])
local seen = redis.call('GET', KEYS[1]) or ''
if seen ~= ARGV[1] then return {seen, count} end
redis.call('SET', KEYS[1], ARGV[2])
return {1, count}";

fn register(key: u64) -> String {
    format!("isolario:register:{key}")
}

fn list(key: u64) -> String {
    format!("isolario:list:{key}")
}

fn answer(reply: Reply) -> Result<ConditionalResult, DbError> {
    match reply {
        Reply::Integer(_) => Ok(ConditionalResult::Applied),
        Reply::Text(seen) if seen.is_empty() => Ok(ConditionalResult::Failed { seen: Some(None) }),
        seen => Ok(ConditionalResult::Failed { seen: Some(seen.number()?) }),
    }
}

/// What waits for EXEC.
enum Change {
    Write(String),
    Delete,
    Append(Vec<String>),
}

impl Change {
    fn command<'c>(&'c self, key: &'c str) -> Vec<&'c str> {
        match self {
            Change::Write(value) => vec!["SET", key, value],
            Change::Delete => vec!["DEL", key],
            Change::Append(elements) => {
                ["RPUSH", key].into_iter().chain(elements.iter().map(String::as_str)).collect()
            }
        }
    }
}

/// Transactions by WATCH, MULTI and EXEC; or none at all: every command takes effect immediately.
pub(super) struct Session {
    wire: Wire,
    is_plain: bool,
    /// What a lost answer would mean: once something is written without a transaction, part of it may be done.
    stage: Stage,
    single: bool,
    /// Whether to count what takes effect, and the last count.
    counts: bool,
    count: Option<u64>,
    /// How many reads watch their key.
    watched: u32,
    changes: BTreeMap<String, Change>,
}

impl Session {
    pub(super) fn new(wire: Wire, is_plain: bool, counts: bool) -> Session {
        Session {
            wire,
            is_plain,
            stage: Stage::Statement,
            single: false,
            counts: counts && !is_plain,
            count: None,
            watched: 0,
            changes: BTreeMap::new(),
        }
    }

    /// Reads a key, and watches it where other operations may follow.
    fn get(&mut self, key: &str, command: &[&str]) -> Result<Reply, DbError> {
        if self.single && self.counts {
            return self.counted(command);
        }
        if self.single || self.is_plain {
            return self.ask(command);
        }
        self.watched += 1;
        let [watched, reply] = self.wire.all([&["WATCH", key], command], Stage::Statement)?;
        match (watched, reply) {
            (Reply::Error(words), _) | (_, Reply::Error(words)) => Err(refused(words)),
            (_, reply) => Ok(reply),
        }
    }

    /// After a write without a transaction, even a refusal leaves things half done.
    fn ask(&mut self, command: &[&str]) -> Result<Reply, DbError> {
        let half_done = |error: DbError| match self.stage {
            Stage::Commit => DbError { code: error.code, ..DbError::unknown(error.message) },
            _ => error,
        };
        self.wire.one(command, self.stage).map_err(half_done)
    }

    fn change(&mut self, key: String, change: Change) -> Result<(), DbError> {
        if self.is_plain {
            self.stage = Stage::Commit;
            return self.ask(&change.command(&key)).map(drop);
        }
        match (self.changes.entry(key), change) {
            (Entry::Occupied(mut entry), Change::Append(mut new)) => {
                if let Change::Append(elements) = entry.get_mut() {
                    elements.append(&mut new);
                }
            }
            (entry, change) => *entry.or_insert(Change::Delete) = change,
        }
        Ok(())
    }

    /// A single read, with its place among all that took effect.
    fn counted(&mut self, command: &[&str]) -> Result<Reply, DbError> {
        let commands = [&["MULTI"][..], command, &["INCR", COUNTER], &["EXEC"]];
        let [.., done] = self.wire.all(commands, Stage::Statement)?;
        match done {
            Reply::Error(words) => Err(refused(words)),
            done => {
                let [reply, count] = done.array()?;
                self.count = counted(&count);
                Ok(reply)
            }
        }
    }

    fn exec(&mut self) -> Result<(), DbError> {
        let mut commands: Vec<Vec<&str>> = vec![vec!["MULTI"]];
        commands.extend(self.changes.iter().map(|(key, change)| change.command(key)));
        if self.counts {
            commands.push(vec!["INCR", COUNTER]);
        }
        commands.push(vec!["EXEC"]);
        let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
        match self.wire.many(&commands, Stage::Commit)?.pop() {
            Some(Reply::List(done)) => {
                self.count = done.last().and_then(counted).filter(|_| self.counts);
                all_done(done)
            }
            Some(Reply::Nothing) => {
                Err(DbError::retryable("a watched key has changed").with_code("WATCH"))
            }
            Some(Reply::Error(words)) => Err(refused(words)),
            other => Err(DbError::unknown(format!("unexpected answer to EXEC: {other:?}"))),
        }
    }
}

fn counted(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Integer(count) => u64::try_from(*count).ok(),
        _ => None,
    }
}

/// EXEC does not undo what it did before a command that failed.
fn all_done(replies: Vec<Reply>) -> Result<(), DbError> {
    for reply in replies {
        if let Reply::Error(words) = reply {
            return Err(DbError::unknown(format!(
                "EXEC failed after some of its commands were executed: {words}"
            )));
        }
    }
    Ok(())
}

impl Connection for Session {
    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        self.stage = Stage::Statement;
        self.single = access == Access::Single;
        self.count = None;
        self.changes.clear();
        Ok(())
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        let key = register(key);
        match self.changes.get(&key) {
            Some(Change::Write(value)) => Reply::Text(value.clone()).number(),
            Some(_) => Ok(None),
            None => self.get(&key, &["GET", &key])?.number(),
        }
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        self.change(register(key), Change::Write(value.to_string()))
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.change(register(key), Change::Delete)
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        let key = list(key);
        let mut all = self.get(&key, &["LRANGE", &key, "0", "-1"])?.list()?;
        if let Some(Change::Append(own)) = self.changes.get(&key) {
            all.extend(own.iter().cloned().map(Reply::Text));
        }
        for element in all {
            elements.extend(element.number()?);
        }
        Ok(())
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        self.change(list(key), Change::Append(vec![element.to_string()]))
    }

    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        if !self.single && !self.is_plain {
            return Err(DbError::unsupported("conditional writes among other operations"));
        }
        let expected = expected.map(|value| value.to_string()).unwrap_or_default();
        let (key, new) = (register(key), new.to_string());
        if !self.counts {
            let script = ["EVAL", COMPARE_AND_SET, "1", &key, &expected, &new];
            return answer(self.wire.one(&script, Stage::Commit)?);
        }
        let script = ["EVAL", COUNTED_COMPARE_AND_SET, "2", &key, COUNTER, &expected, &new];
        let [seen, count] = self.wire.one(&script, Stage::Commit)?.array()?;
        self.count = counted(&count);
        answer(seen)
    }

    /// Also after reads alone: what they saw held at one moment if nothing has changed since. One
    /// read has its own moment, which is only looked at where moments are counted.
    fn commit(&mut self) -> Result<Receipt, DbError> {
        let is_one_read = self.changes.is_empty() && self.watched <= 1;
        if is_one_read && (self.single || !self.counts) {
            self.rollback()?;
        } else {
            self.watched = 0;
            self.exec()?;
        }
        let stamp = |physical| Receipt::at(Stamp { physical, logical: 0 });
        Ok(self.count.take().map_or_else(Receipt::default, stamp))
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        if std::mem::take(&mut self.watched) > 0 {
            self.wire.one(&["UNWATCH"], Stage::Statement)?;
        }
        Ok(())
    }
}
