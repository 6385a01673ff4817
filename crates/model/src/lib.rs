//! What was observed, and what it proves: the data types that everything in Isolario shares.
//!
//! A [`History`] is sessions of transactions of operations. Readers, generators and recorders
//! write transactions into a [`TxnSink`]; a [`Batch`] is the sink that keeps them all.
//!
//! ```
//! use isolario_model::{Batch, Op, Outcome, TxnEnd, TxnSink, TxnStart, ValueRef};
//!
//! let mut batch = Batch::new();
//! let (x, one) = (ValueRef::Text("x"), ValueRef::Int(1));
//! for (session, op) in [
//!     ("alice", Op::Write { key: x, value: one }),
//!     ("bob", Op::Read { key: x, value: Some(one) }),
//! ] {
//!     batch.begin(&TxnStart { session: session.into(), id: None, line: None })?;
//!     batch.op(&op)?;
//!     batch.end(&TxnEnd::new(Outcome::Committed))?;
//! }
//! let history = batch.build()?;
//! assert_eq!((history.session_count(), history.txn_count(), history.key_count()), (2, 2, 1));
//! # Ok::<(), isolario_model::SinkError>(())
//! ```
//!
//! [`History::validate`] tells what is odd about a history, and [`Stats`] are its figures.
//!
//! What a history proves is a [`Verdict`] per [`Level`]: a [`Witness`] that it is satisfied, or
//! [`Findings`] that it is not. Every [`Anomaly`] has its name from one table, [`AnomalyKind`],
//! and every [`Edge`] of its evidence a [`Reason`].

mod access;
mod anomaly;
mod assemble;
mod assumption;
mod bad_times;
mod batch;
mod columns;
mod conditional;
mod distinct;
mod duplicates;
mod edge;
mod entries;
mod evidence;
mod history;
mod ids;
mod incarnations;
mod items;
mod join;
mod level;
mod lists;
mod op;
mod part;
mod predicate_ops;
mod promised_order;
mod remark;
mod renumber;
mod row;
#[cfg(feature = "run-record")]
mod run_record;
mod sink;
mod stats;
mod table;
#[cfg(test)]
mod testing;
mod tuple;
mod validate;
mod value;
mod verdict;

pub use anomaly::{AnomalyKind, AnomalyNames, CycleShape, ShapeKeys, ShapePredicates, Sight};
pub use assemble::{
    BatchEntries, PlainBuffer, PlainFacts, PlainOps, PlainOutline, PlainSize, PlainTxn,
};
pub use assumption::{KeyAssumption, KeyAssumptions};
pub use bad_times::ContradictoryTimes;
pub use batch::Batch;
pub use conditional::{ConditionalOutcome, ConditionalWrite};
pub use distinct::DistinctnessCheck;
pub use edge::{Edge, EdgeKind, EvaluatedVersion, Reason, VersionOrder};
pub use evidence::Contention;
pub use history::History;
pub use ids::{KeyId, OpId, PredicateId, SessionId, TxnId, VersionId};
pub use incarnations::IncarnationView;
pub use isolario_predicate::{Aggregate, Decimal, DecimalRef, Expr, MatchesOracle, Predicate};
pub use items::{ItemView, MatchedRow, MatchedValue};
pub use join::{JoinError, Joiner};
pub use level::{Level, LevelNeeds, LevelNodes, LevelSet, LevelShape, OpFamily, VisibilityRule};
pub use op::{
    Op, OpInput, OpKind, OpNotes, OpView, Outcome, PredicateRow, RowInput, RowView, Stamp,
    StatedOrder, StatedSet, TxnEnd, TxnStart, VersionRef, VersionSet,
};
pub use part::HistoryPart;
pub use promised_order::{PromisedOrder, PromisedPoints};
pub use remark::{Oddity, Remark, Severity};
pub use renumber::IdMap;
pub use row::RowRef;
#[cfg(feature = "run-record")]
pub use run_record::{
    AbortReason, Counts, GoneNode, HostClock, HostRecord, Latency, RunEvent, RunEventKind,
    RunRecord, RunSecond, RunShape, RunVerdict, StopCause, StopReason, WhiteboxRecord,
};
pub use sink::{Clock, Initial, Meta, SinkError, TxnSink};
pub use stats::{
    Bucket, Concurrency, Distribution, KeyUse, Outcomes, ReadModifyWrite, Share, Skew, Stats,
    Uniqueness,
};
pub use table::{NameTable, ValueId, ValueTable};
pub use tuple::{Tuple, TupleParts, TupleRef};
pub use value::{Value, ValueRef};
pub use verdict::{
    Anomaly, Attempt, Evidence, ExpectedVersion, Findings, Inapplicable, LevelResult, Limit,
    PatternResult, Point, ReadSource, SearchParts, SearchProgress, Undecided, Verdict, VerdictKind,
    Witness,
};
