//! The transactions of one session, watched and plain.

use std::collections::BTreeMap;

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

fn compare_and_set(
    wire: &mut Wire,
    key: u64,
    expected: RegisterValue,
    new: i64,
) -> Result<ConditionalResult, DbError> {
    let expected = expected.map(|value| value.to_string()).unwrap_or_default();
    let (key, new) = (register(key), new.to_string());
    answer(wire.one(&["EVAL", COMPARE_AND_SET, "1", &key, &expected, &new], Stage::Commit)?)
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

/// Transactions by WATCH, MULTI and EXEC.
pub(super) struct Watched {
    wire: Wire,
    single: bool,
    /// Whether to count what takes effect, and the last count.
    counts: bool,
    count: Option<u64>,
    /// How many reads watch their key.
    watched: u32,
    changes: BTreeMap<String, Change>,
}

impl Watched {
    pub(super) fn new(wire: Wire, counts: bool) -> Watched {
        let changes = BTreeMap::new();
        Watched { wire, single: false, counts, count: None, watched: 0, changes }
    }

    /// Watches a key and reads it.
    fn watch(&mut self, key: &str, command: &[&str]) -> Result<Reply, DbError> {
        if self.single && self.counts {
            return self.counted(command);
        }
        if self.single {
            return self.wire.one(command, Stage::Statement);
        }
        self.watched += 1;
        let [watched, reply] = self.wire.all([&["WATCH", key], command], Stage::Statement)?;
        match (watched, reply) {
            (Reply::Error(words), _) | (_, Reply::Error(words)) => Err(refused(words)),
            (_, reply) => Ok(reply),
        }
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
        for (key, change) in &self.changes {
            commands.push(match change {
                Change::Write(value) => vec!["SET", key, value],
                Change::Delete => vec!["DEL", key],
                Change::Append(elements) => {
                    let words = ["RPUSH", key].into_iter();
                    words.chain(elements.iter().map(String::as_str)).collect()
                }
            });
        }
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

impl Connection for Watched {
    fn begin(&mut self, access: Access) -> Result<(), DbError> {
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
            None => self.watch(&key, &["GET", &key])?.number(),
        }
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        self.changes.insert(register(key), Change::Write(value.to_string()));
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.changes.insert(register(key), Change::Delete);
        Ok(())
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        let key = list(key);
        let reply = self.watch(&key, &["LRANGE", &key, "0", "-1"])?;
        let mut all = reply.list()?;
        if let Some(Change::Append(own)) = self.changes.get(&key) {
            all.extend(own.iter().cloned().map(Reply::Text));
        }
        for element in all {
            elements.extend(element.number()?);
        }
        Ok(())
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        let change = self.changes.entry(list(key)).or_insert_with(|| Change::Append(Vec::new()));
        if let Change::Append(elements) = change {
            elements.push(element.to_string());
        }
        Ok(())
    }

    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        if !self.single {
            return Err(DbError::unsupported("conditional writes among other operations"));
        }
        if !self.counts {
            return compare_and_set(&mut self.wire, key, expected, new);
        }
        let expected = expected.map(|value| value.to_string()).unwrap_or_default();
        let (key, new) = (register(key), new.to_string());
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

/// No transactions at all: every command takes effect at once.
pub(super) struct Plain {
    wire: Wire,
    /// What a lost answer would mean: once something is written, part of it may be done.
    stage: Stage,
}

impl Plain {
    pub(super) fn new(wire: Wire) -> Plain {
        Plain { wire, stage: Stage::Statement }
    }

    fn change(&mut self, command: &[&str]) -> Result<(), DbError> {
        self.stage = Stage::Commit;
        self.ask(command).map(|_| ())
    }

    /// After a write, even a refusal leaves the transaction half done.
    fn ask(&mut self, command: &[&str]) -> Result<Reply, DbError> {
        let half_done = |error: DbError| match self.stage {
            Stage::Commit => DbError { code: error.code, ..DbError::unknown(error.message) },
            _ => error,
        };
        self.wire.one(command, self.stage).map_err(half_done)
    }
}

impl Connection for Plain {
    fn begin(&mut self, _: Access) -> Result<(), DbError> {
        self.stage = Stage::Statement;
        Ok(())
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        self.ask(&["GET", &register(key)])?.number()
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        self.change(&["SET", &register(key), &value.to_string()])
    }

    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        self.change(&["DEL", &register(key)])
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        for element in self.ask(&["LRANGE", &list(key), "0", "-1"])?.list()? {
            elements.extend(element.number()?);
        }
        Ok(())
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        self.change(&["RPUSH", &list(key), &element.to_string()])
    }

    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        compare_and_set(&mut self.wire, key, expected, new)
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        Ok(Receipt::default())
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        Ok(())
    }
}
