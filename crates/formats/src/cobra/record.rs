//! The records of a log: a tag and numbers of eight bytes, most significant byte first.

use std::io::{self, Write};

use crate::cursor::Cursor;
use crate::error::Fault;

/// The writer and the write id of a read that saw the initial version.
pub(super) const INITIAL: u64 = 0xbebe_ebee;
/// As [`INITIAL`], where the key was absent.
pub(super) const NULL: u64 = 0xdead_beef;
/// The writer of a read that does not say which transaction it read from.
pub(super) const ANY: u64 = 0xabdd_efee;

/// Whether a number stands for something else than a transaction.
pub(super) fn is_reserved(txn: u64) -> bool {
    matches!(txn, INITIAL | NULL | ANY)
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A transaction begins.
    Start { txn: u64 },
    /// A read.
    Read(ReadRecord),
    /// A write.
    Write(WriteRecord),
    /// The transaction commits.
    Commit { txn: u64 },
}

/// What a read saw: the version by its writer and the write there, the key and the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadRecord {
    pub(super) writer: u64,
    pub(super) write: u64,
    pub(super) key: u64,
    pub(super) value: u64,
}

/// A write: its number in its transaction, the key and the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteRecord {
    pub(super) write: u64,
    pub(super) key: u64,
    pub(super) value: u64,
}

impl Record {
    /// What it is, for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Record::Start { txn } => format!("S, the start of transaction {txn}"),
            Record::Read(_) => "R, a read".to_owned(),
            Record::Write(_) => "W, a write".to_owned(),
            Record::Commit { txn } => format!("C, the commit of transaction {txn}"),
        }
    }

    /// Appends the record to a log.
    pub(super) fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut put = |tag: u8, numbers: &[u64]| {
            out.write_all(&[tag])?;
            numbers.iter().try_for_each(|number| out.write_all(&number.to_be_bytes()))
        };
        match *self {
            Record::Start { txn } => put(b'S', &[txn]),
            Record::Read(r) => put(b'R', &[r.writer, r.write, r.key, r.value]),
            Record::Write(w) => put(b'W', &[w.write, w.key, w.value]),
            Record::Commit { txn } => put(b'C', &[txn]),
        }
    }
}

/// The records of a log with their places; ends after the first fault.
pub(super) fn records(
    bytes: &[u8],
) -> impl Iterator<Item = Result<(usize, Record), Fault>> + use<'_> {
    let mut cursor = Cursor::new(bytes);
    let mut is_broken = false;
    std::iter::from_fn(move || {
        if is_broken || cursor.is_at_end() {
            return None;
        }
        let record = next_record(&mut cursor);
        is_broken = record.is_err();
        Some(record)
    })
}

fn next_record(cursor: &mut Cursor<'_>) -> Result<(usize, Record), Fault> {
    let at = cursor.at();
    let record = match cursor.byte("a record")? {
        b'S' => Record::Start { txn: cursor.u64_be("the transaction of a start, 8 bytes")? },
        b'R' => {
            let [writer, write, key, value] = numbers(cursor, "a field of a read, 8 bytes")?;
            Record::Read(ReadRecord { writer, write, key, value })
        }
        b'W' => {
            let [write, key, value] = numbers(cursor, "a field of a write, 8 bytes")?;
            Record::Write(WriteRecord { write, key, value })
        }
        b'C' => Record::Commit { txn: cursor.u64_be("the transaction of a commit, 8 bytes")? },
        tag => {
            let found = format!("the byte 0x{tag:02x}");
            return Err(Fault::malformed(at, "S, R, W or C", found));
        }
    };
    Ok((at, record))
}

fn numbers<const N: usize>(cursor: &mut Cursor<'_>, what: &str) -> Result<[u64; N], Fault> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = cursor.u64_be(what)?;
    }
    Ok(numbers)
}
