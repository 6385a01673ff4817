//! Who is called what.

use isolario_model::{History, TxnId, ValueRef};
use rustc_hash::FxHashMap;

/// Who has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Nobody,
    One(TxnId),
    /// There are at least these two.
    Several(TxnId, TxnId),
}

impl Called {
    /// One more has the name.
    fn also(&mut self, txn: TxnId) {
        *self = match *self {
            Called::Nobody => Called::One(txn),
            Called::One(first) => Called::Several(first, txn),
            several @ Called::Several(..) => several,
        }
    }
}

/// The transactions of a history by name. Most histories number their transactions, and then an array
/// does: every look-up in a large hash table misses the caches.
pub(crate) struct TxnNames<'h> {
    /// Those called 0, 1, 2 and so on.
    whole: Vec<Called>,
    others: FxHashMap<ValueRef<'h>, Called>,
}

impl<'h> TxnNames<'h> {
    pub(crate) fn new(history: &'h History) -> Self {
        // In proportion to the transactions, whatever they are called.
        let limit = 1024 + 2 * history.txn_count();
        let mut names = TxnNames { whole: Vec::new(), others: FxHashMap::default() };
        for txn in history.txns() {
            let Some(name) = history.txn_name(txn) else { continue };
            let called = match place(name).filter(|place| *place < limit) {
                None => names.others.entry(name).or_insert(Called::Nobody),
                Some(place) => {
                    if place >= names.whole.len() {
                        names.whole.resize(place + 1, Called::Nobody);
                    }
                    &mut names.whole[place]
                }
            };
            called.also(txn);
        }
        names
    }

    /// Who has this name.
    pub(crate) fn find(&self, name: ValueRef<'_>) -> Called {
        match place(name).and_then(|place| self.whole.get(place)) {
            Some(called) => *called,
            None => self.others.get(&name).copied().unwrap_or(Called::Nobody),
        }
    }
}

/// The place of a whole number in an array.
fn place(name: ValueRef<'_>) -> Option<usize> {
    match name {
        ValueRef::Int(number) => usize::try_from(number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{Batch, Outcome, TxnEnd, TxnSink, TxnStart};

    use super::*;

    #[test]
    fn numbers_small_and_large_and_words_are_found_and_names_of_several_are_told() {
        let names = [ValueRef::Int(2), "2".into(), ValueRef::Int(1 << 40), ValueRef::Int(-2)];
        let mut batch = Batch::new();
        for name in names.iter().chain([&ValueRef::Int(2), &"x".into(), &"x".into()]) {
            let start = TxnStart { session: "s".into(), id: Some(*name), line: None };
            batch.begin(&start).unwrap();
            batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        }
        let history = batch.build().unwrap();
        let found = TxnNames::new(&history);
        for (txn, name) in (1..).map(TxnId).zip(&names[1..]) {
            assert_eq!(found.find(*name), Called::One(txn));
        }
        assert_eq!(found.find(names[0]), Called::Several(TxnId(0), TxnId(4)));
        assert_eq!(found.find("x".into()), Called::Several(TxnId(5), TxnId(6)));
        for stranger in [0.into(), 1.into(), 3.into(), ValueRef::Int(1 << 41), ValueRef::Text("y")]
        {
            assert_eq!(found.find(stranger), Called::Nobody);
        }
    }
}
