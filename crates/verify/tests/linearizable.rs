//! Linearizability: the oracle and the checker agree on random histories of single operations, the
//! verifier accepts what the checker shows, and refuses what is made of it.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use isolario_check::check;
use isolario_model::{
    Anomaly, AnomalyKind, Attempt, Edge, Evidence, Findings, History, KeyId, Level, LevelResult,
    OpId, Reason, TxnId, Verdict, VersionOrder, Witness,
};
use isolario_oracle::random::{Case, Rng, shrink};
use isolario_oracle::{Answer, Draft, satisfies, volume};
use isolario_verify::verify;

/// By how much the clocks of a case may differ.
fn skew(case: Case) -> u64 {
    [0, 0, 0, 1, 4][case.seed as usize % 5]
}

fn checked(history: &History, clock_skew: u64) -> LevelResult {
    let mut options = isolario_check::CheckOptions::default();
    options.clock_skew = clock_skew;
    check(history, &[Level::Linearizable], &options).remove(0)
}

fn verified(history: &History, result: &LevelResult, skew: u64) -> Result<(), String> {
    let options = isolario_verify::VerifyOptions::default().with_clock_skew(skew);
    verify(history, result, &options).map_err(|refusal| refusal.to_string())
}

fn complaint(draft: &Draft, skew: u64) -> Option<String> {
    let history = draft.history().expect("small");
    let options = isolario_oracle::Options::default().with_clock_skew(skew);
    let answer = satisfies(&history, Level::Linearizable, options);
    // A panic is a finding like any other, to be shrunk and shown.
    let Ok(result) = std::panic::catch_unwind(|| checked(&history, skew)) else {
        return Some("the checker panics".to_owned());
    };
    let agrees = match (&result.verdict, answer) {
        (Verdict::Satisfied(_), answer) => answer == Answer::Satisfied,
        (Verdict::Violated(_), answer) => answer == Answer::Violated,
        (Verdict::NotApplicable(_), answer) => answer == Answer::Unsupported,
        _ => false,
    };
    if !agrees {
        return Some(format!("the oracle says {answer:?}\n{result:#?}"));
    }
    let refusal = verified(&history, &result, skew).err()?;
    Some(format!("the verifier says: {refusal}\n{result:#?}"))
}

#[test]
fn oracle_checker_and_verifier_agree_on_single_operations() {
    let mut violated = 0;
    for case in Case::first(volume()) {
        let (draft, skew) = (case.single_draft(), skew(case));
        if complaint(&draft, skew).is_some() {
            let small = shrink(draft, |draft| complaint(draft, skew).is_some());
            let complaint = complaint(&small, skew).unwrap_or_default();
            panic!("clock skew {skew}\n{small}\n{complaint}");
        }
        let history = draft.history().expect("small");
        violated += u64::from(matches!(checked(&history, skew).verdict, Verdict::Violated(_)));
    }
    assert!(violated > volume() / 10 && violated < volume() / 2, "{violated}");
}

/// Times and clock skews at both ends of 64 bits. What linearizable calls violated, strict-serializable does.
#[test]
fn oracle_checker_and_verifier_agree_at_both_ends_of_the_clock() {
    let (mut violated, mut excused) = (0, 0);
    for case in Case::first(volume()) {
        let (draft, skew) = (case.single_draft().at_both_ends(), case.extreme_skew());
        if complaint(&draft, skew).is_some() {
            let small = shrink(draft, |draft| complaint(draft, skew).is_some());
            let complaint = complaint(&small, skew).unwrap_or_default();
            panic!("clock skew {skew}\n{small}\n{complaint}");
        }
        let history = draft.history().expect("small");
        let verdict = |level, skew| {
            let options = isolario_check::CheckOptions::default().with_clock_skew(skew);
            check(&history, &[level], &options).remove(0).verdict
        };
        let is_wrong = verdict(Level::Linearizable, skew).is_violated();
        // Sessions order nothing here: each has one transaction.
        let strict = verdict(Level::StrictSerializable, skew);
        assert!(!is_wrong || !strict.is_satisfied(), "clock skew {skew}\n{draft}\n{strict:?}");
        violated += u64::from(is_wrong);
        excused += u64::from(!is_wrong && verdict(Level::Linearizable, 0).is_violated());
    }
    assert!(violated > volume() / 20 && excused > volume() / 200, "{violated}, {excused}");
}

#[test]
fn a_skew_of_half_of_all_time_is_not_rounded() {
    let text = format!("a [{0}, {0}]: w x 1\n b [{1}, {1}]: r x nil", i64::MIN, i64::MAX);
    let history = Draft::parse(&text).expect("well formed").history().expect("small");
    let half = 1 << 63;
    for (skew, in_order) in [(0, true), (half - 1, true), (half, false), (u64::MAX, false)] {
        let options = isolario_check::CheckOptions::default().with_clock_skew(skew);
        for level in [Level::Linearizable, Level::StrictSerializable] {
            let result = check(&history, &[level], &options).remove(0);
            assert_eq!(result.verdict.is_violated(), in_order, "{level}, {skew}");
            verified(&history, &result, skew).expect("a right proof");
        }
    }
}

/// A finish at the very end of the clock is like none: nothing starts after it.
#[test]
fn a_finish_at_the_end_of_the_clock_is_the_last_one() {
    let text = format!(
        "a: cas x nil -> 1 ok\n b: cas x 1 -> 2 ?\n c [5, {}]: cas x nil -> 3 ok",
        i64::MAX
    );
    let draft = Draft::parse(&text).expect("well formed");
    for skew in [0, 1, 1 << 40] {
        assert_eq!(complaint(&draft, skew), None);
    }
}

/// Changes a witness or a list of operations in one place.
fn mutate<T: Clone>(list: &mut Vec<T>, rng: &mut Rng) {
    let (one, other) = (rng.below(list.len()), rng.below(list.len()));
    match rng.below(3) {
        0 => drop(list.remove(one)),
        1 => list.swap(one, other),
        _ => list.push(list[one].clone()),
    }
}

/// Whatever is made of a proof, it proves nothing that is not so.
#[test]
fn nothing_untrue_is_ever_proved() {
    let (mut refused, mut tried) = (0, 0);
    for case in Case::first(volume() / 4) {
        let (history, skew) = (case.single_draft().history().expect("small"), skew(case));
        let result = checked(&history, skew);
        let mut rng = Rng::new(case.seed);
        let mut forged = result.clone();
        match &mut forged.verdict {
            Verdict::Satisfied(Witness::Linearization(order)) if !order.is_empty() => {
                mutate(order, &mut rng);
            }
            Verdict::Violated(findings) => {
                match &mut Arc::make_mut(&mut findings.anomalies[0]).evidence {
                    Evidence::Operations { ops, .. } => mutate(ops, &mut rng),
                    Evidence::Cycle { edges } => mutate(edges, &mut rng),
                    Evidence::Read { saw, .. } => *saw = saw.xor(Some(OpId(0))),
                    _ => continue,
                }
            }
            _ => continue,
        }
        tried += 1;
        refused += u64::from(verified(&history, &forged, skew).is_err());
        let opposite = match result.verdict {
            Verdict::Satisfied(Witness::Linearization(ops)) => {
                let key = KeyId(0);
                let ops = ops.into_iter().filter(|op| history.op_keys()[op.index()] == key);
                let evidence = Evidence::Operations { key, ops: ops.collect() };
                let kind = AnomalyKind::NotLinearizable;
                let anomalies = vec![Anomaly::new(kind, evidence)];
                Verdict::Violated(Findings::new(anomalies, false))
            }
            _ => {
                let ops = history.txns().flat_map(|txn| history.txn_ops(txn)).collect();
                Verdict::Satisfied(Witness::Linearization(ops))
            }
        };
        let untrue = LevelResult { verdict: opposite, ..forged };
        assert!(verified(&history, &untrue, skew).is_err(), "{case:?}\n{}", case.single_draft());
    }
    assert!(refused > tried / 2, "{refused} of {tried}");
}

/// Makes up evidence that may well be true of some history, and has a form that is looked into.
struct Forger<'h> {
    history: &'h History,
    rng: Rng,
}

impl Forger<'_> {
    fn txn(&mut self) -> TxnId {
        TxnId::at(self.rng.below(self.history.txn_count()))
    }

    fn op(&self, txn: TxnId) -> OpId {
        self.history.txn_ops(txn).next().expect("single")
    }

    fn plain_edge(&mut self, from: TxnId, to: TxnId) -> Edge {
        let (finish, start) = (self.history.finish(from), self.history.start(to));
        let reason = match (finish, start) {
            (Some(finish), Some(start)) if self.rng.percent(60) => {
                Reason::RealTime { finish, start }
            }
            _ => {
                let (read, write) = (self.op(to), Some(self.op(from)));
                Reason::Read { key: self.history.op_keys()[read.index()], read, write }
            }
        };
        Edge { from, to, reason }
    }

    fn edge(&mut self, from: TxnId, to: TxnId) -> Edge {
        if self.rng.percent(50) {
            return self.plain_edge(from, to);
        }
        let read = self.op(from);
        let (mut writer, middle) = (self.txn(), self.txn());
        let known = match self.rng.below(4) {
            0 => {
                writer = TxnId::INIT;
                VersionOrder::Initial
            }
            1 => VersionOrder::ReadModifyWrite { read: self.op(to) },
            2 => VersionOrder::Path { edges: vec![self.plain_edge(writer, to)] },
            _ => {
                let edges = vec![self.plain_edge(writer, middle), self.plain_edge(middle, to)];
                VersionOrder::Path { edges }
            }
        };
        let key = self.history.op_keys()[read.index()];
        Edge { from, to, reason: Reason::AntiDependency { key, read, writer, known } }
    }

    fn anomaly(&mut self) -> Anomaly {
        use AnomalyKind::{
            AbortedRead, CyclicCo, ItemAntiDependencyCycle, LostUpdate, NotLinearizable,
            RealTimeCycle, StaleRead, ThinAirRead,
        };
        let cycles = [StaleRead, RealTimeCycle, LostUpdate, CyclicCo, ItemAntiDependencyCycle];
        match self.rng.below(9) {
            8 => {
                let (first, second) = (self.txn(), self.txn());
                let (first, second) = (self.op(first), self.op(second));
                let evidence = Evidence::Reads { key: KeyId(0), first, second, edges: Vec::new() };
                Anomaly::new(ThinAirRead, evidence)
            }
            0 => {
                let read = self.txn();
                let saw = self.rng.percent(50).then(|| self.txn()).map(|txn| self.op(txn));
                let kind = if saw.is_some() { AbortedRead } else { ThinAirRead };
                Anomaly::new(kind, Evidence::Read { read: self.op(read), saw, instead: None })
            }
            1 | 2 => {
                let mut txns: Vec<TxnId> = self.history.txns().collect();
                txns.retain(|_| self.rng.percent(60));
                let ops: Vec<OpId> = txns.into_iter().map(|txn| self.op(txn)).collect();
                let evidence = Evidence::Operations { key: KeyId(0), ops };
                Anomaly::new(NotLinearizable, evidence)
            }
            _ => {
                let txns: Vec<TxnId> = (0..self.rng.between(2, 3)).map(|_| self.txn()).collect();
                let next = txns.iter().skip(1).chain(&txns[..1]).copied().collect::<Vec<_>>();
                let edges = txns.iter().zip(next).map(|(from, to)| self.edge(*from, to)).collect();
                let kind = cycles[self.rng.below(cycles.len())];
                Anomaly::new(kind, Evidence::Cycle { edges })
            }
        }
    }
}

#[test]
fn what_is_made_up_is_believed_only_of_histories_that_are_broken() {
    let mut believed = 0;
    for case in Case::first(volume() / 4) {
        let (history, skew) = (case.single_draft().history().expect("small"), skew(case));
        let options = isolario_oracle::Options::default().with_clock_skew(skew);
        if history.txn_count() == 0 {
            continue;
        }
        let mut forger = Forger { history: &history, rng: Rng::new(case.seed) };
        for _ in 0..40 {
            let anomalies = vec![forger.anomaly()];
            let verdict = Verdict::Violated(Findings::new(anomalies, false));
            let level = Level::Linearizable;
            let claim = LevelResult { level, decided_by: Attempt::Linearization, verdict };
            if verified(&history, &claim, skew).is_ok() {
                believed += 1;
                let answer = satisfies(&history, level, options);
                assert_eq!(answer, Answer::Violated, "{}\n{claim:#?}", case.single_draft());
            }
        }
    }
    assert!(believed > volume() / 100, "{believed}");
}
