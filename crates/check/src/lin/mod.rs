//! Linearizability of single operations: every key on its own, since it is a local property.
//!
//! Session order plays no part (MTC, Definition 7): it would tie keys together again, and a client
//! that waits for its answers has it by real time.

mod anomaly;
mod blocks;
mod calls;
mod conflict;
mod evidence;
mod misses;
mod search;
mod sources;

use std::time::Instant;

use isolario_model::{Anomaly, History, KeyId, Limit, OpId, SearchProgress, Undecided, Witness};
use rayon::prelude::*;

use crate::CheckOptions;
use crate::plan::Conclusion;
use crate::plan::unwidenable;
use calls::{Action, Call, Register, Registers};
use search::{Limits, SearchEnd};
use sources::Otherwise;

/// Decides whether a history is linearizable.
pub(crate) fn check(history: &History, options: &CheckOptions) -> Conclusion {
    let mut registers = match Registers::new(history, options) {
        Ok(registers) => registers,
        Err(why) => return why.into(),
    };
    if let Some(why) = unwidenable(history, options) {
        return why.into();
    }
    let limits = Limits {
        time: options.timeout.map(|timeout| (Instant::now(), timeout)),
        memory: options.memory,
        ways: None,
        stop: Some(&options.stop),
    };
    let mut registers = registers.split();
    let answers: Vec<Answer> =
        registers.par_iter_mut().map(|register| decide(history, register, limits)).collect();
    conclude(answers)
}

/// What came of one register.
enum Answer {
    /// When each call may have taken effect.
    Order(Vec<Placed>),
    /// Why there is no order.
    Broken(Anomaly),
    /// A limit was reached first, with so many operations of the key in order.
    Undecided { limit: Limit, key: KeyId, operations: u64, ordered: u64 },
}

/// An operation with the moment at which it takes effect; those of one moment follow in the order
/// of their ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    at: i64,
    rank: u32,
    op: OpId,
}

impl Placed {
    /// A call that may take effect at any time does so when it starts.
    fn at_start(call: &Call) -> Placed {
        Placed { at: call.start, rank: 0, op: call.op }
    }
}

/// Decides a register: in nearly linear time if its values tell who wrote them, else by search.
fn decide(history: &History, register: &mut Register<'_>, limits: Limits<'_>) -> Answer {
    if let [Some(first), Some(second)] = register.found_initial {
        return Answer::Broken(anomaly::two_initial_values(register, first, second));
    }
    let mut answer = decide_from(history, register, limits);
    for initial in std::mem::take(&mut register.other_initials) {
        if !matches!(answer, Answer::Broken(_)) {
            return answer;
        }
        register.initial = initial;
        answer = match decide_from(history, register, limits) {
            // No initial value is right, and each may be wrong for a reason of its own.
            Answer::Broken(_) => Answer::Broken(anomaly::no_order_of_all(register)),
            other => other,
        };
    }
    answer
}

/// Decides a register of which it is known what it holds at first.
fn decide_from(history: &History, register: &Register<'_>, limits: Limits<'_>) -> Answer {
    match blocks::order(register) {
        Ok(placed) => Answer::Order(placed),
        Err(Otherwise::Broken(conflict)) => {
            Answer::Broken(anomaly::of(history, register, &conflict))
        }
        Err(Otherwise::Choices) => decide_by_search(register, limits),
    }
}

fn decide_by_search(register: &Register<'_>, limits: Limits<'_>) -> Answer {
    match search::search(register.calls, register.initial, limits) {
        SearchEnd::Order(order) => Answer::Order(place(register.calls, &order)),
        SearchEnd::Stuck(stuck) => {
            let few = evidence::few(register.calls, register.initial, stuck);
            Answer::Broken(anomaly::no_order(register, &few))
        }
        SearchEnd::GaveUp(limit, ordered) => Answer::Undecided {
            limit,
            key: register.key,
            operations: register.calls.len() as u64,
            ordered,
        },
    }
}

/// Gives calls in order the earliest moments they can have. Free calls, which are in no order, take
/// effect when they start.
fn place(calls: &[Call], order: &[u32]) -> Vec<Placed> {
    let mut placed = Vec::with_capacity(calls.len());
    let mut now = i64::MIN;
    for (rank, at) in (0..).zip(order) {
        let call = &calls[*at as usize];
        now = now.max(call.start);
        placed.push(Placed { at: now, rank, op: call.op });
    }
    let free = calls.iter().filter(|call| call.must && call.action == Action::Free);
    placed.extend(free.map(Placed::at_start));
    placed
}

/// One broken register breaks the history, whatever could not be decided of others.
fn conclude(answers: Vec<Answer>) -> Conclusion {
    let (mut placed, mut anomalies, mut undecided) = (Vec::new(), Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Answer::Order(order) => placed.push(order),
            Answer::Broken(anomaly) => anomalies.push(anomaly),
            Answer::Undecided { limit, key, operations, ordered } => {
                undecided.push((limit, key, operations, ordered));
            }
        }
    }
    if !anomalies.is_empty() {
        return Conclusion::refuted(anomalies);
    }
    if let Some((limit, first, operations, ordered)) = undecided.first().copied() {
        let (others, linearizable) = (undecided.len() as u64 - 1, placed.len() as u64);
        let progress = SearchProgress::Keys { first, operations, ordered, others, linearizable };
        return Conclusion::Unknown(Undecided::new(limit).with_progress(progress));
    }
    Conclusion::Holds(Witness::Linearization(merge(&placed)))
}

/// One order of all operations: by moment. Where one had finished before another started its moment
/// is earlier, since both lie within their intervals.
fn merge(placed: &[Vec<Placed>]) -> Vec<OpId> {
    let mut all = placed.concat();
    all.par_sort_unstable();
    all.into_iter().map(|placed| placed.op).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolario_oracle::random::Rng;
    use isolario_oracle::random::single::{SingleShape, generate};

    #[test]
    fn a_search_that_is_asked_to_stop_does_at_its_first_step() {
        let stop = crate::StopFlag::default();
        let limits = Limits { stop: Some(&stop), ..Limits::default() };
        let (start, finish, must) = (0, 1, true);
        let call = Call { op: OpId(0), start, finish, action: Action::Write(1), must };
        assert_eq!(search::search(&[call], 0, limits), SearchEnd::Order(vec![0]));
        stop.ask();
        assert_eq!(search::search(&[call], 0, limits), SearchEnd::GaveUp(Limit::Interrupted, 0));
    }

    /// Longer histories than brute force takes: where the fast way answers, the search agrees.
    #[test]
    fn the_fast_way_and_the_search_agree_on_longer_histories() {
        let (mut in_order, mut broken) = (0, 0);
        let seeds = isolario_oracle::volume() / 10;
        for seed in 0..seeds {
            let mut rng = Rng::new(seed);
            let shapes = SingleShape::all();
            let shape = &shapes[rng.below(shapes.len())];
            // Little is wrong, so that not everything is.
            let shape = SingleShape { ops: (10, 25), stale: 4, stray: 0, ..shape.clone() };
            let draft = generate(&shape, &mut rng);
            let history = draft.history().expect("small");
            let mut registers = Registers::new(&history, &CheckOptions::default()).ok();
            for register in registers.as_mut().map(Registers::split).unwrap_or_default() {
                let fast = blocks::order(&register);
                let slow = search::search(register.calls, register.initial, Limits::default());
                match fast {
                    Ok(_) => assert!(matches!(slow, SearchEnd::Order(_)), "{draft}\n{slow:?}"),
                    Err(Otherwise::Broken(_)) => {
                        assert!(matches!(slow, SearchEnd::Stuck(_)), "{draft}\n{slow:?}");
                    }
                    Err(Otherwise::Choices) => {}
                }
                in_order += u64::from(fast.is_ok());
                broken += u64::from(matches!(fast, Err(Otherwise::Broken(_))));
            }
        }
        let few = seeds / 20;
        assert!(in_order > few && broken > few, "{in_order} in order, {broken} broken");
    }
}
