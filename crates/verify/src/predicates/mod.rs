//! Verdicts about predicate histories of which nobody says which versions the predicates met.
//!
//! What is said to be satisfied comes with an order: the transactions run once more in it, and every
//! result must come out as it did. What is said to be violated is said about single rows, those that
//! predicates returned and those that they met without returning them. The latter are worked out here
//! anew, with all versions that they may have been; then the evidence is re-checked like that of any
//! history of registers.

mod forward;
mod rows;

use std::collections::BTreeSet;

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, Findings, History, Inapplicable, ItemView, KeyId, Level,
    LevelResult, MetRow, Nodes, Op, OpId, Outcome, Point, TxnId, Verdict, Visible, Witness,
};

use crate::anomalies::{self, are_counted};
use crate::facts::Facts;
use crate::promised::Promise;
use crate::{Options, Refusal};
pub(crate) use forward::Forward;
pub(crate) use rows::{Incarnations, deletes};
use rows::{Met, Rows, is_unobserved_write};

/// Re-checks a result.
pub(crate) fn verify(
    history: &History,
    options: Options,
    result: &LevelResult,
) -> Result<(), Refusal> {
    let claim = Claim { history, options, level: result.level };
    match &result.verdict {
        Verdict::Undecided(_) => Ok(()),
        Verdict::NotApplicable(reason) => claim.does_not_apply(reason),
        Verdict::Satisfied(witness) => claim.verify_witness(witness),
        Verdict::Violated(findings) => claim.verify_findings(findings),
        _ => Err(Refusal::Unsupported("this verdict")),
    }
}

/// What is claimed of a history.
struct Claim<'h> {
    history: &'h History,
    options: Options,
    level: Level,
}

fn txn_of(point: &Point) -> TxnId {
    match *point {
        Point::Start(txn) | Point::Commit(txn) => txn,
    }
}

impl<'h> Claim<'h> {
    /// Whether transactions start and commit at the level, or have one moment; none for levels that no
    /// order shows to be satisfied.
    fn has_starts(&self) -> Option<bool> {
        let shape = self.level.shape();
        match (shape.nodes, shape.visible) {
            _ if self.level.needs().version_order => None,
            (Nodes::One, Visible::Everything) => Some(false),
            (Nodes::StartAndCommit, Visible::Prefix) => Some(true),
            _ => None,
        }
    }

    fn verify_witness(&self, witness: &Witness) -> Result<(), Refusal> {
        let Claim { history, options, level } = *self;
        let has_starts = self.has_starts().ok_or(Refusal::WrongWitness(level))?;
        let unobserved =
            |txn: &TxnId| history.txn_ops(*txn).any(|op| is_unobserved_write(history, op));
        let txns: Vec<TxnId> = match witness {
            Witness::CommitOrder(txns) => txns.clone(),
            Witness::Points(points) => points.iter().map(txn_of).collect(),
            _ => return Err(Refusal::WrongWitness(level)),
        };
        if let Some(txn) = txns.iter().find(|txn| txn.index() >= history.txn_count()) {
            return Err(Refusal::NoSuchTxn(*txn));
        }
        if txns.iter().any(unobserved) {
            return Err(Refusal::Unsupported("a write of rows that nobody observed"));
        }
        Promise { history, options, order: None, level, has_starts }.verify_witness(witness)
    }

    fn does_not_apply(&self, reason: &Inapplicable) -> Result<(), Refusal> {
        let exists = |op: OpId| op.index() < self.history.op_count();
        let holds = match *reason {
            Inapplicable::UnreturnedRows { op } => {
                self.has_starts().is_none() && exists(op) && self.history.op_predicate(op).is_some()
            }
            Inapplicable::BareAggregate { op } => {
                exists(op) && matches!(self.history.op(op), Op::Aggregate { result: Some(_), .. })
            }
            Inapplicable::Operation { op } | Inapplicable::Predicate { op } => exists(op),
            Inapplicable::NoTimes => !self.history.has_times(),
            _ => true,
        };
        if holds { Ok(()) } else { Err(Refusal::Applicable("predicates are decided by an order")) }
    }

    fn verify_findings(&self, findings: &Findings) -> Result<(), Refusal> {
        are_counted(findings)?;
        let rows = Rows::new(self.history);
        let mut of_items: Vec<Anomaly> = Vec::new();
        for anomaly in &findings.anomalies {
            let kind = anomaly.kind;
            match &anomaly.evidence {
                Evidence::Unexpected { op, expected, result: None } => match expected.as_slice() {
                    [one] => self.is_unexplained(&rows, kind, *op, one.key)?,
                    _ => return Err(Refusal::WrongKind { kind, why: "it is about one row" }),
                },
                Evidence::Reads { key, first, second, edges } if kind == AnomalyKind::Phantom => {
                    self.disagree(&rows, *key, *first, *second, edges.is_empty())?;
                }
                _ => of_items.push(Anomaly::clone(anomaly)),
            }
        }
        match of_items.is_empty() {
            true => Ok(()),
            false => self.verify_items(&rows, of_items),
        }
    }

    /// Refuses unless no version of a row explains what an operation says about it.
    fn is_unexplained(
        &self,
        rows: &Rows<'h>,
        kind: AnomalyKind,
        op: OpId,
        key: KeyId,
    ) -> Result<(), Refusal> {
        let wrong = |why| Err(Refusal::WrongKind { kind, why });
        if kind != rows::MISMATCH || self.has_starts().is_none() {
            return wrong("a result that no version explains is called otherwise");
        }
        let txn = self.known(op, key)?;
        if rows.contradicts_row(op, key)? {
            return Ok(());
        }
        if self.has_unobserved_write() {
            return wrong("nobody knows all versions of the row");
        }
        match rows.met(txn, key)? {
            Some(met) if met.writers.is_empty() && met.row.op == op => Ok(()),
            _ => wrong("a version of the row explains the result"),
        }
    }

    /// Refuses unless one operation tells what a row held, and another one of the same transaction says
    /// otherwise.
    fn disagree(
        &self,
        rows: &Rows<'h>,
        key: KeyId,
        first: OpId,
        second: OpId,
        is_alone: bool,
    ) -> Result<(), Refusal> {
        let kind = AnomalyKind::Phantom;
        let (one, other) = (self.known(first, key)?, self.known(second, key)?);
        let is_by_order = self.has_starts().is_some();
        let differ = rows.contradicts_row(first, key)? || rows.contradicts_row(second, key)?;
        if is_by_order && one == other && first < second && is_alone && differ {
            return Ok(());
        }
        Err(Refusal::WrongKind { kind, why: "the two agree about the row" })
    }

    /// The transaction of an operation, which must have committed.
    fn known(&self, op: OpId, key: KeyId) -> Result<TxnId, Refusal> {
        if op.index() >= self.history.op_count() || key.index() >= self.history.key_count() {
            return Err(Refusal::NoSuchOp(op));
        }
        let txn = self.history.op_txn(op);
        if self.history.outcome(txn) == Outcome::Committed {
            return Ok(txn);
        }
        let view = self.view(&[])?;
        Facts::new(view.history(), self.options, &[]).committed(txn)?;
        Ok(txn)
    }

    fn has_unobserved_write(&self) -> bool {
        let history = self.history;
        let mut txns = history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted);
        txns.any(|txn| history.txn_ops(txn).any(|op| is_unobserved_write(history, op)))
    }

    fn view(&self, met: &[MetRow]) -> Result<ItemView, Refusal> {
        let too_large = |_| Refusal::Unsupported("so many rows in results");
        ItemView::with_met(self.history, met).map_err(too_large)
    }

    /// Re-checks what is said about single rows.
    fn verify_items(&self, rows: &Rows<'h>, mut of_items: Vec<Anomaly>) -> Result<(), Refusal> {
        if self.has_unobserved_write() {
            return Err(Refusal::Unsupported("a write of rows that nobody observed"));
        }
        let met = self.met(rows, &of_items)?;
        if !met.is_empty() && self.has_starts().is_none() {
            return Err(Refusal::Unsupported("rows that were met, at this level"));
        }
        let all: Vec<MetRow> = met.iter().map(|met| met.row).collect();
        let view = self.view(&all)?;
        let mut facts = Facts::new(view.history(), self.options, &[]);
        facts.incarnations = Some(Incarnations::new(self.history));
        for open in met.into_iter().filter(|met| met.row.held.is_none()) {
            let item = view.met(open.row.op, open.row.key);
            facts.met.extend(item.map(|item| (item, open.writers)));
        }
        let forward = Forward { history: self.history, view: &view };
        for anomaly in &mut of_items {
            anomaly.evidence = forward.evidence(&anomaly.evidence)?;
        }
        anomalies::verify(&facts, self.level, &Findings::new(of_items, false))
    }

    /// The rows that anomalies speak of and no result tells, by operation.
    fn met(&self, rows: &Rows<'h>, anomalies: &[Anomaly]) -> Result<Vec<Met>, Refusal> {
        let mut told = BTreeSet::new();
        for anomaly in anomalies {
            told.extend(forward::met_rows(self.history, &anomaly.evidence)?);
        }
        let mut met = Vec::with_capacity(told.len());
        for (op, key) in told {
            let row = rows.met(self.history.op_txn(op), key)?;
            let why = "an operation says nothing about a row that it is said to have met";
            met.push(row.filter(|row| row.row.op == op).ok_or(Refusal::Unsupported(why))?);
        }
        Ok(met)
    }
}
