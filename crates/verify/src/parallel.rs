//! Consistent view and parallel snapshot isolation: an order that no dependency contradicts, and that
//! the versions of each key follow.
//!
//! So dependencies have no cycle. It remains that no cycle has a single anti-dependency: nobody depends
//! on who overwrote what it read. Only the next writer of the key has to be asked for, since later ones
//! depend on that one. Where it comes after the reader in the order, the reader does not depend on it.
//! For the others, paths are followed from the one to the other.

use isolario_model::{OpId, TxnId};

use crate::Refusal;
use crate::order::{ExternalReads, Order};
use crate::writers::Writers;

/// Refuses an order in which somebody depends on who overwrote what it read. That the order respects
/// sessions, reads and lists is for the caller to know. Sessions are dependencies where `sessions`
/// says so.
pub(crate) fn verify(order: &Order<'_, '_>, sessions: bool) -> Result<(), Refusal> {
    let reads = order.all_external_reads()?;
    let writers = Writers::new(order);
    let missed = missed(order, &reads, &writers);
    if missed.is_empty() {
        return Ok(());
    }
    let dependencies = Dependencies::new(order, &reads, &writers, sessions);
    let followed = missed.chunks(64).find_map(|some| dependencies.reached(some));
    match followed {
        None => Ok(()),
        Some(Missed { reader, read, .. }) => {
            let reader = order.txns[reader as usize];
            Err(Refusal::Missed { reader, read })
        }
    }
}

/// A reader, and a writer before it in the order that overwrote what it read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Missed {
    writer: u32,
    reader: u32,
    read: OpId,
}

/// All of them, by writer: those that are asked for together are close to each other.
fn missed(order: &Order<'_, '_>, reads: &ExternalReads, writers: &Writers) -> Vec<Missed> {
    let mut missed = Vec::new();
    for reader in 0..order.txns.len() as u32 {
        for read in reads.at(reader as usize) {
            // Places of the order are counted from 1, after `init`: the next one is this.
            let next = writers.from(order.facts.key(read.read), order.place(read.from));
            if let Some(writer) = next.filter(|next| *next < reader) {
                missed.push(Missed { writer, reader, read: read.read });
            }
        }
    }
    missed.sort_unstable();
    missed.dedup_by_key(|missed| (missed.writer, missed.reader));
    missed
}

/// Per place in the order, the places that the transaction there depends on at once.
struct Dependencies {
    on: Vec<u32>,
    ends: Vec<usize>,
}

impl Dependencies {
    fn new(
        order: &Order<'_, '_>,
        reads: &ExternalReads,
        writers: &Writers,
        sessions: bool,
    ) -> Self {
        let facts = order.facts;
        let predecessors = if sessions { facts.session_predecessors() } else { Vec::new() };
        let mut dependencies = Dependencies { on: Vec::new(), ends: Vec::new() };
        // Per key, how many of its writers came before.
        let mut written = vec![0; facts.history.key_count()];
        let place = |txn: TxnId| order.place(txn).checked_sub(1);
        for (at, txn) in order.txns.iter().enumerate() {
            let before = predecessors.get(txn.index()).copied().flatten();
            let sources = reads.at(at).iter().map(|read| read.from);
            dependencies.on.extend(before.into_iter().chain(sources).filter_map(place));
            for key in facts.written(*txn) {
                let count = &mut written[key.index()];
                let before = writers.of_key(*key)[..*count].last();
                dependencies.on.extend(before);
                *count += 1;
            }
            dependencies.ends.push(dependencies.on.len());
        }
        dependencies
    }

    fn of(&self, place: u32) -> &[u32] {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.on[begin..self.ends[place as usize]]
    }

    /// The first of up to 64 readers that depends on the writer it missed. Each has a bit, which goes
    /// from its writer to whoever depends on it.
    fn reached(&self, missed: &[Missed]) -> Option<Missed> {
        let first = missed.iter().map(|missed| missed.writer).min()?;
        let last = missed.iter().map(|missed| missed.reader).max()?;
        let mut marks = vec![0_u64; (last - first) as usize + 1];
        for (bit, missed) in missed.iter().enumerate() {
            marks[(missed.writer - first) as usize] |= 1 << bit;
        }
        for place in first + 1..=last {
            let since = self.of(place).iter().filter(|on| **on >= first);
            let inherited = since.fold(0, |all, on| all | marks[(*on - first) as usize]);
            marks[(place - first) as usize] |= inherited;
        }
        let depends = |(bit, missed): &(usize, &Missed)| {
            marks[(missed.reader - first) as usize] & (1 << bit) != 0
        };
        missed.iter().enumerate().find(depends).map(|(_, missed)| *missed)
    }
}
