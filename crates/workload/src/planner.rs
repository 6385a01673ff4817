//! Makes the plans of the built-in workloads.

use crate::application::{Application, KeyNames, Past, Schema};
use crate::mini::{MiniOp, READ_ONLY, SLOW_READ_ONLY, SLOW_UPDATES, UPDATES};
use crate::plan::{AttemptedTxn, Generator, PlannedOp, Rendezvous};
use crate::rng::{Chance, Rng};
use crate::sampler::Sampler;
use crate::shape::{Kind, Workload, WorkloadError};
use crate::table::{TablePlanner, TableWorkload};
use crate::turnover::{self, Turnover};

/// Values that repeat are from 1 to this; unique values are above.
const REPEATED_VALUES: u64 = 4;

/// Positions that a session may be ahead of the slowest one where some transactions are slow: few enough that
/// the next key is mostly absent when a slow transaction begins, and in use when it goes on.
const MAX_LEAD: u32 = 3;

/// Transactions of all sessions within the lead at least, so that few sessions, too, can go on for a while
/// without the slowest one.
const TXNS_AHEAD: u32 = 30;

/// Distinguishes the draws of slow transactions from those of operations.
const SLOW: u64 = 0x510e;

/// Makes the plans of a [`Workload`].
#[derive(Clone, Debug)]
pub struct Planner {
    workload: Workload,
    sessions: u32,
    seed: u64,
    sampler: Sampler,
    /// The keys behind what the sampler draws, unless they are lists.
    turnover: Turnover,
    reads: Chance,
    /// Of what is not a read: read-modify-writes.
    rmw: Chance,
    duplicates: Chance,
    slow: Chance,
    /// How many positions of a session a list lasts.
    list_positions: u64,
    /// How many attempts of a transaction have values of their own.
    attempts: u32,
    /// The plans of a workload on a table.
    table: Option<TablePlanner>,
}

/// What a general transaction does next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Read,
    Write,
    ReadModifyWrite,
}

impl Planner {
    /// Prepares the plans of this many sessions.
    pub fn new(workload: &Workload, sessions: u32, seed: u64) -> Result<Planner, WorkloadError> {
        workload.validate()?;
        if sessions == 0 {
            return Err(WorkloadError::Zero("sessions"));
        }
        if let Some(aim) = workload.aim
            && (sessions < aim.parts() || workload.keys < aim.keys(sessions))
        {
            let (sessions, keys) = (aim.parts(), aim.keys(sessions));
            return Err(WorkloadError::TooFew { aim, sessions, keys });
        }
        let writes = 1.0 - workload.read_ratio;
        Ok(Planner {
            workload: workload.clone(),
            sessions,
            seed,
            sampler: Sampler::new(workload.distribution, workload.keys),
            turnover: Turnover::of(workload, sessions),
            reads: Chance::new(workload.read_ratio),
            rmw: Chance::new(if writes > 0.0 { workload.rmw_ratio / writes } else { 0.0 }),
            duplicates: Chance::new(workload.duplicate_ratio),
            slow: Chance::new(workload.slow_share()),
            list_positions: turnover::positions(workload, sessions, workload.list_length.into()),
            attempts: 1,
            table: match workload.kind {
                Kind::Predicate => {
                    Some(TablePlanner::new(&TableWorkload::from(workload), sessions, seed)?)
                }
                _ => None,
            },
        })
    }

    /// Prepares for transactions that are tried up to so many times.
    #[must_use]
    pub fn with_attempts(self, attempts: u32) -> Planner {
        let table = self.table.map(|table| table.with_attempts(attempts));
        Planner { attempts: attempts.max(1), table, ..self }
    }

    /// Leaves the keys below this one to others, but for those that exist before the run.
    #[must_use]
    pub fn with_absent_keys_from(self, first: u64) -> Planner {
        Planner { turnover: self.turnover.starting_at(first), ..self }
    }

    /// A value that no other operation writes: numbered by position, session, attempt and
    /// operation, so that values stay short.
    fn unique_value(&self, place: AttemptedTxn, op: usize) -> i64 {
        let txn = place.position * u64::from(self.sessions) + u64::from(place.session);
        let attempt = txn * u64::from(self.attempts) + u64::from(place.attempt);
        (1 + REPEATED_VALUES + attempt * u64::from(self.workload.max_ops()) + op as u64) as i64
    }

    /// A unique value, or one that repeats.
    fn value(&self, place: AttemptedTxn, op: usize, rng: &mut Rng) -> i64 {
        if rng.happens(self.duplicates) {
            1 + rng.below(REPEATED_VALUES) as i64
        } else {
            self.unique_value(place, op)
        }
    }

    fn mini(&self, place: AttemptedTxn, rng: &mut Rng, plan: &mut Vec<PlannedOp>) {
        let (shape, keys) = match self.workload.aim {
            Some(aim) => aim.part(place.session),
            None => self.by_chance(self.is_slow(place), rng),
        };
        let mut keys = keys.map(|slot| self.turnover.key(slot, place.position));
        if let Some(next) = self.next_key(place) {
            keys[1] = next;
        }
        for (at, step) in shape.iter().enumerate() {
            plan.push(match *step {
                MiniOp::R(key) => PlannedOp::Read { key: keys[key] },
                MiniOp::W(key) => {
                    PlannedOp::Write { key: keys[key], value: self.value(place, at, rng) }
                }
            });
        }
    }

    /// Any shape of a mini-transaction, on any two keys.
    fn by_chance(&self, is_slow: bool, rng: &mut Rng) -> (&'static [MiniOp], [u64; 2]) {
        let shapes = match (rng.happens(self.reads), is_slow) {
            (true, false) => READ_ONLY,
            (false, false) => UPDATES,
            (true, true) => SLOW_READ_ONLY,
            (false, true) => SLOW_UPDATES,
        };
        let shape = shapes[rng.below(shapes.len() as u64) as usize];
        let first = self.sampler.sample(rng);
        let mut second = self.sampler.sample(rng);
        // Two keys where there are two: the neighbour is about as popular.
        if second == first && self.workload.keys > 1 {
            second = if first + 1 < u64::from(self.workload.keys) { first + 1 } else { first - 1 };
        }
        (shape, [first, second])
    }

    /// The key that is the second one of a transaction, if it is slow: the next to come into use.
    fn next_key(&self, txn: AttemptedTxn) -> Option<u64> {
        self.is_slow(txn).then(|| self.turnover.next_key(txn.position)).flatten()
    }

    fn action(&self, rng: &mut Rng) -> Action {
        if rng.happens(self.reads) {
            Action::Read
        } else if rng.happens(self.rmw) {
            Action::ReadModifyWrite
        } else {
            Action::Write
        }
    }

    fn general(&self, place: AttemptedTxn, rng: &mut Rng, plan: &mut Vec<PlannedOp>) {
        let ops = self.workload.ops as usize;
        let whole = self.workload.one_kind_per_txn.then(|| self.action(rng));
        let mut second = self.next_key(place);
        while plan.len() < ops {
            let mut key = self.turnover.key(self.sampler.sample(rng), place.position);
            if !plan.is_empty() {
                key = second.take().unwrap_or(key);
            }
            let action = whole.unwrap_or_else(|| self.action(rng));
            // A read-modify-write for which there is no room left is its read alone.
            if action != Action::Write {
                plan.push(PlannedOp::Read { key });
            }
            if action != Action::Read && plan.len() < ops {
                plan.push(PlannedOp::Write { key, value: self.value(place, plan.len(), rng) });
            }
        }
    }

    fn played(&self, application: Application, place: AttemptedTxn, plan: &mut Vec<PlannedOp>) {
        let (sessions, scale) = (u64::from(self.sessions), u64::from(self.workload.scale));
        let past = Past { seed: self.seed, sessions, scale };
        let number = place.position * sessions + u64::from(place.session);
        let value = |op| self.unique_value(place, op);
        application.plan(&past, number, plan, &value);
    }

    fn append(&self, place: AttemptedTxn, rng: &mut Rng, plan: &mut Vec<PlannedOp>) {
        let first = self.first_key(place.position);
        for at in 0..self.workload.ops as usize {
            let key = first + self.sampler.sample(rng);
            plan.push(if rng.happens(self.reads) {
                PlannedOp::ReadList { key }
            } else {
                // An element is never repeated: a list with one twice is wrong at any level.
                PlannedOp::Append { key, element: self.unique_value(place, at) }
            });
        }
    }

    fn lightweight(&self, place: AttemptedTxn, rng: &mut Rng, plan: &mut Vec<PlannedOp>) {
        let key = self.sampler.sample(rng);
        if rng.happens(self.reads) {
            plan.push(PlannedOp::Read { key });
            return;
        }
        let value = self.value(place, 0, rng);
        // Inserts matter once per key; a few keep failing ones coming.
        plan.push(if rng.below(8) == 0 {
            PlannedOp::InsertIfAbsent { key, value }
        } else {
            PlannedOp::CompareAndSet { key, new: value }
        });
    }
}

impl Generator for Planner {
    fn plan(&self, place: AttemptedTxn, plan: &mut Vec<PlannedOp>) {
        if let Some(table) = &self.table {
            return plan.extend(table.ops(place).map(PlannedOp::Table));
        }
        if let Some(application) = self.workload.application {
            return self.played(application, place, plan);
        }
        let mut rng = Rng::derive(self.seed, &[u64::from(place.session), place.position]);
        match self.workload.kind {
            Kind::Mini => self.mini(place, &mut rng, plan),
            Kind::General => self.general(place, &mut rng, plan),
            Kind::Append => self.append(place, &mut rng, plan),
            Kind::Lwt => self.lightweight(place, &mut rng, plan),
            Kind::Predicate => {}
        }
    }

    fn rendezvous(&self, session: u32) -> Option<Rendezvous> {
        self.workload.aim.map(|aim| aim.rendezvous(session))
    }

    fn is_slow(&self, txn: AttemptedTxn) -> bool {
        let path = [u64::from(txn.session), txn.position, SLOW];
        Rng::derive(self.seed, &path).happens(self.slow)
    }

    fn max_lead(&self) -> Option<u64> {
        let lead = TXNS_AHEAD.div_ceil(self.sessions).max(MAX_LEAD);
        (self.workload.slow_share() > 0.0).then_some(lead.into())
    }

    fn key_names(&self) -> Option<KeyNames> {
        Schema::of(&self.workload).map(Schema::names)
    }

    fn name(&self, place: AttemptedTxn) -> Option<i64> {
        self.table.as_ref().map(|table| table.name(place))
    }

    fn keys(&self, positions: u64) -> Option<u64> {
        let last = positions.saturating_sub(1);
        let next = self.max_lead().and_then(|_| self.turnover.next_key(last));
        let used = self.turnover.keys(positions).max(next.map_or(0, |next| next + 1));
        Some(self.first_key(last) + used)
    }

    /// Lists are replaced, all at once, when they are as long as asked for on average: a key that
    /// was appended to for ever would make the history grow with the square of its length.
    fn first_key(&self, position: u64) -> u64 {
        match self.workload.kind {
            Kind::Append => position / self.list_positions * u64::from(self.workload.keys),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use crate::aim::Aim;

    fn plans(workload: &Workload, sessions: u32, positions: u64) -> Vec<Vec<PlannedOp>> {
        let planner = Planner::new(workload, sessions, 5).unwrap();
        let places = (0..positions).flat_map(|position| {
            (0..sessions).map(move |session| AttemptedTxn::first(session, position))
        });
        places
            .map(|place| {
                let mut plan = Vec::new();
                planner.plan(place, &mut plan);
                plan
            })
            .collect()
    }

    fn written(op: &PlannedOp) -> Option<i64> {
        match *op {
            PlannedOp::Write { value, .. } | PlannedOp::InsertIfAbsent { value, .. } => Some(value),
            PlannedOp::CompareAndSet { new, .. } => Some(new),
            PlannedOp::Append { element, .. } => Some(element),
            PlannedOp::Read { .. } | PlannedOp::ReadList { .. } | PlannedOp::Table(_) => None,
        }
    }

    #[test]
    fn values_are_unique_and_never_the_initial_one() {
        for kind in Kind::KEYED {
            let workload = Workload { kind, keys: 3, ..Workload::default() };
            let plans = plans(&workload, 4, 200);
            let values: Vec<i64> = plans.iter().flatten().filter_map(written).collect();
            assert!(values.len() > 100);
            assert_eq!(values.iter().collect::<BTreeSet<_>>().len(), values.len(), "{kind}");
            assert!(values.iter().all(|value| *value > 0));
        }
    }

    #[test]
    fn another_attempt_touches_the_same_keys_with_other_values() {
        for kind in Kind::KEYED {
            let workload = Workload { kind, keys: 3, read_ratio: 0.2, ..Workload::default() };
            let planner = Planner::new(&workload, 2, 5).unwrap().with_attempts(3);
            let mut values = BTreeSet::new();
            for position in 0..50 {
                let plans = [0, 1, 2].map(|attempt| {
                    let mut plan = Vec::new();
                    planner.plan(AttemptedTxn { session: 1, position, attempt }, &mut plan);
                    plan
                });
                let keys = |plan: &[PlannedOp]| plan.iter().map(PlannedOp::key).collect::<Vec<_>>();
                assert!(plans.iter().all(|plan| keys(plan) == keys(&plans[0])), "{kind}");
                for value in plans.iter().flatten().filter_map(written) {
                    assert!(values.insert(value), "{kind}: {value} twice");
                }
            }
        }
    }

    #[test]
    fn duplicates_come_as_often_as_asked_for() {
        let workload = Workload { duplicate_ratio: 0.5, read_ratio: 0.0, ..Workload::default() };
        let plans = plans(&workload, 4, 500);
        let values: Vec<i64> = plans.iter().flatten().filter_map(written).collect();
        let repeated = values.iter().filter(|value| **value <= 4).count();
        assert!((0.45..0.55).contains(&(repeated as f64 / values.len() as f64)));
    }

    #[test]
    fn general_keeps_its_shares() {
        let kind = Kind::General;
        let workload =
            Workload { kind, ops: 20, read_ratio: 0.25, rmw_ratio: 0.5, ..Workload::default() };
        let plans = plans(&workload, 4, 500);
        assert!(plans.iter().all(|plan| plan.len() == 20));
        let ops = plans.iter().flatten().count();
        let writes = plans.iter().flatten().filter(|op| op.writes()).count();
        // Of four choices one is a read and three write; two of those read first.
        assert!((0.48..0.52).contains(&(writes as f64 / ops as f64)), "{writes} of {ops}");
    }

    #[test]
    fn transactions_of_one_kind_are() {
        let kind = Kind::General;
        let workload = Workload { kind, one_kind_per_txn: true, ..Workload::default() };
        for plan in plans(&workload, 2, 100) {
            assert!(plan.iter().all(|op| op.writes() == plan[0].writes()));
        }
    }

    #[test]
    fn slow_transactions_have_a_share_and_a_key_to_come() {
        for kind in [Kind::Mini, Kind::General] {
            let slow = Workload { kind, keys: 10, absent_ratio: 0.5, ..Workload::default() };
            let slow = Workload { slow_ratio: 0.25, read_ratio: 0.2, ..slow };
            let planner = Planner::new(&slow, 4, 5).unwrap();
            let without = Workload { slow_ratio: 0.0, ..slow.clone() };
            let without = Planner::new(&without, 4, 5).unwrap();
            let (mut count, mut keys_in_use) = (0, BTreeSet::new());
            for position in 0..500 {
                keys_in_use.extend((0..10).map(|slot| planner.turnover.key(slot, position)));
                for session in 0..4 {
                    let txn = AttemptedTxn::first(session, position);
                    let of = |planner: &Planner| {
                        let mut plan = Vec::new();
                        planner.plan(txn, &mut plan);
                        plan
                    };
                    let plan = of(&planner);
                    let keys: BTreeSet<u64> = plan.iter().filter_map(PlannedOp::key).collect();
                    assert!(keys.iter().all(|key| *key < planner.keys(position + 1).unwrap()));
                    if !planner.is_slow(txn) {
                        assert_eq!(plan, of(&without));
                        assert!(keys.is_subset(&keys_in_use));
                        continue;
                    }
                    count += 1;
                    let to_come: Vec<&u64> = keys.difference(&keys_in_use).collect();
                    assert_eq!(to_come, [&planner.turnover.next_key(position).unwrap()]);
                    assert_eq!(plan, of(&Planner::new(&slow, 4, 5).unwrap()), "again");
                    if kind == Kind::Mini {
                        let reads = plan.iter().filter(|op| !op.writes()).map(PlannedOp::key);
                        assert_eq!(reads.collect::<BTreeSet<_>>().len(), 2);
                        let is_to_come = |op: &&PlannedOp| op.key() == Some(*to_come[0]);
                        assert!(!plan.iter().filter(is_to_come).any(PlannedOp::writes));
                    }
                }
            }
            assert!((430..570).contains(&count), "{kind}: {count} of 2000");
            assert_eq!((planner.max_lead(), without.max_lead()), (Some(8), None));
        }
        let aim = Some(Aim::WriteSkew);
        let aimed = Workload { slow_ratio: 1.0, absent_ratio: 0.5, aim, ..Workload::default() };
        let append = Workload { kind: Kind::Append, slow_ratio: 1.0, ..Workload::default() };
        for none in [aimed, append] {
            let planner = Planner::new(&none, 8, 5).unwrap();
            assert!((0..50).all(|at| !planner.is_slow(AttemptedTxn::first(0, at))));
            assert_eq!(planner.max_lead(), None);
        }
    }

    #[test]
    fn lists_are_replaced_when_they_are_long_enough() {
        let kind = Kind::Append;
        let workload = Workload { kind, keys: 4, ops: 2, list_length: 10, ..Workload::default() };
        let planner = Planner::new(&workload, 4, 5).unwrap();
        // Four sessions append once per transaction on average: 40 elements take ten positions.
        let firsts: Vec<u64> = [0, 9, 10, 25].map(|position| planner.first_key(position)).to_vec();
        assert_eq!(firsts, [0, 0, 4, 8]);
        let never = Workload { read_ratio: 1.0, ..workload };
        assert_eq!(Planner::new(&never, 4, 5).unwrap().first_key(1 << 31), 0);
    }

    #[test]
    fn who_aims_plays_the_same_part_with_other_values() {
        let workload =
            Workload { keys: 8, aim: Some(Aim::WriteSkew), read_ratio: 0.9, ..Workload::default() };
        let plans = plans(&workload, 8, 50);
        let keys = |plan: &[PlannedOp]| plan.iter().map(PlannedOp::key).collect::<Vec<_>>();
        for (at, plan) in plans.iter().enumerate() {
            assert_eq!(keys(plan), keys(&plans[at % 8]));
            assert_eq!((plan.len(), plan[2].writes()), (3, true));
        }
        let values: BTreeSet<i64> = plans.iter().flatten().filter_map(written).collect();
        assert_eq!(values.len(), plans.len());
        let alone = Planner::new(&workload, 1, 5).unwrap_err().to_string();
        assert_eq!(alone, "to aim at write-skew, at least 2 sessions and 2 keys are required");
        let append = Workload { kind: Kind::Append, ..workload };
        assert!(Planner::new(&append, 8, 5).unwrap_err().to_string().contains("not append"));
    }

    #[test]
    fn mini_transactions_use_two_keys_where_there_are_two() {
        let workload = Workload { keys: 2, read_ratio: 0.0, ..Workload::default() };
        let plans = plans(&workload, 2, 200);
        for plan in plans.iter().filter(|plan| plan.len() == 4) {
            assert_eq!(plan.iter().map(PlannedOp::key).collect::<BTreeSet<_>>().len(), 2);
        }
        let single = Workload { keys: 1, ..workload };
        assert!(self::plans(&single, 2, 50).iter().flatten().all(|op| op.key() == Some(0)));
    }
}
