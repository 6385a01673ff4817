//! A file to which records are appended, one after the other.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::room::{PAGES, Room};

/// Appends records to a file. Each is there, in one piece, when [`append`](Tape::append) returns: a
/// process that dies loses at most the record it was appending.
///
/// After an error nothing can be appended any more. So whatever is in the file has, at all times,
/// everything that came before it.
#[derive(Debug)]
pub(super) struct Tape {
    file: File,
    /// Where the next record goes.
    end: u64,
    means: Means,
    /// Why nothing can be appended any more.
    failed: Option<(io::ErrorKind, String)>,
}

/// How records get into the file.
#[derive(Debug)]
enum Means {
    /// They are stored into room that begins at a place.
    Room(u64, Room),
    /// They are written. A write that fails may leave a part of a record, which readers know by its
    /// checksum.
    Writes,
}

/// How much room to make at a time: a second's worth of records or so.
const STEP: u64 = 64 * PAGES;

impl Tape {
    /// Creates the file, or empties it, and writes how it begins.
    pub(super) fn create(path: &Path, header: &[u8]) -> io::Result<Tape> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(true).open(path)?;
        file.write_all(header)?;
        let means = match room(&file, 0, PAGES) {
            Ok(room) => Means::Room(0, room),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Means::Writes,
            Err(error) => return Err(error),
        };
        Ok(Tape { file, end: header.len() as u64, means, failed: None })
    }

    /// Appends a record, the first byte of which is not zero.
    pub(super) fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if let Some((kind, message)) = &self.failed {
            return Err(io::Error::new(*kind, message.clone()));
        }
        let done = self.put(record);
        match &done {
            Ok(()) => self.end += record.len() as u64,
            Err(error) => self.failed = Some((error.kind(), error.to_string())),
        }
        done
    }

    fn put(&mut self, record: &[u8]) -> io::Result<()> {
        let Means::Room(from, ready) = &mut self.means else {
            return self.file.write_all(record);
        };
        if ready.put((self.end - *from) as usize, record) {
            return Ok(());
        }
        *from = self.end / PAGES * PAGES;
        let least = self.end + record.len() as u64 - *from;
        *ready = room(&self.file, *from, least.next_multiple_of(PAGES))?;
        match ready.put((self.end - *from) as usize, record) {
            true => Ok(()),
            false => Err(io::Error::other("no room for a record")),
        }
    }
}

/// Room from a place on: as much as usual, or as much as the disk still has, but not less than
/// `least`.
fn room(file: &File, from: u64, least: u64) -> io::Result<Room> {
    let mut len = STEP.max(least);
    loop {
        match Room::new(file, from, len) {
            Err(error) if len > least && error.kind() != io::ErrorKind::Unsupported => {
                len = (len / 2).next_multiple_of(PAGES).max(least);
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::TempFile;
    use super::*;

    /// A tape on a file system that promises no space.
    fn plain(path: &Path) -> Tape {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path).unwrap();
        Tape { file, end: 0, means: Means::Writes, failed: None }
    }

    #[test]
    fn stored_or_written_the_bytes_are_the_same() {
        let (stored, written) = (TempFile::new(), TempFile::new());
        let mut tapes = [Tape::create(stored.path(), b"head").unwrap(), plain(written.path())];
        tapes[1].append(b"head").unwrap();
        // Up to the end of the room and beyond it, and one that does not fit into the usual room.
        let long = vec![7; STEP as usize / 3];
        let longest = vec![8; 2 * STEP as usize + 1];
        for record in [&b"a"[..], &long, &long, &long, b"bc", &longest, &long, b"d"] {
            tapes.iter_mut().for_each(|tape| tape.append(record).unwrap());
        }
        let end = tapes[1].end as usize;
        let [stored, written] =
            [stored.path(), written.path()].map(|path| std::fs::read(path).unwrap());
        assert_eq!(written.len(), end);
        assert!(stored[..end] == written[..]);
        assert!(stored[end..].iter().all(|byte| *byte == 0), "room");
    }

    #[test]
    fn after_an_error_nothing_is_appended_any_more() {
        let mut tape = plain(Path::new("/dev/full"));
        for record in ["a", "b"] {
            let error = tape.append(record.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        assert_eq!(tape.end, 0);
    }
}
