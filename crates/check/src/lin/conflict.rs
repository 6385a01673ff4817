//! Why calls have no order: few of them, which show it whatever the others did.

use super::calls::Call;
use super::sources::{NONE, Sources};

/// Calls that cannot be put in order.
#[derive(Debug)]
pub(super) enum Conflict {
    /// A call contradicts itself.
    Never(u32),
    /// A call found what nobody wrote.
    Nobody(u32),
    /// Two calls replaced the same version, of this writer; with those that show that they did.
    BothReplaced(Option<u32>, Vec<u32>),
    /// Calls that replaced each other in a circle.
    Circle(Vec<u32>),
    /// One call follows another by what they found, and had finished before that one started: all
    /// that lies between.
    Backwards(Vec<u32>),
    /// Each of two blocks of calls has one that had finished before one of the other started.
    Crossing(Vec<u32>),
}

impl Conflict {
    /// The last call of an order had finished before one that it follows started.
    pub(super) fn backwards(sources: &Sources<'_>, order: &[u32]) -> Conflict {
        let calls = sources.calls;
        let Some((last, before)) = order.split_last() else {
            return Conflict::Backwards(Vec::new());
        };
        let finish = calls[*last as usize].finish;
        let is_late = |at: &u32| calls[*at as usize].start > finish;
        let nearest = before.iter().rposition(is_late).unwrap_or_default();
        Conflict::Backwards(between(sources, &order[nearest..]))
    }

    /// Each of two blocks demands to precede the other; that of the initial state, which is marked,
    /// in any case.
    pub(super) fn crossing(sources: &Sources<'_>, blocks: [(bool, &[u32]); 2]) -> Conflict {
        let calls = sources.calls;
        let call = |at: &u32| &calls[*at as usize];
        let mut conflict = Vec::new();
        for (is_initial, block) in blocks {
            let first = (0..block.len())
                .min_by_key(|at| if is_initial { i64::MIN } else { call(&block[*at]).finish });
            let last = (0..block.len()).max_by_key(|at| call(&block[*at]).start);
            let (Some(first), Some(last)) = (first, last) else { continue };
            conflict.extend(between(sources, &block[first.min(last)..=first.max(last)]));
            conflict.extend(sources.shown(block[last]));
        }
        Conflict::Crossing(conflict)
    }

    /// The calls, each once, and the last to finish last: all that must have taken effect had by
    /// then.
    pub(super) fn into_calls(self, calls: &[Call]) -> Vec<u32> {
        let mut list = match self {
            Conflict::Never(at) | Conflict::Nobody(at) => vec![at],
            Conflict::BothReplaced(writer, by) => writer.into_iter().chain(by).collect(),
            Conflict::Circle(list) | Conflict::Backwards(list) | Conflict::Crossing(list) => list,
        };
        let finish = |at: &u32| (calls[*at as usize].finish, calls[*at as usize].start, *at);
        list.sort_unstable_by_key(finish);
        list.dedup();
        list
    }
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
