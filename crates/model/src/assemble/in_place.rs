//! A history from parts of which it is known what they hold before they are read: each is written
//! to where it belongs at once.
//!
//! Batches are simpler, but their operations are in memory twice before they are a history, and
//! memory that was never used before is most of what it costs to load a large one. This is for
//! plain histories: reads, writes and appends of small integers, in transactions that all have the
//! same few facts beside their outcomes. The largest ones are.

use rayon::prelude::*;

use super::tables::absorb_all;
use crate::KeyId;
use crate::columns::{Column, MAX_ROWS, OpColumns, TxnColumns};
use crate::history::History;
use crate::op::{OpKind, Outcome};
use crate::sink::Meta;
use crate::table::{NameTable, ValueId, ValueTable};

/// What a part of a history holds: whole transactions, which come after those of the parts before.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// Its keys. It calls them by their numbers here.
    pub keys: NameTable,
    /// Its sessions, likewise.
    pub sessions: NameTable,
    /// How much there is of each of these sessions.
    pub sizes: Vec<Size>,
    /// What is known of its transactions.
    pub facts: PlainFacts,
}

/// How much there is of a session in a part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    /// Transactions.
    pub txns: usize,
    /// Their operations.
    pub ops: usize,
}

/// Which facts all transactions have. Other facts than these have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainFacts {
    /// Names, which are small integers.
    pub names: bool,
    /// Lines of a file.
    pub lines: bool,
    /// When they started.
    pub starts: bool,
    /// When they finished.
    pub finishes: bool,
}

/// A transaction without its operations. Of its facts, those count that all have.
#[derive(Clone, Copy, Debug)]
pub struct PlainTxn {
    /// How it ended.
    pub outcome: Outcome,
    /// Its name.
    pub name: ValueId,
    /// The line of the file it begins on.
    pub line: u64,
    /// When it started.
    pub start: i64,
    /// When it finished.
    pub finish: i64,
}

/// Operations, one row of each column per operation. Values are small integers.
#[derive(Clone, Copy, Debug)]
pub struct PlainOps<'o> {
    /// What they are: reads, writes and appends.
    pub kinds: &'o [OpKind],
    /// Their keys, by the numbers of the history.
    pub keys: &'o [KeyId],
    /// Their values.
    pub values: &'o [ValueId],
}

impl History {
    /// Puts a history together. `fill` writes the part of a number into its room, on any thread, and is
    /// lent `memory` that it may use again for other parts. None if it does not, if what it writes is not
    /// what its outline says, or if parts do not have the same facts or are too many.
    pub fn in_place<M>(
        meta: Meta,
        outlines: Vec<Outline>,
        memory: impl Fn() -> M + Sync + Send,
        fill: impl Fn(&mut M, usize, &mut Room<'_>) -> Option<()> + Sync + Send,
    ) -> Option<History> {
        let facts = outlines.first()?.facts;
        let total = outlines.iter().flat_map(|outline| &outline.sizes).fold(
            Size::default(),
            |total, size| Size { txns: total.txns + size.txns, ops: total.ops + size.ops },
        );
        let fits = total.txns <= MAX_ROWS && total.ops <= MAX_ROWS;
        let agrees = |outline: &Outline| {
            outline.facts == facts && outline.sizes.len() == outline.sessions.len()
        };
        if !fits || !outlines.iter().all(agrees) {
            return None;
        }
        let (sessions, session_maps) = joined(outlines.iter().map(|outline| &outline.sessions));
        let (keys, key_maps) = joined(outlines.iter().map(|outline| &outline.keys));
        let session_ends = session_ends(&outlines, &session_maps, sessions.len());
        let mut columns = Columns::new(total, facts);
        let rooms = columns.cut(&outlines, &session_maps, key_maps);
        drop(outlines);
        rooms.into_par_iter().enumerate().try_for_each_init(
            memory,
            |memory, (part, mut room)| {
                fill(memory, part, &mut room)?;
                room.is_full().then_some(())
            },
        )?;
        let (txns, ops) = columns.finish();
        let values = ValueTable::default();
        Some(History { meta, ops, txns, session_ends, keys, sessions, values })
    }
}

/// One table of all names, and what numbers those of each table have in it.
fn joined<'t>(tables: impl Iterator<Item = &'t NameTable>) -> (NameTable, Vec<Vec<u32>>) {
    let tables: Vec<&NameTable> = tables.collect();
    let mut names = NameTable::default();
    let maps = absorb_all(&mut names, &tables);
    (names, maps)
}

/// One past the last transaction of each session.
fn session_ends(outlines: &[Outline], maps: &[Vec<u32>], sessions: usize) -> Vec<u32> {
    let mut ends = vec![0; sessions];
    for (outline, map) in outlines.iter().zip(maps) {
        let sizes = map.iter().zip(&outline.sizes);
        sizes.for_each(|(session, size)| ends[*session as usize] += size.txns as u32);
    }
    let mut total = 0;
    for end in &mut ends {
        total += *end;
        *end = total;
    }
    ends
}

/// The columns of a history, in the making.
struct Columns {
    sessions: Vec<u32>,
    op_ends: Vec<u32>,
    outcomes: Vec<Outcome>,
    names: Vec<ValueId>,
    lines: Vec<u64>,
    starts: Vec<i64>,
    finishes: Vec<i64>,
    kinds: Vec<OpKind>,
    keys: Vec<KeyId>,
    words: Vec<u64>,
}

impl Columns {
    /// Fresh memory is slow: all cores fetch it. Zeros come without being written.
    fn new(size: Size, facts: PlainFacts) -> Columns {
        let rows = |is_there: bool| if is_there { size.txns } else { 0 };
        let no_name = ValueId::from_word(0);
        Columns {
            sessions: vec![0; size.txns],
            op_ends: vec![0; size.txns],
            outcomes: vec![Outcome::Unknown; size.txns],
            names: rayon::iter::repeat_n(no_name, rows(facts.names)).collect(),
            lines: vec![0; rows(facts.lines)],
            starts: vec![0; rows(facts.starts)],
            finishes: vec![0; rows(facts.finishes)],
            kinds: rayon::iter::repeat_n(OpKind::Read, size.ops).collect(),
            keys: rayon::iter::repeat_n(KeyId(0), size.ops).collect(),
            words: vec![0; size.ops],
        }
    }

    /// A column without rows is one that is not there.
    fn finish(self) -> (TxnColumns, OpColumns) {
        let txns = TxnColumns {
            sessions: self.sessions,
            op_ends: self.op_ends,
            outcomes: self.outcomes,
            names: Column::full(self.names),
            lines: Column::full(self.lines),
            starts: Column::full(self.starts),
            finishes: Column::full(self.finishes),
            ..TxnColumns::default()
        };
        let (kinds, keys, words) = (self.kinds, self.keys, self.words);
        (txns, OpColumns { kinds, keys, words, ..OpColumns::default() })
    }

    /// Cuts them into rooms for parts, given what numbers their sessions and keys have.
    fn cut<'c>(
        &'c mut self,
        outlines: &[Outline],
        session_maps: &[Vec<u32>],
        key_maps: Vec<Vec<u32>>,
    ) -> Vec<Room<'c>> {
        // A session is in one piece, part by part.
        let mut pieces: Vec<(u32, usize, usize)> = Vec::new();
        for (part, map) in session_maps.iter().enumerate() {
            pieces.extend(map.iter().enumerate().map(|(own, session)| (*session, part, own)));
        }
        pieces.sort_unstable();
        let room = |keys| Room { keys, sessions: Vec::new() };
        let mut rooms: Vec<Room<'c>> = key_maps.into_iter().map(room).collect();
        let mut rest = Rest::of(self);
        for (session, part, own) in pieces {
            let stretch = rest.take(session, outlines[part].sizes[own]);
            rooms[part].sessions.push((own, stretch));
        }
        rooms.iter_mut().for_each(|room| room.sessions.sort_unstable_by_key(|(own, _)| *own));
        rooms
    }
}

/// What is not cut off yet.
struct Rest<'c> {
    sessions: &'c mut [u32],
    op_ends: &'c mut [u32],
    outcomes: &'c mut [Outcome],
    names: &'c mut [ValueId],
    lines: &'c mut [u64],
    starts: &'c mut [i64],
    finishes: &'c mut [i64],
    kinds: &'c mut [OpKind],
    keys: &'c mut [KeyId],
    words: &'c mut [u64],
    /// The number of the next operation.
    op: u32,
}

impl<'c> Rest<'c> {
    fn of(columns: &'c mut Columns) -> Self {
        Rest {
            sessions: &mut columns.sessions,
            op_ends: &mut columns.op_ends,
            outcomes: &mut columns.outcomes,
            names: &mut columns.names,
            lines: &mut columns.lines,
            starts: &mut columns.starts,
            finishes: &mut columns.finishes,
            kinds: &mut columns.kinds,
            keys: &mut columns.keys,
            words: &mut columns.words,
            op: 0,
        }
    }

    /// The next so many transactions, all of one session.
    fn take(&mut self, session: u32, Size { txns, ops }: Size) -> Stretch<'c> {
        first(&mut self.sessions, txns).fill(session);
        let op = self.op;
        self.op += ops as u32;
        Stretch {
            op,
            op_ends: first(&mut self.op_ends, txns),
            outcomes: first(&mut self.outcomes, txns),
            names: first(&mut self.names, txns),
            lines: first(&mut self.lines, txns),
            starts: first(&mut self.starts, txns),
            finishes: first(&mut self.finishes, txns),
            kinds: first(&mut self.kinds, ops),
            keys: first(&mut self.keys, ops),
            words: first(&mut self.words, ops),
        }
    }
}

/// Cuts off the first so many rows of a column, or all that there are.
#[inline]
fn first<'c, T>(rest: &mut &'c mut [T], rows: usize) -> &'c mut [T] {
    let rows = rows.min(rest.len());
    rest.split_off_mut(..rows).unwrap_or_default()
}

/// Room for the transactions of a part.
#[derive(Debug)]
pub struct Room<'c> {
    /// By its own keys.
    keys: Vec<u32>,
    /// By its own sessions, each with its number.
    sessions: Vec<(usize, Stretch<'c>)>,
}

/// Room for those of one session, as far as it is not filled.
#[derive(Debug)]
struct Stretch<'c> {
    /// The number of the next operation.
    op: u32,
    op_ends: &'c mut [u32],
    outcomes: &'c mut [Outcome],
    names: &'c mut [ValueId],
    lines: &'c mut [u64],
    starts: &'c mut [i64],
    finishes: &'c mut [i64],
    kinds: &'c mut [OpKind],
    keys: &'c mut [KeyId],
    words: &'c mut [u64],
}

impl Room<'_> {
    /// The number in the history of a key of the part; none if it has no such key.
    #[inline]
    pub fn key(&self, own: usize) -> Option<KeyId> {
        self.keys.get(own).map(|key| KeyId(*key))
    }

    /// Puts down the next transaction of a session of the part. None if there is no room for it.
    #[inline]
    pub fn put(&mut self, session: usize, txn: &PlainTxn, ops: &PlainOps<'_>) -> Option<()> {
        let stretch = &mut self.sessions.get_mut(session)?.1;
        let count = ops.kinds.len();
        stretch.kinds.split_off_mut(..count)?.copy_from_slice(ops.kinds);
        stretch.keys.split_off_mut(..count)?.copy_from_slice(ops.keys);
        let words = stretch.words.split_off_mut(..count)?;
        words.iter_mut().zip(ops.values).for_each(|(word, value)| *word = value.word());
        stretch.op += count as u32;
        *stretch.op_ends.split_off_first_mut()? = stretch.op;
        *stretch.outcomes.split_off_first_mut()? = txn.outcome;
        put(&mut stretch.names, txn.name);
        put(&mut stretch.lines, txn.line);
        put(&mut stretch.starts, txn.start);
        put(&mut stretch.finishes, txn.finish);
        Some(())
    }

    fn is_full(&self) -> bool {
        let is_full =
            |stretch: &Stretch<'_>| stretch.op_ends.is_empty() && stretch.kinds.is_empty();
        self.sessions.iter().all(|(_, stretch)| is_full(stretch))
    }
}

/// Puts down the next row of a column, if it is there.
#[inline]
fn put<T>(column: &mut &mut [T], row: T) {
    if let Some(place) = column.split_off_first_mut() {
        *place = row;
    }
}
