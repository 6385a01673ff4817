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
use crate::value::ValueRef;

/// What a part of a history holds: whole transactions, which come after those of the parts before.
#[derive(Clone, Debug, Default)]
pub struct PlainOutline {
    /// Its sessions. It calls them by their numbers here.
    pub sessions: NameTable,
    /// How much there is of each of these sessions.
    pub sizes: Vec<PlainSize>,
    /// What is known of its transactions.
    pub facts: PlainFacts,
}

/// How much there is of a session in a part.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainSize {
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
    /// Their keys, by the numbers that the room gave them.
    pub keys: &'o [KeyId],
    /// Their values.
    pub values: &'o [ValueId],
}

impl History {
    /// Puts a history together. `fill` writes the part of a number into its room, on any thread. `keys` are
    /// those of the first parts, in the order in which they come up there, or none: those of the others are
    /// added to them.
    ///
    /// None if `fill` does not write a part, if what it writes is not what its outline says, or if parts
    /// do not have the same facts or are too many.
    pub fn in_place(
        meta: Meta,
        keys: NameTable,
        outlines: &[PlainOutline],
        fill: impl Fn(usize, &mut PlainBuffer<'_>) -> Option<()> + Sync + Send,
    ) -> Option<History> {
        let facts = outlines.first()?.facts;
        let total = total(outlines)?;
        let agrees = |outline: &PlainOutline| {
            outline.facts == facts && outline.sizes.len() == outline.sessions.len()
        };
        if total.txns > MAX_ROWS || total.ops > MAX_ROWS || !outlines.iter().all(agrees) {
            return None;
        }
        let (sessions, stretches) = SessionPiece::in_order(outlines);
        let mut columns = Columns::new(total, facts);
        let rooms = columns.cut(&stretches, &keys, outlines.len());
        let fill = |(part, mut room): (usize, PlainBuffer<'_>)| {
            fill(part, &mut room)?;
            room.is_full().then_some(room.more_keys)
        };
        let more_keys = rooms.into_par_iter().enumerate().map(fill);
        let more_keys: Vec<NameTable> = more_keys.collect::<Option<_>>()?;
        let keys = columns.settle_keys(keys, &more_keys, &stretches);
        let session_ends = session_ends(&stretches, sessions.len());
        let (txns, ops) = columns.finish();
        let values = ValueTable::default();
        Some(History { meta, ops, txns, session_ends, keys, sessions, values })
    }
}

/// How much there is of all parts together. None if nobody can count it.
fn total(outlines: &[PlainOutline]) -> Option<PlainSize> {
    let mut sizes = outlines.iter().flat_map(|outline| &outline.sizes);
    sizes.try_fold(PlainSize::default(), |total, size| {
        let txns = total.txns.checked_add(size.txns)?;
        Some(PlainSize { txns, ops: total.ops.checked_add(size.ops)? })
    })
}

/// What a part has of a session: transactions that follow one another in the history.
#[derive(Clone, Copy)]
struct SessionPiece {
    session: u32,
    part: usize,
    /// The number that the part calls the session by.
    own: usize,
    size: PlainSize,
}

impl SessionPiece {
    /// All sessions, and the stretches of all parts in the order of the history: a session is in one
    /// piece, part by part.
    fn in_order(outlines: &[PlainOutline]) -> (NameTable, Vec<SessionPiece>) {
        let mut sessions = NameTable::default();
        let tables: Vec<&NameTable> = outlines.iter().map(|outline| &outline.sessions).collect();
        let maps = absorb_all(&mut sessions, &tables);
        let mut stretches = Vec::new();
        for (part, (outline, map)) in outlines.iter().zip(maps).enumerate() {
            let named = map.into_iter().zip(&outline.sizes).enumerate();
            stretches.extend(named.map(|(own, (session, size))| SessionPiece {
                session,
                part,
                own,
                size: *size,
            }));
        }
        stretches.sort_unstable_by_key(|stretch| (stretch.session, stretch.part, stretch.own));
        (sessions, stretches)
    }
}

/// One past the last transaction of each session.
fn session_ends(stretches: &[SessionPiece], sessions: usize) -> Vec<u32> {
    let mut ends = vec![0; sessions];
    let mut total = 0;
    for stretch in stretches {
        total += stretch.size.txns as u32;
        ends[stretch.session as usize] = total;
    }
    ends
}

/// The columns of a history, in the making. Fresh memory is slow, and zeros come without being written:
/// so columns are of plain numbers as far as possible until they are full.
struct Columns {
    sessions: Vec<u32>,
    op_ends: Vec<u32>,
    outcomes: Vec<Outcome>,
    /// The words of names.
    names: Vec<u64>,
    lines: Vec<u64>,
    starts: Vec<i64>,
    finishes: Vec<i64>,
    kinds: Vec<OpKind>,
    /// The numbers of keys.
    keys: Vec<u32>,
    encoded: Vec<u64>,
}

impl Columns {
    fn new(size: PlainSize, facts: PlainFacts) -> Columns {
        let rows = |is_there: bool| if is_there { size.txns } else { 0 };
        Columns {
            sessions: vec![0; size.txns],
            op_ends: vec![0; size.txns],
            outcomes: vec![Outcome::Unknown; size.txns],
            names: vec![0; rows(facts.names)],
            lines: vec![0; rows(facts.lines)],
            starts: vec![0; rows(facts.starts)],
            finishes: vec![0; rows(facts.finishes)],
            // All cores fetch what has to be written.
            kinds: rayon::iter::repeat_n(OpKind::Read, size.ops).collect(),
            keys: vec![0; size.ops],
            encoded: vec![0; size.ops],
        }
    }

    /// A column without rows is one that is not there.
    fn finish(self) -> (TxnColumns, OpColumns) {
        let names = self.names.into_iter().map(ValueId::from_bits).collect();
        let txns = TxnColumns {
            sessions: self.sessions,
            op_ends: self.op_ends,
            outcomes: self.outcomes,
            names: Column::full(names),
            lines: Column::full(self.lines),
            starts: Column::full(self.starts),
            finishes: Column::full(self.finishes),
            ..TxnColumns::default()
        };
        let keys = self.keys.into_iter().map(KeyId).collect();
        let (kinds, words) = (self.kinds, self.encoded);
        (
            txns.without_contradictory_times(),
            OpColumns { kinds, keys, encoded: words, ..OpColumns::default() },
        )
    }

    /// Cuts them into rooms for parts.
    fn cut<'c>(
        &'c mut self,
        stretches: &[SessionPiece],
        keys: &'c NameTable,
        parts: usize,
    ) -> Vec<PlainBuffer<'c>> {
        let room = || PlainBuffer { keys, more_keys: NameTable::default(), sessions: Vec::new() };
        let mut rooms: Vec<PlainBuffer<'c>> = std::iter::repeat_with(room).take(parts).collect();
        let mut rest = Rest::of(self);
        for stretch in stretches {
            let place = rest.take(stretch);
            rooms[stretch.part].sessions.push((stretch.own, place));
        }
        rooms.iter_mut().for_each(|room| room.sessions.sort_unstable_by_key(|(own, _)| *own));
        rooms
    }

    /// Adds the keys that parts have beyond those known before, and gives all operations the numbers that
    /// these have.
    fn settle_keys(
        &mut self,
        keys: NameTable,
        more_keys: &[NameTable],
        stretches: &[SessionPiece],
    ) -> NameTable {
        if more_keys.iter().all(NameTable::is_empty) {
            return keys;
        }
        let known = keys.len();
        let mut keys = keys;
        let tables: Vec<&NameTable> = more_keys.iter().collect();
        let maps = absorb_all(&mut keys, &tables);
        let mut rest = &mut self.keys[..];
        let pieces: Vec<(&SessionPiece, &mut [u32])> =
            stretches.iter().map(|stretch| (stretch, first(&mut rest, stretch.size.ops))).collect();
        pieces.into_par_iter().for_each(|(stretch, rows)| {
            let map = &maps[stretch.part];
            for key in rows {
                // What is not beyond those known before wraps around, and is in no map.
                let own = (*key as usize).wrapping_sub(known);
                *key = map.get(own).copied().unwrap_or(*key);
            }
        });
        keys
    }
}

/// What is not cut off yet.
struct Rest<'c> {
    sessions: &'c mut [u32],
    op_ends: &'c mut [u32],
    outcomes: &'c mut [Outcome],
    names: &'c mut [u64],
    lines: &'c mut [u64],
    starts: &'c mut [i64],
    finishes: &'c mut [i64],
    kinds: &'c mut [OpKind],
    keys: &'c mut [u32],
    encoded: &'c mut [u64],
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
            encoded: &mut columns.encoded,
            op: 0,
        }
    }

    /// The next so many transactions, all of one session.
    fn take(&mut self, stretch: &SessionPiece) -> SessionBuffer<'c> {
        let PlainSize { txns, ops } = stretch.size;
        first(&mut self.sessions, txns).fill(stretch.session);
        let first_op = self.op;
        self.op += ops as u32;
        SessionBuffer {
            filled: PlainSize::default(),
            first_op,
            op_ends: first(&mut self.op_ends, txns),
            outcomes: first(&mut self.outcomes, txns),
            names: first(&mut self.names, txns),
            lines: first(&mut self.lines, txns),
            starts: first(&mut self.starts, txns),
            finishes: first(&mut self.finishes, txns),
            kinds: first(&mut self.kinds, ops),
            keys: first(&mut self.keys, ops),
            encoded: first(&mut self.encoded, ops),
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
pub struct PlainBuffer<'c> {
    /// The keys that were known before.
    keys: &'c NameTable,
    /// Those of the part that were not.
    more_keys: NameTable,
    /// By its own sessions, each with its number.
    sessions: Vec<(usize, SessionBuffer<'c>)>,
}

/// Room for those of one session.
#[derive(Debug)]
struct SessionBuffer<'c> {
    /// How many transactions and operations are there already.
    filled: PlainSize,
    /// The number of its first operation.
    first_op: u32,
    op_ends: &'c mut [u32],
    outcomes: &'c mut [Outcome],
    names: &'c mut [u64],
    lines: &'c mut [u64],
    starts: &'c mut [i64],
    finishes: &'c mut [i64],
    kinds: &'c mut [OpKind],
    keys: &'c mut [u32],
    encoded: &'c mut [u64],
}

impl PlainBuffer<'_> {
    /// The number by which the operations of the part call a key. Keys are asked for in the order in
    /// which they come up.
    #[inline]
    pub fn key(&mut self, name: ValueRef<'_>) -> KeyId {
        self.keys.find_whole(name).map_or_else(|| self.other_key(name), KeyId)
    }

    /// The number of a key that is no small number, or was not known before.
    fn other_key(&mut self, name: ValueRef<'_>) -> KeyId {
        let own = |number: u32| KeyId::at(self.keys.len() + number as usize);
        if let Some(number) = self.more_keys.find_whole(name) {
            return own(number);
        }
        match self.keys.find(name) {
            Some(number) => KeyId(number),
            None => own(self.more_keys.intern(name)),
        }
    }

    /// Puts down the next transaction of a session of the part. None if there is no room for it.
    #[inline]
    pub fn put(&mut self, session: usize, txn: &PlainTxn, ops: &PlainOps<'_>) -> Option<()> {
        let place = &mut self.sessions.get_mut(session)?.1;
        let (row, op) = (place.filled.txns, place.filled.ops);
        let ops_end = op + ops.kinds.len();
        place.kinds.get_mut(op..ops_end)?.copy_from_slice(ops.kinds);
        let keys = place.keys.get_mut(op..ops_end)?;
        keys.iter_mut().zip(ops.keys).for_each(|(number, key)| *number = key.0);
        let words = place.encoded.get_mut(op..ops_end)?;
        words.iter_mut().zip(ops.values).for_each(|(word, value)| *word = value.to_bits());
        *place.op_ends.get_mut(row)? = place.first_op + ops_end as u32;
        *place.outcomes.get_mut(row)? = txn.outcome;
        put(place.names, row, txn.name.to_bits());
        put(place.lines, row, txn.line);
        put(place.starts, row, txn.start);
        put(place.finishes, row, txn.finish);
        place.filled = PlainSize { txns: row + 1, ops: ops_end };
        Some(())
    }

    fn is_full(&self) -> bool {
        let is_full = |place: &SessionBuffer<'_>| {
            place.filled.txns == place.op_ends.len() && place.filled.ops == place.kinds.len()
        };
        self.sessions.iter().all(|(_, place)| is_full(place))
    }
}

/// Puts down a row of a column, if it is there.
#[inline]
fn put<T>(column: &mut [T], row: usize, value: T) {
    if let Some(place) = column.get_mut(row) {
        *place = value;
    }
}
