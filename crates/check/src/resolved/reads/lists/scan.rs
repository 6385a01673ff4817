//! What is wrong with a list up to some length, whoever reads it.
//!
//! A list is gone through once. After that, all that can be said about one of its prefixes is
//! looked up by the prefix's length.

use isolario_model::{AnomalyKind, OpId, Outcome, TxnId, ValueId};

use super::appends::{Access, Appender, Appends, Live, element};

/// What is wrong with a prefix of a list, or may be.
#[derive(Clone, Copy)]
pub(crate) struct Prefix {
    /// The first thing that is wrong for certain.
    pub(crate) fault: Option<Fault>,
    /// The first element that several transactions appended.
    pub(crate) ambiguous: Option<(TxnId, TxnId)>,
    /// The first element that is not the next one of its transaction. Means nothing where an
    /// element is ambiguous.
    pub(crate) out_of_turn: Option<Fault>,
    /// A transaction that has appended more than is shown: its last append shown and its next one.
    pub(crate) missing: Option<(OpId, OpId)>,
}

#[derive(Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) kind: AnomalyKind,
    pub(crate) saw: Option<OpId>,
    pub(crate) instead: Option<OpId>,
}

/// Stands for no place.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The prefixes of a list. Lengths are those from which on something holds.
#[derive(Default)]
pub(crate) struct Scan {
    fault: Option<(usize, Fault)>,
    /// The first append by a committed transaction after one of an aborted transaction, if that is
    /// what is wrong.
    built: Option<(usize, OpId)>,
    ambiguous: Option<(usize, (TxnId, TxnId))>,
    out_of_turn: Option<(usize, Fault)>,
    /// What is missing, each time that changes.
    missing: Vec<(usize, Option<(OpId, OpId)>)>,
    /// Transactions of unknown outcome.
    unknown: Vec<(usize, TxnId)>,
    /// Per element, the place of its first append.
    appends: Vec<u32>,
    /// Per append that is the first of its element, where that element is first shown.
    shown_at: Vec<u32>,
}

impl Scan {
    /// What is to be said about the first so many elements.
    #[inline]
    pub(crate) fn prefix(&self, len: usize) -> Prefix {
        let missing = match self.missing.is_empty() {
            true => None,
            false => {
                let changes = self.missing.partition_point(|(from, _)| *from <= len);
                changes.checked_sub(1).and_then(|at| self.missing[at].1)
            }
        };
        Prefix {
            fault: up_to(len, self.fault),
            ambiguous: up_to(len, self.ambiguous),
            out_of_turn: up_to(len, self.out_of_turn),
            missing,
        }
    }

    /// The append that somebody built on what an aborted transaction had appended, if the first so
    /// many elements show one.
    pub(crate) fn built(&self, len: usize) -> Option<OpId> {
        up_to(len, self.built)
    }

    /// Transactions of unknown outcome that the first so many elements show.
    pub(crate) fn unknown(&self, len: usize) -> impl Iterator<Item = TxnId> + '_ {
        self.unknown.iter().take_while(move |(from, _)| *from <= len).map(|(_, writer)| *writer)
    }

    /// The place of the first append of an element, by its position in the list.
    #[inline]
    pub(crate) fn append_at(&self, position: usize) -> Option<u32> {
        Some(self.appends[position]).filter(|place| *place != NOWHERE)
    }

    /// Whether the element of an append is among the first so many.
    pub(crate) fn shows(&self, append: u32, len: usize) -> bool {
        (self.shown_at[append as usize] as usize) < len
    }

    /// Goes through a list.
    pub(crate) fn refill(&mut self, appends: &Appends<'_>, elements: &[ValueId]) {
        self.fault = None;
        self.built = None;
        self.ambiguous = None;
        self.out_of_turn = None;
        self.missing.clear();
        self.unknown.clear();
        self.appends.clear();
        self.shown_at.clear();
        self.shown_at.resize(appends.all().len(), NOWHERE);
        Scanner { appends, scan: self, shown: vec![0; appends.all().len()], missing: Vec::new() }
            .scan(elements);
    }
}

#[inline]
fn up_to<T: Copy>(len: usize, from: Option<(usize, T)>) -> Option<T> {
    from.filter(|(from, _)| *from <= len).map(|(_, what)| what)
}

/// Goes through a list once.
struct Scanner<'s, 'a> {
    appends: &'s Appends<'a>,
    scan: &'s mut Scan,
    /// Per first append of a transaction, how many of its appends were shown.
    shown: Vec<u32>,
    /// The writers of which something was missing when that many of their appends had been shown.
    missing: Vec<Missing>,
}

struct Missing {
    first: u32,
    shown: u32,
    last: OpId,
    next: OpId,
}

impl Scanner<'_, '_> {
    fn scan(mut self, elements: &[ValueId]) {
        for (at, shown) in elements.iter().enumerate() {
            let append = self.appends.find(shown.to_bits());
            self.scan.appends.push(append.unwrap_or(NOWHERE));
            let len = at + 1;
            let Some(append) = append else {
                let fault = Fault { kind: AnomalyKind::ThinAirRead, saw: None, instead: None };
                self.scan.fault.get_or_insert((len, fault));
                continue;
            };
            let shown_at = &mut self.scan.shown_at[append as usize];
            *shown_at = (*shown_at).min(at as u32);
            match self.appends.appender(append) {
                Appender { txn, other: Some(other), live } if live != Live::None => {
                    self.scan.ambiguous.get_or_insert((len, (txn, other)));
                }
                Appender { txn, .. } => {
                    self.show(len, append, shown.to_bits());
                    if self.appends.history.outcome(txn) == Outcome::Unknown {
                        self.scan.unknown.push((len, txn));
                    }
                }
            }
        }
    }

    /// An element of a transaction: it must be the transaction's next append.
    fn show(&mut self, len: usize, append: u32, word: u64) {
        let (appends, history) = (self.appends, self.appends.history);
        let first = appends.first_of_txn(append);
        let shown = self.shown[first as usize];
        self.shown[first as usize] += 1;
        let expected = appends.nth_of_txn(first, shown);
        let txn = appends.appender(append).txn;
        let is_expected = expected.is_some_and(|append| element(history, append) == word);
        if history.outcome(txn) == Outcome::Committed
            && let Some((_, Fault { kind: AnomalyKind::AbortedRead, .. })) = self.scan.fault
        {
            self.scan.built.get_or_insert((len, appends.all()[append as usize].op));
        }
        if history.outcome(txn) == Outcome::Aborted {
            let saw = appends.last_append(txn, word);
            let fault = Fault { kind: AnomalyKind::AbortedRead, saw, instead: None };
            self.scan.fault.get_or_insert((len, fault));
        } else if let Some(expected) = expected.filter(|_| is_expected) {
            if let Some(next) = appends.nth_of_txn(first, shown + 1) {
                let (last, next) = (expected.op, next.op);
                self.missing.push(Missing { first, shown: shown + 1, last, next });
            }
        } else {
            let fault = self.out_of_turn(append, shown, word, expected);
            self.scan.out_of_turn.get_or_insert((len, fault));
        }
        self.note_missing(len);
    }

    /// What is wrong with an element of an append where another one was expected.
    fn out_of_turn(&self, append: u32, shown: u32, word: u64, expected: Option<Access>) -> Fault {
        let history = self.appends.history;
        let of_txn = self.appends.of_txn(self.appends.first_of_txn(append));
        // An element may have been appended twice, and is too many only beyond that.
        let times = |some: &[Access]| some.iter().filter(|a| element(history, **a) == word).count();
        let again = times(&of_txn[..of_txn.len().min(shown as usize)]) == times(of_txn);
        let (kind, instead) = match expected {
            Some(expected) if !again => (AnomalyKind::IntermediateRead, Some(expected.op)),
            _ => (AnomalyKind::DuplicateElements, None),
        };
        let saw = self.appends.last_append(self.appends.appender(append).txn, word);
        Fault { kind, saw, instead }
    }

    /// Notes of whom something is missing now: the last writer of whom that is still true.
    fn note_missing(&mut self, len: usize) {
        while let Some(missing) = self.missing.last()
            && self.shown[missing.first as usize] != missing.shown
        {
            self.missing.pop();
        }
        let missing = self.missing.last().map(|missing| (missing.last, missing.next));
        if self.scan.missing.last().map_or(missing.is_some(), |(_, before)| *before != missing) {
            self.scan.missing.push((len, missing));
        }
    }
}
