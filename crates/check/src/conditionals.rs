//! Conditional writes inside transactions, as reads and writes.
//!
//! A compare-and-set that took effect is a read and a write, and one that tells what it found is a read
//! ([`ItemView`]). One that failed and does not tell saw some other value than it asked for: it is a read
//! that may have seen any write of another value. Transactions of unknown outcome may have been the reason
//! for it, too. So it is a choice like that of a read of a value which several transactions wrote, and the
//! engines decide it as they do any other ([`MetRows`](crate::resolved::MetRows)).
//!
//! A transaction of unknown outcome that may have been the reason may have read lists. If it committed, they
//! must fit, and no engine asks for that under a condition. So the outcomes of such transactions are tried
//! ([`Registers::by_outcomes`]).
//!
//! What it asked for and its own transaction had written before, it must have found; and where nobody wrote
//! anything else, it cannot have found anything else. That is wrong whatever the order.

use std::sync::Arc;

use isolario_model::{
    Anomaly, AnomalyKind, Attempt, ConditionalOutcome, ConditionalWrite, Evidence, History,
    Inapplicable, Initial, ItemView, Level, LevelResult, Limit, OpId, OpKind, Outcome, TxnId,
    ValueId, ValueRef, Verdict,
};

use crate::plan::Conclusion;
use crate::predicates::{Deleters, clash, is_by_row};
use crate::resolved::{Reads, writes};
use crate::{CheckOptions, Checker};

/// More candidates than this, of all reads together, are not worth their memory.
const MOST_CANDIDATES: usize = 1 << 25;

/// The outcomes of more transactions than this are not tried in all combinations.
const MOST_OUTCOMES: usize = 4;

/// Decides levels of a history with conditional writes. Linearizability knows them anyway.
pub(crate) fn check(checker: &Checker<'_>, levels: &[Level]) -> Vec<LevelResult> {
    let registers = Registers::new(checker.history);
    let items = |by_incarnation| match &registers {
        Some(Ok(registers)) => {
            Some(registers.checker(&CheckOptions { by_incarnation, ..checker.options.clone() }))
        }
        _ => None,
    };
    let by_key = items(false);
    let by_row = items(true).filter(|_| checker.history.may_reuse_rows());
    let decide = |level: Level| match (&registers, &by_key) {
        _ if level.needs().single_operations => checker.decide(level),
        (Some(Ok(registers)), Some(by_key)) => match &by_row {
            Some(by_row) if is_by_row(level) => registers.decide_by_row(by_row, by_key, level),
            Some(_) => registers.decide_by_key(by_key, level),
            None => registers.decide(by_key, level),
        },
        (Some(Err(reason)), _) => {
            Conclusion::Inapplicable(reason.clone()).result(level, Attempt::Nothing)
        }
        _ => Conclusion::not_begun().result(level, Attempt::Nothing),
    };
    levels.iter().map(|level| decide(*level)).collect()
}

/// A history with conditional writes as one of registers.
pub(crate) struct Registers<'h> {
    history: &'h History,
    view: ItemView,
    /// The reads that may have seen one of several writes, by operation of the view.
    met: Arc<[(OpId, Vec<TxnId>)]>,
    /// Those that nothing explains: of transactions that did commit.
    unexplained: Vec<Anomaly>,
}

impl<'h> Registers<'h> {
    /// None if it would be too large.
    pub(crate) fn new(history: &'h History) -> Option<Result<Self, Inapplicable>> {
        let view = ItemView::new(history).ok()?;
        if let Some(op) = open_conditional(history, &view) {
            return Some(Err(Inapplicable::OpenConditional { op }));
        }
        let open = Candidates::new(&view).of_all(history)?;
        let of_item = |open: &Open| (open.item, open.writers.clone());
        let met: Arc<[(OpId, Vec<TxnId>)]> = open.iter().map(of_item).collect();
        let mut unexplained = Vec::new();
        if open.iter().any(|open| open.writers.is_empty()) {
            let reads = Reads::with_matched(view.history(), &met);
            let is_wrong = |open: &&Open| {
                open.writers.is_empty() && reads.is_kept(view.history().op_txn(open.item))
            };
            unexplained = open.iter().filter(is_wrong).map(Open::anomaly).collect();
        }
        Some(Ok(Registers { history, view, met, unexplained }))
    }

    /// The same history without conditional writes, and a checker of it.
    pub(crate) fn checker(&self, options: &CheckOptions) -> Checker<'_> {
        Checker::with_matched(self.view.history(), options.clone(), Arc::clone(&self.met))
    }

    /// Decides a level by a checker of the view.
    fn decide(&self, items: &Checker<'_>, level: Level) -> LevelResult {
        if self.is_wrong_at(level) {
            let unexplained = Conclusion::refuted(self.unexplained.clone());
            return unexplained.result(level, Attempt::Reads);
        }
        let mut result = items.decide(level);
        let open = items.open_lists();
        if result.verdict.is_satisfied() && !open.is_empty() && explains_reads(level) {
            result = Conclusion::limit(Limit::NotSearched).result(level, result.decided_by);
        }
        if !result.verdict.is_violated() && !open.is_empty() {
            result = self.by_outcomes(&items.options, level, &open).unwrap_or(result);
        }
        let result = self.view.result_of(self.history, result);
        match self.met.first().filter(|_| is_unsearched(&result)) {
            Some((met, _)) => {
                let reason = Inapplicable::OpenConditional { op: self.view.origin(*met) };
                Conclusion::Inapplicable(reason).result(level, result.decided_by)
            }
            None => result,
        }
    }

    /// The result for some outcomes of the transactions of these operations that satisfy the level: first, that
    /// none of them committed.
    fn by_outcomes(
        &self,
        options: &CheckOptions,
        level: Level,
        open: &[OpId],
    ) -> Option<LevelResult> {
        let ways = if open.len() > MOST_OUTCOMES { 1 } else { 1 << open.len() };
        let decide = |way: usize| {
            let (mut committed, mut met) = (Vec::new(), self.met.to_vec());
            for (at, op) in open.iter().enumerate() {
                match way >> at & 1 {
                    1 => committed.push(self.view.history().op_txn(*op)),
                    // A read that no write explains: its transaction cannot have committed.
                    _ => met.push((*op, Vec::new())),
                }
            }
            let options = CheckOptions { committed, ..options.clone() };
            let items = Checker::with_matched(self.view.history(), options, Arc::from(met));
            let is_open = !items.open_lists().is_empty();
            (!is_open).then(|| items.decide(level)).filter(|found| found.verdict.is_satisfied())
        };
        (0..ways).find_map(decide)
    }

    /// Decides a level at which rows that come back after a delete are other ones. Writers that exclude each
    /// other by their keys do so row by row.
    fn decide_by_row(
        &self,
        by_row: &Checker<'_>,
        by_key: &Checker<'_>,
        level: Level,
    ) -> LevelResult {
        let deleters = Deleters::new(self.view.history());
        let mut result = deleters.without_parted(self.decide(by_row, level));
        deleters.claim_no_more(&mut result);
        let clashes = |result: &LevelResult| match &result.verdict {
            Verdict::Satisfied(witness) => {
                clash(self.view.history(), witness, &[], level.shape().exclusive_writers)
            }
            _ => false,
        };
        if !clashes(&result) {
            return result;
        }
        let by_key = self.decide(by_key, level);
        match by_key.verdict.is_satisfied() {
            true => by_key,
            false => Conclusion::limit(Limit::NotSearched).result(level, result.decided_by),
        }
    }

    /// Decides a level at which a key is one row, which says nothing about levels at which it is not.
    fn decide_by_key(&self, by_key: &Checker<'_>, level: Level) -> LevelResult {
        let mut result = self.decide(by_key, level);
        Deleters::new(self.view.history()).claim_no_more(&mut result);
        result
    }

    /// Whether a level forbids what nothing explains.
    fn is_wrong_at(&self, level: Level) -> bool {
        !self.unexplained.is_empty() && explains_reads(level)
    }
}

/// Whether no order was searched for: the order of versions depends on what reads saw, or no transaction that may be
/// the source of one can have committed.
fn is_unsearched(result: &LevelResult) -> bool {
    use Limit::{NotSearched, Steps};
    let Verdict::Undecided(undecided) = &result.verdict else { return false };
    matches!(undecided.limit, NotSearched | Steps) && undecided.progress.is_none()
}

/// Whether every read must have seen what somebody wrote who committed.
fn explains_reads(level: Level) -> bool {
    AnomalyKind::ThinAirRead.forbidden_at(level)
}

/// A conditional write that is not told enough about.
fn open_conditional(history: &History, view: &ItemView) -> Option<OpId> {
    let conditionals =
        || (0..history.op_count()).map(OpId::at).filter(|op| history.conditional(*op).is_some());
    // What they compare with is a value, and here versions are something else.
    if history.names_versions() {
        return conditionals().next();
    }
    if matches!(history.initial(), Initial::Value(_)) {
        return view.unsure_conditional();
    }
    // Nobody knows what else a register held at first, or whether it was absent.
    let ended = |op: &OpId| history.conditional(*op).map(|conditional| conditional.ended);
    let is_open = |op: &OpId| {
        matches!(
            ended(op),
            Some(ConditionalOutcome::FoundAnother | ConditionalOutcome::Contradiction)
        ) || history.op_kinds()[op.index()] == OpKind::InsertIfAbsent
    };
    view.unsure_conditional().or_else(|| conditionals().find(is_open))
}

/// A read that does not tell what it saw.
struct Open {
    /// The conditional write, and the read in the view.
    op: OpId,
    item: OpId,
    /// Who may have written what it saw.
    writers: Vec<TxnId>,
    /// The own write before it, which is what it asked for.
    own: Option<OpId>,
}

impl Open {
    fn anomaly(&self) -> Anomaly {
        let kind = match self.own {
            Some(_) => AnomalyKind::NotMyOwnWrite,
            None => AnomalyKind::ThinAirRead,
        };
        let evidence = Evidence::Read { read: self.op, saw: None, instead: self.own };
        Anomaly::new(kind, evidence)
    }
}

/// Who may have written what a read saw that was something else than it asked for.
struct Candidates<'v> {
    view: &'v ItemView,
    /// The last writes of each key by those that did not abort: key, writer and word, by key.
    writes: Vec<(u32, TxnId, u64)>,
}

impl<'v> Candidates<'v> {
    fn new(view: &'v ItemView) -> Self {
        let items = view.history();
        let mut written = Vec::new();
        for txn in items.txns().filter(|txn| items.outcome(*txn) != Outcome::Aborted) {
            let of_txn = items.txn_ops(txn).filter(|op| writes(items.op_kinds()[op.index()]));
            written.extend(of_txn.map(|op| (items.op_keys()[op.index()].0, txn, op)));
        }
        written.sort_unstable();
        let last = written.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter_map(<[_]>::last);
        let writes = last.map(|(key, txn, op)| (*key, *txn, items.encoded_version(*op))).collect();
        Candidates { view, writes }
    }

    /// The reads of all that did not abort; none if they have too many candidates.
    fn of_all(&self, history: &History) -> Option<Vec<Open>> {
        let mut found: Vec<Open> = Vec::new();
        let mut candidates = 0;
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            for op in history.txn_ops(txn) {
                if let Some(open) = history.conditional(op).and_then(|c| self.open(txn, op, &c)) {
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

    /// None if it tells what it found, or found what its own transaction had written.
    fn open(&self, txn: TxnId, op: OpId, conditional: &ConditionalWrite) -> Option<Open> {
        let ConditionalWrite { key, expected, ended, .. } = *conditional;
        let items = self.view.history();
        let item = self.view.read_of_matched(op, key)?;
        let expected = expected.or_else(|| items.find_value(ValueRef::Nil)).map(ValueId::to_bits);
        let is_other = |word: u64| Some(word) != expected;
        if !matches!(ended, ConditionalOutcome::FoundAnother | ConditionalOutcome::Contradiction) {
            return None;
        }
        let is_own = |other: &OpId| {
            *other < item
                && items.op_keys()[other.index()] == key
                && writes(items.op_kinds()[other.index()])
        };
        let own = items.txn_ops(txn).rfind(is_own);
        let impossible = Open { op, item, writers: Vec::new(), own: None };
        if ended == ConditionalOutcome::Contradiction {
            return Some(impossible);
        }
        if let Some(own) = own {
            let own = Some(own).filter(|own| !is_other(items.encoded_version(*own)));
            return own.map(|own| Open { own: Some(self.view.origin(own)), ..impossible });
        }
        let of_key = self.writes.partition_point(|(of, ..)| *of < key.0);
        let of_key = self.writes[of_key..].iter().take_while(|(of, ..)| *of == key.0);
        let others = of_key.filter(|(_, writer, word)| *writer != txn && is_other(*word));
        let mut writers: Vec<TxnId> = others.map(|(_, writer, _)| *writer).collect();
        let is_other_at_first = match items.encoded_initial_version() {
            Some(word) => is_other(word),
            None => true,
        };
        writers.extend(is_other_at_first.then_some(TxnId::INIT));
        Some(Open { writers, ..impossible })
    }
}
