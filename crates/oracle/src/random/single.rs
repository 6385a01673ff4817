//! Random histories of single operations on registers, with times.

use isolario_model::{Initial, Outcome, Value};

use super::Rng;
use crate::draft::{Applied, Draft, DraftOp, DraftTxn};

/// The parameters of a random history of single operations. Shares are percentages.
#[derive(Clone, Debug)]
pub struct SingleShape {
    /// How many operations, at least and at most.
    pub ops: (usize, usize),
    /// How many keys.
    pub keys: usize,
    /// Values from 1 to this one; none where every write has a value of its own.
    pub values: Option<usize>,
    /// How many of each kind there are, in relation: reads, writes, deletes, inserts,
    /// compare-and-sets.
    pub kinds: [usize; 5],
    /// Compare-and-sets that expect what is there.
    pub informed: usize,
    /// Failed conditionals that tell what they found.
    pub telling: usize,
    /// Conditionals whose clients do not know whether they took effect.
    pub unsure: usize,
    /// Operations of unknown outcome, of which half take effect.
    pub unknown: usize,
    /// Operations that are said to have aborted.
    pub aborted: usize,
    /// Operations that act on an older state than the present one.
    pub stale: usize,
    /// Reads of any value whatever.
    pub stray: usize,
    /// How long operations take, in turns of which each one begins ten apart.
    pub length: usize,
    /// The initial state.
    pub initial: Initial,
}

impl Default for SingleShape {
    fn default() -> Self {
        SingleShape {
            ops: (3, 7),
            keys: 1,
            values: None,
            kinds: [30, 0, 0, 10, 60],
            informed: 75,
            telling: 50,
            unsure: 0,
            unknown: 0,
            aborted: 0,
            stale: 12,
            stray: 3,
            length: 20,
            initial: Initial::Value(Value::Nil),
        }
    }
}

impl SingleShape {
    /// Shapes with a trouble each.
    pub fn all() -> Vec<SingleShape> {
        let chains = SingleShape::default();
        let writes = SingleShape { kinds: [45, 30, 0, 5, 20], ..chains.clone() };
        let few = SingleShape { values: Some(3), stale: 6, ..writes.clone() };
        let zero = Initial::Value(Value::Int(0));
        vec![
            chains.clone(),
            SingleShape { unknown: 25, ..chains.clone() },
            SingleShape { unknown: 20, telling: 0, informed: 50, ..chains.clone() },
            SingleShape { unsure: 20, telling: 20, length: 40, ..chains.clone() },
            SingleShape { keys: 2, length: 40, ..chains },
            writes.clone(),
            SingleShape { length: 40, stale: 25, ..writes.clone() },
            SingleShape { unknown: 20, length: 30, ..writes.clone() },
            SingleShape { kinds: [50, 50, 0, 0, 0], length: 40, stale: 30, ..writes.clone() },
            SingleShape { telling: 0, informed: 40, unknown: 15, ..writes.clone() },
            SingleShape { keys: 2, aborted: 15, stray: 8, initial: zero, ..writes.clone() },
            SingleShape { initial: Initial::Unwritten, stray: 15, unsure: 10, ..writes.clone() },
            SingleShape { initial: Initial::None, kinds: [25, 10, 10, 25, 30], ..writes.clone() },
            SingleShape {
                initial: Initial::UnlessWritten(Value::Int(1)),
                values: Some(4),
                ..writes
            },
            few.clone(),
            SingleShape { unknown: 25, length: 40, ..few.clone() },
            SingleShape { kinds: [30, 15, 20, 20, 15], unsure: 10, unknown: 10, ..few.clone() },
            SingleShape { telling: 0, informed: 45, unknown: 30, length: 30, ..few },
        ]
    }
}

/// A history of this shape: operations take effect one after the other on a store, and some clients
/// are told what is not so.
pub fn generate(shape: &SingleShape, rng: &mut Rng) -> Draft {
    let initial = match &shape.initial {
        Initial::Value(value) | Initial::UnlessWritten(value) => value.clone(),
        _ => Value::Nil,
    };
    let states = vec![vec![initial]; shape.keys];
    let count = rng.between(shape.ops.0, shape.ops.1);
    let mut store = Store { shape, rng, states, next_value: 1 };
    let txns = (0..count).map(|turn| store.turn(turn)).collect();
    Draft { initial: shape.initial.clone(), txns }
}

struct Store<'a> {
    shape: &'a SingleShape,
    rng: &'a mut Rng,
    /// Per key, the values it has held so far.
    states: Vec<Vec<Value>>,
    next_value: usize,
}

impl Store<'_> {
    fn turn(&mut self, turn: usize) -> DraftTxn {
        let key = self.rng.below(self.shape.keys);
        let outcome = match self.rng.below(100) {
            draw if draw < self.shape.unknown => Outcome::Unknown,
            draw if draw < self.shape.unknown + self.shape.aborted => Outcome::Aborted,
            _ => Outcome::Committed,
        };
        let happens = match outcome {
            Outcome::Committed => true,
            Outcome::Unknown => self.rng.percent(50),
            Outcome::Aborted => false,
        };
        let (op, written) = self.op(key, outcome);
        if happens && let Some(value) = written {
            self.states[key].push(value);
        }
        let at = 10 * turn as i64;
        let start = at - self.rng.below(self.shape.length + 1) as i64;
        let finish = at + self.rng.below(self.shape.length + 1) as i64;
        let known = |rng: &mut Rng, time| (!rng.percent(3)).then_some(time);
        let (start, finish) = (known(self.rng, start), known(self.rng, finish));
        DraftTxn { session: format!("s{turn}"), ops: vec![op], outcome, start, finish }
    }

    /// An operation, and what it writes if it takes effect.
    fn op(&mut self, key: usize, outcome: Outcome) -> (DraftOp, Option<Value>) {
        let name = ["x", "y"][key % 2].to_owned();
        let held = &self.states[key];
        let back = if self.rng.percent(self.shape.stale) { self.rng.between(1, 2) } else { 0 };
        let found = held[held.len().saturating_sub(1 + back)].clone();
        match self.kind() {
            0 => {
                let stray = self.rng.percent(self.shape.stray);
                let seen = if stray { self.old_value(key) } else { found };
                let seen = (outcome == Outcome::Committed).then_some(seen);
                (DraftOp::Read(name, seen), None)
            }
            1 => {
                let new = self.new_value();
                (DraftOp::Write(name, new.clone()), Some(new))
            }
            2 => (DraftOp::Delete(name), Some(Value::Nil)),
            3 => {
                let new = self.new_value();
                let hits = found == Value::Nil;
                let applied = self.applied(hits, found, outcome);
                (DraftOp::Insert(name, new.clone(), applied), hits.then_some(new))
            }
            _ => {
                let informed = self.rng.percent(self.shape.informed);
                let expected = if informed { found.clone() } else { self.old_value(key) };
                let new = self.new_value();
                let hits = found == expected;
                let applied = self.applied(hits, found, outcome);
                (DraftOp::CompareAndSet(name, expected, new.clone(), applied), hits.then_some(new))
            }
        }
    }

    fn kind(&mut self) -> usize {
        let kinds = &self.shape.kinds;
        let mut draw = self.rng.below(kinds.iter().sum());
        kinds
            .iter()
            .position(|share| {
                let hit = draw < *share;
                draw = draw.saturating_sub(*share);
                hit
            })
            .unwrap_or(0)
    }

    fn applied(&mut self, hits: bool, found: Value, outcome: Outcome) -> Applied {
        match hits {
            _ if outcome == Outcome::Unknown || self.rng.percent(self.shape.unsure) => {
                Applied::Unknown
            }
            true => Applied::Yes,
            false if self.rng.percent(self.shape.telling) => Applied::Saw(found),
            false => Applied::No,
        }
    }

    fn new_value(&mut self) -> Value {
        let value = match self.shape.values {
            Some(most) => 1 + self.rng.below(most),
            None => self.next_value,
        };
        self.next_value += 1;
        Value::Int(value as i64)
    }

    /// A value that some operation may have written, or nobody.
    fn old_value(&mut self, key: usize) -> Value {
        let held = &self.states[key];
        match self.rng.below(held.len() + 1) {
            0 => Value::Int(self.rng.below(self.next_value + 2) as i64),
            at => held[at - 1].clone(),
        }
    }
}
