//! Following a history says at every moment what a check of everything so far says, whatever was let go.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{Follower, Look, Options, Unfit, check};
use isolario_model::{
    Batch, History, Level, LevelResult, Op, OpInput, Outcome, TxnEnd, TxnId, TxnSink, TxnStart,
    ValueRef, VerdictKind,
};
use isolario_oracle::random::Case;
use isolario_oracle::{Draft, volume};
use isolario_sim::{Config, Kind, Plant, Workload, generate, templates};

/// What a check of the whole history says.
fn whole(history: &History, level: Level, options: &Options) -> LevelResult {
    check(history, &[level], options).remove(0)
}

/// Looks at what is new, and compares with a check of everything so far. True as long as there is more to
/// follow.
fn look(follower: &mut Follower, so_far: &History, options: &Options) -> bool {
    let expected = whole(so_far, follower.level(), options);
    let look = match follower.look().unwrap() {
        Look::Doubtful => follower.reload(so_far).unwrap(),
        look => Ok(look),
    };
    let level = follower.level();
    match look {
        Ok(Look::Holds { waiting: 0 }) => {
            assert_eq!(expected.verdict.kind(), VerdictKind::Satisfied, "{level}: {expected:?}");
            true
        }
        // Of those that wait nothing is said: what they read may be on its way, or too old to be kept.
        Ok(Look::Holds { .. }) => true,
        Ok(look) => panic!("{level}: {look:?} after the whole was looked at"),
        Err(result) => {
            assert_eq!(result.verdict.kind(), expected.verdict.kind(), "{level}: {result:?}");
            false
        }
    }
}

/// Follows a small history, some transactions at a time; says how often everything was looked at, if it
/// can be followed.
fn follow_draft(draft: &Draft, level: Level, options: &Options, tail: usize) -> Option<u32> {
    let mut follower = Follower::new(level, options.clone(), tail).unwrap();
    let part = |txns: &[_]| Draft { txns: txns.to_vec(), ..draft.clone() }.history().unwrap();
    follower.meta(part(&[]).meta()).unwrap();
    for (at, chunk) in (0..).zip(draft.txns.chunks(tail)) {
        let new = part(chunk);
        new.txns().for_each(|txn| new.replay_txn(txn, &mut follower).unwrap());
        follower.unfit().map_or(Some(()), |_| None)?;
        let so_far = part(&draft.txns[..at * tail + chunk.len()]);
        if !look(&mut follower, &so_far, options) {
            break;
        }
    }
    Some(follower.reloads())
}

#[test]
fn small_histories_are_followed_as_they_are_checked() {
    let (mut followed, mut reloaded) = (0, 0);
    for case in Case::first(volume().min(400)) {
        let drafts = [case.draft(), case.read_modify_write_draft(), case.ambiguous_draft()];
        for (draft, level) in drafts.iter().flat_map(|draft| {
            let level = |at: u64| Follower::levels()[(case.seed + at) as usize % 9];
            [(draft, level(0)), (draft, level(3)), (draft, level(7))]
        }) {
            let options = Options::default().with_session_order(case.seed % 5 != 0);
            let tail = 1 + (case.seed % 3) as usize;
            if let Some(reloads) = follow_draft(draft, level, &options, tail) {
                followed += 1;
                reloaded += usize::from(reloads > 0);
            }
        }
    }
    assert!(followed > 200 && reloaded > 20 && reloaded < followed, "{reloaded} of {followed}");
}

/// A history, and its transactions in the order in which they were recorded.
struct Recorded {
    history: History,
    order: Vec<TxnId>,
}

impl Recorded {
    fn new(config: &Config) -> Recorded {
        let mut batch = Batch::new();
        generate(config, &mut batch).unwrap();
        let history = batch.build().unwrap();
        let mut order: Vec<TxnId> = history.txns().collect();
        order.sort_by_key(|txn| history.finish(*txn).or(history.start(*txn)));
        Recorded { history, order }
    }

    fn part(&self, end: usize) -> History {
        let mut batch = Batch::new();
        batch.meta(self.history.meta()).unwrap();
        for (line, txn) in (1..).zip(&self.order[..end]) {
            let session = self.history.session_name(self.history.session_of(*txn));
            batch.begin(&TxnStart { session, id: None, line: Some(line) }).unwrap();
            for op in self.history.txn_ops(*txn) {
                self.history.with_op_input(op, |op| batch.op(op)).unwrap();
            }
            batch.end(&self.history.txn_end(*txn)).unwrap();
        }
        batch.build().unwrap()
    }
}

fn config(kind: Kind, txns: u64, seed: u64) -> Config {
    let workload = Workload { kind, ops: 4, keys: 20, ..Workload::default() };
    let level = Level::StrictSerializable;
    Config { level, workload, txns, sessions: 6, seed, ..Config::default() }
}

#[test]
fn planted_anomalies_are_found_when_they_are_there() {
    let (mut found, mut kept) = (0, 0);
    for (seed, template) in (0..).zip(templates()) {
        for kind in [Kind::Mini, Kind::General] {
            let config = Config {
                anomalies: vec![Plant { kind: template.kind, at: 0.6 }],
                abort_ratio: 0.05,
                unknown_ratio: 0.02,
                ..config(kind, 240, seed)
            };
            let recorded = Recorded::new(&config);
            for level in Follower::levels() {
                let options = Options::default();
                let mut follower = Follower::new(*level, options.clone(), 30).unwrap();
                follower.meta(recorded.history.meta()).unwrap();
                let mut done = 0;
                for chunk in recorded.order.chunks(40) {
                    for txn in chunk {
                        recorded.history.replay_txn(*txn, &mut follower).unwrap();
                    }
                    if follower.unfit().is_some() {
                        break;
                    }
                    done += chunk.len();
                    if !look(&mut follower, &recorded.part(done), &options) {
                        found += 1;
                        break;
                    }
                    kept = kept.max(follower.kept());
                }
            }
        }
    }
    assert!(found > 50, "{found}");
    assert!(kept < 240, "{kept}");
}

#[test]
fn what_is_kept_does_not_grow_with_the_history() {
    for level in Follower::levels() {
        let recorded = Recorded::new(&config(Kind::Mini, 8000, 5));
        let mut follower = Follower::new(*level, Options::default(), 100).unwrap();
        follower.meta(recorded.history.meta()).unwrap();
        let mut most = 0;
        for chunk in recorded.order.chunks(200) {
            for txn in chunk {
                recorded.history.replay_txn(*txn, &mut follower).unwrap();
            }
            most = most.max(follower.kept());
            assert!(matches!(follower.look().unwrap(), Look::Holds { .. }), "{level}");
        }
        assert!(most < 600, "{level}: {most}");
        assert_eq!((follower.arrived(), follower.reloads()), (8000, 0), "{level}");
    }
}

#[test]
fn a_writer_may_be_recorded_after_its_reader() {
    let mut follower = Follower::new(Level::Serializable, Options::default(), 2).unwrap();
    let mut add = |session: &str, op: OpInput<'_>| {
        follower.begin(&TxnStart { session: session.into(), id: None, line: None }).unwrap();
        follower.op(&op).unwrap();
        follower.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        follower.look().unwrap()
    };
    let (x, one) = (ValueRef::from("x"), ValueRef::Int(1));
    let read = || Op::Read { key: x, value: Some(one) };
    assert_eq!(add("a", read()), Look::Holds { waiting: 1 });
    assert_eq!(add("a", read()), Look::Holds { waiting: 2 });
    assert_eq!(add("b", Op::Write { key: x, value: one }), Look::Holds { waiting: 0 });
    // What never comes is doubted in the end.
    let nobody = || Op::Read { key: x, value: Some(ValueRef::Int(7)) };
    assert_eq!(add("c", nobody()), Look::Holds { waiting: 1 });
    assert_eq!(add("a", read()), Look::Holds { waiting: 1 });
    assert_eq!(add("a", read()), Look::Holds { waiting: 1 });
    assert_eq!(add("a", read()), Look::Doubtful);
}

#[test]
fn what_cannot_be_followed_is_said() {
    assert!(Follower::new(Level::Linearizable, Options::default(), 1).is_none());
    let unfit = |text: &str| {
        let history = isolario_oracle::history(text);
        let mut follower = Follower::new(Level::Causal, Options::default(), 1).unwrap();
        history.replay(&mut follower).unwrap();
        follower.unfit().cloned()
    };
    assert_eq!(unfit("a: append x 1"), Some(Unfit::Operation));
    assert_eq!(unfit("a: w x nil"), Some(Unfit::WritesInitial));
    assert_eq!(unfit("initial unwritten\n a: w x 1"), Some(Unfit::Initial));
    assert_eq!(unfit("a: w x 1, r x 1"), None);
}
