//! A block: whole transactions in columns, compressed, with dictionaries of its own.
//!
//! Blocks share nothing, so they can be read in parallel. The columns of operations are streams of
//! parts (see [`super::parts`]): a kind of operation takes from each stream what it needs, so that
//! rare kinds need no columns of their own.

use std::ops::Range;

use isolario_model::{TupleParts, ValueRef};

use super::bytes::{Cursor, ValueParts, ValueSource, get_columns, get_scalar, put_varint, tag};
use super::ints;
use super::streams::{Stream, TextStream};
use crate::Problem;

/// The columns of a block. [`Block::walk`] states their order in the file.
#[derive(Default)]
pub(super) struct Block {
    pub(super) sessions: Names,
    pub(super) keys: Names,
    /// Values of operations and names of transactions that are not integers.
    pub(super) values: Names,

    pub(super) outcomes: Vec<u8>,
    /// Which facts each transaction has; each of the columns after `txn_ops` holds only those.
    pub(super) facts: Vec<u8>,
    pub(super) txn_sessions: Vec<i64>,
    /// How many operations each has.
    pub(super) txn_ops: Vec<i64>,
    pub(super) txn_names: Values,
    pub(super) lines: Vec<i64>,
    pub(super) starts: Vec<i64>,
    pub(super) finishes: Vec<i64>,
    pub(super) db_starts: Pairs,
    pub(super) db_commits: Pairs,
    /// Snapshots and errors.
    pub(super) txn_texts: Texts,

    /// The kind of each operation, and which notes it has.
    pub(super) heads: Vec<u8>,
    pub(super) states: Vec<u8>,
    pub(super) op_keys: Vec<i64>,
    pub(super) op_values: Values,
    /// Numbers of rows; for lists, how much of the longest one so far is shared and how much is
    /// new.
    pub(super) counts: Vec<i64>,
    pub(super) op_texts: Texts,
    pub(super) version_kinds: Vec<u8>,
    pub(super) version_numbers: Pairs,
}

/// Values, each an integer of its own or a place in the block's dictionary of values.
#[derive(Default)]
pub(super) struct Values {
    /// [`INLINE`] or [`LISTED`].
    pub(super) places: Vec<u8>,
    pub(super) numbers: Vec<i64>,
}

/// The number is the value.
pub(super) const INLINE: u8 = 0;
/// The number is a place in the dictionary.
pub(super) const LISTED: u8 = 1;

/// Texts, one after the other.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) lengths: Vec<i64>,
    pub(super) text: String,
}

impl Texts {
    pub(super) fn push(&mut self, text: &str) {
        self.lengths.push(text.len() as i64);
        self.text.push_str(text);
    }
}

/// Things of two numbers: timestamps, versions.
#[derive(Default)]
pub(super) struct Pairs {
    pub(super) firsts: Vec<i64>,
    pub(super) seconds: Vec<i64>,
}

impl Pairs {
    pub(super) fn push(&mut self, first: u64, second: u64) {
        self.firsts.push(first as i64);
        self.seconds.push(second as i64);
    }
}

/// A dictionary of values. The columns of a tuple follow its tag, and are not entries of their own.
#[derive(Default)]
pub(super) struct Names {
    tags: Vec<u8>,
    ints: Vec<i64>,
    texts: Texts,
}

impl Names {
    pub(super) fn of<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> Names {
        let mut names = Names::default();
        values.for_each(|value| names.push(value));
        names
    }

    fn push(&mut self, value: ValueRef<'_>) {
        match ValueParts::of(value) {
            Ok(parts) => {
                self.tags.push(parts.tag);
                self.ints.extend(parts.int);
                parts.text.into_iter().for_each(|text| self.texts.push(text));
            }
            Err(tuple) => {
                self.tags.push(tag::TUPLE);
                self.ints.push(tuple.len() as i64);
                self.texts.push(tuple.table());
                for (name, value) in tuple.columns() {
                    self.texts.push(name);
                    self.push(value);
                }
            }
        }
    }

    /// What is written in the dictionary.
    pub(super) fn listed(&self) -> Result<Listed<'_>, Problem> {
        let mut source = NameStream::new(self);
        let mut listed = Listed::default();
        while !source.tags.rest().is_empty() {
            match source.tag()? {
                tag::TUPLE => listed.take_tuple(&mut source)?,
                tag => listed.values.push(get_scalar(&mut source, tag)?),
            }
        }
        source.finish()?;
        Ok(listed)
    }

    /// How many tuples there are, and how many columns they have at most.
    pub(super) fn tuple_count(&self) -> (usize, usize) {
        let tuples = self.tags.iter().filter(|tag| **tag == tag::TUPLE).count();
        (tuples, if tuples == 0 { 0 } else { self.tags.len() - tuples })
    }

    /// Tells one value after the other, for whoever does not need them all at once: those of a history of
    /// rows take more memory than all of the rest.
    pub(super) fn for_each(&self, mut tell: impl FnMut(ValueRef<'_>)) -> Result<(), Problem> {
        let mut source = NameStream::new(self);
        let mut columns = Vec::new();
        while !source.tags.rest().is_empty() {
            match source.tag()? {
                tag::TUPLE => {
                    columns.clear();
                    let table = get_columns(&mut source, &mut columns)?;
                    tell(ValueRef::from(&TupleParts { table, columns: &columns }));
                }
                tag => tell(get_scalar(&mut source, tag)?),
            }
        }
        source.finish()
    }
}

/// The values of a dictionary as they are read. Histories of rows have many tuples: the columns of all
/// of them lie in one array, so that none is an allocation of its own.
#[derive(Default)]
pub(super) struct Listed<'b> {
    /// In the order of their places. What stands in the place of a tuple does not count.
    values: Vec<ValueRef<'b>>,
    tuples: Vec<ListedTuple<'b>>,
    columns: Vec<(&'b str, ValueRef<'b>)>,
}

struct ListedTuple<'b> {
    place: usize,
    table: &'b str,
    columns: Range<usize>,
}

impl<'b> Listed<'b> {
    fn take_tuple(&mut self, source: &mut NameStream<'b>) -> Result<(), Problem> {
        let start = self.columns.len();
        let table = get_columns(source, &mut self.columns)?;
        let columns = start..self.columns.len();
        self.tuples.push(ListedTuple { place: self.values.len(), table, columns });
        self.values.push(ValueRef::Nil);
        Ok(())
    }

    /// The tuples, in the order of their places.
    pub(super) fn tuples(&self) -> Vec<TupleParts<'_>> {
        let tuple = |tuple: &ListedTuple<'b>| TupleParts {
            table: tuple.table,
            columns: &self.columns[tuple.columns.clone()],
        };
        self.tuples.iter().map(tuple).collect()
    }

    /// All values, in the order of their places, with these tuples among them.
    pub(super) fn values<'a>(&'a self, tuples: &'a [TupleParts<'a>]) -> Vec<ValueRef<'a>> {
        let mut values: Vec<ValueRef<'a>> = self.values.clone();
        for (tuple, parts) in self.tuples.iter().zip(tuples) {
            values[tuple.place] = ValueRef::from(parts);
        }
        values
    }
}

const INTS: &str = "integers of a dictionary";
const TEXTS: &str = "texts of a dictionary";

struct NameStream<'b> {
    tags: Stream<'b, u8>,
    ints: Stream<'b, i64>,
    texts: TextStream<'b>,
}

impl<'b> NameStream<'b> {
    fn new(names: &'b Names) -> Self {
        NameStream {
            tags: Stream::new(&names.tags),
            ints: Stream::new(&names.ints),
            texts: TextStream::new(&names.texts),
        }
    }

    /// Checks that nothing is left over.
    fn finish(&self) -> Result<(), Problem> {
        self.ints.finish(INTS)?;
        self.texts.finish(TEXTS)
    }
}

impl<'b> ValueSource<'b> for NameStream<'b> {
    fn tag(&mut self) -> Result<u8, Problem> {
        self.tags.next("tags of a dictionary")
    }

    fn int(&mut self) -> Result<i64, Problem> {
        self.ints.next(INTS)
    }

    fn text(&mut self) -> Result<&'b str, Problem> {
        self.texts.next(TEXTS)
    }

    fn columns(&mut self) -> Result<usize, Problem> {
        let (count, left) = (self.int()?, self.tags.rest().len());
        usize::try_from(count).ok().filter(|count| *count <= left).ok_or_else(|| {
            Problem::malformed(format!("a number of columns, at most {left}"), count)
        })
    }
}

/// What is done with each column in turn: it is written, or read.
trait Codec {
    fn bytes(&mut self, column: &mut Vec<u8>) -> Result<(), Problem>;
    fn ints(&mut self, column: &mut Vec<i64>) -> Result<(), Problem>;
    fn text(&mut self, column: &mut String) -> Result<(), Problem>;

    fn texts(&mut self, column: &mut Texts) -> Result<(), Problem> {
        self.ints(&mut column.lengths)?;
        self.text(&mut column.text)
    }

    fn values(&mut self, column: &mut Values) -> Result<(), Problem> {
        self.bytes(&mut column.places)?;
        self.ints(&mut column.numbers)
    }

    fn pairs(&mut self, column: &mut Pairs) -> Result<(), Problem> {
        self.ints(&mut column.firsts)?;
        self.ints(&mut column.seconds)
    }

    fn names(&mut self, column: &mut Names) -> Result<(), Problem> {
        self.bytes(&mut column.tags)?;
        self.ints(&mut column.ints)?;
        self.texts(&mut column.texts)
    }
}

impl Block {
    /// Goes through the columns in the order of the file, which is stated here and in the two that follow.
    fn walk(&mut self, codec: &mut impl Codec) -> Result<(), Problem> {
        self.walk_txns(codec)?;
        self.walk_ops(codec)
    }

    /// Names, and what is known of transactions.
    fn walk_txns(&mut self, codec: &mut impl Codec) -> Result<(), Problem> {
        codec.names(&mut self.sessions)?;
        codec.names(&mut self.keys)?;
        codec.names(&mut self.values)?;

        codec.bytes(&mut self.outcomes)?;
        codec.bytes(&mut self.facts)?;
        codec.ints(&mut self.txn_sessions)?;
        codec.ints(&mut self.txn_ops)?;
        codec.values(&mut self.txn_names)?;
        codec.ints(&mut self.lines)?;
        codec.ints(&mut self.starts)?;
        codec.ints(&mut self.finishes)?;
        codec.pairs(&mut self.db_starts)?;
        codec.pairs(&mut self.db_commits)?;
        codec.texts(&mut self.txn_texts)
    }

    fn walk_ops(&mut self, codec: &mut impl Codec) -> Result<(), Problem> {
        codec.bytes(&mut self.heads)?;
        codec.bytes(&mut self.states)?;
        codec.ints(&mut self.op_keys)?;
        codec.values(&mut self.op_values)?;
        codec.ints(&mut self.counts)?;
        codec.texts(&mut self.op_texts)?;
        codec.bytes(&mut self.version_kinds)?;
        codec.pairs(&mut self.version_numbers)
    }

    /// Whether something is said of its transactions that few have, or values are listed.
    pub(super) fn has_rare_facts(&self) -> bool {
        let Block { db_starts, db_commits, txn_texts, values, .. } = self;
        let columns = [
            &db_starts.firsts,
            &db_starts.seconds,
            &db_commits.firsts,
            &db_commits.seconds,
            &txn_texts.lengths,
            &values.ints,
            &values.texts.lengths,
        ];
        let texts = [&txn_texts.text, &values.texts.text];
        columns.iter().any(|column| !column.is_empty())
            || texts.iter().any(|text| !text.is_empty())
            || !values.tags.is_empty()
    }

    /// Writes the content of a block frame: the length of the columns, then the columns,
    /// compressed.
    pub(super) fn put(&mut self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let mut columns = Encoder::default();
        self.walk(&mut columns).map_err(std::io::Error::other)?;
        out.extend_from_slice(&(columns.0.len() as u64).to_le_bytes());
        out.extend_from_slice(&zstd::bulk::compress(&columns.0, COMPRESSION)?);
        Ok(())
    }

    /// Reads the content of a block frame, in the place of what was there. `columns` has no meaning but
    /// memory: who reads one block after the other need not fetch it again and again.
    pub(super) fn get(&mut self, content: &[u8], columns: &mut Vec<u8>) -> Result<(), Problem> {
        unpack_content(content, columns)?;
        let mut decoder = Decoder(Cursor::new(columns));
        self.walk(&mut decoder)?;
        match decoder.0.rest().len() {
            0 => Ok(()),
            rest => {
                Err(Problem::malformed("the end of a block", format_args!("{rest} more bytes")))
            }
        }
    }

    /// As [`Block::get`], without operations: what is in their columns has no meaning.
    pub(super) fn get_txns(
        &mut self,
        content: &[u8],
        columns: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        unpack_content(content, columns)?;
        self.walk_txns(&mut Decoder(Cursor::new(columns)))
    }
}

fn unpack_content(content: &[u8], columns: &mut Vec<u8>) -> Result<(), Problem> {
    let mut cursor = Cursor::new(content);
    let claimed = u64::from_le_bytes(cursor.array("the length of a block's columns")?);
    let packed = cursor.rest();
    let limit = packed.len().saturating_mul(MOST_UNPACKED_PER_BYTE);
    let len = usize::try_from(claimed).ok().filter(|len| *len <= limit).ok_or_else(|| {
        Problem::malformed(
            format!("at most {limit} bytes of columns in {} packed ones", packed.len()),
            claimed,
        )
    })?;
    unpack(packed, len, columns)
}

fn unpack(packed: &[u8], len: usize, columns: &mut Vec<u8>) -> Result<(), Problem> {
    columns.clear();
    let no_room = |_| Problem::malformed("columns that fit into memory", len);
    columns.try_reserve_exact(len).map_err(no_room)?;
    zstd::bulk::Decompressor::new()
        .and_then(|mut zstd| zstd.decompress_to_buffer(packed, columns))
        .map_err(|error| Problem::malformed("columns packed with zstd", error))?;
    if columns.len() != len {
        return Err(Problem::malformed(format!("{len} bytes of columns"), columns.len()));
    }
    Ok(())
}

/// The level of compression: higher ones gain a few percent on noise and cost much time.
const COMPRESSION: i32 = 3;

/// The most that zstd can make of one byte: it packs runs of up to 128 KiB into four bytes.
const MOST_UNPACKED_PER_BYTE: usize = 1 << 15;

#[derive(Default)]
struct Encoder(Vec<u8>);

impl Codec for Encoder {
    fn bytes(&mut self, column: &mut Vec<u8>) -> Result<(), Problem> {
        put_varint(&mut self.0, column.len() as u64);
        self.0.extend_from_slice(column);
        Ok(())
    }

    fn ints(&mut self, column: &mut Vec<i64>) -> Result<(), Problem> {
        ints::encode(column, &mut self.0);
        Ok(())
    }

    fn text(&mut self, column: &mut String) -> Result<(), Problem> {
        put_varint(&mut self.0, column.len() as u64);
        self.0.extend_from_slice(column.as_bytes());
        Ok(())
    }
}

struct Decoder<'a>(Cursor<'a>);

impl Codec for Decoder<'_> {
    fn bytes(&mut self, column: &mut Vec<u8>) -> Result<(), Problem> {
        let len = self.0.count("the rows of a column of bytes")?;
        column.clear();
        column.extend_from_slice(self.0.take(len, "a column of bytes")?);
        Ok(())
    }

    fn ints(&mut self, column: &mut Vec<i64>) -> Result<(), Problem> {
        ints::decode(&mut self.0, column)
    }

    fn text(&mut self, column: &mut String) -> Result<(), Problem> {
        column.clear();
        column.push_str(self.0.text("a column of texts")?);
        Ok(())
    }
}
