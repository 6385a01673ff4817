//! From a history to logs. Each operation gets a version: the named ones are kept, and values are
//! resolved to the writes they came from.

use std::io::Write;

use isolario_model::{
    History, KeyId, Op, OpId, OpInput, OpNotes, Outcome, SessionId, SinkError, TxnEnd, TxnId,
    ValueId, ValueRef, VersionRef,
};
use rustc_hash::FxHashMap;

use super::record::{ANY, INITIAL, ReadRecord, Record, WriteRecord, is_reserved};
use super::{Cobra, NAME};
use crate::OutputTarget;
use crate::by_value::sees_initial;
use crate::narrow::{
    Access, NarrowFormat, as_unsigned, inexpressible, numbers_or_positions, require_outcome,
    unsigned, unsigned_access,
};
use crate::session_files::write_session_files;

impl NarrowFormat for Cobra {
    fn admit_op(&self, op: &OpInput<'_>, _: &OpNotes<'_>) -> Result<(), SinkError> {
        unsigned_access(NAME, op).map(|_| ())
    }

    fn admit_end(&self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        require_outcome(NAME, end.outcome, &[Outcome::Committed, Outcome::Unknown])
    }

    fn write(&self, history: &History, target: OutputTarget) -> Result<(), SinkError> {
        let writer = LogWriter { history, versions: Versions::of(history)? };
        // Once through without writing, so that a history refused leaves no half of it behind.
        for session in history.sessions() {
            writer.write_session(session, &mut std::io::sink())?;
        }
        write_session_files(NAME, 'T', history, target, |session, out| {
            writer.write_session(session, out)
        })
    }
}

struct LogWriter<'h> {
    history: &'h History,
    versions: Versions<'h>,
}

impl LogWriter<'_> {
    fn write_session(&self, session: SessionId, out: &mut dyn Write) -> Result<(), SinkError> {
        let last = self.history.session_txns(session).next_back();
        for txn in self.history.session_txns(session) {
            let number = self.versions.txn(txn);
            Record::Start { txn: number }.write_to(out)?;
            for op in self.history.txn_ops(txn) {
                self.record(txn, op)?.write_to(out)?;
            }
            if self.history.outcome(txn) == Outcome::Committed {
                Record::Commit { txn: number }.write_to(out)?;
            } else if Some(txn) != last {
                // A log that ends without a commit says "unknown"; nothing can follow it.
                let what = "a transaction of unknown outcome before others of its session";
                return Err(inexpressible(NAME, what));
            }
        }
        Ok(())
    }

    fn record(&self, txn: TxnId, op: OpId) -> Result<Record, SinkError> {
        self.history.with_op_input(op, |input| {
            let Access { is_write, key, value } = unsigned_access(NAME, input)?;
            if is_write {
                let write = self.versions.of_write(txn, op)?;
                return Ok(Record::Write(WriteRecord { write, key, value }));
            }
            let (writer, write) = self.versions.of_read(op)?;
            Ok(Record::Read(ReadRecord { writer, write, key, value }))
        })
    }
}

/// The numbers that logs give to transactions and versions.
struct Versions<'h> {
    history: &'h History,
    /// The number of each transaction.
    txns: Vec<u64>,
    /// Where versions are identified by value: the write of each, or none if there are several.
    writes: FxHashMap<(KeyId, ValueId), Option<(TxnId, OpId)>>,
}

impl<'h> Versions<'h> {
    /// Numbers everything, or refuses a history whose named versions the logs cannot name.
    fn of(history: &'h History) -> Result<Self, SinkError> {
        let names = history.txns().map(|txn| history.txn_name(txn));
        let txns = numbers_or_positions(names, |number| !is_reserved(number), 1);
        let mut versions = Versions { history, txns, writes: FxHashMap::default() };
        if history.names_versions() {
            versions.require_one_naming()?;
        } else {
            versions.index_writes();
        }
        Ok(versions)
    }

    /// The number of a transaction.
    fn txn(&self, txn: TxnId) -> u64 {
        self.txns[txn.index()]
    }

    /// The number of a write in its transaction.
    fn of_write(&self, txn: TxnId, op: OpId) -> Result<u64, SinkError> {
        match self.history.op_version(op) {
            None if self.history.names_versions() => Err(nameless()),
            None => Ok(self.write_number(op)),
            Some(VersionRef::ByWriter { txn: writer, write }) if writer == self.txn(txn) => {
                Ok(write)
            }
            Some(VersionRef::ByWriter { txn: writer, .. }) => {
                let label = self.history.txn_label(txn);
                let what = format!("a write of transaction {label} under the number of {writer}");
                Err(inexpressible(NAME, what))
            }
            Some(VersionRef::ByWrite { write, value }) => {
                self.same_value(op, value).map(|()| write)
            }
            Some(VersionRef::Initial) => Err(inexpressible(NAME, "a write of the initial version")),
        }
    }

    /// The writer and the write that a read saw.
    fn of_read(&self, op: OpId) -> Result<(u64, u64), SinkError> {
        match self.history.op_version(op) {
            None if self.history.names_versions() => Err(nameless()),
            None => self.resolve(op),
            Some(VersionRef::Initial) => Ok((INITIAL, INITIAL)),
            Some(VersionRef::ByWriter { txn, write }) => Ok((txn, write)),
            Some(VersionRef::ByWrite { write, value }) => {
                self.same_value(op, value).map(|()| (ANY, write))
            }
        }
    }

    /// Writes are numbered over the whole history, from 1.
    fn write_number(&self, op: OpId) -> u64 {
        u64::from(op.0) + 1
    }

    fn index_writes(&mut self) {
        for txn in self.history.txns() {
            for op in self.history.txn_ops(txn) {
                if let Op::Write { key, value } = self.history.op(op) {
                    self.writes
                        .entry((key, value))
                        .and_modify(|write| *write = None)
                        .or_insert(Some((txn, op)));
                }
            }
        }
    }

    /// Finds the one thing that a read by value can have seen.
    fn resolve(&self, op: OpId) -> Result<(u64, u64), SinkError> {
        let Op::Read { key, value: Some(value) } = self.history.op(op) else {
            return Err(nameless());
        };
        let writes = self.writes.get(&(key, value));
        let (key, shown) = (self.history.key_name(key), self.history.value(value));
        let is_initial = sees_initial(self.history.initial(), shown, writes.is_some());
        match (writes, is_initial) {
            (None, true) => Ok((INITIAL, INITIAL)),
            (Some(Some((txn, write))), false) => Ok((self.txn(*txn), self.write_number(*write))),
            (None, false) => {
                let what =
                    format!("the read of {key} that returned {shown}, which no transaction wrote");
                Err(inexpressible(NAME, what))
            }
            (Some(_), _) => {
                let what = format!(
                    "the read of {key} that returned {shown}: \
                     it has several candidate writers, and a log names one"
                );
                Err(inexpressible(NAME, what))
            }
        }
    }

    /// The logs tell from the first read of "any transaction" how all versions are named.
    fn require_one_naming(&self) -> Result<(), SinkError> {
        let (mut by_writer, mut by_write) = (false, false);
        for op in (0..self.history.op_count()).map(OpId::at) {
            match self.history.op_version(op) {
                Some(VersionRef::ByWriter { txn, .. }) => {
                    by_writer = true;
                    if is_reserved(txn) {
                        let what = format!("transaction {txn}: the number is reserved");
                        return Err(inexpressible(NAME, what));
                    }
                }
                Some(VersionRef::ByWrite { .. }) => by_write = true,
                Some(VersionRef::Initial) | None => {}
            }
        }
        if by_writer && by_write {
            return Err(inexpressible(NAME, "versions that are named in two ways"));
        }
        Ok(())
    }

    /// A version named by write and value carries the value of its operation: the log has room
    /// for one.
    fn same_value(&self, op: OpId, value: u64) -> Result<(), SinkError> {
        let shown = match self.history.op(op) {
            Op::Read { value: Some(value), .. } | Op::Write { value, .. } => {
                self.history.value(value)
            }
            _ => ValueRef::Nil,
        };
        if as_unsigned(shown) == Some(value) {
            return Ok(());
        }
        unsigned(NAME, "the value", shown)?;
        Err(inexpressible(NAME, format!("the value {shown} in a version named by {value}")))
    }
}

fn nameless() -> SinkError {
    inexpressible(NAME, "operations with and without a named version in one history")
}
