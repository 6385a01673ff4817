//! Reads plain blocks twice: first how much they hold, and then all of it, straight to where it belongs.
//!
//! To unpack a block once more is far cheaper than to keep it until the place of its transactions is
//! known: see [`History::in_place`]. Of what stands in front of the operations, only as much is unpacked
//! the first time as tells their number.

use isolario_model::{
    History, KeyId, Meta, NameTable, OpKind, PlainBuffer, PlainFacts, PlainOps, PlainOutline,
    PlainSize, PlainTxn, ValueId, ValueRef,
};
use rayon::prelude::*;

use super::block::{Block, Form, INLINE, Names, Rows, Viewed};
use super::drain::{is_plain, outcome_of, plain_kind};
use super::frames::Frame;
use super::ints::Numbers;
use super::parts::fact;
use super::unpack::Unpacker;
use crate::Meter;
use crate::spare::Spare;

/// The history of blocks that are plain, all with the same facts. None for others, and for those that
/// something is wrong with: whoever reads them one by one finds out what.
pub(super) fn read(blocks: &[Frame<'_>], meta: &Meta, meter: &Meter) -> Option<History> {
    let memory = Spare::<Memory>::default();
    // The first one tells at once what most files are like.
    memory.lend(|memory| memory.is_plain(blocks.first()?).then_some(()))?;
    let outline = |frame: &Frame<'_>| {
        frame.require_intact().ok()?;
        memory.lend(|memory| memory.outline(frame))
    };
    let outlines: Vec<PlainOutline> = blocks.par_iter().map(outline).collect::<Option<_>>()?;
    let keys = memory.lend(|memory| memory.first_keys(blocks))?;
    History::in_place(meta.clone(), keys, &outlines, |part, room| {
        memory.lend(|memory| memory.fill(&blocks[part], room))?;
        meter.add(blocks[part].content.len());
        Some(())
    })
}

/// The most operations that are believed in for each byte of a block before they are seen: nobody makes
/// room for a history by telling of it.
const MOST_OPS_PER_BYTE: usize = 16;

/// How many blocks are looked at for keys before operations are read. The keys of a long history are soon
/// all known, and then its operations are written with the right ones at once.
const BLOCKS_WITH_KEYS: usize = 8;

/// How many transactions are read at a time: few enough for their operations to stay in the fastest cache.
const TXNS_AT_ONCE: usize = 128;

/// What is needed to read one block after the other.
#[derive(Default)]
struct Memory {
    unpacker: Unpacker,
    names: Names,
    /// The numbers that the room gave to the block's keys.
    key_numbers: Vec<KeyId>,
    txns: TxnRows,
    ops: OpRows,
}

impl Memory {
    fn is_plain(&mut self, frame: &Frame<'_>) -> bool {
        let columns = self.unpacker.all(frame.content).ok();
        let block = columns.and_then(|columns| Block::view(columns).ok());
        block.is_some_and(|block| is_plain(&block) && plain_facts(&block).is_some())
    }

    fn outline(&mut self, frame: &Frame<'_>) -> Option<PlainOutline> {
        let Memory { unpacker, names, txns, .. } = self;
        let outline = unpacker.first(frame.content, |columns| {
            let (block, len) = Block::view_txns(columns)?;
            Ok((outline(&block, names, txns), len))
        });
        let outline = outline.ok().flatten()?;
        let mut ops = outline.sizes.iter().map(|size| size.ops);
        let ops = ops.try_fold(0, |sum: usize, ops| sum.checked_add(ops))?;
        (ops / MOST_OPS_PER_BYTE <= frame.content.len()).then_some(outline)
    }

    /// The keys of the first blocks, up to the first one that brings no new ones.
    fn first_keys(&mut self, blocks: &[Frame<'_>]) -> Option<NameTable> {
        let Memory { unpacker, names, .. } = self;
        let mut keys = NameTable::default();
        for frame in blocks.iter().take(BLOCKS_WITH_KEYS) {
            let before = keys.len();
            let copied = unpacker.first(frame.content, |columns| {
                let (block, len) = Block::view_txns(columns)?;
                block.keys.copy_to(names);
                Ok(((), len))
            });
            copied.ok()?;
            names.for_each(|name| _ = keys.intern(name)).ok()?;
            if keys.len() == before {
                break;
            }
        }
        Some(keys)
    }

    fn fill(&mut self, frame: &Frame<'_>, room: &mut PlainBuffer<'_>) -> Option<()> {
        let Memory { unpacker, names, key_numbers, txns, ops } = self;
        let block = Block::view(unpacker.all(frame.content).ok()?).ok()?;
        plain_facts(&block).filter(|_| is_plain(&block))?;
        block.keys.copy_to(names);
        key_numbers.clear();
        names.for_each(|name| key_numbers.push(room.key(name))).ok()?;
        let mut columns = Columns::of(&block);
        for outcomes in block.outcomes.chunks(TXNS_AT_ONCE) {
            columns.take_txns(outcomes.len(), txns);
            let counts = txns.ops.iter().map(|count| usize::try_from(*count).ok());
            let count = counts.sum::<Option<usize>>()?;
            columns.take_ops(count, key_numbers, ops)?;
            put(outcomes, txns, ops, room)?;
        }
        columns.heads.is_empty().then_some(())
    }
}

/// Puts some transactions down.
fn put(outcomes: &[u8], txns: &TxnRows, ops: &OpRows, room: &mut PlainBuffer<'_>) -> Option<()> {
    // A fact is there for all or for none, for whom it does not count.
    let fact = |column: &[i64], row: usize| column.get(row).copied().unwrap_or_default();
    let mut end = 0;
    for (row, (session, count)) in txns.sessions.iter().zip(&txns.ops).enumerate() {
        let rows = end..end + *count as usize;
        end = rows.end;
        let txn = PlainTxn {
            outcome: outcome_of(outcomes[row]).ok()?,
            name: ValueId::inline(fact(&txns.names, row))?,
            line: fact(&txns.lines, row) as u64,
            start: fact(&txns.starts, row),
            finish: fact(&txns.finishes, row),
        };
        let ops = PlainOps {
            kinds: ops.kinds.get(rows.clone())?,
            keys: ops.keys.get(rows.clone())?,
            values: ops.values.get(rows)?,
        };
        room.put(usize::try_from(*session).ok()?, &txn, &ops)?;
    }
    Some(())
}

/// The columns of a plain block, as far as they are not yet taken.
struct Columns<'b> {
    txn_sessions: Numbers<'b>,
    txn_ops: Numbers<'b>,
    txn_names: Numbers<'b>,
    lines: Numbers<'b>,
    starts: Numbers<'b>,
    finishes: Numbers<'b>,
    heads: &'b [u8],
    op_keys: Numbers<'b>,
    op_values: Numbers<'b>,
}

/// Some rows of those of transactions.
#[derive(Default)]
struct TxnRows {
    sessions: Vec<i64>,
    ops: Vec<i64>,
    names: Vec<i64>,
    lines: Vec<i64>,
    starts: Vec<i64>,
    finishes: Vec<i64>,
}

/// Some rows of those of operations.
#[derive(Default)]
struct OpRows {
    numbers: Vec<i64>,
    kinds: Vec<OpKind>,
    keys: Vec<KeyId>,
    values: Vec<ValueId>,
}

impl<'b> Columns<'b> {
    fn of(block: &Block<Viewed<'b>>) -> Self {
        Columns {
            txn_sessions: block.txn_sessions.numbers(),
            txn_ops: block.txn_ops.numbers(),
            txn_names: block.txn_names.numbers.numbers(),
            lines: block.lines.numbers(),
            starts: block.starts.numbers(),
            finishes: block.finishes.numbers(),
            heads: block.heads,
            op_keys: block.op_keys.numbers(),
            op_values: block.op_values.numbers.numbers(),
        }
    }

    fn take_txns(&mut self, count: usize, rows: &mut TxnRows) {
        self.txn_sessions.take(count, &mut rows.sessions);
        self.txn_ops.take(count, &mut rows.ops);
        self.txn_names.take(count, &mut rows.names);
        self.lines.take(count, &mut rows.lines);
        self.starts.take(count, &mut rows.starts);
        self.finishes.take(count, &mut rows.finishes);
    }

    /// None if there are not so many, or one of them has no key or a value that does not fit into a word.
    fn take_ops(&mut self, count: usize, keys: &[KeyId], rows: &mut OpRows) -> Option<()> {
        let OpRows { numbers, .. } = rows;
        let (is_kind, kind) = (|head: &u8| plain_kind(*head).is_some(), OpKind::Read);
        let heads = self.heads.split_off(..count)?;
        replace(&mut rows.kinds, heads, is_kind, |head| plain_kind(*head).unwrap_or(kind))?;
        self.op_keys.take(count, numbers);
        let has_key = |place: &i64| (*place as u64) < keys.len() as u64;
        let key = |place: &i64| keys.get(*place as usize).copied().unwrap_or_default();
        replace(&mut rows.keys, numbers, has_key, key)?;
        self.op_values.take(count, numbers);
        let (fits, zero) = (|number: &i64| ValueId::inline(*number).is_some(), ValueId::inline(0)?);
        replace(&mut rows.values, numbers, fits, |number| ValueId::inline(*number).unwrap_or(zero))
    }
}

/// Puts rows in the place of what was there. None if one of them is not good. Without a way out of the
/// middle, both loops are several times faster than one that has to look at each row before it goes on.
#[inline]
fn replace<S, T>(
    column: &mut Vec<T>,
    rows: &[S],
    is_good: impl Fn(&S) -> bool,
    make: impl Fn(&S) -> T,
) -> Option<()> {
    column.clear();
    column.extend(rows.iter().map(make));
    rows.iter().fold(true, |all, row| all & is_good(row)).then_some(())
}

/// How much there is of each session. None if the block is not plain, as far as its transactions tell.
fn outline(
    block: &Block<Viewed<'_>>,
    names: &mut Names,
    txns: &mut TxnRows,
) -> Option<PlainOutline> {
    let facts = plain_facts(block)?;
    block.sessions.copy_to(names);
    let (mut sessions, mut places) = (NameTable::default(), 0);
    let mut add = |name: ValueRef<'_>| {
        sessions.intern(name);
        places += 1;
    };
    names.for_each(&mut add).ok()?;
    // A session that is there twice would be two.
    if sessions.len() != places {
        return None;
    }
    let mut sizes = vec![PlainSize::default(); sessions.len()];
    let mut columns = Columns::of(block);
    for outcomes in block.outcomes.chunks(TXNS_AT_ONCE) {
        columns.take_txns(outcomes.len(), txns);
        for (session, ops) in txns.sessions.iter().zip(&txns.ops) {
            let size = sizes.get_mut(usize::try_from(*session).ok()?)?;
            size.txns += 1;
            size.ops = size.ops.checked_add(usize::try_from(*ops).ok()?)?;
        }
    }
    Some(PlainOutline { sessions, sizes, facts })
}

/// Which facts the transactions of a block have, if they all have the same ones, and these are plain.
fn plain_facts<F: Form>(block: &Block<F>) -> Option<PlainFacts> {
    let first = *block.facts.as_ref().first()?;
    let has = |fact: u8| first & fact != 0;
    let facts = PlainFacts {
        names: has(fact::NAME),
        lines: has(fact::LINE),
        starts: has(fact::START),
        finishes: has(fact::FINISH),
    };
    let txns = block.outcomes.as_ref().len();
    let rows = |is_there: bool| if is_there { txns } else { 0 };
    let lengths = [
        (block.facts.as_ref().len(), txns),
        (block.txn_sessions.rows(), txns),
        (block.txn_ops.rows(), txns),
        (block.txn_names.numbers.rows(), rows(facts.names)),
        (block.txn_names.places.as_ref().len(), rows(facts.names)),
        (block.lines.rows(), rows(facts.lines)),
        (block.starts.rows(), rows(facts.starts)),
        (block.finishes.rows(), rows(facts.finishes)),
    ];
    let is_plain = block.facts.as_ref().iter().all(|other| *other == first)
        && lengths.iter().all(|(length, rows)| length == rows)
        && block.txn_names.places.as_ref().iter().all(|place| *place == INLINE)
        && !block.has_rare_facts()
        && !has(fact::DB_START | fact::DB_COMMIT | fact::SNAPSHOT | fact::ERROR);
    is_plain.then_some(facts)
}

#[cfg(test)]
mod tests {
    use isolario_model::{BatchEntries, Op, Outcome, SinkError, TxnEnd, TxnSink, TxnStart};

    use super::super::fill::BlockSize;
    use super::super::frames::{Frames, Next};
    use super::super::layout::{frame, read_header};
    use super::super::read::read_blocks;
    use super::super::tests::{any, blocks};
    use super::*;

    const OUTCOMES: [Outcome; 3] = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown];

    /// Transactions of several sessions with names of all kinds, of which each comes up in its own time.
    /// Those that are told so have names, lines and start times.
    fn tell(sink: &mut dyn TxnSink, is_told: impl Fn(i64) -> bool) -> Result<(), SinkError> {
        for txn in 0..200 {
            let session = match txn * txn % (1 + txn / 10) {
                0 => ValueRef::Text("s"),
                number => ValueRef::Int(number),
            };
            let told = Some(txn).filter(|_| is_told(txn));
            let (id, line) = (told.map(|txn| ValueRef::Int(-7 * txn)), told.map(|txn| txn as u64));
            sink.begin(&TxnStart { session, id, line })?;
            for op in 0..txn % 5 {
                let (key, value) = (ValueRef::Int(op * txn % 37), ValueRef::Int(txn - 100));
                sink.op(&match (op + txn) % 3 {
                    0 => Op::Read { key, value: Some(value) },
                    1 => Op::Write { key, value },
                    _ => Op::Append { key: ValueRef::Text("list"), element: value },
                })?;
            }
            let (outcome, finish) = (OUTCOMES[txn as usize % 3], Some(txn + 5));
            sink.end(&TxnEnd { start: told, finish, ..TxnEnd::new(outcome) })?;
        }
        Ok(())
    }

    fn frames(bytes: &[u8]) -> Vec<Frame<'_>> {
        let mut frames = Frames::new(bytes, &read_header(bytes).unwrap());
        let mut found = Vec::new();
        while let Ok(Next::Frame(next)) = frames.next(|kind| kind == frame::BLOCK) {
            found.push(next);
        }
        found.retain(|found| found.kind == frame::BLOCK);
        found
    }

    fn in_batches(blocks: &[Frame<'_>]) -> History {
        let batches = read_blocks(blocks, &Meta::default(), &Meter::default()).ok().unwrap();
        History::from_batches(batches, BatchEntries::Whole).unwrap()
    }

    #[test]
    fn a_plain_history_is_what_it_is_by_batches() {
        for txns in [1, 7, 64, 300] {
            let size = BlockSize { txns, ..BlockSize::default() };
            for told in [true, false] {
                let bytes = blocks(size, |sink| tell(sink, |_| told));
                let blocks = frames(&bytes);
                let there = read(&blocks, &Meta::default(), &Meter::default()).unwrap();
                let expected = in_batches(&blocks);
                assert!(there == expected);
                assert_eq!(there.op_keys(), expected.op_keys());
                assert_eq!(there.encoded_values(), expected.encoded_values());
                assert!(there.txns().all(|txn| there.start(txn).is_some() == told));
                assert!(there.txns().all(|txn| there.txn_name(txn) == expected.txn_name(txn)));
                assert!(there.txns().all(|txn| there.line(txn) == expected.line(txn)));
                for session in there.sessions() {
                    assert!(there.session_txns(session).eq(expected.session_txns(session)));
                }
            }
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_others() {
        let size = BlockSize { txns: 20, ..BlockSize::default() };
        let some_are_told = blocks(size, |sink| tell(sink, |txn| txn > 50));
        let others_are_told = blocks(size, |sink| tell(sink, |txn| txn >= 100));
        let everything = blocks(size, |sink| any(100).replay(sink));
        for bytes in [some_are_told, others_are_told, everything] {
            let blocks = frames(&bytes);
            assert!(read(&blocks, &Meta::default(), &Meter::default()).is_none());
        }
    }

    #[test]
    fn a_damaged_block_is_left_to_others() {
        let size = BlockSize { txns: 20, ..BlockSize::default() };
        let mut bytes = blocks(size, |sink| tell(sink, |_| true));
        let last = frames(&bytes).last().unwrap().at;
        bytes[last + 40] ^= 1;
        let blocks = frames(&bytes);
        assert!(blocks.len() > 5);
        assert!(read(&blocks, &Meta::default(), &Meter::default()).is_none());
    }
}
