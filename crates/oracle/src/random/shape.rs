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
    /// Transactions that see every session up to a moment of its own.
    pub forked: usize,
    /// Reads that see the state of another moment than their transaction does.
    pub wandering: usize,
    /// Reads of any version whatever, older, newer or aborted.
    pub stray: usize,
    /// Reads of a value that nobody wrote.
    pub garbage: usize,
    /// Reads whose answer never came.
    pub unobserved: usize,
    /// Reads of a key that the transaction read just before.
    pub repeated: usize,
    /// Whether transactions have times.
    pub times: bool,
    /// Whether keys are lists.
    pub lists: bool,
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
            deletes: 0,
            aborted: 0,
            unknown: 0,
            duplicates: 0,
            stale: 20,
            forked: 35,
            wandering: 8,
            stray: 5,
            garbage: 0,
            unobserved: 0,
            repeated: 35,
            times: false,
            lists: false,
            initial: Initial::Value(Value::Nil),
        }
    }
}

impl Shape {
    /// Shapes of register histories, each with a trouble of its own.
    pub fn registers() -> Vec<Shape> {
        let zero = || Value::Int(0);
        let plain = Shape::default();
        vec![
            Shape {
                txns: (5, 6),
                sessions: 4,
                keys: 3,
                forked: 70,
                wandering: 0,
                stray: 0,
                ..plain.clone()
            },
            Shape { aborted: 15, unknown: 15, unobserved: 5, garbage: 1, ..plain.clone() },
            Shape { unknown: 35, stray: 12, ..plain.clone() },
            Shape {
                times: true,
                stale: 10,
                forked: 10,
                wandering: 2,
                stray: 2,
                unknown: 5,
                ..plain.clone()
            },
            Shape { repeated: 70, reads: 75, wandering: 50, ..plain.clone() },
            Shape { duplicates: 12, deletes: 5, unknown: 5, ..plain.clone() },
            Shape { initial: Initial::Unwritten, garbage: 4, unknown: 5, ..plain.clone() },
            Shape { initial: Initial::UnlessWritten(zero()), duplicates: 3, ..plain.clone() },
            Shape { initial: Initial::Value(zero()), sessions: 1, forked: 0, ..plain.clone() },
            Shape { initial: Initial::None, stray: 4, sessions: 2, ..plain.clone() },
            Shape {
                times: true,
                stale: 40,
                forked: 0,
                wandering: 0,
                stray: 0,
                txns: (3, 4),
                ..plain.clone()
            },
            Shape { stray: 40, stale: 0, aborted: 10, ..plain },
        ]
    }

    /// Shapes of list histories.
    pub fn lists() -> Vec<Shape> {
        let plain = Shape { lists: true, stray: 4, ..Shape::default() };
        vec![
            plain.clone(),
            Shape { aborted: 10, unknown: 15, unobserved: 5, ..plain.clone() },
            Shape { repeated: 50, reads: 70, ..plain.clone() },
            Shape { duplicates: 5, stray: 15, garbage: 2, ..plain },
        ]
    }
}
