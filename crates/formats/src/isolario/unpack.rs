//! Unpacks the columns of blocks.

use std::io;

use zstd::bulk::Decompressor;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::bytes::Cursor;
use crate::Problem;

/// Unpacks the columns of one block after the other, in the same memory.
#[derive(Default)]
pub(super) struct Unpacker {
    columns: Vec<u8>,
    whole: Option<Decompressor<'static>>,
    gradual: Option<Decoder<'static>>,
    /// How many bytes of the last block were enough.
    enough: usize,
}

/// The most that zstd can make of one byte: it packs runs of up to 128 KiB into four bytes.
const MOST_UNPACKED_PER_BYTE: usize = 1 << 15;

/// The fewest bytes to begin with: what zstd unpacks at a time.
const FEWEST: usize = 1 << 17;

impl Unpacker {
    /// All columns of a block, given the content of its frame.
    pub(super) fn all(&mut self, content: &[u8]) -> Result<&[u8], Problem> {
        let Packed { bytes, len } = Packed::of(content)?;
        let columns = &mut self.columns;
        columns.clear();
        let no_room = |_| Problem::malformed("columns that fit into memory", len);
        columns.try_reserve_exact(len).map_err(no_room)?;
        made(&mut self.whole, Decompressor::new)
            .and_then(|zstd| zstd.decompress_to_buffer(bytes, columns))
            .map_err(not_packed)?;
        match columns.len() {
            found if found == len => Ok(columns),
            found => Err(Problem::malformed(format!("{len} bytes of columns"), found)),
        }
    }

    /// What `read` makes of the first columns of a block. It is given more and more of them until it has
    /// what it needs, and says how many bytes that took.
    pub(super) fn first<T>(
        &mut self,
        content: &[u8],
        mut read: impl FnMut(&[u8]) -> Result<(T, usize), Problem>,
    ) -> Result<T, Problem> {
        let Packed { bytes, len } = Packed::of(content)?;
        let zstd = made(&mut self.gradual, Decoder::new).map_err(not_packed)?;
        zstd.reinit().map_err(not_packed)?;
        let mut input = InBuffer::around(bytes);
        let (mut done, mut wanted) = (0, self.enough.max(FEWEST).min(len));
        loop {
            if self.columns.len() < wanted {
                self.columns.resize(wanted, 0);
            }
            unpack_to(zstd, &mut input, &mut self.columns[done..wanted]).map_err(not_packed)?;
            match read(&self.columns[..wanted]) {
                Ok((made, enough)) => {
                    self.enough = enough;
                    return Ok(made);
                }
                Err(problem) if wanted == len => return Err(problem),
                Err(_) => (done, wanted) = (wanted, wanted.saturating_mul(2).min(len)),
            }
        }
    }
}

/// Fills all of `columns` with what comes next.
fn unpack_to(
    zstd: &mut Decoder<'_>,
    input: &mut InBuffer<'_>,
    columns: &mut [u8],
) -> io::Result<()> {
    let mut output = OutBuffer::around(columns);
    while output.pos() < output.capacity() {
        let before = (input.pos(), output.pos());
        zstd.run(input, &mut output)?;
        if before == (input.pos(), output.pos()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// What was made before, or is made now.
fn made<T>(there: &mut Option<T>, make: impl FnOnce() -> io::Result<T>) -> io::Result<&mut T> {
    Ok(match there {
        Some(there) => there,
        none => none.insert(make()?),
    })
}

fn not_packed(error: io::Error) -> Problem {
    Problem::malformed("columns packed with zstd", error)
}

/// The content of a block frame.
struct Packed<'c> {
    bytes: &'c [u8],
    /// How many bytes of columns they are.
    len: usize,
}

impl<'c> Packed<'c> {
    fn of(content: &'c [u8]) -> Result<Packed<'c>, Problem> {
        let mut cursor = Cursor::new(content);
        let claimed = u64::from_le_bytes(cursor.array("the length of a block's columns")?);
        let bytes = cursor.rest();
        let limit = bytes.len().saturating_mul(MOST_UNPACKED_PER_BYTE);
        let len = usize::try_from(claimed).ok().filter(|len| *len <= limit).ok_or_else(|| {
            Problem::malformed(
                format!("at most {limit} bytes of columns in {} packed ones", bytes.len()),
                claimed,
            )
        })?;
        Ok(Packed { bytes, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns that hardly can be packed, and the content of their frame.
    fn sample(len: usize) -> (Vec<u8>, Vec<u8>) {
        let noise = |at: usize| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8;
        let columns: Vec<u8> = (0..len).map(noise).collect();
        let mut content = (len as u64).to_le_bytes().to_vec();
        content.extend(zstd::bulk::compress(&columns, 1).unwrap());
        (columns, content)
    }

    /// Reads the first `needed` bytes; says how many more were there.
    fn read_first(
        unpacker: &mut Unpacker,
        content: &[u8],
        needed: usize,
    ) -> Option<(Vec<u8>, usize)> {
        let read = |columns: &[u8]| match columns.get(..needed) {
            Some(first) => Ok(((first.to_vec(), columns.len() - needed), needed)),
            None => Err(Problem::malformed("more", "less")),
        };
        unpacker.first(content, read).ok()
    }

    #[test]
    fn as_much_is_unpacked_as_is_needed() {
        let (columns, content) = sample(1 << 20);
        let mut unpacker = Unpacker::default();
        for needed in [0, 1, FEWEST, FEWEST + 1, 500_000, 1 << 20] {
            let (first, more) = read_first(&mut unpacker, &content, needed).unwrap();
            assert!(first == columns[..needed]);
            assert!(more <= needed.max(FEWEST), "{more} beyond {needed}");
            // What was enough is what the next one begins with, whatever was unpacked in between.
            assert!(unpacker.all(&content).unwrap() == columns);
            let more = read_first(&mut unpacker, &content, needed).unwrap().1;
            assert_eq!(more, FEWEST.saturating_sub(needed));
        }
        let (short, content) = sample(10);
        assert_eq!(read_first(&mut unpacker, &content, 10), Some((short, 0)));
    }

    #[test]
    fn what_is_not_there_is_not_unpacked() {
        let (_, content) = sample(1 << 20);
        let mut unpacker = Unpacker::default();
        assert!(read_first(&mut unpacker, &content, (1 << 20) + 1).is_none());
        assert!(read_first(&mut unpacker, &content[..content.len() / 2], 1 << 20).is_none());
        assert!(unpacker.all(&content[..content.len() / 2]).is_err());
        let mut longer = content.clone();
        longer[0] = 1;
        assert!(read_first(&mut unpacker, &longer, (1 << 20) + 1).is_none());
        assert!(unpacker.all(&longer).is_err());
        assert!(read_first(&mut unpacker, &content, 1 << 20).is_some());
    }
}
