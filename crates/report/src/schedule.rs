//! A few transactions side by side: a column per session, time downwards.

use isolario_model::{Clock, History, Op, OpId, SessionId, TxnId};

use crate::show::KeyVersions;

/// More sessions do not fit beside each other.
const MOST_SESSIONS: usize = 6;
/// More steps nobody follows.
const MOST_STEPS: usize = 80;
/// Room for the steps of a transaction that has no times.
const TURN: i128 = 1 << 32;

/// What transactions did one after the other, as far as that is known: when they began and ended, and the
/// order of operations within each. Where operations of two that ran at the same time lie between each
/// other, nobody recorded. Here a read comes after the commit of what it saw and before the commit of what
/// it missed, as far as that can be; for the rest, operations are spread evenly.
pub(crate) struct Schedule {
    /// The sessions, in the order in which they first did something.
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) steps: Vec<Step>,
}

/// One step of a transaction.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) txn: TxnId,
    pub(crate) what: What,
    /// The position of its session.
    pub(crate) column: usize,
    /// When it was, where somebody recorded that.
    pub(crate) at: Option<i64>,
    /// When it may have been.
    about: i128,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Begin,
    Op(OpId),
    End,
}

impl Schedule {
    /// That of a history, unless it is too large to be looked at.
    pub(crate) fn of(history: &History) -> Option<Schedule> {
        if history.op_count() + 2 * history.txn_count() > MOST_STEPS {
            return None;
        }
        let steps = in_order(history, &all_steps(history));
        let mut columns: Vec<usize> = Vec::new();
        for step in &steps {
            if !columns.contains(&step.column) {
                columns.push(step.column);
            }
        }
        if columns.len() > MOST_SESSIONS || columns.is_empty() {
            return None;
        }
        let all: Vec<SessionId> = history.sessions().collect();
        let column = |old: usize| columns.iter().position(|known| *known == old).unwrap_or(0);
        let steps = steps.iter().map(|step| Step { column: column(step.column), ..*step });
        let steps = steps.collect();
        Some(Schedule { sessions: columns.iter().map(|old| all[*old]).collect(), steps })
    }

    /// Since when times are counted: the first one that there is.
    pub(crate) fn first(&self) -> i64 {
        self.steps.iter().filter_map(|step| step.at).min().unwrap_or(0)
    }
}

/// The steps of all transactions, session by session.
fn all_steps(history: &History) -> Vec<Step> {
    let of_session = |(column, session)| {
        let txns = history.session_txns(session).enumerate();
        txns.flat_map(move |(turn, txn)| steps(history, txn, turn, column))
    };
    history.sessions().enumerate().flat_map(of_session).collect()
}

fn steps(history: &History, txn: TxnId, turn: usize, column: usize) -> Vec<Step> {
    let ops: Vec<OpId> = history.txn_ops(txn).collect();
    let (start, finish) = (history.start(txn), history.finish(txn));
    let begin = start.map_or(turn as i128 * TURN, i128::from);
    let end = finish.map_or(begin + TURN - 1, |finish| i128::from(finish).max(begin));
    let parts = ops.len() as i128 + 1;
    let recorded = |time: Option<i64>| time.filter(|_| history.clock() == Clock::Nanoseconds);
    let step = |part: i128, what, at| Step {
        txn,
        what,
        column,
        at,
        about: begin + (end - begin) * part / parts,
    };
    let mut steps = vec![step(0, What::Begin, recorded(start))];
    steps.extend((1..).zip(ops).map(|(part, op)| step(part, What::Op(op), None)));
    steps.push(step(parts, What::End, recorded(finish)));
    steps
}

/// Steps in an order that agrees with sessions and real time, and with what reads saw where it can.
fn in_order(history: &History, steps: &[Step]) -> Vec<Step> {
    let mut order = Precedence { after: vec![Vec::new(); steps.len()] };
    for at in 1..steps.len() {
        if steps[at - 1].column == steps[at].column {
            order.after[at - 1].push(at);
        }
    }
    let all = |what: What| steps.iter().enumerate().filter(move |(_, step)| step.what == what);
    for (end, before) in all(What::End) {
        for (begin, after) in all(What::Begin) {
            let times = history.finish(before.txn).zip(history.start(after.txn));
            if times.is_some_and(|(finish, start)| finish < start) {
                order.add_if_possible(end, begin);
            }
        }
    }
    let end_of = |txn: TxnId| steps.iter().position(|s| s.txn == txn && s.what == What::End);
    let is_read = |op: OpId| matches!(history.op(op), Op::Read { .. } | Op::ReadList { .. });
    let reads: Vec<(usize, OpId)> = (steps.iter().enumerate())
        .filter_map(|(at, step)| match step.what {
            What::Op(op) if is_read(op) => Some((at, op)),
            _ => None,
        })
        .collect();
    let versions = KeyVersions::seen_by(history, reads.iter().map(|(_, read)| *read));
    let mut missed: Vec<(usize, usize)> = Vec::new();
    for (at, read) in reads {
        let sources = versions.sources(read).map(|sources| sources.writes).unwrap_or_default();
        let sources: Vec<TxnId> = sources.iter().map(|write| history.op_txn(*write)).collect();
        let seen: Vec<usize> = sources.iter().filter_map(|txn| end_of(*txn)).collect();
        let others = seen.iter().filter(|end| steps[**end].txn != steps[at].txn);
        others.for_each(|end| order.add_if_possible(*end, at));
        let since = seen.iter().map(|end| steps[*end].about).max();
        for (end, other) in all(What::End).filter(|(_, other)| other.txn != steps[at].txn) {
            let is_later = since.is_none_or(|since| since < other.about);
            if is_later && !sources.contains(&other.txn) && writes(history, other.txn, read) {
                missed.push((at, end));
            }
        }
    }
    missed.iter().for_each(|(read, end)| order.add_if_possible(*read, *end));
    order.sorted(steps)
}

/// Whether a transaction writes the key of a read.
fn writes(history: &History, txn: TxnId, read: OpId) -> bool {
    let key = history.op(read).key();
    let mut ops = history.txn_ops(txn).map(|op| history.op(op));
    ops.any(|op| op.key() == key && !matches!(op, Op::Read { .. } | Op::ReadList { .. }))
}

/// Which steps come after which.
struct Precedence {
    after: Vec<Vec<usize>>,
}

impl Precedence {
    /// Puts a step before another one, unless it comes after it.
    fn add_if_possible(&mut self, before: usize, after: usize) {
        if !self.reaches(after, before) {
            self.after[before].push(after);
        }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut known = vec![false; self.after.len()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut known[at], true) {
                open.extend(&self.after[at]);
            }
        }
        known[to]
    }

    /// The steps in this order, and those that it leaves open by their times.
    fn sorted(&self, steps: &[Step]) -> Vec<Step> {
        let mut waits = vec![0; steps.len()];
        self.after.iter().flatten().for_each(|after| waits[*after] += 1);
        let mut left: Vec<usize> = (0..steps.len()).collect();
        let mut sorted = Vec::with_capacity(steps.len());
        let time = |at: &usize| (steps[*at].about, steps[*at].column, *at);
        while let Some(next) = left.iter().copied().filter(|at| waits[*at] == 0).min_by_key(time) {
            left.retain(|at| *at != next);
            self.after[next].iter().for_each(|after| waits[*after] -= 1);
            sorted.push(steps[next]);
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{History as Builder, r, w};

    fn shown(history: &History) -> Vec<(u32, usize)> {
        let schedule = Schedule::of(history).unwrap();
        schedule.steps.iter().map(|step| (step.txn.0, step.column)).collect()
    }

    #[test]
    fn without_times_sessions_take_their_steps_together() {
        let history = Builder::new()
            .txn(&[r("x", 0)])
            .txn(&[w("x", 2)])
            .session()
            .txn(&[r("x", 0), w("x", 1)])
            .build();
        let steps = shown(&history);
        assert_eq!(&steps[..2], [(0, 0), (2, 1)]);
        assert_eq!(steps.len(), 10);
        // The second transaction of a session comes after its first one.
        let first_end = steps.iter().rposition(|(txn, _)| *txn == 0);
        assert!(first_end < steps.iter().position(|(txn, _)| *txn == 1));
    }

    #[test]
    fn reads_come_after_what_they_saw_and_before_what_they_missed() {
        // The reader began before the writer was done, saw x as it was and y as it became.
        let history = Builder::new()
            .timed(&[w("x", 1), w("y", 1)], 0, Some(10))
            .session()
            .timed(&[r("x", 0), r("y", 1)], 5, Some(20))
            .build();
        let schedule = Schedule::of(&history).unwrap();
        let at = |what: What| schedule.steps.iter().position(|step| step.what == what).unwrap();
        let commit = at(What::End);
        assert_eq!(schedule.steps[commit].txn, TxnId(0));
        assert!(at(What::Op(OpId(2))) < commit && commit < at(What::Op(OpId(3))));
    }

    #[test]
    fn what_is_too_large_is_not_shown() {
        let mut builder = Builder::new();
        for value in 0..30 {
            builder = builder.txn(&[w("x", value)]);
        }
        assert!(Schedule::of(&builder.build()).is_none());
    }
}
