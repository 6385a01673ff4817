//! Plume's Table 1, read literally: every pattern by trying all transactions and reads.

use std::collections::BTreeSet;

use isolario_model::{AnomalyKind as A, Initial, Level, Outcome, Value};
use isolario_oracle::{Draft, DraftOp};

/// A read from another transaction that is not wrong by itself.
#[derive(Clone, Debug)]
struct Read {
    txn: usize,
    at: usize,
    key: String,
    from: usize,
}

/// A history whose reads are resolved. Transactions are numbered; `init` is the last.
pub struct BruteForce<'d> {
    draft: &'d Draft,
    kept: Vec<bool>,
    reads: Vec<Read>,
    found: BTreeSet<A>,
}

type Relation = Vec<Vec<bool>>;

impl<'d> BruteForce<'d> {
    /// None where some read may have seen either of two writes, or where the initial state is not
    /// simply a value.
    pub fn new(draft: &'d Draft) -> Option<Self> {
        let initial = match &draft.initial {
            Initial::Value(value) => Some(value.clone()),
            Initial::None => None,
            _ => return None,
        };
        let mut written = BTreeSet::new();
        for op in draft.txns.iter().flat_map(|txn| &txn.ops) {
            if let Some((key, value)) = write(op) {
                let is_initial = initial.as_ref() == Some(&value);
                if is_initial || !written.insert((key.to_owned(), format!("{value:?}"))) {
                    return None;
                }
            }
        }
        let mut this = BruteForce {
            draft,
            kept: draft.txns.iter().map(|txn| txn.outcome == Outcome::Committed).collect(),
            reads: Vec::new(),
            found: BTreeSet::new(),
        };
        this.keep_what_was_observed();
        this.resolve(initial.as_ref());
        Some(this)
    }

    fn init(&self) -> usize {
        self.draft.txns.len()
    }

    /// Where a value was written: transaction and operation.
    fn writer(&self, key: &str, value: &Value) -> Option<(usize, usize)> {
        self.draft.txns.iter().enumerate().find_map(|(txn, body)| {
            let at = body.ops.iter().position(|op| write(op) == Some((key, value.clone())))?;
            Some((txn, at))
        })
    }

    fn keep_what_was_observed(&mut self) {
        loop {
            let observed: Vec<usize> = (0..self.init())
                .filter(|txn| self.kept[*txn])
                .flat_map(|txn| self.draft.txns[txn].ops.iter().filter_map(read))
                .filter_map(|(key, value)| Some(self.writer(key, value)?.0))
                .filter(|txn| self.draft.txns[*txn].outcome == Outcome::Unknown)
                .filter(|txn| !self.kept[*txn])
                .collect();
            if observed.is_empty() {
                return;
            }
            observed.into_iter().for_each(|txn| self.kept[txn] = true);
        }
    }

    /// Sorts the reads into those that are wrong by themselves and those from others.
    fn resolve(&mut self, initial: Option<&Value>) {
        for txn in (0..self.init()).filter(|txn| self.kept[*txn]) {
            let mut saw: Vec<(String, usize)> = Vec::new();
            for (at, op) in self.draft.txns[txn].ops.iter().enumerate() {
                let Some((key, value)) = read(op) else { continue };
                let own = self.last_write(txn, key, at);
                let from = match self.writer(key, value) {
                    Some((writer, w)) if writer == txn => {
                        if own != Some(w) {
                            let wrong = if w > at { A::FutureRead } else { A::NotMyLastWrite };
                            self.found.insert(wrong);
                        }
                        continue;
                    }
                    Some((writer, w)) => {
                        let mut wrong = Vec::new();
                        wrong.extend(own.map(|_| A::NotMyOwnWrite));
                        if self.draft.txns[writer].outcome == Outcome::Aborted {
                            wrong.push(A::AbortedRead);
                        } else if self.last_write(writer, key, usize::MAX) != Some(w) {
                            wrong.push(A::IntermediateRead);
                        }
                        if self.kept[writer] {
                            saw.push((key.to_owned(), writer));
                        }
                        self.found.extend(wrong.iter());
                        if !wrong.is_empty() {
                            continue;
                        }
                        writer
                    }
                    None if Some(value) == initial => {
                        saw.push((key.to_owned(), self.init()));
                        if own.is_some() {
                            self.found.insert(A::NotMyOwnWrite);
                            continue;
                        }
                        self.init()
                    }
                    None => {
                        self.found.insert(A::ThinAirRead);
                        continue;
                    }
                };
                self.reads.push(Read { txn, at, key: key.to_owned(), from });
            }
            let differ = |(key, from): &(String, usize)| {
                saw.iter().any(|(other, source)| other == key && source != from)
            };
            if saw.iter().any(differ) {
                self.found.insert(A::NonRepeatableRead);
            }
        }
    }

    fn last_write(&self, txn: usize, key: &str, before: usize) -> Option<usize> {
        let ops = &self.draft.txns[txn].ops;
        let ops = &ops[..before.min(ops.len())];
        ops.iter().rposition(|op| write(op).is_some_and(|(written, _)| written == key))
    }

    fn writes(&self, txn: usize, key: &str) -> bool {
        txn != self.init() && self.last_write(txn, key, usize::MAX).is_some()
    }

    fn session(&self, before: usize, after: usize) -> bool {
        let txns = &self.draft.txns;
        before < after
            && after != self.init()
            && self.kept[before]
            && self.kept[after]
            && txns[before].session == txns[after].session
            && txns[before].outcome == Outcome::Committed
    }

    /// Session order and reads, and `init` before everything.
    fn dependencies(&self) -> Relation {
        let related = |before: usize, after: usize| {
            after != self.init() && (before == self.init() || self.session(before, after))
        };
        let row = |before| (0..=self.init()).map(|after| related(before, after)).collect();
        let mut relation: Relation = (0..=self.init()).map(row).collect();
        self.reads.iter().for_each(|read| relation[read.from][read.txn] = true);
        relation
    }

    /// Whether the rule of a level takes a writer to be visible to a read.
    fn takes(&self, level: Level, causal: &Relation, read: &Read, writer: usize) -> bool {
        let mut others = self.reads.iter().filter(|o| o.txn == read.txn && o.from == writer);
        match level {
            Level::ReadCommitted => others.any(|other| other.at < read.at),
            Level::ReadAtomic => {
                self.session(writer, read.txn) || self.is_first(read) && others.next().is_some()
            }
            _ => causal[writer][read.txn],
        }
    }

    /// Whether a read is the first of its key in its transaction.
    fn is_first(&self, read: &Read) -> bool {
        let is_earlier = |o: &&Read| o.txn == read.txn && o.key == read.key && o.at < read.at;
        !self.reads.iter().any(|other| is_earlier(&other))
    }

    /// Every read with every writer that it missed.
    fn missed(&self) -> impl Iterator<Item = (&Read, usize)> {
        self.reads.iter().flat_map(move |read| {
            (0..self.init())
                .filter(|txn| self.kept[*txn] && *txn != read.txn && *txn != read.from)
                .filter(|txn| self.writes(*txn, &read.key))
                .map(move |writer| (read, writer))
        })
    }

    fn commit_relation(&self, level: Level, causal: &Relation) -> Relation {
        let mut relation = causal.clone();
        for (read, writer) in self.missed() {
            // What would have to come before `init` is a pattern by itself. As a way from anywhere
            // to anywhere it would make patterns of everything else.
            if read.from != self.init() && self.takes(level, causal, read, writer) {
                relation[writer][read.from] = true;
            }
        }
        closure(relation)
    }

    /// All patterns that occur; none of the causal ones where causality is undefined.
    pub fn patterns(&self) -> BTreeSet<A> {
        let causal = closure(self.dependencies());
        let mut found = self.found.clone();
        if (0..self.init()).any(|txn| causal[txn][txn]) {
            found.insert(A::CyclicCo);
        }
        let levels = [Level::ReadCommitted, Level::ReadAtomic, Level::Causal];
        for level in levels {
            if level == Level::Causal && found.contains(&A::CyclicCo) {
                continue;
            }
            let commit = self.commit_relation(level, &causal);
            for (read, writer) in self.missed() {
                let (seen, missed) = (read.from, writer);
                if commit[seen][missed] && self.takes(level, &causal, read, writer) {
                    let by_cause = causal[seen][missed];
                    found.extend(self.called(level, read, writer, by_cause));
                }
            }
        }
        found
    }

    /// What an instance is called: by the most special pattern.
    fn called(&self, level: Level, read: &Read, writer: usize, causally: bool) -> Vec<A> {
        let from_it: Vec<&Read> =
            self.reads.iter().filter(|o| o.txn == read.txn && o.from == writer).collect();
        let other_key = |o: &&&Read| o.key != read.key;
        let before = |o: &&&Read| o.at < read.at;
        let mono = from_it.iter().filter(before).any(|o| other_key(&o));
        let pick = |co, cm| if causally { co } else { cm };
        match level {
            Level::ReadCommitted => {
                let mut called = Vec::new();
                if mono {
                    called.push(pick(A::NonMonoReadCo, A::NonMonoReadCm));
                }
                if from_it.iter().filter(before).any(|o| !other_key(&o)) {
                    called.push(A::NonMonotonicRead);
                }
                called
            }
            Level::ReadAtomic => {
                let later = self.is_first(read) && from_it.iter().any(|o| other_key(&o));
                if !mono && (later || self.session(writer, read.txn)) {
                    vec![pick(A::FracturedReadCo, A::FracturedReadCm)]
                } else {
                    Vec::new()
                }
            }
            _ if from_it.is_empty() && !self.session(writer, read.txn) => {
                vec![pick(A::CoConflictCm, A::ConflictCm)]
            }
            _ => Vec::new(),
        }
    }
}

fn read(op: &DraftOp) -> Option<(&str, &Value)> {
    match op {
        DraftOp::Read(key, Some(value)) => Some((key, value)),
        _ => None,
    }
}

fn write(op: &DraftOp) -> Option<(&str, Value)> {
    match op {
        DraftOp::Write(key, value) => Some((key, value.clone())),
        DraftOp::Delete(key) => Some((key, Value::Nil)),
        _ => None,
    }
}

fn closure(mut relation: Relation) -> Relation {
    for mid in 0..relation.len() {
        let onward = relation[mid].clone();
        for row in relation.iter_mut().filter(|row| row[mid]) {
            row.iter_mut().zip(&onward).for_each(|(to, also)| *to |= *also);
        }
    }
    relation
}
