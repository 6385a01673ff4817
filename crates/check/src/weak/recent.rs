//! What causality demands of an order and the order does not give.
//!
//! A reader that read `x` from `t1` although it depends on `t2`, which wrote `x` too, demands that
//! `t2` comes before `t1`. An order denies that only if `t2` is between `t1` and the reader; and
//! where a database shows transactions the latest or nearly the latest versions, few writers of
//! `x` are. Those were recent when the reader ran. So instead of a clock that knows of every session
//! how much of it happened before, a row of bits knows which of the last few transactions of the
//! order did.
//!
//! What is too long ago for the bits is taken to have happened before: then more is demanded than
//! causality does, and an order that gives it is all the more a witness. One that does not may still
//! be one; that is for the clocks to say (see `causal`).

use std::ops::Range;

use isolario_model::{History, KeyId, TxnId};
use rayon::prelude::*;

use super::contradictions::Examined;
use crate::order::Demand;
use crate::resolved::Dependencies;

/// Transactions that the bits reach back, per session: one in progress there may have begun before
/// as many of others have ended.
const REACH_PER_SESSION: usize = 4;

/// Words of bits in a row, at least and at most.
const WORDS: (usize, usize) = (2, 64);

/// So many writers per operation may be looked at; more, and clocks are faster.
const STEPS_PER_OP: usize = 8;

/// Into how many parts the order is cut, if there are so many operations per key: every part has
/// tables of all keys.
const PARTS: usize = 8;
const OPS_PER_KEY: usize = 8;

/// What causality demands in vain; none if that takes too long to find out.
pub(crate) fn causal(examined: &Examined<'_>) -> Option<Vec<Demand>> {
    let history = examined.rule.dependencies.history;
    let in_parts = history.key_count() * OPS_PER_KEY <= history.op_count();
    let parts = Parts::new(history, if in_parts { PARTS } else { 1 });
    let walk = |part| Walk::new(*examined, &parts).along(&parts.part(part));
    let walked: Option<Vec<Walked>> = (0..parts.count).into_par_iter().map(walk).collect();
    Some(put_together(examined, walked?))
}

/// Answers the questions that parts have about those before them.
fn put_together(examined: &Examined<'_>, walked: Vec<Walked>) -> Vec<Demand> {
    let keys = examined.rule.dependencies.history.key_count();
    // Per key, the rank of the last write before the part at hand watches.
    let mut before = vec![0u32; keys];
    let mut found = Vec::new();
    for part in walked {
        found.extend(part.found);
        for (key, after) in part.open {
            let last = before[key.index()];
            if last > examined.rank(after) {
                found.push((examined.order.nodes()[last as usize - 1], after.0));
            }
        }
        before.iter_mut().zip(part.last).for_each(|(before, last)| *before = last.max(*before));
    }
    found
}

/// The order, cut into parts of about one size.
struct Parts {
    count: usize,
    txns: usize,
    /// Words of a row of bits.
    words: usize,
}

/// A part of the order, in places. It begins to watch a little earlier than it begins to judge, so
/// that it knows what is recent; and the next part begins to watch before it ends.
struct Part {
    watch: usize,
    judge: usize,
    next: usize,
    end: usize,
}

impl Parts {
    fn new(history: &History, count: usize) -> Self {
        let (low, high) = WORDS;
        let reach = history.session_count() * REACH_PER_SESSION;
        let words = reach.div_ceil(64).clamp(low, high).next_power_of_two();
        Parts { count, txns: history.txn_count(), words }
    }

    fn part(&self, number: usize) -> Part {
        let judge = |number: usize| self.txns * number / self.count;
        let watch = |number: usize| judge(number).saturating_sub(self.words * 64);
        Part {
            watch: watch(number),
            judge: judge(number),
            next: watch(number + 1).max(watch(number)),
            end: judge(number + 1),
        }
    }
}

/// What came out of a part.
struct Walked {
    found: Vec<Demand>,
    /// Reads of a key from somebody whom the part did not meet: writes before the part, and after
    /// that one, are in question.
    open: Vec<(KeyId, TxnId)>,
    /// Per key, the rank of the last write before the next part watches; zero for none.
    last: Vec<u32>,
}

/// No write.
const NONE: u32 = u32::MAX;

/// A write of a key, in the list of those that are earlier in the order.
struct Write {
    place: u32,
    /// The one before.
    previous: u32,
}

/// A walk along a part of the order.
struct Walk<'a> {
    examined: Examined<'a>,
    recent: Recent,
    /// Per key, its last write since the walk began.
    last: Vec<u32>,
    writes: Vec<Write>,
    /// How many writers may still be looked at.
    steps: usize,
    found: Vec<Demand>,
    open: Vec<(KeyId, TxnId)>,
}

impl<'a> Walk<'a> {
    fn new(examined: Examined<'a>, parts: &Parts) -> Self {
        let history = examined.rule.dependencies.history;
        Walk {
            examined,
            recent: Recent::new(parts.words),
            last: vec![NONE; history.key_count()],
            writes: Vec::with_capacity(history.op_count() / parts.count / 2),
            steps: STEPS_PER_OP * history.op_count() / parts.count,
            found: Vec::new(),
            open: Vec::new(),
        }
    }

    fn along(mut self, part: &Part) -> Option<Walked> {
        let mut last = self.last_ranks();
        for place in part.watch..part.end {
            if place == part.next {
                last = self.last_ranks();
            }
            let txn = TxnId(self.examined.order.nodes()[place]);
            if self.examined.rule.dependencies.reads.is_kept(txn) {
                self.watch(txn, place as u32);
                if place >= part.judge {
                    self.judge(txn, place as u32)?;
                }
                self.remember_writes(txn, place as u32);
            }
        }
        Some(Walked { found: self.found, open: self.open, last })
    }

    fn last_ranks(&self) -> Vec<u32> {
        let rank =
            |write: &u32| self.writes.get(*write as usize).map_or(0, |write| write.place + 1);
        self.last.iter().map(rank).collect()
    }

    fn watch(&mut self, txn: TxnId, place: u32) {
        self.recent.begin(place);
        let places = self.examined.order.places();
        self.examined.rule.dependencies.for_each_before(txn, |before| {
            self.recent.add(places[before as usize], place);
        });
    }

    /// None if too many writers were looked at.
    fn judge(&mut self, txn: TxnId, place: u32) -> Option<()> {
        let Dependencies { history, reads, .. } = self.examined.rule.dependencies;
        let mut within_limit = Some(());
        reads.for_each_writer(history.op_range(txn), |op, after| {
            let key = history.op_keys()[op];
            within_limit = within_limit.and_then(|()| self.compare(place, key, after));
        });
        within_limit
    }

    /// Goes back through the writers of a key to the one that was read from.
    #[inline]
    fn compare(&mut self, reader: u32, key: KeyId, after: TxnId) -> Option<()> {
        let rank = self.examined.rank(after);
        let mut at = self.last[key.index()];
        while let Some(write) = self.writes.get(at as usize) {
            if write.place < rank {
                return Some(());
            }
            if self.recent.may_precede(write.place, reader) {
                let before = self.examined.order.nodes()[write.place as usize];
                self.found.push((before, after.0));
            }
            at = write.previous;
            self.steps = self.steps.checked_sub(1)?;
        }
        self.open.push((key, after));
        Some(())
    }

    fn remember_writes(&mut self, txn: TxnId, place: u32) {
        for key in self.examined.rule.writes.of(txn) {
            let last = &mut self.last[key.index()];
            let previous = std::mem::replace(last, self.writes.len() as u32);
            self.writes.push(Write { place, previous });
        }
    }
}

/// For the last few places of the order, which of the places before them happened before.
struct Recent {
    words: usize,
    /// Rows by place, the newest in the place of the oldest. Bit `i` of a row stands for the place
    /// `i + 1` before its own.
    rows: Vec<u64>,
}

impl Recent {
    fn new(words: usize) -> Self {
        Recent { words, rows: vec![0; words * words * 64] }
    }

    /// How many places a row knows.
    fn reach(&self) -> usize {
        self.words * 64
    }

    fn row(&self, place: u32) -> Range<usize> {
        let first = (place as usize & (self.reach() - 1)) * self.words;
        first..first + self.words
    }

    /// Makes room for the row of a place.
    fn begin(&mut self, place: u32) {
        let row = self.row(place);
        self.rows[row].fill(0);
    }

    /// What happened before `before`, and `before` itself, happened before `place`, too.
    #[inline]
    fn add(&mut self, before: u32, place: u32) {
        let distance = (place - before) as usize;
        if distance >= self.reach() {
            return;
        }
        let (from, to) = (self.row(before), self.row(place).start);
        let (words, bits) = (distance / 64, distance % 64);
        let mut carried = 0;
        for (at, source) in from.enumerate().take(self.words - words) {
            let word = self.rows[source];
            self.rows[to + words + at] |= word << bits | carried;
            // Shifted twice, for a shift by 64 is none.
            carried = word >> 1 >> (63 - bits);
        }
        self.rows[to + (distance - 1) / 64] |= 1 << ((distance - 1) % 64);
    }

    /// Whether one place happened before another, or too long ago to tell.
    #[inline]
    fn may_precede(&self, before: u32, place: u32) -> bool {
        let bit = (place - before) as usize - 1;
        bit + 1 >= self.reach()
            || self.rows[self.row(place).start + bit / 64] >> (bit % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_know_what_happened_before_as_far_as_they_reach() {
        // Each place depends on these distances back, by turns.
        let distances: [&[u32]; 5] = [&[1], &[64, 3], &[], &[63, 65, 127], &[2, 90]];
        let edges = |place: u32| {
            let of_place = distances[place as usize % distances.len()];
            of_place.iter().filter_map(move |distance| place.checked_sub(*distance))
        };
        let mut recent = Recent::new(2);
        assert_eq!(recent.reach(), 128);
        let mut before: Vec<Vec<bool>> = Vec::new();
        for place in 0..1000u32 {
            recent.begin(place);
            let mut all = vec![false; place as usize];
            for direct in edges(place) {
                recent.add(direct, place);
                all[direct as usize] = true;
                (0..direct as usize).for_each(|at| all[at] |= before[direct as usize][at]);
            }
            for other in 0..place {
                let known = place - other < 128;
                assert_eq!(recent.may_precede(other, place), !known || all[other as usize]);
            }
            before.push(all);
        }
    }
}
