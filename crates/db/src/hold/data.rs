//! The mark among the data of a run, by ordinary operations.

use std::time::Instant;

use isolario_workload::Kind;

use super::mark::Id;
use crate::database::{Access, Connection, Database, Layout};
use crate::error::DbError;

/// The key of the mark where keys need no preparation: later than any that a workload comes to.
const LAST: u64 = i32::MAX as u64;
/// Marks are numbers from here up to twice as much, which no client writes and every JSON parser reads exactly.
const LEAST: i64 = 1 << 52;

/// The mark among the data.
pub(super) struct DataMark {
    own: i64,
    key: u64,
    kind: Kind,
    written: Instant,
    /// The connection that reads it, unless it failed.
    connection: Option<Box<dyn Connection>>,
}

impl DataMark {
    /// Writes the mark of a run; nothing where the workload has neither registers nor lists, or the database
    /// refuses it.
    pub(super) fn write(database: &dyn Database, room: &Layout, id: Id) -> Option<DataMark> {
        let key = match room.kind {
            Kind::Append => LAST,
            Kind::Mini | Kind::General if database.traits().new_keys => LAST,
            Kind::Mini | Kind::General | Kind::Lwt => u64::from(room.keys) - 1,
            _ => return None,
        };
        let own = LEAST | (id.0 >> 12) as i64;
        let connection = Some(database.connect().ok()?);
        let mut mark = DataMark { own, key, kind: room.kind, written: Instant::now(), connection };
        mark.put().ok()?;
        Some(mark)
    }

    /// When it was written.
    pub(super) fn written(&self) -> Instant {
        self.written
    }

    /// Looks for the mark of another run. If there is one, puts ours there again, so that the other run
    /// notices as well.
    pub(super) fn dispute(&mut self, database: &dyn Database) -> Option<String> {
        if self.connection.is_none() {
            self.connection = database.connect().ok();
        }
        let found = self.get();
        if found.is_err() {
            self.connection = None;
        }
        let strange = found.ok()?.filter(|found| *found >= LEAST && *found != self.own)?;
        let _ = self.put();
        Some(format!("its mark is {strange:x}"))
    }

    fn get(&mut self) -> Result<Option<i64>, DbError> {
        let (key, kind) = (self.key, self.kind);
        self.transaction(Access::Read, |connection| match kind {
            Kind::Append => {
                let mut elements = Vec::new();
                connection.read_list(key, &mut elements)?;
                Ok(elements.last().copied())
            }
            _ => connection.read(key),
        })
    }

    fn put(&mut self) -> Result<(), DbError> {
        let (key, kind, own) = (self.key, self.kind, self.own);
        if kind == Kind::Lwt {
            let seen = self.get()?;
            return self.transaction(Access::Single, |connection| {
                let put = match seen {
                    None => connection.insert_if_absent(key, own),
                    seen => connection.compare_and_set(key, seen, own),
                };
                put.map(|_| ())
            });
        }
        self.transaction(Access::Write, |connection| match kind {
            Kind::Append => connection.append(key, own),
            _ => connection.write(key, own),
        })
    }

    fn transaction<T>(
        &mut self,
        access: Access,
        work: impl FnOnce(&mut dyn Connection) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let gone = || DbError::retryable("not connected");
        let connection = self.connection.as_mut().ok_or_else(gone)?.as_mut();
        let done = connection.begin(access).and_then(|()| work(connection)).and_then(|done| {
            connection.commit()?;
            Ok(done)
        });
        if done.is_err() && connection.rollback().is_err() {
            self.connection = None;
        }
        done
    }
}
