//! Capture by a changefeed of CockroachDB, which is asked for the changes since a moment once the clients
//! have gone. Nothing is made for it, so that nothing can be left behind.
//!
//! A changefeed goes on for ever. It is read until it promises that all changes up to the end have come,
//! and ends with its connection. (CockroachDB's documentation, "EXPERIMENTAL CHANGEFEED FOR" and
//! "Changefeed Messages".)

use std::time::Duration;

use futures_util::TryStreamExt;
use isolario_model::{Level, Stamp};
use tokio::time::timeout;
use tokio_postgres::RowStream;
use tokio_postgres::types::ToSql;

use super::changefeed::{Decoder, timestamp};
use super::errors::classify;
use super::{Line, Postgres, SERIALIZABLE};

use crate::certificate::{Capture, CommitLog, SnapshotNaming};
use crate::error::DbError;
use crate::remote::Stage;
use crate::table::TABLE;

/// Without it there are no changefeeds.
const SETTING: &str = "kv.rangefeed.enabled";

/// The clock, as a decimal number. Transactions at read committed have no moment of their own.
const NOW: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE; \
     SELECT cluster_logical_timestamp()::STRING; COMMIT";

/// How long the feed may be silent: it follows some seconds behind.
const SILENCE: Duration = Duration::from_secs(60);

/// A part of the log that has a beginning.
struct Feed {
    postgres: Postgres,
    from: String,
}

/// Begins a capture, or says which setting is in the way.
pub(super) fn start(postgres: &Postgres) -> Result<Box<dyn Capture>, DbError> {
    let line = postgres.server.line()?;
    // Who may not look is told later, if it is off.
    let setting = line.simple(Stage::Connect, &format!("SHOW CLUSTER SETTING {SETTING}"));
    let setting = setting.unwrap_or_default().first_text();
    if matches!(setting.as_deref(), Some("f" | "false" | "off")) {
        return Err(DbError::fatal(format!(
            "{SETTING} is off, and there are no changefeeds: SET CLUSTER SETTING {SETTING} = true"
        )));
    }
    let (from, _) = now(&line)?;
    Ok(Box::new(Feed { postgres: postgres.clone(), from }))
}

fn now(line: &Line) -> Result<(String, Stamp), DbError> {
    let told = line.simple(Stage::Connect, NOW)?.first_text().unwrap_or_default();
    match timestamp(&told) {
        Some(moment) => Ok((told, moment)),
        None => {
            Err(DbError::fatal(format!("the database answered {told:?} instead of a timestamp")))
        }
    }
}

impl Capture for Feed {
    fn stop(self: Box<Self>) -> Result<CommitLog, DbError> {
        let (_, end) = now(&self.postgres.server.line()?)?;
        let is_serializable = self.postgres.isolation() == SERIALIZABLE;
        Ok(CommitLog {
            // Serializable transactions read, and write, as of their commit.
            snapshots: if is_serializable { SnapshotNaming::Commits } else { SnapshotNaming::None },
            writes_see_snapshots: is_serializable,
            promised: is_serializable.then_some(Level::Serializable),
            ..self.read(end)?.log(end)
        })
    }
}

impl Feed {
    /// Reads all changes up to a moment, over a connection of its own.
    fn read(&self, end: Stamp) -> Result<Decoder, DbError> {
        let line = self.postgres.server.line()?;
        line.batch(Stage::Connect, "SET statement_timeout = 0")?;
        let statement = format!(
            "EXPERIMENTAL CHANGEFEED FOR {TABLE} WITH updated, mvcc_timestamp, cursor = '{}', \
             resolved = '1s', min_checkpoint_frequency = '1s'",
            self.from
        );
        let feed = async {
            let none: [&(dyn ToSql + Sync); 0] = [];
            let feed = line.client.query_raw(&statement, none).await.map_err(failed)?;
            read_up_to(feed, end).await
        };
        line.runtime.block_on(feed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "so it fits into map_err")]
fn failed(error: tokio_postgres::Error) -> DbError {
    let error = classify(&error, Stage::Connect);
    DbError::fatal(format!("the changefeed failed: {error}"))
}

async fn read_up_to(feed: RowStream, end: Stamp) -> Result<Decoder, DbError> {
    let mut feed = std::pin::pin!(feed);
    let mut decoder = Decoder::default();
    loop {
        let row = timeout(SILENCE, feed.try_next()).await;
        let row = row.map_err(|_| {
            DbError::fatal(format!("the changefeed has sent nothing for {SILENCE:?}"))
        })?;
        let row = row.map_err(failed)?;
        let row =
            row.ok_or_else(|| DbError::fatal("the changefeed ended before it was complete"))?;
        let bytes = |column| row.try_get::<_, Option<&[u8]>>(column).map_err(failed);
        let (key, value) = (bytes(1)?, bytes(2)?);
        if decoder.take(key, value.unwrap_or_default())? >= Some(end) {
            return Ok(decoder);
        }
    }
}
