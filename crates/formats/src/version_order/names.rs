//! Who wrote which version, and who is called what.

use std::sync::OnceLock;

use isolario_model::{History, KeyId, Op, OpId, OpKind, TxnId, ValueRef};

use crate::txn_names::{Called, TxnNames};

/// Who has a name, or wrote a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Nobody,
    /// The initial state.
    Init,
    Txn(TxnId),
    /// There are at least these two.
    Several(TxnId, TxnId),
}

/// A history's writers by value and by name. Each table is made when it is first needed.
pub(super) struct Names<'h> {
    pub(super) history: &'h History,
    by_value: OnceLock<Written>,
    by_name: OnceLock<TxnNames<'h>>,
}

impl<'h> Names<'h> {
    pub(super) fn new(history: &'h History) -> Self {
        Names { history, by_value: OnceLock::new(), by_name: OnceLock::new() }
    }

    /// Who wrote a value to a key.
    pub(super) fn by_value(&self, key: KeyId, value: ValueRef<'_>) -> Who {
        let Some(value) = self.history.find_value(value) else { return Who::Nobody };
        let writers = self.by_value.get_or_init(|| self.written());
        let is_initial = self.history.encoded_initial_version() == Some(value.to_bits());
        match writers.who(key, value.to_bits()) {
            Who::Nobody if is_initial => Who::Init,
            Who::Txn(txn) if is_initial => Who::Several(TxnId::INIT, txn),
            who => who,
        }
    }

    /// Who has a name, if it wrote the key.
    pub(super) fn by_name(&self, key: KeyId, name: ValueRef<'_>) -> Who {
        match self.called(name) {
            Who::Txn(txn) if !self.writes(txn, key) => Who::Nobody,
            who => who,
        }
    }

    /// Who has a name.
    pub(super) fn called(&self, name: ValueRef<'_>) -> Who {
        match self.by_name.get_or_init(|| TxnNames::new(self.history)).find(name) {
            Called::Nobody => Who::Nobody,
            Called::One(txn) => Who::Txn(txn),
            Called::Several(first, second) => Who::Several(first, second),
        }
    }

    /// Whether a transaction wrote a key. Asked for each version of a file, so it goes by columns.
    fn writes(&self, txn: TxnId, key: KeyId) -> bool {
        use OpKind::{Append, CompareAndSet, Delete, InsertIfAbsent, PredicateWrite, Write};
        let ops = self.history.op_range(txn);
        let keys = &self.history.op_keys()[ops.clone()];
        let kinds = &self.history.op_kinds()[ops.clone()];
        ops.zip(kinds.iter().zip(keys)).any(|(op, (kind, own))| match kind {
            Write | Append | Delete | InsertIfAbsent | CompareAndSet => *own == key,
            PredicateWrite => self.history.row_of(OpId::at(op), key).is_some(),
            _ => false,
        })
    }

    /// What an operation writes. A delete writes *nil*.
    fn each_write(&self, op: OpId, mut write: impl FnMut(KeyId, u64)) {
        match self.history.op(op) {
            Op::Write { key, value }
            | Op::Append { key, element: value }
            | Op::InsertIfAbsent { key, value, .. }
            | Op::CompareAndSet { key, new: value, .. } => write(key, value.to_bits()),
            Op::Delete { key } => write(key, self.history.encoded_version(op)),
            Op::PredicateWrite { rows, .. } => {
                rows.into_iter().flatten().for_each(|row| write(row.key, row.value.to_bits()));
            }
            _ => {}
        }
    }

    fn written(&self) -> Written {
        let history = self.history;
        let mut writes: Vec<(KeyId, u64, TxnId)> = Vec::with_capacity(history.op_count());
        for txn in history.txns() {
            for op in history.txn_ops(txn) {
                self.each_write(op, |key, word| writes.push((key, word, txn)));
            }
        }
        Written::new(history.key_count(), &writes)
    }
}

/// Who wrote what to each key. The few writes of a key lie together, where a large table would be
/// jumped about in.
struct Written {
    /// Where the writes of each key begin, and one more.
    starts: Vec<u32>,
    /// By key and by what was written.
    writes: Vec<(u64, TxnId)>,
}

impl Written {
    fn new(keys: usize, all: &[(KeyId, u64, TxnId)]) -> Written {
        let mut starts = vec![0u32; keys + 1];
        all.iter().for_each(|(key, ..)| starts[key.index() + 1] += 1);
        for key in 0..keys {
            starts[key + 1] += starts[key];
        }
        let mut next = starts.clone();
        let mut writes = vec![(0, TxnId::INIT); all.len()];
        for (key, word, txn) in all {
            let place = &mut next[key.index()];
            writes[*place as usize] = (*word, *txn);
            *place += 1;
        }
        for key in 0..keys {
            writes[starts[key] as usize..starts[key + 1] as usize].sort_unstable();
        }
        Written { starts, writes }
    }

    fn who(&self, key: KeyId, word: u64) -> Who {
        let (start, end) = (self.starts[key.index()], self.starts[key.index() + 1]);
        let of_key = &self.writes[start as usize..end as usize];
        let begin = of_key.partition_point(|(other, _)| *other < word);
        let mut same = of_key[begin..].iter().take_while(|(other, _)| *other == word);
        match (same.next(), same.last()) {
            (None, _) => Who::Nobody,
            (Some((_, first)), Some((_, last))) if first != last => Who::Several(*first, *last),
            (Some((_, first)), _) => Who::Txn(*first),
        }
    }
}
