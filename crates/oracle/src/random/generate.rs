//! A loose store: transactions run one after the other, but some see an older state, and some reads
//! see any version at all. So most reads are plausible, and every level is now kept, now broken.

use isolario_model::{Initial, Outcome, Value};

use super::{Rng, Shape};
use crate::{Draft, DraftOp, DraftTxn};

/// A transaction's write of a key, in the order of execution.
struct Version {
    key: usize,
    value: Value,
    /// When its transaction ran.
    at: usize,
    session: usize,
    aborted: bool,
}

/// What a transaction sees: of each session, what it wrote before a moment.
type Snapshot = Vec<usize>;

/// Makes a history of a shape.
pub fn generate(shape: &Shape, rng: &mut Rng) -> Draft {
    let mut store = Store { shape, rng, versions: Vec::new(), next_value: 1 };
    let count = store.rng.between(shape.txns.0, shape.txns.1);
    let plans: Vec<Plan> = (0..count).map(|at| store.plan(at)).collect();
    let txns = plans.into_iter().map(|plan| store.run(plan)).collect();
    Draft { initial: shape.initial.clone(), txns }
}

/// A transaction before its reads have answers. All writes are planned first, so that a stray read
/// can see the future.
struct Plan {
    at: usize,
    session: usize,
    outcome: Outcome,
    ops: Vec<DraftOp>,
}

struct Store<'a> {
    shape: &'a Shape,
    rng: &'a mut Rng,
    versions: Vec<Version>,
    next_value: i64,
}

impl Store<'_> {
    fn plan(&mut self, at: usize) -> Plan {
        let outcome = match self.rng.below(100) {
            n if n < self.shape.aborted => Outcome::Aborted,
            n if n < self.shape.aborted + self.shape.unknown => Outcome::Unknown,
            _ => Outcome::Committed,
        };
        let session = self.rng.below(self.shape.sessions);
        let reads = match self.rng.percent(self.shape.specialists) {
            true => [0, 100][self.rng.below(2)],
            false => self.shape.reads,
        };
        let mut last_read = None;
        let mut ops = Vec::new();
        for _ in 0..self.rng.between(self.shape.ops.0, self.shape.ops.1) {
            let key = self.rng.below(self.shape.keys);
            if self.rng.percent(reads) {
                let key = match last_read {
                    Some(last) if self.rng.percent(self.shape.repeated) => last,
                    Some(last) if last == key => (key + 1) % self.shape.keys,
                    _ => key,
                };
                last_read = Some(key);
                ops.push(self.plan_read(key));
            } else {
                if self.rng.percent(self.shape.read_first) && !touches(&ops, key) {
                    ops.push(self.plan_read(key));
                }
                let aborted = outcome == Outcome::Aborted;
                let (value, op) = self.plan_write(key);
                self.versions.push(Version { key, value, at, session, aborted });
                ops.push(op);
            }
        }
        Plan { at, session, outcome, ops }
    }

    fn plan_read(&self, key: usize) -> DraftOp {
        match self.is_list(key) {
            true => DraftOp::ReadList(key_name(key), None),
            false => DraftOp::Read(key_name(key), None),
        }
    }

    fn is_list(&self, key: usize) -> bool {
        self.shape.keys - key <= self.shape.lists
    }

    fn plan_write(&mut self, key: usize) -> (Value, DraftOp) {
        let name = key_name(key);
        if !self.is_list(key) && self.rng.percent(self.shape.deletes) {
            return (Value::Nil, DraftOp::Delete(name));
        }
        let value = self.new_value();
        let op = match self.is_list(key) {
            true => DraftOp::Append(name, value.clone()),
            false => DraftOp::Write(name, value.clone()),
        };
        (value, op)
    }

    fn new_value(&mut self) -> Value {
        if self.rng.percent(self.shape.duplicates) {
            let initial = self.initial_value();
            let old = self.rng.below(self.versions.len() + 1);
            return self.versions.get(old).map_or(initial, |version| version.value.clone());
        }
        self.next_value += 1;
        Value::Int(self.next_value - 1)
    }

    fn initial_value(&self) -> Value {
        match &self.shape.initial {
            Initial::Value(value) | Initial::UnlessWritten(value) => value.clone(),
            _ => Value::Int(-1),
        }
    }

    /// Answers the reads of a transaction.
    fn run(&mut self, plan: Plan) -> DraftTxn {
        let snapshot = self.snapshot(plan.at, plan.session);
        let mut ops: Vec<DraftOp> = Vec::new();
        for mut op in plan.ops {
            match &mut op {
                _ if self.rng.percent(self.shape.unobserved) => {}
                DraftOp::Read(key, value) => {
                    let snapshot = self.wander(&snapshot, plan.at);
                    *value = Some(self.read(key, &snapshot, &ops));
                }
                DraftOp::ReadList(key, list) => {
                    let snapshot = self.wander(&snapshot, plan.at);
                    *list = Some(self.read_list(key, &snapshot, &ops));
                }
                _ => {}
            }
            ops.push(op);
        }
        let (start, finish) = self.times(plan.at);
        let session = format!("s{}", plan.session);
        DraftTxn { session, ops, outcome: plan.outcome, start, finish }
    }

    fn snapshot(&mut self, at: usize, session: usize) -> Snapshot {
        let sessions = 0..self.shape.sessions;
        if self.rng.percent(self.shape.forked) {
            let moment = |other| if other == session { at } else { at * self.rng.below(2) };
            return sessions.map(moment).collect();
        }
        let stale = self.rng.percent(self.shape.stale);
        let moment = if stale { self.rng.between(0, at) } else { at };
        sessions.map(|_| moment).collect()
    }

    fn wander(&mut self, snapshot: &Snapshot, at: usize) -> Snapshot {
        let wanders = self.rng.percent(self.shape.wandering);
        let moment = self.rng.between(0, at);
        snapshot.iter().map(|own| if wanders { moment } else { *own }).collect()
    }

    fn read(&mut self, key: &str, snapshot: &Snapshot, ops: &[DraftOp]) -> Value {
        if self.rng.percent(self.shape.garbage) {
            return Value::Int(100 + self.rng.below(2) as i64);
        }
        if self.rng.percent(self.shape.stray) {
            let any: Vec<&Version> =
                self.versions.iter().filter(|v| key_name(v.key) == key).collect();
            let initial = self.initial_value();
            return any.get(self.rng.below(any.len() + 1)).map_or(initial, |v| v.value.clone());
        }
        let own = ops.iter().rev().find_map(|op| match op {
            DraftOp::Write(other, value) if other == key => Some(value.clone()),
            DraftOp::Delete(other) if other == key => Some(Value::Nil),
            _ => None,
        });
        let newest = || self.state(key, snapshot).last().map(|v| v.value.clone());
        own.or_else(newest).unwrap_or_else(|| self.initial_value())
    }

    fn read_list(&mut self, key: &str, snapshot: &Snapshot, ops: &[DraftOp]) -> Vec<Value> {
        let mut list: Vec<Value> = self.state(key, snapshot).map(|v| v.value.clone()).collect();
        list.extend(ops.iter().filter_map(|op| match op {
            DraftOp::Append(other, element) if other == key => Some(element.clone()),
            _ => None,
        }));
        if self.rng.percent(self.shape.stray) {
            self.disturb(&mut list);
        }
        if self.rng.percent(self.shape.garbage) {
            list.push(Value::Int(100));
        }
        list
    }

    /// Cuts a list short, or swaps, repeats or adds an element.
    fn disturb(&mut self, list: &mut Vec<Value>) {
        let (one, other) = (self.rng.below(list.len()), self.rng.below(list.len()));
        let any = self.rng.below(self.versions.len());
        match self.rng.below(4) {
            0 => list.truncate(one),
            1 if !list.is_empty() => list.swap(one, other),
            2 if !list.is_empty() => list.push(list[one].clone()),
            _ => list.extend(self.versions.get(any).map(|v| v.value.clone())),
        }
    }

    /// The versions of a key in a snapshot, oldest first.
    fn state(&self, key: &str, snapshot: &Snapshot) -> impl Iterator<Item = &Version> {
        self.versions
            .iter()
            .filter(move |v| v.at < snapshot[v.session] && !v.aborted && key_name(v.key) == key)
    }

    /// Transactions take between an instant and a few turns; few clocks are broken.
    fn times(&mut self, at: usize) -> (Option<i64>, Option<i64>) {
        if !self.shape.times {
            return (None, None);
        }
        let mistimed = self.shape.mistimed > 0 && self.rng.percent(self.shape.mistimed);
        let at = if mistimed { self.rng.below(self.shape.txns.1) } else { at };
        let start = 10 * at as i64 - self.rng.below(15) as i64;
        let finish = match self.rng.percent(2) {
            true => start - 3,
            false => start + 1 + self.rng.below(20) as i64,
        };
        let known = |rng: &mut Rng, time| (!rng.percent(4)).then_some(time);
        (known(self.rng, start), known(self.rng, finish))
    }
}

/// Whether one of the operations is on a key.
fn touches(ops: &[DraftOp], key: usize) -> bool {
    ops.iter().any(|op| op.key() == key_name(key))
}

fn key_name(key: usize) -> String {
    ["x", "y", "z"].get(key).map_or_else(|| format!("k{key}"), |name| (*name).to_owned())
}
