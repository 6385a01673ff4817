//! Registers whose values tell who wrote them: every call knows whom it followed.

use rustc_hash::FxHashMap;

use super::calls::{Action, Call};
use super::conflict::Conflict;
use crate::graph::Rows;

/// Who is nobody: the initial state as a source, and no successor.
pub(super) const NONE: u32 = u32::MAX;
/// In the table of writers: several wrote it.
const SEVERAL: u32 = u32::MAX - 1;
/// The source of a call that cannot have taken effect: nobody wrote what it would have found.
const NOWHERE: u32 = u32::MAX - 2;

/// Who followed whom on one register.
///
/// Each version has one writer, and at most one call that replaced it and told what it replaced.
pub(super) struct Sources<'c> {
    pub(super) calls: &'c [Call],
    /// Per call that found or replaced something, who wrote it; [`NONE`] for the initial state.
    source: Vec<u32>,
    /// Per writer, who replaced its version and found it; the initial state comes last.
    next: Vec<u32>,
    /// Per call, whether it took effect: one of unknown outcome did if what it wrote was found.
    pub(super) kept: Vec<bool>,
    /// Per call of unknown outcome that took effect, who found what it wrote.
    found_by: FxHashMap<u32, u32>,
    /// The reads by writer, those of the initial state last; the first to start first.
    reads: Rows<u32>,
    /// Failed comparisons, with the writer of what they did not find.
    pub(super) misses: Vec<(u32, u32)>,
    /// Calls that may have taken effect at any time.
    pub(super) free: Vec<u32>,
}

/// Why a register is not, or not yet, known as [`Sources`].
pub(super) enum Otherwise {
    /// There is no order.
    Broken(Conflict),
    /// There are choices: it takes a search.
    Choices,
}

impl<'c> Sources<'c> {
    pub(super) fn new(calls: &'c [Call], initial: u64) -> Result<Self, Otherwise> {
        let writers = writers(calls, initial);
        let mut sources = Sources {
            calls,
            source: vec![NONE; calls.len()],
            next: vec![NONE; calls.len() + 1],
            kept: calls.iter().map(|call| call.must).collect(),
            found_by: FxHashMap::default(),
            reads: Rows::default(),
            misses: Vec::new(),
            free: Vec::new(),
        };
        for at in 0..calls.len() as u32 {
            sources.resolve(at, &writers)?;
        }
        let is_plain = |call: &Call| matches!(call.action, Action::Write(_));
        if !sources.misses.is_empty() && calls.iter().any(is_plain) {
            return Err(Otherwise::Choices);
        }
        sources.settle_outcomes()?;
        sources.link()?;
        sources.sort_reads();
        Ok(sources)
    }

    /// Who wrote what a call found.
    pub(super) fn source(&self, at: u32) -> u32 {
        self.source[at as usize]
    }

    /// Who replaced the version of a writer and found it.
    pub(super) fn next(&self, writer: u32) -> Option<u32> {
        Some(self.next[self.slot(writer)]).filter(|next| *next != NONE)
    }

    /// The reads of a writer's version, the first to start first.
    pub(super) fn reads(&self, writer: u32) -> &[u32] {
        self.reads.get(self.slot(writer))
    }

    /// A call, and those that show that it took effect.
    pub(super) fn shown(&self, at: u32) -> Vec<u32> {
        let next = |at: &u32| self.found_by.get(at).copied();
        std::iter::successors(Some(at), next).collect()
    }

    /// Where a writer stands in tables; the initial state stands last.
    fn slot(&self, writer: u32) -> usize {
        if writer == NONE { self.calls.len() } else { writer as usize }
    }

    fn resolve(&mut self, at: u32, writers: &FxHashMap<u64, u32>) -> Result<(), Otherwise> {
        let call = &self.calls[at as usize];
        let old = match call.action {
            Action::Never => return Err(Otherwise::Broken(Conflict::alone(at))),
            Action::Maybe(..) => return Err(Otherwise::Choices),
            Action::Write(_) => return Ok(()),
            Action::Free => {
                self.free.extend(call.must.then_some(at));
                return Ok(());
            }
            Action::Read(old) | Action::Differs(old) | Action::Swap(old, _) => old,
        };
        match (writers.get(&old), call.action) {
            (Some(&SEVERAL), _) => return Err(Otherwise::Choices),
            (Some(writer), Action::Differs(_)) => self.misses.push((at, *writer)),
            (None, Action::Differs(_)) => self.free.push(at),
            // It replaced a value by itself, and nobody else wrote it.
            (Some(writer), _) if *writer == at && call.must => {
                return Err(Otherwise::Broken(Conflict::alone(at)));
            }
            (Some(writer), _) if *writer != at => self.source[at as usize] = *writer,
            (None, _) if call.must => return Err(Otherwise::Broken(Conflict::Nobody(at))),
            _ => self.source[at as usize] = NOWHERE,
        }
        Ok(())
    }

    /// Follows finds from calls that took effect to calls that must have.
    fn settle_outcomes(&mut self) -> Result<(), Otherwise> {
        if self.kept.iter().all(|kept| *kept) {
            return Ok(());
        }
        let mut to_do: Vec<u32> =
            (0..self.calls.len() as u32).filter(|at| self.kept[*at as usize]).collect();
        while let Some(at) = to_do.pop() {
            let source = self.source[at as usize];
            if source == NOWHERE {
                // It was found although it cannot have been there: the search shows it.
                return Err(Otherwise::Choices);
            }
            if source != NONE && !self.kept[source as usize] {
                self.kept[source as usize] = true;
                self.found_by.insert(source, at);
                to_do.push(source);
            }
        }
        Ok(())
    }

    /// Links each replacing call to the one it replaced.
    fn link(&mut self) -> Result<(), Otherwise> {
        for at in 0..self.calls.len() as u32 {
            if !self.kept[at as usize]
                || !matches!(self.calls[at as usize].action, Action::Swap(..))
            {
                continue;
            }
            let source = self.source[at as usize];
            let slot = self.slot(source);
            let other = std::mem::replace(&mut self.next[slot], at);
            if other != NONE {
                let conflict = Conflict::both_replaced(self, other, at);
                return Err(Otherwise::Broken(conflict));
            }
        }
        Ok(())
    }

    fn sort_reads(&mut self) {
        let is_read = |at: &u32| {
            let call = &self.calls[*at as usize];
            call.must && matches!(call.action, Action::Read(_))
        };
        let reads = (0..self.calls.len() as u32).filter(is_read);
        let by_writer = reads.map(|at| (self.slot(self.source(at)) as u32, at));
        let mut rows = Rows::group(self.calls.len() + 1, by_writer);
        for row in rows.iter_mut().filter(|row| row.len() > 1) {
            row.sort_unstable_by_key(|at| self.calls[*at as usize].start);
        }
        self.reads = rows;
    }
}

/// Who wrote each word. Only words that anyone looks for matter, but to ask costs as much as to
/// note them all.
fn writers(calls: &[Call], initial: u64) -> FxHashMap<u64, u32> {
    let mut writers = FxHashMap::default();
    writers.reserve(calls.len() + 1);
    writers.insert(initial, NONE);
    for (at, call) in (0..).zip(calls) {
        if let Some(new) = call.action.new_word() {
            writers.entry(new).and_modify(|writer| *writer = SEVERAL).or_insert(at);
        }
    }
    writers
}
