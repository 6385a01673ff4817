//! Stamps of the database, and times of the clients, as a guess at the order of things.

use isolario_check::CheckOptions;
use isolario_model::{
    Batch, History, Level, Meta, OpInput, OpKind, OpNotes, SinkError, Stamp, TxnEnd, TxnId,
    TxnSink, TxnStart, Verdict, Witness,
};
use isolario_oracle::random::{Case, Rng};
use isolario_oracle::volume;
use isolario_sim::{Config, Kind, Workload, generate};

use crate::support::{LEVELS, answers_at, commits, complaint_at, verify};

/// The same history, with other times and stamps.
fn with_ends(history: &History, end: &mut dyn FnMut(&mut TxnEnd<'_>)) -> History {
    let mut batch = Batch::new();
    history.replay(&mut Ends { batch: &mut batch, end }).unwrap();
    batch.build().unwrap()
}

/// Passes a history on, and changes how transactions end.
struct Ends<'a> {
    batch: &'a mut Batch,
    end: &'a mut dyn FnMut(&mut TxnEnd<'_>),
}

impl TxnSink for Ends<'_> {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.batch.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.batch.begin(start)
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.batch.op_with(op, notes)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        let mut end = *end;
        (self.end)(&mut end);
        self.batch.end(&end)
    }
}

/// Many blind writes of a store that tells its stamps.
fn stamped(level: Level, seed: u64) -> History {
    let workload =
        Workload { kind: Kind::General, keys: 30, ops: 6, read_ratio: 0.4, ..Workload::default() };
    let config =
        Config { level, workload, txns: 400, sessions: 8, stamps: true, seed, ..Config::default() };
    let mut batch = Batch::new();
    generate(&config, &mut batch).unwrap();
    batch.build().unwrap()
}

/// Who wrote something, in the order of the commits.
fn writers(history: &History, witness: &Witness) -> Vec<TxnId> {
    let writes =
        |txn: &TxnId| history.op_range(*txn).any(|op| history.op_kinds()[op] == OpKind::Write);
    commits(witness).into_iter().filter(writes).collect()
}

/// A search for an order of thousands of blind writes that begins elsewhere ends elsewhere.
#[test]
fn right_stamps_are_the_answer_whatever_the_clients_say() {
    for level in [Level::Serializable, Level::SnapshotIsolation, Level::Prefix] {
        for seed in 0..5 {
            let history = stamped(level, seed);
            let absent = with_ends(&history, &mut |end| (end.start, end.finish) = (None, None));
            let misleading = with_ends(&history, &mut |end| {
                (end.start, end.finish) = (end.finish.map(|at| -at), end.start.map(|at| -at));
            });
            for history in [absent, misleading] {
                let result = answers_at(&[level], &history, &CheckOptions::default()).remove(0);
                assert_eq!(verify(&history, &result, &CheckOptions::default()), Ok(()));
                let Verdict::Satisfied(witness) = &result.verdict else { panic!("{level} {seed}") };
                let found = writers(&history, witness);
                assert!(found.is_sorted_by_key(|txn| history.db_commit(*txn)), "{level} {seed}");
            }
        }
    }
}

#[test]
fn without_a_clue_another_order_is_found() {
    let history = stamped(Level::Serializable, 0);
    let bare = with_ends(&history, &mut |end| *end = TxnEnd::new(end.outcome));
    let result = answers_at(&[Level::Serializable], &bare, &CheckOptions::default()).remove(0);
    let Verdict::Satisfied(witness) = &result.verdict else { panic!("{result:?}") };
    assert!(!writers(&bare, witness).is_sorted_by_key(|txn| history.db_commit(*txn)));
}

#[test]
fn stamps_never_change_a_verdict() {
    let weak = [Level::ReadCommitted, Level::ReadAtomic, Level::Causal];
    let levels = [&weak[..], &LEVELS].concat();
    for case in Case::first(volume() / 4) {
        let mut rng = Rng::new(case.seed ^ 0x7374_616d);
        let missing = [0, 20, 80][rng.below(3)];
        let mut stamp = || {
            let (present, physical) = (!rng.percent(missing), rng.below(6) as u64);
            present.then_some(Stamp { physical, logical: rng.below(2) as u64 })
        };
        let history = with_ends(&case.history().unwrap(), &mut |end| {
            (end.db_start, end.db_commit) = (stamp(), stamp());
        });
        if let Some(complaint) = complaint_at(&levels, &history, &CheckOptions::default()) {
            panic!("{case:?}\n{history:?}\n{complaint}");
        }
    }
}
