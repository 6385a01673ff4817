//! The first walk over a file: what only the whole of it can tell.
//!
//! A read that returns `nil` does not say whether its key is a register or a list; an entry
//! without a time does not say whether the others have one. So a file is walked twice: here, and
//! then to build the transactions. The second walk keeps nothing but the place of each open
//! invocation.

use isolario_model::{NameTable, ValueRef};

use super::event::{Event, Kind, Process};
use super::opens::{Open, Opens};
use super::parts::Part;
use super::request::{self, Function, Keying, Request};
use super::stream::{Events, Syntax};
use crate::error::Fault;
use crate::notation::Form;
use crate::{IgnoredItems, Position};

/// What the operations on a key make of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum KeyUse {
    /// Only reads of `nil` so far.
    #[default]
    Unclear,
    /// A read returned a sequence. That is a list, unless someone writes to the key.
    ReadAsList,
    Register,
    List,
}

/// Which times a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// The field `:time`, in nanoseconds.
    Nanoseconds,
    /// No `:time`; the field `:index` orders the entries.
    Index,
    /// Neither; the entries are in the order of events.
    Position,
    /// None: no entry tells when anything began.
    None,
}

/// What the whole file tells.
#[derive(Debug)]
pub(super) struct Survey {
    syntax: Syntax,
    keys: NameTable,
    uses: Vec<KeyUse>,
    pub(super) keying: Option<Keying>,
    /// Whether entries name their processes; none before the first entry of a client.
    pub(super) names_processes: Option<bool>,
    /// The line of that entry.
    pub(super) first_line: u64,
    has_time: bool,
    has_index: bool,
    pub(super) has_invocations: bool,
    /// What is open at the end.
    pub(super) opens: Opens,
    ignored: Vec<IgnoredItems>,
}

impl Survey {
    /// Walks a part of an input, or all of it. A survey that skims is quicker, but what it says of
    /// faults may leave out what it has not looked into.
    pub(super) fn of(part: &Part<'_>, syntax: Syntax, skims: bool) -> Result<Survey, Fault> {
        let mut survey = Survey {
            syntax,
            keys: NameTable::default(),
            uses: Vec::new(),
            keying: None,
            names_processes: None,
            first_line: 1,
            has_time: false,
            has_index: false,
            has_invocations: false,
            opens: Opens::default(),
            ignored: Vec::new(),
        };
        let mut events = Events::of_part(part, syntax);
        let mut form = Form::new(syntax.notation());
        form.skims = skims;
        let mut requests = Vec::new();
        while let Some(event) = events.next(&mut form)? {
            if event.process == Process::Nemesis {
                survey.ignore("nemesis operations", 1, event.line);
            } else {
                survey.add(&mut form, &event, &mut requests)?;
            }
        }
        Ok(survey)
    }

    /// What two parts tell together, the second one right after the first; none if they do not go
    /// together.
    pub(super) fn then(mut self, part: &Survey) -> Option<Survey> {
        let agrees = |first: bool| part.names_processes.is_none_or(|second| first == second);
        let keys_agree =
            self.keying.is_none() || part.keying.is_none() || self.keying == part.keying;
        if !keys_agree || !self.names_processes.is_none_or(agrees) {
            return None;
        }
        for (key, used) in part.keys.iter().zip(&part.uses) {
            self.note(key, *used)?;
        }
        if self.names_processes.is_none() {
            self.first_line = part.first_line;
        }
        self.names_processes = self.names_processes.or(part.names_processes);
        self.keying = self.keying.or(part.keying);
        self.has_time |= part.has_time;
        self.has_index |= part.has_index;
        self.has_invocations |= part.has_invocations;
        self.opens = self.opens.then(&part.opens);
        for ignored in &part.ignored {
            match self.ignored.iter_mut().find(|before| before.what == ignored.what) {
                Some(before) => before.count += ignored.count,
                None => self.ignored.push(ignored.clone()),
            }
        }
        Some(self)
    }

    /// What the file has that is not made use of.
    pub(super) fn into_ignored(self) -> Vec<IgnoredItems> {
        self.ignored
    }

    pub(super) fn times(&self) -> Times {
        match self {
            Survey { has_time: true, .. } => Times::Nanoseconds,
            Survey { has_invocations: false, .. } => Times::None,
            Survey { has_index: true, .. } => Times::Index,
            _ => Times::Position,
        }
    }

    /// The name of a request's key. Its node must have been prepared.
    pub(super) fn key<'f>(&self, form: &'f Form<'_>, request: &Request) -> ValueRef<'f> {
        match (request.key, self.syntax) {
            (Some(node), _) => form.value(node),
            (None, Syntax::Json) => ValueRef::Text(ONE_REGISTER),
            (None, _) => ValueRef::Keyword(ONE_REGISTER),
        }
    }

    /// Whether a key is a list.
    pub(super) fn is_list(&self, key: ValueRef<'_>) -> bool {
        let number = self.keys.find(key).map(|number| number as usize);
        number.is_some_and(|n| matches!(self.uses[n], KeyUse::List | KeyUse::ReadAsList))
    }

    fn ignore(&mut self, what: &'static str, count: u64, line: u64) {
        match self.ignored.iter_mut().find(|ignored| ignored.what == what) {
            Some(ignored) => ignored.count += count,
            None => self.ignored.push(IgnoredItems { what, count, first: Position::Line(line) }),
        }
    }

    fn add(
        &mut self,
        form: &mut Form<'_>,
        event: &Event,
        requests: &mut Vec<Request>,
    ) -> Result<(), Fault> {
        let names_process = event.process != Process::Unstated;
        if self.names_processes.is_none() {
            self.first_line = event.line;
        }
        if *self.names_processes.get_or_insert(names_process) != names_process {
            let (expected, found) = if names_process {
                ("no process, as in the operations before", "one")
            } else {
                ("a process, as in the operations before", "none")
            };
            return Err(Fault::malformed(event.at, expected, found));
        }
        self.has_time |= event.time.is_some();
        self.has_index |= event.index.is_some();
        self.has_invocations |= event.kind == Kind::Invoke;
        self.follow(form, event);
        if event.unused_fields > 0 {
            self.ignore("other fields of operations", event.unused_fields, event.line);
        }
        match request::read(form, event, &mut self.keying, requests) {
            Ok(_) => requests.iter().try_for_each(|request| self.note_use(form, request)),
            // It may carry an error in place of a value; then its invocation tells what was asked.
            Err(_) if matches!(event.kind, Kind::Fail | Kind::Info) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Notes whether an entry leaves something open.
    fn follow(&mut self, form: &Form<'_>, event: &Event) {
        let name = match event.process {
            Process::Client(node) => Some(form.value(node)),
            _ => None,
        };
        let process = self.opens.process(name);
        self.opens.entries += 1;
        let Event { at, line, time, index, .. } = *event;
        let open = Open { at, line, time, index, entry: self.opens.entries };
        self.opens.slots[process] = (event.kind == Kind::Invoke).then_some(open);
    }

    fn note_use(&mut self, form: &mut Form<'_>, request: &Request) -> Result<(), Fault> {
        if let Some(node) = request.key {
            form.prepare(node);
        }
        let key = self.key(form, request);
        let now = match request.function {
            Function::Append => KeyUse::List,
            Function::Write | Function::CompareAndSet => KeyUse::Register,
            Function::Read if request.value.is_some_and(|v| form.is_sequence(v)) => {
                KeyUse::ReadAsList
            }
            Function::Read => KeyUse::Unclear,
        };
        self.note(key, now).ok_or_else(|| {
            let expected = format!("operations of one kind on key {key}");
            Fault::malformed(request.at, expected, "both writes and appends")
        })
    }

    /// Notes what is made of a key; none if it is something else already.
    fn note(&mut self, key: ValueRef<'_>, now: KeyUse) -> Option<()> {
        let number = self.keys.intern(key) as usize;
        if number == self.uses.len() {
            self.uses.push(KeyUse::Unclear);
        }
        let before = self.uses[number];
        self.uses[number] = match (before, now) {
            (KeyUse::List, KeyUse::Register) | (KeyUse::Register, KeyUse::List) => return None,
            (KeyUse::List | KeyUse::Register, _) => before,
            (_, KeyUse::List | KeyUse::Register | KeyUse::ReadAsList) => now,
            (_, KeyUse::Unclear) => before,
        };
        Some(())
    }
}

/// What the register is called where a history has only one.
pub(super) const ONE_REGISTER: &str = "register";
