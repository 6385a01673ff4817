//! The levels at which each transaction is looked at by itself.
//!
//! Cut isolation needs no witness. At read committed and read atomic, what is visible to a
//! transaction at once, by its reads and its session, must not be newer than what it read.

use isolario_model::{KeyId, OpId, Outcome, TxnId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Refusal;
use crate::facts::Facts;
use crate::order::{ExternalRead, Order};

/// All reads of a key from other, committed transactions saw the same one (Plume, Definition 3), or
/// may have: where several wrote what was read, one of them will do. A read that may have seen an
/// aborted write, or an own one, need not agree with any other. A transaction of unknown outcome whose
/// own reads disagree is taken not to have committed, so that nobody can have seen its writes.
pub(crate) fn verify_cut_isolation(facts: &Facts<'_>) -> Result<(), Refusal> {
    let mut absent: FxHashSet<TxnId> = FxHashSet::default();
    loop {
        let before = absent.len();
        for txn in facts.history.txns() {
            if facts.history.outcome(txn) == Outcome::Aborted || absent.contains(&txn) {
                continue;
            }
            match reads_agree(facts, txn, &absent) {
                Err(_) if facts.is_uncertain(txn) => _ = absent.insert(txn),
                agree => agree?,
            }
        }
        if absent.len() == before {
            return Ok(());
        }
    }
}

fn reads_agree(facts: &Facts<'_>, txn: TxnId, absent: &FxHashSet<TxnId>) -> Result<(), Refusal> {
    let mut seen: FxHashMap<KeyId, (OpId, Vec<TxnId>)> = FxHashMap::default();
    for second in facts.reads(txn) {
        // Whatever was met agrees with itself, and nobody works out what else it agrees with.
        let is_again = |other: OpId| other != second && facts.key(other) == facts.key(second);
        if facts.is_met(second) && facts.reads(txn).any(is_again) {
            return Err(Refusal::Ambiguous(second));
        }
        if facts.is_met(second) || !counts(facts, second) {
            continue;
        }
        let mut writers = facts.possible_writers(second);
        writers.retain(|writer| !absent.contains(writer));
        let fresh = || (second, writers.clone());
        let (first, common) = seen.entry(facts.key(second)).or_insert_with(fresh);
        common.retain(|writer| writers.contains(writer));
        if common.is_empty() || facts.see_two_initial_values(*first, second) {
            return Err(Refusal::Disagree { first: *first, second });
        }
    }
    Ok(())
}

/// Whether two reads of one key certainly saw what two other transactions wrote, whoever these are.
pub(crate) fn cannot_agree(facts: &Facts<'_>, first: OpId, second: OpId) -> bool {
    let others = facts.possible_writers(second);
    counts(facts, first)
        && counts(facts, second)
        && !facts.possible_writers(first).iter().any(|writer| others.contains(writer))
}

/// Whether a read certainly saw what another transaction wrote that did not abort.
fn counts(facts: &Facts<'_>, read: OpId) -> bool {
    match facts.external(read) {
        Ok(Some((from, _))) => from.is_init() || facts.may_see_only_others(read),
        Ok(None) => false,
        Err(_) => facts.may_see_only_others(read),
    }
}

/// Per key, the last place in the order of a visible transaction that writes it.
type Newest = FxHashMap<KeyId, u32>;

/// Read committed (AWDIT, Definition 2.4): visible is what was read from before.
pub(crate) fn verify_read_committed(order: &Order<'_, '_>) -> Result<(), Refusal> {
    for txn in order.txns {
        let mut visible = Visible::new(order, *txn)?;
        for read in std::mem::take(&mut visible.reads) {
            visible.check(&read, &Newest::default())?;
            visible.see(read.from);
        }
    }
    Ok(())
}

/// Read atomic (AWDIT, Definition 2.6): visible is all that was read from, and the session so far.
pub(crate) fn verify_read_atomic(order: &Order<'_, '_>) -> Result<(), Refusal> {
    let facts = order.facts;
    let history = facts.history;
    for session in history.sessions() {
        let mut of_session = Newest::default();
        for txn in history.session_txns(session).filter(|txn| order.contains(*txn)) {
            let mut visible = Visible::new(order, txn)?;
            let reads = std::mem::take(&mut visible.reads);
            reads.iter().for_each(|read| visible.see(read.from));
            reads.iter().try_for_each(|read| visible.check(read, &of_session))?;
            if facts.options.session_order && history.outcome(txn) == Outcome::Committed {
                let place = order.place(txn);
                of_session.extend(facts.written(txn).iter().map(|key| (*key, place)));
            }
        }
    }
    Ok(())
}

/// What one transaction has read from.
struct Visible<'o, 'f, 'h> {
    order: &'o Order<'f, 'h>,
    reader: TxnId,
    reads: Vec<ExternalRead>,
    /// The keys it reads from others: only for these does it matter what is visible.
    keys: Vec<KeyId>,
    seen: FxHashSet<TxnId>,
    newest: Newest,
}

impl<'o, 'f, 'h> Visible<'o, 'f, 'h> {
    fn new(order: &'o Order<'f, 'h>, reader: TxnId) -> Result<Self, Refusal> {
        let reads = order.external_reads(reader)?;
        let mut keys: Vec<KeyId> = reads.iter().map(|read| order.facts.key(read.read)).collect();
        keys.sort_unstable();
        keys.dedup();
        let (seen, newest) = (FxHashSet::default(), Newest::default());
        Ok(Visible { order, reader, reads, keys, seen, newest })
    }

    /// Makes a transaction visible. Walks through its keys or through the reader's, whichever are
    /// fewer, which keeps the sum over a history below n^1.5.
    fn see(&mut self, writer: TxnId) {
        if writer.is_init() || !self.seen.insert(writer) {
            return;
        }
        let facts: &Facts<'_> = self.order.facts;
        let place = self.order.place(writer);
        let written = facts.written(writer);
        let mut note = |key: KeyId| {
            let newest = self.newest.entry(key).or_insert(place);
            *newest = place.max(*newest);
        };
        if written.len() <= self.keys.len() {
            written.iter().for_each(|key| note(*key));
        } else {
            let shared = self.keys.iter().filter(|key| facts.writes_key(writer, **key));
            shared.for_each(|key| note(*key));
        }
    }

    /// Refuses a read that misses something newer.
    fn check(&self, read: &ExternalRead, of_session: &Newest) -> Result<(), Refusal> {
        let key = self.order.facts.key(read.read);
        let newest = self.newest.get(&key).max(of_session.get(&key));
        match newest {
            Some(newest) if *newest > self.order.place(read.from) => {
                Err(Refusal::Missed { reader: self.reader, read: read.read })
            }
            _ => Ok(()),
        }
    }
}
