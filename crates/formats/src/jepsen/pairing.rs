//! The second walk over a file: pairs invocations with completions and builds the transactions.

use isolario_model::{Batch, Clock, Meta, TxnEnd, TxnSink, TxnStart, Value, ValueRef};

use super::emit::{self, Content};
use super::event::{Event, Kind, Process};
use super::opens::{Open, Opens};
use super::parts::Part;
use super::request::{self, Request, Style};
use super::stream::{Events, Syntax};
use super::survey::{Survey, Times};
use crate::error::Fault;
use crate::notation::Form;
use crate::{Position, Warning};

/// What a part of an input has.
pub(super) struct Paired {
    pub(super) batch: Batch,
    /// What is open after it.
    opens: Opens,
    /// Completions without an invocation in a file that has some: how many, and the first line.
    unmatched: (u64, u64),
}

/// Reads all transactions of a part of an input that was surveyed, given what is open before it.
pub(super) fn read(
    part: &Part<'_>,
    opens: &Opens,
    syntax: Syntax,
    survey: &Survey,
) -> Result<Paired, Fault> {
    let mut pairing = Pairing::new(part, opens.clone(), syntax, survey);
    let clock = match survey.times() {
        Times::Nanoseconds | Times::None => Clock::Nanoseconds,
        Times::Index | Times::Position => Clock::EventOrder,
    };
    pairing.batch.meta(&Meta { clock, ..Meta::default() }).map_err(Fault::refused(0))?;
    while let Some(event) = pairing.events.next(&mut pairing.form)? {
        pairing.take(event)?;
    }
    let Pairing { batch, opens, unmatched, .. } = pairing;
    Ok(Paired { batch, opens, unmatched })
}

/// What is left to say after the last part: invocations that were never completed, and warnings.
pub(super) fn finish(
    whole: &Part<'_>,
    paired: &mut [Paired],
    syntax: Syntax,
    survey: &Survey,
) -> Result<Vec<Warning>, Fault> {
    if let Some(last) = paired.last_mut() {
        let mut pairing = Pairing::new(whole, std::mem::take(&mut last.opens), syntax, survey);
        std::mem::swap(&mut pairing.batch, &mut last.batch);
        for process in 0..pairing.opens.slots.len() {
            if let Some(open) = pairing.opens.slots[process].take() {
                pairing.abandon(process, open)?;
            }
        }
        std::mem::swap(&mut pairing.batch, &mut last.batch);
    }
    let mut warnings = Vec::new();
    let mut warn = |message: String, line| {
        warnings.push(Warning { message, position: Position::Line(line) });
    };
    let unmatched = paired.iter().map(|part| part.unmatched).filter(|(count, _)| *count > 0);
    let (count, first) = unmatched.reduce(|a, b| (a.0 + b.0, a.1.min(b.1))).unwrap_or_default();
    if count > 0 {
        let message =
            format!("{count} completions have no invocation, so their start times are unknown");
        warn(message, first);
    }
    let txns: usize = paired.iter().map(|part| part.batch.len()).sum();
    if survey.names_processes == Some(false) && txns > 1 {
        let message = "no operation names its process, so each transaction is a session of \
                       its own, and the order of a client's transactions is unknown";
        warn(message.to_owned(), survey.first_line);
    }
    Ok(warnings)
}

struct Pairing<'a, 's> {
    events: Events<'a>,
    survey: &'s Survey,
    batch: Batch,
    /// The entry at hand.
    form: Form<'a>,
    requests: Vec<Request>,
    /// The invocation of the entry at hand, where it is needed again.
    asked_form: Form<'a>,
    asked: Vec<Request>,
    opens: Opens,
    unmatched: (u64, u64),
}

impl<'a, 's> Pairing<'a, 's> {
    fn new(part: &Part<'a>, opens: Opens, syntax: Syntax, survey: &'s Survey) -> Self {
        Pairing {
            events: Events::of_part(part, syntax),
            survey,
            batch: Batch::new(),
            form: Form::new(syntax.notation()),
            requests: Vec::new(),
            asked_form: Form::new(syntax.notation()),
            asked: Vec::new(),
            opens,
            unmatched: (0, 0),
        }
    }

    fn take(&mut self, event: Event) -> Result<(), Fault> {
        let name = match event.process {
            Process::Nemesis => return Ok(()),
            Process::Client(node) => Some(self.form.value(node)),
            Process::Unstated => None,
        };
        let process = self.opens.process(name);
        self.opens.entries += 1;
        let Event { at, line, time, index, .. } = event;
        let now = Open { at, line, time, index, entry: self.opens.entries };
        let open = self.opens.slots[process].take();
        if event.kind != Kind::Invoke {
            return self.complete(&event, now.moment(self.survey.times()), process, open);
        }
        self.opens.slots[process] = Some(now);
        match open {
            Some(open) => self.abandon(process, open),
            None => Ok(()),
        }
    }

    /// Builds the transaction of a completion.
    fn complete(
        &mut self,
        event: &Event,
        finish: Option<i64>,
        process: usize,
        open: Option<Open>,
    ) -> Result<(), Fault> {
        if open.is_none() && self.survey.has_invocations {
            let (count, first) = self.unmatched;
            self.unmatched = (count + 1, if count == 0 { event.line } else { first });
        }
        let content = self.content_of(event, open)?;
        let index = event.index.or(open.and_then(|open| open.index));
        let name = name_of(&mut self.form, event, index);
        let moment = |open: Open| open.moment(self.survey.times());
        let (line, start) = open.map_or((event.line, None), |open| (open.line, moment(open)));
        self.build(&Txn { at: event.at, process, name, line, start, finish }, &content)
    }

    /// Builds the transaction of an invocation that was never completed.
    fn abandon(&mut self, process: usize, open: Open) -> Result<(), Fault> {
        let invocation = self.ask_again(open)?;
        let name = name_of(&mut self.asked_form, &invocation, open.index);
        let (at, line, start) = (open.at, open.line, open.moment(self.survey.times()));
        let txn = Txn { at, process, name, line, start, finish: None };
        self.build(&txn, &Content::UNKNOWN)
    }

    fn content_of(&mut self, event: &Event, open: Option<Open>) -> Result<Content, Fault> {
        let names_processes = self.survey.names_processes == Some(true);
        let mut invocation = None;
        if let Some(open) = open
            && (event.kind != Kind::Ok || !names_processes)
        {
            invocation = Some((self.ask_again(open)?, open));
        }
        let style = read_requests(&mut self.form, event, self.survey, &mut self.requests);
        let Some((invocation, open)) = invocation else {
            return Ok(Content::of_completion(&self.form, event, style?));
        };
        let answered = (&self.form, &self.requests[..]);
        let asked = (&self.asked_form, &self.asked[..]);
        let agrees = style.is_ok() && emit::same_requests(answered, asked, self.survey);
        if !agrees && !names_processes {
            let expected = format!("the completion of the operation on line {}", open.line);
            let found = "another one, without a process that would distinguish them";
            return Err(Fault::malformed(event.at, expected, found));
        }
        if event.kind == Kind::Ok {
            return Ok(Content::of_completion(&self.form, event, style?));
        }
        let asked_style = Style::of(&self.asked_form, &invocation)?;
        Ok(Content::of_failure(
            (&self.form, event),
            (&self.asked_form, &invocation),
            asked_style,
            agrees,
        ))
    }

    /// Reads an invocation once more: while it was open, only its place was kept.
    fn ask_again(&mut self, open: Open) -> Result<Event, Fault> {
        let invocation = self.events.reread(open.at, &mut self.asked_form)?;
        read_requests(&mut self.asked_form, &invocation, self.survey, &mut self.asked)?;
        Ok(invocation)
    }

    fn build(&mut self, txn: &Txn, content: &Content) -> Result<(), Fault> {
        let session = match self.survey.names_processes {
            Some(true) => self.opens.processes.get(txn.process as u32),
            // Nobody says which transactions follow one another: each is a session of its own.
            _ => ValueRef::from(self.batch.len() as u64),
        };
        let id = txn.name.as_ref().map(Value::as_ref);
        let start = TxnStart { session, id, line: Some(txn.line) };
        self.batch.begin(&start).map_err(Fault::refused(txn.at))?;
        let (form, requests) = if content.from_invocation {
            (&self.asked_form, &self.asked)
        } else {
            (&self.form, &self.requests)
        };
        emit::operations(&mut self.batch, form, requests, self.survey, content)
            .map_err(Fault::refused(txn.at))?;
        let end = TxnEnd {
            start: txn.start,
            finish: txn.finish,
            error: content.error.as_deref(),
            ..TxnEnd::new(content.outcome)
        };
        self.batch.end(&end).map_err(Fault::refused(txn.at))
    }
}

/// What is known of a transaction beside its operations.
struct Txn {
    /// The byte of the entry that tells of it.
    at: usize,
    process: usize,
    name: Option<Value>,
    line: u64,
    start: Option<i64>,
    finish: Option<i64>,
}

/// The name an entry states for its transaction, else its index.
fn name_of(form: &mut Form<'_>, event: &Event, index: Option<i64>) -> Option<Value> {
    let Some(node) = event.name else { return index.map(Value::Int) };
    form.prepare(node);
    Some(form.value(node).to_owned()).filter(|name| *name != Value::Nil)
}

fn read_requests(
    form: &mut Form<'_>,
    event: &Event,
    survey: &Survey,
    requests: &mut Vec<Request>,
) -> Result<Style, Fault> {
    let mut keying = survey.keying;
    let style = request::read(form, event, &mut keying, requests)?;
    emit::prepare(form, requests, survey)?;
    Ok(style)
}
