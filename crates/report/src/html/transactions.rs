//! Who took part in an anomaly: where, when, with which operations, and how it ended.

use std::io::{self, Write};

use isolario_model::{History, OpId, Outcome, TxnId};

use super::facts::facts;
use crate::involved::InvolvedTxn;
use crate::marks::Linked;
use crate::names::{Names, counted};
use crate::printable::printable;
use crate::sentences::{TxnTimes, began, in_time};
use crate::xml::Escaped;

/// How many rows and steps stand in the open; the others are folded.
pub(super) const MOST_OPEN: usize = 20;

/// The table. `names` are marked.
pub(super) fn write(
    names: Names<'_>,
    involved: &[InvolvedTxn],
    out: &mut dyn Write,
) -> io::Result<()> {
    let (open, folded) = involved.split_at(involved.len().min(MOST_OPEN));
    let first = began(names.history());
    table(names, "Transactions", open, first, out)?;
    if !folded.is_empty() {
        let count = counted(folded.len() as u64, "more transaction");
        writeln!(out, "<details><summary>{count}</summary>")?;
        table(names, "More transactions", folded, first, out)?;
        writeln!(out, "</details>")?;
    }
    let txns: Vec<TxnId> = involved.iter().map(|part| part.txn).collect();
    let relations = in_time(names, &txns);
    if !relations.is_empty() {
        let one = |sentence: &String| format!("<li>{}</li>", Linked(sentence));
        let list: String = relations.iter().map(one).collect();
        writeln!(out, "<ul class=\"in-time\">{list}</ul>")?;
    }
    Ok(())
}

fn table(
    names: Names<'_>,
    caption: &str,
    involved: &[InvolvedTxn],
    first: i64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let history = names.history();
    let when = if history.has_times() { "<th scope=\"col\">When</th>" } else { "" };
    writeln!(
        out,
        "<table class=\"transactions\">\n<caption>{caption}</caption>\n<tr><th scope=\"col\">\
         Transaction</th><th scope=\"col\">Session</th>{when}<th scope=\"col\">Operations that matter\
         </th></tr>"
    )?;
    involved.iter().try_for_each(|part| row(names, part, first, out))?;
    writeln!(out, "</table>")
}

fn row(names: Names<'_>, part: &InvolvedTxn, first: i64, out: &mut dyn Write) -> io::Result<()> {
    let (history, txn) = (names.history(), part.txn);
    let line = history.line(txn).map_or(String::new(), |line| format!(", line {line}"));
    let outcome = match history.outcome(txn) {
        Outcome::Committed => "",
        Outcome::Aborted => ", aborted",
        Outcome::Unknown => ", outcome unknown",
    };
    writeln!(
        out,
        "<tr data-t=\"{}\"><th scope=\"row\">{}</th><td>{}{line}{outcome}</td>{}<td>{}{}</td></tr>",
        txn.0,
        Linked(&names.txn(txn)),
        Linked(&names.session(txn)),
        interval(history, txn, first),
        operations(names, part),
        known(history, txn)
    )
}

/// From when to when, counted from the beginning of the history.
fn interval(history: &History, txn: TxnId, first: i64) -> String {
    let words = TxnTimes::of(history, txn, first).describe();
    match history.has_times() {
        true => format!("<td class=\"when\">{}</td>", words.unwrap_or_default()),
        false => String::new(),
    }
}

fn operations(names: Names<'_>, part: &InvolvedTxn) -> String {
    let one = |op: &OpId| {
        let sql = names.history().op_sql(*op).map_or(String::new(), |sql| {
            format!("<code class=\"sql\"><bdi>{}</bdi></code>", Escaped(&printable(sql)))
        });
        format!("<code>{}</code>{sql}", Linked(&names.op(*op)))
    };
    let mut shown: Vec<String> = part.ops.iter().map(one).collect();
    if part.omitted > 0 {
        let more = if shown.is_empty() { "operation" } else { "more operation" };
        shown.push(format!("<span class=\"aka\">{}</span>", counted(part.omitted as u64, more)));
    }
    shown.join(" ")
}

/// Errors and what the database says.
fn known(history: &History, txn: TxnId) -> String {
    let one = |(name, fact): (&str, String)| {
        format!("<div class=\"fact\">{name}: <bdi>{}</bdi></div>", Escaped(&fact))
    };
    facts(history, txn).into_iter().map(one).collect()
}
