//! What may have happened: every choice of outcomes for the unknown transactions, and every
//! assignment of the reads of those that committed to the writes they may have seen.

use isolario_model::{Level, Outcome, SessionId, StatedOrder, TxnId};

use crate::Options;
use crate::guaranteed::{Access, Follows, follows};
use crate::small::{MAX_TXNS, Read, Seen, Small, Txns, Write, bit, members};
use crate::views::{View, views};

/// A read that did not return its own transaction's write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExternalRead<'w> {
    pub(crate) reader: usize,
    pub(crate) key: usize,
    pub(crate) saw: &'w View,
}

/// One way in which things may have happened, up to the commit order.
#[derive(Clone, Debug)]
pub(crate) struct World<'w> {
    /// Who committed.
    pub(crate) committed: Txns,
    /// The external reads, in program order within each reader.
    pub(crate) reads: Vec<ExternalRead<'w>>,
    /// The appends of those that committed, in program order within each transaction.
    pub(crate) appends: Vec<Write>,
    /// Who wrote each key, among the committed.
    pub(crate) writers: Vec<Txns>,
    /// Per transaction, those before it by session order, and by real time if the level has it:
    /// what a commit order must respect and what is visible at once.
    pub(crate) given: [Txns; MAX_TXNS],
    /// Per transaction, those before it because somebody states it.
    pub(crate) stated: [Txns; MAX_TXNS],
    /// What is assumed of every register says this of its versions.
    pub(crate) assumed: Vec<Follows>,
}

/// Whether some world satisfies a condition.
pub(crate) fn any(
    small: &Small,
    level: Level,
    options: Options,
    stated: &[StatedOrder],
    holds: impl Fn(&World) -> bool,
) -> bool {
    let all_views: Vec<Vec<View>> = small.reads.iter().map(|read| views(small, read)).collect();
    outcomes(small).any(|committed| {
        let Some(stated) = stated_order(stated, committed) else { return false };
        let given = given_order(small, level, options, committed);
        let (reads, choices): (Vec<&Read>, Vec<Vec<&View>>) = small
            .reads
            .iter()
            .zip(&all_views)
            .filter(|(read, _)| committed & bit(read.txn) != 0)
            .map(|(read, views)| (read, views.iter().filter(|v| is_there(v, committed)).collect()))
            .unzip();
        some_acyclic_choice(&reads, &choices, &mut Vec::new(), &given, &|chosen| {
            have_one_initial_value(&reads, chosen)
                && holds(&World {
                    assumed: follows(small, options, &accesses(small, committed, &reads, chosen)),
                    ..World::new(small, committed, given, stated, &reads, chosen)
                })
        })
    })
}

/// As [`some_choice`], of what reads saw: leaves out early what no level allows that orders commits,
/// where who was read from comes after the reader.
fn some_acyclic_choice<'v>(
    reads: &[&Read],
    lists: &[Vec<&'v View>],
    chosen: &mut Vec<&'v View>,
    before: &[Txns; MAX_TXNS],
    test: &dyn Fn(&[&'v View]) -> bool,
) -> bool {
    let Some(list) = lists.get(chosen.len()) else { return test(chosen) };
    list.iter().any(|view| {
        let mut before = *before;
        if let View::Txn(writer) = view {
            before[reads[chosen.len()].txn] |= bit(*writer);
        }
        chosen.push(view);
        let found = is_acyclic(&before) && some_acyclic_choice(reads, lists, chosen, &before, test);
        chosen.pop();
        found
    })
}

/// Whether transactions can be taken one after the other, each after those before it.
fn is_acyclic(before: &[Txns; MAX_TXNS]) -> bool {
    let all = Txns::MAX >> (Txns::BITS as usize - MAX_TXNS);
    let mut taken: Txns = 0;
    loop {
        let is_next = |txn: &usize| before[*txn] & !taken == 0;
        let next = members(all & !taken).filter(is_next).fold(0, |set, txn| set | bit(txn));
        match next {
            0 => return taken == all,
            _ => taken |= next,
        }
    }
}

/// Every set of transactions that may be the committed ones.
pub(crate) fn outcomes(small: &Small) -> impl Iterator<Item = Txns> {
    let (committed, unknown) =
        (small.with_outcome(Outcome::Committed), small.with_outcome(Outcome::Unknown));
    (0..=unknown).filter(move |kept| kept & !unknown == 0).map(move |kept| committed | kept)
}

/// Whether some choice of one item per list passes a test.
pub(crate) fn some_choice<T: Copy>(
    lists: &[Vec<T>],
    chosen: &mut Vec<T>,
    test: &dyn Fn(&[T]) -> bool,
) -> bool {
    let Some(list) = lists.get(chosen.len()) else { return test(chosen) };
    list.iter().any(|item| {
        chosen.push(*item);
        let found = some_choice(lists, chosen, test);
        chosen.pop();
        found
    })
}

/// Whether the writer that a view is about committed.
fn is_there(view: &View, committed: Txns) -> bool {
    match view {
        View::Txn(writer) => committed & bit(*writer) != 0,
        View::Own | View::Init | View::List(_) => true,
    }
}

/// A key has one initial value, also where it may be any that nobody wrote.
fn have_one_initial_value(reads: &[&Read], chosen: &[&View]) -> bool {
    let mut initial: Vec<(usize, u64)> = Vec::new();
    for (read, view) in reads.iter().zip(chosen) {
        if let (View::Init, Seen::Version(word)) = (view, read.seen) {
            initial.push((read.key, word));
        }
    }
    initial.iter().all(|(key, word)| initial.iter().all(|(k, w)| k != key || w == word))
}

/// Session order, and real time where the level has it. Nothing follows a transaction of unknown
/// outcome by either.
pub(crate) fn given_order(
    small: &Small,
    level: Level,
    options: Options,
    committed: Txns,
) -> [Txns; MAX_TXNS] {
    let history = small.history;
    let in_time = level.shape().real_time;
    let in_sessions = options.session_order && level.shape().session_order;
    let session = |txn: usize| -> SessionId { history.session_of(TxnId::at(txn)) };
    let precedes = |a: usize, b: usize| {
        let in_session = in_sessions && a < b && session(a) == session(b);
        let skew = i128::from(options.clock_skew);
        let finish = history.finish(TxnId::at(a)).map(|finish| i128::from(finish) + skew);
        let start = history.start(TxnId::at(b)).map(|start| i128::from(start) - skew);
        let in_real_time = in_time && finish.zip(start).is_some_and(|(end, start)| end < start);
        small.outcomes[a] == Outcome::Committed && (in_session || in_real_time)
    };
    let mut before = [0; MAX_TXNS];
    for b in members(committed) {
        before[b] = members(committed).filter(|a| precedes(*a, b)).fold(0, |set, a| set | bit(a));
    }
    before
}

/// The accesses to registers of those that committed.
fn accesses(small: &Small, committed: Txns, reads: &[&Read], chosen: &[&View]) -> Vec<Access> {
    let read = |(read, saw): (&&Read, &&View)| {
        let version = match saw {
            View::Txn(writer) => Some(*writer),
            View::Init => None,
            View::Own | View::List(_) => return None,
        };
        Some(Access { txn: read.txn, at: read.at, key: read.key, version })
    };
    let is_write = |write: &&Write| committed & bit(write.txn) != 0 && !write.appends;
    let writes = small.writes.iter().filter(is_write);
    let write = |w: &Write| Access { txn: w.txn, at: w.at, key: w.key, version: Some(w.txn) };
    reads.iter().zip(chosen).filter_map(read).chain(writes.map(write)).collect()
}

/// Of those writers that committed, each comes before the next. None where a statement has the
/// initial version after another one: no order agrees with that.
pub(crate) fn stated_order(stated: &[StatedOrder], committed: Txns) -> Option<[Txns; MAX_TXNS]> {
    let mut before = [0; MAX_TXNS];
    for order in stated {
        let mut last = None;
        for writer in &order.writers {
            if writer.is_init() {
                if last.is_some() {
                    return None;
                }
                continue;
            }
            let writer = writer.index();
            if committed & bit(writer) != 0 {
                before[writer] |= last.filter(|last| *last != writer).map_or(0, bit);
                last = Some(writer);
            }
        }
    }
    Some(before)
}

impl<'w> World<'w> {
    fn new(
        small: &Small,
        committed: Txns,
        given: [Txns; MAX_TXNS],
        stated: [Txns; MAX_TXNS],
        reads: &[&Read],
        chosen: &[&'w View],
    ) -> World<'w> {
        let writes = || small.writes.iter().filter(|write| committed & bit(write.txn) != 0);
        let mut writers = vec![0; small.history.key_count()];
        writes().for_each(|write| writers[write.key] |= bit(write.txn));
        let external = |(read, saw): (&&Read, &&'w View)| {
            let (reader, key) = (read.txn, read.key);
            (**saw != View::Own).then_some(ExternalRead { reader, key, saw })
        };
        World {
            committed,
            reads: reads.iter().zip(chosen).filter_map(external).collect(),
            appends: writes().filter(|write| write.appends).copied().collect(),
            writers,
            given,
            stated,
            assumed: Vec::new(),
        }
    }
}
