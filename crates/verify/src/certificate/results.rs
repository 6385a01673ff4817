//! Whether a single operation is wrong whatever the order of transactions.

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, ExpectedVersion, KeyId, Level, Op, OpId, Outcome, RowRef,
    TxnId, Value, ValueRef,
};

use super::rows::{Certificate, over};
use super::{by_rows, refuse};
use crate::Refusal;

/// A row that an operation had to find.
struct Due<'h> {
    key: KeyId,
    value: ValueRef<'h>,
    word: Option<u64>,
}

/// What an operation had to find, and what it might have found besides: rows of incarnations that
/// were over.
struct Dues<'h> {
    due: Vec<Due<'h>>,
    maybe: Vec<Due<'h>>,
}

impl<'h> Certificate<'h> {
    fn dues(&self, txn: TxnId, op: OpId, level: Level) -> Dues<'h> {
        let own = self.written_before(txn, op);
        let mut dues = Dues { due: Vec::new(), maybe: Vec::new() };
        for key in self.keys() {
            let met = self.met(txn, op, key);
            let Some(version) = self.row(key).get(met).copied() else { continue };
            let is_match = self.matches(op, key, version.value);
            let of_other = Due { key, value: version.value, word: version.word };
            match own.get(&key) {
                None if is_match => dues.due.push(of_other),
                None => {}
                Some((_, value, word)) => {
                    if self.matches(op, key, *value) {
                        dues.due.push(Due { key, value: *value, word: Some(*word) });
                    }
                    let is_over = self.place(txn, key).is_some_and(|last| {
                        met < last && self.incarnation(key, met) != self.incarnation(key, last)
                    });
                    let may_be_shown = is_over && self.history.may_see_former_row(op, key);
                    if is_match && may_be_shown && !by_rows(level) {
                        dues.maybe.push(of_other);
                    }
                }
            }
        }
        dues
    }

    /// Whether the result of an operation is what it had to be.
    pub(super) fn fits(&self, txn: TxnId, op: OpId, level: Level) -> bool {
        let Dues { due, maybe } = self.dues(txn, op, level);
        let history = self.history;
        let words = matches!(history.op(op), Op::PredicateRead { .. });
        let mut seen: Vec<(KeyId, Option<u64>)> = match history.op(op) {
            Op::PredicateRead { rows: Some(rows), .. }
            | Op::PredicateWrite { rows: Some(rows), .. } => rows
                .iter()
                .map(|row| (row.key, words.then(|| history.encoded_row_version(row))))
                .collect(),
            Op::Aggregate { .. } => {
                return [&[][..], &maybe].iter().any(|more| {
                    let all = due.iter().chain(*more);
                    self.is_over(op, &all.collect::<Vec<_>>())
                });
            }
            _ => return true,
        };
        for due in &due {
            let is_it = |(key, word): &(KeyId, Option<u64>)| {
                *key == due.key && (!words || *word == due.word)
            };
            match seen.iter().position(is_it) {
                Some(at) => seen.swap_remove(at),
                None => return false,
            };
        }
        for old in &maybe {
            let is_it = |(key, word): &(KeyId, Option<u64>)| {
                *key == old.key && (!words || *word == old.word)
            };
            if let Some(at) = seen.iter().position(is_it) {
                seen.swap_remove(at);
            }
        }
        seen.is_empty()
    }

    /// The rows of former incarnations without which a function over rows does not give its result.
    pub(super) fn formers_taken_over(&self, txn: TxnId, op: OpId) -> Vec<KeyId> {
        let Dues { due, maybe } = self.dues(txn, op, Level::ReadUncommitted);
        let (some, all): (Vec<_>, Vec<_>) =
            (due.iter().collect(), due.iter().chain(&maybe).collect());
        match !self.is_over(op, &some) && self.is_over(op, &all) {
            true => maybe.iter().map(|former| former.key).collect(),
            false => Vec::new(),
        }
    }

    fn row_of(&self, due: &Due<'h>) -> RowRef<'h> {
        RowRef { key: self.history.key_name(due.key), value: due.value }
    }

    /// Whether an aggregate is taken over these rows.
    fn is_over(&self, op: OpId, rows: &[&Due<'h>]) -> bool {
        let Op::Aggregate { function, result: Some(result), .. } = self.history.op(op) else {
            return true;
        };
        let rows: Vec<RowRef<'_>> = rows.iter().map(|due| self.row_of(due)).collect();
        let dialect = isolario_predicate::Dialect::Postgres;
        let seen = self.history.value(result).operand();
        let value = function.over(rows.iter().copied(), dialect).ok();
        value.zip(seen).is_some_and(|(value, seen)| value.is(seen, dialect) == Ok(true))
    }

    /// Refuses a result that is said not to fit what was met, and does.
    pub(super) fn is_mismatch(
        &self,
        level: Level,
        op: OpId,
        expected: &[ExpectedVersion],
        result: Option<&Value>,
    ) -> Result<(), Refusal> {
        let kind = AnomalyKind::ResultMismatch;
        let txn = self.reader(op)?;
        if self.is_unstated(op) {
            return refuse(kind, "nothing states which versions it matched");
        }
        if self.fits(txn, op, level) {
            return refuse(kind, "the result is what the versions give");
        }
        let own = self.written_before(txn, op);
        let is_met = |version: &ExpectedVersion| match own.get(&version.key) {
            Some((write, ..)) => version.write == Some(*write),
            None => {
                let met = self.row(version.key).get(self.met(txn, op, version.key));
                met.is_some_and(|met| met.write == version.write)
            }
        };
        if !expected.iter().all(is_met) {
            return refuse(kind, "another version was matched");
        }
        let Dues { due, .. } = self.dues(txn, op, level);
        let due_value = match self.history.op(op) {
            Op::Aggregate { function, .. } => {
                over(function, &due.iter().map(|due| self.row_of(due)).collect::<Vec<_>>())
            }
            _ => None,
        };
        match result == due_value.as_ref() && (result.is_some() || !expected.is_empty()) {
            true => Ok(()),
            false => refuse(kind, "something else had to be returned"),
        }
    }

    /// The transaction of an operation by predicate with a result, if it takes part.
    pub(super) fn reader(&self, op: OpId) -> Result<TxnId, Refusal> {
        if op.index() >= self.history.op_count() {
            return Err(Refusal::NoSuchOp(op));
        }
        let txn = self.history.op_txn(op);
        if !self.is_kept(txn) {
            return Err(Refusal::NotCommitted(txn));
        }
        Ok(txn)
    }

    /// Refuses a read that is said to be wrong by itself, and is not, or in another way.
    pub(super) fn is_bad_read(&self, level: Level, anomaly: &Anomaly) -> Result<(), Refusal> {
        let kind = anomaly.kind;
        let (key, read, saw, instead) = match anomaly.evidence {
            Evidence::Read { read, saw, instead } => {
                self.reader(read)?;
                (self.history.op(read).key(), read, saw, instead)
            }
            Evidence::Row { key, read, saw, instead } => (Some(key), read, saw, instead),
            _ => return Err(Refusal::Unsupported("evidence of this kind")),
        };
        let reader = self.reader(read)?;
        for op in [saw, instead].into_iter().flatten() {
            if op.index() >= self.history.op_count() {
                return Err(Refusal::NoSuchOp(op));
            }
        }
        let Some(key) = key else { return refuse(kind, "it is no read of a row") };
        if let Some(saw) = saw
            && self.named(read, key) == Some(self.history.op_txn(saw))
            && self.is_wrong_member(kind, reader, read, key, saw)
        {
            return Ok(());
        }
        let mut shown: Vec<u64> = match self.history.op(read) {
            Op::Read { value: Some(_), .. } => vec![self.history.encoded_version(read)],
            Op::PredicateRead { rows: Some(rows), .. } => rows
                .iter()
                .filter(|row| row.key == key)
                .map(|row| self.history.encoded_row_version(row))
                .collect(),
            _ => Vec::new(),
        };
        shown.retain(|word| self.is_wrong(level, kind, reader, read, key, *word, [saw, instead]));
        match shown.is_empty() {
            true => refuse(kind, "no row is wrong in this way"),
            false => Ok(()),
        }
    }

    /// Whether a set names a version that nobody can have met.
    fn is_wrong_member(
        &self,
        kind: AnomalyKind,
        reader: TxnId,
        read: OpId,
        key: KeyId,
        saw: OpId,
    ) -> bool {
        let writer = self.history.op_txn(saw);
        let wrote = self.written(saw, key).is_some();
        // Of a row that it wrote itself, an operation met what it left there, whatever the set says.
        let is_own = self.written_before(reader, read).contains_key(&key);
        let is_wrong = match kind {
            AnomalyKind::AbortedRead => self.history.outcome(writer) == Outcome::Aborted,
            AnomalyKind::FutureRead => writer == reader,
            _ => false,
        };
        wrote && !is_own && is_wrong
    }

    /// What an operation wrote of a row.
    fn written(&self, op: OpId, row: KeyId) -> Option<u64> {
        match self.history.op(op) {
            Op::Write { key, .. } | Op::Delete { key } if key == row => {
                Some(self.history.encoded_version(op))
            }
            Op::PredicateWrite { rows: Some(rows), .. } => rows
                .iter()
                .rfind(|written| written.key == row)
                .map(|written| self.history.encoded_row_version(written)),
            _ => None,
        }
    }

    /// Whether what a read shows is wrong in this way.
    #[expect(clippy::too_many_arguments, reason = "a claim about a read has as many parts")]
    fn is_wrong(
        &self,
        level: Level,
        kind: AnomalyKind,
        reader: TxnId,
        read: OpId,
        key: KeyId,
        word: u64,
        [saw, instead]: [Option<OpId>; 2],
    ) -> bool {
        let own = self.written_before(reader, read).get(&key).copied();
        let is_right = match own {
            Some((_, _, written)) => written == word || self.is_old(level, reader, read, key, word),
            None => self.explains(reader, key, word),
        };
        let shows = |op: OpId| self.written(op, key) == Some(word);
        let writer = saw.map(|op| self.history.op_txn(op));
        let names = match kind {
            AnomalyKind::ThinAirRead => saw.is_none(),
            AnomalyKind::AbortedRead => {
                writer.is_some_and(|txn| self.history.outcome(txn) == Outcome::Aborted)
            }
            AnomalyKind::FutureRead => writer == Some(reader) && saw.is_some_and(|saw| saw > read),
            AnomalyKind::NotMyOwnWrite => {
                own.is_some() && instead == own.map(|own| own.0) && writer != Some(reader)
            }
            AnomalyKind::NotMyLastWrite => {
                own.is_some() && instead == own.map(|own| own.0) && writer == Some(reader)
            }
            AnomalyKind::IntermediateRead => writer.is_some_and(|txn| {
                let last = self.place(txn, key).map(|place| self.row(key)[place].write);
                txn != reader && last.is_some_and(|last| last != saw)
            }),
            _ => false,
        };
        !is_right && names && saw.is_none_or(shows)
    }

    /// Whether some version of another transaction, or the initial one, shows this.
    pub(super) fn explains(&self, reader: TxnId, key: KeyId, word: u64) -> bool {
        self.row(key).iter().any(|v| v.word == Some(word) && v.writer != reader)
    }

    /// Whether a row is one that an operation may have met of an incarnation that was over.
    fn is_old(&self, level: Level, reader: TxnId, read: OpId, key: KeyId, word: u64) -> bool {
        let shows = |met: &usize| self.row(key)[*met].word == Some(word);
        let mut shown = (0..self.row(key).len()).filter(shows);
        if by_rows(level) {
            return false;
        }
        match self.is_asked(read) && !self.is_unstated(read) {
            true => shown.any(|met| {
                met == self.met(reader, read, key) && self.is_former(reader, read, key, met)
            }),
            false => shown.any(|met| self.is_former(reader, read, key, met)),
        }
    }

    /// Whether a version is of a row that a transaction may see by an operation beside its own one of the
    /// same key: of an incarnation that was over. A read by key shows it only once the own one is gone.
    pub(super) fn is_former(&self, txn: TxnId, op: OpId, key: KeyId, place: usize) -> bool {
        let is_gone = || {
            let own = self.written_before(txn, op);
            own.get(&key).is_some_and(|(_, value, _)| *value == ValueRef::Nil)
        };
        let is_over = self.place(txn, key).is_some_and(|last| {
            place < last && self.incarnation(key, place) != self.incarnation(key, last)
        });
        is_over && self.history.may_see_former_row(op, key) && (self.is_asked(op) || is_gone())
    }
}
