//! A connection to the simulated store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use isolario_sim::{Conflict, Intent, TableStore, TableTxn, Txn};
use isolario_workload::{Chance, Rng, RowValues as Row, TableOp};

use super::State;
use super::defect::Defect;
use crate::database::{
    Access, ConditionalResult, Connection, Receipt, RegisterValue, read_then_write,
};
use crate::error::DbError;
use crate::locked::locked;
use crate::table::TableResult;

/// How often a defect shows.
const SELDOM: f64 = 0.01;
/// How often a session pauses before an operation or a commit, and for how long at least.
const PAUSES: f64 = 1.0 / 16.0;
const PAUSE: Duration = Duration::from_micros(20);
/// The simulation is its own world: its chances need not differ from run to run.
const SEED: u64 = 0x0150_1a10;

pub(super) struct Session {
    shared: Arc<Mutex<State>>,
    number: u32,
    defect: Option<Defect>,
    seldom: Chance,
    pauses: Chance,
    rng: Rng,
    txn: Txn,
    /// The transaction in the store with a table, once it has an operation there.
    on_table: Option<TableTxn>,
    running: bool,
    writes: Vec<(u64, i64)>,
    appends: Vec<(u64, i64)>,
}

impl Session {
    pub(super) fn new(shared: Arc<Mutex<State>>, number: u32, defect: Option<Defect>) -> Session {
        Session {
            shared,
            number,
            defect,
            seldom: Chance::new(SELDOM),
            pauses: Chance::new(PAUSES),
            rng: Rng::derive(SEED, &[u64::from(number)]),
            txn: Txn::default(),
            on_table: None,
            running: false,
            writes: Vec::new(),
            appends: Vec::new(),
        }
    }

    /// Lets others have a turn, now and then. The store answers at once; without this, a session would
    /// run many transactions before anybody else gets a processor, and hardly ever meet another one.
    ///
    /// To yield the processor would not do: on a busy machine it goes to another process, for
    /// milliseconds, and sessions come to run one after the other. Whoever sleeps inside of a transaction
    /// lets other sessions pass, however busy the machine is.
    fn dawdle(&mut self) {
        if self.rng.happens(self.pauses) {
            std::thread::sleep(PAUSE);
        }
    }

    /// What a defect makes a read return, if this is the moment.
    fn wrong(&mut self, key: u64) -> Option<RegisterValue> {
        let defect = self.defect?;
        if !self.rng.happens(self.seldom) {
            return None;
        }
        match defect {
            // Values of clients are positive.
            Defect::ThinAir => Some(Some(-1 - self.rng.below(1 << 40) as i64)),
            Defect::Aborted | Defect::Intermediate => {
                locked(&self.shared).leftovers.take(key).map(Some)
            }
            Defect::NotOwn => {
                let is_own = self.writes.iter().any(|(written, _)| *written == key);
                is_own.then(|| locked(&self.shared).store.peek(&self.txn, key))
            }
        }
    }

    /// Whether a commit is refused for no other reason than that aborted values are wanted.
    fn is_refused(&mut self) -> bool {
        self.defect == Some(Defect::Aborted)
            && !self.writes.is_empty()
            && self.rng.happens(self.seldom)
    }

    fn commit_table(&mut self, txn: &mut TableTxn) -> Result<Receipt, DbError> {
        let mut state = locked(&self.shared);
        state.store.rollback(&mut self.txn);
        self.running = false;
        let snapshot = state.table.snapshot(txn);
        match state.table.commit(txn, &mut self.rng) {
            Ok(commit) => Ok(Receipt { snapshot, commit: Some(commit) }),
            Err(error) => {
                state.table.rollback(txn);
                Err(conflict(error))
            }
        }
    }

    /// Ends the transaction, and leaves what the defect may show later.
    fn over(&mut self, committed: bool) {
        self.running = false;
        let writes = std::mem::take(&mut self.writes);
        let mut state = locked(&self.shared);
        for (at, (key, value)) in writes.iter().enumerate() {
            let overwritten = writes[at + 1..].iter().any(|(later, _)| later == key);
            let left = match self.defect {
                Some(Defect::Aborted) => !committed,
                Some(Defect::Intermediate) => committed && overwritten,
                _ => false,
            };
            if left {
                state.leftovers.leave(*key, *value);
            }
        }
        drop(state);
        self.appends.clear();
    }
}

impl Connection for Session {
    fn begin(&mut self, access: Access) -> Result<(), DbError> {
        let intent = if access == Access::Read { Intent::Read } else { Intent::Update };
        locked(&self.shared).store.begin(&mut self.txn, self.number, intent, &mut self.rng);
        self.running = true;
        Ok(())
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        self.dawdle();
        if let Some(wrong) = self.wrong(key) {
            return Ok(wrong);
        }
        Ok(locked(&self.shared).store.read(&mut self.txn, key, &mut self.rng))
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        self.dawdle();
        locked(&self.shared).store.write(&mut self.txn, key, value);
        self.writes.push((key, value));
        Ok(())
    }

    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        self.dawdle();
        let mut state = locked(&self.shared);
        let length = state.store.read_list(&mut self.txn, key, &mut self.rng);
        elements.extend(state.store.elements(key).iter().take(length));
        let own = self.appends.iter().filter(|(list, _)| *list == key);
        elements.extend(own.map(|(_, element)| element));
        Ok(())
    }

    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        self.dawdle();
        locked(&self.shared).store.append(&mut self.txn, key, element);
        self.appends.push((key, element));
        Ok(())
    }

    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        read_then_write(self, key, expected, new)
    }

    fn table(&mut self, op: &TableOp, found: &mut TableResult) -> Result<(), DbError> {
        self.dawdle();
        let mut state = locked(&self.shared);
        let (number, rng) = (self.number, &mut self.rng);
        let txn = self.on_table.get_or_insert_with(|| {
            let mut txn = TableTxn::default();
            state.table.begin(&mut txn, number);
            txn
        });
        run_on_table(&mut state.table, txn, op, rng, found);
        Ok(())
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        self.dawdle();
        if let Some(mut txn) = self.on_table.take() {
            return self.commit_table(&mut txn);
        }
        if self.is_refused() {
            return Err(DbError::retryable("refused at random").with_code("refused"));
        }
        let mut state = locked(&self.shared);
        let snapshot = state.store.snapshot(&self.txn);
        let commit = state.store.commit(&mut self.txn);
        drop(state);
        let commit = Some(commit.map_err(conflict)?);
        self.over(true);
        Ok(Receipt { snapshot, commit })
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        if let Some(mut txn) = self.on_table.take() {
            locked(&self.shared).table.rollback(&mut txn);
        }
        if self.running {
            locked(&self.shared).store.rollback(&mut self.txn);
            self.over(false);
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Rolling back never fails here.
        let _ = self.rollback();
        locked(&self.shared).free.push(self.number);
    }
}

fn conflict(error: Conflict) -> DbError {
    DbError::retryable(error.to_string()).with_code("conflict")
}

/// Runs an operation. Increments are read and update to their clients.
fn run_on_table(
    store: &mut TableStore,
    txn: &mut TableTxn,
    op: &TableOp,
    rng: &mut Rng,
    found: &mut TableResult,
) {
    match *op {
        TableOp::Insert { key, held } => store.write(txn, key, Some(held)),
        TableOp::Update { key, held } => {
            if store.read(txn, key).is_some() {
                store.write(txn, key, Some(held));
                found.rows.push((key, Some(held)));
            }
        }
        TableOp::Read { key } | TableOp::Increment { key, .. } => {
            found.rows.extend(store.read(txn, key).map(|held| (key, Some(held))));
        }
        TableOp::RangeRead { range }
        | TableOp::RangeUpdate { range, .. }
        | TableOp::Delete { range, .. }
        | TableOp::Aggregate { range, .. } => {
            let (rows, _) = store.scan(txn, range, rng);
            if let TableOp::Aggregate { function, .. } = op {
                found.value = function.over(rows.iter().map(|(_, held)| held));
            }
            for (key, held) in rows {
                let held = match *op {
                    TableOp::RangeUpdate { b, version, .. } => Some(Row { b, version, ..held }),
                    TableOp::Delete { .. } => None,
                    _ => Some(held),
                };
                if op.writes() {
                    store.write(txn, key, held);
                }
                found.rows.push((key, held));
            }
        }
    }
}
