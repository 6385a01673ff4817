//! Jepsen histories: `elle-edn`, `elle-json` and `jepsen-log`.
//!
//! The three differ in how an entry is written ([`edn`], [`json`], [`log`]). What the entries
//! mean is the same: [`survey`] walks a file once for what only the whole of it can tell,
//! [`pairing`] walks it again, joins invocations and completions and builds transactions.

mod edn;
mod emit;
mod event;
mod form;
mod json;
mod log;
mod pairing;
mod quoted;
mod request;
mod stream;
mod survey;
mod write;

#[cfg(test)]
mod tests;

use isolario_model::SinkError;

use crate::{
    HistoryFormat, HistoryWriter, Ignored, Loaded, Position, Problem, ReadError, Source, Target,
};
use event::Event;
use form::{Fault, Form};
use pairing::Stop;
use stream::{Events, Syntax};
use survey::Survey;

/// Jepsen histories in EDN, as Elle takes them.
pub(crate) struct ElleEdn;

/// Jepsen histories in JSON.
pub(crate) struct ElleJson;

/// The text logs of Jepsen's register tests.
pub(crate) struct JepsenLog;

impl HistoryFormat for ElleEdn {
    fn name(&self) -> &'static str {
        "elle-edn"
    }

    fn about(&self) -> &'static str {
        "Jepsen histories in EDN: rw-register, list-append, cas-register"
    }

    fn sniff(&self, source: &Source) -> bool {
        first_entry(source, Syntax::Edn).is_some()
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        read(source, Syntax::Edn)
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        write::maps(target, self.name(), form::Notation::Edn)
    }
}

impl HistoryFormat for ElleJson {
    fn name(&self) -> &'static str {
        "elle-json"
    }

    fn about(&self) -> &'static str {
        "Jepsen histories in JSON: rw-register, list-append, cas-register"
    }

    fn sniff(&self, source: &Source) -> bool {
        first_entry(source, Syntax::Json).is_some()
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        read(source, Syntax::Json)
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        write::maps(target, self.name(), form::Notation::Json)
    }
}

impl HistoryFormat for JepsenLog {
    fn name(&self) -> &'static str {
        "jepsen-log"
    }

    fn about(&self) -> &'static str {
        "text logs of Jepsen's tests of one register"
    }

    fn sniff(&self, source: &Source) -> bool {
        first_entry(source, Syntax::Log).is_some()
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        read(source, Syntax::Log)
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        write::log(target, self.name())
    }
}

/// How much of a file a sniffer looks at.
const SNIFFED: usize = 1 << 16;

/// The first entry, if the source begins with one.
fn first_entry(source: &Source, syntax: Syntax) -> Option<Event> {
    let bytes = source.file()?;
    let beginning = &bytes[..bytes.len().min(SNIFFED)];
    let valid = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&beginning[..error.valid_up_to()]).ok()?,
    };
    Events::new(valid, syntax).next(&mut Form::new(syntax.notation())).ok()?
}

fn read(source: &Source, syntax: Syntax) -> Result<Loaded, ReadError> {
    let bytes = source.require_file()?;
    let fault = |fault: Fault| {
        let Fault { at, expected, found } = fault;
        source.error(position(bytes, at), Problem::malformed(expected, found))
    };
    let input = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        fault(Fault::new(at, "UTF-8 text", format!("byte 0x{:02x}", bytes[at])))
    })?;
    let survey = Survey::of(input, syntax).map_err(fault)?;
    let (batch, warnings) = pairing::read(input, syntax, &survey).map_err(|stop| match stop {
        Stop::Fault(stopped) => fault(stopped),
        Stop::Sink(error) => source.error(Position::Whole, error),
    })?;
    let history = batch.build().map_err(|error| source.error(Position::Whole, error))?;
    let mut ignored = survey.into_ignored();
    if syntax == Syntax::Log {
        let (count, first) = log::other_lines(input);
        if count > 0 {
            let first = Position::Line(first);
            ignored.push(Ignored { what: "log lines about other things", count, first });
        }
    }
    Ok(Loaded { history, ignored, warnings })
}

/// The line and column of a byte.
fn position(bytes: &[u8], at: usize) -> Position {
    let before = &bytes[..at.min(bytes.len())];
    let line = memchr::memchr_iter(b'\n', before).count() as u64 + 1;
    let begin = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    Position::Column(line, (before.len() - begin) as u64 + 1)
}
