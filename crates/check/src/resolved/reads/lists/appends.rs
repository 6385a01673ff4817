//! Who appended which element to a list.

use isolario_model::{History, OpId, Outcome, TxnId};

/// An append to a list, or a read of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Access {
    pub(crate) txn: TxnId,
    pub(crate) op: OpId,
}

/// Who appended an element.
#[derive(Clone, Copy)]
pub(crate) struct Appender {
    pub(crate) txn: TxnId,
    /// Another transaction that appended the same element.
    pub(crate) other: Option<TxnId>,
    /// Who of all that did may have committed. Where nobody did, it does not matter whose element
    /// it is.
    pub(crate) live: Live,
}

/// Transactions that may have committed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Live {
    None,
    One(TxnId),
    Several,
}

impl Live {
    fn and(self, txn: TxnId) -> Live {
        match self {
            Live::None => Live::One(txn),
            Live::One(other) if other == txn => self,
            _ => Live::Several,
        }
    }
}

/// The appends to one list at a time. Their memory is used again for the next one: it is a list's
/// own elements that are looked up, so that the table stays in the cache however many lists there
/// are.
pub(crate) struct Appends<'a> {
    pub(crate) history: &'a History,
    /// All of them, in the order of operations.
    all: &'a [Access],
    /// Per append, the place of its transaction's first one.
    firsts: Vec<u32>,
    /// Per append that is the first of its element, who appended it.
    appenders: Vec<Appender>,
    /// Open addressing: places of appends plus one, zero for empty.
    slots: Vec<u32>,
}

impl<'a> Appends<'a> {
    pub(crate) fn new(history: &'a History) -> Self {
        let (firsts, appenders, slots) = (Vec::new(), Vec::new(), Vec::new());
        Appends { history, all: &[], firsts, appenders, slots }
    }

    /// Forgets the list at hand and takes another one.
    pub(crate) fn turn_to(&mut self, all: &'a [Access]) {
        self.all = all;
        self.firsts.clear();
        self.appenders.clear();
        self.slots.clear();
        self.slots.resize((all.len() * 2).next_power_of_two().max(2), 0);
        for (place, Access { txn, .. }) in (0..).zip(all) {
            let first = match self.firsts.last() {
                Some(first) if self.all[*first as usize].txn == *txn => *first,
                _ => place,
            };
            self.firsts.push(first);
            self.appenders.push(Appender { txn: *txn, other: None, live: Live::None });
            let slot = self.slot(self.element(place));
            let of_element = match self.slots[slot].checked_sub(1) {
                Some(earlier) => earlier,
                None => {
                    self.slots[slot] = place + 1;
                    place
                }
            };
            let appender = &mut self.appenders[of_element as usize];
            if appender.txn != *txn {
                appender.other.get_or_insert(*txn);
            }
            if self.history.outcome(*txn) != Outcome::Aborted {
                appender.live = appender.live.and(*txn);
            }
        }
    }

    /// All of them, in the order of operations.
    pub(crate) fn all(&self) -> &'a [Access] {
        self.all
    }

    #[inline]
    fn element(&self, place: u32) -> u64 {
        element(self.history, self.all[place as usize])
    }

    /// The slot of an element, or the empty one where it would be.
    #[inline]
    fn slot(&self, element: u64) -> usize {
        let mask = self.slots.len() - 1;
        // Multiplicative hashing: the upper half of the product depends on all bits below.
        let mixed = element.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (mixed >> 32) as usize & mask;
        while let Some(place) = self.slots[slot].checked_sub(1)
            && self.element(place) != element
        {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// The first append of an element.
    #[inline]
    pub(crate) fn find(&self, element: u64) -> Option<u32> {
        self.slots[self.slot(element)].checked_sub(1)
    }

    /// Who appended the element of an append that [`Appends::find`] found.
    #[inline]
    pub(crate) fn appender(&self, place: u32) -> Appender {
        self.appenders[place as usize]
    }

    /// The one transaction that appended an element.
    pub(crate) fn writer(&self, element: u64) -> Option<TxnId> {
        let appender = self.appender(self.find(element)?);
        appender.other.is_none().then_some(appender.txn)
    }

    /// The place of the first append of a transaction, given any of its appends.
    #[inline]
    pub(crate) fn first_of_txn(&self, place: u32) -> u32 {
        self.firsts[place as usize]
    }

    /// The appends of a transaction, given its first one.
    pub(crate) fn of_txn(&self, first: u32) -> &'a [Access] {
        let from_first = &self.all[first as usize..];
        let txn = from_first.first().map(|append| append.txn);
        let is_other = |append: &Access| Some(append.txn) != txn;
        &from_first[..from_first.iter().position(is_other).unwrap_or(from_first.len())]
    }

    /// The last append of an element by a transaction.
    pub(crate) fn last_append(&self, txn: TxnId, word: u64) -> Option<OpId> {
        let first = self.all.partition_point(|append| append.txn < txn);
        let of_txn = self.all[first..].iter().take_while(|append| append.txn == txn);
        let same = of_txn.filter(|append| element(self.history, **append) == word);
        same.last().map(|append| append.op)
    }

    /// The append of a transaction that comes so many after its first one.
    #[inline]
    pub(crate) fn nth_of_txn(&self, first: u32, nth: u32) -> Option<Access> {
        let append = *self.all.get((first + nth) as usize)?;
        (self.firsts[(first + nth) as usize] == first).then_some(append)
    }
}

/// The word of the element that an append appended.
#[inline]
pub(crate) fn element(history: &History, append: Access) -> u64 {
    history.encoded_values()[append.op.index()]
}
