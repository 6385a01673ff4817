//! From logs to a history.

use isolario_model::{
    Batch, Initial, Meta, Op, OpNotes, Outcome, SinkError, TxnEnd, TxnSink, TxnStart, ValueRef,
};
use rustc_hash::FxHashSet;

use super::is_log;
use super::naming::{Naming, ReadKinds};
use super::record::{Record, is_reserved, records};
use crate::error::{Fault, Position, ReadError};
use crate::session_files::{SessionFile, ignored_if_any, session_files};
use crate::{ParsedHistory, Source, Warning};

/// Reads a directory of logs.
pub(super) fn read(source: &Source) -> Result<ParsedHistory, ReadError> {
    let (logs, others) = session_files(source, 'T', is_log)?;
    let mut kinds = ReadKinds::default();
    for log in &logs {
        kinds.look_through(log.bytes).map_err(|fault| log.binary_error(source, fault))?;
    }
    let whole = |error: SinkError| source.error(Position::Whole, error);
    let mut reader = LogReader {
        naming: Naming::choose(kinds, logs.iter().map(|log| log.bytes)),
        batch: Batch::new(),
        txns: FxHashSet::default(),
        warnings: Vec::new(),
        empty_logs: 0,
    };
    let meta = Meta { initial: Initial::Marked, ..Meta::default() };
    reader.batch.meta(&meta).map_err(whole)?;
    for log in &logs {
        reader.read_log(log).map_err(|fault| log.binary_error(source, fault))?;
        source.meter().add(log.bytes.len());
    }
    let mut loaded = ParsedHistory::new(reader.batch.build().map_err(whole)?);
    loaded.warnings = reader.warnings;
    loaded.ignored.extend(ignored_if_any("files that are not T*.log", others));
    loaded.ignored.extend(ignored_if_any("logs without transactions", reader.empty_logs));
    Ok(loaded)
}

struct LogReader {
    naming: Naming,
    batch: Batch,
    /// Reads name transactions by number, so a number is used once in all logs.
    txns: FxHashSet<u64>,
    warnings: Vec<Warning>,
    empty_logs: u64,
}

impl LogReader {
    fn read_log(&mut self, log: &SessionFile<'_>) -> Result<(), Fault> {
        let mut open = None;
        for record in records(log.bytes) {
            let (at, record) = record?;
            open = self.take(log, open, at, record)?;
        }
        if let Some((txn, at)) = open {
            self.end(Outcome::Unknown, at)?;
            let message = format!(
                "{} ends inside transaction {txn}: its outcome is taken as unknown",
                log.name
            );
            self.warnings.push(Warning { message, position: Position::Byte(at as u64) });
        }
        self.empty_logs += u64::from(log.bytes.is_empty());
        Ok(())
    }

    /// Takes a record while `open` is the transaction it stands in, and says which one is open
    /// after it.
    fn take(
        &mut self,
        log: &SessionFile<'_>,
        open: Option<(u64, usize)>,
        at: usize,
        record: Record,
    ) -> Result<Option<(u64, usize)>, Fault> {
        match (open, record) {
            (None, Record::Start { txn }) => {
                self.begin(log, txn, at)?;
                return Ok(Some((txn, at)));
            }
            (Some(_), Record::Read(read)) => {
                let version = self.naming.of_read(at, &read)?;
                let value = Some(read.value.into());
                let op = Op::Read { key: read.key.into(), value };
                self.batch.op_with(&op, &OpNotes { version: Some(version), sql: None })
            }
            (Some((txn, _)), Record::Write(write)) => {
                let version = Some(self.naming.of_write(txn, &write));
                let op = Op::Write { key: write.key.into(), value: write.value.into() };
                self.batch.op_with(&op, &OpNotes { version, sql: None })
            }
            (Some((txn, _)), Record::Commit { txn: committed }) if committed == txn => {
                self.end(Outcome::Committed, at)?;
                return Ok(None);
            }
            (Some((txn, _)), other) => {
                let expected = format!("R, W, or C, the commit of transaction {txn}");
                return Err(Fault::malformed(at, expected, other.describe()));
            }
            (None, other) => {
                let expected = "S, the start of a transaction";
                return Err(Fault::malformed(at, expected, other.describe()));
            }
        }
        .map_err(Fault::refused(at))?;
        Ok(open)
    }

    fn begin(&mut self, log: &SessionFile<'_>, txn: u64, at: usize) -> Result<(), Fault> {
        if is_reserved(txn) {
            let found = format!("0x{txn:x}, which does not name a transaction in reads");
            return Err(Fault::malformed(at, "the number of a transaction", found));
        }
        if !self.txns.insert(txn) {
            let found = format!("transaction {txn} again");
            return Err(Fault::malformed(at, "a transaction not seen before", found));
        }
        let id = Some(ValueRef::from(txn));
        let start = TxnStart { session: log.session.as_ref(), id, line: None };
        self.batch.begin(&start).map_err(Fault::refused(at))
    }

    fn end(&mut self, outcome: Outcome, at: usize) -> Result<(), Fault> {
        self.batch.end(&TxnEnd::new(outcome)).map_err(Fault::refused(at))
    }
}
