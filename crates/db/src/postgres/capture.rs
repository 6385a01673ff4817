//! Capture by logical decoding: a temporary replication slot, read over the ordinary connection.
//!
//! The slot lives as long as the connection that made it, so that nothing is left of it, however the
//! run ends. The publication says which table the log is decoded for; what an earlier run left of it is
//! replaced.

use std::time::{Duration, Instant};

use isolario_model::Level;

use super::pgoutput::Decoder;
use super::{Line, Postgres, READ_COMMITTED, REPEATABLE_READ};

use crate::certificate::{Capture, CommitLog, LoggedCommit, SnapshotNaming};
use crate::error::DbError;
use crate::remote::{OURS, Stage};
use crate::table::TABLE;

const PUBLICATION: &str = "isolario_capture";

/// How many changes are fetched at a time.
const AT_ONCE: i32 = 20_000;

/// How long transactions of clients that are gone may go on.
const ENDING: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// When the server was started: another answer means that it was restarted.
const STARTED: &str = "SELECT pg_postmaster_start_time()::text";

pub(super) struct Slot {
    line: Line,
    name: String,
    postgres: Postgres,
    started: String,
}

/// Begins a capture, or says which setting is in the way.
pub(super) fn start(postgres: &Postgres) -> Result<Box<dyn Capture>, DbError> {
    let line = postgres.server.line()?;
    if line.is_standby() {
        return Err(DbError::fatal(
            "the order of versions cannot be read from a standby: give only the primary with --db",
        ));
    }
    line.require(10, "the order of versions is read from the log by `pgoutput`, which")?;
    let level: String = line.query("SELECT current_setting('wal_level')")?;
    if level != "logical" {
        return Err(DbError::fatal(format!(
            "wal_level is {level}: set wal_level = logical and restart the server"
        )));
    }
    let may = "SELECT rolsuper OR rolreplication FROM pg_roles WHERE rolname = current_user";
    if !line.query::<bool>(may)? {
        return Err(DbError::fatal(
            "the user has no right to read the log: ALTER ROLE … REPLICATION, or name another user",
        ));
    }
    let most: i64 = line.query("SELECT current_setting('max_replication_slots')::BIGINT")?;
    let taken: Vec<String> =
        line.query("SELECT coalesce(array_agg(slot_name::text), '{}') FROM pg_replication_slots")?;
    if taken.len() as i64 >= most {
        return Err(DbError::fatal(
            "all replication slots are in use: raise max_replication_slots, or drop one of them",
        ));
    }
    publish(&line, &postgres.server.site.place)?;
    let process: i32 = line.query("SELECT pg_backend_pid()")?;
    let (started, postgres) = (line.query(STARTED)?, postgres.clone());
    let slot = Slot { line, name: free_name(process, &taken), postgres, started };
    let make = format!(
        "SELECT lsn::text FROM pg_create_logical_replication_slot('{}', 'pgoutput', true)",
        slot.name
    );
    if let Err(error) = slot.line.query::<String>(&make) {
        unpublish(&slot.line);
        return Err(error);
    }
    Ok(Box::new(slot))
}

/// A name that no slot has: those that are there are somebody else's, and are left alone.
fn free_name(process: i32, taken: &[String]) -> String {
    let names = (0..).map(|number| match number {
        0 => format!("isolario_{process}"),
        number => format!("isolario_{process}_{number}"),
    });
    names.into_iter().find(|name| !taken.contains(name)).unwrap_or_default()
}

/// Removes the publication that a run left which was killed. Who may not look or not drop it has not
/// made it.
pub(super) fn clear(line: &Line) {
    let is_ours = format!(
        "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = '{PUBLICATION}' \
         AND obj_description(oid, 'pg_publication') = '{OURS}')"
    );
    if line.query::<bool>(&is_ours).unwrap_or(false) {
        unpublish(line);
    }
}

/// Whether it works or not: the next run replaces what is left.
fn unpublish(line: &Line) {
    let _ = line.batch(Stage::Connect, &format!("DROP PUBLICATION IF EXISTS {PUBLICATION}"));
}

/// Has the log decoded for our table. A deletion comes with the row's primary key, which is enough: to
/// log whole rows as they were would cost every update.
fn publish(line: &Line, place: &str) -> Result<(), DbError> {
    let find = format!(
        "SELECT coalesce((SELECT coalesce(obj_description(oid, 'pg_publication'), '') \
         FROM pg_publication WHERE pubname = '{PUBLICATION}'), '{OURS}')"
    );
    if line.query::<String>(&find)? != OURS {
        return Err(crate::site::not_ours(&format!("a publication {PUBLICATION}"), place));
    }
    line.batch(
        Stage::Connect,
        &format!(
            "DROP PUBLICATION IF EXISTS {PUBLICATION}; \
             CREATE PUBLICATION {PUBLICATION} FOR TABLE {TABLE}; \
             COMMENT ON PUBLICATION {PUBLICATION} IS '{OURS}'"
        ),
    )
}

impl Slot {
    /// It would go with the connection; whoever looks now would still see it.
    fn drop_slot(&self) {
        let drop = format!("SELECT pg_drop_replication_slot('{}')", self.name);
        let _ = self.line.batch(Stage::Connect, &drop);
    }

    fn read(&self) -> Result<CommitLog, DbError> {
        self.wait_for_the_last()?;
        // Whatever committed without waiting for the disk is there when this is.
        self.line.batch(
            Stage::Connect,
            "SET synchronous_commit = on; SELECT pg_logical_emit_message(true, 'isolario', 'end')",
        )?;
        let last: String =
            self.line.query("SELECT txid_snapshot_xmax(txid_current_snapshot())::text")?;
        let last: u64 = last.parse().unwrap_or(u64::MAX);
        let mut decoder = Decoder::default();
        loop {
            let statement = format!(
                "SELECT data FROM pg_logical_slot_get_binary_changes('{}', NULL, {AT_ONCE}, \
                 'proto_version', '1', 'publication_names', '{PUBLICATION}')",
                self.name
            );
            let rows = self.line.ask(Stage::Connect, self.line.client.query(&statement, &[]))?;
            for row in &rows {
                decoder.take(row.get(0))?;
            }
            if rows.is_empty() {
                break;
            }
        }
        let commits = decoder
            .commits
            .into_iter()
            .map(|commit| LoggedCommit { number: whole_number(commit.number, last), ..commit });
        Ok(CommitLog {
            commits: commits.collect(),
            snapshots: SnapshotNaming::InProgress,
            // At read committed they look at the newest version of a row once more.
            writes_see_snapshots: self.postgres.isolation() != READ_COMMITTED,
            // Serializable transactions take effect in some order, which need not be this one. And at
            // repeatable read, an insert in place of a row that was deleted meanwhile is let through.
            promised: (self.postgres.isolation() == REPEATABLE_READ).then_some(Level::Prefix),
        })
    }

    /// Waits for transactions whose clients are gone: they may still commit.
    fn wait_for_the_last(&self) -> Result<(), DbError> {
        let deadline = Instant::now() + ENDING;
        let running = "SELECT count(*) FROM pg_stat_activity \
             WHERE application_name = 'isolario' AND datname = current_database() \
             AND pid <> pg_backend_pid() AND state <> 'idle'";
        while self.line.query::<i64>(running)? > 0 {
            if Instant::now() > deadline {
                return Err(DbError::fatal(
                    "transactions of the run are still open, so the log is incomplete",
                ));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Capture for Slot {
    fn stop(self: Box<Self>) -> Result<CommitLog, DbError> {
        let log = self.read();
        match log {
            Err(error) if error.disconnected => Err(self.lost(&error)),
            log => {
                self.drop_slot();
                unpublish(&self.line);
                log
            }
        }
    }
}

impl Slot {
    /// Why the connection is lost that held the slot, and with it the log. A server that trims its log
    /// ends the connections whose slots it keeps it for.
    fn lost(&self, error: &DbError) -> DbError {
        let line = self.postgres.server.line();
        line.iter().for_each(unpublish);
        let started = line.and_then(|line| line.query::<String>(STARTED));
        let why = match started {
            Ok(started) if started == self.started => {
                "the server ended the connection that held the replication slot: it trimmed the log, \
                 if max_slot_wal_keep_size is set (raise it)"
            }
            Ok(_) => "the server was restarted, which dropped the replication slot",
            Err(_) => "the server cannot be reached, so the replication slot is lost",
        };
        DbError::fatal(format!("{why}: {}", error.message))
    }
}

/// The log has the lower half of a transaction's number: it is the last such number that there was.
fn whole_number(lower: u64, last: u64) -> u64 {
    const HALF: u64 = 1 << 32;
    let number = (last & !(HALF - 1)) | lower;
    if number > last { number.wrapping_sub(HALF) } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_transactions_are_made_whole() {
        let epoch = 3 << 32;
        assert_eq!(whole_number(17, 100), 17);
        assert_eq!(whole_number(17, epoch + 100), epoch + 17);
        assert_eq!(whole_number(0xffff_fff0, epoch + 100), epoch - 16);
    }

    #[test]
    fn a_slot_gets_a_name_that_is_free() {
        let taken =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(free_name(7, &taken(&["isolario_8"])), "isolario_7");
        assert_eq!(free_name(7, &taken(&["isolario_7", "isolario_7_1"])), "isolario_7_2");
    }
}
