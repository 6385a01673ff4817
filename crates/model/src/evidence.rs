//! How much a history can show: whether there is anything to check at all, and how often
//! transactions met.

use rayon::slice::ParallelSliceMut;

use crate::access::Effect;
use crate::op::{Op, OpKind, Outcome};
use crate::{History, KeyId, OpId, TxnId};

impl History {
    /// Whether there is anything to check: a committed transaction that wrote, or that learnt what
    /// it read.
    ///
    /// Every level holds of a history without evidence, and that says nothing about the database:
    /// a server that refused every write would pass.
    pub fn has_evidence(&self) -> bool {
        let is_evidence = |op: OpId| match self.op_kinds()[op.index()] {
            OpKind::ReadUnobserved | OpKind::ReadListUnobserved => false,
            OpKind::PredicateRead | OpKind::PredicateWrite | OpKind::Aggregate => !matches!(
                self.op(op),
                Op::PredicateRead { rows: None, .. } | Op::Aggregate { result: None, .. }
            ),
            _ => true,
        };
        self.txns().any(|txn| {
            self.outcome(txn) == Outcome::Committed && self.txn_ops(txn).any(is_evidence)
        })
    }
}

/// How often committed transactions met. A run in which they hardly did shows little, whatever the
/// verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contention {
    /// How many transactions committed, of those with a start and a finish.
    pub committed: u64,
    /// How many of them ran while another one did.
    pub overlapped: u64,
    /// How many of them ran while another one used one of their keys, and one of the two wrote it.
    pub conflicted: u64,
}

/// What one transaction did to one key, and when.
#[derive(Clone, Copy)]
struct Use {
    key: KeyId,
    txn: TxnId,
    start: i64,
    finish: i64,
    writes: bool,
}

impl Contention {
    /// Counts them; none where transactions have no times.
    pub fn of(history: &History) -> Option<Contention> {
        let mut whole = Vec::new();
        let mut by_key = Vec::new();
        for txn in history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed) {
            let (Some(start), Some(finish)) = (history.start(txn), history.finish(txn)) else {
                continue;
            };
            let mut used = |key, writes| by_key.push(Use { key, txn, start, finish, writes });
            for op in history.txn_ops(txn) {
                history.effects(op, |key, effect| used(key, matches!(effect, Effect::Wrote(_))));
            }
            // A key that is not there, written by everybody: what is alike then is the time alone.
            whole.push(Use { key: KeyId::NONE, txn, start, finish, writes: true });
        }
        if whole.is_empty() && history.txn_count() > 0 {
            return None;
        }
        Some(Contention {
            committed: whole.len() as u64,
            overlapped: count_conflicts(&mut whole, history.txn_count()),
            conflicted: count_conflicts(&mut by_key, history.txn_count()),
        })
    }

    /// Whether transactions met too seldom for the history to show what the database does about it:
    /// fewer than one in a hundred overlapped, or none of them conflicted.
    pub fn is_thin(&self) -> bool {
        self.overlapped * 100 < self.committed || self.conflicted == 0
    }
}

/// How many transactions use a key while another one does, one of the two writing it.
fn count_conflicts(uses: &mut [Use], txns: usize) -> u64 {
    uses.par_sort_unstable_by_key(|one| (one.key, one.start, one.txn));
    let mut conflicted = vec![false; txns];
    for of_key in uses.chunk_by(|a, b| a.key == b.key) {
        // Of those that started no later: how long do they last? Of those that started no earlier:
        // when? Each use is compared with the extremes alone.
        mark(of_key.iter(), |one| (one.start.into(), one.finish.into()), &mut conflicted);
        let backwards = |one: &Use| (-i128::from(one.finish), -i128::from(one.start));
        mark(of_key.iter().rev(), backwards, &mut conflicted);
    }
    conflicted.into_iter().map(u64::from).sum()
}

/// Marks the uses that conflict with one before them: `span` is when a use begins and when it ends,
/// as this direction of time sees it, and uses come in the order in which they matter to later ones.
fn mark<'u>(
    uses: impl Iterator<Item = &'u Use>,
    span: impl Fn(&Use) -> (i128, i128),
    conflicted: &mut [bool],
) {
    let mut reads = Latest::default();
    let mut writes = Latest::default();
    for one in uses {
        let (begins, ends) = span(one);
        let met = writes.reaches(one.txn, begins) || one.writes && reads.reaches(one.txn, begins);
        conflicted[one.txn.index()] |= met;
        let latest = if one.writes { &mut writes } else { &mut reads };
        latest.add(one.txn, ends);
    }
}

/// The latest end so far, and the latest of another transaction: nobody conflicts with himself.
#[derive(Default)]
struct Latest {
    first: Option<(i128, TxnId)>,
    second: Option<i128>,
}

impl Latest {
    fn add(&mut self, txn: TxnId, ends: i128) {
        match self.first {
            Some((latest, owner)) if owner == txn => self.first = Some((latest.max(ends), txn)),
            Some((latest, _)) if latest >= ends => self.second = self.second.max(Some(ends)),
            Some((latest, _)) => {
                self.first = Some((ends, txn));
                self.second = Some(latest);
            }
            None => self.first = Some((ends, txn)),
        }
    }

    fn reaches(&self, txn: TxnId, begins: i128) -> bool {
        match self.first {
            Some((_, owner)) if owner == txn => self.second.is_some_and(|latest| latest >= begins),
            Some((latest, _)) => latest >= begins,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueRef;
    use crate::testing::{Txn, history, int, read, timed, txn, write};

    #[test]
    fn only_what_committed_and_saw_or_wrote_something_is_evidence() {
        let (unseen, one) = ([Op::Read { key: int(1), value: None }], [write(1, 1)]);
        let aborted = Txn { outcome: Outcome::Aborted, ..txn(&one) };
        let unknown = Txn { outcome: Outcome::Unknown, ..aborted };
        assert!(!history(&[]).has_evidence());
        assert!(!history(&[txn(&[]), aborted, unknown, txn(&unseen)]).has_evidence());
        assert!(history(&[aborted, txn(&[write(1, 3)])]).has_evidence());
        assert!(history(&[txn(&[read(1, 0)])]).has_evidence());
    }

    fn uses<'t>(txn: &Txn<'t>) -> Vec<(Option<ValueRef<'t>>, bool)> {
        txn.ops.iter().map(|op| (op.key(), matches!(op, Op::Write { .. }))).collect()
    }

    fn share_a_written_key(a: &Txn<'_>, b: &Txn<'_>) -> bool {
        let (first, second) = (uses(a), uses(b));
        first.iter().any(|one| second.iter().any(|two| one.0 == two.0 && (one.1 || two.1)))
    }

    /// Each with each.
    fn by_definition(txns: &[Txn<'_>]) -> Contention {
        let meet = |a: &Txn<'_>, b: &Txn<'_>| a.start <= b.finish && b.start <= a.finish;
        let clash = |a: &Txn<'_>, b: &Txn<'_>| meet(a, b) && share_a_written_key(a, b);
        let committed: Vec<_> =
            txns.iter().filter(|txn| txn.outcome == Outcome::Committed).collect();
        let count = |test: &dyn Fn(&Txn<'_>, &Txn<'_>) -> bool| {
            let others = |at| committed.iter().enumerate().filter(move |(other, _)| *other != at);
            let meets = |(at, one): &(usize, &&Txn<'_>)| others(*at).any(|(_, two)| test(one, two));
            committed.iter().enumerate().filter(meets).count() as u64
        };
        Contention {
            committed: committed.len() as u64,
            overlapped: count(&meet),
            conflicted: count(&clash),
        }
    }

    #[test]
    fn meetings_are_those_of_the_definition() {
        let ops = [[read(1, 0), write(2, 1)], [write(1, 2), write(1, 3)], [read(2, 1), read(1, 2)]];
        let mut state = 1u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        for _ in 0..2000 {
            let txns: Vec<Txn<'_>> = (0..below(7) + 1)
                .map(|_| {
                    let start = below(12) as i64;
                    let outcome = if below(5) == 0 { Outcome::Aborted } else { Outcome::Committed };
                    let ops = &ops[below(3) as usize][..1 + below(2) as usize];
                    Txn { ops, outcome, ..timed("s", start, start + below(4) as i64) }
                })
                .collect();
            let expected = by_definition(&txns);
            let found = Contention::of(&history(&txns)).unwrap_or_default();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn without_times_nobody_knows_who_met() {
        assert_eq!(Contention::of(&history(&[txn(&[write(1, 1)])])), None);
        assert!(Contention::default().is_thin());
        let met = Contention { committed: 100, overlapped: 1, conflicted: 1 };
        assert!(!met.is_thin() && Contention { committed: 101, ..met }.is_thin());
    }
}
