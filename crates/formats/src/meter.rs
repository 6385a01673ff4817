//! How far the reading of a history has come.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the bytes that are read, for whoever shows it. Clones count together.
///
/// A packed file is counted twice: packed while it is unpacked, then unpacked while it is parsed.
/// Not every format counts: then nothing is read until all is.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    read: AtomicU64,
    total: AtomicU64,
}

impl Meter {
    /// How many bytes are read.
    pub fn read(&self) -> u64 {
        self.0.read.load(Ordering::Relaxed)
    }

    /// How many there are in all; 0 if that is not known yet.
    pub fn total(&self) -> u64 {
        self.0.total.load(Ordering::Relaxed)
    }

    /// Begins to count anew.
    pub(crate) fn begin(&self, total: usize) {
        self.0.read.store(0, Ordering::Relaxed);
        self.0.total.store(total as u64, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Counts what goes through it.
pub(crate) struct Metered<'m, R> {
    pub(crate) inner: R,
    pub(crate) meter: &'m Meter,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.meter.add(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Source, find};

    #[test]
    fn formats_read_in_parts_count_all_of_them() {
        for (format, text) in [
            ("plume", "w(1,1,0,0)\nr(1,1,1,1)\n"),
            ("jsonl", "{\"session\":\"a\",\"ops\":[[\"w\",\"x\",1]]}\n"),
            ("text", "session a\n  T1: w x 1\n"),
        ] {
            let source = Source::from_bytes("h", text.into()).unwrap();
            assert_eq!((source.meter().read(), source.meter().total()), (0, text.len() as u64));
            find(format).unwrap().read(&source).unwrap();
            assert_eq!(source.meter().read(), text.len() as u64, "{format}");
        }
    }
}
