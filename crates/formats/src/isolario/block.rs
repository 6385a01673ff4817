//! A block: whole transactions in columns, compressed, with dictionaries of its own.
//!
//! Blocks share nothing, so they can be read in parallel. The columns of operations are streams of
//! parts (see [`super::parts`]): a kind of operation takes from each stream what it needs, so that
//! rare kinds need no columns of their own.

use std::marker::PhantomData;
use std::ops::Range;

use isolario_model::{TupleParts, ValueRef};

use super::bytes::{Cursor, ValueParts, ValueSource, get_columns, get_scalar, put_varint, tag};
use super::ints;
use super::streams::{Stream, TextStream};
use super::unpack::Unpacker;
use crate::Problem;

/// How the columns of a block are kept.
pub(super) trait Form {
    type Bytes: AsRef<[u8]> + Default;
    type Ints: Rows + Default;
    type Text: AsRef<str> + Default;
}

/// Each in an array of its own.
#[derive(Default)]
pub(super) struct Owned;

impl Form for Owned {
    type Bytes = Vec<u8>;
    type Ints = Vec<i64>;
    type Text = String;
}

/// As they stand in the file: nothing is copied, and numbers are put together when they are asked for.
#[derive(Default)]
pub(super) struct Viewed<'b>(PhantomData<&'b [u8]>);

impl<'b> Form for Viewed<'b> {
    type Bytes = &'b [u8];
    type Ints = ints::Packed<'b>;
    type Text = &'b str;
}

/// What has rows.
pub(super) trait Rows {
    fn rows(&self) -> usize;
}

impl Rows for Vec<i64> {
    fn rows(&self) -> usize {
        self.len()
    }
}

impl Rows for ints::Packed<'_> {
    fn rows(&self) -> usize {
        self.len()
    }
}

/// The columns of a block. [`Block::walk`] states their order in the file.
#[derive(Default)]
pub(super) struct Block<F: Form = Owned> {
    pub(super) sessions: Names<F>,
    pub(super) keys: Names<F>,
    /// Values of operations and names of transactions that are not integers.
    pub(super) values: Names<F>,

    pub(super) outcomes: F::Bytes,
    /// Which facts each transaction has; each of the columns after `txn_ops` holds only those.
    pub(super) facts: F::Bytes,
    pub(super) txn_sessions: F::Ints,
    /// How many operations each has.
    pub(super) txn_ops: F::Ints,
    pub(super) txn_names: Values<F>,
    pub(super) lines: F::Ints,
    pub(super) starts: F::Ints,
    pub(super) finishes: F::Ints,
    pub(super) db_starts: Pairs<F>,
    pub(super) db_commits: Pairs<F>,
    /// Snapshots and errors.
    pub(super) txn_texts: Texts<F>,

    /// The kind of each operation, and which notes it has.
    pub(super) heads: F::Bytes,
    pub(super) states: F::Bytes,
    pub(super) op_keys: F::Ints,
    pub(super) op_values: Values<F>,
    /// Numbers of rows; for lists, how much of the longest one so far is shared and how much is
    /// new.
    pub(super) counts: F::Ints,
    pub(super) op_texts: Texts<F>,
    pub(super) version_kinds: F::Bytes,
    pub(super) version_numbers: Pairs<F>,
}

/// Values, each an integer of its own or a place in the block's dictionary of values.
#[derive(Default)]
pub(super) struct Values<F: Form = Owned> {
    /// [`INLINE`] or [`LISTED`].
    pub(super) places: F::Bytes,
    pub(super) numbers: F::Ints,
}

/// The number is the value.
pub(super) const INLINE: u8 = 0;
/// The number is a place in the dictionary.
pub(super) const LISTED: u8 = 1;

/// Texts, one after the other.
#[derive(Default)]
pub(super) struct Texts<F: Form = Owned> {
    pub(super) lengths: F::Ints,
    pub(super) text: F::Text,
}

impl Texts {
    pub(super) fn push(&mut self, text: &str) {
        self.lengths.push(text.len() as i64);
        self.text.push_str(text);
    }
}

/// Things of two numbers: timestamps, versions.
#[derive(Default)]
pub(super) struct Pairs<F: Form = Owned> {
    pub(super) firsts: F::Ints,
    pub(super) seconds: F::Ints,
}

impl Pairs {
    pub(super) fn push(&mut self, first: u64, second: u64) {
        self.firsts.push(first as i64);
        self.seconds.push(second as i64);
    }
}

/// A dictionary of values. The columns of a tuple follow its tag, and are not entries of their own.
#[derive(Default)]
pub(super) struct Names<F: Form = Owned> {
    tags: F::Bytes,
    ints: F::Ints,
    texts: Texts<F>,
}

impl Names<Viewed<'_>> {
    /// A copy, in the place of what was there.
    pub(super) fn copy_to(&self, names: &mut Names) {
        let Names { tags, ints, texts } = self;
        names.tags.clear();
        names.tags.extend_from_slice(tags);
        ints.numbers().take(ints.len(), &mut names.ints);
        texts.lengths.numbers().take(texts.lengths.len(), &mut names.texts.lengths);
        names.texts.text.clear();
        names.texts.text.push_str(texts.text);
    }
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
        // Most are of integers alone.
        let has_texts = !self.texts.lengths.is_empty() || !self.texts.text.is_empty();
        if !has_texts
            && self.ints.len() == self.tags.len()
            && self.tags.iter().all(|tag| *tag == tag::INT)
        {
            self.ints.iter().for_each(|int| tell(ValueRef::Int(*int)));
            return Ok(());
        }
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

/// What is done with each column in turn: it is written, read or looked at.
trait Codec<F: Form> {
    fn bytes(&mut self, column: &mut F::Bytes) -> Result<(), Problem>;
    fn ints(&mut self, column: &mut F::Ints) -> Result<(), Problem>;
    fn text(&mut self, column: &mut F::Text) -> Result<(), Problem>;

    fn texts(&mut self, column: &mut Texts<F>) -> Result<(), Problem> {
        self.ints(&mut column.lengths)?;
        self.text(&mut column.text)
    }

    fn values(&mut self, column: &mut Values<F>) -> Result<(), Problem> {
        self.bytes(&mut column.places)?;
        self.ints(&mut column.numbers)
    }

    fn pairs(&mut self, column: &mut Pairs<F>) -> Result<(), Problem> {
        self.ints(&mut column.firsts)?;
        self.ints(&mut column.seconds)
    }

    fn names(&mut self, column: &mut Names<F>) -> Result<(), Problem> {
        self.bytes(&mut column.tags)?;
        self.ints(&mut column.ints)?;
        self.texts(&mut column.texts)
    }
}

impl<F: Form> Block<F> {
    /// Goes through the columns in the order of the file, which is stated here and in the two that follow.
    fn walk(&mut self, codec: &mut impl Codec<F>) -> Result<(), Problem> {
        self.walk_txns(codec)?;
        self.walk_ops(codec)
    }

    /// Names, and what is known of transactions.
    fn walk_txns(&mut self, codec: &mut impl Codec<F>) -> Result<(), Problem> {
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

    fn walk_ops(&mut self, codec: &mut impl Codec<F>) -> Result<(), Problem> {
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
        columns.iter().any(|column| column.rows() > 0)
            || texts.iter().any(|text| !text.as_ref().is_empty())
            || !values.tags.as_ref().is_empty()
    }
}

impl Block {
    /// Writes the content of a block frame: the length of the columns, then the columns,
    /// compressed.
    pub(super) fn put(&mut self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let mut columns = Encoder::default();
        self.walk(&mut columns).map_err(std::io::Error::other)?;
        out.extend_from_slice(&(columns.0.len() as u64).to_le_bytes());
        out.extend_from_slice(&zstd::bulk::compress(&columns.0, COMPRESSION)?);
        Ok(())
    }

    /// Reads the content of a block frame, in the place of what was there.
    pub(super) fn get(&mut self, content: &[u8], unpacker: &mut Unpacker) -> Result<(), Problem> {
        let mut decoder = Decoder(Viewer(Cursor::new(unpacker.all(content)?)));
        self.walk(&mut decoder)?;
        require_end(decoder.0.0)
    }
}

impl<'b> Block<Viewed<'b>> {
    /// The columns of a block, unpacked.
    pub(super) fn view(columns: &'b [u8]) -> Result<Self, Problem> {
        let mut block = Block::default();
        let mut viewer = Viewer(Cursor::new(columns));
        block.walk(&mut viewer)?;
        require_end(viewer.0)?;
        Ok(block)
    }

    /// As [`Block::view`], without operations, which need not be there; and how much of `columns` it takes.
    pub(super) fn view_txns(columns: &'b [u8]) -> Result<(Self, usize), Problem> {
        let mut block = Block::default();
        let mut viewer = Viewer(Cursor::new(columns));
        block.walk_txns(&mut viewer)?;
        Ok((block, columns.len() - viewer.0.rest().len()))
    }
}

fn require_end(cursor: Cursor<'_>) -> Result<(), Problem> {
    match cursor.rest().len() {
        0 => Ok(()),
        rest => Err(Problem::malformed("the end of a block", format_args!("{rest} more bytes"))),
    }
}

/// The level of compression: higher ones gain a few percent on noise and cost much time.
const COMPRESSION: i32 = 3;

#[derive(Default)]
struct Encoder(Vec<u8>);

impl Codec<Owned> for Encoder {
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

struct Viewer<'b>(Cursor<'b>);

impl<'b> Codec<Viewed<'b>> for Viewer<'b> {
    fn bytes(&mut self, column: &mut &'b [u8]) -> Result<(), Problem> {
        let len = self.0.count("the rows of a column of bytes")?;
        *column = self.0.take(len, "a column of bytes")?;
        Ok(())
    }

    fn ints(&mut self, column: &mut ints::Packed<'b>) -> Result<(), Problem> {
        *column = ints::Packed::get(&mut self.0)?;
        Ok(())
    }

    fn text(&mut self, column: &mut &'b str) -> Result<(), Problem> {
        *column = self.0.text("a column of texts")?;
        Ok(())
    }
}

/// Copies what is viewed.
struct Decoder<'b>(Viewer<'b>);

impl Codec<Owned> for Decoder<'_> {
    fn bytes(&mut self, column: &mut Vec<u8>) -> Result<(), Problem> {
        let mut viewed: &[u8] = &[];
        self.0.bytes(&mut viewed)?;
        column.clear();
        column.extend_from_slice(viewed);
        Ok(())
    }

    fn ints(&mut self, column: &mut Vec<i64>) -> Result<(), Problem> {
        ints::decode(&mut self.0.0, column)
    }

    fn text(&mut self, column: &mut String) -> Result<(), Problem> {
        let mut viewed = "";
        self.0.text(&mut viewed)?;
        column.clear();
        column.push_str(viewed);
        Ok(())
    }
}
