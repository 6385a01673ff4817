//! Jepsen histories: `elle-edn`, `elle-json` and `jepsen-log`.
//!
//! The three differ in how an entry is written ([`stream`]). What the entries mean is the same:
//! [`survey`] walks a file once for what only the whole of it can tell, [`pairing`] walks it again,
//! joins invocations and completions and builds transactions.

mod emit;
mod event;
mod opens;
mod pairing;
mod parts;
mod request;
mod stream;
mod survey;
mod write;

#[cfg(test)]
mod tests;

use isolario_model::{BatchEntries, History, SinkError};
use rayon::prelude::*;

use crate::error::{Fault, utf8};
use crate::notation::Form;
use crate::{
    HistoryFormat, HistoryWriter, IgnoredItems, OutputTarget, ParsedHistory, Position, ReadError,
    Source,
};
use opens::Opens;
use pairing::Paired;
use parts::Part;
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

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        read(source, Syntax::Edn)
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
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

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        read(source, Syntax::Json)
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
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

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        read(source, Syntax::Log)
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(write::writer(target, self.name(), Syntax::Log))
    }
}

/// Whether the source begins with an entry.
fn begins_with_entry(source: &Source, syntax: Syntax) -> bool {
    let mut form = Form::new(syntax.notation());
    matches!(Events::new(source.beginning(), syntax).next(&mut form), Ok(Some(_)))
}

fn read(source: &Source, syntax: Syntax) -> Result<ParsedHistory, ReadError> {
    let bytes = source.require_file()?;
    parse(bytes, syntax).map_err(|fault| fault.in_text(source, bytes))
}

fn parse(bytes: &[u8], syntax: Syntax) -> Result<ParsedHistory, Fault> {
    parse_cut(bytes, syntax, parts::PART_LEN)
}

/// Reads in parts of about this length. What is wrong with a file is best said by those who read it
/// from the first byte to the last.
fn parse_cut(bytes: &[u8], syntax: Syntax, part_len: usize) -> Result<ParsedHistory, Fault> {
    let input = utf8(bytes)?;
    match parse_parts(input, syntax, &parts::cut(input, syntax, part_len)) {
        Some(loaded) => Ok(loaded),
        None => {
            let whole = Part::whole(input);
            let survey = Survey::of(&whole, syntax, false)?;
            build(input, syntax, &[(whole, Opens::default())], survey)
        }
    }
}

/// Reads parts at the same time. None if they cannot be read or do not go together.
fn parse_parts(input: &str, syntax: Syntax, parts: &[Part<'_>]) -> Option<ParsedHistory> {
    let survey = |part: &Part<'_>| Survey::of(part, syntax, true).ok();
    let surveys: Vec<Survey> = parts.par_iter().map(survey).collect::<Option<_>>()?;
    let mut before = Opens::default();
    let mut with_opens = Vec::with_capacity(parts.len());
    for (part, survey) in parts.iter().zip(&surveys) {
        let after = before.then(&survey.opens);
        with_opens.push((*part, std::mem::replace(&mut before, after)));
    }
    let survey = surveys.into_iter().map(Some).reduce(|before, part| before?.then(&part?))??;
    // Where processes have no names, transactions are numbered from the beginning of the file.
    if parts.len() > 1 && survey.names_processes != Some(true) {
        return None;
    }
    build(input, syntax, &with_opens, survey).ok()
}

/// Builds the history of a surveyed input from its parts and what is open before each.
fn build(
    input: &str,
    syntax: Syntax,
    parts: &[(Part<'_>, Opens)],
    survey: Survey,
) -> Result<ParsedHistory, Fault> {
    let read = |(part, opens): &(Part<'_>, Opens)| pairing::read(part, opens, syntax, &survey);
    let mut paired: Vec<Paired> = parts.par_iter().map(read).collect::<Result<_, Fault>>()?;
    let warnings = pairing::finish(&Part::whole(input), &mut paired, syntax, &survey)?;
    let batches = paired.into_iter().map(|part| part.batch).collect();
    let history = History::from_batches(batches, BatchEntries::Whole).map_err(Fault::refused(0))?;
    let mut ignored = survey.into_ignored();
    if syntax == Syntax::Log {
        let (count, first) = stream::other_lines(input);
        if count > 0 {
            let first = Position::Line(first);
            ignored.push(IgnoredItems { what: "log lines about other things", count, first });
        }
    }
    Ok(ParsedHistory { history, ignored, warnings })
}
