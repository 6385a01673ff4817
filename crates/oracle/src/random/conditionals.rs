//! Reads and writes of registers as conditional writes.

use isolario_model::{Initial, Outcome, Value};

use super::Rng;
use crate::draft::{Applied, Draft, DraftOp};

/// Of conditionals that failed, the share that says what was there.
const TELLING: usize = 35;
/// Of those whose transactions committed, the share whose clients cannot tell whether they took effect.
const UNSURE: usize = 1;
/// Of those of unknown outcome.
const UNSURE_IF_UNKNOWN: usize = 30;
/// Failed ones that found what they asked for, by what they say.
const ABSURD: usize = 1;

/// Makes a read and the write that follows it a conditional that took effect, and other reads ones that
/// did not. What a conditional asked for and did not find is up to chance.
pub(super) fn with_conditionals(mut draft: Draft, rng: &mut Rng) -> Draft {
    // What else a register may hold at first, only one initial value tells.
    if !matches!(draft.initial, Initial::Value(_)) && !rng.percent(10) {
        draft.initial = Initial::Value(Value::Nil);
    }
    let ops = || draft.txns.iter().flat_map(|txn| &txn.ops);
    let mut values: Vec<Value> = ops().filter_map(written).collect();
    values.extend([Value::Nil, Value::Int(50)]);
    for txn in &mut draft.txns {
        let unsure = match txn.outcome {
            Outcome::Unknown => UNSURE_IF_UNKNOWN,
            _ => UNSURE,
        };
        let mut ops: Vec<DraftOp> = Vec::new();
        for op in std::mem::take(&mut txn.ops) {
            let op = match (ops.last(), op) {
                (Some(DraftOp::Read(key, Some(found))), DraftOp::Write(same, new))
                    if *key == same && rng.percent(80) =>
                {
                    let applied = if rng.percent(unsure) { Applied::Unknown } else { Applied::Yes };
                    let found = found.clone();
                    ops.pop();
                    conditional(same, found, new, applied, rng)
                }
                (_, op) => op,
            };
            ops.push(op);
        }
        for op in &mut ops {
            if let DraftOp::Read(key, Some(found)) = op
                && rng.percent(45)
            {
                *op = failed(key.clone(), found.clone(), &values, unsure, rng);
            }
        }
        txn.ops = ops;
    }
    draft
}

fn written(op: &DraftOp) -> Option<Value> {
    match op {
        DraftOp::Write(_, value) => Some(value.clone()),
        _ => None,
    }
}

/// From *absent*, it may be an insert.
fn conditional(key: String, old: Value, new: Value, applied: Applied, rng: &mut Rng) -> DraftOp {
    match old == Value::Nil && rng.percent(70) {
        true => DraftOp::Insert(key, new, applied),
        false => DraftOp::CompareAndSet(key, old, new, applied),
    }
}

/// One that found this, and asked for something else.
fn failed(key: String, found: Value, values: &[Value], unsure: usize, rng: &mut Rng) -> DraftOp {
    let others: Vec<&Value> = values.iter().filter(|value| **value != found).collect();
    let asked_for = match others.get(rng.below(others.len())) {
        Some(other) if !rng.percent(ABSURD) => (*other).clone(),
        _ => found.clone(),
    };
    let new = values[rng.below(values.len())].clone();
    let applied = match rng.percent(TELLING) {
        _ if rng.percent(unsure) => Applied::Unknown,
        true => Applied::Saw(found),
        false => Applied::No,
    };
    conditional(key, asked_for, new, applied, rng)
}
