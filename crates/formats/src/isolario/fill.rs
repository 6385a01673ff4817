//! Fills a block with transactions.

use isolario_model::{
    NameTable, OpInput, OpNotes, Outcome, SinkError, TxnEnd, TxnStart, ValueRef, ValueTable,
    VersionRef,
};

use super::block::{Block, INLINE, LISTED, Names, Values};
use super::parts::{PutParts, fact, put_op, version_parts};

/// How much goes into one block. Large enough that the dictionaries are a small part of it, small
/// enough that a history of a second's work has blocks for all cores and a reader's working memory
/// stays small beside the history.
#[derive(Clone, Copy)]
pub(super) struct BlockSize {
    pub(super) txns: usize,
    /// Operations, their values, and what their texts weigh beside those.
    pub(super) parts: usize,
    /// Values that are no integers: rows, above all. They are most of the work of a reader, which has to
    /// know them again in other blocks.
    pub(super) names: usize,
}

impl Default for BlockSize {
    fn default() -> Self {
        BlockSize { txns: 1 << 16, parts: 1 << 20, names: 1 << 15 }
    }
}

/// A block in the making, with the dictionaries by which names are found.
#[derive(Default)]
pub(super) struct Filling {
    block: Block,
    sessions: NameTable,
    keys: NameTable,
    values: ValueTable,
    /// Per key, the longest list in this block, as far as reads agree.
    pools: Vec<Vec<ValueRefId>>,
    /// The key of the operation at hand.
    key: usize,
    ops_before: usize,
    elements: Vec<ValueRefId>,
}

/// A value as its column holds it.
type ValueRefId = (u8, i64);

impl Filling {
    pub(super) fn is_empty(&self) -> bool {
        self.block.outcomes.is_empty()
    }

    /// Whether it is time to write the block and begin another.
    pub(super) fn is_full(&self, size: BlockSize) -> bool {
        let block = &self.block;
        let text = block.op_texts.text.len() + block.txn_texts.text.len();
        let parts = block.heads.len() + block.op_values.numbers.len() + text / 16;
        let names = self.values.interned().len();
        block.outcomes.len() >= size.txns || parts >= size.parts || names >= size.names
    }

    pub(super) fn begin(&mut self, start: &TxnStart<'_>) {
        let session = self.sessions.intern(start.session);
        self.ops_before = self.block.heads.len();
        let block = &mut self.block;
        block.txn_sessions.push(i64::from(session));
        let mut facts = 0;
        if let Some(line) = start.line {
            facts |= fact::LINE;
            block.lines.push(line as i64);
        }
        if let Some(name) = start.id {
            facts |= fact::NAME;
            push(&mut block.txn_names, place(&mut self.values, name));
        }
        block.facts.push(facts);
    }

    pub(super) fn op(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        put_op(op, notes, self)
    }

    pub(super) fn end(&mut self, end: &TxnEnd<'_>) {
        let block = &mut self.block;
        block.txn_ops.push((block.heads.len() - self.ops_before) as i64);
        block.outcomes.push(outcome_code(end.outcome));
        let mut facts = 0;
        for (fact, column, time) in [
            (fact::START, &mut block.starts, end.start),
            (fact::FINISH, &mut block.finishes, end.finish),
        ] {
            if let Some(time) = time {
                facts |= fact;
                column.push(time);
            }
        }
        for (fact, column, stamp) in [
            (fact::DB_START, &mut block.db_starts, end.db_start),
            (fact::DB_COMMIT, &mut block.db_commits, end.db_commit),
        ] {
            if let Some(stamp) = stamp {
                facts |= fact;
                column.push(stamp.physical, stamp.logical);
            }
        }
        for (fact, text) in [(fact::SNAPSHOT, end.snapshot), (fact::ERROR, end.error)] {
            if let Some(text) = text {
                facts |= fact;
                block.txn_texts.push(text);
            }
        }
        if let Some(all) = block.facts.last_mut() {
            *all |= facts;
        }
    }

    /// The finished block; what is left is empty.
    pub(super) fn take(&mut self) -> Block {
        let Filling { mut block, sessions, keys, values, .. } = std::mem::take(self);
        block.sessions = Names::of(sessions.iter());
        block.keys = Names::of(keys.iter());
        block.values = Names::of(values.interned());
        block
    }
}

/// Outcomes by number.
pub(super) const fn outcome_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Committed => 0,
        Outcome::Aborted => 1,
        Outcome::Unknown => 2,
    }
}

fn place(values: &mut ValueTable, value: ValueRef<'_>) -> ValueRefId {
    if let ValueRef::Int(int) = value {
        return (INLINE, int);
    }
    match values.intern(value).table_index() {
        Some(index) => (LISTED, index as i64),
        // Only integers have words without a place in the table.
        None => (INLINE, 0),
    }
}

fn push(column: &mut Values, (place, number): ValueRefId) {
    column.places.push(place);
    column.numbers.push(number);
}

impl PutParts for Filling {
    fn head(&mut self, head: u8) {
        self.block.heads.push(head);
    }

    fn key(&mut self, key: ValueRef<'_>) {
        self.key = self.keys.intern(key) as usize;
        self.block.op_keys.push(self.key as i64);
    }

    fn value(&mut self, value: ValueRef<'_>) {
        push(&mut self.block.op_values, place(&mut self.values, value));
    }

    fn state(&mut self, state: u8) {
        self.block.states.push(state);
    }

    fn count(&mut self, count: usize) {
        self.block.counts.push(count as i64);
    }

    fn text(&mut self, text: &str) {
        self.block.op_texts.push(text);
    }

    /// Almost every list begins or continues the longest one of its key, and is stored as what it
    /// shares and what it adds. One that does neither shares nothing and is stored whole: so a
    /// block never unpacks to more than it holds.
    fn list(&mut self, elements: &[ValueRef<'_>]) {
        if self.pools.len() <= self.key {
            self.pools.resize_with(self.key + 1, Vec::new);
        }
        self.elements.clear();
        self.elements.extend(elements.iter().map(|e| place(&mut self.values, *e)));
        let pool = &mut self.pools[self.key];
        let common = pool.len().min(self.elements.len());
        let agrees = pool[..common] == self.elements[..common];
        let shared = if agrees { common } else { 0 };
        let fresh = &self.elements[shared..];
        if agrees {
            pool.extend_from_slice(fresh);
        }
        self.block.counts.extend([shared as i64, fresh.len() as i64]);
        fresh.iter().for_each(|element| push(&mut self.block.op_values, *element));
    }

    fn version(&mut self, version: VersionRef) {
        let (kind, numbers) = version_parts(version);
        self.block.version_kinds.push(kind);
        if let Some((first, second)) = numbers {
            self.block.version_numbers.push(first, second);
        }
    }
}
