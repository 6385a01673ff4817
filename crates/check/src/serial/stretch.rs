//! Stretches of an order that is contradicted, sorted anew.

use std::iter;
use std::ops::Range;

use isolario_model::{History, KeyId, OpKind, Outcome, SessionId, TxnId};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::ReplayInput;
use super::store::{Flip, Sweep};
use crate::graph::{Rows, cut, joined, topological_order};

/// Longer stretches are left to those who look at everything at once.
const LONGEST: usize = 1 << 16;

/// So are transactions that do more: what they do is gone through from end to end.
const MOST_OPERATIONS: usize = 1 << 8;

/// At most this many pairs of writers are doubted one by one, in a stretch that is short.
const FEW_FLIPS: usize = 1 << 4;

/// At most this many transactions are sorted, over all attempts that doubt one pair.
const MOST_SORTED: usize = 1 << 16;

/// How many may use a key where each is compared with all others.
const FEW_USES: usize = 1 << 8;

/// Sorts the parts of an order that are contradicted, and returns those for which there is no way, as they
/// were. None if one is too long.
pub(super) fn mend(
    order: &mut [u32],
    sweep: Sweep,
    replay: ReplayInput<'_>,
) -> Option<Vec<Range<usize>>> {
    let Sweep { spans, flips, .. } = sweep;
    let stretches: Vec<Range<usize>> = joined(spans);
    if stretches.iter().any(|stretch| stretch.len() > LONGEST) {
        return None;
    }
    let failed = cut(order, &stretches).into_par_iter().zip(&stretches).map_init(
        Stretch::default,
        |stretch, (txns, places)| {
            let flips_before = |place: usize| flips.partition_point(|flip| flip.earlier < place);
            let flips = &flips[flips_before(places.start)..flips_before(places.end)];
            stretch.take_flips(flips, places.start);
            let sorted = stretch.sort(txns, replay);
            sorted.is_none().then(|| places.clone())
        },
    );
    Some(failed.flatten().collect())
}

/// What a transaction does with a key: what it read of others, and what it left there.
#[derive(Clone, Copy)]
struct Use {
    key: KeyId,
    /// The transaction, by its place in the stretch.
    txn: u32,
    read: Option<u64>,
    written: Option<u64>,
}

/// A stretch of an order; kept from one to the next for its memory.
#[derive(Default)]
struct Stretch {
    uses: Vec<Use>,
    /// Writers that are the wrong way round, by their places in the stretch.
    flips: Vec<Flip>,
    /// Who comes before whom.
    edges: Vec<(u32, u32)>,
    versions: Versions,
}

impl Stretch {
    fn take_flips(&mut self, flips: &[Flip], start: usize) {
        let local = |flip: &Flip| Flip {
            earlier: flip.earlier - start,
            later: flip.later - start,
            ..*flip
        };
        self.flips.clear();
        self.flips.extend(flips.iter().map(local));
    }

    /// Sorts the transactions of a stretch by what follows from their reads if versions are written in the order
    /// in which writers stand, unless somebody read what it overwrote, and as they stand where nothing follows. If
    /// there is no such order, versions that nobody in the stretch saw may be written in any; and if there still is none,
    /// it may be one of those pairs of writers that is not the wrong way round after all.
    fn sort(&mut self, txns: &mut [u32], replay: ReplayInput<'_>) -> Option<()> {
        self.uses.clear();
        for (at, txn) in (0..).zip(txns.iter().map(|txn| TxnId(*txn))) {
            if replay.has_committed(txn) {
                self.add_uses(at, txn, replay.history)?;
            }
        }
        self.uses.sort_by_key(|one| one.key);
        self.edges.clear();
        if replay.session_order {
            self.connect_sessions(txns, replay.history);
        }
        let (sessions, flips) = (self.edges.len(), std::mem::take(&mut self.flips));
        let mut attempt = |without: Range<usize>, as_they_stand| {
            self.edges.truncate(sessions);
            self.flips.clear();
            self.flips.extend_from_slice(&flips[..without.start]);
            self.flips.extend_from_slice(&flips[without.end..]);
            self.sorted(txns.len(), as_they_stand)
        };
        let sorted = attempt(0..0, true).or_else(|| {
            let doubted = flips.len().min(FEW_FLIPS).min(MOST_SORTED / txns.len().max(1));
            let one = (0..doubted).map(|flip| flip..flip + 1);
            let mut fewer = iter::once(0..0).chain(one).chain(iter::once(0..flips.len()));
            fewer.find_map(|without| attempt(without, false))
        })?;
        let sorted: Vec<u32> = sorted.iter().map(|at| txns[*at as usize]).collect();
        txns.copy_from_slice(&sorted);
        Some(())
    }

    /// The transactions, by their places in the stretch, in an order that their uses of keys allow.
    fn sorted(&mut self, txns: usize, as_they_stand: bool) -> Option<Vec<u32>> {
        for same in self.uses.chunk_by(|a, b| a.key == b.key) {
            self.versions.connect(same, &self.flips, as_they_stand, &mut self.edges);
        }
        let places: Vec<u32> = (0..txns as u32).collect();
        topological_order(&Rows::graph(txns, &self.edges), &places)
    }

    /// Adds what a transaction does with each of its keys; none if these are many.
    fn add_uses(&mut self, at: u32, txn: TxnId, history: &History) -> Option<()> {
        if history.op_range(txn).len() > MOST_OPERATIONS {
            return None;
        }
        let first = self.uses.len();
        for op in history.op_range(txn) {
            let (key, word) = (history.op_keys()[op], history.encoded_values()[op]);
            let is_write = history.op_kinds()[op] == OpKind::Write;
            match self.uses[first..].iter_mut().find(|one| one.key == key) {
                Some(one) if is_write => one.written = Some(word),
                Some(_) => {}
                None => {
                    let (read, written) =
                        if is_write { (None, Some(word)) } else { (Some(word), None) };
                    self.uses.push(Use { key, txn: at, read, written });
                }
            }
        }
        Some(())
    }

    /// Connects each transaction to the next ones of its session, up to one whose outcome is known. Nothing follows
    /// one of unknown outcome.
    fn connect_sessions(&mut self, txns: &[u32], history: &History) {
        let mut by_session: Vec<(u32, u32)> = txns.iter().copied().zip(0..).collect();
        // Transactions are numbered session by session.
        by_session.sort_unstable();
        let mut last: Option<(SessionId, u32)> = None;
        for (txn, at) in by_session.into_iter().map(|(txn, at)| (TxnId(txn), at)) {
            let session = history.session_of(txn);
            let before = last.filter(|(same, _)| *same == session).map(|(_, before)| before);
            self.edges.extend(before.map(|before| (before, at)));
            if history.outcome(txn) != Outcome::Unknown {
                last = Some((session, at));
            }
        }
    }
}

/// The versions of a key that are written in a stretch.
#[derive(Default)]
struct Versions {
    /// By value, who wrote it: its number among the writers.
    writer: FxHashMap<u64, u32>,
    /// By writer, whose version comes next. The last entry is for the version that was there before.
    next: Vec<u32>,
    is_placed: Vec<bool>,
    chain: Vec<u32>,
}

/// No version comes next.
const NONE: u32 = u32::MAX;

impl Versions {
    /// Connects those who use a key. What was not written in the stretch is taken for the version that was there
    /// before; if it was another one, the next sweep shows.
    fn connect(
        &mut self,
        uses: &[Use],
        flips: &[Flip],
        as_they_stand: bool,
        edges: &mut Vec<(u32, u32)>,
    ) {
        let mut writers: Vec<&Use> = uses.iter().filter(|one| one.written.is_some()).collect();
        let Some(first) = writers.first() else { return };
        let key = first.key;
        for flip in flips.iter().filter(|flip| flip.key == key) {
            let writer = |place: usize| writers.iter().position(|one| one.txn as usize == place);
            if let (Some(earlier), Some(later)) = (writer(flip.earlier), writer(flip.later))
                && earlier < later
            {
                edges.push((writers[later].txn, writers[earlier].txn));
                writers[earlier..=later].rotate_right(1);
            }
        }
        self.put_in_order(&writers);
        match as_they_stand || uses.len() > FEW_USES {
            true => self.connect_all(uses, &writers, edges),
            false => self.connect_seen(uses, &writers, edges),
        }
    }

    /// Connects each version to the next, writers to their readers, and readers to the writer of the next version.
    fn connect_all(&self, uses: &[Use], writers: &[&Use], edges: &mut Vec<(u32, u32)>) {
        let txn = |writer: u32| writers.get(writer as usize).map(|one| one.txn);
        for (writer, next) in (0..).zip(&self.next) {
            edges.extend(txn(writer).zip(txn(*next)));
        }
        for one in uses {
            let Some(seen) = self.seen_by(one) else { continue };
            let next = txn(self.next[seen as usize]).filter(|next| *next != one.txn);
            edges.extend(txn(seen).map(|writer| (writer, one.txn)));
            edges.extend(next.map(|next| (one.txn, next)));
        }
    }

    /// Connects writers to their readers, and each of these pairs to all other writers: those of earlier versions
    /// come before the writer, and the others after the reader.
    fn connect_seen(&self, uses: &[Use], writers: &[&Use], edges: &mut Vec<(u32, u32)>) {
        let before = writers.len() as u32;
        for one in uses {
            let Some(seen) = self.seen_by(one) else { continue };
            let writer = writers.get(seen as usize).map(|one| one.txn);
            edges.extend(writer.map(|writer| (writer, one.txn)));
            let (mut at, mut is_later) = (before, seen == before);
            while let Some(other) = writers.get(self.next[at as usize] as usize) {
                at = self.next[at as usize];
                match writer {
                    _ if at == seen => is_later = true,
                    _ if other.txn == one.txn => {}
                    Some(writer) if !is_later => edges.push((other.txn, writer)),
                    _ => edges.push((one.txn, other.txn)),
                }
            }
        }
    }

    /// Whose version a transaction saw, if it read the key: that of a writer, by number, or the one that was there before.
    fn seen_by(&self, one: &Use) -> Option<u32> {
        let before = self.is_placed.len() as u32;
        one.read.map(|word| self.writer.get(&word).copied().unwrap_or(before))
    }

    /// Puts versions in order: each right after the one that its writer had read, and else as the writers stand.
    fn put_in_order(&mut self, writers: &[&Use]) {
        let before = writers.len() as u32;
        self.writer.clear();
        let written = writers.iter().zip(0..).filter_map(|(one, at)| Some((one.written?, at)));
        self.writer.extend(written);
        self.next.clear();
        self.next.resize(writers.len() + 1, NONE);
        self.is_placed.clear();
        self.is_placed.resize(writers.len(), false);
        let mut last = before;
        for first in 0..before {
            // Whom it read from comes before it, and whom that one read from before that.
            let mut wanted = Some(first);
            while let Some(writer) = wanted
                && !std::mem::replace(&mut self.is_placed[writer as usize], true)
            {
                self.chain.push(writer);
                let read = writers[writer as usize].read;
                wanted = read.and_then(|word| self.writer.get(&word).copied());
            }
            while let Some(writer) = self.chain.pop() {
                let seen = self.seen_by(writers[writer as usize]);
                let after = seen.filter(|seen| *seen != writer).unwrap_or(last) as usize;
                self.next[writer as usize] = std::mem::replace(&mut self.next[after], writer);
                last = if after == last as usize { writer } else { last };
            }
        }
    }
}
