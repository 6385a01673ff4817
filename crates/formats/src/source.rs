//! Where a history comes from: a file, a directory, standard input or memory; compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::Mmap;

use crate::error::{Position, Problem, ReadError};
use crate::unpack::unpack;

/// The bytes of a file: mapped where it is a plain file, owned where it was unpacked or piped.
#[derive(Debug)]
pub enum Bytes {
    /// A mapped file.
    Mapped(Mmap),
    /// Bytes in memory.
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// What a source holds.
#[derive(Debug)]
pub enum Content {
    /// One file.
    File(Bytes),
    /// The files of a directory with their names, in the natural order of those (`T2` before
    /// `T10`).
    Directory(Vec<(String, Bytes)>),
}

impl Content {
    /// How many bytes there are in all.
    fn len(&self) -> usize {
        match self {
            Content::File(bytes) => bytes.len(),
            Content::Directory(files) => files.iter().map(|(_, bytes)| bytes.len()).sum(),
        }
    }
}

/// Counts the bytes that are read, so that progress can be shown. Clones count together.
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

    /// Starts counting from zero again.
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

/// An input that is open and unpacked, under the name by which the user knows it.
#[derive(Debug)]
pub struct Source {
    name: String,
    content: Content,
    meter: Meter,
    pub(crate) leaves_out_contradictory_times: bool,
}

impl Source {
    /// Opens a file or a directory; `-` is standard input.
    pub fn open(path: &Path) -> Result<Source, ReadError> {
        Source::open_metered(path, Meter::default())
    }

    /// Opens a file or a directory whose reading is counted.
    pub fn open_metered(path: &Path, meter: Meter) -> Result<Source, ReadError> {
        let name = path.display().to_string();
        let content = if name == "-" {
            let mut bytes = Vec::new();
            io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .map_err(Problem::from)
                .and_then(|_| unpack(Bytes::Owned(bytes), &meter))
                .map(Content::File)
        } else if path.is_dir() {
            open_directory(path, &meter).map(Content::Directory)
        } else {
            open_file(path, &meter).map(Content::File)
        };
        Source::of(name, content, meter)
    }

    fn of(
        name: String,
        content: Result<Content, Problem>,
        meter: Meter,
    ) -> Result<Source, ReadError> {
        match content {
            Ok(content) => {
                meter.begin(content.len());
                Ok(Source { name, content, meter, leaves_out_contradictory_times: false })
            }
            Err(problem) => Err(ReadError { file: name, position: Position::Whole, problem }),
        }
    }

    /// A source in memory, unpacked if it is compressed.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Source, ReadError> {
        let meter = Meter::default();
        let content = unpack(Bytes::Owned(bytes), &meter).map(Content::File);
        Source::of(name.into(), content, meter)
    }

    /// A directory in memory.
    pub fn from_files(name: impl Into<String>, mut files: Vec<(String, Vec<u8>)>) -> Source {
        files.sort_by(|a, b| natural_key(&a.0).cmp(&natural_key(&b.0)));
        let files = files.into_iter().map(|(name, bytes)| (name, Bytes::Owned(bytes)));
        let content = Content::Directory(files.collect());
        let (name, meter) = (name.into(), Meter::default());
        Source { name, content, meter, leaves_out_contradictory_times: false }
    }

    /// Leaves out both times of transactions that finish before they start, instead of refusing the source.
    #[must_use]
    pub fn leaving_out_contradictory_times(self, left_out: bool) -> Source {
        Source { leaves_out_contradictory_times: left_out, ..self }
    }

    /// The name by which the user knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who counts what is read.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// What it holds.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The bytes, if it is one file.
    pub fn file(&self) -> Option<&[u8]> {
        match &self.content {
            Content::File(bytes) => Some(bytes),
            Content::Directory(_) => None,
        }
    }

    /// The text that the file begins with, as far as it is one: what sniffers look at.
    pub(crate) fn beginning(&self) -> &str {
        self.file().map_or("", text_beginning)
    }

    /// The files, if it is a directory.
    pub fn files(&self) -> Option<&[(String, Bytes)]> {
        match &self.content {
            Content::File(_) => None,
            Content::Directory(files) => Some(files),
        }
    }

    /// The bytes of a one-file format, or the error that says so.
    pub fn require_file(&self) -> Result<&[u8], ReadError> {
        self.file()
            .ok_or_else(|| self.error(Position::Whole, Problem::malformed("a file", "a directory")))
    }

    /// The files of a directory format, or the error that says so.
    pub fn require_files(&self) -> Result<&[(String, Bytes)], ReadError> {
        self.files()
            .ok_or_else(|| self.error(Position::Whole, Problem::malformed("a directory", "a file")))
    }

    /// An error in this source.
    pub fn error(&self, position: Position, problem: impl Into<Problem>) -> ReadError {
        ReadError { file: self.name.clone(), position, problem: problem.into() }
    }

    /// An error in one file of this directory.
    pub fn error_in(
        &self,
        file: &str,
        position: Position,
        problem: impl Into<Problem>,
    ) -> ReadError {
        ReadError { file: format!("{}/{file}", self.name), position, problem: problem.into() }
    }
}

/// The text that some bytes begin with.
pub(crate) fn text_beginning(bytes: &[u8]) -> &str {
    const ENOUGH: usize = 1 << 16;
    let head = &bytes[..bytes.len().min(ENOUGH)];
    let valid = std::str::from_utf8(head).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(&head[..valid]).unwrap_or("")
}

fn open_directory(path: &Path, meter: &Meter) -> Result<Vec<(String, Bytes)>, Problem> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name
            && path.is_file()
        {
            files.push((name, open_file(&path, meter)?));
        }
    }
    files.sort_by(|a, b| natural_key(&a.0).cmp(&natural_key(&b.0)));
    Ok(files)
}

fn open_file(path: &Path, meter: &Meter) -> Result<Bytes, Problem> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() > 0 {
        return unpack(Bytes::Mapped(map(&file)?), meter);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    unpack(Bytes::Owned(bytes), meter)
}

#[expect(unsafe_code, reason = "mapping a file has no safe interface")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only. A file changed by others while it is read gives bytes that
    // the parsers refuse, as they refuse any bad input; a file cut short ends the process, which
    // is the price of not copying every history, and the same in every tool that maps its input.
    unsafe { Mmap::map(file) }
}

/// Orders names as people do: runs of digits by their number.
fn natural_key(name: &str) -> Vec<(u128, &str)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text_len = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(text_len);
        let digits_len = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (digits, tail) = tail.split_at(digits_len);
        key.push((0, text));
        key.push((digits.parse().unwrap_or(u128::MAX), digits));
        rest = tail;
    }
    key
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn gzip_and_zstd_are_unpacked_and_plain_bytes_are_left_alone() {
        let plain = b"r(1,2,3,4)\n".to_vec();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&plain).unwrap();
        for packed in
            [plain.clone(), gz.finish().unwrap(), zstd::encode_all(&plain[..], 3).unwrap()]
        {
            let source = Source::from_bytes("h", packed).unwrap();
            assert_eq!(source.file(), Some(&plain[..]));
        }
    }

    #[test]
    fn a_cut_archive_is_an_error_with_its_name() {
        let packed = zstd::encode_all(&[7u8; 1000][..], 3).unwrap();
        let error = Source::from_bytes("h.zst", packed[..packed.len() - 2].to_vec()).unwrap_err();
        assert!(error.to_string().starts_with("h.zst: "), "{error}");
    }

    #[test]
    fn files_of_a_directory_come_in_natural_order() {
        let files = ["T10.log", "T2.log", "T1.log"].map(|n| (n.to_owned(), Vec::new())).to_vec();
        let source = Source::from_files("d", files);
        let names: Vec<_> = source.files().unwrap().iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["T1.log", "T2.log", "T10.log"]);
    }

    #[test]
    fn formats_read_in_parts_count_all_of_them() {
        for (format, text) in [
            ("plume", "w(1,1,0,0)\nr(1,1,1,1)\n"),
            ("jsonl", "{\"session\":\"a\",\"ops\":[[\"w\",\"x\",1]]}\n"),
            ("text", "session a\n  T1: w x 1\n"),
        ] {
            let source = Source::from_bytes("h", text.into()).unwrap();
            assert_eq!((source.meter().read(), source.meter().total()), (0, text.len() as u64));
            crate::find(format).unwrap().read(&source).unwrap();
            assert_eq!(source.meter().read(), text.len() as u64, "{format}");
        }
    }
}
