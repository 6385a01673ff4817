//! Decides which isolation levels a history satisfies.
//!
//! ```
//! use isolario_check::{CheckOptions, check};
//! use isolario_model::{Batch, Level, Op, Outcome, TxnEnd, TxnSink, TxnStart, ValueRef, Verdict};
//!
//! // Two transactions that read each other's writes: a cycle.
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
//! let results = check(&history, &[Level::AdyaReadCommitted], &CheckOptions::default());
//! assert!(matches!(results[0].verdict, Verdict::Violated(_)));
//! # Ok::<(), isolario_model::SinkError>(())
//! ```

mod blocks;
mod certificate;
mod checker;
mod clauses;
mod conditionals;
mod cycles;
mod findings;
mod follow;
mod graph;
mod lin;
mod minimal;
mod order;
mod plan;
mod predicates;
mod progress;
mod replay;
mod resolved;
mod rows;
mod serial;
mod stop;
mod strong;
mod suppose;
mod versions;
mod weak;

use std::sync::LazyLock;
use std::time::Duration;

use isolario_model::{
    AnomalyKind, History, Level, LevelResult, PatternResult, PromisedOrder, TxnId,
};

pub use checker::Checker;
pub use follow::{
    Census, Checkpoint, FollowStatus, Follower, HistoryCounts, HistoryQuery, Inconclusive,
    PartPositions, PointKind, ProvenResult, QueryAnswer, SettledPoint, Unfollowable,
};
pub use isolario_model::{KeyAssumption, KeyAssumptions, StatedOrder, StatedSet};
pub use plan::{HistoryView, Plan};
pub use progress::{LevelProgress, Phase, Watcher};
pub use stop::StopFlag;

/// How to read a history.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckOptions {
    /// Whether the transactions of a session are ordered as the session ran them.
    pub session_order: bool,
    /// By how many nanoseconds the clock of each client may be off: every transaction's interval is
    /// widened by that much on both sides, so that two count as ordered only if more than twice that
    /// lies between them.
    pub clock_skew: u64,
    /// How long a level that needs search may take.
    pub timeout: Option<Duration>,
    /// How many bytes a level that needs search may use.
    pub memory: Option<u64>,
    /// Orders of versions that help the levels that need search.
    pub version_order: Vec<StatedOrder>,
    /// Whether these orders are part of what is asked. Else they are tried first, and a wrong one
    /// costs time but does not change the verdict.
    pub trust_version_order: bool,
    /// What is assumed of every register by itself. The orders of versions that follow from it are part
    /// of what is asked.
    pub assume: KeyAssumptions,
    /// The versions that predicate operations met. They count where orders of versions are part of what is
    /// asked: together they are a certificate.
    pub version_sets: Vec<StatedSet>,
    /// The order in which the database promises that transactions take effect. With one, levels are
    /// decided by that order or not at all.
    pub promised_order: Option<PromisedOrder>,
    /// Whether a smaller argument is looked for where one takes several cases.
    pub minimize: bool,
    /// Whether a row that is inserted after a delete is another one, as far as writers of a key exclude
    /// each other: so for histories with predicates.
    by_incarnation: bool,
    /// Transactions of unknown outcome that are taken to have committed.
    committed: Vec<TxnId>,
    /// Ends the check early if it is asked to.
    pub stop: StopFlag,
    /// Who is told how far the check has come.
    pub watcher: Watcher,
}

impl Default for CheckOptions {
    fn default() -> Self {
        CheckOptions {
            session_order: true,
            clock_skew: 0,
            timeout: None,
            memory: None,
            version_order: Vec::new(),
            trust_version_order: false,
            assume: KeyAssumptions::default(),
            version_sets: Vec::new(),
            promised_order: None,
            minimize: true,
            by_incarnation: false,
            committed: Vec::new(),
            stop: StopFlag::default(),
            watcher: Watcher::default(),
        }
    }
}

impl CheckOptions {
    /// With session order, or without.
    #[must_use]
    pub fn with_session_order(self, session_order: bool) -> Self {
        CheckOptions { session_order, ..self }
    }

    /// With clocks that may differ by so many nanoseconds.
    #[must_use]
    pub fn with_clock_skew(self, clock_skew: u64) -> Self {
        CheckOptions { clock_skew, ..self }
    }

    /// With a limit on how long a level that needs search may take.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        CheckOptions { timeout: Some(timeout), ..self }
    }

    /// With a limit on how many bytes a level that needs search may use.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        CheckOptions { memory: Some(bytes), ..self }
    }

    /// With orders of versions, which are tried first.
    #[must_use]
    pub fn with_version_order(self, orders: Vec<StatedOrder>) -> Self {
        CheckOptions { version_order: orders, ..self }
    }

    /// With these orders as part of what is asked, or without.
    #[must_use]
    pub fn with_trusted_version_order(self, trust_version_order: bool) -> Self {
        CheckOptions { trust_version_order, ..self }
    }

    /// With what is assumed of every register.
    #[must_use]
    pub fn with_assumptions(self, assume: KeyAssumptions) -> Self {
        CheckOptions { assume, ..self }
    }

    /// With the versions that predicate operations met.
    #[must_use]
    pub fn with_version_sets(self, sets: Vec<StatedSet>) -> Self {
        CheckOptions { version_sets: sets, ..self }
    }

    /// With an order that the database promises.
    #[must_use]
    pub fn with_promised_order(self, order: PromisedOrder) -> Self {
        CheckOptions { promised_order: Some(order), ..self }
    }

    /// With a handle that ends the check early.
    #[must_use]
    pub fn with_stop(self, stop: StopFlag) -> Self {
        CheckOptions { stop, ..self }
    }

    /// With somebody who is told how far the check has come.
    #[must_use]
    pub fn with_watcher(self, watcher: Watcher) -> Self {
        CheckOptions { watcher, ..self }
    }

    /// Whether orders of versions are stated, and part of what is asked.
    fn trusts_orders(&self) -> bool {
        self.trust_version_order && !self.version_order.is_empty()
    }

    /// Whether orders of versions are part of what is asked, stated or assumed.
    fn asks_for_orders(&self) -> bool {
        self.trusts_orders() || self.assume.order_versions()
    }
}

/// The levels that can be decided, weaker ones first.
pub fn supported() -> &'static [Level] {
    static LEVELS: LazyLock<Vec<Level>> = LazyLock::new(|| Level::decided().collect());
    &LEVELS
}

/// Whether a [promised order](CheckOptions::promised_order) of transactions decides a level: in a list, or by
/// the timestamps of the history, which tell snapshots from commits.
pub fn is_decided_by_promise(level: Level, by_timestamps: bool) -> bool {
    by_timestamps && replay::is_by_versions(level) || replay::moments(level, by_timestamps).is_ok()
}

/// Decides each of the levels, with evidence either way. Who has further questions about the
/// history keeps a [`Checker`].
pub fn check(history: &History, levels: &[Level], options: &CheckOptions) -> Vec<LevelResult> {
    Checker::new(history, options.clone()).check_all(levels)
}

/// The anomalies that can be looked for one by one, in the order of the model's table.
pub fn supported_patterns() -> impl ExactSizeIterator<Item = AnomalyKind> {
    weak::PATTERNS.into_iter()
}

/// Decides which of the anomalies occur in a history, each on its own: see [`Checker::patterns`].
pub fn patterns(
    history: &History,
    kinds: &[AnomalyKind],
    options: &CheckOptions,
) -> Vec<PatternResult> {
    Checker::new(history, options.clone()).patterns(kinds)
}
