//! Which transactions are settled, and what is kept of them.

use std::borrow::Cow;

use isolario_model::{History, KeyId, Op, OpId, OpKind, Outcome, Point, TxnId, Value, Witness};
use rustc_hash::FxHashMap;

/// What is kept of all settled transactions.
#[derive(Clone, Debug, Default)]
pub(super) struct Settled {
    /// By key, its current value, if a settled transaction wrote it.
    current: Vec<Option<Value>>,
    /// When the last of them started.
    pub(super) latest_start: Option<i64>,
}

impl Settled {
    pub(super) fn is_empty(&self) -> bool {
        self.current.is_empty()
    }

    /// How many keys there may be with a current value.
    pub(super) fn len(&self) -> usize {
        self.current.len()
    }

    /// The current value of a key that a settled transaction wrote.
    pub(super) fn current(&self, key: u32) -> Option<&Value> {
        self.current.get(key as usize)?.as_ref()
    }

    /// Adds the settled transactions of what was looked at, where the keys have these numbers.
    pub(super) fn extend(&mut self, history: &History, keys: &[u32], cut: &Cut<'_>) {
        let latest_start = cut.settled().iter().map(|txn| history.start(*txn)).max();
        self.latest_start = self.latest_start.max(latest_start.flatten());
        let mut last: Vec<Option<OpId>> = vec![None; history.key_count()];
        // From the end on, until the last version of each key is found.
        let mut missing = history.key_count();
        for txn in cut.settled().iter().rev() {
            if missing == 0 {
                break;
            }
            for op in history.txn_ops(*txn).rev().filter(|op| is(OpKind::Write, history, *op)) {
                let last = &mut last[history.op_keys()[op.index()].index()];
                missing -= usize::from(last.is_none());
                last.get_or_insert(op);
            }
        }
        for (key, last) in keys.iter().zip(last) {
            let Some(write) = last else { continue };
            let Op::Write { value, .. } = history.op(write) else { continue };
            let key = *key as usize;
            if self.current.len() <= key {
                self.current.resize(key + 1, None);
            }
            self.current[key] = Some(history.value(value).to_owned());
        }
    }
}

#[inline]
fn is(kind: OpKind, history: &History, op: OpId) -> bool {
    history.op_kinds()[op.index()] == kind
}

/// Nowhere in the order.
const NOWHERE: u32 = u32::MAX;

/// A cut through the order by which a history satisfies a level.
pub(super) struct Cut<'w> {
    /// The transactions of the order, by their commits.
    order: Cow<'w, [TxnId]>,
    /// By transaction, where it starts, if that is not where it commits.
    starts: Vec<u32>,
    /// By transaction, where it commits.
    commits: Vec<u32>,
    /// How long the order is.
    end: u32,
    /// What commits before this place is settled.
    place: u32,
}

impl<'w> Cut<'w> {
    /// Cuts at the last place that leaves `tail` transactions after it, that is in nobody's life, and
    /// where everybody after it saw, of what was written before it, current versions alone.
    /// Transactions that wait for their writers are after every place. Those of unknown outcome that
    /// nobody has seen are kept, but hold nothing up: what they saw counts only if somebody sees them.
    pub(super) fn new(history: &History, witness: &'w Witness, tail: usize) -> Cut<'w> {
        let mut cut = Cut::nowhere(history, witness);
        let mut barriers = Barriers::new(cut.end);
        if !cut.starts.is_empty() {
            for txn in cut.order.iter() {
                barriers.forbid(cut.starts[txn.index()], cut.commits[txn.index()]);
            }
        }
        let old = cut.old_reads(history, witness);
        let versions = Versions::of(&old, history, &cut);
        for (read, place) in old {
            if let Some(overwritten) = versions.overwritten(history, read) {
                barriers.forbid(overwritten, place);
            }
        }
        let points_per_txn = cut.end as usize / cut.order.len().max(1);
        cut.place = barriers.last_gap((cut.end as usize).saturating_sub(tail * points_per_txn));
        cut
    }

    /// The order, not yet cut. Where it is open what reads saw, there is none, and everything stays.
    fn nowhere(history: &History, witness: &'w Witness) -> Cut<'w> {
        let nowhere = || vec![NOWHERE; history.txn_count()];
        let order = Cow::Borrowed(&[][..]);
        let mut cut = Cut { order, starts: Vec::new(), commits: nowhere(), end: 0, place: 0 };
        match witness {
            Witness::CommitOrder(txns) => {
                (0..).zip(txns).for_each(|(place, txn)| cut.commits[txn.index()] = place);
                (cut.order, cut.end) = (Cow::Borrowed(txns.as_slice()), txns.len() as u32);
            }
            Witness::Points(points) => {
                cut.starts = nowhere();
                cut.end = points.len() as u32;
                let mut order = Vec::with_capacity(points.len() / 2);
                for (place, point) in (0..).zip(points) {
                    match point {
                        Point::Start(txn) => cut.starts[txn.index()] = place,
                        Point::Commit(txn) => {
                            cut.commits[txn.index()] = place;
                            order.push(*txn);
                        }
                    }
                }
                cut.order = Cow::Owned(order);
            }
            _ => {}
        }
        cut
    }

    /// Where a transaction starts.
    #[inline]
    fn start(&self, txn: TxnId) -> u32 {
        if self.starts.is_empty() { self.commits[txn.index()] } else { self.starts[txn.index()] }
    }

    fn is_ordered(&self, txn: TxnId) -> bool {
        self.commits[txn.index()] != NOWHERE
    }

    pub(super) fn is_settled(&self, txn: TxnId) -> bool {
        self.commits[txn.index()] < self.place
    }

    /// The settled ones, in order.
    fn settled(&self) -> &[TxnId] {
        &self.order[..self.order.partition_point(|txn| self.is_settled(*txn))]
    }

    /// The reads that saw another version than the last one before their place, and these places. One
    /// sweep through the order finds them, and they are few: most reads are of the last version, and
    /// need not be looked up.
    fn old_reads(&self, history: &History, witness: &Witness) -> Vec<(OpId, u32)> {
        let (kinds, keys, words) =
            (history.op_kinds(), history.op_keys(), history.encoded_values());
        // What nobody has read or written is nobody's last version.
        let mut last =
            vec![history.encoded_initial_version().unwrap_or(u64::MAX); history.key_count()];
        let mut old = Vec::new();
        let look = |txn: TxnId, place: u32, last: &[u64], old: &mut Vec<(OpId, u32)>| {
            for op in history.op_range(txn) {
                if kinds[op] == OpKind::Read && last[keys[op].index()] != words[op] {
                    old.push((OpId::at(op), place));
                }
            }
        };
        let write = |txn: TxnId, last: &mut [u64]| {
            for op in history.op_range(txn) {
                if kinds[op] == OpKind::Write {
                    last[keys[op].index()] = words[op];
                }
            }
        };
        for_each_point(witness, |point| match point {
            Moment::Start(txn) => look(txn, self.start(txn), &last, &mut old),
            Moment::Commit(txn) => write(txn, &mut last),
            Moment::Both(txn) => {
                look(txn, self.start(txn), &last, &mut old);
                write(txn, &mut last);
            }
        });
        let waits =
            |txn: &TxnId| !self.is_ordered(*txn) && history.outcome(*txn) == Outcome::Committed;
        history.txns().filter(waits).for_each(|txn| look(txn, self.end, &last, &mut old));
        old
    }
}

/// A moment of an order.
pub(super) enum Moment {
    Start(TxnId),
    Commit(TxnId),
    /// At levels that do not tell the two apart.
    Both(TxnId),
}

pub(super) fn for_each_point(witness: &Witness, mut take: impl FnMut(Moment)) {
    match witness {
        Witness::CommitOrder(txns) => txns.iter().for_each(|txn| take(Moment::Both(*txn))),
        Witness::Points(points) => points.iter().for_each(|point| match point {
            Point::Start(txn) => take(Moment::Start(*txn)),
            Point::Commit(txn) => take(Moment::Commit(*txn)),
        }),
        _ => {}
    }
}

/// Whether an order of commits fails to show the level of what is read by the values alone: where
/// several transactions wrote a value to a key, a proof takes the last of them before the reader for the
/// one that was read from. A read of the current version was checked as one of a settled write, although
/// a kept transaction may have written the same value since. To take that one adds to what is visible to the
/// reader and to later transactions, which matters only to reads of versions that were overwritten.
/// `current` is the current value of each key, as it is encoded.
pub(super) fn needs_sources(
    history: &History,
    current: &[u64],
    order: impl Iterator<Item = TxnId>,
) -> bool {
    let (kinds, keys, values) = (history.op_kinds(), history.op_keys(), history.encoded_values());
    let repeats = |op: usize| kinds[op] == OpKind::Write && values[op] == current[keys[op].index()];
    let Some(initial) = history.encoded_initial_version().filter(|_| (0..kinds.len()).any(repeats))
    else {
        return false;
    };
    let mut last = vec![initial; history.key_count()];
    let mut is_repeated = vec![false; history.key_count()];
    let mut reads_repeated = false;
    for txn in order {
        let mut reads_old = false;
        for op in history.op_range(txn) {
            let key = keys[op].index();
            match kinds[op] {
                OpKind::Write => last[key] = if repeats(op) { initial } else { values[op] },
                OpKind::Read => {
                    reads_repeated |= is_repeated[key] && values[op] == initial;
                    reads_old |= values[op] != last[key];
                }
                _ => {}
            }
        }
        if reads_repeated && reads_old {
            return true;
        }
        for op in history.op_range(txn).filter(|op| kinds[*op] == OpKind::Write) {
            is_repeated[keys[op].index()] |= last[keys[op].index()] == initial;
        }
    }
    false
}

/// Where an order must not be cut.
struct Barriers {
    /// By place, how many more barriers there are than at the place before.
    change: Vec<i32>,
}

impl Barriers {
    fn new(end: u32) -> Barriers {
        Barriers { change: vec![0; end as usize + 2] }
    }

    /// Forbids cuts that have one place before and another, later one after them.
    fn forbid(&mut self, before: u32, after: u32) {
        if before < after {
            self.change[before as usize + 1] += 1;
            self.change[after as usize + 1] -= 1;
        }
    }

    /// The last cut up to this one that is not forbidden; before everything there is one.
    fn last_gap(&self, limit: usize) -> u32 {
        let mut barriers = 0;
        let mut last = 0;
        for (place, change) in self.change.iter().enumerate().take(limit + 1) {
            barriers += change;
            if barriers == 0 {
                last = place;
            }
        }
        last as u32
    }
}

/// The versions that an order has of the keys of some reads.
struct Versions {
    /// Where each is written, by key and place.
    places: Vec<(KeyId, u32)>,
    /// Where a value of a key is written.
    written: FxHashMap<(KeyId, u64), u32>,
    initial: Option<u64>,
}

impl Versions {
    fn of(reads: &[(OpId, u32)], history: &History, cut: &Cut<'_>) -> Versions {
        let mut is_wanted = vec![false; history.key_count()];
        reads.iter().for_each(|(op, _)| is_wanted[history.op_keys()[op.index()].index()] = true);
        let (mut places, mut written) = (Vec::new(), FxHashMap::default());
        for txn in cut.order.iter().filter(|_| !reads.is_empty()) {
            let place = cut.commits[txn.index()];
            for op in history.txn_ops(*txn).filter(|op| is(OpKind::Write, history, *op)) {
                let key = history.op_keys()[op.index()];
                if is_wanted[key.index()] {
                    places.push((key, place));
                    written.insert((key, history.encoded_version(op)), place);
                }
            }
        }
        places.sort_unstable();
        Versions { places, written, initial: history.encoded_initial_version() }
    }

    /// Where what a read saw is overwritten.
    fn overwritten(&self, history: &History, read: OpId) -> Option<u32> {
        let (key, word) = (history.op_keys()[read.index()], history.encoded_version(read));
        let after = match self.initial == Some(word) {
            true => 0,
            false => self.written.get(&(key, word))? + 1,
        };
        let next = self.places.partition_point(|version| *version < (key, after));
        self.places.get(next).filter(|(of, _)| *of == key).map(|(_, place)| *place)
    }
}
