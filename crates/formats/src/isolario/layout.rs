//! The outer shape of a file: the header, and the frames that follow it.

use isolario_model::{Clock, Initial, Meta, SinkError};

use super::bytes::{Cursor, put_value};
use crate::Problem;

/// The first bytes of every file. The byte above 127 and the line ends show at once when a file
/// went through something that takes it for text.
pub(super) const MAGIC: [u8; 8] = *b"\x89ISO\r\n\x1a\n";

/// The versions of the format. A reader refuses later ones: see [`read_header`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// Blocks and row records, each in a frame of its own.
    First = 1,
    /// Row records of which several may share a frame, in a file with room behind them. What comes
    /// after the first frame that is not whole is not part of it.
    Recording = 2,
    /// As the first, with decimals, tuples, and versions of the rows of predicate operations.
    Rows = 3,
    /// As a recording, with the same.
    RowsRecording = 4,
}

impl Version {
    const ALL: [Version; 4] =
        [Version::First, Version::Recording, Version::Rows, Version::RowsRecording];

    fn of(number: u16) -> Option<Version> {
        Version::ALL.into_iter().find(|version| *version as u16 == number)
    }

    /// Whether the file is one that a recorder appends to.
    pub(super) fn is_recording(self) -> bool {
        matches!(self, Version::Recording | Version::RowsRecording)
    }
}

/// What a frame holds.
pub(super) mod frame {
    /// A block of whole transactions.
    pub(in super::super) const BLOCK: u8 = 1;
    /// A row record: a transaction begins.
    pub(in super::super) const BEGIN: u8 = 2;
    /// A row record: an operation and its result.
    pub(in super::super) const OP: u8 = 3;
    /// A row record: a transaction ends.
    pub(in super::super) const END: u8 = 4;
    /// The end mark: the file is complete.
    pub(in super::super) const FINISH: u8 = 5;
    /// Several row records, of one session.
    pub(in super::super) const ROWS: u8 = 6;
}

/// Kinds of frames and header entries from here on may be passed over by readers that do not know
/// them; the others may not.
pub(super) const OPTIONAL: u8 = 0x80;

mod entry {
    pub(super) const INITIAL: u8 = 1;
    pub(super) const CLOCK: u8 = 2;
}

/// The initial rules by number. Where a value belongs to the rule, it follows.
mod initial {
    pub(super) const VALUE: u8 = 0;
    pub(super) const UNLESS_WRITTEN: u8 = 1;
    pub(super) const UNWRITTEN: u8 = 2;
    pub(super) const MARKED: u8 = 3;
    pub(super) const NONE: u8 = 4;
}

/// What the error says where the format has no place for something the model has gained.
pub(super) fn inexpressible(what: &str) -> SinkError {
    crate::narrow::inexpressible("isolario", what)
}

/// Writes the header of a file.
pub(super) fn put_header(
    out: &mut Vec<u8>,
    version: Version,
    meta: &Meta,
) -> Result<(), SinkError> {
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&(version as u16).to_le_bytes());
    let mut entries = Vec::new();
    let mut content = Vec::new();
    put_initial(&mut content, &meta.initial)?;
    put_entry(&mut entries, entry::INITIAL, &content)?;
    let clock = match meta.clock {
        Clock::Nanoseconds => 0,
        Clock::EventOrder => 1,
        _ => return Err(inexpressible("this kind of clock")),
    };
    put_entry(&mut entries, entry::CLOCK, &[clock])?;
    out.extend_from_slice(&length(&entries)?.to_le_bytes());
    out.extend_from_slice(&entries);
    let crc = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
    Ok(())
}

fn put_initial(out: &mut Vec<u8>, rule: &Initial) -> Result<(), SinkError> {
    let (number, value) = match rule {
        Initial::Value(value) => (initial::VALUE, Some(value)),
        Initial::UnlessWritten(value) => (initial::UNLESS_WRITTEN, Some(value)),
        Initial::Unwritten => (initial::UNWRITTEN, None),
        Initial::Marked => (initial::MARKED, None),
        Initial::None => (initial::NONE, None),
        _ => return Err(inexpressible("this rule for the initial state")),
    };
    out.push(number);
    if let Some(value) = value {
        put_value(out, value.as_ref());
    }
    Ok(())
}

fn put_entry(out: &mut Vec<u8>, kind: u8, content: &[u8]) -> Result<(), SinkError> {
    out.push(kind);
    out.extend_from_slice(&length(content)?.to_le_bytes());
    out.extend_from_slice(content);
    Ok(())
}

fn length(bytes: &[u8]) -> Result<u32, SinkError> {
    u32::try_from(bytes.len()).map_err(|_| SinkError::TooLarge {
        what: "bytes in one record of an isolario file",
        limit: u64::from(u32::MAX),
    })
}

/// What the header says, and where the frames begin.
pub(super) struct Header {
    pub(super) version: Version,
    pub(super) meta: Meta,
    /// Entries of kinds not known here.
    pub(super) skipped_entries: u64,
    pub(super) len: usize,
}

/// Reads the header.
///
/// Its shape (magic, version, length, entries, checksum) is the same in all versions, so that
/// damage and a newer version can be told apart for ever.
pub(super) fn read_header(bytes: &[u8]) -> Result<Header, Problem> {
    let mut cursor = Cursor::new(bytes);
    let magic = cursor.take(MAGIC.len(), "the mark of an isolario file")?;
    if magic != MAGIC {
        return Err(Problem::malformed("the mark of an isolario file", magic.escape_ascii()));
    }
    let version = u16::from_le_bytes(cursor.array("the version")?);
    let len = u32::from_le_bytes(cursor.array("the length of the header")?);
    let entries = cursor.take(len as usize, "the header")?;
    let covered = bytes.len() - cursor.rest().len();
    let crc = u32::from_le_bytes(cursor.array("the checksum of the header")?);
    if crc32fast::hash(&bytes[..covered]) != crc {
        return Err(Problem::malformed("a header that fits its checksum", "a damaged one"));
    }
    let Some(version) = Version::of(version) else {
        return Err(Problem::malformed(
            format!("an isolario file of version 1 to {}", Version::ALL.len()),
            format_args!("version {version}: update isolario to read it"),
        ));
    };
    let mut header = Header {
        version,
        meta: Meta::default(),
        skipped_entries: 0,
        len: bytes.len() - cursor.rest().len(),
    };
    header.read_entries(Cursor::new(entries))?;
    Ok(header)
}

impl Header {
    fn read_entries(&mut self, mut entries: Cursor<'_>) -> Result<(), Problem> {
        while !entries.is_empty() {
            let kind = entries.byte("a header entry")?;
            let len = u32::from_le_bytes(entries.array("the length of a header entry")?);
            let mut content = Cursor::new(entries.take(len as usize, "a header entry")?);
            match kind {
                entry::INITIAL => self.meta.initial = read_initial(&mut content)?,
                entry::CLOCK => {
                    self.meta.clock = match content.byte("a clock")? {
                        0 => Clock::Nanoseconds,
                        1 => Clock::EventOrder,
                        other => return Err(unknown("a clock, 0 or 1", other)),
                    };
                }
                kind if kind >= OPTIONAL => self.skipped_entries += 1,
                kind => return Err(unknown("a header entry of a known kind", kind)),
            }
        }
        Ok(())
    }
}

fn read_initial(content: &mut Cursor<'_>) -> Result<Initial, Problem> {
    Ok(match content.byte("the rule for the initial state")? {
        initial::VALUE => Initial::Value(content.value()?.into_value()),
        initial::UNLESS_WRITTEN => Initial::UnlessWritten(content.value()?.into_value()),
        initial::UNWRITTEN => Initial::Unwritten,
        initial::MARKED => Initial::Marked,
        initial::NONE => Initial::None,
        other => return Err(unknown("a rule for the initial state, 0 to 4", other)),
    })
}

/// The error for a number that only a later version can have given a meaning.
pub(super) fn unknown(expected: &str, kind: u8) -> Problem {
    Problem::malformed(expected, format_args!("{kind}: a newer isolario may know it"))
}

/// The bytes in front of every frame's content: kind, length, checksum of the content, and a
/// checksum of these three, by which a frame can be told from noise without reading it whole.
pub(super) const HEAD: usize = 13;

/// Writes a frame of which `fill` writes the content.
pub(super) fn put_frame(
    out: &mut Vec<u8>,
    kind: u8,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), SinkError>,
) -> Result<(), SinkError> {
    let start = out.len();
    out.resize(start + HEAD, 0);
    fill(out)?;
    close_frame(&mut out[start..], kind)
}

/// Fills in the head of a frame: the room for it stands in front of the content.
pub(super) fn close_frame(frame: &mut [u8], kind: u8) -> Result<(), SinkError> {
    let (head, content) = frame.split_at_mut(HEAD);
    let (len, checksum) = (length(content)?, checksum(kind, content));
    head.copy_from_slice(&Head { kind, len, checksum }.to_bytes());
    Ok(())
}

/// What stands in front of a frame's content.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) len: u32,
    pub(super) checksum: u32,
}

impl Head {
    fn to_bytes(self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.kind;
        bytes[1..5].copy_from_slice(&self.len.to_le_bytes());
        bytes[5..9].copy_from_slice(&self.checksum.to_le_bytes());
        let own = checksum(self.kind, &bytes[..9]);
        bytes[9..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// The head at the beginning of `bytes`, unless they are too few or not a head.
    pub(super) fn parse(bytes: &[u8]) -> Option<Head> {
        let mut cursor = Cursor::new(bytes.get(..HEAD)?);
        let head = Head {
            kind: cursor.byte("").ok()?,
            len: u32::from_le_bytes(cursor.array("").ok()?),
            checksum: u32::from_le_bytes(cursor.array("").ok()?),
        };
        (head.to_bytes() == bytes[..HEAD]).then_some(head)
    }
}

/// The checksum of a part of a frame of some kind.
#[inline]
pub(super) fn checksum(kind: u8, part: &[u8]) -> u32 {
    match kind {
        frame::ROWS => mixed(part),
        _ => crc32fast::hash(part),
    }
}

/// An odd number without a pattern: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A checksum of short parts, which sessions compute between two transactions.
///
/// A CRC of so few bytes is looked up in tables, and a database at work leaves no tables in the
/// processor's caches. This takes eight bytes at a time and needs none. Each step maps different
/// sums to different sums, so that one changed word is lost in the last step alone, which keeps 32
/// of 64 bits. It detects lost pages as surely as a CRC does. A CRC is better at a few bits
/// that flip on a line, and there is no line here.
#[inline]
fn mixed(part: &[u8]) -> u32 {
    let (words, rest) = part.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mix = |sum: u64, word: &[u8; 8]| {
        let product = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        product ^ product >> 32
    };
    words.iter().chain([&last]).fold(part.len() as u64, mix) as u32
}

#[cfg(test)]
mod tests {
    use isolario_model::Value;

    use super::*;

    fn header(meta: &Meta) -> Vec<u8> {
        let mut out = Vec::new();
        put_header(&mut out, Version::First, meta).unwrap();
        out
    }

    /// Changes a header and makes its checksum fit again.
    fn forge(mut bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        bytes.truncate(bytes.len() - 4);
        change(&mut bytes);
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    #[test]
    fn every_meta_comes_back() {
        let value = || Value::Text("x".into());
        for initial in [
            Initial::Value(value()),
            Initial::UnlessWritten(value()),
            Initial::Unwritten,
            Initial::Marked,
            Initial::None,
        ] {
            for clock in [Clock::Nanoseconds, Clock::EventOrder] {
                let meta = Meta { initial: initial.clone(), clock };
                let bytes = header(&meta);
                let read = read_header(&bytes).unwrap();
                assert_eq!((read.meta, read.skipped_entries, read.len), (meta, 0, bytes.len()));
            }
        }
    }

    #[test]
    fn a_newer_version_is_refused_with_advice() {
        let bytes = forge(header(&Meta::default()), |bytes| bytes[8] = 9);
        let error = read_header(&bytes).map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            error,
            "expected an isolario file of version 1 to 4, \
             found version 9: update isolario to read it"
        );
    }

    #[test]
    fn optional_entries_are_passed_over_and_others_are_refused() {
        let with_entry = |kind: u8| {
            forge(header(&Meta::default()), |bytes| {
                bytes[10] += 6;
                bytes.extend_from_slice(&[kind, 1, 0, 0, 0, 42]);
            })
        };
        assert_eq!(read_header(&with_entry(0x80)).unwrap().skipped_entries, 1);
        let error = read_header(&with_entry(0x7f)).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("127: a newer isolario may know it"), "{error}");
    }

    #[test]
    fn the_checksum_is_what_the_book_says() {
        assert_eq!(mixed(b""), 0);
        assert_eq!(mixed(b"\x01"), 0);
        assert_eq!(mixed(b"isolario"), 0xcf35_a17c);
        assert_eq!(mixed(b"isolario, a book of islands"), 0x7a8f_6958);
    }

    #[test]
    fn every_changed_bit_and_every_change_of_length_is_told() {
        let part: Vec<u8> = (0..40).collect();
        for len in 1..part.len() {
            let whole = mixed(&part[..len]);
            assert_ne!(whole, mixed(&part[..len - 1]), "{len} bytes, one cut");
            assert_ne!(whole, mixed(&[&part[..len], &[0]].concat()), "{len} bytes, one more");
            for bit in 0..len * 8 {
                let mut changed = part[..len].to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(whole, mixed(&changed), "{len} bytes, bit {bit}");
            }
        }
    }
}
