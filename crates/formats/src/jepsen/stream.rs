//! The entries of a file, one after the other, whatever they are written in: maps in EDN, objects in
//! JSON, or the lines of a log, `INFO  jepsen.util - 0 :invoke :read nil`.

use super::event::{Event, Kind, Process, read_kind};
use super::parts::Part;
use crate::error::Fault;
use crate::notation::{Form, Notation, Values, edn};

/// What a file of entries is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Edn,
    Json,
    Log,
}

impl Syntax {
    pub(super) fn notation(self) -> Notation {
        match self {
            Syntax::Edn | Syntax::Log => Notation::Edn,
            Syntax::Json => Notation::Json,
        }
    }
}

/// Walks the entries of an input.
pub(super) struct Events<'a> {
    input: &'a str,
    source: Entries<'a>,
    /// The line of a byte that was passed already: lines are counted once.
    counted: (usize, u64),
}

enum Entries<'a> {
    Maps(Values<'a>),
    /// A log, and where its next line begins.
    Lines(usize),
}

impl<'a> Events<'a> {
    pub(super) fn new(input: &'a str, syntax: Syntax) -> Self {
        let source = match syntax {
            Syntax::Log => Entries::Lines(0),
            Syntax::Edn | Syntax::Json => Entries::Maps(Values::new(input, syntax.notation())),
        };
        Events { input, source, counted: (0, 1) }
    }

    /// The entries of a part of an input.
    pub(super) fn of_part(part: &Part<'a>, syntax: Syntax) -> Self {
        match part.start {
            0 => Events::new(part.input, syntax),
            start => Events {
                input: part.input,
                source: Entries::Maps(Values::from(part.input, start, syntax.notation())),
                counted: (start, part.line),
            },
        }
    }

    /// The next entry; its parts are in the form.
    pub(super) fn next(&mut self, form: &mut Form<'a>) -> Result<Option<Event>, Fault> {
        let event = match &mut self.source {
            Entries::Maps(values) => match values.next(form)? {
                true => Some(Event::from_map(form)?),
                false => None,
            },
            Entries::Lines(at) => read_log(self.input, at, form)?,
        };
        let Some(mut event) = event else { return Ok(None) };
        event.line = self.line_of(event.at);
        Ok(Some(event))
    }

    /// Reads again the entry that begins at a byte, into another form.
    pub(super) fn reread(&self, at: usize, form: &mut Form<'a>) -> Result<Event, Fault> {
        let entry = match &self.source {
            Entries::Maps(values) => match values.reread(at, form)? {
                true => Some(Event::from_map(form)?),
                false => None,
            },
            Entries::Lines(_) => read_log(self.input, &mut { at }, form)?,
        };
        entry.ok_or_else(|| Fault::here(self.input, at, "an operation"))
    }

    fn line_of(&mut self, at: usize) -> u64 {
        let (from, line) = self.counted;
        let passed = &self.input.as_bytes()[from..at];
        let line = line + memchr::memchr_iter(b'\n', passed).count() as u64;
        self.counted = (at, line);
        line
    }
}

/// Who writes the lines that matter.
pub(super) const LOGGER: &str = "jepsen.util";

const NEMESIS: &str = ":nemesis";

/// Reads the next line that tells of an operation, from a byte on, and passes it.
///
/// Its parts are process, type, function, value and, on some completions, an error.
fn read_log<'a>(
    input: &'a str,
    at: &mut usize,
    form: &mut Form<'a>,
) -> Result<Option<Event>, Fault> {
    while *at < input.len() {
        let begin = *at;
        let rest = &input.as_bytes()[begin..];
        let end = memchr::memchr(b'\n', rest).map_or(input.len(), |len| begin + len);
        *at = (end + 1).min(input.len());
        let to_end = &input[..end];
        if let Some(entry) = entry_in(to_end, begin) {
            let mut event = read_entry(to_end, entry, form)?;
            event.at = begin;
            return Ok(Some(event));
        }
    }
    Ok(None)
}

/// The lines about something else: how many, and the first one's number.
pub(super) fn other_lines(input: &str) -> (u64, u64) {
    let others = input
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && entry_in(line, 0).is_none());
    others.fold((0, 0), |(count, first), (at, _)| {
        (count + 1, if count == 0 { at as u64 + 1 } else { first })
    })
}

/// Where in a line the entry begins; none if the line is about something else.
fn entry_in(input_to_line_end: &str, begin: usize) -> Option<usize> {
    let line = &input_to_line_end[begin..];
    let after = line.find(LOGGER)? + LOGGER.len();
    let entry = line[after..].trim_start_matches([' ', '\t', '-']);
    let is_entry = entry.starts_with(|c: char| c.is_ascii_digit()) || entry.starts_with(NEMESIS);
    is_entry.then(|| input_to_line_end.len() - entry.len())
}

fn read_entry<'a>(
    input_to_line_end: &'a str,
    begin: usize,
    form: &mut Form<'a>,
) -> Result<Event, Fault> {
    if input_to_line_end[begin..].starts_with(NEMESIS) {
        // What follows is free text.
        let mut event = Event::new(begin, Kind::Info);
        event.process = Process::Nemesis;
        return Ok(event);
    }
    edn::read_sequence(input_to_line_end, begin, form)?;
    let mut parts = form.children(0);
    let mut part = |what: &str| {
        let at = input_to_line_end.len();
        parts.next().ok_or_else(|| Fault::malformed(at, what, "the end of the line"))
    };
    let process = Process::from_node(form, part("a process")?)?;
    let kind = read_kind(form, part("a type after the process")?)?;
    let mut event = Event::new(begin, kind);
    event.process = process;
    event.function = Some(part("a function after the type")?);
    event.value = parts.next();
    event.error = parts.next();
    if let Some(extra) = parts.next() {
        return Err(Fault::malformed(form.at(extra), "the end of the line", form.render(extra)));
    }
    Ok(event)
}
