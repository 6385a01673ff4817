//! Following a history says at every moment what a check of everything so far says, whatever was let go.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{
    CheckOptions, Checkpoint, FollowStatus, Follower, HistoryQuery, Inconclusive, ProvenResult,
    QueryAnswer, Unfollowable, check,
};
use isolario_model::{
    AnomalyKind, Batch, History, Level, LevelResult, Op, OpInput, Outcome, TxnEnd, TxnId, TxnSink,
    TxnStart, ValueRef, VerdictKind,
};
use isolario_oracle::random::Case;
use isolario_oracle::{Draft, volume};
use isolario_sim::{Config, Kind, Plant, Workload, generate, templates};

/// What a check of the whole history says.
fn whole(history: &History, level: Level, options: &CheckOptions) -> LevelResult {
    check(history, &[level], options).remove(0)
}

/// Looks at what is new, and compares with a check of everything so far. True as long as there is more to
/// follow. Where the follower has to begin again, it is told everything.
fn look(follower: &mut Follower, so_far: &History, options: &CheckOptions) -> bool {
    look_or_go_back(follower, so_far, options, &mut |follower| {
        follower.restart(2 * follower.tail());
        so_far.replay(follower).unwrap();
    })
}

/// The same with another way to keep more.
fn look_or_go_back(
    follower: &mut Follower,
    so_far: &History,
    options: &CheckOptions,
    go_back: &mut dyn FnMut(&mut Follower),
) -> bool {
    let expected = whole(so_far, follower.level(), options);
    let level = follower.level();
    match follower.check().unwrap() {
        FollowStatus::Holds { waiting: 0 } => {
            assert_eq!(expected.verdict.kind(), VerdictKind::Satisfied, "{level}: {expected:?}");
            true
        }
        // Of those that wait nothing is said: what they read may be on its way, or too old to be kept.
        FollowStatus::Holds { .. } => true,
        FollowStatus::Inconclusive(doubt)
            if doubt.is_about_everything() && doubt.result().is_some() =>
        {
            let result = doubt.result().unwrap();
            assert_eq!(result.verdict.kind(), expected.verdict.kind(), "{level}: {result:?}");
            false
        }
        FollowStatus::Inconclusive(doubt) => match inquire(&doubt, follower, so_far, options) {
            Some(proven) => {
                let kind = proven.result.verdict.kind();
                assert_eq!(kind, expected.verdict.kind(), "{level}: {proven:?}");
                is_part(&proven.part, so_far);
                false
            }
            None => {
                go_back(follower);
                look_or_go_back(follower, so_far, options, go_back)
            }
        },
        FollowStatus::Unfit(unfit) => panic!("{level}: {unfit:?}"),
    }
}

/// What the few transactions that matter prove, if they do.
fn inquire(
    doubt: &Inconclusive,
    follower: &Follower,
    so_far: &History,
    options: &CheckOptions,
) -> Option<ProvenResult> {
    let mut inquiry = HistoryQuery::new(doubt, follower)?;
    let mut batch = Batch::new();
    so_far.replay(&mut batch).unwrap();
    inquiry.add(vec![batch]).unwrap();
    match inquiry.answer(options).unwrap() {
        QueryAnswer::Proven(proven) => Some(*proven),
        _ => None,
    }
}

/// What is in a part is in the whole, under the same names.
fn is_part(part: &History, whole: &History) {
    for txn in part.txns() {
        let label = part.txn_label(txn);
        let there = whole.txns().find(|other| whole.txn_label(*other) == label).unwrap();
        assert_eq!(part.txn_end(txn), whole.txn_end(there));
        let ops = |history: &History, txn| -> Vec<String> {
            let text = |op| history.with_op_input(op, |op| format!("{op:?}"));
            history.txn_ops(txn).map(text).collect()
        };
        let all = ops(whole, there);
        assert!(ops(part, txn).iter().all(|op| all.contains(op)));
    }
}

/// Follows a small history, some transactions at a time; says how often everything was looked at, if it
/// can be followed.
fn follow_draft(draft: &Draft, level: Level, options: &CheckOptions, tail: usize) -> Option<u32> {
    let mut follower = Follower::new(level, options.clone(), tail).unwrap();
    let part = |txns: &[_]| Draft { txns: txns.to_vec(), ..draft.clone() }.history().unwrap();
    let tell = |txns: &[_], follower: &mut Follower| {
        let new = part(txns);
        new.txns().for_each(|txn| new.replay_txn(txn, follower).unwrap());
    };
    follower.meta(part(&[]).meta()).unwrap();
    let mut places: Vec<Checkpoint> = Vec::new();
    for (at, chunk) in (0..).zip(draft.txns.chunks(tail)) {
        tell(chunk, &mut follower);
        let now = at * tail + chunk.len();
        let so_far = part(&draft.txns[..now]);
        unfit(&so_far).map_or(Some(()), |_| None)?;
        let mut go_back = |follower: &mut Follower| {
            let tail = 2 * follower.tail();
            places.retain(|place| place.arrived() + tail as u64 <= now as u64);
            let Some(place) = places.last().cloned() else {
                follower.restart(tail);
                return so_far.replay(follower).unwrap();
            };
            let from = place.arrived() as usize;
            follower.return_to(place, tail);
            tell(&draft.txns[from..now], follower);
        };
        if !look_or_go_back(&mut follower, &so_far, options, &mut go_back) {
            break;
        }
        places.push(follower.checkpoint().clone());
    }
    Some(follower.restarts())
}

#[test]
fn small_histories_are_followed_as_they_are_checked() {
    let (mut followed, mut restarted) = (0, 0);
    for case in Case::first(volume().min(400)) {
        let drafts = [case.draft(), case.read_modify_write_draft(), case.ambiguous_draft()];
        for (draft, level) in drafts.iter().flat_map(|draft| {
            let level = |at: u64| Follower::levels()[(case.seed + at) as usize % 9];
            [(draft, level(0)), (draft, level(3)), (draft, level(7))]
        }) {
            let options = CheckOptions::default().with_session_order(case.seed % 5 != 0);
            let tail = 1 + (case.seed % 3) as usize;
            if let Some(restarts) = follow_draft(draft, level, &options, tail) {
                followed += 1;
                restarted += usize::from(restarts > 0);
            }
        }
    }
    assert!(followed > 200 && restarted > 5 && restarted < followed, "{restarted} of {followed}");
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
                let options = CheckOptions::default();
                let mut follower = Follower::new(*level, options.clone(), 30).unwrap();
                follower.meta(recorded.history.meta()).unwrap();
                let mut done = 0;
                for chunk in recorded.order.chunks(40) {
                    for txn in chunk {
                        recorded.history.replay_txn(*txn, &mut follower).unwrap();
                    }
                    done += chunk.len();
                    let so_far = recorded.part(done);
                    if unfit(&so_far).is_some() {
                        break;
                    }
                    if !look(&mut follower, &so_far, &options) {
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
        let mut follower = Follower::new(*level, CheckOptions::default(), 100).unwrap();
        follower.meta(recorded.history.meta()).unwrap();
        let mut most = 0;
        for chunk in recorded.order.chunks(200) {
            for txn in chunk {
                recorded.history.replay_txn(*txn, &mut follower).unwrap();
            }
            most = most.max(follower.kept());
            assert!(matches!(follower.check().unwrap(), FollowStatus::Holds { .. }), "{level}");
        }
        assert!(most < 600, "{level}: {most}");
        assert_eq!((follower.arrived(), follower.restarts()), (8000, 0), "{level}");
        let figures = follower.figures();
        assert_eq!((figures.outcomes, figures.sessions, figures.keys), ([8000, 0, 0], 6, 20));
        assert_eq!(figures.operations, recorded.history.op_count() as u64);
    }
}

/// Read committed asks for little, and some orders that show it have the version that everybody reads before
/// another one. Those by which causal holds do not.
#[test]
fn where_writes_follow_no_reads_no_more_is_kept_at_weak_levels() {
    let levels = [Level::AdyaReadCommitted, Level::ReadCommitted, Level::ReadAtomic, Level::Causal];
    for level in levels {
        let recorded = Recorded::new(&config(Kind::General, 8000, 5));
        let mut follower = Follower::new(level, CheckOptions::default(), 200).unwrap();
        follower.meta(recorded.history.meta()).unwrap();
        let mut most = 0;
        for chunk in recorded.order.chunks(200) {
            for txn in chunk {
                recorded.history.replay_txn(*txn, &mut follower).unwrap();
            }
            assert!(matches!(follower.check().unwrap(), FollowStatus::Holds { .. }), "{level}");
            most = most.max(follower.kept());
        }
        assert!(most < 400, "{level}: {most}");
    }
}

#[test]
fn a_writer_may_be_recorded_after_its_reader() {
    let mut follower = Follower::new(Level::Serializable, CheckOptions::default(), 2).unwrap();
    let mut add = |session: &str, op: OpInput<'_>| {
        follower.begin(&TxnStart { session: session.into(), id: None, line: None }).unwrap();
        follower.op(&op).unwrap();
        follower.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        match follower.check().unwrap() {
            FollowStatus::Holds { waiting } => Some(waiting),
            FollowStatus::Inconclusive(doubt) => {
                // Somebody knows that the writer will come.
                follower.resume(*doubt).unwrap();
                None
            }
            FollowStatus::Unfit(unfit) => panic!("{unfit:?}"),
        }
    };
    let (x, one) = (ValueRef::from("x"), ValueRef::Int(1));
    let read = || Op::Read { key: x, value: Some(one) };
    assert_eq!(add("a", read()), Some(1));
    assert_eq!(add("a", read()), Some(2));
    assert_eq!(add("b", Op::Write { key: x, value: one }), Some(0));
    // What never comes is doubted in the end, and again after a while.
    let nobody = || Op::Read { key: x, value: Some(ValueRef::Int(7)) };
    assert_eq!(add("c", nobody()), Some(1));
    assert_eq!(add("a", read()), Some(1));
    assert_eq!(add("a", read()), Some(1));
    assert_eq!(add("a", read()), None);
    assert_eq!(add("a", read()), Some(1));
    assert_eq!(add("a", read()), Some(1));
    assert_eq!(add("a", read()), None);
    assert_eq!(add("d", Op::Write { key: x, value: ValueRef::Int(7) }), Some(0));
}

#[test]
fn a_writer_that_has_not_ended_is_awaited() {
    let mut follower = Follower::new(Level::Serializable, CheckOptions::default(), 1).unwrap();
    let reads = isolario_oracle::history("a: r x 1\n b: w y 1\n c: w y 2");
    reads.replay(&mut follower).unwrap();
    follower.expect_more(false);
    let FollowStatus::Inconclusive(doubt) = follower.check().unwrap() else { panic!("no doubt") };
    let ask = |unended: &str| {
        let mut inquiry = HistoryQuery::new(&doubt, &follower).unwrap();
        let (mut batch, mut open) = (Batch::new(), Batch::new());
        reads.replay(&mut batch).unwrap();
        isolario_oracle::history(unended).replay(&mut open).unwrap();
        inquiry.add(vec![batch]).unwrap();
        inquiry.add_unended(open).unwrap();
        inquiry.answer(&CheckOptions::default()).unwrap()
    };
    assert!(matches!(ask("d unknown: w x 1"), QueryAnswer::Awaited));
    let QueryAnswer::Proven(proven) = ask("d unknown: w x 2") else { panic!("not proven") };
    assert_eq!(proven.result.verdict.anomalies()[0].kind, AnomalyKind::ThinAirRead);
    assert_eq!((proven.part.txn_count(), proven.part.txn_label(TxnId(0))), (1, "#0".to_owned()));
}

#[test]
fn what_cannot_be_followed_is_said() {
    assert!(Follower::new(Level::Linearizable, CheckOptions::default(), 1).is_none());
    let unfit = |text: &str| unfit(&isolario_oracle::history(text));
    assert_eq!(unfit("a: append x 1"), Some(Unfollowable::Operation));
    assert_eq!(unfit("a: w x nil"), Some(Unfollowable::WritesInitial));
    assert_eq!(unfit("initial unwritten\n a: w x 1"), Some(Unfollowable::Initial));
    assert_eq!(unfit("a: w x 1, r x 1"), None);
}

/// Why a history cannot be followed, if so.
fn unfit(history: &History) -> Option<Unfollowable> {
    let mut follower = Follower::new(Level::Causal, CheckOptions::default(), 1).unwrap();
    history.replay(&mut follower).unwrap();
    match follower.check().unwrap() {
        FollowStatus::Unfit(unfit) => Some(unfit),
        _ => None,
    }
}
