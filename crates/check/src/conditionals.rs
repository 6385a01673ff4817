//! Conditional writes inside transactions, as reads and writes.
//!
//! A compare-and-set that took effect is a read and a write, and one that reports what it found is a read
//! ([`ItemView`]). One that failed without a report saw some other value than it asked for: it is a read
//! that may have seen any write of another value. Transactions of unknown outcome may have been the reason
//! for it, too. So it is a choice like that of a read of a value which several transactions wrote, and the
//! engines decide it as they do any other ([`MetRows`](crate::resolved::MetRows)).
//!
//! A transaction of unknown outcome that may have been the reason may have read lists. If it committed, they
//! must fit, and no engine asks for that under a condition. So the outcomes of such transactions are tried
//! ([`ConditionalRegisters::by_outcomes`]).
//!
//! What it asked for and its own transaction had written before, it must have found; and where no transaction
//! wrote anything else, it cannot have found anything else. That is wrong whatever the order.

use std::sync::Arc;

use isolario_model::{
    Anomaly, AnomalyKind, Attempt, ConditionalOutcome, ConditionalWrite, Evidence, History,
    Inapplicable, Initial, ItemView, Level, LevelResult, Limit, OpId, OpKind, Outcome, TxnId,
    ValueId, ValueRef, Verdict,
};

use crate::plan::{Conclusion, LoweredHistory};
use crate::predicates::{Deleters, clash, is_by_row};
use crate::resolved::writes;
use crate::rows::{LastWrite, RowVersions};
use crate::{CheckOptions, Checker};

/// More candidates than this, of all reads together, are not worth their memory.
const MOST_CANDIDATES: usize = 1 << 25;

/// The outcomes of more transactions than this are not tried in all combinations.
const MOST_OUTCOMES: usize = 4;

/// Decides levels of a history with conditional writes. Linearizability knows them anyway.
pub(crate) fn check(checker: &Checker<'_>, levels: &[Level]) -> Vec<LevelResult> {
    let view = ItemView::new(checker.history);
    let registers = match &view {
        Ok(view) => ConditionalRegisters::new(checker.history, view, &checker.options),
        Err(_) => Err(Conclusion::not_begun()),
    };
    let decide = |level: Level| match &registers {
        _ if level.needs().single_operations => checker.decide(level),
        Ok(registers) => registers.decide(level),
        Err(conclusion) => conclusion.clone().result(level, Attempt::Nothing),
    };
    levels.iter().map(|level| decide(*level)).collect()
}

/// A history with conditional writes as one of registers.
struct ConditionalRegisters<'a> {
    history: &'a History,
    view: &'a ItemView,
    /// A row that comes back after a delete is the same row to the first, and another one to the second.
    by_key: LoweredHistory<'a>,
    by_row: LoweredHistory<'a>,
    /// The anomalies of reads that nothing explains: of transactions that committed.
    unexplained: Vec<Anomaly>,
    may_reuse_rows: bool,
}

impl<'a> ConditionalRegisters<'a> {
    /// Fails if it would be too large, or if a conditional write does not say enough.
    fn new(
        history: &'a History,
        view: &'a ItemView,
        options: &CheckOptions,
    ) -> Result<Self, Conclusion> {
        if let Some(op) = open_conditional(history, view) {
            return Err(Inapplicable::OpenConditional { op }.into());
        }
        let open = open_reads(history, view).ok_or_else(Conclusion::not_begun)?;
        let of_item = |open: &OpenConditionalRead| (open.item, open.writers.clone());
        let matched: Arc<[(OpId, Vec<TxnId>)]> = open.iter().map(of_item).collect();
        let items = |by_incarnation| {
            let options = CheckOptions { by_incarnation, ..options.clone() };
            LoweredHistory::new(history, view, options, Arc::clone(&matched))
        };
        let (by_key, by_row) = (items(false), items(true));
        let impossible = open.iter().filter(|open| open.writers.is_empty());
        let is_wrong =
            |open: &&OpenConditionalRead| by_key.items.is_kept(view.history().op_txn(open.item));
        let unexplained = impossible.filter(is_wrong).map(OpenConditionalRead::anomaly).collect();
        let may_reuse_rows = history.may_reuse_rows();
        Ok(ConditionalRegisters { history, view, by_key, by_row, unexplained, may_reuse_rows })
    }

    /// Decides a level. Where rows that come back after a delete are others, writers that exclude each other
    /// by their keys do so row by row. A level at which a key is one row says nothing about such levels.
    fn decide(&self, level: Level) -> LevelResult {
        if !self.may_reuse_rows {
            return self.decide_by(&self.by_key, level);
        }
        let (registers, is_by_row) =
            if is_by_row(level) { (&self.by_row, true) } else { (&self.by_key, false) };
        let deleters = Deleters::new(self.view.history());
        let mut result = deleters.without_parted(self.decide_by(registers, level));
        deleters.claim_no_more(&mut result);
        let excludes = level.shape().exclusive_writers;
        let clashes = match &result.verdict {
            Verdict::Satisfied(witness) if is_by_row => {
                clash(self.view.history(), witness, &[], excludes)
            }
            _ => false,
        };
        if !clashes {
            return result;
        }
        let by_key = self.decide_by(&self.by_key, level);
        if by_key.verdict.is_satisfied() {
            by_key
        } else {
            Conclusion::limit(Limit::NotSearched).result(level, result.decided_by)
        }
    }

    /// Decides a level by the view.
    fn decide_by(&self, registers: &LoweredHistory<'_>, level: Level) -> LevelResult {
        // Whether every read must have returned what a committed transaction wrote.
        let explains_reads = AnomalyKind::ThinAirRead.forbidden_at(level);
        if explains_reads && !self.unexplained.is_empty() {
            let unexplained = Conclusion::refuted(self.unexplained.clone());
            return unexplained.result(level, Attempt::Reads);
        }
        let mut result = registers.decide(level);
        let open = registers.items.open_lists();
        if !open.is_empty() {
            if result.verdict.is_satisfied() && explains_reads {
                result = Conclusion::limit(Limit::NotSearched).result(level, result.decided_by);
            }
            if !result.verdict.is_violated() {
                result = self.by_outcomes(&registers.items, level, &open).unwrap_or(result);
            }
        }
        match registers.items.met.first().filter(|_| is_unsearched(&result)) {
            Some((item, _)) => {
                let reason = Inapplicable::OpenConditional { op: self.view.origin(*item) };
                Conclusion::Inapplicable(reason).result(level, result.decided_by)
            }
            None => result,
        }
    }

    /// The result for some outcomes of the transactions of these operations that satisfy the level: first, that
    /// none of them committed.
    fn by_outcomes(&self, items: &Checker<'_>, level: Level, open: &[OpId]) -> Option<LevelResult> {
        let ways = if open.len() > MOST_OUTCOMES { 1 } else { 1 << open.len() };
        let decide = |way: usize| {
            let (mut committed, mut matched) = (Vec::new(), items.met.to_vec());
            for (at, op) in open.iter().enumerate() {
                if way >> at & 1 == 1 {
                    committed.push(self.view.history().op_txn(*op));
                } else {
                    // A read that no write explains: its transaction cannot have committed.
                    matched.push((*op, Vec::new()));
                }
            }
            let options = CheckOptions { committed, ..items.options.clone() };
            let registers =
                LoweredHistory::new(self.history, self.view, options, Arc::from(matched));
            let is_open = !registers.items.open_lists().is_empty();
            (!is_open).then(|| registers.decide(level)).filter(|found| found.verdict.is_satisfied())
        };
        (0..ways).find_map(decide)
    }
}

/// Whether no order was searched for: the order of versions depends on what reads saw, or no transaction that may be
/// the source of one can have committed.
fn is_unsearched(result: &LevelResult) -> bool {
    use Limit::{NotSearched, Steps};
    let Verdict::Undecided(undecided) = &result.verdict else { return false };
    matches!(undecided.limit, NotSearched | Steps) && undecided.progress.is_none()
}

/// A conditional write of which too little is known.
fn open_conditional(history: &History, view: &ItemView) -> Option<OpId> {
    use ConditionalOutcome::{Contradiction, FoundAnother};
    // What they compare with is a value, and here versions are something else.
    let names_versions = history.names_versions();
    if !names_versions {
        let unsure = view.unsure_conditional();
        if unsure.is_some() || matches!(history.initial(), Initial::Value(_)) {
            return unsure;
        }
    }
    // It is unknown what else a register held at first, or whether it was absent.
    let is_open = |op: &OpId| {
        history.conditional(*op).is_some_and(|conditional| {
            names_versions
                || matches!(conditional.ended, FoundAnother | Contradiction)
                || history.op_kinds()[op.index()] == OpKind::InsertIfAbsent
        })
    };
    (0..history.op_count()).map(OpId::at).find(is_open)
}

/// A read that does not say what it returned.
struct OpenConditionalRead {
    /// The conditional write, and the read in the view.
    op: OpId,
    item: OpId,
    /// The transactions that may have written what it returned.
    writers: Vec<TxnId>,
    /// The own write before it, which is what it asked for.
    own: Option<OpId>,
}

impl OpenConditionalRead {
    fn anomaly(&self) -> Anomaly {
        let kind = match self.own {
            Some(_) => AnomalyKind::NotMyOwnWrite,
            None => AnomalyKind::ThinAirRead,
        };
        let evidence = Evidence::Read { read: self.op, saw: None, instead: self.own };
        Anomaly::new(kind, evidence)
    }
}

/// The open reads of all transactions that did not abort; none if they have too many candidates.
fn open_reads(history: &History, view: &ItemView) -> Option<Vec<OpenConditionalRead>> {
    let counts = |txn: TxnId| history.outcome(txn) != Outcome::Aborted;
    let versions = RowVersions::new(view, counts);
    let mut found: Vec<OpenConditionalRead> = Vec::new();
    let mut candidates = 0;
    for txn in history.txns().filter(|txn| counts(*txn)) {
        for op in history.txn_ops(txn) {
            let Some(conditional) = history.conditional(op) else { continue };
            if let Some(open) = open_read(view, &versions, (txn, op), &conditional) {
                candidates += open.writers.len();
                found.push(open);
            }
            if candidates > MOST_CANDIDATES {
                return None;
            }
        }
    }
    Some(found)
}

/// None if a conditional write says what it found, or found what its own transaction had written.
fn open_read(
    view: &ItemView,
    versions: &RowVersions,
    (txn, op): (TxnId, OpId),
    conditional: &ConditionalWrite,
) -> Option<OpenConditionalRead> {
    let ConditionalWrite { key, expected, ended, .. } = *conditional;
    let items = view.history();
    let item = view.read_of_matched(op, key)?;
    let impossible = OpenConditionalRead { op, item, writers: Vec::new(), own: None };
    match ended {
        ConditionalOutcome::Contradiction => return Some(impossible),
        ConditionalOutcome::FoundAnother => {}
        _ => return None,
    }
    let expected = expected.or_else(|| items.find_value(ValueRef::Nil)).map(ValueId::to_bits);
    let is_other = |encoded: u64| Some(encoded) != expected;
    let is_own = |other: &OpId| {
        *other < item
            && items.op_keys()[other.index()] == key
            && writes(items.op_kinds()[other.index()])
    };
    if let Some(own) = items.txn_ops(txn).rfind(is_own) {
        let is_expected = !is_other(items.encoded_version(own));
        return is_expected
            .then(|| OpenConditionalRead { own: Some(view.origin(own)), ..impossible });
    }
    let is_candidate =
        |version: &&LastWrite| version.writer != txn && is_other(version.row.encoded);
    let candidates = versions.of(key).iter().filter(is_candidate);
    let mut writers: Vec<TxnId> = candidates.map(|version| version.writer).collect();
    writers.extend(items.encoded_initial_version().is_none_or(is_other).then_some(TxnId::INIT));
    Some(OpenConditionalRead { writers, ..impossible })
}
