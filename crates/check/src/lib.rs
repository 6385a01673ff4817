//! Decides which isolation levels a history satisfies.
//!
//! ```
//! use isolario_check::{Options, check};
//! use isolario_model::{Batch, Level, Op, Outcome, TxnEnd, TxnSink, TxnStart, ValueRef, Verdict};
//!
//! // Two transactions that read each other's writes: a circle.
//! let mut batch = Batch::new();
//! let (one, two) = (ValueRef::Int(1), ValueRef::Int(2));
//! for (session, read, write, sees, writes) in
//!     [("alice", "x", "y", two, one), ("bob", "y", "x", one, two)]
//! {
//!     batch.begin(&TxnStart { session: session.into(), id: None, line: None })?;
//!     batch.op(&Op::Read { key: read.into(), value: Some(sees) })?;
//!     batch.op(&Op::Write { key: write.into(), value: writes })?;
//!     batch.end(&TxnEnd::new(Outcome::Committed))?;
//! }
//! let history = batch.build()?;
//! let results = check(&history, &[Level::AdyaReadCommitted], &Options::default());
//! assert!(matches!(results[0].verdict, Verdict::Violated(_)));
//! # Ok::<(), isolario_model::SinkError>(())
//! ```

mod graph;
mod plan;
mod reads;
mod weak;

use isolario_model::{History, Level, LevelResult};

/// How to read a history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether the transactions of a session are ordered as the session ran them.
    pub session_order: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { session_order: true }
    }
}

/// The levels that can be decided, weaker ones first.
pub fn supported() -> &'static [Level] {
    plan::SUPPORTED
}

/// Decides each of the levels, with evidence either way.
pub fn check(history: &History, levels: &[Level], options: &Options) -> Vec<LevelResult> {
    plan::check(history, levels, options)
}
