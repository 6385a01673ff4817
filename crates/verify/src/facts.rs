//! What the history says, worked out from nothing but the history.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use isolario_model::{
    History, Initial, KeyId, Level, Op, OpId, OpKind, Outcome, StatedOrder, TxnId, ValueId,
};

use crate::by_key::ByKey;
use crate::own::Own;
use crate::predicates::{Incarnations, deletes};
use crate::stated::Stated;
use crate::times::Times;
use crate::{Refusal, VerifyOptions, allows_dirty_reads, lists};

/// Where the answer of a read came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The transaction's own last write before it.
    Own,
    /// The initial state.
    Init,
    /// The write of the one transaction that wrote what it returned: possibly the reader itself.
    Write(OpId),
    /// Nobody wrote it.
    Nobody,
    /// A write of one of several transactions.
    Ambiguous,
}

/// A history of registers and lists with its reads resolved: each part is worked out when it is
/// first asked for, since replaying needs little of it.
#[derive(Debug)]
pub(crate) struct Facts<'h> {
    pub(crate) history: &'h History,
    pub(crate) options: VerifyOptions,
    pub(crate) times: Times<'h>,
    /// Orders of versions that are part of the question.
    pub(crate) stated: Stated<'h>,
    /// The unobserved reads that are rows which predicates or conditional writes met, each with all who may
    /// have written what was met, sorted.
    pub(crate) met: BTreeMap<OpId, Vec<TxnId>>,
    /// Where writers of a key may overlap; none where they may nowhere.
    pub(crate) incarnations: Option<Incarnations>,
    /// The word of the initial version, where there is one.
    encoded_initial_version: Option<u64>,
    own: OnceCell<Own>,
    writes: OnceCell<ByKey>,
    /// Per operation, where its answer came from; none if it is not a read with an answer.
    sources: OnceCell<Vec<Option<Source>>>,
    /// Per transaction, whether it committed, by its outcome or because one that did read from it.
    committed: OnceCell<Vec<bool>>,
}

/// Whether an operation writes.
pub(crate) fn is_write(history: &History, op: OpId) -> bool {
    matches!(history.op_kinds()[op.index()], OpKind::Write | OpKind::Delete | OpKind::Append)
}

/// Working it out.
impl<'h> Facts<'h> {
    pub(crate) fn new(
        history: &'h History,
        options: VerifyOptions,
        stated: &'h [StatedOrder],
    ) -> Self {
        Facts {
            history,
            options,
            times: Times::new(history, options.clock_skew),
            stated: Stated::new(stated),
            met: BTreeMap::new(),
            incarnations: None,
            encoded_initial_version: history.encoded_initial_version(),
            own: OnceCell::new(),
            writes: OnceCell::new(),
            sources: OnceCell::new(),
            committed: OnceCell::new(),
        }
    }

    /// Whether what is stated puts one writer of a key before another. Those of unknown outcome count: what
    /// is stated about their versions says something about the order of others.
    pub(crate) fn is_stated(&self, key: KeyId, first: TxnId, second: TxnId) -> bool {
        let counts = |txn: TxnId| {
            self.known_txn(txn).is_ok()
                && self.history.outcome(txn) != Outcome::Aborted
                && self.writes_key(txn, key)
        };
        self.stated.imply(key, (first, second), counts)
    }

    fn own(&self) -> &Own {
        self.own.get_or_init(|| Own::new(self.history))
    }

    fn writes(&self) -> &ByKey {
        self.writes.get_or_init(|| ByKey::new(self.history, |op| self.is_write(op)))
    }

    fn sources(&self) -> &[Option<Source>] {
        self.sources.get_or_init(|| self.resolve_all())
    }

    /// Joins the reads of each key with its writes, by version.
    fn resolve_all(&self) -> Vec<Option<Source>> {
        let kinds = self.history.op_kinds();
        let mut sources = vec![None; kinds.len()];
        for (read, source) in sources.iter_mut().enumerate() {
            if kinds[read] == OpKind::ReadList {
                *source = lists::source(self, OpId::at(read));
            }
        }
        let reads = ByKey::new(self.history, |op| kinds[op.index()] == OpKind::Read);
        for key in (0..self.history.key_count()).map(KeyId::at) {
            let mut writes = self.writes().of_key(key);
            for same in reads.of_key(key).chunk_by(|one, other| one.0 == other.0) {
                let word = same[0].0;
                let older = writes.iter().take_while(|(other, _)| *other < word).count();
                writes = &writes[older..];
                let count = writes.iter().take_while(|(other, _)| *other == word).count();
                let writes = &writes[..count];
                for (_, read) in same {
                    sources[read.index()] = Some(self.resolve(*read, writes));
                }
            }
        }
        for met in self.met.keys() {
            sources[met.index()] = Some(Source::Ambiguous);
        }
        sources
    }

    fn certainly_committed(&self) -> &[bool] {
        self.committed.get_or_init(|| self.settle_outcomes())
    }

    /// A transaction of unknown outcome that a committed one read from did commit.
    fn settle_outcomes(&self) -> Vec<bool> {
        let is_committed = |txn| self.history.outcome(txn) == Outcome::Committed;
        let mut committed: Vec<bool> = self.history.txns().map(is_committed).collect();
        if self.history.txns().all(|txn| self.history.outcome(txn) != Outcome::Unknown) {
            return committed;
        }
        let mut to_do: Vec<TxnId> = self.history.txns().filter(|txn| is_committed(*txn)).collect();
        let mut followed = vec![0; self.history.key_count()];
        while let Some(reader) = to_do.pop() {
            for read in self.history.txn_ops(reader) {
                for writer in self.certain_writers(read, &mut followed) {
                    let is_new = !committed[writer.index()];
                    if is_new && self.history.outcome(writer) == Outcome::Unknown {
                        committed[writer.index()] = true;
                        to_do.push(writer);
                    }
                }
            }
        }
        committed
    }

    /// The transactions that a read certainly read from: of a list, whoever appended an element; of a row
    /// that was met, the only one that may have written it.
    /// What lists have in common is followed only once.
    fn certain_writers(&self, read: OpId, followed: &mut [usize]) -> Vec<TxnId> {
        match self.history.op(read) {
            Op::ReadList { key, elements: Some(elements) } => {
                let pool = self.history.list_pool(key);
                let shared = pool.iter().zip(elements).take_while(|(a, b)| a == b).count();
                let followed = &mut followed[key.index()];
                let begin = shared.min(*followed);
                *followed = shared.max(*followed);
                let new = elements[begin..].iter();
                new.filter_map(|element| self.appender(key, *element)).collect()
            }
            _ => match (self.source(read), self.met.get(&read).map(Vec::as_slice)) {
                (_, Some([only])) if !only.is_init() => vec![*only],
                (Some(Source::Write(write)), _) => vec![self.txn(write)],
                _ => Vec::new(),
            },
        }
    }
}

/// Asking.
impl Facts<'_> {
    /// The transaction of an operation of the history.
    pub(crate) fn txn(&self, op: OpId) -> TxnId {
        self.own().txn_of[op.index()]
    }

    pub(crate) fn key(&self, op: OpId) -> KeyId {
        self.history.op_keys()[op.index()]
    }

    /// Refuses operations that do not exist.
    pub(crate) fn known_op(&self, op: OpId) -> Result<OpId, Refusal> {
        if op.index() < self.history.op_count() { Ok(op) } else { Err(Refusal::NoSuchOp(op)) }
    }

    /// Refuses transactions that do not exist; `init` does.
    pub(crate) fn known_txn(&self, txn: TxnId) -> Result<TxnId, Refusal> {
        let exists = txn.is_init() || txn.index() < self.history.txn_count();
        if exists { Ok(txn) } else { Err(Refusal::NoSuchTxn(txn)) }
    }

    /// Refuses transactions that did not certainly commit.
    pub(crate) fn committed(&self, txn: TxnId) -> Result<(), Refusal> {
        if self.known_txn(txn)?.is_init() || self.certainly_committed()[txn.index()] {
            Ok(())
        } else {
            Err(Refusal::NotCommitted(txn))
        }
    }

    /// Refuses transactions that did not certainly commit, as a level sees it: one that was read from
    /// need not have where dirty reads are allowed.
    pub(crate) fn committed_at(&self, level: Level, txn: TxnId) -> Result<(), Refusal> {
        let is_said = || self.history.outcome(txn) == Outcome::Committed;
        if !allows_dirty_reads(level) || self.known_txn(txn)?.is_init() || is_said() {
            return self.committed(txn);
        }
        Err(Refusal::NotCommitted(txn))
    }

    /// Refuses transactions that did not commit, whatever the unknown outcomes are. `init` is none
    /// of the history's.
    pub(crate) fn may_have_committed(&self, txn: TxnId) -> Result<(), Refusal> {
        if txn.is_init() || self.history.outcome(self.known_txn(txn)?) == Outcome::Aborted {
            return Err(Refusal::NotCommitted(txn));
        }
        Ok(())
    }

    /// Whether nobody knows if a transaction committed.
    pub(crate) fn is_uncertain(&self, txn: TxnId) -> bool {
        !txn.is_init()
            && self.history.outcome(txn) == Outcome::Unknown
            && !self.certainly_committed()[txn.index()]
    }

    /// The reads of registers.
    pub(crate) fn register_reads(&self) -> ByKey {
        let kinds = self.history.op_kinds();
        ByKey::new(self.history, |op| kinds[op.index()] == OpKind::Read)
    }

    /// Whether of two writers of a key the later one has to start after the commit of the earlier one,
    /// at levels where writers exclude each other.
    pub(crate) fn exclude(&self, key: KeyId, first: TxnId, second: TxnId) -> bool {
        self.incarnations.as_ref().is_none_or(|rows| rows.exclude(key, first, second))
    }

    /// Whether what comes after a transaction's version of a key is another row: it deletes the row, and rows
    /// may come back.
    pub(crate) fn ends_row(&self, key: KeyId, writer: TxnId) -> bool {
        self.incarnations.is_some() && deletes(self.history, writer, key)
    }

    /// Whether any operation is on a list.
    pub(crate) fn has_lists(&self) -> bool {
        use OpKind::{Append, ReadList};
        self.history.op_kinds().iter().any(|kind| matches!(kind, Append | ReadList))
    }

    pub(crate) fn is_write(&self, op: OpId) -> bool {
        is_write(self.history, op)
    }

    /// Whether the client got an answer to this read, or met something whatever it was.
    pub(crate) fn is_read(&self, op: OpId) -> bool {
        matches!(self.history.op_kinds()[op.index()], OpKind::Read | OpKind::ReadList)
            || self.is_met(op)
    }

    /// Whether nobody says what a read met.
    pub(crate) fn is_met(&self, op: OpId) -> bool {
        !self.met.is_empty() && self.met.contains_key(&op)
    }

    /// The reads of a transaction that got an answer.
    pub(crate) fn reads(&self, txn: TxnId) -> impl Iterator<Item = OpId> + '_ {
        self.history.txn_ops(txn).filter(|op| self.is_read(*op))
    }

    /// The last own write of a read's key before it.
    pub(crate) fn own_before(&self, read: OpId) -> Option<OpId> {
        self.own().before[read.index()]
    }

    /// The own write that replaced a write.
    pub(crate) fn next_own(&self, write: OpId) -> Option<OpId> {
        self.own().next[write.index()]
    }

    /// The keys a transaction writes, sorted. `init` writes all and has none here.
    pub(crate) fn written(&self, txn: TxnId) -> &[KeyId] {
        self.own().written(txn)
    }

    /// Whether a transaction writes a key.
    pub(crate) fn writes_key(&self, txn: TxnId, key: KeyId) -> bool {
        txn.is_init() || self.written(txn).binary_search(&key).is_ok()
    }

    /// Every write of what a read of a register returned, by anyone, in the order of their ids.
    pub(crate) fn candidates(&self, read: OpId) -> impl DoubleEndedIterator<Item = OpId> + '_ {
        let is_append = |op: &OpId| self.history.op_kinds()[op.index()] == OpKind::Append;
        self.writes_of(self.key(read), self.history.encoded_version(read))
            .filter(move |op| !is_append(op))
    }

    /// Whether a read of a register returned the last value that a writer wrote to its key, and not one that
    /// the writer replaced.
    pub(crate) fn is_of_version(&self, read: OpId, writer: TxnId) -> bool {
        let mut written = self.candidates(read);
        written.any(|write| self.txn(write) == writer && self.next_own(write).is_none())
    }

    /// Every append of an element, by anyone, in the order of their ids.
    pub(crate) fn appends(
        &self,
        key: KeyId,
        element: ValueId,
    ) -> impl DoubleEndedIterator<Item = OpId> + '_ {
        let is_append = |op: &OpId| self.history.op_kinds()[op.index()] == OpKind::Append;
        self.writes_of(key, element.to_bits()).filter(is_append)
    }

    /// The one transaction that appended an element.
    pub(crate) fn appender(&self, key: KeyId, element: ValueId) -> Option<TxnId> {
        let mut appends = self.appends(key, element).map(|op| self.txn(op));
        let first = appends.next()?;
        appends.all(|other| other == first).then_some(first)
    }

    /// Every write of a version, by anyone, in the order of their ids.
    fn writes_of(&self, key: KeyId, word: u64) -> impl DoubleEndedIterator<Item = OpId> + '_ {
        self.writes().of_version(key, word).iter().map(|(_, op)| *op)
    }

    /// Whether a read may have seen the initial version.
    pub(crate) fn may_be_initial(&self, read: OpId) -> bool {
        self.is_initial(read, || self.candidates(read).next().is_some())
    }

    fn is_initial(&self, read: OpId, is_written: impl FnOnce() -> bool) -> bool {
        let is_initial =
            || self.encoded_initial_version == Some(self.history.encoded_version(read));
        match self.history.initial() {
            Initial::Value(_) | Initial::Marked => is_initial(),
            Initial::UnlessWritten(_) => is_initial() && !is_written(),
            Initial::Unwritten => !is_written(),
            _ => false,
        }
    }

    /// Whether two reads of a key returned values that nobody wrote, and different ones: both may be
    /// initial where the format says so, but a key has only one initial value.
    pub(crate) fn see_two_initial_values(&self, one: OpId, other: OpId) -> bool {
        let is_read = |op: OpId| self.history.op_kinds()[op.index()] == OpKind::Read;
        let word = |op: OpId| self.history.encoded_version(op);
        let both = |holds: &dyn Fn(OpId) -> bool| holds(one) && holds(other);
        *self.history.initial() == Initial::Unwritten
            && both(&is_read)
            && both(&|op| self.may_be_initial(op))
            && self.key(one) == self.key(other)
            && word(one) != word(other)
    }

    /// Refuses transactions of which two saw different initial values of a key.
    pub(crate) fn agree_on_initial_values(&self, txns: &[TxnId]) -> Result<(), Refusal> {
        if *self.history.initial() != Initial::Unwritten {
            return Ok(());
        }
        let mut first_reads = vec![None; self.history.key_count()];
        for second in txns.iter().flat_map(|txn| self.reads(*txn)) {
            if self.source(second) != Some(Source::Init) {
                continue;
            }
            let first = *first_reads[self.key(second).index()].get_or_insert(second);
            if self.see_two_initial_values(first, second) {
                return Err(Refusal::Disagree { first, second });
            }
        }
        Ok(())
    }

    /// Where the answer of a read came from; none if it is not a read with an answer.
    pub(crate) fn source(&self, read: OpId) -> Option<Source> {
        self.sources()[read.index()]
    }

    /// Where the answer of a read of a register came from, with all writes of that version.
    fn resolve(&self, read: OpId, writes: &[(u64, OpId)]) -> Source {
        let word = self.history.encoded_version(read);
        if self.own_before(read).is_some_and(|own| self.history.encoded_version(own) == word) {
            return Source::Own;
        }
        let is_append = |op: &OpId| self.history.op_kinds()[op.index()] == OpKind::Append;
        let mut candidates = writes.iter().map(|(_, op)| *op).filter(|op| !is_append(op));
        let may_be_right = self.may_see_one(read, candidates.clone());
        let last = candidates.next_back();
        let initial = self.is_initial(read, || last.is_some());
        let Some(last) = last else {
            return if initial { Source::Init } else { Source::Nobody };
        };
        // Ids follow transactions, so if the first and the last are of one, all are. Of several
        // writes by one transaction, its last of the key is the right one to see.
        let of_one = candidates.next().is_none_or(|first| self.txn(first) == self.txn(last));
        if !initial && (of_one || !may_be_right) { Source::Write(last) } else { Source::Ambiguous }
    }

    /// Whether a read may have seen one of some writes and be right, as far as their outcomes tell:
    /// not the own ones, nor those of aborted transactions. Where it may not, it does not matter which
    /// one it saw.
    pub(crate) fn may_see_one(&self, read: OpId, writes: impl IntoIterator<Item = OpId>) -> bool {
        let reader = self.txn(read);
        writes
            .into_iter()
            .map(|write| self.txn(write))
            .any(|writer| writer != reader && self.history.outcome(writer) != Outcome::Aborted)
    }

    /// Whether none of the writes that a read may have seen is its own or an aborted transaction's.
    pub(crate) fn may_see_only_others(&self, read: OpId) -> bool {
        let reader = self.txn(read);
        let is_others = |write: OpId| {
            let writer = self.txn(write);
            writer != reader && self.history.outcome(writer) != Outcome::Aborted
        };
        match lists::last_of_others(self, read) {
            Some((key, element)) => self.appends(key, element).all(is_others),
            None => self.candidates(read).all(is_others),
        }
    }

    /// Everyone who may have written what a read returned; of a list, its last element by another
    /// transaction.
    pub(crate) fn possible_writers(&self, read: OpId) -> Vec<TxnId> {
        let is_list = self.history.op_kinds()[read.index()] == OpKind::ReadList;
        match lists::last_of_others(self, read) {
            Some((key, element)) => self.appends(key, element).map(|op| self.txn(op)).collect(),
            None if is_list => vec![TxnId::INIT],
            None => {
                let initial = self.may_be_initial(read).then_some(TxnId::INIT);
                self.candidates(read).map(|op| self.txn(op)).chain(initial).collect()
            }
        }
    }

    /// The other transaction that a read certainly read from, and its write unless it is `init`.
    pub(crate) fn external(&self, read: OpId) -> Result<Option<(TxnId, Option<OpId>)>, Refusal> {
        match self.source(read) {
            Some(Source::Init) => Ok(Some((TxnId::INIT, None))),
            Some(Source::Write(write)) if self.txn(write) != self.txn(read) => {
                Ok(Some((self.txn(write), Some(write))))
            }
            Some(Source::Ambiguous) => Err(Refusal::Ambiguous(read)),
            _ => Ok(None),
        }
    }

    /// Whether one transaction precedes another in their session. Nothing follows one of unknown
    /// outcome.
    pub(crate) fn in_session_order(&self, first: TxnId, second: TxnId) -> bool {
        self.options.session_order
            && !first.is_init()
            && !second.is_init()
            && first < second
            && self.history.session_of(first) == self.history.session_of(second)
            && self.history.outcome(first) == Outcome::Committed
    }

    /// Per transaction, the last one before it by session order; those before that one precede it
    /// in turn.
    pub(crate) fn session_predecessors(&self) -> Vec<Option<TxnId>> {
        let mut predecessors = vec![None; self.history.txn_count()];
        if !self.options.session_order {
            return predecessors;
        }
        for session in self.history.sessions() {
            let mut last = None;
            for txn in self.history.session_txns(session) {
                predecessors[txn.index()] = last;
                if self.history.outcome(txn) == Outcome::Committed {
                    last = Some(txn);
                }
            }
        }
        predecessors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolario_oracle::history;

    /// Whoever of two is written down first: one aborted, so that the read is right only if it saw the other.
    #[test]
    fn it_does_not_matter_which_of_two_writers_comes_first() {
        for text in
            ["a aborted: w x 1\n b: w x 1\n c: r x 1", "a: w x 1\n b aborted: w x 1\n c: r x 1"]
        {
            let history = history(text);
            let facts = Facts::new(&history, VerifyOptions::default(), &[]);
            assert_eq!(facts.source(OpId(2)), Some(Source::Ambiguous), "{text}");
        }
        let both_wrong = history("a aborted: w x 1\n b aborted: w x 1\n c: r x 1");
        let facts = Facts::new(&both_wrong, VerifyOptions::default(), &[]);
        assert_eq!(facts.source(OpId(2)), Some(Source::Write(OpId(1))));
    }
}
