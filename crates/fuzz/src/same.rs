//! When two histories are the same, as far as a format promises.

use std::collections::BTreeSet;

use isolario_formats::HistoryFormat;
use isolario_model::{
    Batch, Clock, History, Meta, OpNotes, Outcome, SinkError, TxnEnd, TxnId, TxnSink, TxnStart,
    ValueRef,
};

use crate::files::without_lines;

/// Whether a history that was read, written and read again is still the same. Lines may differ
/// everywhere; Jepsen's formats also sort sessions and renumber events, Chronos gives numbers to
/// sessions and transactions that have other names, and Plume joins aborted transactions.
pub fn is_same(
    format: &dyn HistoryFormat,
    before: &History,
    after: &History,
) -> Result<bool, SinkError> {
    let comparable = match format.name() {
        "elle-edn" | "elle-json" | "jepsen-log" => of_events,
        "chronos" => without_names,
        "plume" => with_aborted_joined,
        _ => without_lines,
    };
    Ok(comparable(before)? == comparable(after)?)
}

/// The history with sessions in the order of their names, and with the places of moments among
/// all others for times that are only an order.
fn of_events(history: &History) -> Result<History, SinkError> {
    // A history without times has no clock to speak of.
    let clock = if history.has_times() { history.clock() } else { Clock::Nanoseconds };
    let times = history.txns().flat_map(|txn| [history.start(txn), history.finish(txn)]);
    let moments: BTreeSet<i64> = match clock {
        Clock::EventOrder => times.flatten().collect(),
        _ => BTreeSet::new(),
    };
    let place = |time: i64| match moments.len() {
        0 => time,
        _ => moments.range(..time).count() as i64,
    };
    let mut sessions: Vec<_> = history.sessions().collect();
    sessions.sort_by_key(|session| history.session_name(*session));
    let mut batch = Batch::new();
    batch.meta(&Meta { clock, ..history.meta().clone() })?;
    for session in sessions {
        for txn in history.session_txns(session) {
            let (session, id) = (history.session_name(session), history.txn_name(txn));
            let end = history.txn_end(txn);
            let (start, finish) = (end.start.map(place), end.finish.map(place));
            let end = TxnEnd { start, finish, ..end };
            send(history, txn, &TxnStart { session, id, line: None }, &end, &mut batch)?;
        }
    }
    batch.build()
}

/// The history with positions for the names of sessions, and no names of transactions.
fn without_names(history: &History) -> Result<History, SinkError> {
    let mut batch = Batch::new();
    batch.meta(history.meta())?;
    for txn in history.txns() {
        let session = ValueRef::Int(i64::from(history.session_of(txn).0));
        let start = TxnStart { session, id: None, line: None };
        send(history, txn, &start, &history.txn_end(txn), &mut batch)?;
    }
    batch.build()
}

/// The history with one transaction for aborted ones that follow one another in a session.
fn with_aborted_joined(history: &History) -> Result<History, SinkError> {
    let mut batch = Batch::new();
    batch.meta(history.meta())?;
    for session in history.sessions() {
        let mut before = None;
        let mut txns = history.session_txns(session).peekable();
        while let Some(txn) = txns.next() {
            let outcome = history.outcome(txn);
            let is_joined_to = |other: Option<Outcome>| {
                outcome == Outcome::Aborted && other == Some(Outcome::Aborted)
            };
            if !is_joined_to(before) {
                let (session, id) = (history.session_name(session), history.txn_name(txn));
                batch.begin(&TxnStart { session, id, line: None })?;
            }
            send_ops(history, txn, &mut batch)?;
            if !is_joined_to(txns.peek().map(|next| history.outcome(*next))) {
                batch.end(&history.txn_end(txn))?;
            }
            before = Some(outcome);
        }
    }
    batch.build()
}

/// A transaction with another beginning and another end.
fn send(
    history: &History,
    txn: TxnId,
    start: &TxnStart<'_>,
    end: &TxnEnd<'_>,
    batch: &mut Batch,
) -> Result<(), SinkError> {
    batch.begin(start)?;
    send_ops(history, txn, batch)?;
    batch.end(end)
}

fn send_ops(history: &History, txn: TxnId, batch: &mut Batch) -> Result<(), SinkError> {
    for op in history.txn_ops(txn) {
        let notes = OpNotes { version: history.op_version(op), sql: history.op_sql(op) };
        history.with_op_input(op, |op| batch.op_with(op, &notes))?;
    }
    Ok(())
}
