//! Entries as lines of a log.

use std::io::Write;

use isolario_model::{Clock, History, Outcome, SinkError, TxnId, ValueRef};

use super::content::Contents;
use super::fitness::Workload;
use super::order::{self, Entry};
use super::values::Values;
use crate::jepsen::stream::LOGGER;

/// Writes a whole history.
pub(super) fn write(
    history: &History,
    out: &mut dyn Write,
    values: Values,
) -> Result<(), SinkError> {
    let contents = Contents::new(history, Workload::CasRegister, values);
    if history.txn_count() > 0 && contents.is_keyed() {
        return Err(contents.refuse("keys: it is about one register, which reads as :register"));
    }
    if history.has_times() && history.clock() == Clock::Nanoseconds {
        return Err(contents.refuse("times in nanoseconds, only the order of events"));
    }
    history.txns().try_for_each(|txn| check(&contents, txn))?;
    let mut value = String::new();
    for entry in order::entries(history) {
        let (Entry::Invocation(txn) | Entry::Completion(txn)) = entry;
        if entry == Entry::Completion(txn) && history.finish(txn).is_none() {
            continue;
        }
        value.clear();
        let function = contents.push(entry, &mut value)?;
        match (entry, history.error(txn)) {
            (Entry::Completion(_), Some(error)) => {
                value.push('\t');
                values.push_error(error, &mut value);
            }
            _ if contents.wants_error(entry) => value.push_str("\tnil"),
            _ => {}
        }
        let process = history.session_name(history.session_of(txn));
        let kind = contents.kind(entry);
        writeln!(out, "INFO  {LOGGER} - {process}\t:{kind}\t:{function}\t{value}")?;
    }
    Ok(())
}

/// Checks what lines cannot carry.
fn check(contents: &Contents<'_>, txn: TxnId) -> Result<(), SinkError> {
    let history = contents.history;
    if history.txn_ops(txn).len() != 1 {
        return Err(contents.refuse("transactions of several operations, or of none"));
    }
    if history.txn_name(txn).is_some() {
        return Err(contents.refuse("names of transactions"));
    }
    let session = history.session_name(history.session_of(txn));
    if !matches!(session, ValueRef::Int(0..) | ValueRef::Uint(_)) {
        return Err(contents.refuse(format!("a session named {session}")));
    }
    let (start, finish) = (history.start(txn), history.finish(txn));
    let unfinished = finish.is_none() && history.outcome(txn) == Outcome::Unknown;
    if start.is_none() || (finish.is_none() && !unfinished) {
        return Err(contents.refuse("transactions without a position in the order of events"));
    }
    if unfinished && history.error(txn).is_some() {
        return Err(contents.refuse("errors without a position in the order of events"));
    }
    let is_first = history.session_txns(history.session_of(txn)).next() == Some(txn);
    let before = if is_first { None } else { previous_moment(history, txn) };
    if before > start || finish.is_some_and(|finish| Some(finish) < start) {
        return Err(contents.refuse("times that run backwards within a session"));
    }
    Ok(())
}

/// The last moment of the transaction before this one in its session.
fn previous_moment(history: &History, txn: TxnId) -> Option<i64> {
    let before = TxnId::at(txn.index().checked_sub(1)?);
    history.finish(before).or(history.start(before))
}
