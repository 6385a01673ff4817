//! Causal consistency (AWDIT, Definition 2.8): visible is everything a transaction depends on,
//! through sessions and reads, however far back.

use std::cell::OnceCell;

use isolario_model::{KeyId, Outcome, TxnId};

use crate::Refusal;
use crate::order::{ExternalRead, ExternalReads, Order};

/// Replays the order with a vector clock per transaction: O(n·k) for k lanes, with a logarithm where
/// reads miss many writes.
pub(crate) fn verify(order: &Order<'_, '_>) -> Result<(), Refusal> {
    let reads = order.all_external_reads()?;
    let lanes = Lanes::new(order);
    let mut clocks = Clocks::new(order, &lanes, &reads);
    let mut writers = Writers::new(order, &lanes);
    for (place, txn) in order.txns.iter().enumerate() {
        let clock = clocks.at(*txn, reads.at(place));
        for read in reads.at(place) {
            if writers.is_missed(order.facts.key(read.read), order.place(read.from), &clock) {
                return Err(Refusal::Missed { reader: *txn, read: read.read });
            }
        }
        writers.add(*txn);
        clocks.keep(*txn, clock);
    }
    Ok(())
}

/// Transactions in lanes: those of a lane depend on each other in turn. A session is a lane; a
/// transaction that nothing follows by session order is one of its own.
struct Lanes {
    /// Per transaction, its lane and its position there.
    of: Vec<(u32, u32)>,
    /// Per transaction, the one before it in its session that it depends on.
    before: Vec<Option<TxnId>>,
    count: usize,
}

impl Lanes {
    fn new(order: &Order<'_, '_>) -> Self {
        let history = order.facts.history;
        let mut lanes = Lanes {
            of: vec![(0, 0); history.txn_count()],
            before: order.facts.session_predecessors(),
            count: 0,
        };
        for txn in history.txns().filter(|txn| order.contains(*txn)) {
            let continues = history.outcome(txn) == Outcome::Committed;
            let last = lanes.before[txn.index()].filter(|_| continues);
            lanes.of[txn.index()] = match last.map(|last| lanes.of[last.index()]) {
                Some((lane, position)) => (lane, position + 1),
                None => lanes.new_lane(),
            };
        }
        lanes
    }

    fn new_lane(&mut self) -> (u32, u32) {
        self.count += 1;
        (self.count as u32 - 1, 0)
    }
}

/// Per lane, how many of its transactions one depends on.
type Clock = Box<[u32]>;

/// The clocks that are still needed.
struct Clocks<'l> {
    lanes: &'l Lanes,
    /// Per transaction, its clock, itself included, while others will ask for it.
    kept: Vec<Option<Clock>>,
    /// Per transaction, how many will.
    uses: Vec<u32>,
}

impl<'l> Clocks<'l> {
    fn new(order: &Order<'_, '_>, lanes: &'l Lanes, reads: &ExternalReads) -> Self {
        let mut uses = vec![0; lanes.of.len()];
        for (place, txn) in order.txns.iter().enumerate() {
            let sources = sources(*txn, lanes, reads.at(place));
            sources.for_each(|source| uses[source.index()] += 1);
        }
        Clocks { lanes, kept: vec![None; lanes.of.len()], uses }
    }

    /// The clock of a transaction, itself left out: all that is visible to it.
    fn at(&mut self, txn: TxnId, reads: &[ExternalRead]) -> Clock {
        let mut clock: Option<Clock> = None;
        for source in sources(txn, self.lanes, reads) {
            let uses = &mut self.uses[source.index()];
            *uses -= 1;
            let other = &mut self.kept[source.index()];
            match (&mut clock, &*other) {
                (Some(clock), Some(other)) => {
                    clock.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
                }
                // The last to ask may have it.
                (None, Some(_)) if *uses == 0 => clock = other.take(),
                (None, Some(other)) => clock = Some(other.clone()),
                (_, None) => {}
            }
            if *uses == 0 {
                *other = None;
            }
        }
        clock.unwrap_or_else(|| vec![0; self.lanes.count].into_boxed_slice())
    }

    fn keep(&mut self, txn: TxnId, mut clock: Clock) {
        if self.uses[txn.index()] > 0 {
            let (lane, position) = self.lanes.of[txn.index()];
            clock[lane as usize] = position + 1;
            self.kept[txn.index()] = Some(clock);
        }
    }
}

/// What a transaction depends on at once.
fn sources<'a>(
    txn: TxnId,
    lanes: &Lanes,
    reads: &'a [ExternalRead],
) -> impl Iterator<Item = TxnId> + use<'a> {
    let from = reads.iter().map(|read| read.from).filter(|from| !from.is_init());
    lanes.before[txn.index()].into_iter().chain(from)
}

/// Who has written each key so far, the last first.
struct Writers<'o, 'f, 'h> {
    order: &'o Order<'f, 'h>,
    lanes: &'o Lanes,
    writes: Vec<Written>,
    /// Per key, one more than the place of its last write among the writes; 0 if there is none.
    last: Vec<u32>,
    by_lane: OnceCell<ByLane>,
}

struct Written {
    place: u32,
    lane: u32,
    position: u32,
    /// The write of the key before it, as in `last`.
    before: u32,
}

impl<'o, 'f, 'h> Writers<'o, 'f, 'h> {
    fn new(order: &'o Order<'f, 'h>, lanes: &'o Lanes) -> Self {
        let last = vec![0; order.facts.history.key_count()];
        Writers { order, lanes, writes: Vec::new(), last, by_lane: OnceCell::new() }
    }

    fn add(&mut self, txn: TxnId) {
        let ((lane, position), place) = (self.lanes.of[txn.index()], self.order.place(txn));
        for key in self.order.facts.written(txn) {
            let next = self.writes.len() as u32 + 1;
            let before = std::mem::replace(&mut self.last[key.index()], next);
            self.writes.push(Written { place, lane, position, before });
        }
    }

    /// Whether a write of the key that is newer than a place in the order is visible. Mostly there
    /// are few newer ones, and going back through them finds the place; where there are more than
    /// lanes, it is faster to ask lane by lane.
    fn is_missed(&self, key: KeyId, place: u32, clock: &Clock) -> bool {
        let mut at = self.last[key.index()];
        for _ in 0..=self.lanes.count {
            let Some(write) = at.checked_sub(1).map(|at| &self.writes[at as usize]) else {
                return false;
            };
            if write.place <= place {
                return false;
            }
            if write.position < clock[write.lane as usize] {
                return true;
            }
            at = write.before;
        }
        let by_lane = self.by_lane.get_or_init(|| ByLane::new(self.order, self.lanes));
        by_lane.last_visible(key, clock) > place
    }
}

/// A write of a key, by the position of its transaction in its lane and its place in the order.
type Row = (KeyId, u32, u32, u32);

/// Who writes each key, lane by lane.
struct ByLane {
    /// Key, lane, position and place of each writer, sorted.
    rows: Vec<Row>,
    /// Where the rows of each key and lane end, in the same order.
    run_ends: Vec<u32>,
    /// Per key, where its runs end.
    key_ends: Vec<u32>,
}

impl ByLane {
    fn new(order: &Order<'_, '_>, lanes: &Lanes) -> Self {
        let mut rows = Vec::new();
        for txn in order.txns {
            let ((lane, position), place) = (lanes.of[txn.index()], order.place(*txn));
            let keys = order.facts.written(*txn);
            rows.extend(keys.iter().map(|key| (*key, lane, position, place)));
        }
        rows.sort_unstable();
        ByLane::of_sorted(rows, order.facts.history.key_count())
    }

    fn of_sorted(rows: Vec<Row>, key_count: usize) -> Self {
        let mut run_ends = Vec::new();
        let mut key_ends = vec![0; key_count];
        let mut end = 0;
        for run in rows.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
            end += run.len() as u32;
            run_ends.push(end);
            key_ends[run[0].0.index()] = run_ends.len() as u32;
        }
        // Keys that nobody writes end where the ones before them do.
        let mut last = 0;
        for end in &mut key_ends {
            last = last.max(*end);
            *end = last;
        }
        ByLane { rows, run_ends, key_ends }
    }

    /// The last place of a visible writer of a key. Places grow along a lane, so of each lane only
    /// the last visible writer matters.
    fn last_visible(&self, key: KeyId, clock: &Clock) -> u32 {
        let begin = |ends: &[u32], at: usize| at.checked_sub(1).map_or(0, |at| ends[at] as usize);
        let runs = begin(&self.key_ends, key.index())..self.key_ends[key.index()] as usize;
        let mut last = 0;
        for run in runs {
            let run = &self.rows[begin(&self.run_ends, run)..self.run_ends[run] as usize];
            let seen = clock[run[0].1 as usize];
            let visible = run.partition_point(|(_, _, position, _)| *position < seen);
            if let Some(newest) = visible.checked_sub(1) {
                last = last.max(run[newest].3);
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_lane_the_last_visible_writer_counts() {
        let k = KeyId(3);
        let rows =
            vec![(KeyId(2), 0, 0, 9), (k, 0, 0, 1), (k, 0, 2, 5), (k, 1, 1, 4), (k, 1, 2, 7)];
        let writers = ByLane::of_sorted(rows, 5);
        let last = |clock: [u32; 2]| writers.last_visible(k, &Box::from(clock));
        assert_eq!(last([0, 0]), 0);
        assert_eq!(last([2, 0]), 1);
        assert_eq!(last([3, 0]), 5);
        assert_eq!(last([1, 2]), 4);
        assert_eq!(last([3, 3]), 7);
        let other = |key| writers.last_visible(KeyId(key), &Box::from([9, 9]));
        assert_eq!([0, 1, 2, 4].map(other), [0, 0, 9, 0]);
    }
}
