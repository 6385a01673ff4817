//! Empties a block into a batch.

use isolario_model::{
    Batch, KeyId, OpKind, Outcome, TupleParts, TxnEnd, TxnSink, TxnStart, ValueId, ValueRef,
    VersionRef,
};

use super::block::{Block, Form, INLINE, LISTED, Listed, Rows, Values};
use super::bytes::Datum;
use super::layout::unknown;
use super::parts::{Elements, GetParts, code, fact, kind_code, version_from_parts, with_op};
use super::streams::{PairStream, Stream, TextStream, ValueStream, entry};
use crate::Problem;
use crate::predicates::Predicates;

/// The block's transactions as a batch. The block is left without some of its columns.
pub(super) fn drain(block: &mut Block) -> Result<Batch, Problem> {
    if is_plain(block) {
        return drain_plain(block);
    }
    let block = &*block;
    let mut batch = Batch::with_capacity(block.outcomes.len(), block.heads.len());
    let values = match needs_values(block) {
        true => block.values.listed()?,
        false => Listed::default(),
    };
    let listed = [block.sessions.listed()?, block.keys.listed()?, values];
    let tuples = [listed[0].tuples(), listed[1].tuples(), listed[2].tuples()];
    let names = Dictionaries::new(block, &listed, &tuples, &mut batch)?;
    let mut txns = Txns::new(block, &names);
    let ids = Ids::new(block, &names, &mut batch)?;
    let mut ops = Ops::new(block, &names, ids);
    let mut scratch = Predicates::default();
    for _ in 0..block.outcomes.len() {
        let facts = txns.facts.next("facts of transactions")?;
        batch.begin(&txns.start(facts)?)?;
        let mut left = txns.op_count(ops.heads.rest().len())?;
        while left > 0 {
            left -= ops.next_into(left, &mut batch, &mut scratch)?;
        }
        batch.end(&txns.end(facts)?)?;
    }
    txns.finish()?;
    ops.finish()?;
    Ok(batch)
}

/// Whether a block has operations of one key and one integer each, and nothing else: the largest
/// histories do.
pub(super) fn is_plain<F: Form>(block: &Block<F>) -> bool {
    let Block { op_keys, op_values, counts, op_texts, version_numbers, .. } = block;
    let (heads, places) = (block.heads.as_ref(), op_values.places.as_ref());
    let notes = [&op_texts.lengths, &version_numbers.firsts, &version_numbers.seconds, counts];
    let lengths = [op_keys.rows(), places.len(), op_values.numbers.rows()];
    notes.iter().all(|column| column.rows() == 0)
        && block.states.as_ref().is_empty()
        && block.version_kinds.as_ref().is_empty()
        && op_texts.text.as_ref().is_empty()
        && !block.txn_names.places.as_ref().contains(&LISTED)
        && lengths.iter().all(|len| *len == heads.len())
        && heads.iter().all(|head| plain_kind(*head).is_some())
        && places.iter().all(|place| *place == INLINE)
}

/// Of a plain block, the columns of operations become those of the batch, and transactions only say how
/// many of them are theirs.
fn drain_plain(block: &mut Block) -> Result<Batch, Problem> {
    let numbers = std::mem::take(&mut block.op_values.numbers);
    let block = &*block;
    let mut batch = Batch::with_capacity(block.outcomes.len(), 0);
    let listed = [block.sessions.listed()?, block.keys.listed()?, Listed::default()];
    let tuples = [listed[0].tuples(), listed[1].tuples(), Vec::new()];
    let names = Dictionaries::new(block, &listed, &tuples, &mut batch)?;
    let Ids { kinds, keys, .. } = Ids::new(block, &names, &mut batch)?;
    let values = numbers.into_iter().map(|number| batch.value_id(ValueRef::Int(number))).collect();
    batch.ops_in_advance(kinds, keys, values)?;
    let mut txns = Txns::new(block, &names);
    let mut heads = Stream::new(&block.heads);
    for _ in 0..block.outcomes.len() {
        let facts = txns.facts.next("facts of transactions")?;
        batch.begin(&txns.start(facts)?)?;
        let count = txns.op_count(heads.rest().len())?;
        heads.take(count, "operations")?;
        batch.claim_ops(count)?;
        batch.end(&txns.end(facts)?)?;
    }
    txns.finish()?;
    heads.finish("operations")?;
    Ok(batch)
}

/// Whether somebody asks for values themselves: for most operations their ids will do.
fn needs_values(block: &Block) -> bool {
    let needs = |head: &u8| plain_kind(*head).is_none();
    block.txn_names.places.contains(&LISTED) || block.heads.iter().any(needs)
}

/// The names of a block, and the ids its batch gave them.
struct Dictionaries<'b> {
    sessions: Vec<ValueRef<'b>>,
    keys: Vec<ValueRef<'b>>,
    /// None unless they are needed.
    values: Vec<ValueRef<'b>>,
    key_ids: Vec<KeyId>,
    value_ids: Vec<ValueId>,
}

impl<'b> Dictionaries<'b> {
    fn new(
        block: &Block,
        listed: &'b [Listed<'b>; 3],
        tuples: &'b [Vec<TupleParts<'b>>; 3],
        batch: &mut Batch,
    ) -> Result<Self, Problem> {
        let [sessions, keys, values] = [0, 1, 2].map(|at| listed[at].values(&tuples[at]));
        let key_ids = keys.iter().map(|key| batch.key_id(*key)).collect();
        let (tuples, columns) = block.values.tuple_count();
        batch.reserve_values(tuples, columns);
        let mut value_ids = Vec::with_capacity(values.len().max(tuples));
        match values[..] {
            [] => block.values.for_each(|value| value_ids.push(batch.value_id(value)))?,
            _ => value_ids.extend(values.iter().map(|value| batch.value_id(*value))),
        }
        Ok(Dictionaries { sessions, keys, values, key_ids, value_ids })
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

/// The kind of operations that have a key, a value, and nothing else.
#[inline]
pub(super) fn plain_kind(head: u8) -> Option<OpKind> {
    match head {
        code::READ => Some(OpKind::Read),
        code::WRITE => Some(OpKind::Write),
        code::APPEND => Some(OpKind::Append),
        _ => None,
    }
}

/// The columns of operations with ids for names, made in one go: short loops over whole columns
/// are several times faster than the same work in between other work.
struct Ids {
    kinds: Vec<OpKind>,
    keys: Vec<KeyId>,
    values: Vec<ValueId>,
}

impl Ids {
    fn new(block: &Block, names: &Dictionaries<'_>, batch: &mut Batch) -> Result<Ids, Problem> {
        // The kind of an operation that is not plain is never looked at.
        let kind = |head: &u8| plain_kind(*head).unwrap_or(OpKind::Delete);
        let mut keys = Vec::with_capacity(block.op_keys.len());
        for place in &block.op_keys {
            keys.push(entry(&names.key_ids, *place, "keys")?);
        }
        let values = value_ids(&block.op_values, names, batch)?;
        Ok(Ids { kinds: block.heads.iter().map(kind).collect(), keys, values })
    }
}

fn value_ids(
    column: &Values,
    names: &Dictionaries<'_>,
    batch: &mut Batch,
) -> Result<Vec<ValueId>, Problem> {
    let numbers = &column.numbers;
    let mut int = |int| batch.value_id(ValueRef::Int(int));
    // Histories of integers alone, the largest there are, need not look at each one's place.
    if column.places.len() == numbers.len() && column.places.iter().all(|p| *p == INLINE) {
        return Ok(numbers.iter().map(|number| int(*number)).collect());
    }
    let mut stream = ValueStream::new(column);
    numbers.iter().map(|_| stream.next(&names.value_ids, &mut int)).collect()
}

/// The rows of a column that belong to the next rows of a stream over another one.
fn same_place<'c, T, U: Copy>(stream: &Stream<'_, U>, column: &'c [T], count: usize) -> &'c [T] {
    let at = column.len().saturating_sub(stream.rest().len());
    &column[at..column.len().min(at + count)]
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
    /// Per key, how long the longest list is so far, as far as reads agree.
    pool_lens: Vec<usize>,
    /// These lists, where some list has notes and must be written out.
    pools: Option<Vec<Vec<ValueRef<'b>>>>,
    ids: Ids,
}

impl<'b, 'd> Ops<'b, 'd> {
    fn new(block: &'b Block, names: &'d Dictionaries<'b>, ids: Ids) -> Self {
        let keys = names.keys.len();
        let is_list = |head: &u8| kind_code(*head) == code::READ_LIST;
        let has_notes = |head: &u8| is_list(head) && *head != code::READ_LIST;
        let pools = |room: bool| room.then(|| vec![Vec::new(); keys]);
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
            pool_lens: if block.heads.iter().any(is_list) { vec![0; keys] } else { Vec::new() },
            pools: pools(block.heads.iter().any(has_notes)),
            ids,
        }
    }

    /// Adds the next operations, at most `most`, and says how many.
    #[inline]
    fn next_into(
        &mut self,
        most: usize,
        batch: &mut Batch,
        scratch: &mut Predicates,
    ) -> Result<usize, Problem> {
        let heads = &self.heads.rest()[..most];
        let plain = heads.iter().take_while(|head| plain_kind(**head).is_some()).count();
        if plain == 0 {
            let head = self.heads.next("operations")?;
            if head == code::READ_LIST {
                self.add_list(batch)?;
                return Ok(1);
            }
            with_op(head, self, scratch, |op, notes| batch.op_with(op, notes))??;
            return Ok(1);
        }
        self.add_plain(plain, batch)?;
        Ok(plain)
    }

    /// Adds operations of one key and one value each: nearly all of nearly all histories. They go
    /// in by id, without a look-up.
    fn add_plain(&mut self, count: usize, batch: &mut Batch) -> Result<(), Problem> {
        let kinds = same_place(&self.heads, &self.ids.kinds, count);
        let keys = same_place(&self.keys, &self.ids.keys, count);
        let values = same_place(&self.values.numbers, &self.ids.values, count);
        batch.ops_by_id(kinds, keys, values)?;
        self.heads.take(count, "operations")?;
        self.keys.take(count, "keys")?;
        self.values.skip(count)
    }

    /// Adds a list read: by id, and without writing out what it shares with others.
    fn add_list(&mut self, batch: &mut Batch) -> Result<(), Problem> {
        let key = same_place(&self.keys, &self.ids.keys, 1).first().copied();
        self.key = self.keys.next("keys")?;
        let (shared, fresh) = self.shared_and_fresh()?;
        let ids = same_place(&self.values.numbers, &self.ids.values, fresh);
        batch.list_by_id(key.unwrap_or(KeyId::NONE), shared, ids)?;
        match self.pools {
            Some(_) => self.take_fresh(shared, fresh).map(|_| ()),
            None => self.values.skip(fresh),
        }
    }

    /// The elements that a list adds. Where it continues the longest one, that one has them, too.
    fn take_fresh(&mut self, shared: usize, fresh: usize) -> Result<Vec<ValueRef<'b>>, Problem> {
        let mut elements = Vec::new();
        for _ in 0..fresh {
            elements.push(self.values.next(&self.names.values, ValueRef::Int)?);
        }
        if let Some(pools) = &mut self.pools
            && let pool = &mut pools[self.key as usize]
            && pool.len() == shared
        {
            pool.extend_from_slice(&elements);
        }
        Ok(elements)
    }

    /// How many elements the next list shares with the pool of its key, and how many it adds.
    fn shared_and_fresh(&mut self) -> Result<(usize, usize), Problem> {
        let (shared, fresh) = (self.small_count()?, self.small_count()?);
        // `key` came first and found its entry, so that the place is there.
        let len = &mut self.pool_lens[self.key as usize];
        if shared <= *len && (shared == 0 || fresh == 0 || shared == *len) {
            *len += if shared == *len { fresh } else { 0 };
            return Ok((shared, fresh));
        }
        Err(Problem::malformed(
            format!("a list that begins or continues one of {len} elements"),
            format_args!("{shared} shared elements and {fresh} new ones"),
        ))
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
    fn key(&mut self) -> Result<Datum<'b>, Problem> {
        self.key = self.keys.next("keys")?;
        entry(&self.names.keys, self.key, "keys").map(Datum::Plain)
    }

    fn value(&mut self) -> Result<Datum<'b>, Problem> {
        self.values.next(&self.names.values, ValueRef::Int).map(Datum::Plain)
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

    fn list(&mut self) -> Result<Elements<'b>, Problem> {
        let (shared, fresh) = self.shared_and_fresh()?;
        let pool = self.pools.as_ref().map(|pools| &pools[self.key as usize][..]);
        let mut elements = pool.and_then(|pool| pool.get(..shared)).unwrap_or_default().to_vec();
        elements.extend(self.take_fresh(shared, fresh)?);
        Ok(Elements::Listed(elements))
    }

    fn version(&mut self) -> Result<VersionRef, Problem> {
        let kind = self.version_kinds.next("versions")?;
        version_from_parts(kind, || self.version_numbers.next("numbers of versions"))
    }
}
