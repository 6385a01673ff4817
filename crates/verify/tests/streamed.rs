//! Orders that are replayed while the history is told piece by piece are right and wrong as they are of the
//! history as a whole, however little is kept.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::Cursor;

use isolario_check::{Follower, check};
use isolario_model::{
    Attempt, Batch, History, Level, LevelNodes, LevelResult, Outcome, Point, TxnId, Value, Verdict,
    Witness,
};
use isolario_oracle::random::{Case, Rng};
use isolario_oracle::{Answer, Draft, DraftOp, DraftTxn, is_ambiguous, satisfies, volume};
use isolario_verify::VerifyOptions;
use isolario_verify::proof::{
    EvictedVersion, OrderPoint, OrderReplay, PartPositionsRef, ProofExcerpt, ProofOutline,
    ReplayError, ReplayLimits, ReplayOutcome, SessionDigests, StreamedOrder, WholeHistory,
    verify_proof, write_of_whole,
};

/// A history as a whole and in pieces.
struct Told {
    draft: Draft,
    whole: History,
    pieces: Vec<History>,
    options: VerifyOptions,
}

impl Told {
    /// Its sessions take turns, and pieces have a few transactions.
    fn new(draft: &Draft, options: VerifyOptions, rng: &mut Rng) -> Told {
        let mut sessions: BTreeMap<&str, Vec<&DraftTxn>> = BTreeMap::new();
        for txn in draft.txns.iter().rev() {
            sessions.entry(&txn.session).or_default().push(txn);
        }
        let mut txns = Vec::new();
        while !sessions.is_empty() {
            let name = *sessions.keys().nth(rng.below(sessions.len())).expect("some");
            let of_session = sessions.get_mut(name).expect("it is there");
            txns.extend(of_session.pop().cloned());
            if of_session.is_empty() {
                sessions.remove(name);
            }
        }
        let at_a_time = rng.between(1, 4);
        let part = |txns: &[DraftTxn]| {
            let draft = Draft { initial: draft.initial.clone(), txns: txns.to_vec() };
            draft.history().expect("small")
        };
        let pieces = txns.chunks(at_a_time).map(part).collect();
        let whole = part(&txns);
        Told { draft: Draft { initial: draft.initial.clone(), txns }, whole, pieces, options }
    }

    /// The proof that an order shows a level.
    fn proof(&self, level: Level, moments: &[OrderPoint]) -> Vec<u8> {
        let result = LevelResult {
            level,
            decided_by: Attempt::Rule,
            verdict: Verdict::Satisfied(Witness::Empty),
        };
        let whole = WholeHistory {
            digest: self.sessions().finish(),
            part: &Batch::new().build().expect("empty"),
            positions: PartPositionsRef { txns: &[], ops: &[] },
        };
        let order = |_| {
            let in_points = moments.iter().any(|moment| !matches!(moment, OrderPoint::Takes(_)));
            let all: Vec<_> = moments.iter().copied().map(Ok).collect();
            Ok(StreamedOrder {
                in_points,
                count: moments.len() as u64,
                points: Box::new(all.into_iter()),
            })
        };
        let mut file = Vec::new();
        write_of_whole(whole, &[result], order, &self.options, "whole", &mut file)
            .expect("to memory");
        file
    }

    fn sessions(&self) -> SessionDigests {
        let mut sessions = SessionDigests::default();
        self.pieces.iter().for_each(|piece| sessions.add(piece));
        sessions
    }

    /// Whether a proof is right by all of the history.
    fn by_all(&self, file: &[u8]) -> bool {
        verify_proof(&self.whole, file).is_ok_and(|verified| verified.is_right())
    }

    /// Whether a proof is right by the pieces, with so much kept at first.
    fn by_pieces(&self, file: &[u8], mut recent: usize) -> bool {
        let outline = ProofOutline::read(&mut &*file).expect("in memory").expect("of this kind");
        let positions = outline.of_history(self.sessions()).expect("of this history");
        let mut sought: Option<EvictedVersion> = None;
        loop {
            match self.replayed(file, recent, sought.clone()) {
                Ok(ReplayOutcome::Right) => return true,
                Ok(ReplayOutcome::Refused(refusal)) => {
                    let mut excerpt = ProofExcerpt::new(&outline, &positions, vec![Some(refusal)]);
                    self.pieces.iter().for_each(|piece| excerpt.find(piece).expect("the same"));
                    excerpt.begin_again();
                    self.pieces.iter().for_each(|piece| excerpt.pick(piece).expect("the same"));
                    let (part, verified) = excerpt.verify().expect("a proof");
                    let refusal = verified.refusals[0].as_ref().expect("it is told");
                    let said = refusal.describe(&part);
                    assert!(!said.contains("has changed"), "{said}\n{}", self.draft);
                    return false;
                }
                Ok(ReplayOutcome::Further(further)) => {
                    assert!(recent < usize::MAX, "all is kept");
                    // The last time, it is known whether anybody wrote what is sought.
                    if sought.as_ref() == Some(&further) {
                        recent = recent.saturating_mul(2).max(1);
                    }
                    sought = Some(further);
                }
                // An order that names nobody.
                Err(_) => return false,
                Ok(other) => panic!("{other:?}\n{}", self.draft),
            }
        }
    }

    /// What comes of an order by the pieces.
    fn replayed(
        &self,
        file: &[u8],
        recent: usize,
        sought: Option<EvictedVersion>,
    ) -> Result<ReplayOutcome, ReplayError> {
        let outline = ProofOutline::read(&mut &*file).expect("in memory").expect("of this kind");
        let positions = outline.of_history(self.sessions()).expect("of this history");
        let order = outline.orders().next().flatten().expect("one order");
        let mut input = Cursor::new(file);
        input.set_position(order.offset);
        let room = ReplayLimits { waiting: usize::MAX, recent };
        let of = (&outline, 0);
        let mut replay = OrderReplay::new(of, order, &positions, input, room, sought);
        for piece in &self.pieces {
            if replay.feed(piece).expect("the same history").is_break() {
                break;
            }
        }
        replay.finish()
    }

    /// Compares the two, however little is kept at first.
    fn compare(&self, level: Level, moments: &[OrderPoint]) -> bool {
        let file = self.proof(level, moments);
        let expected = self.by_all(&file);
        for recent in [0, 3, usize::MAX] {
            let found = self.by_pieces(&file, recent);
            let complain =
                || format!("{level}, {recent} kept: {found}\n{moments:?}\n{}", self.draft);
            if found && !expected && is_ambiguous(&self.whole, level) {
                // It is supposed what reads saw, where the replay in memory gives up.
                let options = isolario_oracle::Options::default()
                    .with_session_order(self.options.session_order)
                    .with_clock_skew(self.options.clock_skew);
                let answer = satisfies(&self.whole, level, options);
                assert_eq!(answer, Answer::Satisfied, "{}", complain());
                continue;
            }
            assert_eq!(found, expected, "{}", complain());
        }
        expected
    }
}

/// The order that a checker gives, or the one in which the history was told.
fn first_order(told: &Told, result: &LevelResult) -> Vec<OrderPoint> {
    let at = |txn: &TxnId| u64::from(txn.0);
    match &result.verdict {
        Verdict::Satisfied(Witness::CommitOrder(order) | Witness::Chosen { order, .. }) => {
            order.iter().map(|txn| OrderPoint::Takes(at(txn))).collect()
        }
        Verdict::Satisfied(Witness::Points(points)) => {
            let moment = |point: &Point| match point {
                Point::Start(txn) => OrderPoint::Starts(at(txn)),
                Point::Commit(txn) => OrderPoint::Commits(at(txn)),
            };
            points.iter().map(moment).collect()
        }
        _ => {
            let in_points = result.level.shape().nodes == LevelNodes::StartAndCommit;
            let is_there = |txn: &TxnId| told.whole.outcome(*txn) == Outcome::Committed;
            let moments = |txn: TxnId| match in_points {
                true => vec![OrderPoint::Starts(at(&txn)), OrderPoint::Commits(at(&txn))],
                false => vec![OrderPoint::Takes(at(&txn))],
            };
            told.whole.txns().filter(is_there).flat_map(moments).collect()
        }
    }
}

/// An order with something changed.
fn changed(moments: &[OrderPoint], count: u64, rng: &mut Rng) -> Vec<OrderPoint> {
    let mut changed = moments.to_vec();
    let at = rng.below(moments.len());
    match rng.below(6) {
        0 => changed.swap(at, rng.below(moments.len())),
        1 => changed.swap(at, (at + 1).min(moments.len() - 1)),
        2 => _ = changed.remove(at),
        3 => changed.insert(rng.below(moments.len()), moments[at]),
        4 => {
            let moved = changed.remove(at);
            changed.insert(rng.below(moments.len()), moved);
        }
        // Somebody else, who may have aborted or not exist.
        _ => {
            let other = rng.below(count as usize + 1) as u64;
            changed[at] = match changed[at] {
                OrderPoint::Takes(_) => OrderPoint::Takes(other),
                OrderPoint::Starts(_) => OrderPoint::Starts(other),
                OrderPoint::Commits(_) => OrderPoint::Commits(other),
            };
        }
    }
    changed
}

/// The history with a read that returned what another one did, or nobody wrote.
fn with_another_read(draft: &Draft, rng: &mut Rng) -> Draft {
    let mut draft = draft.clone();
    let value = |op: &DraftOp| match op {
        DraftOp::Read(_, value) => value.clone(),
        DraftOp::Write(_, value) => Some(value.clone()),
        _ => None,
    };
    let mut values: Vec<Value> =
        draft.txns.iter().flat_map(|txn| txn.ops.iter().filter_map(value)).collect();
    values.push(Value::Int(99_999));
    let other = values.swap_remove(rng.below(values.len()));
    let reads = draft.txns.iter_mut().flat_map(|txn| &mut txn.ops).filter_map(|op| match op {
        DraftOp::Read(_, Some(value)) => Some(value),
        _ => None,
    });
    let mut reads: Vec<&mut Value> = reads.collect();
    if !reads.is_empty() {
        let at = rng.below(reads.len());
        *reads[at] = other;
    }
    draft
}

#[test]
fn orders_are_right_and_wrong_as_they_are_of_the_whole() {
    let mut tried: BTreeMap<Level, [u64; 2]> = BTreeMap::new();
    let drafts = |case: Case| {
        [case.draft(), case.read_modify_write_draft(), case.ambiguous_draft()]
            .map(|draft| (case.seed, draft))
    };
    for (seed, draft) in Case::first(volume() / 20).flat_map(drafts) {
        let rng = &mut Rng::new(!seed);
        let options = VerifyOptions::default()
            .with_session_order(!seed.is_multiple_of(5))
            .with_clock_skew([0, 0, 1, 4][seed as usize % 4]);
        let told = Told::new(&draft, options, rng);
        if !ProofOutline::is_fit(&told.whole) || told.pieces.is_empty() {
            continue;
        }
        let by_checker = isolario_check::CheckOptions::default()
            .with_session_order(options.session_order)
            .with_clock_skew(options.clock_skew);
        let altered = Told::new(&with_another_read(&told.draft, rng), options, rng);
        for result in check(&told.whole, Follower::levels(), &by_checker) {
            let level = result.level;
            let moments = first_order(&told, &result);
            let mut compare = |told: &Told, level: Level, moments: &[OrderPoint]| {
                tried.entry(level).or_default()[usize::from(told.compare(level, moments))] += 1;
            };
            compare(&told, level, &moments);
            if moments.is_empty() {
                continue;
            }
            compare(&altered, level, &moments);
            let mut moments = moments;
            for _ in 0..3 {
                let other = changed(&moments, told.whole.txn_count() as u64, rng);
                compare(&told, level, &other);
                // Orders that are far from those of checkers, too.
                if other.len() > 1 && rng.percent(50) {
                    moments = other;
                }
            }
            let levels = Follower::levels();
            compare(&told, levels[rng.below(levels.len())], &moments);
        }
    }
    for (level, [wrong, right]) in tried {
        assert!(wrong > 100 && right > 100, "{level}: {wrong} wrong, {right} right");
    }
}

/// An order that ends before or after it says so is not taken, whatever it shows.
#[test]
fn miscounted_orders_are_refused() {
    let rng = &mut Rng::new(1);
    let told = (1..)
        .map(|seed| Told::new(&Case { seed }.draft(), VerifyOptions::default(), rng))
        .find(|told| ProofOutline::is_fit(&told.whole) && told.whole.txn_count() > 2)
        .expect("some are");
    for (level, moments) in [
        (Level::ReadCommitted, vec![OrderPoint::Takes(0), OrderPoint::Takes(1)]),
        (Level::Prefix, vec![OrderPoint::Starts(0), OrderPoint::Commits(0)]),
    ] {
        let file = String::from_utf8(told.proof(level, &moments)).expect("text");
        for count in [0, 1, 3, u64::MAX] {
            let forged = file.replace("\"count\":2", &format!("\"count\":{count}"));
            assert!(!told.by_all(forged.as_bytes()));
            assert!(told.replayed(forged.as_bytes(), 0, None).is_err(), "{forged}");
        }
    }
}
