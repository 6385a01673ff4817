//! Verdicts about histories with conditional writes.
//!
//! A conditional write is a read, and if it took effect a write after it. One that failed and does not tell
//! what it found saw something else than it asked for: whose write that may have been is worked out here,
//! from nothing but the history. The rest is re-checked like a verdict about registers.

use std::collections::BTreeMap;

use isolario_model::{
    Anomaly, ConditionalOutcome, Findings, History, Inapplicable, Initial, ItemView, KeyId,
    LevelNodes, LevelResult, Op, OpId, OpKind, Outcome, StatedOrder, TxnId, ValueRef, Verdict,
    Witness,
};

use crate::facts::{Facts, is_write};
use crate::predicates::{Forward, Incarnations, is_by_row, may_come_back};
use crate::{Refusal, Verifier, VerifyOptions};

/// Re-checks a result.
pub(crate) fn verify(
    history: &History,
    options: VerifyOptions,
    stated: &[StatedOrder],
    result: &LevelResult,
) -> Result<(), Refusal> {
    let too_large = |_| Refusal::Unsupported("a history with this many operations");
    let view = ItemView::new(history).map_err(too_large)?;
    // Nothing here is met by a predicate.
    let none = BTreeMap::new();
    let forward = Forward { history, view: &view, met: &none };
    let verdict = match &result.verdict {
        Verdict::NotApplicable(Inapplicable::OpenConditional { op }) => {
            return does_not_tell(history, *op);
        }
        // Where a delete may lie between two versions, they are of different rows.
        Verdict::NotApplicable(Inapplicable::NoVersionOrder)
            if is_by_row(result.level) && may_come_back(history) =>
        {
            return Ok(());
        }
        verdict if is_open(history, &view) && !matches!(verdict, Verdict::Undecided(_)) => {
            return Err(Refusal::Unsupported("a conditional write that may have taken effect"));
        }
        Verdict::NotApplicable(reason) => Verdict::NotApplicable(forward.inapplicable(reason)?),
        Verdict::Violated(findings) => {
            let mut anomalies = Vec::new();
            for anomaly in &findings.anomalies {
                let mut anomaly = Anomaly::clone(anomaly);
                anomaly.evidence = forward.evidence(&anomaly.evidence)?;
                anomalies.push(anomaly);
            }
            let told = Findings::new(anomalies, findings.exact);
            Verdict::Violated(Findings { anomalies: told.anomalies, ..findings.clone() })
        }
        Verdict::Satisfied(Witness::Chosen { order, sources }) => {
            let sources = forward.sources(sources)?;
            Verdict::Satisfied(Witness::Chosen { order: order.clone(), sources })
        }
        verdict => verdict.clone(),
    };
    let mut facts = Facts::new(view.history(), options, stated);
    // At cut isolation, what was met may have been an aborted write.
    if result.level.shape().nodes != LevelNodes::None {
        facts.met = met(history, &view);
    }
    if is_by_row(result.level) && may_come_back(history) {
        facts.incarnations = Some(Incarnations::new(view.history()));
    }
    let verifier = Verifier::new(view.history(), &options).with_facts(facts, stated);
    verifier.verify_plain(&LevelResult { verdict, ..result.clone() })
}

/// Refuses unless a conditional write leaves something open.
fn does_not_tell(history: &History, op: OpId) -> Result<(), Refusal> {
    if op.index() >= history.op_count() {
        return Err(Refusal::NoSuchOp(op));
    }
    match history.conditional(op).map(|conditional| conditional.ended) {
        Some(
            ConditionalOutcome::Unknown
            | ConditionalOutcome::FoundAnother
            | ConditionalOutcome::Contradiction,
        ) => Ok(()),
        Some(_) if needs_more(history) => Ok(()),
        _ => Err(Refusal::Applicable("the operation states what it found")),
    }
}

/// Whether the history has no one value that registers hold at first, or versions that are no values.
fn needs_more(history: &History) -> bool {
    history.names_versions() || !matches!(history.initial(), Initial::Value(_))
}

/// Whether the view may say something else than the history.
fn is_open(history: &History, view: &ItemView) -> bool {
    let asks_for_more = |op: OpId| match history.conditional(op).map(|it| it.ended) {
        None => false,
        Some(ConditionalOutcome::FoundAnother | ConditionalOutcome::Contradiction) => true,
        Some(_) => history.op_kinds()[op.index()] == OpKind::InsertIfAbsent,
    };
    let mut ops = (0..history.op_count()).map(OpId::at);
    view.unsure_conditional().is_some()
        || history.names_versions()
        || needs_more(history) && ops.any(asks_for_more)
}

/// Whose writes explain each failed conditional that does not tell what it found, by operation of the view:
/// nobody's, where it asked for what its own transaction had written.
fn met(history: &History, view: &ItemView) -> BTreeMap<OpId, Vec<TxnId>> {
    let values = Values::new(history);
    let mut met = BTreeMap::new();
    for op in (0..history.op_count()).map(OpId::at) {
        let Some(conditional) = history.conditional(op) else { continue };
        let txn = history.op_txn(op);
        let Some(item) = view.read_of_matched(op, conditional.key) else { continue };
        let expected = match conditional.expected {
            Some(value) => history.value(value),
            None => ValueRef::Nil,
        };
        let own = values.own_before(txn, op, conditional.key);
        let writers = match (conditional.ended, own) {
            _ if history.outcome(txn) == Outcome::Aborted => continue,
            (ConditionalOutcome::Contradiction, _) => Vec::new(),
            (ConditionalOutcome::FoundAnother, Some(own)) if own == expected => Vec::new(),
            (ConditionalOutcome::FoundAnother, None) => {
                values.others(txn, conditional.key, expected)
            }
            _ => continue,
        };
        met.insert(item, writers);
    }
    met
}

/// What transactions leave in each register.
struct Values<'h> {
    history: &'h History,
    /// By key, of those that did not abort.
    last: BTreeMap<KeyId, Vec<(TxnId, ValueRef<'h>)>>,
}

impl<'h> Values<'h> {
    fn new(history: &'h History) -> Self {
        let mut last: BTreeMap<KeyId, Vec<(TxnId, ValueRef<'h>)>> = BTreeMap::new();
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            for op in history.txn_ops(txn) {
                let Some((key, value)) = written(history, op) else { continue };
                let of_key = last.entry(key).or_default();
                match of_key.last_mut() {
                    Some((writer, left)) if *writer == txn => *left = value,
                    _ => of_key.push((txn, value)),
                }
            }
        }
        Values { history, last }
    }

    /// What a transaction had last written to a register before an operation.
    fn own_before(&self, txn: TxnId, op: OpId, key: KeyId) -> Option<ValueRef<'h>> {
        let before = self.history.txn_ops(txn).rev().skip_while(|other| *other >= op);
        let mut writes = before.filter_map(|other| written(self.history, other));
        writes.find(|(other, _)| *other == key).map(|(_, value)| value)
    }

    /// Who else left something else there, sorted; `init`, if the register held something else at first.
    fn others(&self, txn: TxnId, key: KeyId, value: ValueRef<'_>) -> Vec<TxnId> {
        let of_key = self.last.get(&key).map_or(&[][..], Vec::as_slice);
        let others = of_key.iter().filter(|(writer, left)| *writer != txn && *left != value);
        let mut writers: Vec<TxnId> = others.map(|(writer, _)| *writer).collect();
        let initial = self.history.initial_value();
        if initial.is_none_or(|initial| initial.as_ref() != value) {
            writers.push(TxnId::INIT);
        }
        writers.sort_unstable();
        writers
    }
}

/// What an operation wrote, if it took effect.
fn written(history: &History, op: OpId) -> Option<(KeyId, ValueRef<'_>)> {
    match history.conditional(op) {
        Some(it) => match it.ended {
            ConditionalOutcome::Applied | ConditionalOutcome::Unknown => {
                Some((it.key, history.value(it.new)))
            }
            _ => None,
        },
        None if !is_write(history, op) => None,
        None => match history.op(op) {
            Op::Write { key, value } => Some((key, history.value(value))),
            Op::Delete { key } => Some((key, ValueRef::Nil)),
            _ => None,
        },
    }
}
