//! One round: a fresh schema, some sessions, and a look at all tables in the end.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use isolario_db::{DbError, SqlConnection};
use isolario_model::Outcome;
use isolario_sql::{Planned, Planner, RecordedTxn, Round, Schema};

use super::client::{Client, Shared, first_state};
use super::site::Stage;

/// A round that is about to be driven.
pub(super) struct Drive<'r> {
    pub(super) stage: &'r Stage<'r>,
    pub(super) shared: &'r Shared<'r>,
    pub(super) planner: Planner<'r>,
    /// How many transactions are sent, over all sessions.
    pub(super) txns: u32,
}

impl Drive<'_> {
    /// Drives all sessions, each in a thread of its own, until all transactions are sent or it is to stop; then
    /// what has not ended is rolled back. After that, every session reads all tables once: the last writes show
    /// there, and a session has to find its own.
    pub(super) fn round(
        &self,
        connections: Vec<Box<dyn SqlConnection>>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Round, DbError> {
        let shared = self.shared;
        let client = |(session, connection)| Client { shared, session, connection };
        let mut clients: Vec<Client<'_>> = (0..).zip(connections).map(client).collect();
        let first = first_state(&mut clients)?;
        let sent = AtomicU32::new(0);
        let driven: Vec<Result<Vec<RecordedTxn>, DbError>> = thread::scope(|scope| {
            let threads: Vec<_> = clients
                .iter_mut()
                .map(|client| scope.spawn(|| self.session(client, &sent, stop)))
                .collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|driven| driven.unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        let mut round = Round { first, ..Round::default() };
        for txns in driven {
            round.transactions.extend(txns?);
        }
        for client in &mut clients {
            round.transactions.extend(self.last_look(client)?);
        }
        round.transactions.sort_unstable_by_key(|txn| txn.id);
        Ok(round)
    }

    fn session(
        &self,
        client: &mut Client<'_>,
        sent: &AtomicU32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<RecordedTxn>, DbError> {
        let mut txns = Vec::new();
        let mut position = 0;
        while !stop() && sent.fetch_add(1, Ordering::Relaxed) < self.txns {
            let planned = self.planner.transaction(u64::from(client.session), position);
            position += 1;
            let ran = client.transaction(&planned, stop);
            txns.push(ran.txn);
            if ran.is_lost {
                client.connection = self.stage.connect(client.session)?;
            }
        }
        Ok(txns)
    }

    /// A read of all tables. An error of it is tried again, as nobody is in its way.
    fn last_look(&self, client: &mut Client<'_>) -> Result<Vec<RecordedTxn>, DbError> {
        const ATTEMPTS: usize = 3;
        let planned = full_read(self.planner.schema);
        let mut txns = Vec::new();
        for _ in 0..ATTEMPTS {
            let mut ran = client.transaction(&planned, &|| false);
            mark_final(&mut ran.txn, self.planner.schema);
            let is_done = ran.txn.outcome == Outcome::Committed;
            txns.push(ran.txn);
            if is_done {
                break;
            }
            if ran.is_lost {
                client.connection = self.stage.connect(client.session)?;
            }
        }
        Ok(txns)
    }
}

/// A transaction that reads every table.
pub(super) fn full_read(schema: &Schema) -> Planned {
    let statements = schema.tables.iter().map(Schema::full_read).collect();
    Planned { statements, autocommit: false, commits: true }
}

/// Says of a transaction that it read every table when everything else was over.
pub(super) fn mark_final(txn: &mut RecordedTxn, schema: &Schema) {
    txn.is_final = true;
    for (table, statement) in schema.tables.iter().zip(&mut txn.statements) {
        statement.table = Some(table.name.clone());
    }
}
