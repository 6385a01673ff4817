//! The search for an order of one register's calls, after Wing and Gong, and Lowe.
//!
//! Calls are put in order just in time: when one returns, those ways of running on are kept in
//! which it has taken effect. A way is described by what the register then holds and by which of
//! the calls still open have taken effect; two ways of the same description are one. So the number
//! of ways depends on how many calls overlap, and not on how many there are.
//!
//! Three things keep it small. A call that only looks takes effect as soon as it may: it disturbs
//! nobody. Calls of unknown outcome with the same effect are interchangeable, so that only their
//! number counts. And of two ways that differ only in those, the one that used fewer is enough.

use std::time::{Duration, Instant};

use isolario_model::Limit;
use rustc_hash::FxHashMap;

use super::calls::{Action, Call};
use crate::StopFlag;

/// When to give up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits<'o> {
    /// When it began, and how long it may take.
    pub(super) time: Option<(Instant, Duration)>,
    /// How many bytes the search may take.
    pub(super) memory: Option<u64>,
    /// How many ways it may look at.
    pub(super) ways: Option<u64>,
    /// Who may ask to end.
    pub(super) stop: Option<&'o StopFlag>,
}

/// What came of a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SearchEnd {
    /// An order, by the positions of the calls.
    Order(Vec<u32>),
    /// No way goes on past the return of this call.
    Stuck(u32),
    /// What ended the search, and how many of the calls had been put in order.
    GaveUp(Limit, u64),
}

/// Puts calls in order.
pub(super) fn search(calls: &[Call], initial: u64, limits: Limits<'_>) -> SearchEnd {
    let mut search = Search::new(calls, initial, limits);
    for (time, call) in returns(calls) {
        search.open_until(time);
        match search.pass(call) {
            Ok(true) => search.returned += 1,
            Ok(false) => return SearchEnd::Stuck(call),
            Err(limit) => return SearchEnd::GaveUp(limit, search.returned),
        }
    }
    SearchEnd::Order(search.order())
}

/// When calls return, in order: those that took effect for certain.
fn returns(calls: &[Call]) -> Vec<(i64, u32)> {
    let certain =
        calls.iter().enumerate().filter(|(_, call)| call.must && call.action != Action::Free);
    let mut returns: Vec<_> = certain.map(|(at, call)| (call.finish, at as u32)).collect();
    returns.sort_unstable();
    returns
}

/// A step of a way: a call took effect, or another one of a class of interchangeable calls.
#[derive(Clone, Copy)]
enum TraceEntry {
    Call(u32),
    Class(u32),
}

/// A way of running on.
#[derive(Clone)]
struct Way {
    holds: u64,
    /// The open calls that have taken effect, sorted.
    done: Vec<u32>,
    /// The classes of which calls were used, each as often as that, sorted.
    used: Vec<u32>,
    /// The last step, in the trace; none at the beginning.
    last: Option<u32>,
}

/// Interchangeable calls of unknown outcome.
struct Class {
    action: Action,
    /// In the order of their starts; those before `open` have started.
    calls: Vec<u32>,
    open: usize,
}

struct Search<'c> {
    calls: &'c [Call],
    limits: Limits<'c>,
    /// The calls that must take effect, the last to start first.
    waiting: Vec<u32>,
    /// Those that have started and not returned.
    open: Vec<u32>,
    classes: Vec<Class>,
    ways: Vec<Way>,
    /// Every step, with the one before it.
    trace: Vec<(Option<u32>, TraceEntry)>,
    looked_at: u64,
    returned: u64,
}

impl<'c> Search<'c> {
    fn new(calls: &'c [Call], initial: u64, limits: Limits<'c>) -> Self {
        let must =
            |at: &u32| calls[*at as usize].must && calls[*at as usize].action != Action::Free;
        let mut waiting: Vec<u32> = (0..calls.len() as u32).filter(must).collect();
        waiting.sort_by_key(|at| std::cmp::Reverse(calls[*at as usize].start));
        let begin = Way { holds: initial, done: Vec::new(), used: Vec::new(), last: None };
        Search {
            calls,
            limits,
            waiting,
            open: Vec::new(),
            classes: classes(calls),
            ways: vec![begin],
            trace: Vec::new(),
            looked_at: 0,
            returned: 0,
        }
    }

    /// Opens the calls that started by a time.
    fn open_until(&mut self, time: i64) {
        let started = |at: &mut u32| self.calls[*at as usize].start <= time;
        while let Some(call) = self.waiting.pop_if(started) {
            self.open.push(call);
        }
        for class in &mut self.classes {
            let is_open = |at: &u32| self.calls[*at as usize].start <= time;
            class.open += class.calls[class.open..].iter().take_while(|at| is_open(at)).count();
        }
    }

    /// Keeps the ways in which a call takes effect before it returns. False if there are none.
    fn pass(&mut self, returning: u32) -> Result<bool, Limit> {
        let mut passed = Ways::default();
        let mut seen = Ways::default();
        let mut to_do = std::mem::take(&mut self.ways);
        to_do.reverse();
        while let Some(mut way) = to_do.pop() {
            self.check_limits(to_do.len() + passed.ways.len() + seen.ways.len())?;
            self.look(&mut way);
            match way.done.binary_search(&returning) {
                Ok(at) => {
                    way.done.remove(at);
                    passed.add(way);
                }
                Err(_) if seen.add(way.clone()) => self.go_on(&way, &mut to_do),
                Err(_) => {}
            }
        }
        self.open.retain(|call| *call != returning);
        self.ways = passed.living();
        Ok(!self.ways.is_empty())
    }

    /// Lets all open calls take effect that only look, and may.
    fn look(&mut self, way: &mut Way) {
        for at in 0..self.open.len() {
            let call = self.open[at];
            let satisfied = match self.calls[call as usize].action {
                Action::Read(old) => way.holds == old,
                Action::Differs(old) => way.holds != old,
                _ => false,
            };
            if let (true, Err(place)) = (satisfied, way.done.binary_search(&call)) {
                way.done.insert(place, call);
                way.last = Some(self.step(way.last, TraceEntry::Call(call)));
            }
        }
    }

    /// Every way that is one step longer.
    fn go_on(&mut self, way: &Way, to_do: &mut Vec<Way>) {
        for at in 0..self.open.len() {
            let call = self.open[at];
            let Err(place) = way.done.binary_search(&call) else { continue };
            if let Some(holds) = after(self.calls[call as usize].action, way.holds) {
                let mut next = Way { holds, ..way.clone() };
                next.done.insert(place, call);
                next.last = Some(self.step(way.last, TraceEntry::Call(call)));
                to_do.push(next);
            }
        }
        for at in 0..self.classes.len() {
            let class = &self.classes[at];
            let place = way.used.partition_point(|used| *used < at as u32);
            let used = way.used[place..].iter().take_while(|used| **used == at as u32).count();
            if used == class.open {
                continue;
            }
            if let Some(holds) = after(class.action, way.holds).filter(|new| *new != way.holds) {
                let mut next = Way { holds, ..way.clone() };
                next.used.insert(place, at as u32);
                next.last = Some(self.step(way.last, TraceEntry::Class(at as u32)));
                to_do.push(next);
            }
        }
    }

    fn step(&mut self, last: Option<u32>, step: TraceEntry) -> u32 {
        self.trace.push((last, step));
        self.trace.len() as u32 - 1
    }

    fn check_limits(&mut self, ways: usize) -> Result<(), Limit> {
        self.looked_at += 1;
        if self.limits.ways.is_some_and(|most| self.looked_at > most) {
            return Err(Limit::Steps);
        }
        if self.trace.len() >= u32::MAX as usize / 2 {
            return Err(Limit::Steps);
        }
        // At the first one too: there may be many short searches.
        if self.looked_at % 1024 != 1 {
            return Ok(());
        }
        if self.limits.stop.is_some_and(StopFlag::is_asked) {
            return Err(Limit::Interrupted);
        }
        // A way has two short lists of its own, and stands in a table.
        let bytes = self.trace.len() * size_of::<(Option<u32>, TraceEntry)>() + ways * 256;
        if let Some(most) = self.limits.memory.filter(|most| bytes as u64 > *most) {
            return Err(Limit::Memory(most));
        }
        match self.limits.time {
            Some((began, time)) if began.elapsed() >= time => Err(Limit::Time(time)),
            _ => Ok(()),
        }
    }

    /// The calls of the first way that is left, in order.
    fn order(&self) -> Vec<u32> {
        let mut steps = Vec::new();
        let mut last = self.ways.first().and_then(|way| way.last);
        while let Some(at) = last {
            let (before, step) = self.trace[at as usize];
            steps.push(step);
            last = before;
        }
        let mut next = vec![0; self.classes.len()];
        let mut name = |step: TraceEntry| match step {
            TraceEntry::Call(call) => call,
            // As many as were used had started by then: the first ones to start.
            TraceEntry::Class(class) => {
                next[class as usize] += 1;
                self.classes[class as usize].calls[next[class as usize] - 1]
            }
        };
        steps.into_iter().rev().map(&mut name).collect()
    }
}

/// What a register holds after a call that writes or may write took effect, if that could be.
fn after(action: Action, holds: u64) -> Option<u64> {
    match action {
        Action::Write(new) => Some(new),
        Action::Swap(old, new) => (holds == old).then_some(new),
        Action::Maybe(old, new) => Some(if holds == old { new } else { holds }),
        // Those that only look have done so if they could.
        Action::Free | Action::Read(_) | Action::Differs(_) | Action::Never => None,
    }
}

/// The calls of unknown outcome that can matter, by effect. What nobody looks for is as good as
/// anything else that nobody looks for.
fn classes(calls: &[Call]) -> Vec<Class> {
    let mut wanted: Vec<u64> = calls.iter().filter_map(|call| call.action.old_word()).collect();
    wanted.sort_unstable();
    let is_wanted = |word: u64| wanted.binary_search(&word).is_ok();
    let is_shy = |call: &Call| matches!(call.action, Action::Differs(_) | Action::Maybe(..));
    let any_shy = calls.iter().any(is_shy);
    let nameless =
        calls.iter().filter_map(|call| call.action.new_word()).find(|word| !is_wanted(*word));
    let mut optional: Vec<u32> =
        (0..calls.len() as u32).filter(|at| !calls[*at as usize].must).collect();
    optional.sort_by_key(|at| calls[*at as usize].start);
    let mut by_action: FxHashMap<(Option<u64>, u64), usize> = FxHashMap::default();
    let mut classes: Vec<Class> = Vec::new();
    for at in optional {
        let (old, new) = match calls[at as usize].action {
            Action::Write(new) => (None, new),
            Action::Swap(old, new) => (Some(old), new),
            _ => continue,
        };
        let new = match is_wanted(new) {
            true => new,
            false if any_shy => nameless.unwrap_or(new),
            false => continue,
        };
        let action = old.map_or(Action::Write(new), |old| Action::Swap(old, new));
        let class = *by_action.entry((old, new)).or_insert_with(|| {
            classes.push(Class { action, calls: Vec::new(), open: 0 });
            classes.len() - 1
        });
        classes[class].calls.push(at);
    }
    classes
}

/// Ways of which none is as good as another one with fewer calls of unknown outcome.
#[derive(Default)]
struct Ways {
    ways: Vec<Option<Way>>,
    by_state: FxHashMap<(u64, Vec<u32>), Vec<u32>>,
}

impl Ways {
    /// Adds a way unless there is one that is as good; forgets those that are no better.
    fn add(&mut self, way: Way) -> bool {
        let alike = self.by_state.entry((way.holds, way.done.clone())).or_default();
        let used = |at: &u32| self.ways[*at as usize].as_ref().map(|other| &other.used);
        if alike.iter().filter_map(used).any(|used| is_within(used, &way.used)) {
            return false;
        }
        alike.retain(|at| {
            let keep = self.ways[*at as usize]
                .as_ref()
                .is_some_and(|other| !is_within(&way.used, &other.used));
            if !keep {
                self.ways[*at as usize] = None;
            }
            keep
        });
        alike.push(self.ways.len() as u32);
        self.ways.push(Some(way));
        true
    }

    fn living(self) -> Vec<Way> {
        self.ways.into_iter().flatten().collect()
    }
}

/// Whether one sorted list has nothing that the other one has not, as often.
fn is_within(part: &[u32], whole: &[u32]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|item| whole.any(|other| other == item))
}
