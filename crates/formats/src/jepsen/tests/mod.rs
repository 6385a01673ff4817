//! Tests of the three Jepsen formats.

mod reading;
mod robustness;
mod round_trips;

use isolario_model::{History, Op, OpInput, SinkError, TxnId, ValueRef};

use super::{ElleEdn, ElleJson, JepsenLog};
use crate::{HistoryFormat, ParsedHistory, Source, test_support};

fn load(format: &dyn HistoryFormat, text: &str) -> ParsedHistory {
    let source = Source::from_bytes("h", text.as_bytes().to_vec()).unwrap();
    format.read(&source).unwrap_or_else(|error| panic!("{error}"))
}

fn edn(text: &str) -> History {
    load(&ElleEdn, text).history
}

fn refusal(format: &dyn HistoryFormat, text: &str) -> String {
    let source = Source::from_bytes("h", text.as_bytes().to_vec()).unwrap();
    format.read(&source).unwrap_err().to_string()
}

/// A transaction in one line: session, name, outcome, times, operations.
fn line(history: &History, txn: TxnId) -> String {
    let name = history.txn_name(txn).map_or("-".to_owned(), |name| name.to_string());
    let session = history.session_name(history.session_of(txn));
    let end = history.txn_end(txn);
    let time = |t: Option<i64>| t.map_or("?".to_owned(), |t| t.to_string());
    let (start, finish) = (time(end.start), time(end.finish));
    let mut line = format!("{session}/{name} {:?} {start}..{finish}", end.outcome);
    for op in history.txn_ops(txn) {
        line += &history.with_op_input(op, |op| format!(" {}", short(op)));
    }
    if let Some(error) = end.error {
        line += &format!(" !{error}");
    }
    line
}

fn short(op: &OpInput<'_>) -> String {
    let shown = |v: &ValueRef<'_>| v.to_string();
    let maybe = |v: Option<String>| v.unwrap_or("?".to_owned());
    match op {
        Op::Read { key, value } => format!("r({key},{})", maybe(value.as_ref().map(shown))),
        Op::Write { key, value } => format!("w({key},{value})"),
        Op::Append { key, element } => format!("a({key},{element})"),
        Op::ReadList { key, elements } => {
            let list = elements.map(|e| e.iter().map(shown).collect::<Vec<_>>().join(" "));
            format!("r({key},{})", maybe(list.map(|l| format!("[{l}]"))))
        }
        Op::CompareAndSet { key, expected, new, applied, .. } => {
            format!("cas({key},{expected},{new},{applied:?})")
        }
        other => format!("{other:?}"),
    }
}

fn lines(history: &History) -> Vec<String> {
    history.txns().map(|txn| line(history, txn)).collect()
}

fn written(format: &dyn HistoryFormat, history: &History) -> Result<String, SinkError> {
    let [(_, bytes)] = &test_support::written(format, history)?[..] else { unreachable!() };
    Ok(String::from_utf8(bytes.clone()).unwrap())
}
