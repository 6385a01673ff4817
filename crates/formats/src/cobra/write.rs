//! From a history to logs.

use std::io::Write;

use isolario_model::{History, OpId, OpInput, Outcome, SessionId, SinkError, TxnEnd, TxnId};

use super::record::{ReadRecord, Record, WriteRecord};
use super::versions::Versions;
use super::{Cobra, NAME};
use crate::Target;
use crate::collect::Layout;
use crate::express::{inexpressible, register_access, require_outcome, unsigned};
use crate::session_files::write_session_files;

impl Layout for Cobra {
    fn admit_op(op: &OpInput<'_>) -> Result<(), SinkError> {
        let access = register_access(NAME, op)?;
        unsigned(NAME, "the key", access.key)?;
        unsigned(NAME, "the value", access.value)?;
        Ok(())
    }

    fn admit_end(end: &TxnEnd<'_>) -> Result<(), SinkError> {
        require_outcome(NAME, end.outcome, &[Outcome::Committed, Outcome::Unknown])
    }

    fn write(history: &History, target: Target) -> Result<(), SinkError> {
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
            let access = register_access(NAME, input)?;
            let key = unsigned(NAME, "the key", access.key)?;
            let value = unsigned(NAME, "the value", access.value)?;
            if access.is_write {
                let write = self.versions.of_write(txn, op)?;
                return Ok(Record::Write(WriteRecord { write, key, value }));
            }
            let (writer, write) = self.versions.of_read(op)?;
            Ok(Record::Read(ReadRecord { writer, write, key, value }))
        })
    }
}
