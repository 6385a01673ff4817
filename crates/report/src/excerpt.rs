//! The smallest part of a history that still shows what is wrong with it.

use std::collections::BTreeMap;

use isolario_model::{AnomalyKind, History, LevelResult, Outcome, RunRecord, TxnId};

use crate::finding::{Finding, ReportFindings};
use crate::names::{Names, counted, grouped};
use crate::report::Report;
use crate::schedule::{Schedule, Step, What};
use crate::sentences::duration;
use crate::sql_script::Script;

/// The smallest part of a history that still shows what is wrong with it, as `isolario shrink` finds it.
/// Its transactions are called as they are in the whole.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Excerpt<'h> {
    /// The part.
    pub history: &'h History,
    /// A level that it violates.
    pub result: &'h LevelResult,
    /// By this.
    pub anomaly: AnomalyKind,
    /// Whether nothing more can go; otherwise, the time was up.
    pub is_minimal: bool,
    /// The part in the text language.
    pub text: &'h str,
}

impl<'h> Excerpt<'h> {
    /// A part of which nothing more can go.
    pub fn new(
        history: &'h History,
        result: &'h LevelResult,
        anomaly: AnomalyKind,
        text: &'h str,
    ) -> Excerpt<'h> {
        Excerpt { history, result, anomaly, is_minimal: true, text }
    }

    /// Sets whether nothing more can go.
    #[must_use]
    pub fn with_minimal(self, is_minimal: bool) -> Excerpt<'h> {
        Excerpt { is_minimal, ..self }
    }

    /// How much of the whole it is.
    pub(crate) fn size(&self, whole: &Report<'_>) -> String {
        let few = grouped(self.history.txn_count() as u64);
        let are = if self.history.txn_count() == 1 { "is" } else { "are" };
        let end = match self.is_minimal {
            true => "nothing more can be left out",
            false => "the time was up before it was certain that nothing more can be left out",
        };
        let all = counted(whole.size.transactions, "transaction");
        format!("{few} of {all} {are} enough to violate {}; {end}", self.result.level)
    }

    /// What it shows.
    pub(crate) fn finding(&self) -> Option<Finding<'h>> {
        let report = Report::new("", self.history, std::slice::from_ref(self.result));
        let ReportFindings { findings, .. } = report.found();
        let is_meant =
            |finding: &Finding<'_>| finding.anomalies().any(|anomaly| anomaly.kind == self.anomaly);
        let at = findings.iter().position(is_meant).unwrap_or(0);
        findings.into_iter().nth(at)
    }

    /// Whether a finding of the whole is what it shows.
    pub(crate) fn shows(&self, whole: &History, finding: &Finding<'_>) -> bool {
        let names = |history: &History, txns: &mut dyn Iterator<Item = TxnId>| {
            let mut names: Vec<String> = txns.map(|txn| history.txn_label(txn)).collect();
            names.sort_unstable();
            names
        };
        let involved = &mut finding.involved.iter().map(|part| part.txn);
        finding.anomalies().any(|anomaly| anomaly.kind == self.anomaly)
            && names(whole, involved) == names(self.history, &mut self.history.txns())
    }

    /// Its transactions in the whole, by the names that they have in both.
    pub(crate) fn in_whole(&self, whole: &History) -> BTreeMap<TxnId, TxnId> {
        let label = |txn| (self.history.txn_label(txn), txn);
        let here: BTreeMap<String, TxnId> = self.history.txns().map(label).collect();
        let both = whole.txns().filter_map(|txn| Some((*here.get(&whole.txn_label(txn))?, txn)));
        both.collect()
    }

    /// The sessions beside each other, if they fit.
    pub(crate) fn sessions(&self) -> Option<SessionTable<'h>> {
        // One transaction is told already.
        let schedule = Schedule::of(self.history).filter(|_| self.history.txn_count() > 1)?;
        Some(SessionTable { history: self.history, schedule })
    }

    /// The same as statements, where these are known.
    pub(crate) fn script(&self, run: Option<&RunRecord>) -> Option<Script> {
        Script::of(self.history, &Schedule::of(self.history)?, run)
    }
}

/// Sessions beside each other, time downwards.
pub(crate) struct SessionTable<'h> {
    history: &'h History,
    schedule: Schedule,
}

/// A row of the table: when, in which column, and what.
pub(crate) struct Row {
    pub(crate) when: String,
    pub(crate) column: usize,
    pub(crate) what: Cell,
}

pub(crate) enum Cell {
    /// What becomes of a transaction: it `begins`.
    Txn(TxnId, &'static str),
    /// An operation.
    Op(String),
}

impl SessionTable<'_> {
    /// What the order of the rows means.
    pub(crate) const NOTE: &'static str = "Within a transaction, the order is the recorded one. How the operations of concurrent \
         transactions interleaved was not recorded: here, a read comes after the commit of what it saw and \
         before the commit of what it missed, where that is possible.";

    /// What is in the columns.
    pub(crate) fn heads(&self) -> Vec<String> {
        let names = Names::new(self.history);
        let head = |session| format!("session {}", names.session_named(session));
        self.schedule.sessions.iter().map(|session| head(*session)).collect()
    }

    /// Whether it is known when anything was.
    pub(crate) fn has_times(&self) -> bool {
        self.schedule.steps.iter().any(|step| step.at.is_some())
    }

    /// The rows, from top to bottom.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let (names, first) = (Names::new(self.history), self.schedule.first());
        let row = |step: &Step| Row {
            when: step.at.map_or(String::new(), |at| duration(at.saturating_sub(first))),
            column: step.column,
            what: match step.what {
                What::Op(op) => Cell::Op(names.op(op)),
                What::Begin => Cell::Txn(step.txn, "begins"),
                What::End => Cell::Txn(step.txn, self.end(step.txn)),
            },
        };
        self.schedule.steps.iter().map(row).collect()
    }

    /// What a transaction of it is called.
    pub(crate) fn txn(&self, txn: TxnId) -> String {
        Names::new(self.history).txn(txn)
    }

    fn end(&self, txn: TxnId) -> &'static str {
        match self.history.outcome(txn) {
            Outcome::Committed => "commits",
            Outcome::Aborted => "aborts",
            Outcome::Unknown => "ends, nobody knows how",
        }
    }
}
