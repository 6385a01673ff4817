//! Re-checks verdicts against the history alone.
//!
//! A verdict comes with its evidence: a commit order, or the anomalies that rule one out. This
//! crate trusts none of it. It resolves reads on its own, replays orders, and asks of every edge
//! whether the history bears it out. It shares no code with the checkers. With the feature
//! `proof`, the module of that name is the file in which verdicts and their evidence travel.
//!
//! ```
//! use isolario_model::{
//!     Attempt, Batch, Level, LevelResult, Op, Outcome, TxnEnd, TxnId, TxnSink, TxnStart, ValueRef,
//!     Verdict, Witness,
//! };
//! use isolario_verify::{VerifyOptions, verify};
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
//! let claim = |order: &[u32]| LevelResult {
//!     level: Level::Serializable,
//!     decided_by: Attempt::Search,
//!     verdict: Verdict::Satisfied(Witness::CommitOrder(order.iter().map(|t| TxnId(*t)).collect())),
//! };
//! let options = VerifyOptions::default();
//! assert!(verify(&history, &claim(&[0, 1]), &options).is_ok());
//! assert!(verify(&history, &claim(&[1, 0]), &options).is_err());
//! # Ok::<(), isolario_model::SinkError>(())
//! ```

mod alternatives;
mod anomalies;
mod by_key;
mod causal;
mod certificate;
mod clauses;
mod conditionals;
mod cycles;
mod edges;
mod facts;
mod guaranteed;
mod inapplicable;
mod justify;
mod lin;
mod lists;
mod lost;
mod order;
mod own;
mod parallel;
mod predicates;
mod promised;
#[cfg(feature = "proof")]
pub mod proof;
mod refusal;
mod replay;
mod scans;
mod shapes;
mod single_reads;
mod span;
mod stated;
mod store;
#[cfg(feature = "proof")]
mod streamed;
mod times;
mod uncommitted;
mod weak;
mod writers;

use std::cell::OnceCell;

use isolario_model::{
    AnomalyKind, History, Inapplicable, KeyAssumptions, Level, LevelNodes, LevelResult, OpFamily,
    OpId, OpKind, PromisedOrder, StatedOrder, StatedSet, Verdict, VisibilityRule, Witness,
};

pub use lost::{LostCommit, NotLost, Outage};
pub use refusal::Refusal;

use certificate::{Certificate, Lacks};
use facts::Facts;
use order::Order;

/// How to read a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Whether the transactions of a session are ordered as the session ran them.
    pub session_order: bool,
    /// By how many nanoseconds the clock of each client may be off: every transaction's interval is
    /// widened by that much on both sides, so that two count as ordered only if more than twice that
    /// lies between them.
    pub clock_skew: u64,
    /// Whether orders of versions that are stated beside the history are part of what is asked of
    /// the levels from adya-read-committed on. [`Verifier::with_version_order`] takes them.
    pub trust_version_order: bool,
    /// What is assumed of every register by itself. The orders of versions that follow from it are part
    /// of what is asked.
    pub assume: KeyAssumptions,
    /// Whether an order of transactions that the database promises is part of what is asked.
    /// [`Verifier::with_promised_order`] takes it.
    pub promised_order: bool,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        VerifyOptions {
            session_order: true,
            clock_skew: 0,
            trust_version_order: false,
            assume: KeyAssumptions::default(),
            promised_order: false,
        }
    }
}

impl VerifyOptions {
    /// With session order, or without.
    pub fn with_session_order(self, session_order: bool) -> Self {
        VerifyOptions { session_order, ..self }
    }

    /// With clocks that may differ by so much.
    pub fn with_clock_skew(self, clock_skew: u64) -> Self {
        VerifyOptions { clock_skew, ..self }
    }

    /// With stated orders of versions as part of what is asked, or without.
    pub fn with_trusted_version_order(self, trust_version_order: bool) -> Self {
        VerifyOptions { trust_version_order, ..self }
    }

    /// With what is assumed of every register.
    pub fn with_assumptions(self, assume: KeyAssumptions) -> Self {
        VerifyOptions { assume, ..self }
    }

    /// With an order of transactions that the database promises as part of what is asked, or
    /// without.
    pub fn with_promised_order(self, promised_order: bool) -> Self {
        VerifyOptions { promised_order, ..self }
    }
}

/// Re-checks one result. Without an error, the history does prove the verdict; a verdict that
/// claims nothing (undecided) is never refused.
pub fn verify(
    history: &History,
    result: &LevelResult,
    options: &VerifyOptions,
) -> Result<(), Refusal> {
    Verifier::new(history, options).verify(result)
}

/// Re-checks claims that transactions were lost, given when the server was down. Each claim has its answer.
pub fn verify_lost(
    history: &History,
    outages: &[Outage],
    claims: &[LostCommit],
) -> Vec<Result<(), NotLost>> {
    let losses = lost::Losses::new(history, outages);
    claims.iter().map(|claim| losses.verify(claim)).collect()
}

/// Re-checks results of one history. What the history says is worked out once, when first needed.
#[derive(Debug)]
pub struct Verifier<'h> {
    history: &'h History,
    options: VerifyOptions,
    stated: &'h [StatedOrder],
    sets: &'h [StatedSet],
    promised: Option<&'h PromisedOrder>,
    certificate: OnceCell<Result<Certificate<'h>, Lacks>>,
    facts: OnceCell<Facts<'h>>,
}

impl<'h> Verifier<'h> {
    /// A verifier for a history.
    pub fn new(history: &'h History, options: &VerifyOptions) -> Self {
        Verifier {
            history,
            options: *options,
            stated: &[],
            sets: &[],
            promised: None,
            certificate: OnceCell::new(),
            facts: OnceCell::new(),
        }
    }

    /// With orders of versions that are stated beside the history. They count only where the
    /// options say that they are trusted.
    pub fn with_version_order(self, orders: &'h [StatedOrder]) -> Self {
        let stated = if self.options.trust_version_order { orders } else { &[] };
        Verifier { stated, facts: OnceCell::new(), certificate: OnceCell::new(), ..self }
    }

    /// With the versions that predicate operations met. They count where stated orders do: together they
    /// are a certificate.
    pub fn with_version_sets(self, sets: &'h [StatedSet]) -> Self {
        let sets = if self.options.trust_version_order { sets } else { &[] };
        Verifier { sets, certificate: OnceCell::new(), ..self }
    }

    /// With what was worked out of the history already.
    fn with_facts(self, facts: Facts<'h>, stated: &'h [StatedOrder]) -> Self {
        Verifier { stated, facts: OnceCell::from(facts), ..self }
    }

    /// With an order that the database promises: part of what is asked of every level.
    pub fn with_promised_order(self, order: &'h PromisedOrder) -> Self {
        Verifier { promised: Some(order), ..self }
    }

    /// Re-checks one result, as [`verify`] does.
    pub fn verify(&self, result: &LevelResult) -> Result<(), Refusal> {
        if let Some(order) = self.promised {
            return match order.is_by_stamps() && result.level.needs().version_order {
                true => self.by_promised_versions(order, result),
                false => promised::verify(self.history, self.options, order, result),
            };
        }
        if self.is_certified() && certificate::decides(result.level) {
            let new = || Certificate::new(self.history, self.options, self.stated, self.sets);
            return certificate::verify(self.certificate.get_or_init(new).as_ref(), result);
        }
        if self.is_certified() && self.history.has_predicates() {
            return match &result.verdict {
                Verdict::Undecided(_) => Ok(()),
                Verdict::NotApplicable(Inapplicable::NotByCertificate) => Ok(()),
                _ => Err(Refusal::Unsupported("a level that a certificate does not decide")),
            };
        }
        if self.history.has_predicates() {
            return predicates::verify(self.history, self.options, result);
        }
        if self.history.has_conditionals() && !result.level.needs().single_operations {
            return conditionals::verify(self.history, self.options, self.stated, result);
        }
        let is_shown_by_key = result.level.needs().version_order && result.verdict.is_satisfied();
        if predicates::is_by_row(result.level)
            && !is_shown_by_key
            && predicates::may_come_back(self.history)
        {
            return predicates::verify(self.history, self.options, result);
        }
        self.verify_plain(result)
    }

    /// Re-checks a result about registers and lists, or about single operations.
    fn verify_plain(&self, result: &LevelResult) -> Result<(), Refusal> {
        match &result.verdict {
            Verdict::Undecided(_) => Ok(()),
            Verdict::NotApplicable(reason) => inapplicable::verify(self, result.level, reason),
            verdict if result.level == Level::Linearizable => {
                lin::verify(self.history, self.options, verdict)
            }
            Verdict::Satisfied(witness) => verify_witness(self.facts()?, result.level, witness),
            Verdict::Violated(findings) => anomalies::verify(self.facts()?, result.level, findings),
            _ => Err(Refusal::Unsupported("this verdict")),
        }
    }

    /// Whether versions are part of what is asked, of rows that predicates met or that may come back.
    fn is_certified(&self) -> bool {
        let is_stated = !self.stated.is_empty() || !self.sets.is_empty();
        let history = self.history;
        let is_of_registers = |kind: &OpKind| OpFamily::of(*kind) == OpFamily::Registers;
        let has_rows =
            || predicates::may_come_back(history) && history.op_kinds().iter().all(is_of_registers);
        self.options.trust_version_order && is_stated && (history.has_predicates() || has_rows())
    }

    /// Re-checks a result about the order of versions that follows from commit timestamps.
    fn by_promised_versions(
        &self,
        order: &PromisedOrder,
        result: &LevelResult,
    ) -> Result<(), Refusal> {
        match (order.version_orders(self.history), &result.verdict) {
            (Err(_), Verdict::NotApplicable(Inapplicable::TiedInPromisedOrder { .. })) => Ok(()),
            (Err(_), _) => Err(Refusal::Unsupported("timestamps that two writers of a key share")),
            (Ok(orders), _) => {
                let options = self.options.with_trusted_version_order(true);
                Verifier::new(self.history, &options).with_version_order(&orders).verify(result)
            }
        }
    }

    /// What the history says, if it is one of registers and lists.
    fn facts(&self) -> Result<&Facts<'h>, Refusal> {
        match self.history.op_kinds().iter().position(|kind| !is_supported(*kind)) {
            Some(op) => Err(Refusal::UnsupportedOperation(OpId::at(op))),
            None => {
                Ok(self.facts.get_or_init(|| Facts::new(self.history, self.options, self.stated)))
            }
        }
    }
}

/// Whether an operation is on a register or a list.
fn is_supported(kind: OpKind) -> bool {
    use OpKind::{Append, Delete, Read, ReadList, ReadListUnobserved, ReadUnobserved, Write};
    matches!(kind, Read | ReadUnobserved | Write | Delete | Append | ReadList | ReadListUnobserved)
}

fn verify_witness(facts: &Facts<'_>, level: Level, witness: &Witness) -> Result<(), Refusal> {
    match (level.shape().nodes, witness) {
        (LevelNodes::None, Witness::Empty) => weak::verify_cut_isolation(facts),
        (LevelNodes::One, Witness::CommitOrder(order)) => {
            verify_order(&Order::new(facts, order)?, level)
        }
        (LevelNodes::One, Witness::Chosen { order, sources }) if may_suppose_sources(level) => {
            verify_order(&Order::new(facts, order)?.with_sources(sources)?, level)
        }
        (LevelNodes::StartAndCommit, Witness::Points(all)) => {
            replay::verify_points(facts, level, all)
        }
        // Points that show a stronger level.
        (LevelNodes::One, Witness::Points(all)) if Level::Prefix.implies(level) => {
            replay::verify_points(facts, Level::Prefix, all)
        }
        _ => Err(Refusal::WrongWitness(level)),
    }
}

/// Refuses an order of commits that does not explain the history at a level.
fn verify_order(order: &Order<'_, '_>, level: Level) -> Result<(), Refusal> {
    let shape = level.shape();
    if shape.session_order {
        order.respects_sessions()?;
    }
    if shape.real_time {
        order.respects_real_time()?;
    }
    order.agrees_with_statements(level)?;
    if allows_dirty_reads(level) {
        return uncommitted::verify(order);
    }
    order.facts.agree_on_initial_values(order.txns)?;
    if shape.visible == VisibilityRule::Everything {
        return replay::verify_order(order);
    }
    lists::check_order(order)?;
    let explained = match shape.visible {
        VisibilityRule::Nothing => order.check_reads(),
        VisibilityRule::EarlierReads => weak::verify_read_committed(order),
        VisibilityRule::Direct => weak::verify_read_atomic(order),
        VisibilityRule::Causes => causal::verify(order),
        VisibilityRule::Dependencies => parallel::verify(order, shape.session_order),
        _ => Err(Refusal::Unsupported("an order of commits at this level")),
    };
    match explained {
        // What the order does not settle by the rule of the level, it may by all that came before.
        Err(Refusal::Ambiguous(_)) => replay::verify_order(order),
        explained => explained,
    }
}

/// Whether it may be supposed, case by case, whose write a read saw that may have seen several: at the
/// levels that ask for an order of commits and for no order of versions that is known.
fn may_suppose_sources(level: Level) -> bool {
    level.shape().nodes != LevelNodes::None
        && !level.needs().version_order
        && !allows_dirty_reads(level)
}

/// Whether reads from aborted transactions are allowed. There a transaction of unknown outcome that
/// somebody read need not have committed.
fn allows_dirty_reads(level: Level) -> bool {
    !AnomalyKind::AbortedRead.forbidden_at(level)
}
