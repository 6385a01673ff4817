//! Which engine decides a level of a history, and what the answers share.

mod otherwise;
mod split;

pub use split::{DecisionScope, WholeReason};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use isolario_model::{
    Anomaly, AnomalyKind, Clock, Engine, Findings, History, Inapplicable, KeyAssumption, KeyId,
    Level, LevelNodes, LevelResult, Limit, OpFamily, OpId, OpKind, PatternResult, PromisedOrder,
    StatedOrder, TxnId, Undecided, Verdict, VerdictKind,
};

use rustc_hash::FxHashSet;

use crate::CheckOptions;
use crate::certificate::{self, Certificate};
use crate::conditionals;
use crate::findings;
use crate::lin;
use crate::mini::Mini;
use crate::minimal::minimal;
use crate::predicates::{self, Deleters};
use crate::replay;
use crate::resolved::{BlindWrite, MetRows, RESOLVED, Resolved, first_outside};
use crate::serial::Serial;
use crate::stop::{engine_of, unlooked, unlooked_level};
use crate::strong::{self, Decided};
use crate::versions::{self, Ordered, Uncommitted};
use crate::weak::Weak;
use crate::weak::chosen::{self, Decider};

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
    history: &'h History,
    options: CheckOptions,
    /// The history as the engines know it, or an operation that none of them knows.
    engines: OnceLock<Result<Engines<'h>, OpId>>,
    /// The history with its version certificate, if it has one, or what the certificate lacks.
    certificate: OnceLock<Result<Certificate<'h>, Inapplicable>>,
    /// The same without session order, for levels that do not count it.
    sessionless: OnceLock<Box<Checker<'h>>>,
    /// Rows that predicates or conditional writes met, and nobody knows in which version. Levels that need
    /// an order of versions are not decided with them.
    met: Arc<MetRows>,
    /// An order in which transactions may have run one after the other, if one is found at once.
    serial: OnceLock<Option<Serial>>,
}

/// What decides levels of transactions.
struct Engines<'h> {
    resolved: Arc<Resolved<'h>>,
    weak: Weak<'h>,
    mini: OnceLock<Result<Mini<'h>, BlindWrite>>,
    ordered: OnceLock<Ordered<'h>>,
    /// What shows that it satisfies a stronger level than the weak ones, if that was looked for and
    /// found.
    stronger: OnceLock<Option<Verdict>>,
    /// A bit per level that a search decided window by window.
    by_windows: AtomicU64,
}

impl<'h> Engines<'h> {
    fn new(resolved: Resolved<'h>) -> Self {
        let resolved = Arc::new(resolved);
        let weak = Weak::new(Arc::clone(&resolved));
        Engines {
            resolved,
            weak,
            mini: OnceLock::new(),
            ordered: OnceLock::new(),
            stronger: OnceLock::new(),
            by_windows: AtomicU64::new(0),
        }
    }

    /// Takes note of how a search decided a level.
    fn note(&self, level: Level, by_windows: bool) {
        self.by_windows.fetch_or(u64::from(by_windows) << level as u32, Ordering::Relaxed);
    }

    /// Whether a search decided a level window by window.
    fn searched_by_windows(&self, level: Level) -> bool {
        self.by_windows.load(Ordering::Relaxed) >> level as u32 & 1 == 1
    }
}

impl<'h> Checker<'h> {
    /// A checker of a history. Nothing is worked out before the first question.
    pub fn new(history: &'h History, options: CheckOptions) -> Self {
        Checker::with_matched(history, options, Arc::new([]))
    }

    pub(crate) fn options(&self) -> &CheckOptions {
        &self.options
    }

    pub(crate) fn history(&self) -> &'h History {
        self.history
    }

    /// A checker of the view of a history as one of single rows, with some that were met.
    pub(crate) fn with_matched(
        history: &'h History,
        options: CheckOptions,
        met: Arc<MetRows>,
    ) -> Self {
        Checker {
            history,
            options,
            engines: OnceLock::new(),
            certificate: OnceLock::new(),
            sessionless: OnceLock::new(),
            met,
            serial: OnceLock::new(),
        }
    }

    /// Decides a level, with evidence either way.
    pub fn check(&self, level: Level) -> LevelResult {
        let mut results = self.decide_all(&[level]);
        findings::share(self.history, &mut results);
        results.pop().unwrap_or_else(|| unlooked_level(level))
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
        let verdict = match self.known_engines() {
            Ok(engines) => return engines.weak.patterns(kinds),
            Err(verdict) => verdict,
        };
        let answer = |kind: &AnomalyKind| PatternResult { kind: *kind, verdict: verdict.clone() };
        kinds.iter().map(answer).collect()
    }

    /// What is wrong with single reads, at every level that looks at them. Nothing where operations cannot be
    /// resolved.
    pub(crate) fn wrong_reads(&self) -> &[Anomaly] {
        self.engines().map_or(&[], |engines| &engines.resolved.dependencies.reads.anomalies)
    }

    fn engines(&self) -> Result<&Engines<'h>, OpId> {
        let resolve = || match first_outside(self.history, RESOLVED) {
            Some(op) => Err(op),
            None => {
                let resolved = Resolved::with_matched(self.history, &self.met, &self.options);
                Ok(Engines::new(resolved))
            }
        };
        self.engines.get_or_init(resolve).as_ref().map_err(|op| *op)
    }

    /// The engines, or the answer to whatever they are asked.
    fn known_engines(&self) -> Result<&Engines<'h>, Verdict> {
        if self.options.stop.is_asked() && first_outside(self.history, RESOLVED).is_none() {
            return Err(unlooked());
        }
        self.engines().map_err(|op| Verdict::NotApplicable(Inapplicable::Operation { op }))
    }

    fn decide_all(&self, levels: &[Level]) -> Vec<LevelResult> {
        let is_stated = self.options.promised_order.is_some() || self.is_certified();
        if self.history.has_predicates() && !is_stated {
            return predicates::check(self.history, levels, &self.options);
        }
        if self.has_conditionals() && !is_stated {
            return conditionals::check(self, levels);
        }
        if is_stated || !self.history.may_reuse_rows() {
            return levels.iter().map(|level| self.decide(*level)).collect();
        }
        let by_row = |level: &&Level| predicates::is_by_row(**level);
        let by_row: Vec<Level> = levels.iter().filter(by_row).copied().collect();
        let mut of_rows = match by_row.is_empty() {
            true => Vec::new(),
            false => predicates::check(self.history, &by_row, &self.options),
        };
        let deleters = Deleters::new(self.history);
        let mut decide = |level: &Level| {
            if let Some(at) = of_rows.iter().position(|result| result.level == *level) {
                return of_rows.swap_remove(at);
            }
            let mut result = self.decide(*level);
            deleters.claim_no_more(&mut result);
            result
        };
        levels.iter().map(&mut decide).collect()
    }

    /// Whether conditional writes have to be taken as reads and writes. Beside predicates, nobody does.
    fn has_conditionals(&self) -> bool {
        self.history.has_conditionals() && !self.history.has_predicates()
    }

    /// Decides a level of a history of single rows, or by a certificate or a promised order.
    pub(crate) fn decide(&self, level: Level) -> LevelResult {
        if let Some(order) = &self.options.promised_order {
            let verdict = self.by_promise(order, level);
            return LevelResult { level, engine: Engine::Versions, verdict };
        }
        if self.is_certified() && certificate::decides(level) {
            let verdict = self.by_certificate(level);
            return LevelResult { level, engine: Engine::Versions, verdict };
        }
        if self.is_certified() && self.history.has_predicates() {
            let verdict = Verdict::NotApplicable(Inapplicable::NotByCertificate);
            return LevelResult { level, engine: engine_of(level), verdict };
        }
        // Linearizability is about operations of more kinds, and needs none of what the other levels
        // share.
        let (engine, verdict) = if level.shape().nodes == LevelNodes::PerOperation {
            match self.options.stop.is_asked() {
                true => return unlooked_level(level),
                false => (Engine::Lin, lin::check(self.history, &self.options)),
            }
        } else if let Some(answer) = self.by_serial_order(level) {
            answer
        } else {
            match self.known_engines() {
                Ok(engines) => self.decide_with(engines, level),
                Err(Verdict::Undecided(_)) => return unlooked_level(level),
                Err(verdict) => (Engine::Weak, verdict),
            }
        };
        LevelResult { level, engine, verdict }
    }

    /// Decides a level by an order in which transactions may have run one after the other, if one is found at once
    /// and shows that the level holds.
    fn by_serial_order(&self, level: Level) -> Option<(Engine, Verdict)> {
        if self.options.stop.is_asked() || !self.met.is_empty() || self.lacks(level).is_some() {
            return None;
        }
        let serial = self.serial.get_or_init(|| Serial::find(self.history, &self.options));
        serial.as_ref()?.check(self.history, level, &self.options)
    }

    /// Whether the order of versions is part of what is asked, and there are predicates, so that it
    /// takes the versions that they met as well, or rows that may come back.
    fn is_certified(&self) -> bool {
        let CheckOptions { trust_version_order, version_order, version_sets, .. } = &self.options;
        let is_stated = !version_order.is_empty() || !version_sets.is_empty();
        let history = self.history;
        let has_rows =
            || history.may_reuse_rows() && first_outside(history, &[OpFamily::Registers]).is_none();
        *trust_version_order && is_stated && (history.has_predicates() || has_rows())
    }

    /// Decides a level by the version certificate.
    fn by_certificate(&self, level: Level) -> Verdict {
        if self.options.stop.is_asked() {
            return unlooked();
        }
        if let Some(reason) = self.lacks_times(level) {
            return Verdict::NotApplicable(reason);
        }
        let new = || Certificate::new(self.history, &self.options);
        match self.certificate.get_or_init(new) {
            Ok(certificate) => certificate.check(level),
            Err(reason) => Verdict::NotApplicable(reason.clone()),
        }
    }

    /// Decides a level by the order that the database promises.
    fn by_promise(&self, order: &PromisedOrder, level: Level) -> Verdict {
        match self.lacks_times(level) {
            _ if self.options.stop.is_asked() => unlooked(),
            Some(reason) => Verdict::NotApplicable(reason),
            None if order.is_by_stamps() && replay::is_by_versions(level) => {
                self.by_promised_versions(order, level)
            }
            None => replay::check(self.history, order, level, &self.options),
        }
    }

    /// Decides a level by the order of versions that follows from commit timestamps.
    fn by_promised_versions(&self, order: &PromisedOrder, level: Level) -> Verdict {
        match order.version_orders(self.history) {
            Err((first, second)) => {
                Verdict::NotApplicable(Inapplicable::TiedInPromisedOrder { first, second })
            }
            Ok(orders) => {
                let options = self.options.clone().with_version_order(orders);
                let options = CheckOptions { promised_order: None, ..options };
                let checker = Checker::new(self.history, options.with_trusted_version_order(true));
                checker.decide_all(&[level]).pop().map_or_else(unlooked, |result| result.verdict)
            }
        }
    }

    fn decide_with(&self, engines: &Engines<'h>, level: Level) -> (Engine, Verdict) {
        let versions = |verdict| (Engine::Versions, verdict);
        if !level.is_decided() {
            return (Engine::Weak, Verdict::NotApplicable(Inapplicable::NoChecker));
        }
        if let Some(reason) = self.lacks(level) {
            return (engine_of(level), Verdict::NotApplicable(reason));
        }
        match level {
            Level::ReadUncommitted | Level::StrongReadUncommitted => {
                let uncommitted = Uncommitted::new(&engines.resolved, &self.options);
                versions(uncommitted.check(level))
            }
            Level::StrongAdyaReadCommitted => versions(self.strong_committed(engines)),
            Level::ConsistentView if self.options.session_order => {
                versions(self.sessionless().decide(Level::ParallelSnapshotIsolation).verdict)
            }
            _ if Level::Causal.implies(level) => (Engine::Weak, self.decide_weak(engines, level)),
            _ => self.decide_strong(engines, level),
        }
    }

    fn decide_weak(&self, engines: &Engines<'h>, level: Level) -> Verdict {
        if level.shape().nodes == LevelNodes::None {
            return self.cut_isolation(engines);
        }
        match engines.weak.check(level) {
            Verdict::NotApplicable(reason) => self.choose_weak(engines, level, reason),
            Verdict::Satisfied(_) if let Some(reason) = self.met_refusal() => {
                self.choose_weak(engines, level, reason)
            }
            verdict => verdict,
        }
    }

    /// Rows that were met do not count unless they are read again: what was met may have been an aborted
    /// write, and nothing follows from that.
    fn cut_isolation(&self, engines: &Engines<'h>) -> Verdict {
        let Some(reason) = self.met_refusal() else {
            return engines.weak.check(Level::CutIsolation);
        };
        let resolved = Resolved::with_matched(self.history, &[], &self.options);
        match Weak::new(Arc::new(resolved)).check(Level::CutIsolation) {
            Verdict::Satisfied(_) if self.is_met_again() => Verdict::NotApplicable(reason),
            verdict => verdict,
        }
    }

    fn choose_weak(&self, engines: &Engines<'h>, level: Level, refusal: Inapplicable) -> Verdict {
        let check = |resolved: &_| Weak::new(Arc::clone(resolved)).check(level);
        let stronger = |time| self.stronger(engines, time);
        self.choose(engines, level, refusal, &Decider { check: &check, stronger: &stronger })
    }

    /// Why a level is not decided that nothing but a row which was met keeps from being so, if one was.
    fn met_refusal(&self) -> Option<Inapplicable> {
        self.met.first().map(|(op, _)| Inapplicable::OpenConditional { op: *op })
    }

    /// Whether somebody read a key again of which it is open what was met.
    fn is_met_again(&self) -> bool {
        let history = self.history;
        self.met.iter().any(|(met, _)| {
            let mut others = history.txn_ops(history.op_txn(*met)).filter(|op| op != met);
            others.any(|op| {
                use OpKind::{Read, ReadUnobserved};
                history.op_keys()[op.index()] == history.op_keys()[met.index()]
                    && matches!(history.op_kinds()[op.index()], Read | ReadUnobserved)
            })
        })
    }

    /// Decides a level that is refused because reads may have seen several writes, by what is said of
    /// it where nothing is open.
    fn choose(
        &self,
        engines: &Engines<'h>,
        level: Level,
        refusal: Inapplicable,
        decider: &Decider<'_, 'h>,
    ) -> Verdict {
        match &engines.resolved.dependencies.reads.choices.open {
            Some(open) if self.may_choose(engines) && self.maybe_lists(engines).is_empty() => {
                let verdict =
                    chosen::decide(&engines.resolved, open, level, &self.options, decider);
                self.in_fewer_words(level, verdict)
            }
            _ => Verdict::NotApplicable(refusal),
        }
    }

    /// What shows that the history satisfies a stronger level than the weak ones, if that is found
    /// within some time for each. An order of everything tells what all reads saw.
    fn stronger(&self, engines: &Engines<'h>, time: Duration) -> Option<Verdict> {
        let search = |level| {
            let options = CheckOptions { timeout: Some(time), ..self.options.clone() };
            Some(strong::check(&engines.resolved, level, &options).verdict)
                .filter(|verdict| verdict.kind() == VerdictKind::Satisfied)
        };
        let mut levels = [Level::Serializable, Level::Prefix].into_iter();
        let search = || if self.has_lists() { None } else { levels.find_map(search) };
        engines.stronger.get_or_init(search).clone()
    }

    /// The same question without session order.
    fn sessionless(&self) -> &Checker<'h> {
        self.sessionless.get_or_init(|| {
            let options = self.options.clone().with_session_order(false);
            let without = Checker::with_matched(self.history, options, Arc::clone(&self.met));
            let engines =
                self.engines().map(|own| Engines::new(own.resolved.again(&without.options)));
            let engines = OnceLock::from(engines);
            Box::new(Checker { engines, ..without })
        })
    }

    fn strong_committed(&self, engines: &Engines<'h>) -> Verdict {
        let reads = &engines.resolved.dependencies.reads;
        let mut wrong = reads.anomalies.clone();
        if self.options.session_order {
            wrong.extend_from_slice(&reads.from_later);
        }
        wrong.extend_from_slice(engines.weak.wrong_versions());
        let skew = self.options.clock_skew;
        match versions::check_committed(&engines.resolved, skew, wrong) {
            Verdict::Satisfied(_)
                if let Some(reason) =
                    reads.choices.refusal.clone().or_else(|| self.met_refusal()) =>
            {
                let check = |resolved: &Arc<Resolved<'h>>| {
                    versions::check_committed(resolved, skew, Vec::new())
                };
                let decider = Decider { check: &check, stronger: &|_| None };
                self.choose(engines, Level::StrongAdyaReadCommitted, reason, &decider)
            }
            verdict => verdict,
        }
    }

    /// Wrong reads refute a strong level whatever the rest. Without them, a history of registers is
    /// decided in linear time if every write in it follows a read, and by search otherwise. Lists show
    /// the order of versions, but for what nobody read of them; where that makes a difference, it is
    /// searched for, too.
    fn decide_strong(&self, engines: &Engines<'h>, level: Level) -> (Engine, Verdict) {
        let engine = match level.needs().version_order || self.has_lists() {
            true => Engine::Versions,
            false => Engine::Mini,
        };
        let mut anomalies = engines.weak.wrong_reads();
        if !anomalies.is_empty() || engine != Engine::Versions || !self.is_serial(engines) {
            anomalies.extend_from_slice(engines.weak.base_cycles());
        }
        if !anomalies.is_empty() {
            anomalies.extend(match engine {
                Engine::Versions => self.ordered(engines).lost(level),
                _ => self.lost_updates(engines, level),
            });
            return (engine, Verdict::Violated(Findings::new(anomalies, false)));
        }
        if level.needs().version_order
            && let Some(reason) = self.met_refusal()
        {
            return (engine, Verdict::NotApplicable(reason));
        }
        let search = || self.search(engines, level);
        if !self.met.is_empty() || self.may_come_back(level) {
            let verdict = match self.may_choose(engines) {
                true => search(),
                false => Verdict::Undecided(Undecided::new(Limit::Steps)),
            };
            return (Engine::Strong { blind: None }, verdict);
        }
        if let Some(reason) = &engines.resolved.dependencies.reads.choices.refusal {
            return match engine == Engine::Mini && self.may_choose(engines) {
                true => (Engine::Strong { blind: None }, search()),
                false => (engine, Verdict::NotApplicable(reason.clone())),
            };
        }
        if engine == Engine::Versions {
            return match self.ordered(engines).check(level) {
                Some(verdict) => (engine, self.in_fewer_words(level, verdict)),
                None => (Engine::Strong { blind: None }, search()),
            };
        }
        match self.mini(engines) {
            Err(BlindWrite(write)) => {
                let blind = Some(*write).filter(|write| !self.is_placed(*write));
                (Engine::Strong { blind }, search())
            }
            Ok(mini) => match mini.check(level).filter(|_| !self.options.asks_for_orders()) {
                Some(verdict) => (Engine::Mini, verdict),
                None => (Engine::Strong { blind: None }, search()),
            },
        }
    }

    /// Whether a trusted order of versions says which version a write replaced.
    fn is_placed(&self, write: OpId) -> bool {
        let (key, txn) = (self.history.op_keys()[write.index()], self.history.op_txn(write));
        let says = |order: &StatedOrder| order.key == key && order.writers.contains(&txn);
        self.options.trusts_orders() && self.options.version_order.iter().any(says)
    }

    /// Whether reads that may have seen several writes can be left to the search. Not where a stated
    /// order is part of the question and it is open whether a writer that it names is there, nor where
    /// the order of versions depends on what reads saw.
    fn may_choose(&self, engines: &Engines<'h>) -> bool {
        let Some(open) = &engines.resolved.dependencies.reads.choices.open else { return false };
        let may_lack = |writer: &TxnId| open.maybe.binary_search(writer).is_ok();
        let stated = self.options.version_order.iter().filter(|_| self.options.trusts_orders());
        !self.options.assume.order_versions()
            && !stated.flat_map(|order| &order.writers).any(may_lack)
    }

    /// Reads of lists by transactions of which it is open whether they committed, one of each. No level is
    /// decided by what these returned.
    pub(crate) fn open_lists(&self) -> Vec<OpId> {
        self.engines().map_or_else(|_| Vec::new(), |engines| self.maybe_lists(engines))
    }

    fn maybe_lists(&self, engines: &Engines<'h>) -> Vec<OpId> {
        let Some(open) = &engines.resolved.dependencies.reads.choices.open else {
            return Vec::new();
        };
        let is_list = |op: &OpId| self.history.op_kinds()[op.index()] == OpKind::ReadList;
        let maybe = open.maybe.iter().filter_map(|txn| self.history.txn_ops(*txn).find(is_list));
        let mut lists: Vec<OpId> = maybe.collect();
        if !lists.is_empty() {
            let writers: FxHashSet<&TxnId> = open.writers.entries().iter().collect();
            lists.retain(|op| writers.contains(&self.history.op_txn(*op)));
        }
        lists
    }

    /// Whether right reads and what is known of versions agree with some serial order. Then session order,
    /// reads and versions have no cycle, and nobody has to look for one.
    fn is_serial(&self, engines: &Engines<'h>) -> bool {
        engines.resolved.dependencies.reads.choices.refusal.is_none()
            && engines.weak.wrong_versions().is_empty()
            && self.ordered(engines).serial_order().is_some()
    }

    /// Whether rows that come back after a delete make a difference to a level.
    fn may_come_back(&self, level: Level) -> bool {
        self.options.by_incarnation
            && level.shape().exclusive_writers
            && self.history.may_reuse_rows()
    }

    fn has_lists(&self) -> bool {
        first_outside(self.history, REGISTERS).is_some()
    }

    fn ordered<'e>(&self, engines: &'e Engines<'h>) -> &'e Ordered<'h> {
        engines.ordered.get_or_init(|| Ordered::new(Arc::clone(&engines.resolved), &self.options))
    }

    fn mini<'e>(&self, engines: &'e Engines<'h>) -> Result<&'e Mini<'h>, &'e BlindWrite> {
        let new = || Mini::new(Arc::clone(&engines.resolved), &self.options);
        engines.mini.get_or_init(new).as_ref()
    }

    /// The lost updates beside wrong reads: what two transactions overwrote is lost whatever else
    /// they saw. Not where a delete may lie between the two: then they wrote different rows.
    fn lost_updates(&self, engines: &Engines<'h>, level: Level) -> Vec<Anomaly> {
        let is_forbidden = AnomalyKind::LostUpdate.forbidden_at(level);
        let mini = self.mini(engines).ok().filter(|_| is_forbidden);
        let mut lost = mini.map(Mini::lost_updates).unwrap_or_default();
        if self.may_come_back(level) {
            lost.retain(|anomaly| {
                let key = anomaly.evidence.edges().iter().find_map(|edge| edge.reason.key());
                key.is_some_and(|key| !self.is_deleted(key))
            });
        }
        lost
    }

    /// Whether a key names a row that a transaction leaves deleted.
    fn is_deleted(&self, key: KeyId) -> bool {
        let mut txns = self.history.txns();
        self.history.is_row(key)
            && txns.any(|txn| self.history.rows_left(txn).contains(&(key, false)))
    }

    /// Searches for an order. Where there is none and the argument takes choices, a weaker level may
    /// tell in fewer words why; else fewer transactions may.
    fn search(&self, engines: &Engines<'h>, level: Level) -> Verdict {
        let Decided { verdict, by_windows } =
            strong::check(&engines.resolved, level, &self.options);
        engines.note(level, by_windows);
        match &verdict {
            Verdict::Violated(findings) if has_no_name(findings) => {
                match engines.weak.check(Level::Causal) {
                    Verdict::Violated(findings) => {
                        Verdict::Violated(Findings { exact: false, ..findings })
                    }
                    _ => self.in_fewer_words(level, verdict),
                }
            }
            _ => self.in_fewer_words(level, verdict),
        }
    }

    /// The same verdict with arguments about fewer transactions and operations, where arguments take
    /// more than what clients saw. What predicates or conditional writes may have met, and what is taken to
    /// have committed, is not part of a history: nothing can be left out there.
    fn in_fewer_words(&self, level: Level, verdict: Verdict) -> Verdict {
        let fewer = match &verdict {
            Verdict::Violated(findings)
                if self.met.is_empty() && self.options.committed.is_empty() =>
            {
                minimal(self.history, level, &self.options, findings)
            }
            _ => None,
        };
        fewer.map_or(verdict, Verdict::Violated)
    }

    /// What a strong level needs and the history does not have.
    fn lacks(&self, level: Level) -> Option<Inapplicable> {
        if let Some(op) = first_outside(self.history, level.needs().operations) {
            return Some(Inapplicable::Operation { op });
        }
        self.lacks_times(level)
    }

    /// What a level in real time needs and the history does not have. Keys are linearizable in real
    /// time, whatever the level.
    fn lacks_times(&self, level: Level) -> Option<Inapplicable> {
        let assumes_times = self.options.assume.contains(KeyAssumption::LinearizableKeys)
            && level.shape().nodes != LevelNodes::None;
        if !level.needs().times && !assumes_times {
            return None;
        }
        if !self.history.has_times() {
            return Some(Inapplicable::NoTimes);
        }
        unwidenable(self.history, &self.options)
    }
}

/// Whether nothing but an argument without a name refutes a level.
fn has_no_name(findings: &Findings) -> bool {
    findings.anomalies.iter().all(|a| a.kind == AnomalyKind::NoOrderPossible)
}

const REGISTERS: &[OpFamily] = &[OpFamily::Registers];

/// Clocks may differ, but not the order of events.
pub(crate) fn unwidenable(history: &History, options: &CheckOptions) -> Option<Inapplicable> {
    let by_events = history.clock() == Clock::EventOrder;
    (by_events && options.clock_skew > 0).then_some(Inapplicable::SkewOfEventOrder)
}
