//! One transaction, key or session, for people.

use std::io;

use isolario_model::{Clock, History, KeyId, OpId, Outcome, SessionId, Stamp, TxnId};

use super::{Human, Palette};
use crate::names::{Names, counted, listed};
use crate::printable::printable;
use crate::show::{KeyVersions, Subject, VersionSources};
use crate::wrap::wrap;

/// More readers than this are counted.
const MOST_READERS: usize = 10;

impl Human {
    /// Writes what there is to show of a transaction, a key or a session.
    pub fn show(
        &self,
        history: &History,
        subject: Subject,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let page = Page {
            names: Names::new(history),
            versions: KeyVersions::of(history, subject),
            palette: Palette::of(self.style, self.width()),
        };
        match subject {
            Subject::Transaction(txn) => page.transaction(txn, out),
            Subject::Key(key) => page.key(key, out),
            Subject::Session(session) => page.session(session, out),
        }
    }
}

struct Page<'h> {
    names: Names<'h>,
    versions: KeyVersions<'h>,
    palette: Palette,
}

impl Page<'_> {
    fn transaction(&self, txn: TxnId, out: &mut dyn io::Write) -> io::Result<()> {
        let history = self.names.history();
        let name = self.names.txn(txn);
        let session = self.names.session(txn);
        let mut facts = vec![format!("session {session}")];
        facts.extend(history.line(txn).map(|line| format!("line {line}")));
        facts.push(outcome(history.outcome(txn)).to_owned());
        writeln!(out, "{}: {}", self.palette.heading(&name), facts.join(", "))?;
        for (label, text) in self.facts(txn) {
            let first = format!("  {label:<10}");
            writeln!(out, "{}", wrap(&text, self.palette.width, &first, &" ".repeat(first.len())))?;
        }
        writeln!(out)?;
        if history.txn_ops(txn).len() == 0 {
            writeln!(out, "  no operations")?;
        }
        history.txn_ops(txn).try_for_each(|op| self.operation(op, out))
    }

    /// What is known of a transaction beside its operations.
    fn facts(&self, txn: TxnId) -> Vec<(&'static str, String)> {
        let history = self.names.history();
        let mut facts = Vec::new();
        facts.extend(times(history, txn).map(|times| ("time", times)));
        let stamp = |stamp: Stamp| format!("{}.{}", stamp.physical, stamp.logical);
        facts.extend(history.db_start(txn).map(|at| ("db start", stamp(at))));
        facts.extend(history.db_commit(txn).map(|at| ("db commit", stamp(at))));
        facts.extend(history.snapshot(txn).map(|text| ("snapshot", printable(text).into_owned())));
        facts.extend(history.error(txn).map(|text| ("error", printable(text).into_owned())));
        let siblings: Vec<TxnId> = history.session_txns(history.session_of(txn)).collect();
        if let Some(at) = siblings.iter().position(|other| *other == txn) {
            let around = [("after", at.checked_sub(1)), ("before", at.checked_add(1))];
            for (label, other) in around {
                let other = other.and_then(|at| siblings.get(at));
                facts.extend(
                    other.map(|txn| (label, format!("{} in its session", self.names.txn(*txn)))),
                );
            }
        }
        facts
    }

    fn operation(&self, op: OpId, out: &mut dyn io::Write) -> io::Result<()> {
        let line = |text: &str, out: &mut dyn io::Write| {
            writeln!(out, "{}", wrap(text, self.palette.width, "      ", "      "))
        };
        writeln!(out, "{}", wrap(&self.names.op(op), self.palette.width, "  ", "    "))?;
        if let Some(sql) = self.names.history().op_sql(op) {
            line(&printable(sql), out)?;
        }
        if let Some(sources) = self.versions.sources(op) {
            line(&format!("read from {}", self.sources(&sources, Some(op))), out)?;
        }
        if let Some(readers) = self.versions.readers(op) {
            line(
                &format!(
                    "read by {}",
                    self.readers(&readers, Some(self.names.history().op_txn(op)))
                ),
                out,
            )?;
        }
        Ok(())
    }

    fn key(&self, key: KeyId, out: &mut dyn io::Write) -> io::Result<()> {
        let versions = self.versions.of_key(key);
        let name = format!("key {}", self.names.key(key));
        let size = counted(versions.len() as u64, "version");
        writeln!(out, "{}: {size}", self.palette.heading(&name))?;
        for version in versions {
            let title = wrap(&self.names.version(version.op), self.palette.width, "  ", "    ");
            writeln!(out, "\n{title}")?;
            let sources = &version.sources;
            let written = match (sources.is_empty(), sources.writes.is_empty()) {
                (true, _) => "nobody wrote it".to_owned(),
                (false, true) => "the initial state".to_owned(),
                (false, false) => format!("written by {}", self.sources(sources, None)),
            };
            let read = format!("read by {}", self.readers(&version.reads, None));
            for text in [written, read] {
                writeln!(out, "{}", wrap(&text, self.palette.width, "      ", "        "))?;
            }
        }
        Ok(())
    }

    fn session(&self, session: SessionId, out: &mut dyn io::Write) -> io::Result<()> {
        let history = self.names.history();
        let txns = history.session_txns(session);
        let name = format!("session {}", self.names.session_named(session));
        let size = counted(txns.len() as u64, "transaction");
        writeln!(out, "{}: {size}\n", self.palette.heading(&name))?;
        for txn in txns {
            let mut facts = vec![outcome(history.outcome(txn)).to_owned()];
            facts.extend(history.line(txn).map(|line| format!("line {line}")));
            facts.extend(times(history, txn));
            let name = self.names.txn(txn);
            writeln!(out, "  {}: {}", self.palette.heading(&name), facts.join(", "))?;
            let ops: Vec<String> = history.txn_ops(txn).map(|op| self.names.op(op)).collect();
            let ops = if ops.is_empty() { "no operations".to_owned() } else { ops.join(", ") };
            writeln!(out, "{}", wrap(&ops, self.palette.width, "      ", "      "))?;
        }
        Ok(())
    }

    fn sources(&self, sources: &VersionSources, read: Option<OpId>) -> String {
        let history = self.names.history();
        if sources.is_empty() {
            return "nobody: no transaction wrote it".to_owned();
        }
        let own = read.map(|read| history.op_txn(read));
        let mut from = Vec::new();
        if sources.initial {
            from.push("the initial state".to_owned());
        }
        for write in &sources.writes {
            let txn = history.op_txn(*write);
            from.push(match own == Some(txn) {
                true => "the transaction itself".to_owned(),
                false => self.place(txn),
            });
        }
        match (sources.is_ambiguous(), read) {
            (false, _) => listed(&from),
            (true, Some(_)) => {
                format!("one of these, which the history leaves open: {}", listed(&from))
            }
            (true, None) => format!("{}: reads of it are ambiguous", listed(&from)),
        }
    }

    fn readers(&self, reads: &[OpId], own: Option<TxnId>) -> String {
        let history = self.names.history();
        let mut txns: Vec<TxnId> = reads.iter().map(|read| history.op_txn(*read)).collect();
        txns.dedup();
        let reader = |txn: &TxnId| match own == Some(*txn) {
            true => "the transaction itself".to_owned(),
            false => self.place(*txn),
        };
        let mut by: Vec<String> = txns.iter().take(MOST_READERS).map(reader).collect();
        if txns.len() > MOST_READERS {
            by.push(format!("{} more", txns.len() - MOST_READERS));
        }
        if by.is_empty() { "nobody".to_owned() } else { listed(&by) }
    }

    /// A transaction, and where to find it.
    fn place(&self, txn: TxnId) -> String {
        let history = self.names.history();
        let line = history.line(txn).map_or(String::new(), |line| format!(", line {line}"));
        let end = match history.outcome(txn) {
            Outcome::Committed => "",
            Outcome::Aborted => ", aborted",
            Outcome::Unknown => ", outcome unknown",
        };
        format!("{} (session {}{line}{end})", self.names.txn(txn), self.names.session(txn))
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Committed => "committed",
        Outcome::Aborted => "aborted",
        Outcome::Unknown => "outcome unknown",
    }
}

/// From when to when, in the numbers of the history.
fn times(history: &History, txn: TxnId) -> Option<String> {
    let (start, finish) = (history.start(txn), history.finish(txn));
    let unit = match history.clock() {
        Clock::Nanoseconds => " ns",
        _ => "",
    };
    match (start, finish) {
        (None, None) => None,
        (Some(start), None) => Some(format!("from {start}{unit}, end unknown")),
        (None, Some(finish)) => Some(format!("until {finish}{unit}, start unknown")),
        (Some(start), Some(finish)) => Some(format!("from {start} to {finish}{unit}")),
    }
}
