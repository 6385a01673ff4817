//! A history that can be asked about levels and anomalies, and what its answers share.

use std::sync::{Arc, OnceLock};

use isolario_model::{
    Anomaly, AnomalyKind, Attempt, History, Inapplicable, Level, LevelResult, OpId, OpKind,
    PatternResult, TxnId, VerdictKind, Witness,
};
use rustc_hash::FxHashSet;

use crate::CheckOptions;
use crate::certificate::Certificate;
use crate::findings;
use crate::plan::Conclusion;
use crate::resolved::{MetRows, RESOLVED, Resolved, first_outside};
use crate::serial::{self, Serial};
use crate::versions::Ordered;
use crate::weak::Weak;

/// A history that can be asked about levels and anomalies.
///
/// Its reads are resolved once, at the first question that needs it, and all questions share what
/// has been found out so far.
///
/// ```
/// use isolario_check::{Checker, CheckOptions};
/// use isolario_model::{Batch, Level};
///
/// let history = Batch::new().build()?;
/// let checker = Checker::new(&history, CheckOptions::default());
/// assert!(checker.check(Level::Causal).verdict.is_satisfied());
/// assert!(checker.check(Level::Serializable).verdict.is_satisfied());
/// # Ok::<(), isolario_model::SinkError>(())
/// ```
pub struct Checker<'h> {
    pub(crate) history: &'h History,
    pub(crate) options: CheckOptions,
    /// Rows that predicates or conditional writes matched in an unknown version. Levels that need an order of
    /// versions are not decided with them.
    pub(crate) met: Arc<MetRows>,
    /// The history with its version certificate, if it has one, or what the certificate lacks.
    pub(crate) certificate: OnceLock<Result<Certificate<'h>, Inapplicable>>,
    /// The history with its reads resolved; none if an operation cannot be resolved.
    engines: OnceLock<Option<Engines<'h>>>,
    /// The same question without session order, for levels that do not count it.
    sessionless: OnceLock<Box<Checker<'h>>>,
    /// Whether a replay by value may show a serial order.
    may_replay: OnceLock<bool>,
    /// The serial order that a replay by value shows.
    serial: OnceLock<Option<Serial>>,
}

/// What decides levels once reads are resolved.
pub(crate) struct Engines<'h> {
    pub(crate) resolved: Arc<Resolved<'h>>,
    pub(crate) weak: Weak<'h>,
    ordered: OnceLock<Ordered<'h>>,
    /// The witness of a level stronger than the weak ones, if one was searched for and found.
    pub(crate) stronger: OnceLock<Option<Witness>>,
}

impl<'h> Engines<'h> {
    fn new(resolved: Resolved<'h>) -> Self {
        let resolved = Arc::new(resolved);
        let weak = Weak::new(Arc::clone(&resolved));
        Engines { resolved, weak, ordered: OnceLock::new(), stronger: OnceLock::new() }
    }

    pub(crate) fn ordered(&self, options: &CheckOptions) -> &Ordered<'h> {
        self.ordered.get_or_init(|| Ordered::new(&self.resolved, options))
    }

    /// One read of a list by each transaction of unknown outcome that has one and from which another
    /// transaction may have read. No level is decided by what these reads returned.
    pub(crate) fn open_lists(&self) -> Vec<OpId> {
        let dependencies = &self.resolved.dependencies;
        let (history, Some(open)) = (dependencies.history, &dependencies.reads.choices.open) else {
            return Vec::new();
        };
        let is_list = |op: &OpId| history.op_kinds()[op.index()] == OpKind::ReadList;
        let maybe = open.maybe.iter().filter_map(|txn| history.txn_ops(*txn).find(is_list));
        let mut lists: Vec<OpId> = maybe.collect();
        if !lists.is_empty() {
            let writers: FxHashSet<&TxnId> = open.writers.entries().iter().collect();
            lists.retain(|op| writers.contains(&history.op_txn(*op)));
        }
        lists
    }
}

impl<'h> Checker<'h> {
    /// A checker of a history. Nothing is worked out before the first question.
    pub fn new(history: &'h History, options: CheckOptions) -> Self {
        Checker::with_matched(history, options, Arc::new([]))
    }

    /// A checker of the view of a history as one of single rows, with some that were matched.
    pub(crate) fn with_matched(
        history: &'h History,
        options: CheckOptions,
        met: Arc<MetRows>,
    ) -> Self {
        Checker {
            history,
            options,
            met,
            certificate: OnceLock::new(),
            engines: OnceLock::new(),
            sessionless: OnceLock::new(),
            may_replay: OnceLock::new(),
            serial: OnceLock::new(),
        }
    }

    /// Decides a level, with evidence either way.
    pub fn check(&self, level: Level) -> LevelResult {
        let mut results = self.decide_all(&[level]);
        findings::share(self.history, &mut results);
        results.pop().unwrap_or_else(|| Conclusion::not_begun().result(level, Attempt::Nothing))
    }

    /// Decides each of the levels. An anomaly that several of them find is one.
    pub fn check_all(&self, levels: &[Level]) -> Vec<LevelResult> {
        self.check_named(levels, &[])
    }

    /// As [`Checker::check_all`], with more where one of the named levels does not apply to the
    /// history: it is violated all the same if one that it implies is. So those are decided, too,
    /// and what is violated of them follows the other results.
    pub fn check_named(&self, levels: &[Level], named: &[Level]) -> Vec<LevelResult> {
        let mut results = self.decide_all(levels);
        let does_not_apply = |level: &Level| {
            let own = results.iter().find(|result| result.level == *level);
            own.is_some_and(|result| result.verdict.kind() == VerdictKind::NotApplicable)
        };
        let without: Vec<Level> = named.iter().copied().filter(does_not_apply).collect();
        let implied = |level: &Level| without.iter().any(|named| named.is_ruled_out_by(*level));
        let weaker = Level::decided().filter(|level| implied(level) && !levels.contains(level));
        let mut violated = self.decide_all(&weaker.collect::<Vec<_>>());
        violated.retain(|result| result.verdict.is_violated());
        results.extend(violated);
        findings::share(self.history, &mut results);
        results
    }

    /// Decides which of the anomalies occur, each on its own.
    ///
    /// An anomaly is a pattern of Plume's Table 1 (`CO` and `CM` are then two different patterns:
    /// the second is what causal order alone does not make the first), or the non-monotonic read of
    /// one key. What is found comes with evidence; what is not found does not occur, or it is said
    /// why that could not be decided.
    ///
    /// ```
    /// use isolario_check::{Checker, CheckOptions};
    /// use isolario_model::{AnomalyKind, Batch, Op, Outcome, TxnEnd, TxnSink, TxnStart, Verdict};
    ///
    /// // Alice reads twice, and Bob writes in between.
    /// let mut batch = Batch::new();
    /// let (x, one) = ("x".into(), 1i64.into());
    /// batch.begin(&TxnStart { session: "alice".into(), id: None, line: None })?;
    /// batch.op(&Op::Read { key: x, value: Some(isolario_model::ValueRef::Nil) })?;
    /// batch.op(&Op::Read { key: x, value: Some(one) })?;
    /// batch.end(&TxnEnd::new(Outcome::Committed))?;
    /// batch.begin(&TxnStart { session: "bob".into(), id: None, line: None })?;
    /// batch.op(&Op::Write { key: x, value: one })?;
    /// batch.end(&TxnEnd::new(Outcome::Committed))?;
    ///
    /// let wanted = [AnomalyKind::NonRepeatableRead, AnomalyKind::NonMonotonicRead];
    /// let history = batch.build()?;
    /// let found = Checker::new(&history, CheckOptions::default()).patterns(&wanted);
    /// assert!(matches!(found[0].verdict, Verdict::Violated(_)));
    /// assert!(matches!(found[1].verdict, Verdict::Satisfied(_)));
    /// # Ok::<(), isolario_model::SinkError>(())
    /// ```
    pub fn patterns(&self, kinds: &[AnomalyKind]) -> Vec<PatternResult> {
        let outside = first_outside(self.history, RESOLVED);
        let conclusion = match (outside, self.options.stop.is_asked()) {
            (Some(op), _) => Conclusion::Inapplicable(Inapplicable::Operation { op }),
            (None, true) => Conclusion::not_begun(),
            (None, false) => match self.engines() {
                Some(engines) => return engines.weak.patterns(kinds),
                None => Conclusion::Pass,
            },
        };
        kinds.iter().map(|kind| conclusion.clone().pattern(*kind)).collect()
    }

    /// What is wrong with single reads, at every level that has something to say about them. Nothing where
    /// operations cannot be resolved.
    pub(crate) fn wrong_reads(&self) -> &[Anomaly] {
        self.engines().map_or(&[], |engines| &engines.resolved.dependencies.reads.anomalies)
    }

    /// Whether a transaction committed, by its outcome or because a committed one read what it wrote.
    pub(crate) fn is_kept(&self, txn: TxnId) -> bool {
        self.engines().is_some_and(|engines| engines.resolved.dependencies.reads.is_kept(txn))
    }

    /// See [`Engines::open_lists`].
    pub(crate) fn open_lists(&self) -> Vec<OpId> {
        self.engines().map_or_else(Vec::new, Engines::open_lists)
    }

    /// None if an operation cannot be resolved.
    pub(crate) fn engines(&self) -> Option<&Engines<'h>> {
        let resolve = || {
            let resolve = || Resolved::with_matched(self.history, &self.met, &self.options);
            first_outside(self.history, RESOLVED).is_none().then(|| Engines::new(resolve()))
        };
        self.engines.get_or_init(resolve).as_ref()
    }

    /// The same question without session order.
    pub(crate) fn sessionless(&self) -> &Checker<'h> {
        self.sessionless.get_or_init(|| {
            let options = self.options.clone().with_session_order(false);
            let without = Checker::with_matched(self.history, options, Arc::clone(&self.met));
            let again = |own: &Engines<'h>| Engines::new(own.resolved.again(&without.options));
            let engines = OnceLock::from(self.engines().map(again));
            Box::new(Checker { engines, ..without })
        })
    }

    /// Whether a replay by value may show a serial order.
    pub(crate) fn may_replay(&self) -> bool {
        *self
            .may_replay
            .get_or_init(|| self.met.is_empty() && serial::may_find(self.history, &self.options))
    }

    /// The serial order that a replay by value shows.
    pub(crate) fn serial(&self) -> Option<&Serial> {
        self.serial.get_or_init(|| Serial::find(self.history, &self.options)).as_ref()
    }
}
