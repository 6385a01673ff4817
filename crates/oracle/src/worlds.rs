//! What may have happened: every choice of outcomes for the unknown transactions, and every
//! resolution of the reads of those that committed.

use isolario_model::{Level, Outcome, SessionId, StatedOrder, TxnId};

use crate::Options;
use crate::small::{MAX_TXNS, Small, Txns, Write, bit, members};
use crate::views::{Source, View, views};

/// A read from another transaction or from the initial state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExternalRead {
    pub(crate) reader: usize,
    pub(crate) key: usize,
    /// The transaction it read from; none for `init`.
    pub(crate) from: Option<usize>,
}

/// One way in which things may have happened, up to the commit order.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// Who committed.
    pub(crate) committed: Txns,
    /// The external reads, in program order within each reader.
    pub(crate) reads: Vec<ExternalRead>,
    /// Who wrote each key, among the committed.
    pub(crate) writers: Vec<Txns>,
    /// Per transaction, those before it by session order, write-read, and real time if the level
    /// has it: what a commit order must respect and what is visible at once.
    pub(crate) direct: [Txns; MAX_TXNS],
    /// Per transaction, those before it because a list shows their elements in this order, or
    /// because somebody states it.
    pub(crate) listed: [Txns; MAX_TXNS],
}

/// Whether some world satisfies a condition.
pub(crate) fn any(
    small: &Small,
    level: Level,
    options: Options,
    holds: impl Fn(&World) -> bool,
) -> bool {
    let all_views: Vec<Vec<View>> = small.reads.iter().map(|read| views(small, read)).collect();
    outcomes(small).any(|committed| {
        let reads: Vec<usize> = (0..small.reads.len())
            .filter(|read| committed & bit(small.reads[*read].txn) != 0)
            .collect();
        let order = given_order(small, level, options, committed);
        let has_committed = |view: &&View| view.needs & !committed == 0;
        let choices: Vec<Vec<&View>> = reads
            .iter()
            .map(|read| all_views[*read].iter().filter(has_committed).collect())
            .collect();
        some_choice(&choices, &mut Vec::new(), &|chosen| {
            lists_agree(small, &reads, chosen)
                && holds(&world(small, committed, order, &reads, chosen))
        })
    })
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

/// Session order, and real time where the level has it. Nothing follows a transaction of unknown
/// outcome by either (DESIGN, 4.4).
fn given_order(small: &Small, level: Level, options: Options, committed: Txns) -> [Txns; MAX_TXNS] {
    let history = small.history;
    let in_time = level.implies(Level::StrongSnapshotIsolation);
    let session = |txn: usize| -> SessionId { history.session_of(TxnId::at(txn)) };
    let precedes = |a: usize, b: usize| {
        let in_session = options.session_order && a < b && session(a) == session(b);
        let skew = i128::from(options.clock_skew);
        let began = history.start(TxnId::at(a));
        // A finish before the own start tells nothing.
        let finish = history.finish(TxnId::at(a)).filter(|end| began.is_none_or(|at| at <= *end));
        let finish = finish.map(|finish| i128::from(finish) + skew);
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

/// Of any two reads of a list, one must be a prefix of the other, the readers' own appends left
/// out.
fn lists_agree(small: &Small, reads: &[usize], chosen: &[&View]) -> bool {
    let appends = |at: usize| -> Vec<usize> { chosen[at].appends.iter().map(|w| w.at).collect() };
    (0..reads.len()).all(|a| {
        (0..a).filter(|b| small.reads[reads[a]].key == small.reads[reads[*b]].key).all(|b| {
            let (one, other) = (appends(a), appends(b));
            one.starts_with(&other) || other.starts_with(&one)
        })
    })
}

fn world(
    small: &Small,
    committed: Txns,
    order: [Txns; MAX_TXNS],
    reads: &[usize],
    chosen: &[&View],
) -> World {
    let mut world = World {
        committed,
        reads: Vec::with_capacity(reads.len()),
        writers: vec![0; small.history.key_count()],
        direct: order,
        listed: [0; MAX_TXNS],
    };
    for write in small.writes.iter().filter(|write| committed & bit(write.txn) != 0) {
        world.writers[write.key] |= bit(write.txn);
    }
    for (read, view) in reads.iter().zip(chosen) {
        let (reader, key) = (small.reads[*read].txn, small.reads[*read].key);
        let from = match view.from {
            Source::Own => continue,
            Source::Init => None,
            Source::Txn(from) => Some(from),
        };
        world.reads.push(ExternalRead { reader, key, from });
        world.direct[reader] |= from.map_or(0, bit);
        world.order_by_list(&view.appends);
    }
    world
}

impl World {
    /// The same world with these orders of versions. Writers that did not commit do not count.
    pub(crate) fn stating(&self, stated: &[StatedOrder]) -> World {
        let mut world = self.clone();
        for order in stated {
            let writers = order.writers.iter().map(|txn| txn.index());
            let writers: Vec<usize> =
                writers.filter(|txn| self.committed & bit(*txn) != 0).collect();
            for pair in writers.windows(2).filter(|pair| pair[0] != pair[1]) {
                world.listed[pair[1]] |= bit(pair[0]);
            }
        }
        world
    }

    fn order_by_list(&mut self, appends: &[Write]) {
        for pair in appends.windows(2).filter(|pair| pair[0].txn != pair[1].txn) {
            self.listed[pair[1].txn] |= bit(pair[0].txn);
        }
    }
}
