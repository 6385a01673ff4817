//! Transactions of several sessions, statement by statement in an order that follows from the seed. What
//! would have to wait is refused at once, so one thread can do it.

use std::time::Duration;

use isolario_sql::{Aux, Bounds, Instrument, Planner, Product, Round, Schema};
use isolario_workload::Rng;
use rusqlite::Connection;

use super::client::{Next, Running, Shared, make};
use super::{Counts, full_read, mark_final, style};

const SESSIONS: u32 = 3;
const TXNS: u32 = 40;

/// Rounds at which readers and a writer go on side by side (with a write-ahead log), or lock each other out.
fn rounds(seed: u64, count: u64, looks: bool) -> Counts {
    let (style, product) = (style(looks), Product::SQLITE);
    let directory = tempfile::tempdir().unwrap();
    let mut counts = Counts::default();
    for round in 0..count {
        let schema = Schema::random(seed, round, &Bounds::default());
        let aux = Aux::avoiding(&schema);
        let planner =
            Planner { schema: &schema, product: &product, style: &style, models: &[], seed, round };
        let instrument = Instrument { product: &product, schema: &schema, aux: &aux };
        let shared = Shared::new(instrument, looks);
        let journal = if round % 4 == 3 { "delete" } else { "wal" };
        let path = directory.path().join(format!("{round}.db"));
        let connections: Vec<Connection> = (0..SESSIONS)
            .map(|_| {
                let connection = Connection::open(&path).unwrap();
                connection.busy_timeout(Duration::ZERO).unwrap();
                connection.pragma_update(None, "journal_mode", journal).unwrap();
                connection.pragma_update(None, "synchronous", "off").unwrap();
                connection.pragma_update(None, "foreign_keys", "on").unwrap();
                connection
            })
            .collect();
        make(&connections[0], &schema, Some(&aux));
        let first = shared.snapshot(&connections[0]).unwrap();
        let mut record = Round { first, ..Round::default() };
        let mut rng = Rng::derive(seed, &[round, 9]);
        let mut running: Vec<Option<Running>> = (0..SESSIONS).map(|_| None).collect();
        let mut begun = 0;
        while begun < TXNS || running.iter().any(Option::is_some) {
            let session = rng.below(u64::from(SESSIONS)) as u32;
            let connection = &connections[session as usize];
            let place = &mut running[session as usize];
            match place.take() {
                Some(current) => match current.step(&shared, connection) {
                    Next::Over(txn) => record.transactions.push(txn),
                    Next::GoesOn(current) => *place = Some(current),
                },
                None if begun < TXNS => {
                    begun += 1;
                    let planned = planner.transaction(u64::from(session), u64::from(begun));
                    *place = Some(Running::begin(&shared, connection, &planned, begun, session));
                }
                None => {}
            }
        }
        for session in 0..SESSIONS {
            let (connection, id) = (&connections[session as usize], TXNS + 1 + session);
            let last = Running::begin(&shared, connection, &full_read(&schema), id, session);
            let mut last = last.finish(&shared, connection);
            mark_final(&mut last, &schema);
            record.transactions.push(last);
        }
        record.transactions.sort_by_key(|txn| txn.id);
        counts.check(&format!("seed {seed}, round {round}"), &record, &schema, &instrument);
    }
    counts
}

#[test]
fn interleaved_transactions_accuse_nobody() {
    let counts = rounds(21, 40, false);
    assert!(counts.overlapping > 5 * counts.rounds, "{counts:?}");
    assert!(counts.committed > 10 * counts.rounds, "{counts:?}");
    assert!(counts.aborted > counts.rounds, "{counts:?}");
}

#[test]
fn predicates_of_interleaved_transactions_accuse_nobody() {
    let counts = rounds(22, 100, true);
    assert!(counts.overlapping > 5 * counts.rounds, "{counts:?}");
    assert!(counts.certified * 10 > counts.rounds * 9, "{counts:?}");
    assert!(counts.sets > 5 * counts.certified, "{counts:?}");
    assert!(counts.before_own_insert > 5, "{counts:?}");
    assert!(counts.after_own_delete > 50, "{counts:?}");
}
