//! Reads plain text twice: first how many operations each session has, and then all of them, straight to
//! where they belong.
//!
//! To look at the ends of lines is far cheaper than to keep all operations until the place of their
//! transactions is known: see [`History::in_place`]. Text is plain if every transaction has a name and
//! stands in one piece, and if values fit into a word. So it is where no transaction aborts and whoever
//! writes the file writes one transaction after the other.

use isolario_model::{
    History, KeyId, Meta, NameTable, OpKind, Outcome, PlainBuffer, PlainFacts, PlainOps,
    PlainOutline, PlainSize, PlainTxn, ValueId,
};
use memchr::memrchr;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::INITIAL;
use super::scan::{Owner, Scanner};
use crate::Meter;
use crate::lines::{Chunk, split_at_line_ends};
use crate::spare::Spare;

/// The history of text that is plain, read in chunks of about `chunk_size` bytes. None for other text, and
/// for such as something is wrong with: whoever reads it line by line finds out what.
pub(super) fn read(bytes: &[u8], chunk_size: usize, meter: &Meter) -> Option<History> {
    let parts = split_at_runs(bytes, chunk_size);
    let surveys: Vec<Survey> =
        parts.par_iter().map(|part| Survey::of(part)).collect::<Option<_>>()?;
    if !are_distinct(&surveys) {
        return None;
    }
    let mut next_line = 1;
    let first_line = |survey: &Survey| {
        next_line += survey.lines;
        next_line - survey.lines
    };
    let first_lines: Vec<u64> = surveys.iter().map(first_line).collect();
    let outlines: Vec<PlainOutline> = surveys.into_iter().map(|survey| survey.outline).collect();
    let memory = Spare::<Run>::default();
    let meta = Meta { initial: INITIAL, ..Meta::default() };
    History::in_place(meta, first_keys(bytes)?, &outlines, |part, room| {
        let chunk = whole_chunk(parts[part], first_lines[part]);
        memory.lend(|run| fill(chunk, &outlines[part].sessions, run, room))?;
        meter.add(chunk.bytes.len());
        Some(())
    })
}

fn whole_chunk(bytes: &[u8], first_line: u64) -> Chunk<'_> {
    Chunk { bytes, start: 0, first_line, lines: 0 }
}

/// Parts of at least `size` bytes but the last, each with the end of its last run of operations.
fn split_at_runs(bytes: &[u8], size: usize) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some(lines) = split_at_line_ends(rest, size).next() {
        let last = lines.strip_suffix(b"\n").unwrap_or(lines);
        let last = memrchr(b'\n', last).map_or(0, |newline| newline + 1);
        let mut scanner = Scanner::new(whole_chunk(&rest[last..], 1));
        // What is no operation is found out by whoever reads it.
        let mut end = lines.len();
        let mut goes_on = matches!(scanner.next(), Ok(Some(_)));
        while goes_on {
            scanner.skip_run();
            end = last + scanner.place().0;
            goes_on = matches!(scanner.next(), Ok(Some(line)) if !line.begins_run);
        }
        let (part, tail) = rest.split_at(end);
        parts.push(part);
        rest = tail;
    }
    parts
}

/// What the ends of lines tell of a part.
struct Survey {
    outline: PlainOutline,
    /// The names of its transactions.
    names: Vec<u64>,
    lines: u64,
}

impl Survey {
    /// None if a transaction has no name, or is seen to stand in several pieces.
    fn of(bytes: &[u8]) -> Option<Survey> {
        let mut names = Vec::new();
        let mut sessions = NameTable::default();
        let mut sizes: Vec<PlainSize> = Vec::new();
        // The last transaction of each session: it is the one that goes on, if any does.
        let mut lasts: Vec<Option<u64>> = Vec::new();
        let mut scanner = Scanner::new(whole_chunk(bytes, 0));
        while let Some(line) = scanner.next().ok()? {
            let session = sessions.intern(line.owner.session.into()) as usize;
            if session == sizes.len() {
                sizes.push(PlainSize::default());
                lasts.push(None);
            }
            let name = Some(line.owner.txn?);
            if line.begins_run {
                if std::mem::replace(&mut lasts[session], name) == name {
                    return None;
                }
                names.extend(name);
                sizes[session].txns += 1;
            }
            sizes[session].ops += 1 + scanner.skip_run();
        }
        let facts = PlainFacts { names: true, lines: true, ..PlainFacts::default() };
        let (_, lines) = scanner.place();
        Some(Survey { outline: PlainOutline { sessions, sizes, facts }, names, lines })
    }
}

/// Whether no two transactions have the same name. Most files number them from 0 or 1 on, and then a bit
/// for each does.
fn are_distinct(surveys: &[Survey]) -> bool {
    let count: usize = surveys.iter().map(|survey| survey.names.len()).sum();
    let mut bits = vec![0u64; 16 + count.div_ceil(32)];
    let mut others = FxHashSet::default();
    let mut is_new = |name: u64| match bits.get_mut(name as usize / 64) {
        Some(word) => {
            let bit = 1 << (name % 64);
            let is_new = *word & bit == 0;
            *word |= bit;
            is_new
        }
        None => others.insert(name),
    };
    surveys.iter().flat_map(|survey| &survey.names).all(|name| is_new(*name))
}

/// The keys of the beginning of a text. Those of a long history soon all have come up, and then its
/// operations are written with the right ones at once.
fn first_keys(bytes: &[u8]) -> Option<NameTable> {
    let size = (bytes.len() / 64).min(1 << 22);
    let mut scanner = Scanner::new(whole_chunk(bytes, 1));
    let mut keys = NameTable::default();
    while scanner.place().0 < size
        && let Some(line) = scanner.next().ok()?
    {
        keys.intern(line.key.into());
    }
    Some(keys)
}

/// The operations of a transaction that is being read.
#[derive(Default)]
struct Run {
    kinds: Vec<OpKind>,
    keys: Vec<KeyId>,
    values: Vec<ValueId>,
}

impl Run {
    #[inline]
    fn push(
        &mut self,
        is_write: bool,
        key: u64,
        value: u64,
        room: &mut PlainBuffer<'_>,
    ) -> Option<()> {
        self.kinds.push(if is_write { OpKind::Write } else { OpKind::Read });
        self.keys.push(room.key(key.into()));
        self.values.push(small(value)?);
        Some(())
    }

    /// Puts them down as those of a transaction that begins on a line.
    fn put(
        &mut self,
        Owner { session, txn }: Owner,
        line: u64,
        sessions: &NameTable,
        room: &mut PlainBuffer<'_>,
    ) -> Option<()> {
        let session = sessions.find(session.into())?;
        let (outcome, name) = (Outcome::Committed, small(txn?)?);
        let txn = PlainTxn { outcome, name, line, start: 0, finish: 0 };
        let ops = PlainOps { kinds: &self.kinds, keys: &self.keys, values: &self.values };
        room.put(session as usize, &txn, &ops)?;
        self.clear();
        Some(())
    }

    fn clear(&mut self) {
        self.kinds.clear();
        self.keys.clear();
        self.values.clear();
    }
}

/// The word of a number that fits into one.
#[inline]
fn small(number: u64) -> Option<ValueId> {
    ValueId::inline(i64::try_from(number).ok()?)
}

/// Writes the transactions of a part into its room.
fn fill(
    chunk: Chunk<'_>,
    sessions: &NameTable,
    run: &mut Run,
    room: &mut PlainBuffer<'_>,
) -> Option<()> {
    run.clear();
    let mut scanner = Scanner::new(chunk);
    let mut open: Option<(Owner, u64)> = None;
    while let Some(line) = scanner.next().ok()? {
        if line.begins_run
            && let Some((owner, first)) = open.replace((line.owner, line.number))
        {
            run.put(owner, first, sessions, room)?;
        }
        run.push(line.is_write, line.key, line.value, room)?;
        while let Some((is_write, key, value)) = scanner.next_of_run() {
            run.push(is_write, key, value, room)?;
        }
    }
    open.map_or(Some(()), |(owner, first)| run.put(owner, first, sessions, room))
}
