//! Histories of rows of which nobody says which versions their predicates met.
//!
//! A result names the rows that it has, each with its version. Of the rows that it does not have, it
//! says only that the version it met does not satisfy the predicate. So the history is taken as one of
//! single rows first ([`ItemView`]): what that violates, the history violates. An order that satisfies
//! it is tried on the whole history: the transactions run once more in that order, with predicates and
//! all. Where every result comes out as it did, the order is the answer. Else some predicate met a row
//! in a version that it would have returned. That row becomes a read of its own, which saw one of the
//! versions that the transaction's results allow, and an order is looked for anew.
//!
//! Each round asks for more, and everything that is asked for is part of the level. So what has no
//! order is violated, however many rows were never asked about; and there is an end, since a
//! transaction meets a row in one version. Most histories need no second round.
//!
//! | path | idea |
//! |---|---|
//! | `conditions.rs` | what results say about a row that they do not have, and where they contradict what the transaction knows itself |
//! | `candidates.rs` | the versions that agree with that |
//! | `incarnations.rs` | writers that overlap and must not |
//! | `naming.rs` | names of what was found |
//! | `possible.rs` | which transactions of unknown outcome may have committed at all |

mod candidates;
mod conditions;
mod incarnations;
mod naming;
mod possible;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use isolario_model::{
    Anomaly, Attempt, Evidence, Findings, History, Inapplicable, IncarnationView, Initial,
    ItemView, KeyId, Level, LevelNodes, LevelResult, Limit, MatchedRow, Op, OpFamily, OpId,
    Outcome, Point, StatedOrder, TxnId, Verdict, Witness,
};

use crate::graph::precedes;
use crate::plan::Conclusion;
use crate::replay::Moments;
use crate::resolved::{RESOLVED, Reads, first_outside};
use crate::{CheckOptions, Checker, replay};
use candidates::{Candidates, Met};
use incarnations::both_in_a_result;
pub(crate) use incarnations::{Deleters, clash, is_by_row};
use possible::Possible;

/// Decides levels of a history with predicate operations, or with rows of tables that may be deleted and come
/// back.
///
/// Where transactions take effect one after the other, a key is one row for good. Elsewhere a
/// transaction may see two rows of one key ([`IncarnationView`]).
pub(crate) fn check(
    history: &History,
    levels: &[Level],
    options: &CheckOptions,
) -> Vec<LevelResult> {
    if IncarnationView::new(history, |_, _| false).is_none() {
        return decide(history, (history, &[]), levels, options);
    }
    let mut results = Vec::with_capacity(levels.len());
    for level in levels {
        let in_time = level.shape().real_time;
        let ends_before = |a, b| ends_before(history, options, in_time, a, b);
        let apart = match replay::moments(*level, true) {
            Ok(Moments::One) => None,
            Ok(Moments::Two { .. }) => IncarnationView::new(history, ends_before),
            Err(_) => IncarnationView::new(history, |_, _| false),
        };
        let judged = apart.as_ref().map_or((history, &[][..]), |a| (a.history(), a.both()));
        results.extend(decide(history, judged, &[*level], options).into_iter().map(alone));
    }
    results
}

/// Whether one transaction ends before another one begins, wherever that has an order: by session, and by
/// real time if that counts.
fn ends_before(
    history: &History,
    options: &CheckOptions,
    in_time: bool,
    first: TxnId,
    second: TxnId,
) -> bool {
    let in_session = options.session_order
        && first < second
        && history.session_of(first) == history.session_of(second);
    let in_time = in_time && precedes(history, options.clock_skew, first, second);
    history.outcome(first) == Outcome::Committed && (in_session || in_time)
}

/// A result whose anomalies rule out the level, if they do, and what implies it: what is wrong with two rows
/// of one key at one level need not be so at others.
fn alone(mut result: LevelResult) -> LevelResult {
    if let Verdict::Violated(findings) = &mut result.verdict {
        for anomaly in &mut findings.anomalies {
            let mut here = Anomaly::clone(anomaly);
            let is_stronger = |level: &Level| level.implies(result.level);
            here.rules_out = anomaly.rules_out.iter().filter(is_stronger).collect();
            *anomaly = Arc::new(here);
        }
    }
    result
}

/// Decides levels of a history, by one in which no result has two rows of a key, and who saw both.
fn decide(
    original: &History,
    (history, both): (&History, &[(TxnId, KeyId)]),
    levels: &[Level],
    options: &CheckOptions,
) -> Vec<LevelResult> {
    let view = match ItemView::new(history) {
        Ok(view) => view.without_unobserved(history),
        Err(_) => return levels.iter().map(|level| too_large(*level)).collect(),
    };
    let items = |by_incarnation| {
        let options = CheckOptions { by_incarnation, ..options.clone() };
        Checker::new(view.history(), options)
    };
    let (possible, candidates, deleters) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
    let (view, reads) = (&view, OnceLock::new());
    let black_box =
        BlackBox { original, history, both, view, reads, possible, candidates, deleters };
    let (by_incarnation, by_key) = (items(true), items(false));
    let decide = |level: &Level| black_box.decide(&by_incarnation, &by_key, *level);
    levels.iter().map(decide).collect()
}

/// A history of rows and predicates.
struct BlackBox<'a> {
    /// As it was recorded.
    original: &'a History,
    /// As it is decided: with the rows of one key apart.
    history: &'a History,
    /// Who saw two rows of which key.
    both: &'a [(TxnId, KeyId)],
    view: &'a ItemView,
    /// The reads of single rows.
    reads: OnceLock<Reads>,
    possible: OnceLock<Result<Possible, Inapplicable>>,
    candidates: OnceLock<Candidates<'a>>,
    deleters: OnceLock<Deleters>,
}

/// The rows that were met, by transaction.
type MetSoFar = BTreeMap<(TxnId, KeyId), Met>;

impl BlackBox<'_> {
    /// Decides a level, from single rows of which those that come back after a delete are other ones,
    /// and from single rows by their keys alone.
    fn decide(&self, items: &Checker<'_>, by_key: &Checker<'_>, level: Level) -> LevelResult {
        let operation = self.outside(level).map(|op| Inapplicable::Operation { op });
        let is_clear = is_by_order(level) && !self.history.names_versions();
        let both = || both_in_a_result(self.history, level).filter(|_| !is_clear);
        if let Some(reason) = operation.or_else(both) {
            return Conclusion::Inapplicable(reason).result(level, Attempt::Nothing);
        }
        if !is_by_order(level) {
            return self.weak(self.told(self.view, items.decide(level)));
        }
        match self.search(level, items) {
            Ok(result) if self.is_order(level, &result) => result,
            Ok(_) => {
                // Nothing overlaps in a serial order, and writers that exclude each other by their
                // keys do so row by row.
                let by_key = || match self.search(level, by_key).ok()?.verdict {
                    Verdict::Satisfied(witness) => Some(witness),
                    _ => None,
                };
                let found = match self.both.is_empty() {
                    true => self.one_by_one(level, items).or_else(by_key),
                    false => self.after_deletes(level, items),
                };
                found
                    .map_or(Conclusion::limit(Limit::NotSearched), Conclusion::Holds)
                    .result(level, Attempt::Rows)
            }
            Err(reason) => Conclusion::Inapplicable(reason).result(level, Attempt::Rows),
        }
    }

    /// An order in which each who saw two rows of one key inserts the one after somebody else has deleted
    /// the other: who that is, and who wrote the other, is tried.
    fn after_deletes(&self, level: Level, items: &Checker<'_>) -> Option<Witness> {
        let candidates = self.candidates().ok()?;
        let mut ways: Vec<Vec<StatedOrder>> = Vec::new();
        for (txn, key) in self.both {
            let former = candidates.met(*txn, *key).ok()??.writers;
            let deleters = incarnations::deleters(self.history, *txn, *key);
            let order = |former: TxnId, deleter: TxnId| {
                let former = Some(former).filter(|former| !former.is_init());
                let writers = former.into_iter().chain([deleter, *txn]).collect();
                StatedOrder { key: *key, writers, at: 0 }
            };
            let of_former = |former: &TxnId| {
                let former = *former;
                let others = deleters.iter().copied().filter(move |deleter| *deleter != former);
                others.map(move |deleter| order(former, deleter))
            };
            ways.push(former.iter().flat_map(of_former).collect());
        }
        incarnations::choices(&ways).find_map(|chosen| {
            let options = items.options.clone();
            let options = options.with_version_order(chosen);
            let options = options.with_trusted_version_order(true);
            let items = Checker::new(self.view.history(), options);
            let found = self.search(level, &items).ok()?;
            let is_order = self.is_order(level, &found);
            match found.verdict {
                Verdict::Satisfied(witness) => is_order.then_some(witness),
                _ => None,
            }
        })
    }

    /// A serial order, as starts and commits.
    fn one_by_one(&self, level: Level, items: &Checker<'_>) -> Option<Witness> {
        let serial = match level.shape().real_time {
            true => Level::StrictSerializable,
            false => Level::Serializable,
        };
        match self.search(serial, items).ok()?.verdict {
            Verdict::Satisfied(Witness::CommitOrder(txns)) => {
                let points = txns.iter().flat_map(|txn| [Point::Start(*txn), Point::Commit(*txn)]);
                Some(Witness::Points(points.collect()))
            }
            _ => None,
        }
    }

    /// Whether writers do not overlap who must not, in the order of a result that has one, and who saw two
    /// rows of one key can have done so.
    fn is_order(&self, level: Level, result: &LevelResult) -> bool {
        match &result.verdict {
            Verdict::Satisfied(witness) => {
                let excludes = level.shape().exclusive_writers;
                !clash(self.history, witness, self.both, excludes)
            }
            _ => true,
        }
    }

    /// An operation that a level is not decided for.
    fn outside(&self, level: Level) -> Option<OpId> {
        let predicate = || first_outside(self.original, &[OpFamily::Registers]);
        let known = match self.history.has_predicates() {
            true => &[OpFamily::Registers, OpFamily::Predicates],
            false => RESOLVED,
        };
        match (level.shape().nodes, self.history.initial()) {
            (LevelNodes::PerOperation, _) => predicate(),
            (_, Initial::Value(_)) => first_outside(self.history, known),
            // Nobody knows what a row held at first that no one saw.
            _ => predicate(),
        }
    }

    /// What was decided of a view, told of the history.
    fn told(&self, view: &ItemView, result: LevelResult) -> LevelResult {
        let mut told = view.result_of(self.history, result);
        if let Some(candidates) = self.candidates.get() {
            let Self { history, .. } = *self;
            naming::Naming { history, candidates, level: told.level }.rename(&mut told.verdict);
        }
        self.deleters().claim_no_more(&mut told);
        match (&told.verdict, view.unobserved_write()) {
            // What was written there may be the reason.
            (Verdict::Violated(_), Some(op)) => unobserved(op).result(told.level, told.decided_by),
            _ => told,
        }
    }

    fn deleters(&self) -> &Deleters {
        self.deleters.get_or_init(|| Deleters::new(self.history))
    }

    /// A level that says nothing about rows which were not returned, as far as it is decided here. A cycle
    /// violates one that tells rows of one key apart only where no delete may lie between their versions.
    fn weak(&self, result: LevelResult) -> LevelResult {
        let is_decided = matches!(result.verdict, Verdict::Satisfied(_) | Verdict::Violated(_));
        let result = self.deleters().without_parted(result);
        let unreturned = || first_outside(self.original, &[OpFamily::Registers]);
        match self.original.has_predicates().then(unreturned).flatten() {
            Some(op) if is_decided && !result.verdict.is_violated() => {
                let reason = Conclusion::Inapplicable(Inapplicable::UnreturnedRows { op });
                reason.result(result.level, result.decided_by)
            }
            _ => result,
        }
    }

    /// Looks for an order, round by round.
    fn search(&self, level: Level, items: &Checker<'_>) -> Result<LevelResult, Inapplicable> {
        let first = self.told(self.view, items.decide(level));
        let possible = self.possible()?;
        if let Some(findings) =
            possible.contradictions(|txn| self.history.outcome(txn) == Outcome::Committed)
        {
            return Ok(with_contradictions(&first, findings));
        }
        self.by_rounds(first, possible, &items.options)
    }

    /// Replays the order of a result with all predicates, and decides again with the rows that make a
    /// difference, until none does.
    fn by_rounds(
        &self,
        first: LevelResult,
        possible: &Possible,
        options: &CheckOptions,
    ) -> Result<LevelResult, Inapplicable> {
        let (level, mut result) = (first.level, first);
        let (mut met, mut has_excluded) = (MetSoFar::new(), false);
        let begun = Instant::now();
        let conclusion = loop {
            let Verdict::Satisfied(witness) = &result.verdict else {
                // What is left proves nothing by itself.
                let is_proof = !has_excluded || !result.verdict.is_violated();
                if is_proof {
                    return Ok(result);
                }
                break Conclusion::limit(Limit::NotSearched);
            };
            if let Some(conclusion) = self.impossible(possible, witness) {
                break conclusion;
            }
            let is_excluding = exclude(possible, witness, &mut met);
            has_excluded |= is_excluding;
            if !is_excluding {
                let differences = replay::differences(self.history, witness, options)?;
                let Some(differences) = differences else { break Conclusion::not_begun() };
                if differences.is_empty() {
                    break result.verdict.into();
                }
                if let Some(conclusion) = self.meet(&differences, &mut met)? {
                    break conclusion;
                }
            }
            // Each round has the whole time, and all of them together have no more.
            if let Some(limit) = options.timeout.filter(|limit| begun.elapsed() > *limit) {
                break Conclusion::limit(Limit::Time(limit));
            }
            result = self.decide_met(level, &met, options);
        };
        Ok(conclusion.result(level, Attempt::Rows))
    }

    /// Why no order is one: a transaction cannot have committed that somebody read from, or nobody knows
    /// all that one wrote.
    fn impossible(&self, possible: &Possible, witness: &Witness) -> Option<Conclusion> {
        let txns = committed(witness);
        if possible.contradictory().any(|(txn, _)| txns.binary_search(&txn).is_ok()) {
            let findings = possible.contradictions(|txn| self.has_committed(txn));
            return findings.map(Conclusion::Refuted);
        }
        let unobserved_write = |txn: &TxnId| {
            let mut ops = self.history.txn_ops(*txn);
            ops.find(|op| matches!(self.history.op(*op), Op::PredicateWrite { rows: None, .. }))
        };
        self.view.unobserved_write()?;
        txns.iter().find_map(unobserved_write).map(unobserved)
    }

    fn possible(&self) -> Result<&Possible, Inapplicable> {
        let new = || Possible::new(self.history, self.view);
        self.possible.get_or_init(new).as_ref().map_err(Clone::clone)
    }

    fn candidates(&self) -> Result<&Candidates<'_>, Inapplicable> {
        let possible = self.possible()?;
        let new = || Candidates::new(self.history, self.view, &possible.may_be_met);
        Ok(self.candidates.get_or_init(new))
    }

    /// Whether a transaction committed, by its outcome or because a committed one read what it wrote.
    fn has_committed(&self, txn: TxnId) -> bool {
        self.history.outcome(txn) == Outcome::Committed
            || self.reads.get_or_init(|| Reads::with_matched(self.view.history(), &[])).is_kept(txn)
    }

    /// Adds the rows that make a difference to those that were met. Says why that is the end, if it is.
    fn meet(
        &self,
        differences: &[Evidence],
        met: &mut MetSoFar,
    ) -> Result<Option<Conclusion>, Inapplicable> {
        let candidates = self.candidates()?;
        let before = met.len();
        let mut unexplained: Vec<Anomaly> = Vec::new();
        for difference in differences {
            let Evidence::Unexpected { op, expected, .. } = difference else { continue };
            if !has_rows(self.history, *op) {
                continue;
            }
            let txn = self.history.op_txn(*op);
            for key in expected.iter().map(|version| version.key) {
                if met.contains_key(&(txn, key)) {
                    continue;
                }
                let Some(row) = candidates.met(txn, key)? else { continue };
                if row.writers.is_empty() && self.has_committed(txn) {
                    unexplained.push(candidates.unexplained(txn, key)?);
                }
                met.insert((txn, key), row);
            }
        }
        if !unexplained.is_empty() {
            return Ok(Some(match self.view.unobserved_write() {
                Some(op) => unobserved(op),
                None => Conclusion::refuted(unexplained),
            }));
        }
        Ok((met.len() == before).then(|| self.out_of_reach(differences)))
    }

    /// The answer where the order does not explain an operation, and nothing can be made of that.
    fn out_of_reach(&self, differences: &[Evidence]) -> Conclusion {
        let is_aggregate = |difference: &Evidence| match difference {
            Evidence::Unexpected { op, .. } => {
                matches!(self.history.op(*op), Op::Aggregate { .. }).then_some(*op)
            }
            _ => None,
        };
        match differences.iter().find_map(is_aggregate) {
            Some(op) => Inapplicable::BareAggregate { op }.into(),
            None => Conclusion::limit(Limit::NotSearched),
        }
    }

    /// Decides a level of single rows, those included that were met.
    fn decide_met(&self, level: Level, met: &MetSoFar, options: &CheckOptions) -> LevelResult {
        let mut rows: Vec<MatchedRow> = met.values().map(|met| met.row).collect();
        rows.sort_unstable_by_key(|row| (row.op, row.key));
        let Ok(view) = ItemView::with_matched(self.history, &rows) else {
            return too_large(level);
        };
        let view = view.without_unobserved(self.history);
        let open = |met: &Met| {
            let is_open = met.row.held.is_none();
            let item = view.read_of_matched(met.row.op, met.row.key).filter(|_| is_open)?;
            Some((item, met.writers.clone()))
        };
        let mut reads: Vec<(OpId, Vec<TxnId>)> = met.values().filter_map(open).collect();
        reads.sort_unstable();
        let checker = Checker::with_matched(view.history(), options.clone(), Arc::from(reads));
        self.told(&view, checker.decide(level))
    }
}

/// Leaves out the transactions of an order that cannot have committed, if there are any: what one of their
/// operations says about a row is explained by nobody.
fn exclude(possible: &Possible, witness: &Witness, met: &mut MetSoFar) -> bool {
    let txns = committed(witness);
    let mut has_excluded = false;
    for (txn, (op, key)) in possible.contradictory() {
        let is_in = txns.binary_search(&txn).is_ok();
        let is_new = met.get(&(txn, key)).is_none_or(|met| !met.writers.is_empty());
        if is_in && is_new {
            let row = MatchedRow { op, key, held: None };
            met.insert((txn, key), Met { row, writers: Vec::new() });
            has_excluded = true;
        }
    }
    has_excluded
}

/// Whether a level is decided by an order of transactions, or of their starts and commits.
fn is_by_order(level: Level) -> bool {
    replay::moments(level, true).is_ok()
}

/// Whether an operation tells the rows that it read or wrote.
fn has_rows(history: &History, op: OpId) -> bool {
    matches!(history.op(op), Op::PredicateRead { .. } | Op::PredicateWrite { .. })
}

/// What contradicts itself, with what else was found.
fn with_contradictions(result: &LevelResult, mut findings: Findings) -> LevelResult {
    if let Verdict::Violated(others) = &result.verdict {
        findings.anomalies.extend(others.anomalies.iter().cloned());
        findings.total += others.total;
    }
    Conclusion::Refuted(findings).result(result.level, Attempt::Rows)
}

/// The result where the view would have more operations than can be numbered.
fn too_large(level: Level) -> LevelResult {
    Conclusion::not_begun().result(level, Attempt::Nothing)
}

/// The transactions of a witness, by number.
fn committed(witness: &Witness) -> Vec<TxnId> {
    let mut txns: Vec<TxnId> = match witness {
        Witness::CommitOrder(txns) => txns.clone(),
        Witness::Points(points) => {
            let commit = |point: &Point| match *point {
                Point::Commit(txn) => Some(txn),
                Point::Start(_) => None,
            };
            points.iter().filter_map(commit).collect()
        }
        _ => Vec::new(),
    };
    txns.sort_unstable();
    txns
}

/// The answer where it may be due to a write of which nobody observed the rows.
fn unobserved(op: OpId) -> Conclusion {
    Conclusion::limit(Limit::UnobservedWrite(op))
}
