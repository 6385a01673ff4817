//! Plans of transactions on a table.

use isolario_predicate::{Aggregate, Expr, ExprError, Literal, Predicate};

use crate::alias::AliasTable;
use crate::distribution::Distribution;
use crate::mix::{Mix, TableOpKind};
use crate::plan::AttemptedTxn;
use crate::rng::Rng;
use crate::sampler::Sampler;
use crate::shape::{Workload, WorkloadError};

/// The shape of a workload on one table: a key, two columns of numbers from 0 to 999 that
/// ranges are about, and a column that tells versions of a row apart.
#[derive(Clone, Debug, PartialEq)]
pub struct TableWorkload {
    /// Operations per transaction.
    pub ops: u32,
    /// How many rows there may be.
    pub keys: u32,
    /// How operations on single rows spread over keys.
    pub distribution: Distribution,
    /// How often each kind of operation comes.
    pub mix: Mix,
}

/// Five operations on a thousand rows, as in Emme's evaluation (Section 8.2).
impl Default for TableWorkload {
    fn default() -> Self {
        TableWorkload {
            ops: 5,
            keys: 1000,
            distribution: Distribution::Uniform,
            mix: Mix::default(),
        }
    }
}

/// The part of a workload that is about a table.
impl From<&Workload> for TableWorkload {
    fn from(workload: &Workload) -> Self {
        let Workload { ops, keys, distribution, mix, .. } = *workload;
        TableWorkload { ops, keys, distribution, mix }
    }
}

impl TableWorkload {
    /// Says what is wrong with the knobs, if anything is.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        for (count, name) in [(self.ops, "operations"), (self.keys, "keys")] {
            if count == 0 {
                return Err(WorkloadError::Zero(name));
            }
        }
        Ok(self.distribution.validate()?)
    }
}

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowValues {
    /// A column that ranges are about.
    pub a: i64,
    /// The other one.
    pub b: i64,
    /// Which version of the row it is: no two writes of a row have the same.
    pub version: i64,
}

impl RowValues {
    /// What an increment makes of it. Values stay among those that ranges are about.
    #[must_use]
    pub fn incremented(self, version: i64) -> RowValues {
        RowValues { a: (self.a + 1) % VALUES as i64, version, ..self }
    }
}

/// A column that ranges are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// [`RowValues::a`].
    A,
    /// [`RowValues::b`].
    B,
}

impl Column {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Column::A => "a",
            Column::B => "b",
        }
    }

    /// Its value in a row.
    pub fn of(self, held: &RowValues) -> i64 {
        match self {
            Column::A => held.a,
            Column::B => held.b,
        }
    }
}

/// The rows of which a column lies between two bounds, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRange {
    /// The column.
    pub column: Column,
    /// The lower bound.
    pub low: i64,
    /// The upper bound.
    pub high: i64,
}

impl ValueRange {
    /// Whether a row is in it; one that is not there never is.
    #[inline]
    pub fn matches(&self, held: Option<RowValues>) -> bool {
        held.is_some_and(|held| (self.low..=self.high).contains(&self.column.of(&held)))
    }

    /// `FROM t WHERE a BETWEEN 3 AND 12`.
    pub fn predicate(&self, table: &str) -> Result<Predicate, ExprError> {
        let bound = |bound: i64| Expr::literal(Literal::Int(bound));
        let between = Expr::column(self.column.name()).between(bound(self.low), bound(self.high));
        Predicate::rows(table, between?)
    }
}

/// A function over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// How many there are.
    Count,
    /// The sum of a column.
    Sum(Column),
    /// Its least value.
    Min(Column),
    /// Its greatest value.
    Max(Column),
}

impl Function {
    /// The function in the language of predicates.
    pub fn aggregate(self) -> Result<Aggregate, ExprError> {
        let column = |column: Column| Expr::column(column.name());
        match self {
            Function::Count => Ok(Aggregate::Count),
            Function::Sum(of) => Aggregate::sum(column(of)),
            Function::Min(of) => Ok(Aggregate::Min(column(of))),
            Function::Max(of) => Ok(Aggregate::Max(column(of))),
        }
    }

    /// Its value over rows; nothing over none, except for their number.
    pub fn over<'h>(self, rows: impl Iterator<Item = &'h RowValues>) -> Option<i64> {
        match self {
            Function::Count => Some(rows.count() as i64),
            Function::Sum(column) => {
                rows.map(|held| column.of(held)).reduce(|sum, next| sum + next)
            }
            Function::Min(column) => rows.map(|held| column.of(held)).min(),
            Function::Max(column) => rows.map(|held| column.of(held)).max(),
        }
    }
}

/// An operation on a table to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableOp {
    /// Insert a row, or update it if it is there.
    Insert {
        /// Which row.
        key: u32,
        /// What it is to hold.
        held: RowValues,
    },
    /// Update a row if it is there.
    Update {
        /// Which row.
        key: u32,
        /// What it is to hold.
        held: RowValues,
    },
    /// Read a row.
    Read {
        /// Which row.
        key: u32,
    },
    /// Read a row and, if it is there, update it to the next value of [`RowValues::a`].
    Increment {
        /// Which row.
        key: u32,
        /// Its new version.
        version: i64,
    },
    /// Read the rows of a range.
    RangeRead {
        /// Which rows.
        range: ValueRange,
    },
    /// Set [`RowValues::b`] of the rows of a range.
    RangeUpdate {
        /// Which rows.
        range: ValueRange,
        /// The new value.
        b: i64,
        /// Their new version.
        version: i64,
    },
    /// Delete the rows of a range.
    Delete {
        /// Which rows.
        range: ValueRange,
        /// Their last version, for databases that cannot tell which rows they deleted: there, the
        /// rows are marked with it before they go.
        version: i64,
    },
    /// Compute a function over the rows of a range.
    Aggregate {
        /// The function.
        function: Function,
        /// Which rows.
        range: ValueRange,
    },
}

impl TableOp {
    /// Whether it may change the table.
    pub fn writes(&self) -> bool {
        match self {
            TableOp::Insert { .. }
            | TableOp::Update { .. }
            | TableOp::Increment { .. }
            | TableOp::RangeUpdate { .. }
            | TableOp::Delete { .. } => true,
            TableOp::Read { .. } | TableOp::RangeRead { .. } | TableOp::Aggregate { .. } => false,
        }
    }

    /// The operation itself, or a read of its rows in place of a change.
    #[must_use]
    pub fn without_writing(self) -> TableOp {
        match self {
            TableOp::Insert { key, .. }
            | TableOp::Update { key, .. }
            | TableOp::Increment { key, .. } => TableOp::Read { key },
            TableOp::RangeUpdate { range, .. } | TableOp::Delete { range, .. } => {
                TableOp::RangeRead { range }
            }
            read => read,
        }
    }
}

/// How many values a column may have.
const VALUES: u64 = 1000;
/// How many of them a range covers: one in a hundred.
const RANGE: u64 = 10;

/// Makes the plans of a [`TableWorkload`].
#[derive(Clone, Debug)]
pub struct TablePlanner {
    ops: u32,
    sessions: u32,
    seed: u64,
    sampler: Sampler,
    kinds: AliasTable,
    /// How many attempts of a transaction have versions of their own.
    attempts: u32,
}

impl TablePlanner {
    /// Prepares the plans of this many sessions.
    pub fn new(
        workload: &TableWorkload,
        sessions: u32,
        seed: u64,
    ) -> Result<TablePlanner, WorkloadError> {
        workload.validate()?;
        if sessions == 0 {
            return Err(WorkloadError::Zero("sessions"));
        }
        let shares = TableOpKind::ALL.map(|kind| workload.mix.share(kind));
        Ok(TablePlanner {
            ops: workload.ops,
            sessions,
            seed,
            sampler: Sampler::new(workload.distribution, workload.keys),
            kinds: AliasTable::new(shares.to_vec()),
            attempts: 1,
        })
    }

    /// Prepares for transactions that are tried up to so many times.
    #[must_use]
    pub fn with_attempts(self, attempts: u32) -> TablePlanner {
        TablePlanner { attempts: attempts.max(1), ..self }
    }

    /// The operations of one transaction.
    pub fn ops(&self, place: AttemptedTxn) -> impl Iterator<Item = TableOp> + '_ {
        let mut rng = Rng::derive(self.seed, &[u64::from(place.session), place.position]);
        (0..self.ops).map(move |op| {
            let kind = TableOpKind::ALL[self.kinds.sample(&mut rng) as usize];
            self.op(kind, self.version(place, op), &mut rng)
        })
    }

    /// A number that no other attempt at a transaction has.
    pub fn name(&self, place: AttemptedTxn) -> i64 {
        let txn = place.position * u64::from(self.sessions) + u64::from(place.session);
        (1 + txn * u64::from(self.attempts) + u64::from(place.attempt)) as i64
    }

    /// A number that no other operation has: the transaction, and the operation within it.
    fn version(&self, place: AttemptedTxn, op: u32) -> i64 {
        1 + (self.name(place) - 1) * i64::from(self.ops) + i64::from(op)
    }

    fn op(&self, kind: TableOpKind, version: i64, rng: &mut Rng) -> TableOp {
        let key = self.sampler.sample(rng) as u32;
        let held = RowValues { a: rng.below(VALUES) as i64, b: rng.below(VALUES) as i64, version };
        match kind {
            TableOpKind::Insert => TableOp::Insert { key, held },
            TableOpKind::Update => TableOp::Update { key, held },
            TableOpKind::Read => TableOp::Read { key },
            TableOpKind::Increment => TableOp::Increment { key, version },
            TableOpKind::RangeRead => TableOp::RangeRead { range: any_range(rng) },
            // Updates are by the column that they leave alone. Rows that once got the same value would
            // otherwise stay together, and ranges would find more and more of them.
            TableOpKind::RangeUpdate => {
                TableOp::RangeUpdate { range: range(Column::A, rng), b: held.b, version }
            }
            TableOpKind::Delete => TableOp::Delete { range: any_range(rng), version },
            TableOpKind::Aggregate => {
                let range = any_range(rng);
                TableOp::Aggregate { function: any_function(rng), range }
            }
        }
    }
}

fn any_range(rng: &mut Rng) -> ValueRange {
    let column = if rng.below(2) == 0 { Column::A } else { Column::B };
    range(column, rng)
}

fn range(column: Column, rng: &mut Rng) -> ValueRange {
    let low = rng.below(VALUES - RANGE + 1) as i64;
    ValueRange { column, low, high: low + RANGE as i64 - 1 }
}

fn any_function(rng: &mut Rng) -> Function {
    let column = if rng.below(2) == 0 { Column::A } else { Column::B };
    match rng.below(4) {
        0 => Function::Count,
        1 => Function::Sum(column),
        2 => Function::Min(column),
        _ => Function::Max(column),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn plans_keep_their_mix_and_their_versions_apart() {
        let planner = TablePlanner::new(&TableWorkload::default(), 4, 7).unwrap();
        let (mut kinds, mut versions) = ([0_u32; 2], BTreeSet::new());
        for place in
            (0..500).flat_map(|position| (0..4).map(move |s| AttemptedTxn::first(s, position)))
        {
            let plan: Vec<_> = planner.ops(place).collect();
            assert_eq!(plan.len(), 5);
            for op in plan {
                match op {
                    TableOp::Insert { held, .. } => {
                        kinds[0] += u32::from(versions.insert(held.version));
                    }
                    TableOp::Update { held, .. } => {
                        kinds[1] += u32::from(versions.insert(held.version));
                    }
                    TableOp::Increment { version, .. } | TableOp::RangeUpdate { version, .. } => {
                        assert!(versions.insert(version));
                    }
                    _ => {}
                }
            }
        }
        assert!((900..1100).contains(&kinds[0]), "{kinds:?}");
        assert!((3450..3750).contains(&kinds[1]), "{kinds:?}");
    }

    #[test]
    fn another_attempt_asks_for_the_same_with_other_versions() {
        let planner = TablePlanner::new(&TableWorkload::default(), 2, 5).unwrap().with_attempts(3);
        let (mut names, mut versions) = (BTreeSet::new(), BTreeSet::new());
        for position in 0..50 {
            let reads = [0, 1, 2].map(|attempt| {
                let place = AttemptedTxn { session: 1, position, attempt };
                assert!(names.insert(planner.name(place)));
                let ops = planner.ops(place);
                ops.map(|op| {
                    if let TableOp::Insert { held, .. } | TableOp::Update { held, .. } = op {
                        assert!(versions.insert(held.version));
                    }
                    op.without_writing()
                })
                .collect::<Vec<_>>()
            });
            assert!(reads.iter().all(|ops| *ops == reads[0]));
        }
    }

    #[test]
    fn wrong_knobs_are_named() {
        let none = TableWorkload { keys: 0, ..TableWorkload::default() };
        assert_eq!(none.validate(), Err(WorkloadError::Zero("keys")));
        let sessions = TablePlanner::new(&TableWorkload::default(), 0, 1).map(|_| ());
        assert_eq!(sessions, Err(WorkloadError::Zero("sessions")));
    }

    #[test]
    fn a_range_holds_rows_that_are_there() {
        let range = ValueRange { column: Column::B, low: 3, high: 5 };
        let held = |b| Some(RowValues { a: 0, b, version: 1 });
        assert!(range.matches(held(3)) && range.matches(held(5)));
        assert!(!range.matches(held(6)) && !range.matches(None));
    }
}
