//! Reads whose source is a choice: which of them are open, and what is tried first.

use isolario_model::{KeyId, TxnId};

use super::Search;
use super::refutation::Ground;
use crate::clauses::Literal;
use crate::strong::sources::{Candidate, OpenRead};
use crate::strong::undecided::Taken;

impl Search<'_, '_> {
    /// What is taken for a read.
    pub(super) fn taken(&self, read: u32) -> Taken {
        let OpenRead { if_there, .. } = self.problem.sources.read(read);
        if if_there.is_some_and(|number| !self.is_there(number)) {
            return Taken::NotAsked;
        }
        let Some(mut literals) = self.variables.sources_of(read) else { return Taken::Nothing };
        let taken = literals.find(|literal| self.clauses.is_true(*literal));
        match taken.and_then(|literal| self.variables.source(literal)) {
            Some(candidate) => Taken::Candidate(candidate),
            None => Taken::Nothing,
        }
    }

    /// Whether a transaction that may not be there is.
    pub(crate) fn has(&self, txn: TxnId) -> bool {
        let number = self.problem.sources.maybe().binary_search(&txn);
        number.is_ok_and(|number| self.is_there(number as u32))
    }

    /// The same by its number.
    pub(super) fn is_there(&self, number: u32) -> bool {
        self.variables.of_there(number).is_some_and(|literal| self.clauses.is_true(literal))
    }

    /// Makes the candidates of a read variables, of which one must be taken if the reader is there. The
    /// writer of the one that is taken is there.
    pub(super) fn open_read(&mut self, read: u32) {
        if self.variables.sources_of(read).is_some() {
            return;
        }
        let sources = &self.problem.sources;
        let OpenRead { key, if_there, .. } = sources.read(read);
        let left: Vec<Candidate> =
            sources.candidates(read).filter(|candidate| self.is_left(*candidate)).collect();
        let mut literals = self.variables.open_read(read, left.iter().copied());
        literals.iter().for_each(|literal| self.add_variable(*literal));
        let taken = literals.clone();
        literals.extend(if_there.map(|number| !self.there(number)));
        self.add_clause(literals, Some(read));
        for (candidate, literal) in left.into_iter().zip(taken) {
            if let Some(number) = sources.writer_if_there(candidate) {
                let there = self.there(number);
                self.add_clause(vec![!literal, there], None);
            }
        }
        if let Err(at) = self.open_keys.binary_search(&key) {
            self.open_keys.insert(at, key);
        }
    }

    fn is_left(&self, candidate: Candidate) -> bool {
        self.gone.get(candidate as usize).is_none_or(|gone| !gone)
    }

    /// The literal that a transaction is there. It is not, unless there is a reason.
    fn there(&mut self, number: u32) -> Literal {
        let (literal, is_new) = self.variables.there(number);
        if is_new {
            self.add_variable(!literal);
        }
        literal
    }

    /// Adds a clause of what is asked, perhaps of a read. All literals but one may be false by now: then what was decided
    /// is taken back, so that the last one follows from nothing but what is certain.
    fn add_clause(&mut self, literals: Vec<Literal>, read: Option<u32>) {
        let is_free = |literal: &&Literal| self.clauses.is_free(literal.var());
        if literals.iter().filter(is_free).count() < 2 {
            self.back_to(0);
        }
        self.clauses.add(literals, Ground::Choice { read });
    }

    /// The keys to look at whatever moved: what is taken for their reads may have changed.
    pub(super) fn keys_of_open_reads(&self) -> Vec<KeyId> {
        match self.problem.sources.maybe() {
            [] => self.open_keys.clone(),
            _ => self.problem.sources.keys(),
        }
    }

    /// How far a source is from what the current order says: the last candidate before the reader comes
    /// first, then earlier ones, then those after it, nearest first.
    pub(super) fn distance(&self, candidate: Candidate) -> (bool, u32) {
        let (sources, layout) = (&self.problem.sources, self.problem.layout);
        let start = self.order.rank(layout.start(sources.read(sources.read_of(candidate)).reader));
        match sources.version(candidate) {
            None => (false, start + 1),
            Some(version) => {
                let writer = self.problem.versions.writer(version);
                let commit = self.order.rank(layout.commit(writer));
                (commit > start, commit.abs_diff(start))
            }
        }
    }
}
