//! Capture from TiDB's storage: the versions of every row, from its HTTP API, once the clients have gone.
//!
//! Old versions are removed after a while, but not those that a running transaction may still read
//! (`tidb_gc_max_wait_time` in TiDB's documentation): one is kept open until the versions are read.

use std::sync::atomic::Ordering;

use ureq::Agent;

use super::client::MyClient;
use super::mvcc::versions;
use super::{MySql, REPEATABLE_READ};
use crate::certificate::{Capture, CommitLog, SnapshotNaming};
use crate::error::DbError;
use crate::table::TABLE;

/// Whoever reads the whole table has locks cleared away that committed transactions left on its rows:
/// only then all of their versions are told.
const READ_ALL: &str = "SELECT COUNT(v) FROM isolario_row";

struct Storage {
    mysql: MySql,
    agent: Agent,
    /// Keeps old versions alive.
    reader: MyClient,
}

/// Begins a capture, or says what is in the way.
pub(super) fn start(mysql: &MySql) -> Result<Box<dyn Capture>, DbError> {
    let mut reader = mysql.line()?;
    reader.batch(&["START TRANSACTION WITH CONSISTENT SNAPSHOT", READ_ALL])?;
    let agent = Agent::config_builder()
        .timeout_global(Some(mysql.site.patience))
        // A database is next door, whatever the way to the web is.
        .proxy(None)
        .build()
        .new_agent();
    let storage = Storage { mysql: mysql.clone(), agent, reader };
    storage.ask("status")?;
    Ok(Box::new(storage))
}

impl Storage {
    fn ask(&self, what: &str) -> Result<String, DbError> {
        let (host, port) = (&self.mysql.site.address.host, self.mysql.status_port);
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let answer = self.agent.get(format!("http://{host}:{port}/{what}")).call();
        answer.and_then(|mut answer| answer.body_mut().read_to_string()).map_err(|error| {
            DbError::fatal(format!(
                "the HTTP API of TiDB at {host}:{port} does not answer ({error}): name its port with \
                 ?status_port=NUMBER, and set status.report-status = true"
            ))
        })
    }
}

impl Capture for Storage {
    fn stop(mut self: Box<Self>) -> Result<CommitLog, DbError> {
        self.mysql.line()?.batch(&[READ_ALL])?;
        let database = &self.mysql.site.address.path;
        let mut found = Vec::new();
        for row in 0..i64::from(self.mysql.keys.load(Ordering::Relaxed)) {
            let answer = self.ask(&format!("mvcc/key/{database}/{TABLE}/{row}"))?;
            found.extend(versions(row, &answer)?);
        }
        self.reader.batch(&["ROLLBACK"])?;
        let is_snapshot = self.mysql.site.isolation == REPEATABLE_READ;
        Ok(CommitLog {
            snapshots: if is_snapshot { SnapshotNaming::Starts } else { SnapshotNaming::None },
            // They find the newest rows.
            writes_see_snapshots: false,
            promised: None,
            ..CommitLog::of_versions(found.into_iter())
        })
    }
}
