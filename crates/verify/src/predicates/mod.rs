//! Verdicts about predicate histories of which nobody says which versions the predicates met.
//!
//! What is said to be satisfied comes with an order: the transactions run once more in it, and every
//! result must come out as it did. What is said to be violated is said about single rows, those that
//! predicates returned and those that they met without returning them. The latter are worked out here
//! anew, with all versions that they may have been; then the evidence is re-checked like that of any
//! history of registers.

mod forward;
mod named;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{
    Anomaly, AnomalyKind as Kind, Edge, Evidence, Findings, History, Inapplicable, IncarnationView,
    ItemView, KeyId, Level, LevelNodes, LevelResult, MatchedRow, Op, OpId, Outcome, Point, Reason,
    TxnId, Verdict, VisibilityRule, Witness,
};

use crate::anomalies::{self, are_counted};
use crate::facts::Facts;
use crate::promised::Promise;
use crate::times::Times;
use crate::{Refusal, VerifyOptions};
pub(crate) use forward::Forward;
pub(crate) use rows::{Incarnations, deletes};
use rows::{Met, Rows, is_unobserved_write, writes};

/// Whether a level tells a row from one of the same key that was deleted before: it is about versions, or
/// about writers that exclude or see each other.
pub(crate) fn is_by_row(level: Level) -> bool {
    let shape = level.shape();
    level.needs().version_order
        || shape.exclusive_writers
        || shape.visible == VisibilityRule::Dependencies
}

/// Whether a transaction that may have committed leaves a row of a table deleted.
pub(crate) fn may_come_back(history: &History) -> bool {
    let has_rows = (0..history.key_count()).any(|key| history.is_row(KeyId::at(key)));
    has_rows && Incarnations::new(history).is_there()
}

/// Re-checks a result.
pub(crate) fn verify(
    history: &History,
    options: VerifyOptions,
    result: &LevelResult,
) -> Result<(), Refusal> {
    let claim = Claim { history, both: &[], options, level: result.level };
    let apart = claim.rows_apart();
    let claim = match &apart {
        Some(apart) => Claim { history: apart.history(), both: apart.both(), ..claim },
        None => claim,
    };
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
    /// Who saw two rows of which key.
    both: &'h [(TxnId, KeyId)],
    options: VerifyOptions,
    level: Level,
}

/// Whether an operation has two rows of one key.
fn has_row_twice(history: &History, op: OpId) -> bool {
    if op.index() >= history.op_count() {
        return false;
    }
    let (Op::PredicateRead { rows, .. } | Op::PredicateWrite { rows, .. }) = history.op(op) else {
        return false;
    };
    let mut keys: Vec<KeyId> = rows.unwrap_or_default().iter().map(|row| row.key).collect();
    keys.sort_unstable();
    keys.windows(2).any(|two| two[0] == two[1])
}

fn txn_of(point: &Point) -> TxnId {
    match *point {
        Point::Start(txn) | Point::Commit(txn) => txn,
    }
}

impl<'h> Claim<'h> {
    /// The history with rows of one key apart, if somebody saw two. Where transactions take effect one after
    /// the other, a key is one row for good.
    fn rows_apart(&self) -> Option<IncarnationView> {
        let Claim { history, options, level, .. } = *self;
        let times = Times::new(history, options.clock_skew);
        let ends_before = |first: TxnId, second: TxnId| {
            let in_session = options.session_order
                && first < second
                && history.session_of(first) == history.session_of(second)
                && history.outcome(first) == Outcome::Committed;
            in_session || level.shape().real_time && times.in_order(first, second)
        };
        match self.has_starts() {
            Some(false) => None,
            Some(true) => IncarnationView::new(history, ends_before),
            None => IncarnationView::new(history, |_, _| false),
        }
    }

    /// Whether transactions start and commit at the level, or have one moment; none for levels that no
    /// order shows to be satisfied.
    fn has_starts(&self) -> Option<bool> {
        let shape = self.level.shape();
        match (shape.nodes, shape.visible) {
            _ if self.level.needs().version_order => None,
            (LevelNodes::One, VisibilityRule::Everything) => Some(false),
            (LevelNodes::StartAndCommit, VisibilityRule::Prefix) => Some(true),
            _ => None,
        }
    }

    fn verify_witness(&self, witness: &Witness) -> Result<(), Refusal> {
        let Claim { history, options, level, .. } = *self;
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
            return Err(Refusal::Unsupported("a write whose rows are unobserved"));
        }
        Promise { history, options, order: None, level, has_starts }.verify_witness(witness)?;
        match witness {
            Witness::Points(points) => self.inserts_in_place_of_deleted(points),
            _ => Ok(()),
        }
    }

    /// Refuses an order unless whoever saw two rows of one key inserted the one in place of the other,
    /// which somebody else deleted while it ran.
    fn inserts_in_place_of_deleted(&self, points: &[Point]) -> Result<(), Refusal> {
        for (txn, key) in self.both {
            let until = points.iter().take_while(|point| **point != Point::Commit(*txn));
            let while_it_ran = until.skip_while(|point| **point != Point::Start(*txn));
            let writers = while_it_ran.filter_map(|point| match *point {
                Point::Commit(other) if writes(self.history, other, *key) => Some(other),
                _ => None,
            });
            // Who is of unknown outcome need not be there.
            let is_there = points.contains(&Point::Commit(*txn));
            if is_there && !writers.last().is_some_and(|last| deletes(self.history, last, *key)) {
                return Err(Refusal::Unsupported("two rows of one key, of which none was deleted"));
            }
        }
        Ok(())
    }

    fn does_not_apply(&self, reason: &Inapplicable) -> Result<(), Refusal> {
        let exists = |op: OpId| op.index() < self.history.op_count();
        let holds = match *reason {
            Inapplicable::UnreturnedRows { op } => {
                self.has_starts().is_none() && exists(op) && self.history.op_predicate(op).is_some()
            }
            Inapplicable::RowTwice { op } => has_row_twice(self.history, op),
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
                Evidence::Row { key, read, saw: None, instead } if self.is_about_match(anomaly) => {
                    self.is_wrong(&rows, kind, *key, *read, *instead)?;
                }
                Evidence::Reads { key, first, second, edges }
                    if matches!(kind, Kind::Phantom | Kind::PredicateManyPreceders) =>
                {
                    self.disagree(&rows, kind, *key, (*first, *second), edges.is_empty())?;
                }
                Evidence::Cycle { edges }
                    if edges.iter().any(|e| e.reason.is_about_predicate()) =>
                {
                    named::verify(&rows, self.level, kind, edges)?;
                    of_items.push(named::as_case(edges));
                }
                evidence => {
                    self.is_of_one_row(kind, evidence)?;
                    of_items.push(Anomaly::clone(anomaly));
                }
            }
        }
        match of_items.is_empty() {
            true => Ok(()),
            false => self.verify_items(&rows, &of_items),
        }
    }

    /// Refuses evidence that orders two versions of a key where a delete may lie between them, at the levels
    /// below prefix that are about versions or writers of one row: these are then versions of two. The
    /// stronger ones are asked edge by edge whether writers exclude each other.
    fn is_of_one_row(&self, kind: Kind, evidence: &Evidence) -> Result<(), Refusal> {
        let is_by_row = self.level.needs().version_order
            || self.level.shape().visible == VisibilityRule::Dependencies;
        if !is_by_row {
            return Ok(());
        }
        let incarnations = Incarnations::new(self.history);
        let is_parted = |edge: &&Edge| match &edge.reason {
            Reason::Overwrite { key, .. } => incarnations.may_part(*key, edge.from, edge.to),
            Reason::AntiDependency { key, writer, .. } => {
                incarnations.may_part(*key, *writer, edge.to)
            }
            _ => false,
        };
        match forward::all_edges(evidence).iter().any(is_parted) {
            true => Err(Refusal::WrongKind { kind, why: "a delete may lie between two versions" }),
            false => Ok(()),
        }
    }

    /// Whether evidence of one row is about whether that row matches, and not about what it held: a row
    /// of a result is a read of it.
    fn is_about_match(&self, anomaly: &Anomaly) -> bool {
        let Evidence::Row { key, read, .. } = anomaly.evidence else { return false };
        match anomaly.kind {
            Kind::ResultMismatch | Kind::UnexplainedResult => true,
            _ if read.index() >= self.history.op_count() => false,
            kind => kind == Kind::NotMyOwnWrite && forward::is_met(self.history, read, key),
        }
    }

    /// Refuses unless what an operation says about a row is wrong by itself, in the way that the kind
    /// says.
    fn is_wrong(
        &self,
        rows: &Rows<'h>,
        kind: Kind,
        key: KeyId,
        op: OpId,
        instead: Option<OpId>,
    ) -> Result<(), Refusal> {
        let wrong = |why| Err(Refusal::WrongKind { kind, why });
        if self.has_starts().is_none() {
            return wrong("the level says nothing about rows that were not returned");
        }
        let txn = self.known(op, key)?;
        match kind {
            Kind::NotMyOwnWrite if instead.is_none() => wrong("no write is named"),
            Kind::NotMyOwnWrite => match rows.contradicts_own(op, key)? == instead {
                true => Ok(()),
                false => wrong("the transaction did not write the row so"),
            },
            _ if instead.is_some() => wrong("it is not about a write"),
            Kind::ResultMismatch => match rows.told_without_match(op, key)? {
                true => Ok(()),
                false => wrong("the row is as it was asked for, or not in the result"),
            },
            _ if self.has_unobserved_write() => wrong("not all versions of the row are known"),
            _ => match rows.met_by(txn, key, |other| other == op)? {
                Some(met) if met.writers.is_empty() => Ok(()),
                _ => wrong("a version of the row explains the result"),
            },
        }
    }

    /// Refuses unless two operations of one transaction contradict each other about a row: one tells what
    /// it held, and the other says otherwise; or both were explained by versions of it, but all that the
    /// transaction says about it is explained by none.
    fn disagree(
        &self,
        rows: &Rows<'h>,
        kind: Kind,
        key: KeyId,
        (first, second): (OpId, OpId),
        is_alone: bool,
    ) -> Result<(), Refusal> {
        let wrong = |why| Err(Refusal::WrongKind { kind, why });
        let (txn, other) = (self.known(first, key)?, self.known(second, key)?);
        if self.has_starts().is_none() || txn != other || first >= second || !is_alone {
            return wrong("it is about two operations of one transaction");
        }
        if kind == Kind::Phantom {
            let differ =
                rows.contradicts_seen(first, key)? || rows.contradicts_seen(second, key)?;
            return if differ { Ok(()) } else { wrong("the two agree about the row") };
        }
        if self.has_unobserved_write() {
            return wrong("not all versions of the row are known");
        }
        for op in [first, second] {
            match rows.met_by(txn, key, |other| other == op)? {
                Some(met) if !met.writers.is_empty() => {}
                _ => return wrong("no version of the row explains one of the two"),
            }
        }
        match rows.met(txn, key)? {
            Some(met) if met.writers.is_empty() => Ok(()),
            _ => wrong("a version of the row explains both"),
        }
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

    fn view(&self, met: &[MatchedRow]) -> Result<ItemView, Refusal> {
        let too_large = |_| Refusal::Unsupported("a history with this many rows in results");
        ItemView::with_matched(self.history, met).map_err(too_large)
    }

    /// Re-checks what is said about single rows.
    fn verify_items(&self, rows: &Rows<'h>, of_items: &[Anomaly]) -> Result<(), Refusal> {
        if self.has_unobserved_write() {
            return Err(Refusal::Unsupported("a write whose rows are unobserved"));
        }
        let met = self.met(rows, of_items)?;
        let txn_of = |row: &MatchedRow| self.history.op_txn(row.op);
        let first: BTreeMap<(TxnId, KeyId), OpId> =
            met.iter().map(|met| ((txn_of(&met.row), met.row.key), met.row.op)).collect();
        if !met.is_empty() && self.has_starts().is_none() {
            return Err(Refusal::Unsupported("rows that a predicate matched, at this level"));
        }
        let all: Vec<MatchedRow> = met.iter().map(|met| met.row).collect();
        let view = self.view(&all)?;
        let mut facts = Facts::new(view.history(), self.options, &[]);
        facts.incarnations = Some(Incarnations::new(self.history));
        for open in met.into_iter().filter(|met| met.row.held.is_none()) {
            let item = view.read_of_matched(open.row.op, open.row.key);
            facts.met.extend(item.map(|item| (item, open.writers)));
        }
        let forward = Forward { history: self.history, view: &view, met: &first };
        for anomaly in of_items {
            let mut verdict = Ok(());
            for evidence in forward.each_evidence(&anomaly.evidence)? {
                let mut of_view = anomaly.clone();
                of_view.evidence = evidence;
                verdict =
                    anomalies::verify(&facts, self.level, &Findings::new(vec![of_view], false));
                if verdict.is_ok() {
                    break;
                }
            }
            verdict?;
        }
        Ok(())
    }

    /// The rows that anomalies speak of and no result tells, by operation.
    fn met(&self, rows: &Rows<'h>, anomalies: &[Anomaly]) -> Result<Vec<Met>, Refusal> {
        let mut told = BTreeSet::new();
        for anomaly in anomalies {
            told.extend(forward::met_rows(self.history, &anomaly.evidence)?);
        }
        let mut met: BTreeMap<(OpId, KeyId), Met> = BTreeMap::new();
        for (op, key, is_first) in told {
            let row = rows.met(self.history.op_txn(op), key)?;
            let says_so = |row: &Met| match is_first {
                true => row.row.op == op,
                false => row.ops.contains(&op),
            };
            let why = "a matched row that its operation says nothing about";
            let row = row.filter(says_so).ok_or(Refusal::Unsupported(why))?;
            met.insert((row.row.op, key), row);
        }
        if self.has_starts().is_some() {
            self.add_outcomes(rows, anomalies, &mut met)?;
        }
        Ok(met.into_values().collect())
    }

    /// Adds the rows that tell outcomes of transactions which anomalies are about, by name or because one
    /// writes a row of which they speak. If nobody else can have written what a committed one met, the writer
    /// committed; and who met what nobody can have written did not. It may take others of unknown outcome to
    /// tell that.
    fn add_outcomes(
        &self,
        rows: &Rows<'h>,
        anomalies: &[Anomaly],
        met: &mut BTreeMap<(OpId, KeyId), Met>,
    ) -> Result<(), Refusal> {
        let is_unknown = |txn: &TxnId| {
            txn.index() < self.history.txn_count() && self.history.outcome(*txn) == Outcome::Unknown
        };
        let mut waiting: Vec<TxnId> = Vec::new();
        for edge in anomalies.iter().flat_map(|anomaly| forward::all_edges(&anomaly.evidence)) {
            waiting.extend([edge.from, edge.to]);
            waiting.extend(edge.reason.key().into_iter().flat_map(|key| rows.writers(key)));
        }
        let mut done = BTreeSet::new();
        while let Some(txn) = waiting.pop() {
            if !is_unknown(&txn) || !done.insert(txn) {
                continue;
            }
            waiting.extend(rows.readers(txn));
            waiting.extend(rows.read_keys(txn).into_iter().flat_map(|key| rows.writers(key)));
            let alone = rows.met_alone(txn)?;
            let by_unknown =
                rows.all_met(txn)?.into_iter().filter(|met| met.writers.iter().all(is_unknown));
            for row in alone.into_iter().chain(by_unknown) {
                waiting.push(self.history.op_txn(row.row.op));
                waiting.extend(&row.writers);
                met.insert((row.row.op, row.row.key), row);
            }
        }
        Ok(())
    }
}
