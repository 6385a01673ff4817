//! Applications whose transactions a run plays: those that the literature measures checkers on.
//!
//! A row of a table is a register. A plan cannot depend on what the database answers, so whoever
//! looks for orders, bids or tweets of others works out what those others ask for: every plan
//! follows from the seed. The rows of orders, bids and tweets that are long past are used again, so
//! that all rows are known beforehand.

mod rubis;
mod schema;
mod tpcc;
mod twitter;

use std::fmt;
use std::str::FromStr;

use crate::plan::PlannedOp;
use crate::rng::Rng;
use crate::shape::WorkloadError;

pub use schema::{KeyColumn, KeyNames, RowName, Rows, Schema, Table};

/// An application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Application {
    /// A wholesale supplier: the five transactions of the TPC-C benchmark at their usual shares.
    /// Each warehouse has 10 districts of 30 customers and 1,000 items, which is a hundredth of the
    /// standard's; a delivery is of one district.
    Tpcc,
    /// An auction site after RUBiS: browsing, bidding, buying, selling and comments.
    Rubis,
    /// A Twitter clone: tweets, followers and timelines.
    Twitter,
}

impl Application {
    /// Every application.
    pub const ALL: [Application; 3] = [Application::Tpcc, Application::Rubis, Application::Twitter];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Application::Tpcc => "tpcc",
            Application::Rubis => "rubis",
            Application::Twitter => "twitter",
        }
    }

    /// The most operations a transaction can have.
    pub(crate) fn max_ops(self) -> u32 {
        match self {
            Application::Tpcc => tpcc::MAX_OPS,
            Application::Rubis => rubis::MAX_OPS,
            Application::Twitter => twitter::MAX_OPS,
        }
    }

    /// How many keys it takes at a scale.
    pub fn keys(self, scale: u32) -> u32 {
        u32::try_from(Schema::new(self, scale.into()).rows()).unwrap_or(u32::MAX)
    }

    /// Its tables.
    pub fn tables(self) -> &'static [Table] {
        match self {
            Application::Tpcc => &tpcc::TABLES,
            Application::Rubis => &rubis::TABLES,
            Application::Twitter => &twitter::TABLES,
        }
    }

    /// Adds the operations of a transaction.
    pub(crate) fn plan(
        self,
        past: &Past,
        number: u64,
        plan: &mut Vec<PlannedOp>,
        value: &dyn Fn(usize) -> i64,
    ) {
        let steps = &mut Steps { plan, value, counts: counts(Schema::new(self, past.scale)) };
        match self {
            Application::Tpcc => tpcc::plan(past, number, steps),
            Application::Rubis => rubis::plan(past, number, steps),
            Application::Twitter => twitter::plan(past, number, steps),
        }
    }
}

impl fmt::Display for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Application {
    type Err = WorkloadError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = |application: &Application| application.name() == name;
        let found = Application::ALL.into_iter().find(named);
        found.ok_or_else(|| WorkloadError::Kind(name.to_owned()))
    }
}

/// What all transactions ask for, past ones among them. They are numbered through: those of one
/// position come one session after the other.
pub(crate) struct Past {
    pub(crate) seed: u64,
    pub(crate) sessions: u64,
    /// How many warehouses, or hundreds of users, there are.
    pub(crate) scale: u64,
}

impl Past {
    /// The random numbers of a transaction.
    fn rng(&self, number: u64) -> Rng {
        Rng::derive(self.seed, &[number % self.sessions, number / self.sessions])
    }

    /// The transactions shortly before one, the nearest first.
    fn before(&self, number: u64, most: u64) -> impl Iterator<Item = u64> + use<> {
        (number.saturating_sub(most)..number).rev()
    }
}

/// Per table, how many rows it has. No application has more tables.
type Counts = [u64; 9];

fn counts(schema: Schema) -> Counts {
    let mut counts = Counts::default();
    counts.iter_mut().zip(schema.counts()).for_each(|(to, count)| *to = count);
    counts
}

/// How many rows there are of what every transaction may add to: more than anybody looks back.
const RING: u64 = 2000;

/// The operations of a transaction, in terms of tables and rows.
struct Steps<'p> {
    plan: &'p mut Vec<PlannedOp>,
    /// The value that the operation of a number writes, if it writes.
    value: &'p dyn Fn(usize) -> i64,
    counts: Counts,
}

impl Steps<'_> {
    /// The key of a row: tables come one after the other.
    fn key(&self, table: usize, row: u64) -> u64 {
        self.counts[..table].iter().sum::<u64>() + row % self.counts[table]
    }

    fn read(&mut self, table: usize, row: u64) {
        let key = self.key(table, row);
        self.plan.push(PlannedOp::Read { key });
    }

    fn write(&mut self, table: usize, row: u64) {
        let (key, value) = (self.key(table, row), (self.value)(self.plan.len()));
        self.plan.push(PlannedOp::Write { key, value });
    }

    /// Changes a row that is there.
    fn update(&mut self, table: usize, row: u64) {
        self.read(table, row);
        self.write(table, row);
    }
}

/// One of so many, the first ones far more often than the last.
fn popular(rng: &mut Rng, count: u64) -> u64 {
    let most = rng.below(count) + 1;
    rng.below(most)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{AttemptedTxn, Generator, Planner, Workload};

    fn plans(application: Application, scale: u32) -> Vec<Vec<PlannedOp>> {
        let workload = Workload::of_application(application, scale);
        let planner = Planner::new(&workload, 4, 7).unwrap();
        let places =
            (0..1000).flat_map(|position| (0..4).map(move |s| AttemptedTxn::first(s, position)));
        let plan = |place| {
            let mut plan = Vec::new();
            planner.plan(place, &mut plan);
            plan
        };
        places.map(plan).collect()
    }

    #[test]
    fn transactions_are_not_empty_nor_too_long_and_write_unique_values() {
        for application in Application::ALL {
            let mut values = HashSet::new();
            for plan in plans(application, 2) {
                assert!((1..=application.max_ops() as usize).contains(&plan.len()), "{plan:?}");
                for op in plan {
                    assert!(op.key().unwrap() < application.keys(2).into(), "{op:?}");
                    if let PlannedOp::Write { value, .. } = op {
                        assert!(values.insert(value), "{application}: {value}");
                    }
                }
            }
        }
    }

    /// Reads are of rows that others write: what was ordered is delivered, what was offered is bid for,
    /// what was tweeted is read.
    #[test]
    fn most_of_what_is_read_is_written_sooner_or_later() {
        for application in Application::ALL {
            let plans = plans(application, 1);
            let ops = || plans.iter().flatten();
            let written: HashSet<u64> =
                ops().filter(|op| op.writes()).filter_map(PlannedOp::key).collect();
            let reads: Vec<u64> =
                ops().filter(|op| !op.writes()).filter_map(PlannedOp::key).collect();
            let of_written = reads.iter().filter(|key| written.contains(key)).count();
            assert!(2 * of_written > reads.len(), "{application}: {of_written} of {}", reads.len());
        }
    }

    #[test]
    fn no_application_has_more_tables_than_are_counted() {
        for application in Application::ALL {
            assert!(application.tables().len() <= Counts::default().len(), "{application}");
        }
    }

    #[test]
    fn names_are_found() {
        for application in Application::ALL {
            assert_eq!(application.to_string().parse(), Ok(application));
        }
        assert!("tpch".parse::<Application>().is_err());
    }
}
