//! What random histories look like.

use isolario_model::{Initial, Value};

/// The parameters of a random history. Shares are percentages.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How many transactions, at least and at most.
    pub txns: (usize, usize),
    /// How many sessions, at most.
    pub sessions: usize,
    /// How many keys.
    pub keys: usize,
    /// How many operations per transaction, at least and at most.
    pub ops: (usize, usize),
    /// Operations that read.
    pub reads: usize,
    /// Transactions that only read or only write.
    pub specialists: usize,
    /// Writes of an untouched key that follow a read of it.
    pub read_first: usize,
    /// Operations that delete.
    pub deletes: usize,
    /// Transactions that abort.
    pub aborted: usize,
    /// Transactions of unknown outcome.
    pub unknown: usize,
    /// Writes of a value that was written before.
    pub duplicates: usize,
    /// Transactions that see an older state.
    pub stale: usize,
    /// Transactions that see all of some sessions and nothing of the others.
    pub forked: usize,
    /// Reads that see the state of another moment than their transaction does.
    pub wandering: usize,
    /// Reads of any version whatever, older, newer or aborted.
    pub stray: usize,
    /// Reads of a value that nobody wrote.
    pub garbage: usize,
    /// Reads whose answer never came.
    pub unobserved: usize,
    /// Reads of the key that the transaction read last; the others are of another key, if there is
    /// one.
    pub repeated: usize,
    /// Whether transactions have times.
    pub times: bool,
    /// Of transactions with times, those that have the times of another turn.
    pub mistimed: usize,
    /// Number of keys that are lists: the last ones.
    pub lists: usize,
    /// The initial state.
    pub initial: Initial,
}

impl Default for Shape {
    /// Few and short transactions that mostly see a recent state.
    fn default() -> Self {
        Shape {
            txns: (3, 6),
            sessions: 3,
            keys: 2,
            ops: (2, 4),
            reads: 55,
            specialists: 10,
            read_first: 0,
            deletes: 0,
            aborted: 0,
            unknown: 0,
            duplicates: 0,
            stale: 20,
            forked: 35,
            wandering: 16,
            stray: 7,
            garbage: 0,
            unobserved: 0,
            repeated: 45,
            times: false,
            mistimed: 0,
            lists: 0,
            initial: Initial::Value(Value::Nil),
        }
    }
}

impl Shape {
    /// Shapes of register histories, each with a trouble of its own.
    pub fn registers() -> Vec<Shape> {
        let zero = || Value::Int(0);
        let plain = Shape::default();
        let forks = Shape { forked: 95, wandering: 0, stray: 0, txns: (5, 6), ..plain.clone() };
        vec![
            Shape { sessions: 5, repeated: 5, reads: 65, ..forks.clone() },
            Shape { sessions: 4, ops: (2, 3), repeated: 10, stray: 2, ..forks.clone() },
            Shape { sessions: 4, keys: 3, repeated: 10, unknown: 5, reads: 60, ..forks },
            Shape { aborted: 15, unknown: 15, unobserved: 5, garbage: 1, ..plain.clone() },
            Shape { unknown: 35, stray: 12, ..plain.clone() },
            Shape { times: true, forked: 10, wandering: 5, unknown: 5, ..plain.clone() },
            Shape { times: true, forked: 0, stale: 40, stray: 0, txns: (3, 4), ..plain.clone() },
            Shape { repeated: 70, reads: 75, wandering: 50, ..plain.clone() },
            Shape { reads: 70, keys: 1, sessions: 5, wandering: 50, ..plain.clone() },
            Shape { duplicates: 25, deletes: 5, unknown: 5, ..plain.clone() },
            Shape { duplicates: 35, aborted: 20, stray: 15, ..plain.clone() },
            Shape { initial: Initial::Unwritten, garbage: 4, unknown: 5, ..plain.clone() },
            Shape {
                initial: Initial::Unwritten,
                garbage: 10,
                reads: 75,
                stray: 2,
                ..plain.clone()
            },
            Shape { initial: Initial::UnlessWritten(zero()), duplicates: 3, ..plain.clone() },
            Shape { initial: Initial::Value(zero()), sessions: 1, forked: 0, ..plain.clone() },
            Shape { initial: Initial::None, reads: 40, keys: 1, ..plain.clone() },
            Shape { stray: 40, aborted: 10, ..plain },
        ]
    }

    /// Shapes of register histories in which a write mostly follows a read of its key.
    pub fn read_modify_write() -> Vec<Shape> {
        let plain = Shape {
            read_first: 100,
            specialists: 0,
            ops: (1, 3),
            wandering: 4,
            stray: 1,
            stale: 35,
            forked: 10,
            repeated: 10,
            times: true,
            ..Shape::default()
        };
        vec![
            plain.clone(),
            Shape { forked: 0, stray: 0, wandering: 0, txns: (3, 4), ..plain.clone() },
            Shape { keys: 3, sessions: 6, forked: 60, stray: 0, ..plain.clone() },
            Shape { keys: 3, sessions: 6, stale: 50, stray: 0, wandering: 0, ..plain.clone() },
            Shape { aborted: 10, unknown: 20, unobserved: 3, ..plain.clone() },
            Shape { read_first: 85, txns: (3, 5), keys: 3, ..plain.clone() },
            Shape { initial: Initial::None, read_first: 80, keys: 2, ..plain.clone() },
            Shape { times: false, reads: 70, ops: (2, 4), ..plain },
        ]
    }

    /// Shapes of register histories in which many reads may have seen the writes of several
    /// transactions: values that come back, deletes, and transactions of unknown outcome among those
    /// who wrote them.
    pub fn ambiguous() -> Vec<Shape> {
        let zero = || Value::Int(0);
        let plain = Shape {
            txns: (3, 5),
            duplicates: 45,
            stray: 3,
            wandering: 6,
            repeated: 20,
            ops: (1, 3),
            ..Shape::default()
        };
        let calm = Shape { forked: 5, stale: 15, wandering: 0, stray: 0, ..plain.clone() };
        vec![
            plain.clone(),
            Shape { txns: (4, 6), sessions: 5, duplicates: 25, ..calm.clone() },
            Shape { keys: 1, reads: 55, ..calm.clone() },
            Shape { duplicates: 10, deletes: 60, keys: 2, ..calm.clone() },
            Shape { duplicates: 0, deletes: 50, keys: 1, read_first: 60, ..calm.clone() },
            Shape { unknown: 35, keys: 2, ..calm.clone() },
            Shape { unknown: 50, deletes: 30, keys: 1, ..calm.clone() },
            Shape { unknown: 40, aborted: 15, unobserved: 5, read_first: 60, ..plain.clone() },
            Shape { times: true, forked: 0, stale: 30, unknown: 15, ..calm.clone() },
            Shape { times: true, mistimed: 25, duplicates: 60, unknown: 10, ..calm.clone() },
            Shape { initial: Initial::Value(zero()), duplicates: 60, sessions: 2, ..calm.clone() },
            Shape { initial: Initial::Unwritten, garbage: 5, unknown: 30, ..plain.clone() },
            Shape { initial: Initial::UnlessWritten(zero()), unknown: 20, ..plain.clone() },
            Shape { forked: 95, sessions: 5, txns: (4, 6), keys: 2, duplicates: 25, ..calm },
        ]
    }

    /// Shapes of list histories.
    pub fn lists() -> Vec<Shape> {
        let plain = Shape { lists: usize::MAX, stray: 4, ..Shape::default() };
        let calm = Shape { stray: 0, wandering: 0, forked: 10, ..plain.clone() };
        vec![
            plain.clone(),
            Shape { aborted: 15, unknown: 30, unobserved: 5, stray: 10, ..plain.clone() },
            Shape { repeated: 60, reads: 75, wandering: 40, ..plain.clone() },
            Shape { duplicates: 8, stray: 15, garbage: 2, ..plain.clone() },
            Shape { duplicates: 25, aborted: 15, stray: 20, ..plain },
            Shape { reads: 35, sessions: 2, ..calm.clone() },
            Shape { reads: 40, keys: 1, sessions: 4, forked: 50, ..calm.clone() },
            Shape { reads: 40, keys: 3, unknown: 30, forked: 40, ops: (1, 3), ..calm.clone() },
            Shape { times: true, stale: 35, forked: 0, ops: (1, 3), ..calm.clone() },
            Shape { times: true, mistimed: 30, unknown: 10, aborted: 10, ..calm.clone() },
            // Independent writes that are seen in opposite orders.
            Shape {
                reads: 80,
                repeated: 0,
                sessions: 6,
                txns: (6, 6),
                ops: (2, 2),
                specialists: 0,
                forked: 95,
                ..calm
            },
        ]
    }

    /// Shapes of histories of registers and lists, with many transactions of unknown outcome.
    pub fn mixed() -> Vec<Shape> {
        let plain = Shape {
            txns: (3, 5),
            keys: 2,
            lists: 1,
            ops: (1, 3),
            unknown: 35,
            repeated: 10,
            stale: 15,
            forked: 5,
            wandering: 4,
            stray: 2,
            ..Shape::default()
        };
        vec![
            plain.clone(),
            Shape { keys: 3, ..plain.clone() },
            Shape { keys: 3, lists: 2, ..plain.clone() },
            Shape { txns: (2, 4), unknown: 50, ..plain.clone() },
            Shape { reads: 70, ops: (2, 3), ..plain.clone() },
            Shape { read_first: 60, sessions: 4, duplicates: 10, ..plain.clone() },
            Shape { duplicates: 30, deletes: 20, ..plain.clone() },
            Shape { aborted: 15, stray: 10, unobserved: 5, ..plain.clone() },
            Shape { times: true, unknown: 20, stale: 30, ..plain.clone() },
            Shape { times: true, mistimed: 20, stray: 0, ..plain },
        ]
    }

    /// Shapes of register histories in which transactions write a key more than once, and others read
    /// any of these writes before they write the key themselves.
    pub fn intermediate() -> Vec<Shape> {
        let plain = Shape {
            txns: (2, 4),
            sessions: 4,
            keys: 1,
            ops: (2, 5),
            reads: 30,
            read_first: 80,
            repeated: 0,
            stray: 70,
            ..Shape::default()
        };
        vec![
            plain.clone(),
            Shape { keys: 2, ..plain.clone() },
            Shape { aborted: 15, unknown: 15, unobserved: 5, ..plain.clone() },
            Shape { duplicates: 15, deletes: 10, ..plain.clone() },
            Shape { times: true, mistimed: 20, ..plain.clone() },
            Shape { keys: 2, lists: 1, unknown: 10, ..plain },
        ]
    }
}
