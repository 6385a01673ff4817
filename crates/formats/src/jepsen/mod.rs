//! Jepsen histories: `elle-edn`, `elle-json` and `jepsen-log`.
//!
//! The three differ in how an entry is written ([`stream`]). What the entries mean is the same:
//! [`survey`] walks a file once for what only the whole of it can tell, [`pairing`] walks it again,
//! joins invocations and completions and builds transactions.

mod emit;
mod event;
mod pairing;
mod request;
mod stream;
mod survey;
mod write;

#[cfg(test)]
mod tests;

use isolario_model::SinkError;

use crate::error::{Fault, utf8};
use crate::notation::Form;
use crate::{HistoryFormat, HistoryWriter, Ignored, Loaded, Position, ReadError, Source, Target};
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
        begins_with_entry(source, Syntax::Edn)
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        read(source, Syntax::Edn)
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(write::writer(target, self.name(), Syntax::Edn))
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
        begins_with_entry(source, Syntax::Json)
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        read(source, Syntax::Json)
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(write::writer(target, self.name(), Syntax::Json))
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
        begins_with_entry(source, Syntax::Log)
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        read(source, Syntax::Log)
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(write::writer(target, self.name(), Syntax::Log))
    }
}

/// Whether the source begins with an entry.
fn begins_with_entry(source: &Source, syntax: Syntax) -> bool {
    let mut form = Form::new(syntax.notation());
    matches!(Events::new(source.beginning(), syntax).next(&mut form), Ok(Some(_)))
}

fn read(source: &Source, syntax: Syntax) -> Result<Loaded, ReadError> {
    let bytes = source.require_file()?;
    parse(bytes, syntax).map_err(|fault| fault.in_text(source, bytes))
}

fn parse(bytes: &[u8], syntax: Syntax) -> Result<Loaded, Fault> {
    let input = utf8(bytes)?;
    let survey = Survey::of(input, syntax)?;
    let (batch, warnings) = pairing::read(input, syntax, &survey)?;
    let history = batch.build().map_err(Fault::refused(0))?;
    let mut ignored = survey.into_ignored();
    if syntax == Syntax::Log {
        let (count, first) = stream::other_lines(input);
        if count > 0 {
            let first = Position::Line(first);
            ignored.push(Ignored { what: "log lines about other things", count, first });
        }
    }
    Ok(Loaded { history, ignored, warnings })
}
