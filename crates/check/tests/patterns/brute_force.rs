//! Plume's Table 1, read literally: every pattern by trying all transactions and reads.
//!
//! The six patterns that order writers are all about the same three transactions: t3 reads a key
//! from t1 (one read of it is meant) and misses t2, which wrote the key as well. They ask how t2
//! reached t3 and what puts t1 before t2. Two things the table leaves to the reader:
//!
//! - Which commit order? That of the weakest level that forbids the pattern, made of what the
//!   level's axiom demands and no more; by any larger one the pattern would violate another level.
//! - A read of the very same key is no way to reach t3. Where it is the only one, there are two
//!   reads of a key that differ, and that is TAP-j.

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
    session_order: bool,
    kept: Vec<bool>,
    reads: Vec<Read>,
    found: BTreeSet<A>,
}

type Relation = Vec<Vec<bool>>;

impl<'d> BruteForce<'d> {
    /// None where some read may have seen either of two writes, or where the initial state is not
    /// simply a value.
    pub fn new(draft: &'d Draft, session_order: bool) -> Option<Self> {
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
            session_order,
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
        self.session_order
            && before < after
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

    /// Whether the axiom of a level takes a writer to be visible to a read. Any read counts here,
    /// of the same key as well.
    fn takes(&self, level: Level, causal: &Relation, read: &Read, writer: usize) -> bool {
        let mut from_it = self.reads.iter().filter(|o| o.txn == read.txn && o.from == writer);
        match level {
            Level::ReadCommitted => from_it.any(|other| other.at < read.at),
            Level::ReadAtomic => self.session(writer, read.txn) || from_it.next().is_some(),
            _ => causal[writer][read.txn],
        }
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
        let mut found = self.found.clone();
        let relations = Relations::of(self);
        if relations.is_cyclic() {
            found.insert(A::CyclicCo);
        }
        for (read, writer) in self.missed() {
            // Each goes by the most special pattern that it fits: the first, in this order.
            found.extend(self.fitting(&relations, read, writer).first());
            let before_it = |o: &Read| o.txn == read.txn && o.from == writer && o.at < read.at;
            if relations.read_committed[read.from][writer]
                && self.reads.iter().any(|other| other.key == read.key && before_it(other))
            {
                found.insert(A::NonMonotonicRead);
            }
        }
        found
    }

    /// The patterns from TAP-h to TAP-n of which the table's formula holds, special or not.
    pub fn formulas(&self) -> BTreeSet<A> {
        let relations = Relations::of(self);
        self.missed().flat_map(|(read, writer)| self.fitting(&relations, read, writer)).collect()
    }

    /// The patterns that a read and a writer that it missed fit, in the order of the table.
    fn fitting(&self, relations: &Relations, read: &Read, writer: usize) -> Vec<A> {
        let (t1, t2, t3) = (read.from, writer, read.txn);
        let of_another_key = |o: &&Read| o.txn == t3 && o.from == t2 && o.key != read.key;
        let read_before = self.reads.iter().filter(of_another_key).any(|o| o.at < read.at);
        let direct = self.reads.iter().any(|o| of_another_key(&o)) || self.session(t2, t3);
        let last_step = |other: usize| other != t2 && relations.direct[other][t3];
        let indirect = (0..self.init()).any(|o| relations.causal[t2][o] && last_step(o));
        let causally = relations.causal[t1][t2];
        let mut table = vec![
            (A::NonMonoReadCo, read_before && causally),
            (A::NonMonoReadCm, read_before && relations.read_committed[t1][t2]),
            (A::FracturedReadCo, direct && causally),
            (A::FracturedReadCm, direct && relations.read_atomic[t1][t2]),
        ];
        if !relations.is_cyclic() {
            let visible = direct || indirect;
            table.push((A::CoConflictCm, visible && causally));
            table.push((A::ConflictCm, visible && relations.of_causal[t1][t2]));
        }
        table.into_iter().filter(|(_, fits)| *fits).map(|(kind, _)| kind).collect()
    }
}

/// Causal order, and what each level demands of commits.
struct Relations {
    direct: Relation,
    causal: Relation,
    read_committed: Relation,
    read_atomic: Relation,
    of_causal: Relation,
}

impl Relations {
    fn of(history: &BruteForce<'_>) -> Self {
        let direct = history.dependencies();
        let causal = closure(direct.clone());
        let relation = |level| history.commit_relation(level, &causal);
        Relations {
            read_committed: relation(Level::ReadCommitted),
            read_atomic: relation(Level::ReadAtomic),
            of_causal: relation(Level::Causal),
            direct,
            causal,
        }
    }

    /// Whether there is no causal order.
    fn is_cyclic(&self) -> bool {
        (0..self.causal.len()).any(|txn| self.causal[txn][txn])
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
