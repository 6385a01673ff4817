//! What must be so one way or the other: which of two transactions commits first, whose write a read
//! saw, and whether a transaction of unknown outcome committed.
//!
//! A transaction that did not commit may be thought of as one that commits after all others and whose
//! reads are not asked about: nobody saw its writes. So its place in the order is a question like any
//! other, and only what it read counts under the condition that it is there.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{OpId, OpKind, Outcome, TxnId};

use crate::by_key::ByKey;
use crate::clauses::{self, Literal};
use crate::facts::Facts;
use crate::justify::{Assumption, Before};
use crate::single_reads;

/// What may be so or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    /// Whether this is the order of two commits; the one with the lower number comes first.
    Before(Before),
    /// Whether a read saw the write of a transaction.
    Saw(OpId, TxnId),
    /// Whether a transaction committed.
    There(TxnId),
}

/// Whether something may be so although these assumptions are each ruled out, all of a list together.
pub(crate) fn leave_a_case(facts: &Facts<'_>, ruled_out: &[Vec<Assumption>]) -> bool {
    let mut clauses = Clauses::new(facts);
    for together in ruled_out {
        let clause =
            together.iter().map(|assumption| clauses.literal(*assumption, false)).collect();
        clauses.all.push(clause);
    }
    clauses.add_alternatives();
    clauses::is_satisfiable(clauses.numbers.len(), &clauses.all)
}

struct Clauses<'f, 'h> {
    facts: &'f Facts<'h>,
    numbers: BTreeMap<Question, usize>,
    all: Vec<Vec<Literal>>,
    /// The reads whose alternatives are still to be told.
    reads: Vec<OpId>,
    told_reads: BTreeSet<OpId>,
    told_txns: BTreeSet<TxnId>,
}

impl<'f, 'h> Clauses<'f, 'h> {
    fn new(facts: &'f Facts<'h>) -> Self {
        Clauses {
            facts,
            numbers: BTreeMap::new(),
            all: Vec::new(),
            reads: Vec::new(),
            told_reads: BTreeSet::new(),
            told_txns: BTreeSet::new(),
        }
    }

    fn question(&mut self, question: Question, holds: bool) -> Literal {
        let next = self.numbers.len();
        Literal::new(*self.numbers.entry(question).or_insert(next), holds)
    }

    fn literal(&mut self, assumption: Assumption, holds: bool) -> Literal {
        match assumption {
            Assumption::Before(before) => {
                let sorted = before.min(before.opposite());
                self.question(Question::Before(sorted), holds == (before == sorted))
            }
            Assumption::Saw { read, writer } => {
                self.ask(read);
                self.question(Question::Saw(read, writer), holds)
            }
        }
    }

    fn ask(&mut self, read: OpId) {
        if self.told_reads.insert(read) {
            self.reads.push(read);
        }
    }

    /// Says of every read that was asked about that it saw one of the writes that explain it; and of
    /// every transaction of which that depends whether it committed, what that depends on itself.
    fn add_alternatives(&mut self) {
        let mut reads_by_key = None;
        while let Some(read) = self.reads.pop() {
            let reader = self.facts.txn(read);
            let writers = single_reads::explaining(self.facts, read);
            let mut clause: Vec<Literal> = Vec::new();
            for writer in &writers {
                let saw = self.question(Question::Saw(read, *writer), true);
                clause.push(saw);
                if self.facts.is_uncertain(*writer) {
                    let not_seen = self.question(Question::Saw(read, *writer), false);
                    let there = self.question(Question::There(*writer), true);
                    self.all.push(vec![not_seen, there]);
                }
            }
            if self.facts.is_uncertain(reader) {
                clause.push(self.question(Question::There(reader), false));
            }
            self.all.push(clause);
            for txn in writers.into_iter().chain([reader]) {
                if self.facts.is_uncertain(txn) && self.told_txns.insert(txn) {
                    let reads = reads_by_key.get_or_insert_with(|| self.facts.register_reads());
                    self.ask_about(txn, reads);
                }
            }
        }
    }

    /// Asks about all reads of a transaction, and about all that may have seen its writes.
    fn ask_about(&mut self, txn: TxnId, reads: &ByKey) {
        let (facts, history) = (self.facts, self.facts.history);
        for op in history.txn_ops(txn) {
            if facts.met.contains_key(&op) {
                self.ask(op);
            } else if history.op_kinds()[op.index()] == OpKind::Read {
                self.ask_unless_own(op);
            } else if facts.is_write(op) && facts.next_own(op).is_none() {
                for (_, read) in reads.of_version(facts.key(op), history.encoded_version(op)) {
                    if history.outcome(facts.txn(*read)) != Outcome::Aborted {
                        self.ask_unless_own(*read);
                    }
                }
            }
        }
    }

    /// Asks about a read, unless it saw the own write that it must see.
    fn ask_unless_own(&mut self, read: OpId) {
        let word = |op| self.facts.history.encoded_version(op);
        let own = self.facts.own_before(read);
        if own.is_none_or(|own| word(own) != word(read)) {
            self.ask(read);
        }
    }
}
