//! The lines of a Jepsen log: `INFO  jepsen.util - 0 :invoke :read nil`.

use super::edn;
use super::event::{Event, Kind, Process, read_kind};
use super::form::{Fault, Form};

/// Who writes the lines that matter.
pub(super) const LOGGER: &str = "jepsen.util";

const NEMESIS: &str = ":nemesis";

/// Reads the next line that tells of an operation, from a byte on, and passes it.
///
/// Its parts are process, type, function, value and, on some completions, an error.
pub(super) fn read<'a>(
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
        parts.next().ok_or_else(|| Fault::new(at, what, "the end of the line"))
    };
    let process = Process::from_node(form, part("a process")?)?;
    let kind = read_kind(form, part("a type after the process")?)?;
    let mut event = Event::new(begin, kind);
    event.process = process;
    event.function = Some(part("a function after the type")?);
    event.value = parts.next();
    event.error = parts.next();
    if let Some(extra) = parts.next() {
        return Err(Fault::new(form.at(extra), "the end of the line", form.render(extra)));
    }
    Ok(event)
}
