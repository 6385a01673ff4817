//! Empties a block into a batch.

use isolario_model::{
    Batch, KeyId, OpKind, Outcome, Stamp, TxnEnd, TxnSink, TxnStart, ValueId, ValueRef, VersionRef,
};

use super::block::{Block, INLINE, LISTED, Pairs, Stream, TextStream, Values};
use super::layout::unknown;
use super::parts::{GetParts, Scratch, code, fact, get_op, version_from_parts};
use crate::Problem;

/// The block's transactions as a batch.
pub(super) fn drain(block: &Block) -> Result<Batch, Problem> {
    let mut batch = Batch::with_capacity(block.outcomes.len(), block.heads.len());
    let names = Dictionaries::new(block, &mut batch)?;
    let mut txns = Txns::new(block, &names);
    let mut ops = Ops::new(block, &names);
    let mut scratch = Scratch::default();
    for _ in 0..block.outcomes.len() {
        let facts = txns.facts.next("facts of transactions")?;
        batch.begin(&txns.start(facts)?)?;
        for _ in 0..txns.op_count(ops.heads.len())? {
            ops.next_into(&mut batch, &mut scratch)?;
        }
        batch.end(&txns.end(facts)?)?;
    }
    txns.finish()?;
    ops.finish()?;
    Ok(batch)
}

/// The names of a block, and the ids its batch gave them.
struct Dictionaries<'b> {
    sessions: Vec<ValueRef<'b>>,
    keys: Vec<ValueRef<'b>>,
    values: Vec<ValueRef<'b>>,
    key_ids: Vec<KeyId>,
    value_ids: Vec<ValueId>,
}

impl<'b> Dictionaries<'b> {
    fn new(block: &'b Block, batch: &mut Batch) -> Result<Self, Problem> {
        let (keys, values) = (block.keys.values()?, block.values.values()?);
        Ok(Dictionaries {
            sessions: block.sessions.values()?,
            key_ids: keys.iter().map(|key| batch.key_id(*key)).collect(),
            value_ids: values.iter().map(|value| batch.value_id(*value)).collect(),
            keys,
            values,
        })
    }
}

/// The entry of a dictionary at a place.
#[inline]
fn entry<T: Copy>(entries: &[T], place: i64, what: &str) -> Result<T, Problem> {
    let found = usize::try_from(place).ok().and_then(|place| entries.get(place)).copied();
    found.ok_or_else(|| no_entry(entries.len(), place, what))
}

#[cold]
fn no_entry(len: usize, place: i64, what: &str) -> Problem {
    Problem::malformed(format!("a place among {len} {what}"), place)
}

/// Takes values from a column.
struct ValueStream<'b> {
    places: Stream<'b, u8>,
    numbers: Stream<'b, i64>,
}

impl<'b> ValueStream<'b> {
    fn new(column: &'b Values) -> Self {
        let Values { places, numbers } = column;
        ValueStream { places: Stream::new(places), numbers: Stream::new(numbers) }
    }

    /// The next value: an integer, or an entry of a dictionary of whatever kind is wanted.
    #[inline]
    fn next<T: Copy>(&mut self, listed: &[T], inline: impl FnOnce(i64) -> T) -> Result<T, Problem> {
        let number = self.numbers.next("values")?;
        match self.places.next("places of values")? {
            INLINE => Ok(inline(number)),
            LISTED => entry(listed, number, "values"),
            other => Err(unknown("the place of a value, 0 or 1", other)),
        }
    }

    fn finish(&self) -> Result<(), Problem> {
        self.places.finish("places of values")?;
        self.numbers.finish("values")
    }
}

/// Takes pairs of numbers from a column.
struct PairStream<'b> {
    firsts: Stream<'b, i64>,
    seconds: Stream<'b, i64>,
}

impl<'b> PairStream<'b> {
    fn new(column: &'b Pairs) -> Self {
        let Pairs { firsts, seconds } = column;
        PairStream { firsts: Stream::new(firsts), seconds: Stream::new(seconds) }
    }

    fn next(&mut self, what: &str) -> Result<(u64, u64), Problem> {
        Ok((self.firsts.next(what)? as u64, self.seconds.next(what)? as u64))
    }

    fn stamp(&mut self) -> Result<Stamp, Problem> {
        let (physical, logical) = self.next("timestamps")?;
        Ok(Stamp { physical, logical })
    }

    fn finish(&self, what: &str) -> Result<(), Problem> {
        self.firsts.finish(what)?;
        self.seconds.finish(what)
    }
}

/// The columns of transactions, as far as they are not yet taken.
struct Txns<'b, 'd> {
    names: &'d Dictionaries<'b>,
    outcomes: Stream<'b, u8>,
    facts: Stream<'b, u8>,
    sessions: Stream<'b, i64>,
    ops: Stream<'b, i64>,
    ids: ValueStream<'b>,
    lines: Stream<'b, i64>,
    starts: Stream<'b, i64>,
    finishes: Stream<'b, i64>,
    db_starts: PairStream<'b>,
    db_commits: PairStream<'b>,
    texts: TextStream<'b>,
}

/// What `take` gives, if the fact is there.
fn if_there<T>(
    facts: u8,
    fact: u8,
    take: impl FnOnce() -> Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    if facts & fact == 0 { Ok(None) } else { take().map(Some) }
}

impl<'b, 'd> Txns<'b, 'd> {
    fn new(block: &'b Block, names: &'d Dictionaries<'b>) -> Self {
        Txns {
            names,
            outcomes: Stream::new(&block.outcomes),
            facts: Stream::new(&block.facts),
            sessions: Stream::new(&block.txn_sessions),
            ops: Stream::new(&block.txn_ops),
            ids: ValueStream::new(&block.txn_names),
            lines: Stream::new(&block.lines),
            starts: Stream::new(&block.starts),
            finishes: Stream::new(&block.finishes),
            db_starts: PairStream::new(&block.db_starts),
            db_commits: PairStream::new(&block.db_commits),
            texts: TextStream::new(&block.txn_texts),
        }
    }

    fn start(&mut self, facts: u8) -> Result<TxnStart<'b>, Problem> {
        let session = self.sessions.next("sessions of transactions")?;
        Ok(TxnStart {
            session: entry(&self.names.sessions, session, "sessions")?,
            id: if_there(facts, fact::NAME, || self.ids.next(&self.names.values, ValueRef::Int))?,
            line: if_there(facts, fact::LINE, || Ok(self.lines.next("lines")? as u64))?,
        })
    }

    fn op_count(&mut self, left: usize) -> Result<usize, Problem> {
        let count = self.ops.next("numbers of operations")?;
        usize::try_from(count).ok().filter(|count| *count <= left).ok_or_else(|| {
            Problem::malformed(format!("a number of operations, at most {left}"), count)
        })
    }

    fn end(&mut self, facts: u8) -> Result<TxnEnd<'b>, Problem> {
        Ok(TxnEnd {
            outcome: outcome_of(self.outcomes.next("outcomes")?)?,
            start: if_there(facts, fact::START, || self.starts.next("start times"))?,
            finish: if_there(facts, fact::FINISH, || self.finishes.next("finish times"))?,
            db_start: if_there(facts, fact::DB_START, || self.db_starts.stamp())?,
            db_commit: if_there(facts, fact::DB_COMMIT, || self.db_commits.stamp())?,
            snapshot: if_there(facts, fact::SNAPSHOT, || self.texts.next("snapshots"))?,
            error: if_there(facts, fact::ERROR, || self.texts.next("errors"))?,
        })
    }

    /// Checks that nothing is left over.
    fn finish(&self) -> Result<(), Problem> {
        self.facts.finish("facts of transactions")?;
        self.sessions.finish("sessions of transactions")?;
        self.ops.finish("numbers of operations")?;
        self.ids.finish()?;
        self.lines.finish("lines")?;
        self.starts.finish("start times")?;
        self.finishes.finish("finish times")?;
        self.db_starts.finish("timestamps")?;
        self.db_commits.finish("timestamps")?;
        self.texts.finish("texts of transactions")
    }
}

/// The outcome of a number.
pub(super) fn outcome_of(code: u8) -> Result<Outcome, Problem> {
    match code {
        0 => Ok(Outcome::Committed),
        1 => Ok(Outcome::Aborted),
        2 => Ok(Outcome::Unknown),
        other => Err(unknown("an outcome, 0 to 2", other)),
    }
}

/// The columns of operations, as far as they are not yet taken.
struct Ops<'b, 'd> {
    names: &'d Dictionaries<'b>,
    heads: Stream<'b, u8>,
    states: Stream<'b, u8>,
    keys: Stream<'b, i64>,
    values: ValueStream<'b>,
    counts: Stream<'b, i64>,
    texts: TextStream<'b>,
    version_kinds: Stream<'b, u8>,
    version_numbers: PairStream<'b>,
    /// The key of the operation at hand.
    key: i64,
    /// Per key, the longest list so far, as far as reads agree.
    pools: Vec<Vec<ValueRef<'b>>>,
}

impl<'b, 'd> Ops<'b, 'd> {
    fn new(block: &'b Block, names: &'d Dictionaries<'b>) -> Self {
        Ops {
            names,
            heads: Stream::new(&block.heads),
            states: Stream::new(&block.states),
            keys: Stream::new(&block.op_keys),
            values: ValueStream::new(&block.op_values),
            counts: Stream::new(&block.counts),
            texts: TextStream::new(&block.op_texts),
            version_kinds: Stream::new(&block.version_kinds),
            version_numbers: PairStream::new(&block.version_numbers),
            key: 0,
            pools: Vec::new(),
        }
    }

    #[inline]
    fn next_into(&mut self, batch: &mut Batch, scratch: &mut Scratch<'b>) -> Result<(), Problem> {
        let head = self.heads.next("operations")?;
        // Nearly all operations of nearly all histories: no look-up of names.
        let kind = match head {
            code::READ => OpKind::Read,
            code::WRITE => OpKind::Write,
            code::APPEND => OpKind::Append,
            _ => {
                let (op, notes) = get_op(head, self, scratch)?;
                return Ok(batch.op_with(&op, &notes)?);
            }
        };
        let key = entry(&self.names.key_ids, self.keys.next("keys")?, "keys")?;
        let int = |int| batch.value_id(ValueRef::Int(int));
        let value = self.values.next(&self.names.value_ids, int)?;
        Ok(batch.op_by_id(kind, key, value)?)
    }

    /// Checks that nothing is left over.
    fn finish(&self) -> Result<(), Problem> {
        self.heads.finish("operations")?;
        self.states.finish("states")?;
        self.keys.finish("keys")?;
        self.values.finish()?;
        self.counts.finish("counts")?;
        self.texts.finish("texts of operations")?;
        self.version_kinds.finish("versions")?;
        self.version_numbers.finish("numbers of versions")
    }

    fn small_count(&mut self) -> Result<usize, Problem> {
        let count = self.counts.next("counts")?;
        usize::try_from(count).map_err(|_| Problem::malformed("a count", count))
    }
}

impl<'b> GetParts<'b> for Ops<'b, '_> {
    fn key(&mut self) -> Result<ValueRef<'b>, Problem> {
        self.key = self.keys.next("keys")?;
        entry(&self.names.keys, self.key, "keys")
    }

    fn value(&mut self) -> Result<ValueRef<'b>, Problem> {
        self.values.next(&self.names.values, ValueRef::Int)
    }

    fn state(&mut self) -> Result<u8, Problem> {
        self.states.next("states")
    }

    fn count(&mut self) -> Result<usize, Problem> {
        self.small_count()
    }

    fn text(&mut self) -> Result<&'b str, Problem> {
        self.texts.next("texts of operations")
    }

    fn list(&mut self, elements: &mut Vec<ValueRef<'b>>) -> Result<(), Problem> {
        let (shared, fresh) = (self.small_count()?, self.small_count()?);
        if self.pools.is_empty() {
            self.pools.resize_with(self.names.keys.len(), Vec::new);
        }
        // `key` came first and found its entry, so that the place is there.
        let mut pool = std::mem::take(&mut self.pools[self.key as usize]);
        let begins =
            pool.get(..shared).filter(|_| shared == 0 || fresh == 0 || shared == pool.len());
        let Some(begins) = begins else {
            return Err(Problem::malformed(
                format!("a list that begins or continues one of {} elements", pool.len()),
                format_args!("{shared} shared elements and {fresh} new ones"),
            ));
        };
        elements.clear();
        elements.extend_from_slice(begins);
        for _ in 0..fresh {
            elements.push(self.value()?);
        }
        if shared == pool.len() {
            pool.extend_from_slice(&elements[shared..]);
        }
        self.pools[self.key as usize] = pool;
        Ok(())
    }

    fn version(&mut self) -> Result<VersionRef, Problem> {
        let kind = self.version_kinds.next("versions")?;
        version_from_parts(kind, || self.version_numbers.next("numbers of versions"))
    }
}
