//! Reads a file of JSON lines while it grows.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use isolario_model::TxnSink;

use super::{is_header_of_version_1, record};
use crate::ReadError;
use crate::error::{Fault, Position, Problem, utf8};
use crate::lines::Lines;
use crate::notation::{Form, Notation, Shape, json};
use crate::predicates::Predicates;

/// The lines that are added to a file of JSON lines, from its beginning on. A line counts once it is
/// whole.
pub(crate) struct Tail {
    path: PathBuf,
    file: File,
    /// How many bytes were passed on, and in how many lines.
    read: u64,
    lines: u64,
    /// Whether rows may be told, once the first line that says anything was read.
    has_rows: Option<bool>,
    predicates: Predicates,
    /// So many bytes are looked at, at a time; more where a line is longer.
    pub(crate) at_a_time: usize,
    buffer: Vec<u8>,
}

/// So many bytes are looked at, at a time, unless somebody wants fewer.
const AT_A_TIME: usize = 1 << 22;

impl Tail {
    /// Opens a file that is there already; it may be empty.
    pub(crate) fn open(path: &Path) -> Result<Tail, ReadError> {
        let file = File::open(path).map_err(|error| failed(path, Position::Whole, error))?;
        Ok(Tail {
            path: path.to_owned(),
            file,
            read: 0,
            lines: 0,
            has_rows: None,
            predicates: Predicates::default(),
            at_a_time: AT_A_TIME,
            buffer: Vec::new(),
        })
    }

    /// The same file, from the next line on.
    pub(crate) fn fork(&self) -> Result<Tail, ReadError> {
        let Tail { read, lines, has_rows, at_a_time, .. } = *self;
        Ok(Tail { read, lines, has_rows, at_a_time, ..Tail::open(&self.path)? })
    }

    /// How many bytes were passed on.
    pub(crate) fn position(&self) -> u64 {
        self.read
    }

    /// Passes on some of the lines that were added; false if there are none. Whoever has read
    /// everything asks again later.
    pub(crate) fn read(&mut self, sink: &mut dyn TxnSink) -> Result<bool, ReadError> {
        let end = self.fill()?;
        let buffer = std::mem::take(&mut self.buffer);
        let passed = self.pass_on(&buffer[..end], sink);
        passed.map_err(|fault| self.fault(&buffer[..end], fault))?;
        self.read += end as u64;
        self.lines += memchr::memchr_iter(b'\n', &buffer[..end]).count() as u64;
        self.buffer = buffer;
        Ok(end > 0)
    }

    /// Passes on a last line without an end: nothing more is waited for.
    pub(crate) fn close(&mut self, sink: &mut dyn TxnSink) -> Result<(), ReadError> {
        let mut rest = Vec::new();
        let read = self.file.seek(SeekFrom::Start(self.read));
        read.and_then(|_| self.file.read_to_end(&mut rest)).map_err(|error| self.failure(error))?;
        let passed = self.pass_on(&rest, sink);
        passed.map_err(|fault| self.fault(&rest, fault))?;
        self.read += rest.len() as u64;
        Ok(())
    }

    fn fault(&self, bytes: &[u8], fault: Fault) -> ReadError {
        let place = match Position::in_text(bytes, fault.at) {
            Position::Column(line, column) => Position::Column(self.lines + line, column),
            place => place,
        };
        failed(&self.path, place, *fault.problem)
    }

    /// Puts what comes next into the buffer; gives where its last whole line ends.
    fn fill(&mut self) -> Result<usize, ReadError> {
        let there = self.file.metadata().map_err(|error| self.failure(error))?.len();
        if there < self.read {
            return Err(self.shorter());
        }
        let mut size = self.at_a_time.max(1);
        loop {
            let filled = self.read_up_to(size).map_err(|error| self.failure(error))?;
            match memchr::memrchr(b'\n', &self.buffer) {
                Some(newline) => return Ok(newline + 1),
                None if filled < size => return Ok(0),
                None => size *= 2,
            }
        }
    }

    fn read_up_to(&mut self, size: usize) -> io::Result<usize> {
        self.buffer.clear();
        self.file.seek(SeekFrom::Start(self.read))?;
        (&self.file).take(size as u64).read_to_end(&mut self.buffer)
    }

    fn failure(&self, error: io::Error) -> ReadError {
        failed(&self.path, Position::Whole, error)
    }

    fn shorter(&self) -> ReadError {
        let problem = Problem::malformed("a file that only grows", "one that became shorter");
        failed(&self.path, Position::Whole, problem)
    }

    fn pass_on(&mut self, bytes: &[u8], sink: &mut dyn TxnSink) -> Result<(), Fault> {
        let text = utf8(bytes)?;
        let mut form = Form::new(Notation::Json);
        for line in Lines::new(bytes, self.lines + 1).significant() {
            let is_first = self.has_rows.is_none();
            let has_rows =
                self.has_rows.get_or_insert_with(|| !is_header_of_version_1(bytes, &line));
            form.has_rows = *has_rows;
            json::read_only(&text[..line.end], line.start, &mut form)?;
            if form.shape(0) != Some(Shape::Map) {
                return Err(Fault::malformed(form.at(0), "a JSON object", form.render(0)));
            }
            if !record::is_header(&form) {
                record::read_txn(&mut form, line.number, &mut self.predicates, sink)?;
            } else if is_first {
                let (meta, _) = record::read_header(&mut form)?;
                sink.meta(&meta).map_err(Fault::refused(form.at(0)))?;
            } else {
                let expected = "a transaction (only the first line is a header)";
                return Err(Fault::malformed(form.at(0), expected, "a header"));
            }
        }
        Ok(())
    }
}

fn failed(path: &Path, position: Position, problem: impl Into<Problem>) -> ReadError {
    ReadError { file: path.display().to_string(), position, problem: problem.into() }
}
