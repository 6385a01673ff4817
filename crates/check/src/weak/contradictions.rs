//! What a rule that orders writers demands of an order and the order does not give.
//!
//! Here, other than where a commit relation is saturated, there is an order to begin with, and only
//! what contradicts it is looked for. A reader that read `x` from `t1` and anything from `t2` is of
//! no interest where `t2` comes before `t1` anyway, whatever `t2` wrote.

use isolario_model::{KeyId, Level, Outcome, TxnId};

use super::inference::Inference;
use super::recheck::recheck;
use super::{read_atomic, read_committed, recent};
use crate::blocks::{self, Block};
use crate::graph::{Moved, Order};
use crate::order::{Demand, OrderRule};
use crate::plan::Conclusion;
use crate::resolved::{Dependencies, WriteSets, filter_bit};

/// Readers with at most so many reads are looked at pair by pair: that is quick, and a constant.
const FEW: usize = 16;

/// Sessions of which one task of read atomic remembers the last writes, and how many keys in all.
const SESSIONS_PER_TASK: usize = 8;
const KEYS_PER_TASK: usize = 1 << 18;

/// The rule by which read committed, read atomic or causal orders writers.
#[derive(Clone, Copy)]
pub(crate) struct WriterRule<'a> {
    pub(crate) dependencies: &'a Dependencies<'a>,
    pub(crate) writes: &'a WriteSets<'a>,
    pub(crate) level: Level,
}

/// An order under examination.
#[derive(Clone, Copy)]
pub(crate) struct Examined<'a> {
    pub(crate) rule: WriterRule<'a>,
    pub(crate) order: &'a Order,
}

impl OrderRule for WriterRule<'_> {
    fn denied(&self, order: &Order) -> Result<Vec<Demand>, Conclusion> {
        let examined = Examined { rule: *self, order };
        possible(match self.level {
            Level::ReadCommitted => Some(examined.read_committed()),
            Level::ReadAtomic => Some(examined.read_atomic()),
            _ => recent::causal(&examined),
        })
    }

    fn denied_since(&self, order: &Order, moved: &[Moved]) -> Result<Vec<Demand>, Conclusion> {
        possible(recheck(&Examined { rule: *self, order }, moved))
    }
}

/// Demands that some order may give: nothing comes before `init`.
fn possible(demands: Option<Vec<Demand>>) -> Result<Vec<Demand>, Conclusion> {
    let none_before_init =
        |demands: &Vec<Demand>| demands.iter().all(|(_, after)| !TxnId(*after).is_init());
    demands.filter(none_before_init).ok_or(Conclusion::Pass)
}

/// A read from another transaction.
#[derive(Clone, Copy)]
struct Seen {
    key: KeyId,
    writer: TxnId,
    /// The writer's rank in the order.
    rank: u32,
}

/// Which of two reads must have come first, for the writer that it saw to count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    Earlier,
    Any,
}

impl Examined<'_> {
    /// One more than the place of a transaction; zero for `init`.
    #[inline]
    pub(crate) fn rank(&self, txn: TxnId) -> u32 {
        if txn.is_init() { 0 } else { self.order.places()[txn.index()] + 1 }
    }

    /// What read committed demands in vain: whom a transaction has seen comes before whom it sees
    /// later, where they wrote the same key.
    pub(crate) fn read_committed(&self) -> Vec<Demand> {
        let tasks = blocks::blocks(self.rule.dependencies.history);
        let state = || (Vec::with_capacity(FEW), None);
        self.for_each_reader(&tasks, state, |(seen, inferrer), reader, found| {
            self.collect_seen(reader, seen);
            if seen.len() <= FEW {
                return self.compare_pairs(seen, Sight::Earlier, found);
            }
            let new = || read_committed::Inferrer::new(self.rule.dependencies, self.rule.writes);
            let inferrer = inferrer.get_or_insert_with(new);
            inferrer.infer(reader, &mut |inference| self.collect(&inference, found));
        })
    }

    /// What read atomic demands in vain: whom a transaction sees, and who came before it in its
    /// session, comes before whom it sees, where they wrote the same key.
    pub(crate) fn read_atomic(&self) -> Vec<Demand> {
        let history = self.rule.dependencies.history;
        let sessions = (KEYS_PER_TASK / history.key_count().max(1)).clamp(1, SESSIONS_PER_TASK);
        let tasks = blocks::groups(history, sessions);
        let state = || {
            let last = LastWrites { sessions, ranks: vec![0; sessions * history.key_count()] };
            (Vec::with_capacity(FEW), None, last)
        };
        self.for_each_reader(&tasks, state, |(seen, inferrer, last), reader, found| {
            self.collect_seen(reader, seen);
            if seen.len() <= FEW {
                self.compare_pairs(seen, Sight::Any, found);
            } else {
                let new = || read_atomic::Inferrer::new(self.rule.dependencies, self.rule.writes);
                let inferrer = inferrer.get_or_insert_with(new);
                inferrer.infer_seen(reader, &mut |inference| self.collect(&inference, found));
            }
            if self.rule.dependencies.session_order {
                self.compare_with_session(reader, seen, last, found);
            }
        })
    }

    fn collect(&self, inference: &Inference, found: &mut Vec<Demand>) {
        if self.rank(inference.before) >= self.rank(inference.after) {
            found.push((inference.before.0, inference.after.0));
        }
    }

    /// Visits all kept transactions, each task's in its order.
    fn for_each_reader<S>(
        &self,
        tasks: &[Block],
        state: impl Fn() -> S + Sync + Send,
        visit: impl Fn(&mut S, TxnId, &mut Vec<Demand>) + Sync + Send,
    ) -> Vec<Demand> {
        let reads = &self.rule.dependencies.reads;
        let visit_kept = |state: &mut S, reader: TxnId, found: &mut Vec<Demand>| {
            if reads.is_kept(reader) {
                visit(state, reader, found);
            }
        };
        blocks::gather(tasks, state, visit_kept).concat()
    }

    #[inline]
    fn collect_seen(&self, reader: TxnId, seen: &mut Vec<Seen>) {
        seen.clear();
        let Dependencies { history, reads, .. } = self.rule.dependencies;
        let keys = history.op_keys();
        reads.for_each_writer(history.op_range(reader), |op, writer| {
            seen.push(Seen { key: keys[op], writer, rank: self.rank(writer) });
        });
    }

    /// Of each two reads, does the writer of the one that is later in the order write the key of
    /// the other?
    #[inline]
    fn compare_pairs(&self, seen: &[Seen], sight: Sight, found: &mut Vec<Demand>) {
        for (at, one) in seen.iter().enumerate() {
            let others = if sight == Sight::Any { seen } else { &seen[at + 1..] };
            let is_earlier = |other: &Seen| other.rank < one.rank;
            let bit = |other: &Seen| if is_earlier(other) { filter_bit(other.key) } else { 0 };
            let filter = others.iter().fold(0, |filter, other| filter | bit(other));
            if !self.rule.writes.may_write(one.writer, filter) {
                continue;
            }
            let earlier = others.iter().filter(|other| is_earlier(other));
            let overwritten =
                earlier.filter(|other| self.rule.writes.contains(one.writer, other.key));
            found.extend(overwritten.map(|other| (one.writer.0, other.writer.0)));
        }
    }

    /// Did the reader's session write a key later in the order than whom the reader saw?
    #[inline]
    fn compare_with_session(
        &self,
        reader: TxnId,
        seen: &[Seen],
        last: &mut LastWrites,
        found: &mut Vec<Demand>,
    ) {
        let history = self.rule.dependencies.history;
        let session = history.session_of(reader);
        for Seen { key, writer, rank } in seen {
            let last = *last.of(session.index(), *key);
            if last > *rank {
                let before = TxnId(self.order.nodes()[last as usize - 1]);
                if history.session_of(before) == session {
                    found.push((before.0, writer.0));
                }
            }
        }
        // Nothing follows a transaction of unknown outcome.
        if history.outcome(reader) == Outcome::Committed {
            let rank = self.rank(reader);
            self.rule.writes.of(reader).for_each(|key| *last.of(session.index(), key) = rank);
        }
    }
}

/// For some sessions and all keys, the rank of the last writer. It may be left over from another
/// session that had the same place: then it says nothing.
struct LastWrites {
    sessions: usize,
    ranks: Vec<u32>,
}

impl LastWrites {
    #[inline]
    fn of(&mut self, session: usize, key: KeyId) -> &mut u32 {
        let keys = self.ranks.len() / self.sessions;
        &mut self.ranks[session % self.sessions * keys + key.index()]
    }
}
