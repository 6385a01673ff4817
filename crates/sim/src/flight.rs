//! A transaction in progress, from the client's side.

use isolario_model::{Outcome, Stamp};
use isolario_workload::{AttemptedTxn, Generator, PlannedOp, Rng};

use crate::ending::{Ending, Mishaps};
use crate::store::{Intent, Store, Txn};

/// What an operation returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing but that it is done.
    Done,
    /// What a register held; for a conditional write, before it.
    Register(Option<i64>),
    /// How many elements a list held before the transaction's own.
    List(usize),
}

impl Answer {
    /// What a register held; nothing for other operations.
    pub(crate) fn register(self) -> Option<i64> {
        if let Answer::Register(held) = self { held } else { None }
    }

    /// How many elements a list held; none for other operations.
    pub(crate) fn prefix(self) -> usize {
        if let Answer::List(prefix) = self { prefix } else { 0 }
    }
}

/// A transaction in progress. Each step is one call to the store.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    pub(crate) place: Option<AttemptedTxn>,
    pub(crate) plan: Vec<PlannedOp>,
    /// What the operations so far returned.
    pub(crate) answers: Vec<Answer>,
    /// What the client knew of the keys of its compare-and-sets when it began.
    known: Vec<(u64, Option<i64>)>,
    txn: Txn,
    pub(crate) start: i64,
    /// How it ended, once it has.
    pub(crate) outcome: Option<Outcome>,
    /// Its snapshot and its place in the true commit order, if it committed and they are known.
    pub(crate) stamps: (Option<Stamp>, Option<Stamp>),
    /// Whether it ran twice.
    pub(crate) reran: bool,
}

impl Flight {
    /// Begins.
    pub(crate) fn begin(
        &mut self,
        place: AttemptedTxn,
        now: i64,
        generator: &dyn Generator,
        store: &mut Store,
        rng: &mut Rng,
    ) {
        self.plan.clear();
        self.answers.clear();
        self.known.clear();
        generator.plan(place, &mut self.plan);
        let updates = self.plan.iter().any(PlannedOp::writes);
        let intent = if updates { Intent::Update } else { Intent::Read };
        store.begin(&mut self.txn, place.session, intent, rng);
        for op in &self.plan {
            if let PlannedOp::CompareAndSet { key, .. } = *op {
                self.known.push((key, store.peek(&self.txn, key)));
            }
        }
        (self.place, self.start, self.outcome, self.reran) = (Some(place), now, None, false);
        self.stamps = (None, None);
    }

    /// Runs the next operation, or commits after the last.
    #[inline]
    pub(crate) fn step(&mut self, store: &mut Store, mishaps: &Mishaps, rng: &mut Rng) {
        match self.plan.get(self.answers.len()) {
            Some(op) => {
                let answer = self.run(*op, store, rng);
                self.answers.push(answer);
            }
            None => self.outcome = Some(self.finish(store, mishaps, rng)),
        }
    }

    fn run(&mut self, op: PlannedOp, store: &mut Store, rng: &mut Rng) -> Answer {
        let txn = &mut self.txn;
        match op {
            PlannedOp::Read { key } => Answer::Register(store.read(txn, key, rng)),
            PlannedOp::ReadList { key } => Answer::List(store.read_list(txn, key, rng)),
            PlannedOp::Append { key, element } => {
                store.append(txn, key, element);
                Answer::Done
            }
            PlannedOp::InsertIfAbsent { key, value } => {
                let found = store.read(txn, key, rng);
                if found.is_none() {
                    store.write(txn, key, value);
                }
                Answer::Register(found)
            }
            PlannedOp::CompareAndSet { key, new } => {
                let found = store.read(txn, key, rng);
                if found == self.expected(key) {
                    store.write(&mut self.txn, key, new);
                }
                Answer::Register(found)
            }
            PlannedOp::Write { key, value } => {
                store.write(txn, key, value);
                Answer::Done
            }
            // Those of a table have clients of their own: `Config::validate` refuses them here.
            PlannedOp::Table(_) => Answer::Done,
        }
    }

    /// The versions that it made, if it has just committed: of registers the last value of each,
    /// of lists every element.
    pub(crate) fn versions(&self) -> impl Iterator<Item = (u64, i64)> + '_ {
        self.stamps.1.is_some().then(|| self.txn.versions()).into_iter().flatten()
    }

    /// What the compare-and-sets on a key ask for.
    pub(crate) fn expected(&self, key: u64) -> Option<i64> {
        self.known.iter().find(|(known, _)| *known == key).and_then(|(_, value)| *value)
    }
}

impl Ending<Store> for Flight {
    fn try_commit(&mut self, store: &mut Store, _: &mut Rng) -> bool {
        let snapshot = store.snapshot(&self.txn);
        let committed = store.commit(&mut self.txn).ok();
        self.stamps = (snapshot, committed);
        committed.is_some()
    }

    fn run_again(&mut self, store: &mut Store, rng: &mut Rng) {
        self.reran = true;
        store.restart(&mut self.txn);
        for at in 0..self.plan.len() {
            self.answers[at] = self.run(self.plan[at], store, rng);
        }
    }

    fn roll_back(&mut self, store: &mut Store) {
        store.rollback(&mut self.txn);
    }
}
