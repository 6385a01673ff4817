//! Why calls have no order: few of them, which show it whatever the others did, and where they are
//! ones that a person would draw, the arrows that make a cycle.

use super::calls::Call;
use super::sources::{NONE, Sources};

/// Calls that cannot be put in order.
#[derive(Debug)]
pub(super) enum Conflict {
    /// A call found what nobody wrote.
    Nobody(u32),
    /// These have no order. The arrows are none where it would take arrows within arrows to say
    /// why one write came before another.
    NoOrder {
        /// The last to finish last: all that must have taken effect had by then.
        calls: Vec<u32>,
        cycle: Vec<Arrow>,
    },
}

/// One call came before another.
#[derive(Clone, Debug)]
pub(super) struct Arrow {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) why: Why,
}

impl Arrow {
    /// The arrows that it rests on.
    fn order(&self) -> &[Arrow] {
        match &self.why {
            Why::Missed(_, order) => order,
            Why::RealTime | Why::Found => &[],
        }
    }
}

/// Why it did.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// It had finished when the other one started.
    RealTime,
    /// The other one found what it wrote.
    Found,
    /// It found what this one wrote (or the initial state), and the other one wrote later: it
    /// replaced just that, unless there are arrows that say so.
    Missed(u32, Vec<Arrow>),
}

impl Conflict {
    fn no_order(sources: &Sources<'_>, mut calls: Vec<u32>, cycle: Option<Vec<Arrow>>) -> Conflict {
        let call = |at: &u32| &sources.calls[*at as usize];
        calls.sort_unstable_by_key(|at| (call(at).finish, call(at).start, *at));
        calls.dedup();
        // In a cycle everyone must have taken effect for certain.
        let must = |arrow: &Arrow| call(&arrow.from).must && call(&arrow.to).must;
        let is_certain = |arrow: &Arrow| must(arrow) && arrow.order().iter().all(must);
        let cycle = cycle.filter(|cycle| cycle.iter().all(is_certain)).unwrap_or_default();
        Conflict::NoOrder { calls, cycle }
    }

    /// A call contradicts itself.
    pub(super) fn alone(at: u32) -> Conflict {
        Conflict::NoOrder { calls: vec![at], cycle: Vec::new() }
    }

    /// Two calls replaced the same version.
    pub(super) fn both_replaced(sources: &Sources<'_>, one: u32, other: u32) -> Conflict {
        let writer = sources.source(one);
        let missed = |from, to| Arrow { from, to, why: Why::Missed(writer, Vec::new()) };
        let mut calls = [sources.shown(one), sources.shown(other)].concat();
        calls.extend(Some(writer).filter(|writer| *writer != NONE));
        let cycle = vec![missed(one, other), missed(other, one)];
        Conflict::no_order(sources, calls, Some(cycle))
    }

    /// Calls each of which replaced what the next one wrote.
    pub(super) fn cycle(sources: &Sources<'_>, cycle: &[u32]) -> Conflict {
        let arrows = cycle.iter().rev().map(|at| found(sources, *at)).collect();
        // If none of them took effect for certain, one that found what they wrote did.
        let shown = cycle.first().map(|at| sources.shown(*at)).unwrap_or_default();
        Conflict::no_order(sources, [cycle, &shown].concat(), Some(arrows))
    }

    /// The last call of a part of a block had finished before one that it follows started.
    pub(super) fn backwards(sources: &Sources<'_>, order: &[u32]) -> Conflict {
        let calls = sources.calls;
        let last = order.last().copied().unwrap_or_default();
        let is_late = |at: &u32| calls[*at as usize].start > calls[last as usize].finish;
        let nearest = order.iter().rposition(is_late).unwrap_or_default();
        let cycle = path(sources, order[nearest], last).map(|mut cycle| {
            cycle.push(Arrow { from: last, to: order[nearest], why: Why::RealTime });
            cycle
        });
        Conflict::no_order(sources, between(sources, &order[nearest..]), cycle)
    }

    /// Each of two blocks has a call that had finished before one of the other started.
    pub(super) fn crossing(sources: &Sources<'_>, blocks: &[Ends<'_>; 2]) -> Conflict {
        let mut calls = Vec::new();
        for block in blocks {
            let (first, last) =
                (block.first_at.min(block.last_at), block.first_at.max(block.last_at));
            calls.extend(between(sources, &block.order[first..=last]));
            calls.extend(sources.shown(block.last()));
        }
        let [one, other] = blocks;
        let cycle = overtaken(sources, one, other).or_else(|| overtaken(sources, other, one));
        Conflict::no_order(sources, calls, cycle)
    }
}

/// A block, and those of its calls that matter to other blocks.
pub(super) struct Ends<'o> {
    order: &'o [u32],
    /// Where the first one to finish stands. The initial state did so before anyone.
    first_at: usize,
    /// Where the last one to start stands.
    last_at: usize,
    is_initial: bool,
}

impl<'o> Ends<'o> {
    pub(super) fn new(calls: &[Call], order: &'o [u32], is_initial: bool) -> Self {
        let finish =
            |at: &usize| if is_initial { i64::MIN } else { calls[order[*at] as usize].finish };
        let start = |at: &usize| calls[order[*at] as usize].start;
        let first_at = (0..order.len()).min_by_key(finish).unwrap_or_default();
        let last_at = (0..order.len()).max_by_key(start).unwrap_or_default();
        Ends { order, first_at, last_at, is_initial }
    }

    fn first(&self) -> u32 {
        self.order[self.first_at]
    }

    fn last(&self) -> u32 {
        self.order[self.last_at]
    }
}

/// The last call of one block found a version that a write of the other block had replaced before.
fn overtaken(sources: &Sources<'_>, one: &Ends<'_>, other: &Ends<'_>) -> Option<Vec<Arrow>> {
    let call = |at: u32| &sources.calls[at as usize];
    let real_time = |from, to| Arrow { from, to, why: Why::RealTime };
    let (late, early) = (one.last(), other.first());
    let is_root = |at: u32| call(at).action.old_word().is_none();
    let write = if call(early).action.new_word().is_some() { early } else { sources.source(early) };
    if other.is_initial || is_root(late) || write == NONE {
        return None;
    }
    let writer = sources.source(late);
    let order = if writer == NONE {
        Vec::new()
    } else if one.is_initial {
        // The writer itself replaced the initial state, and so came before any other write.
        if sources.source(writer) != NONE {
            return None;
        }
        vec![Arrow { from: writer, to: write, why: Why::Missed(NONE, Vec::new()) }]
    } else {
        // The write, or one that it follows, started after something here had finished.
        let begin = if call(write).start > call(one.first()).finish { write } else { other.last() };
        let mut order = path(sources, writer, one.first())?;
        order.push(real_time(one.first(), begin));
        order.extend(path(sources, begin, write)?);
        order
    };
    let mut cycle = vec![Arrow { from: late, to: write, why: Why::Missed(writer, order) }];
    cycle.extend(path(sources, write, early)?);
    cycle.push(real_time(early, late));
    Some(cycle)
}

/// A call found what its source wrote.
fn found(sources: &Sources<'_>, at: u32) -> Arrow {
    Arrow { from: sources.source(at), to: at, why: Why::Found }
}

/// The arrows from a call to one that follows it in its block; none if it does not.
fn path(sources: &Sources<'_>, from: u32, to: u32) -> Option<Vec<Arrow>> {
    let mut arrows = Vec::new();
    let mut writer = from;
    if from != to && sources.calls[from as usize].action.new_word().is_none() {
        let source = sources.source(from);
        writer = sources.next(source)?;
        arrows.push(Arrow { from, to: writer, why: Why::Missed(source, Vec::new()) });
    }
    let begin = arrows.len();
    let mut at = to;
    while at != writer {
        let follows = sources.calls[at as usize].action.old_word().is_some();
        if !follows || sources.source(at) == NONE {
            return None;
        }
        arrows.push(found(sources, at));
        at = sources.source(at);
    }
    arrows[begin..].reverse();
    Some(arrows)
}

/// The first and the last call of a part of a block, and the writers that bind them together: that
/// of the version that the first one found, and all later ones.
fn between(sources: &Sources<'_>, part: &[u32]) -> Vec<u32> {
    let writes = |at: &u32| sources.calls[*at as usize].action.new_word().is_some();
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return Vec::new() };
    let source = if writes(first) { NONE } else { sources.source(*first) };
    let source = Some(source).filter(|source| *source != NONE);
    let writers = part.iter().filter(|at| writes(at)).copied();
    source.into_iter().chain([*first, *last]).chain(writers).collect()
}
