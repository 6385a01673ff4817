//! Histories of rows for which nothing states the versions that their predicates observed.
//!
//! A result names the rows that it has, each with its version. Of the rows that it does not have, it
//! says only that the version it observed does not satisfy the predicate. So the history is taken as one of
//! single rows first ([`ItemView`]): what that violates, the history violates. An order that satisfies
//! it is tried on the whole history: the transactions run once more in that order, with predicates and
//! all. Where every result comes out as it did, the order is the answer. Otherwise some predicate observed a
//! row in a version that it would have returned. That row becomes a read of its own, which saw one of the
//! versions that the transaction's results allow, and an order is looked for anew.
//!
//! Each round asks for more, and everything that is asked for is part of the level. So what has no
//! order is violated, however many rows were never asked about; and there is an end, since a
//! transaction observes one version of a row. Most histories need no second round.
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

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use isolario_model::{
    Anomaly, Attempt, Evidence, Findings, History, Inapplicable, IncarnationView, Initial,
    ItemView, KeyId, Level, LevelNodes, LevelResult, Limit, MatchedRow, Op, OpFamily, OpId,
    Outcome, StatedOrder, TxnId, Verdict, Witness,
};

use crate::plan::{Conclusion, LoweredHistory};
use crate::replay::TxnPoints;
use crate::resolved::{RESOLVED, first_outside};
use crate::{CheckOptions, replay};
use candidates::{Candidates, RowMatch};
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
    let decide_alone = |level: &Level| {
        let in_time = level.shape().real_time;
        let ends_before = |a, b| replay::ends_before(history, options, in_time, a, b);
        let apart = match replay::moments(*level, true) {
            Ok(TxnPoints::One) => None,
            Ok(TxnPoints::Two { .. }) => IncarnationView::new(history, ends_before),
            Err(_) => IncarnationView::new(history, |_, _| false),
        };
        let judged = apart.as_ref().map_or((history, &[][..]), |a| (a.history(), a.both()));
        let results = decide(history, judged, &[*level], options);
        results.into_iter().map(claim_no_other_level)
    };
    levels.iter().flat_map(decide_alone).collect()
}

/// A result whose anomalies rule out the level, if they do, and what implies it: what is wrong with two rows
/// of one key at one level need not be so at others.
fn claim_no_other_level(mut result: LevelResult) -> LevelResult {
    if let Verdict::Violated(findings) = &mut result.verdict {
        for anomaly in &mut findings.anomalies {
            let is_stronger = |level: &Level| level.implies(result.level);
            let rules_out = anomaly.rules_out.iter().filter(is_stronger).collect();
            Arc::make_mut(anomaly).rules_out = rules_out;
        }
    }
    result
}

/// Decides levels of a history, by one in which no result has two rows of a key, and the transactions that
/// saw both.
fn decide(
    original: &History,
    (history, both): (&History, &[(TxnId, KeyId)]),
    levels: &[Level],
    options: &CheckOptions,
) -> Vec<LevelResult> {
    let Ok(view) = ItemView::new(history).map(|view| view.without_unobserved(history)) else {
        return levels.iter().map(|level| too_large(*level)).collect();
    };
    let rows = |by_incarnation| {
        let options = CheckOptions { by_incarnation, ..options.clone() };
        LoweredHistory::new(history, &view, options, Arc::new([]))
    };
    let black_box = BlackBox {
        original,
        history,
        both,
        by_incarnation: rows(true),
        by_key: rows(false),
        possible: OnceCell::new(),
        candidates: OnceCell::new(),
        deleters: Deleters::new(history),
    };
    levels.iter().map(|level| black_box.decide(*level)).collect()
}

/// A history of rows and predicates.
struct BlackBox<'a> {
    /// As it was recorded.
    original: &'a History,
    /// As it is decided: with the rows of one key apart.
    history: &'a History,
    /// The transactions that saw two rows of a key.
    both: &'a [(TxnId, KeyId)],
    /// Single rows, of which those that come back after a delete are other ones.
    by_incarnation: LoweredHistory<'a>,
    /// Single rows by their keys alone.
    by_key: LoweredHistory<'a>,
    possible: OnceCell<Result<Possible, Inapplicable>>,
    candidates: OnceCell<Candidates<'a>>,
    deleters: Deleters,
}

/// The rows that were matched or excluded, by transaction.
type RowMatches = BTreeMap<(TxnId, KeyId), RowMatch>;

impl BlackBox<'_> {
    fn decide(&self, level: Level) -> LevelResult {
        let operation = self.outside(level).map(|op| Inapplicable::Operation { op });
        let is_clear = is_by_order(level) && !self.history.names_versions();
        let both = || both_in_a_result(self.history, level).filter(|_| !is_clear);
        if let Some(reason) = operation.or_else(both) {
            return Conclusion::Inapplicable(reason).result(level, Attempt::Nothing);
        }
        if !is_by_order(level) {
            return self.weak(self.decide_rows(level, &self.by_incarnation));
        }
        let result = match self.search(level, &self.by_incarnation) {
            Ok(result) => result,
            Err(reason) => return Conclusion::Inapplicable(reason).result(level, Attempt::Rows),
        };
        match &result.verdict {
            Verdict::Satisfied(witness) if self.clashes(level, witness) => {
                let found = if self.both.is_empty() {
                    // Nothing overlaps in a serial order, and writers that exclude each other by their
                    // keys do so row by row.
                    let by_key = || self.witness(level, &self.by_key).map(Conclusion::Holds);
                    self.one_by_one(level).or_else(by_key)
                } else {
                    self.after_deletes(level).map(Conclusion::Holds)
                };
                let limit = || Conclusion::limit(Limit::NotSearched);
                found.unwrap_or_else(limit).result(level, Attempt::Rows)
            }
            _ => result,
        }
    }

    /// A witness in which each transaction that saw two rows of one key inserts the one after another
    /// transaction has deleted the other: which one that is, and which wrote the other, is tried.
    fn after_deletes(&self, level: Level) -> Option<Witness> {
        let mut ways: Vec<Vec<StatedOrder>> = Vec::new();
        for (txn, key) in self.both {
            let mut of_row = Vec::new();
            for former in self.candidates().ok()?.matched(*txn, *key).ok()??.writers {
                let deleters = self.deleters.of(*key).iter();
                for deleter in deleters.filter(|deleter| ![former, *txn].contains(deleter)) {
                    let writers = [former, *deleter, *txn].into_iter();
                    let writers = writers.filter(|writer| !writer.is_init()).collect();
                    of_row.push(StatedOrder { key: *key, writers, at: 0 });
                }
            }
            ways.push(of_row);
        }
        incarnations::choices(&ways).find_map(|chosen| {
            let options = self.by_incarnation.items.options.clone().with_version_order(chosen);
            let options = options.with_trusted_version_order(true);
            let rows = LoweredHistory::new(self.history, self.view(), options, Arc::new([]));
            let witness = self.witness(level, &rows)?;
            (!self.clashes(level, &witness)).then_some(witness)
        })
    }

    /// A serial order, as starts and commits.
    fn one_by_one(&self, level: Level) -> Option<Conclusion> {
        let serial =
            if level.shape().real_time { Level::StrictSerializable } else { Level::Serializable };
        match self.witness(serial, &self.by_incarnation)? {
            Witness::CommitOrder(txns) => Some(Conclusion::serial(level, txns.into_iter())),
            _ => None,
        }
    }

    /// The witness of a level that a search finds.
    fn witness(&self, level: Level, rows: &LoweredHistory<'_>) -> Option<Witness> {
        match self.search(level, rows).ok()?.verdict {
            Verdict::Satisfied(witness) => Some(witness),
            _ => None,
        }
    }

    /// Whether writers overlap that must not, or a transaction cannot have seen two rows of one key.
    fn clashes(&self, level: Level, witness: &Witness) -> bool {
        clash(self.history, witness, self.both, level.shape().exclusive_writers)
    }

    /// An operation that a level is not decided for.
    fn outside(&self, level: Level) -> Option<OpId> {
        let by_operation = level.shape().nodes == LevelNodes::PerOperation;
        // Otherwise it is unknown what a row held at first that no transaction saw.
        if by_operation || !matches!(self.history.initial(), Initial::Value(_)) {
            return first_outside(self.original, &[OpFamily::Registers]);
        }
        let known = if self.history.has_predicates() {
            &[OpFamily::Registers, OpFamily::Predicates]
        } else {
            RESOLVED
        };
        first_outside(self.history, known)
    }

    fn view(&self) -> &ItemView {
        self.by_incarnation.view
    }

    /// Decides a level of single rows.
    fn decide_rows(&self, level: Level, rows: &LoweredHistory<'_>) -> LevelResult {
        let mut result = rows.decide(level);
        if let Some(candidates) = self.candidates.get() {
            candidates.name_cycles(level, &mut result.verdict);
        }
        self.deleters.claim_no_more(&mut result);
        match rows.view.unobserved_write() {
            // What was written there may be the reason.
            Some(op) if result.verdict.is_violated() => {
                unobserved(op).result(level, result.decided_by)
            }
            _ => result,
        }
    }

    /// A level that says nothing about rows which were not returned, as far as it is decided here. A cycle
    /// violates one that tells rows of one key apart only where no delete may lie between their versions.
    fn weak(&self, result: LevelResult) -> LevelResult {
        let is_decided = matches!(result.verdict, Verdict::Satisfied(_) | Verdict::Violated(_));
        let result = self.deleters.without_parted(result);
        let unreturned = || first_outside(self.original, &[OpFamily::Registers]);
        match self.original.has_predicates().then(unreturned).flatten() {
            Some(op) if is_decided && !result.verdict.is_violated() => {
                let reason = Conclusion::Inapplicable(Inapplicable::UnreturnedRows { op });
                reason.result(result.level, result.decided_by)
            }
            _ => result,
        }
    }

    /// Looks for an order, round by round: replays the order of a result with all predicates, and decides
    /// again with the rows that make a difference, until none does.
    fn search(&self, level: Level, rows: &LoweredHistory<'_>) -> Result<LevelResult, Inapplicable> {
        let options = &rows.items.options;
        let mut result = self.decide_rows(level, rows);
        let possible = self.possible()?;
        let has_committed = |txn| self.history.outcome(txn) == Outcome::Committed;
        if let Some(findings) = possible.contradictions(has_committed) {
            return Ok(with_contradictions(&result, findings));
        }
        let (mut matches, mut has_excluded) = (RowMatches::new(), false);
        let begun = Instant::now();
        let conclusion = loop {
            let Verdict::Satisfied(witness) = &result.verdict else {
                // What is left proves nothing by itself.
                if has_excluded && result.verdict.is_violated() {
                    break Conclusion::limit(Limit::NotSearched);
                }
                return Ok(result);
            };
            let txns = committed(witness);
            if let Some(conclusion) = self.impossible(possible, &txns) {
                break conclusion;
            }
            if exclude(possible, &txns, &mut matches) {
                has_excluded = true;
            } else {
                match replay::differences(self.history, witness, options)? {
                    None => break Conclusion::not_begun(),
                    Some(differences) if differences.is_empty() => break result.verdict.into(),
                    Some(differences) => {
                        if let Some(conclusion) = self.add_matches(&differences, &mut matches)? {
                            break conclusion;
                        }
                    }
                }
            }
            // Each round has the whole time, and all of them together have no more.
            if let Some(limit) = options.timeout.filter(|limit| begun.elapsed() > *limit) {
                break Conclusion::limit(Limit::Time(limit));
            }
            result = self.decide_with(level, &matches, options);
        };
        Ok(conclusion.result(level, Attempt::Rows))
    }

    /// Why these transactions cannot have committed together: another one read from a transaction that
    /// cannot, or it is unknown what one of them wrote.
    fn impossible(&self, possible: &Possible, txns: &[TxnId]) -> Option<Conclusion> {
        if possible.contradictory().any(|(txn, _)| txns.binary_search(&txn).is_ok()) {
            let findings = possible.contradictions(|txn| self.by_incarnation.items.is_kept(txn));
            return findings.map(Conclusion::Refuted);
        }
        self.view().unobserved_write()?;
        let is_unobserved =
            |op: &OpId| matches!(self.history.op(*op), Op::PredicateWrite { rows: None, .. });
        let mut ops = txns.iter().flat_map(|txn| self.history.txn_ops(*txn));
        ops.find(is_unobserved).map(unobserved)
    }

    fn possible(&self) -> Result<&Possible, Inapplicable> {
        let new = || Possible::new(self.history, self.view());
        self.possible.get_or_init(new).as_ref().map_err(Clone::clone)
    }

    fn candidates(&self) -> Result<&Candidates<'_>, Inapplicable> {
        let may_be_observed = &self.possible()?.may_be_observed;
        let new = || Candidates::new(self.history, self.view(), may_be_observed);
        Ok(self.candidates.get_or_init(new))
    }

    /// Adds the rows that make a difference to those that were matched or excluded. Says why that is the end,
    /// if it is.
    fn add_matches(
        &self,
        differences: &[Evidence],
        matches: &mut RowMatches,
    ) -> Result<Option<Conclusion>, Inapplicable> {
        let candidates = self.candidates()?;
        let before = matches.len();
        let mut unexplained: Vec<Anomaly> = Vec::new();
        let mut aggregate = None;
        for difference in differences {
            let Evidence::Unexpected { op, expected, .. } = difference else { continue };
            match self.history.op(*op) {
                Op::PredicateRead { .. } | Op::PredicateWrite { .. } => {}
                Op::Aggregate { .. } => {
                    aggregate = aggregate.or(Some(*op));
                    continue;
                }
                _ => continue,
            }
            let txn = self.history.op_txn(*op);
            for key in expected.iter().map(|version| version.key) {
                if matches.contains_key(&(txn, key)) {
                    continue;
                }
                let Some(row) = candidates.matched(txn, key)? else { continue };
                if row.writers.is_empty() && self.by_incarnation.items.is_kept(txn) {
                    unexplained.push(candidates.unexplained(txn, key)?);
                }
                matches.insert((txn, key), row);
            }
        }
        Ok(match (self.view().unobserved_write(), aggregate) {
            (Some(op), _) if !unexplained.is_empty() => Some(unobserved(op)),
            (None, _) if !unexplained.is_empty() => Some(Conclusion::refuted(unexplained)),
            _ if matches.len() > before => None,
            // The order does not explain an operation, and nothing follows from that.
            (_, Some(op)) => Some(Inapplicable::BareAggregate { op }.into()),
            (_, None) => Some(Conclusion::limit(Limit::NotSearched)),
        })
    }

    /// Decides a level of single rows, including those that were matched or excluded.
    fn decide_with(
        &self,
        level: Level,
        matches: &RowMatches,
        options: &CheckOptions,
    ) -> LevelResult {
        let mut rows: Vec<MatchedRow> = matches.values().map(|matched| matched.row).collect();
        rows.sort_unstable_by_key(|row| (row.op, row.key));
        let Ok(view) = ItemView::with_matched(self.history, &rows) else {
            return too_large(level);
        };
        let view = view.without_unobserved(self.history);
        let open = matches.values().filter(|matched| matched.row.held.is_none());
        let read = |RowMatch { row, writers }: &RowMatch| {
            Some((view.read_of_matched(row.op, row.key)?, writers.clone()))
        };
        let mut reads: Vec<(OpId, Vec<TxnId>)> = open.filter_map(read).collect();
        reads.sort_unstable();
        let rows = LoweredHistory::new(self.history, &view, options.clone(), Arc::from(reads));
        self.decide_rows(level, &rows)
    }
}

/// Leaves out the transactions of an order that cannot have committed, if there are any: no version explains
/// what one of their operations says about a row.
fn exclude(possible: &Possible, txns: &[TxnId], matches: &mut RowMatches) -> bool {
    let mut has_excluded = false;
    for (txn, (op, key)) in possible.contradictory() {
        let is_new = matches.get(&(txn, key)).is_none_or(|known| !known.writers.is_empty());
        if is_new && txns.binary_search(&txn).is_ok() {
            let row = MatchedRow { op, key, held: None };
            matches.insert((txn, key), RowMatch { row, writers: Vec::new() });
            has_excluded = true;
        }
    }
    has_excluded
}

/// Whether a level is decided by an order of transactions, or of their starts and commits.
fn is_by_order(level: Level) -> bool {
    replay::moments(level, true).is_ok()
}

/// The transactions that contradict themselves, with what else was found.
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
        Witness::Points(points) => replay::commits(points).collect(),
        _ => Vec::new(),
    };
    txns.sort_unstable();
    txns
}

/// The answer where it may be due to a write of which the rows are unknown.
fn unobserved(op: OpId) -> Conclusion {
    Conclusion::limit(Limit::UnobservedWrite(op))
}
