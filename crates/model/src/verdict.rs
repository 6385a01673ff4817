//! What a history proves: a verdict per level, with its evidence.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::anomaly::AnomalyKind;
use crate::edge::{Edge, EdgeKind, Reason, VersionOrder};
use crate::level::{Level, LevelSet};
use crate::value::Value;
use crate::{KeyId, OpId, TxnId};

/// The answer for one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelResult {
    /// The level.
    pub level: Level,
    /// The attempt that decided it.
    pub decided_by: Attempt,
    /// The answer.
    pub verdict: Verdict,
}

/// The answer for one anomaly that was looked for on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternResult {
    /// The anomaly.
    pub kind: AnomalyKind,
    /// The answer: satisfied where it does not occur, violated where it does.
    pub verdict: Verdict,
}

/// The ways to decide a level. A check makes some of them, one after the other, until one decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Attempt {
    /// Nothing had to be tried: the level does not apply, or the check ended before its turn.
    Nothing,
    /// Executing the transactions once more in the order that the database promises.
    PromisedOrder,
    /// The version certificate of the database.
    Certificate,
    /// An order of the operations of each key.
    Linearization,
    /// Executing the transactions in an order that the history suggests, comparing values.
    Replay,
    /// Reads that are wrong by themselves, and cycles of sessions, reads and known versions.
    Reads,
    /// Repairing an order of commits until it has all that a weak level demands.
    Order,
    /// Applying the rule of a weak level in full.
    Rule,
    /// Dependencies between transactions where the order of versions is known.
    Versions,
    /// Solving the segments of an order that contradict it.
    Segments,
    /// A search over the whole history.
    Search,
    /// Supposing what each read saw that may have seen several writes.
    Suppositions,
    /// Replaying predicates on the order of single rows.
    Rows,
}

impl Attempt {
    /// All of them.
    pub const ALL: [Attempt; 13] = [
        Attempt::Nothing,
        Attempt::PromisedOrder,
        Attempt::Certificate,
        Attempt::Linearization,
        Attempt::Replay,
        Attempt::Reads,
        Attempt::Order,
        Attempt::Rule,
        Attempt::Versions,
        Attempt::Segments,
        Attempt::Search,
        Attempt::Suppositions,
        Attempt::Rows,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Attempt::Nothing => "nothing",
            Attempt::PromisedOrder => "promised-order",
            Attempt::Certificate => "certificate",
            Attempt::Linearization => "linearization",
            Attempt::Replay => "replay",
            Attempt::Reads => "reads",
            Attempt::Order => "order",
            Attempt::Rule => "rule",
            Attempt::Versions => "versions",
            Attempt::Segments => "segments",
            Attempt::Search => "search",
            Attempt::Suppositions => "suppositions",
            Attempt::Rows => "rows",
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The answer to "does the history satisfy the level?".
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Yes, as the witness shows.
    Satisfied(Witness),
    /// No, as the findings show.
    Violated(Findings),
    /// A limit was reached first.
    Undecided(Undecided),
    /// The level cannot be decided for a history of this kind.
    NotApplicable(Inapplicable),
}

impl Verdict {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// Which of the four it is.
    pub fn kind(&self) -> VerdictKind {
        match self {
            Verdict::Satisfied(_) => VerdictKind::Satisfied,
            Verdict::Violated(_) => VerdictKind::Violated,
            Verdict::Undecided(_) => VerdictKind::Undecided,
            Verdict::NotApplicable(_) => VerdictKind::NotApplicable,
        }
    }

    /// Whether the history satisfies the level.
    pub fn is_satisfied(&self) -> bool {
        matches!(self, Verdict::Satisfied(_))
    }

    /// Whether the history violates the level.
    pub fn is_violated(&self) -> bool {
        matches!(self, Verdict::Violated(_))
    }

    /// The anomalies that violate the level; none if it is not violated.
    pub fn anomalies(&self) -> &[Arc<Anomaly>] {
        match self {
            Verdict::Violated(findings) => &findings.anomalies,
            _ => &[],
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The four answers, without their evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "run-record", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "run-record", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum VerdictKind {
    /// Yes.
    Satisfied,
    /// No.
    Violated,
    /// A limit was reached first.
    Undecided,
    /// The level cannot be decided for a history of this kind.
    NotApplicable,
}

impl VerdictKind {
    /// Its name in reports and files.
    pub fn name(self) -> &'static str {
        match self {
            VerdictKind::Satisfied => "satisfied",
            VerdictKind::Violated => "violated",
            VerdictKind::Undecided => "undecided",
            VerdictKind::NotApplicable => "not-applicable",
        }
    }
}

/// Why a level was not decided, and what was known of it by then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undecided {
    /// What came first.
    pub limit: Limit,
    /// How far the checker had come, where it had begun.
    pub progress: Option<SearchProgress>,
}

impl Undecided {
    /// A limit that was reached before anything was known.
    pub fn new(limit: Limit) -> Self {
        Undecided { limit, progress: None }
    }

    /// With what was known by then.
    #[must_use]
    pub fn with_progress(self, progress: SearchProgress) -> Self {
        Undecided { progress: Some(progress), ..self }
    }
}

/// A limit that ended a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The time that a level may take.
    Time(Duration),
    /// The bytes that a level may use.
    Memory(u64),
    /// There is no order, but the argument for that takes more bytes than may be kept.
    Argument(u64),
    /// The steps that a search may take.
    Steps,
    /// Deciding the level takes a search that is not made for a history of this kind.
    NotSearched,
    /// The check was asked to end.
    Interrupted,
    /// The check was asked to end before this level had its turn.
    NotBegun,
    /// Nobody observed which rows this predicate write wrote, and these may be the reason for what
    /// others saw.
    UnobservedWrite(OpId),
}

/// How far a checker had come with a level that it did not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchProgress {
    /// The search for an order of writes.
    Writes {
        /// How many pairs of writes to one key there are.
        pairs: u64,
        /// How many of them are in an order, if that is known.
        decided: Option<u64>,
        /// The parts that can be solved independently of each other, if they are known.
        parts: Option<SearchParts>,
        /// How many conflicts the search came to, if it began.
        conflicts: Option<u64>,
    },
    /// The search for orders of single operations, key by key.
    Keys {
        /// The first key that is not decided.
        first: KeyId,
        /// How many operations are on it.
        operations: u64,
        /// After how many of them the search gave up.
        ordered: u64,
        /// How many other keys are not decided.
        others: u64,
        /// How many keys are linearizable.
        linearizable: u64,
    },
}

/// The parts of a problem that can be solved independently of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchParts {
    /// How many there are.
    pub total: u64,
    /// How many are not solved.
    pub unsolved: u64,
    /// How many transactions the largest unsolved one has.
    pub largest: u64,
}

/// What shows that a level is satisfied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Witness {
    /// Nothing to show: the level orders nothing.
    Empty,
    /// All kept transactions in an order in which they may have committed.
    ///
    /// It fixes the order of the versions of each key: that of their writers. At consistent view and
    /// parallel snapshot isolation it says nothing else; snapshots need not follow it. At read
    /// uncommitted, which allows reads from aborted transactions, only committed ones are kept.
    CommitOrder(Vec<TxnId>),
    /// An order of commits that does not tell by itself what every read saw.
    Chosen {
        /// All kept transactions in an order in which they may have committed.
        order: Vec<TxnId>,
        /// Of the reads that may have seen the writes of several transactions, whose write each saw, by
        /// operation.
        sources: Vec<ReadSource>,
    },
    /// The start and commit points of all kept transactions, in order.
    Points(Vec<Point>),
    /// All kept operations, each at the moment at which it may have taken effect, in order.
    Linearization(Vec<OpId>),
}

/// Whose write a read saw that may have seen those of several transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadSource {
    /// The read.
    pub read: OpId,
    /// The transaction, or `init`.
    pub writer: TxnId,
}

/// A moment in a transaction's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// It took its snapshot.
    Start(TxnId),
    /// It committed.
    Commit(TxnId),
}

/// What shows that a level is violated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The anomalies, clearest first. An anomaly that violates several levels is one: their
    /// findings share it.
    pub anomalies: Vec<Arc<Anomaly>>,
    /// How many there are in the history.
    pub total: u64,
    /// Whether `total` is exact; a lower bound otherwise.
    pub exact: bool,
}

impl Findings {
    /// Findings of these anomalies. `exact` says whether there are no others.
    pub fn new(anomalies: Vec<Anomaly>, exact: bool) -> Self {
        let anomalies: Vec<_> = anomalies.into_iter().map(Arc::new).collect();
        Findings { total: anomalies.len() as u64, anomalies, exact }
    }
}

/// One anomaly, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Anomaly {
    /// What it is called.
    pub kind: AnomalyKind,
    /// What shows it.
    pub evidence: Evidence,
    /// The levels that the evidence rules out, with all that imply one of them; but see [`Anomaly::at`].
    pub rules_out: LevelSet,
}

impl Anomaly {
    /// An anomaly that rules out whatever forbids its kind.
    ///
    /// Evidence that rests on what one level alone demands proves nothing about others: it rules
    /// out what [`Anomaly::at`] adds.
    pub fn new(kind: AnomalyKind, evidence: Evidence) -> Self {
        let says_no_level =
            matches!(kind, AnomalyKind::NoOrderPossible | AnomalyKind::OrderContradiction);
        let says_little = !evidence.holds_at_every_level() || evidence.rests_on_assumptions();
        let mut rules_out: LevelSet = match says_no_level || says_little {
            true => LevelSet::default(),
            false => Level::all().filter(|level| rules_out(kind, *level)).collect(),
        };
        // Repeatable read allows that a predicate misses a change.
        if evidence.edges().iter().any(|edge| edge.reason.is_missed_by_predicate()) {
            rules_out.remove(Level::RepeatableRead);
            rules_out.remove(Level::StrongRepeatableRead);
        }
        // Without session order, the two levels are the same; with it, the one says nothing.
        if evidence.needs_session_order() {
            rules_out.remove(Level::ConsistentView);
        } else if rules_out.contains(Level::ParallelSnapshotIsolation) {
            rules_out.insert(Level::ConsistentView);
        }
        Anomaly { kind, evidence, rules_out }
    }

    /// What Elle calls it: a cycle by its edges, anything else by the name of its kind.
    ///
    /// Elle names a cycle by its anti-dependencies: how many there are, and whether all are of single
    /// items or one is of a predicate. It says at the end whether the cycle takes the order of a
    /// session (of a *process*) or real time. It has no name for one that takes orders of versions
    /// which nobody saw, and which a level alone demands.
    pub fn elle_name(&self) -> Option<Cow<'static, str>> {
        use AnomalyKind as A;
        let of_kind = self.kind.names().elle.map(Cow::Borrowed);
        match (&self.evidence, self.kind) {
            (_, A::LostUpdate | A::CyclicVersions | A::OrderContradiction) => of_kind,
            (evidence, A::NoOrderPossible) if !evidence.holds_at_every_level() => of_kind,
            // Two who wrote one row, of whom the later one overwrote what the other wrote.
            (Evidence::Cycle { edges }, A::PredicateSingleAntiDependency)
                if edges.iter().all(|edge| edge.reason.kind() == EdgeKind::ReadWrite) =>
            {
                of_kind
            }
            (Evidence::Cycle { edges }, _) => {
                let by_session = self.evidence.needs_session_order();
                elle_cycle(edges, by_session).map(Cow::Owned).or(of_kind)
            }
            _ => of_kind,
        }
    }

    /// The same, known to violate this level, too, and with it those that imply it.
    ///
    /// That a transaction starts at its snapshot is demanded by snapshot isolation alone. What rests on
    /// that says nothing about serializability.
    #[must_use]
    pub fn at(self, level: Level) -> Self {
        let mut stronger = LevelSet::from_iter([level]).and_stronger();
        if self.evidence.rests_on_snapshots() {
            let shape = level.shape().visible;
            stronger = stronger.iter().filter(|other| other.shape().visible == shape).collect();
        }
        Anomaly { rules_out: self.rules_out.union(stronger), ..self }
    }
}

/// Elle's name of a cycle; none if it has edges that clients did not see.
fn elle_cycle(edges: &[Edge], by_session: bool) -> Option<String> {
    use EdgeKind::{ReadWrite, RealTime, Session, WriteRead, WriteWrite};
    let kinds: Vec<EdgeKind> = edges.iter().map(|edge| edge.reason.kind()).collect();
    let known = [ReadWrite, RealTime, Session, WriteRead, WriteWrite];
    if kinds.is_empty() || !kinds.iter().all(|kind| known.contains(kind)) {
        return None;
    }
    let next = kinds.iter().cycle().skip(1);
    let adjacent = kinds.iter().zip(next).any(|pair| pair == (&ReadWrite, &ReadWrite));
    let by_predicate = edges.iter().any(|edge| edge.reason.is_missed_by_predicate());
    let item = if by_predicate { "" } else { "-item" };
    let cycle = match kinds.iter().filter(|kind| **kind == ReadWrite).count() {
        0 if kinds.contains(&WriteRead) => "G1c".to_owned(),
        0 => "G0".to_owned(),
        1 => format!("G-single{item}"),
        _ if !adjacent => format!("G-nonadjacent{item}"),
        _ => format!("G2{item}"),
    };
    let by = match () {
        () if kinds.contains(&RealTime) => "-realtime",
        () if by_session => "-process",
        () => "",
    };
    Some(format!("{cycle}{by}"))
}

/// Whether a kind rules out a level whatever its evidence. Elements of lists may be those of aborted
/// transactions, which say nothing where reads of such are allowed.
fn rules_out(kind: AnomalyKind, level: Level) -> bool {
    let of_elements =
        matches!(kind, AnomalyKind::IncompatibleOrder | AnomalyKind::DuplicateElements);
    let allows_dirty_reads = !AnomalyKind::AbortedRead.forbidden_at(level);
    kind.forbidden_at(level) && !(of_elements && allows_dirty_reads)
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())
    }
}

/// The operations and edges that make up an anomaly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// One read that is wrong whatever the order.
    Read {
        /// The read.
        read: OpId,
        /// The write it saw; none for `init` and for a value nobody wrote.
        saw: Option<OpId>,
        /// The write that makes it wrong: the own write that it should have seen, or the one by
        /// which the writer itself replaced what was seen.
        instead: Option<OpId>,
    },
    /// As [`Evidence::Read`], of a row that a predicate operation returned.
    Row {
        /// The row.
        key: KeyId,
        /// The predicate read.
        read: OpId,
        /// The write it saw; none for `init` and for a value nobody wrote.
        saw: Option<OpId>,
        /// The write that makes it wrong.
        instead: Option<OpId>,
    },
    /// Two reads of one key that do not fit together: of one transaction, or of one list.
    Reads {
        /// The key.
        key: KeyId,
        /// The earlier read.
        first: OpId,
        /// The later read.
        second: OpId,
        /// The edges that make it wrong; may be empty.
        edges: Vec<Edge>,
    },
    /// Edges that lead back to where they began.
    Cycle {
        /// The edges, each beginning where the one before ended.
        edges: Vec<Edge>,
    },
    /// No order is possible: each case is closed by a cycle.
    Cases {
        /// The cycles, shortest first.
        cycles: Vec<Vec<Edge>>,
    },
    /// Single operations on one key that no order explains, whatever else happened.
    ///
    /// Nothing is assumed about operations that are not listed: what a listed one saw counts only
    /// if everyone who may have written it is listed, too.
    Operations {
        /// The key.
        key: KeyId,
        /// The operations.
        ops: Vec<OpId>,
    },
    /// An operation that did not return what it had to, were the transactions in the order that the
    /// database promises.
    Unexpected {
        /// The operation.
        op: OpId,
        /// The keys that make the difference.
        expected: Vec<ExpectedVersion>,
        /// What an aggregate had to return.
        result: Option<Value>,
    },
    /// Two writers of a key that ran at the same time, by the timestamps of the database.
    Concurrent {
        /// The key.
        key: KeyId,
        /// The write of whoever committed first.
        first: OpId,
        /// The write of the other one.
        second: OpId,
    },
    /// An acknowledged write that is gone after the server has been down.
    Lost {
        /// The key.
        key: KeyId,
        /// The write.
        write: OpId,
        /// When the server ended, and when it was back, on the clock of the history.
        down: [i64; 2],
        /// A read after that, of what was there before the write.
        found: OpId,
    },
}

/// Which version of a key was there, by the order that the database promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExpectedVersion {
    /// The key.
    pub key: KeyId,
    /// Who wrote the version; none where it is the initial one.
    pub write: Option<OpId>,
}

impl Evidence {
    /// The edges of the argument: those of the first cycle where there are several.
    pub fn edges(&self) -> &[Edge] {
        match self {
            Evidence::Read { .. }
            | Evidence::Row { .. }
            | Evidence::Operations { .. }
            | Evidence::Unexpected { .. }
            | Evidence::Concurrent { .. }
            | Evidence::Lost { .. } => &[],
            Evidence::Reads { edges, .. } | Evidence::Cycle { edges } => edges,
            Evidence::Cases { cycles } => cycles.first().map_or(&[], Vec::as_slice),
        }
    }

    /// Whether the argument rests on the order of a session.
    pub fn needs_session_order(&self) -> bool {
        self.walk().any(|edge| edge.reason == Reason::Session)
    }

    /// Whether the argument rests on what is assumed of every key.
    pub fn rests_on_assumptions(&self) -> bool {
        self.walk().any(|edge| matches!(edge.reason.known(), Some(VersionOrder::Guaranteed { .. })))
    }

    /// Whether the argument rests on what stated snapshots show.
    pub fn rests_on_snapshots(&self) -> bool {
        self.walk().any(|edge| matches!(edge.reason, Reason::StartDependency { .. }))
    }

    /// Every edge of the argument, of all its cycles, each one followed by those that it rests on.
    pub fn walk(&self) -> impl Iterator<Item = &Edge> {
        let (cycles, edges) = match self {
            Evidence::Cases { cycles } => (cycles.as_slice(), [].as_slice()),
            other => ([].as_slice(), other.edges()),
        };
        Edge::walk(cycles.iter().flatten().chain(edges))
    }

    /// Whether it shows what it shows whichever level is asked for. A case analysis is about one
    /// level.
    fn holds_at_every_level(&self) -> bool {
        match self {
            Evidence::Cases { .. } => false,
            other => other.edges().iter().all(|edge| edge.reason.holds_at_every_level()),
        }
    }
}

/// Why a level cannot be decided for a history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inapplicable {
    /// A read may have seen either of two writes.
    AmbiguousRead {
        /// The read.
        read: OpId,
        /// One write; none for `init`.
        first: Option<OpId>,
        /// Another one.
        second: OpId,
        /// How many reads are ambiguous in all.
        total: u64,
    },
    /// The checkers for this level do not know this kind of operation.
    Operation {
        /// An operation of that kind.
        op: OpId,
    },
    /// A conditional write does not tell whether it took effect, or what it found, and the level is not
    /// decided by what it may have been.
    OpenConditional {
        /// The conditional write.
        op: OpId,
    },
    /// The level is about single operations, and a transaction has several.
    SeveralOperations {
        /// Such a transaction.
        txn: TxnId,
    },
    /// The level needs times, and the history has none.
    NoTimes,
    /// The level needs a version order, and the history shows none.
    NoVersionOrder,
    /// There is no checker for the level, or for the anomaly alone.
    NoChecker,
    /// The anomaly is about causal order, and transactions depend on each other in a cycle: there is
    /// none.
    CyclicDependencies,
    /// Clocks may differ by the skew that was given, but the times are only an order of events.
    SkewOfEventOrder,
    /// An order that the database promises does not decide this level.
    NotByPromisedOrder,
    /// The database promises an order, and this transaction has no place in it.
    NotInPromisedOrder {
        /// The transaction.
        txn: TxnId,
    },
    /// The order that the database promises leaves open which of two transactions comes first, and
    /// that matters.
    TiedInPromisedOrder {
        /// One transaction.
        first: TxnId,
        /// Another one.
        second: TxnId,
    },
    /// A version certificate does not decide this level.
    NotByCertificate,
    /// The order of the versions of a row is part of the question, and it is not stated in full.
    OpenVersionOrder {
        /// The row.
        key: KeyId,
    },
    /// The versions that predicate operations met are part of the question, and those of some are not
    /// stated. Nothing that they may have met is known to explain the history, and nothing refutes it.
    NoVersionSet {
        /// The first such operation.
        op: OpId,
        /// How many there are.
        total: u64,
    },
    /// A predicate, or a function over rows, that cannot be evaluated.
    Predicate {
        /// The operation that has it.
        op: OpId,
    },
    /// Predicates say something about rows that they did not return, and the level is not decided by
    /// that. Single rows do not violate it.
    UnreturnedRows {
        /// The first operation with a predicate.
        op: OpId,
    },
    /// A result has a row twice: one that was deleted, and another one that was inserted in its place. Only
    /// levels at which all that ever went by a key is one row are decided for that.
    RowTwice {
        /// The operation with the result.
        op: OpId,
    },
    /// A function over rows, without the rows, that no order was found to explain.
    BareAggregate {
        /// The function.
        op: OpId,
    },
}
