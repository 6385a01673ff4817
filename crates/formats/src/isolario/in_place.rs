//! Reads plain blocks twice: first what they hold, and then all of it, straight to where it belongs.
//!
//! To unpack a block once more is far cheaper than to keep it until the place of its transactions is
//! known: see [`History::in_place`].

use isolario_model::{
    History, KeyId, Meta, NameTable, OpKind, Outline, PlainFacts, PlainOps, PlainTxn, Room, Size,
    ValueId, ValueRef,
};
use rayon::prelude::*;

use super::block::{Block, INLINE, Names};
use super::drain::{is_plain, outcome_of, plain_kind};
use super::frames::Frame;
use super::parts::fact;
use crate::Meter;

/// The history of blocks that are plain, all with the same facts. None for others, and for those that
/// something is wrong with: whoever reads them one by one finds out what.
pub(super) fn read(blocks: &[Frame<'_>], meta: &Meta, meter: &Meter) -> Option<History> {
    let outline = |memory: &mut Memory, frame: &Frame<'_>| {
        frame.require_intact().ok()?;
        memory.outline(frame)
    };
    // The first one tells at once what most files are like.
    Memory::default().get(blocks.first()?)?;
    let outlines = blocks.par_iter().map_init(Memory::default, outline);
    let outlines: Vec<Outline> = outlines.collect::<Option<_>>()?;
    History::in_place(meta.clone(), outlines, Memory::default, |memory, part, room| {
        memory.fill(&blocks[part], room)?;
        meter.add(blocks[part].content.len());
        Some(())
    })
}

/// What a thread needs to read one block after the other.
#[derive(Default)]
struct Memory {
    block: Block,
    unpacked: Vec<u8>,
    kinds: Vec<OpKind>,
    keys: Vec<KeyId>,
    values: Vec<ValueId>,
}

impl Memory {
    /// Reads a block. None if something is wrong with it or it is not plain.
    fn get(&mut self, frame: &Frame<'_>) -> Option<()> {
        self.block.get(frame.content, &mut self.unpacked).ok()?;
        plain_facts(&self.block)?;
        is_plain(&self.block).then_some(())
    }

    fn outline(&mut self, frame: &Frame<'_>) -> Option<Outline> {
        self.block.get_txns(frame.content, &mut self.unpacked).ok()?;
        let facts = plain_facts(&self.block)?;
        let block = &self.block;
        let (keys, sessions) = (names(&block.keys)?, names(&block.sessions)?);
        let mut sizes = vec![Size::default(); sessions.len()];
        for (session, ops) in block.txn_sessions.iter().zip(&block.txn_ops) {
            let size = sizes.get_mut(usize::try_from(*session).ok()?)?;
            size.txns += 1;
            size.ops = size.ops.checked_add(usize::try_from(*ops).ok()?)?;
        }
        // Every operation takes a byte at least: what there is no operation for, no room is made for.
        let ops = sizes.iter().try_fold(0, |sum: usize, size| sum.checked_add(size.ops))?;
        (ops <= self.unpacked.len()).then_some(Outline { keys, sessions, sizes, facts })
    }

    fn fill(&mut self, frame: &Frame<'_>, room: &mut Room<'_>) -> Option<()> {
        self.get(frame)?;
        let Memory { block, kinds, keys, values, .. } = self;
        replace(kinds, block.heads.iter().map(|head| plain_kind(*head)))?;
        replace(keys, block.op_keys.iter().map(|key| room.key(usize::try_from(*key).ok()?)))?;
        replace(values, block.op_values.numbers.iter().map(|number| ValueId::inline(*number)))?;
        // A fact is there for all or for none, for whom it does not count.
        let fact = |column: &[i64], row: usize| column.get(row).copied().unwrap_or_default();
        let mut op = 0usize;
        for (row, (session, count)) in block.txn_sessions.iter().zip(&block.txn_ops).enumerate() {
            let ops = op..op.checked_add(usize::try_from(*count).ok()?)?;
            op = ops.end;
            let txn = PlainTxn {
                outcome: outcome_of(block.outcomes[row]).ok()?,
                name: ValueId::inline(fact(&block.txn_names.numbers, row))?,
                line: fact(&block.lines, row) as u64,
                start: fact(&block.starts, row),
                finish: fact(&block.finishes, row),
            };
            let ops = PlainOps {
                kinds: kinds.get(ops.clone())?,
                keys: keys.get(ops.clone())?,
                values: values.get(ops)?,
            };
            room.put(usize::try_from(*session).ok()?, &txn, &ops)?;
        }
        (op == kinds.len()).then_some(())
    }
}

/// Puts what there is in the place of what was there, unless something is missing.
fn replace<T>(column: &mut Vec<T>, rows: impl Iterator<Item = Option<T>>) -> Option<()> {
    column.clear();
    for row in rows {
        column.push(row?);
    }
    Some(())
}

/// The names of a dictionary, by their places; none if one is there twice.
fn names(dictionary: &Names) -> Option<NameTable> {
    let (mut names, mut places) = (NameTable::default(), 0);
    let mut add = |name: ValueRef<'_>| {
        names.intern(name);
        places += 1;
    };
    dictionary.for_each(&mut add).ok()?;
    (names.len() == places).then_some(names)
}

/// Which facts the transactions of a block have, if they all have the same ones, and these are plain.
fn plain_facts(block: &Block) -> Option<PlainFacts> {
    let first = *block.facts.first()?;
    let has = |fact: u8| first & fact != 0;
    let facts = PlainFacts {
        names: has(fact::NAME),
        lines: has(fact::LINE),
        starts: has(fact::START),
        finishes: has(fact::FINISH),
    };
    let txns = block.outcomes.len();
    let rows = |is_there: bool| if is_there { txns } else { 0 };
    let lengths = [
        (block.facts.len(), txns),
        (block.txn_sessions.len(), txns),
        (block.txn_ops.len(), txns),
        (block.txn_names.numbers.len(), rows(facts.names)),
        (block.txn_names.places.len(), rows(facts.names)),
        (block.lines.len(), rows(facts.lines)),
        (block.starts.len(), rows(facts.starts)),
        (block.finishes.len(), rows(facts.finishes)),
    ];
    let is_plain = block.facts.iter().all(|other| *other == first)
        && lengths.iter().all(|(length, rows)| length == rows)
        && block.txn_names.places.iter().all(|place| *place == INLINE)
        && !block.has_rare_facts()
        && !has(fact::DB_START | fact::DB_COMMIT | fact::SNAPSHOT | fact::ERROR);
    is_plain.then_some(facts)
}

#[cfg(test)]
mod tests {
    use isolario_model::{Op, Outcome, Pieces, SinkError, TxnEnd, TxnSink, TxnStart};

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
        History::from_batches(batches, Pieces::Whole).unwrap()
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
                assert_eq!(there.op_words(), expected.op_words());
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
