//! Levels by a version certificate, from Adya's definitions: every version of every row is compared
//! with every predicate, and every cycle of dependencies is looked at.
//!
//! | level | forbids cycles |
//! |---|---|
//! | read-uncommitted | of overwrites and session order |
//! | adya-read-committed | without an anti-dependency |
//! | consistent-view | with fewer than two, session order aside |
//! | parallel-snapshot-isolation | with fewer than two |
//! | snapshot-isolation | in which no two are adjacent, with start-dependencies |
//! | repeatable-read | without one of a predicate |
//! | serializable | all |
//!
//! A snapshot of a transaction shows everybody whose commit is not after it, and before that of the
//! transaction itself: they are before the transaction's start.
//!
//! A row that is inserted after a delete is an object of its own, but at serializability. Where a read
//! by key may have seen one of several equal versions, all are tried. So are all versions that an
//! operation may have met of which the certificate does not say it.

mod unstated;

use std::collections::BTreeMap;

use isolario_model::{
    Aggregate, History, Initial, KeyId, Level, Op, OpId, Outcome, Predicate, RowRef, StatedOrder,
    StatedSet, TxnId, Value, ValueId, ValueRef, VersionSet, VisibilityRule,
};
use isolario_predicate::Dialect;

use crate::{Answer, Options};

/// Whether a history satisfies a level by a certificate. Takes histories of rows that begin with
/// nothing, and certificates that state the order of every row in full.
pub fn satisfies_certificate(
    history: &History,
    level: Level,
    options: Options,
    orders: &[StatedOrder],
    sets: &[StatedSet],
) -> Answer {
    let Some(mut world) = World::new(history, level, options, orders, sets) else {
        return Answer::Unsupported;
    };
    let unstated = world.unstated();
    match world.some_sets(&unstated) {
        true => Answer::Satisfied,
        false => Answer::Violated,
    }
}

/// Something is wrong whatever the order.
struct Wrong;

/// A read of a row, and the places of the versions that it may have seen.
struct Read {
    txn: TxnId,
    key: KeyId,
    candidates: Vec<usize>,
    /// Whether it is by the key.
    by_key: bool,
}

struct Version {
    writer: Option<TxnId>,
    value: Value,
    word: Option<u64>,
}

/// What a transaction has written so far.
type Own = BTreeMap<KeyId, (Value, u64)>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Session,
    Overwrite,
    /// A read, of a row or of a predicate, or real time.
    Other,
    Anti,
    PredicateAnti,
}

struct World<'a> {
    history: &'a History,
    level: Level,
    options: Options,
    sets: Vec<StatedSet>,
    kept: Vec<TxnId>,
    chains: Vec<Vec<Version>>,
}

impl<'a> World<'a> {
    fn new(
        history: &'a History,
        level: Level,
        options: Options,
        orders: &[StatedOrder],
        sets: &[StatedSet],
    ) -> Option<Self> {
        if *history.initial() != Initial::Value(Value::Nil) {
            return None;
        }
        let is_named = |txn: TxnId| {
            let in_orders = orders.iter().any(|order| order.writers.contains(&txn));
            let in_sets = sets.iter().any(|set| match &set.versions {
                VersionSet::Writers(writers) => writers.iter().any(|(_, writer)| *writer == txn),
                VersionSet::Snapshot(_) => false,
            });
            in_orders || in_sets || history.db_commit(txn).is_some()
        };
        let mut kept = Vec::new();
        for txn in history.txns() {
            match history.outcome(txn) {
                Outcome::Committed => kept.push(txn),
                Outcome::Unknown if is_named(txn) => kept.push(txn),
                Outcome::Unknown => return None,
                Outcome::Aborted => {}
            }
        }
        let sets = sets.to_vec();
        let mut world = World { history, level, options, sets, kept, chains: Vec::new() };
        for key in (0..history.key_count()).map(KeyId::at) {
            let chain = world.chain(key, orders)?;
            world.chains.push(chain);
        }
        let mut ops = world.kept.iter().flat_map(|txn| history.txn_ops(*txn));
        let is_open = ops.any(|op| matches!(history.op(op), Op::PredicateWrite { rows: None, .. }));
        (!is_open).then_some(world)
    }

    /// The versions of a row in the one order that agrees with all statements.
    fn chain(&self, key: KeyId, orders: &[StatedOrder]) -> Option<Vec<Version>> {
        let written = |txn: &TxnId| {
            let mut own = Own::new();
            self.history.txn_ops(*txn).for_each(|op| self.apply(op, &mut own));
            own.remove(&key).map(|(value, word)| (*txn, value, word))
        };
        let writes: Vec<_> = self.kept.iter().filter_map(written).collect();
        let mut all = Vec::new();
        permutations(writes.len(), &mut Vec::new(), &mut all);
        let agrees = |order: &Vec<usize>| {
            let place = |txn: &TxnId| order.iter().position(|at| writes[*at].0 == *txn);
            orders.iter().filter(|stated| stated.key == key).all(|stated| {
                let places: Vec<usize> = stated.writers.iter().filter_map(place).collect();
                places.is_sorted()
            })
        };
        let mut agreeing = all.iter().filter(|order| agrees(order));
        let order = agreeing.next().filter(|_| agreeing.next().is_none())?;
        let initial = Version {
            writer: None,
            value: Value::Nil,
            word: self.history.find_value(ValueRef::Nil).map(ValueId::to_bits),
        };
        let mut chain = vec![initial];
        for at in order {
            let (writer, value, word) = &writes[*at];
            let (value, word) = (value.clone(), Some(*word));
            chain.push(Version { writer: Some(*writer), value, word });
        }
        Some(chain)
    }

    fn apply(&self, op: OpId, own: &mut Own) {
        let history = self.history;
        match history.op(op) {
            Op::Write { key, value } => {
                own.insert(key, (history.value(value).to_owned(), history.encoded_version(op)));
            }
            Op::Delete { key } => {
                own.insert(key, (Value::Nil, history.encoded_version(op)));
            }
            Op::PredicateWrite { rows: Some(rows), .. } => {
                for row in rows {
                    let value = history.value(row.value).to_owned();
                    own.insert(row.key, (value, history.encoded_row_version(row)));
                }
            }
            _ => {}
        }
    }

    fn allows_dirty_reads(&self) -> bool {
        matches!(self.level, Level::ReadUncommitted | Level::StrongReadUncommitted)
    }

    /// Whether the level holds, with a set for every operation.
    fn holds(&self) -> bool {
        let mut choices = Vec::new();
        for txn in &self.kept {
            match self.observed(*txn) {
                Ok(of_txn) => choices.extend(of_txn),
                Err(Wrong) if self.allows_dirty_reads() => {}
                Err(Wrong) => return false,
            }
        }
        self.some_choice(&choices, &mut Vec::new())
    }

    /// Whether rows are objects for good.
    fn by_rows(&self) -> bool {
        self.level.implies(Level::Serializable)
    }

    /// How often a row had been inserted anew by a version.
    fn incarnation(&self, key: KeyId, version: usize) -> usize {
        let chain = &self.chains[key.index()];
        let is_anew = |at: &usize| {
            let inserts = chain[*at].writer.is_some_and(|writer| self.inserts(writer, key));
            let is_there = chain[*at].value != Value::Nil || inserts;
            *at > 1 && chain[*at - 1].value == Value::Nil && is_there
        };
        let is_row = matches!(self.history.key_name(key), ValueRef::Tuple(_));
        (0..=version).filter(is_anew).filter(|_| is_row).count()
    }

    /// Whether a transaction begins with an insert of a row by its key, whatever it does later.
    fn inserts(&self, txn: TxnId, key: KeyId) -> bool {
        let first = self.history.txn_ops(txn).find(|op| self.write_of(*op, key).is_some());
        first.is_some_and(|op| {
            self.history.op_predicate(op).is_none() && self.write_of(op, key) != Some(Value::Nil)
        })
    }

    /// What an operation leaves of a row.
    fn write_of(&self, op: OpId, key: KeyId) -> Option<Value> {
        let mut own = Own::new();
        self.apply(op, &mut own);
        own.remove(&key).map(|(value, _)| value)
    }

    /// Whether an operation may show another row beside its transaction's own: that was inserted, and
    /// the key has not been deleted since.
    fn may_show_another(&self, op: OpId, key: KeyId) -> bool {
        let txn = self.history.op_txn(op);
        let mut earlier = self.history.txn_ops(txn).take_while(|earlier| *earlier < op);
        let is_delete = |earlier: OpId| {
            self.history.op_predicate(earlier).is_none()
                && self.write_of(earlier, key) == Some(Value::Nil)
        };
        self.inserts(txn, key) && !earlier.any(is_delete)
    }

    fn is_one_object(&self, key: KeyId, one: usize, other: usize) -> bool {
        self.by_rows() || self.incarnation(key, one) == self.incarnation(key, other)
    }

    /// The place of the version of a row that an operation met, own writes aside.
    fn met(&self, txn: TxnId, op: OpId, key: KeyId) -> Result<usize, Wrong> {
        let chain = &self.chains[key.index()];
        let Some(set) = self.sets.iter().find(|set| set.op == op) else { return Err(Wrong) };
        match &set.versions {
            VersionSet::Snapshot(stamp) => {
                let is_in = |version: &Version| match version.writer {
                    None => true,
                    Some(writer) => {
                        writer != txn
                            && self.history.db_commit(writer).is_some_and(|at| at <= *stamp)
                    }
                };
                Ok(chain.iter().rposition(is_in).unwrap_or(0))
            }
            VersionSet::Writers(writers) => {
                let named = writers.iter().find(|(named, _)| *named == key);
                let Some((_, writer)) = named else { return Ok(0) };
                chain.iter().position(|version| version.writer == Some(*writer)).ok_or(Wrong)
            }
        }
    }

    fn is_match(&self, predicate: &Predicate, key: KeyId, value: &Value) -> bool {
        let row = RowRef { key: self.history.key_name(key), value: value.as_ref() };
        row.matches(predicate, Dialect::Postgres) == Ok(true)
    }

    fn keys(&self) -> impl Iterator<Item = KeyId> + use<> {
        (0..self.history.key_count()).map(KeyId::at)
    }

    /// What a transaction read of others; wrong if no order explains it.
    fn observed(&self, txn: TxnId) -> Result<Vec<Read>, Wrong> {
        let (mut own, mut reads) = (Own::new(), Vec::new());
        for op in self.history.txn_ops(txn) {
            match self.history.op(op) {
                Op::Read { key, value: Some(_) } => {
                    let word = self.history.encoded_version(op);
                    match own.get(&key) {
                        Some((_, written)) if *written == word => {}
                        Some((left, _)) if *left != Value::Nil || self.by_rows() => {
                            return Err(Wrong);
                        }
                        own => {
                            let chain = self.chains[key.index()].iter().enumerate();
                            let last = chain.clone().find(|(_, v)| v.writer == Some(txn));
                            // Of a row that is gone, a read by key may show the one beside it.
                            let is_former = |at: usize| {
                                last.is_some_and(|(last, _)| {
                                    at < last
                                        && self.incarnation(key, at) != self.incarnation(key, last)
                                })
                            };
                            let may_be = own.is_none() || self.may_show_another(op, key);
                            let is_it = |(at, v): &(usize, &Version)| {
                                v.word == Some(word)
                                    && v.writer != Some(txn)
                                    && may_be
                                    && (own.is_none() || is_former(*at))
                            };
                            let candidates: Vec<usize> =
                                chain.filter(is_it).map(|(at, _)| at).collect();
                            if candidates.is_empty() {
                                return Err(Wrong);
                            }
                            reads.push(Read { txn, key, candidates, by_key: true });
                        }
                    }
                }
                Op::PredicateRead { .. } | Op::PredicateWrite { .. } | Op::Aggregate { .. } => {
                    for (key, version) in self.result(txn, op, &own)? {
                        reads.push(Read { txn, key, candidates: vec![version], by_key: false });
                    }
                }
                _ => {}
            }
            self.apply(op, &mut own);
        }
        Ok(reads)
    }

    /// The versions of others that an operation by predicate read, by row; wrong if what it returned is
    /// not what it met.
    fn result(&self, txn: TxnId, op: OpId, own: &Own) -> Result<Vec<(KeyId, usize)>, Wrong> {
        let history = self.history;
        if let Some(StatedSet { versions: VersionSet::Writers(writers), .. }) =
            self.sets.iter().find(|set| set.op == op)
        {
            let is_wrong = |(key, writer): &(KeyId, TxnId)| {
                let is_never_there = history.outcome(*writer) == Outcome::Aborted;
                (is_never_there || *writer == txn) && !own.contains_key(key)
            };
            if writers.iter().any(is_wrong) {
                return Err(Wrong);
            }
        }
        let Some(predicate) = history.op_predicate(op).map(|id| history.predicate(id)) else {
            return Err(Wrong);
        };
        // (row, word, value, version)
        let mut due: Vec<(KeyId, Option<u64>, Value, Option<usize>)> = Vec::new();
        let mut maybe = Vec::new();
        for key in self.keys() {
            // Of a row that the transaction itself wrote before, the set says nothing.
            let met = match own.contains_key(&key) {
                true => self.met(txn, op, key).unwrap_or(0),
                false => self.met(txn, op, key)?,
            };
            let version = &self.chains[key.index()][met];
            let is_match = self.is_match(predicate, key, &version.value);
            let of_other = (key, version.word, version.value.clone(), Some(met));
            match own.get(&key) {
                None if is_match => due.push(of_other),
                None => {}
                Some((value, word)) => {
                    if self.is_match(predicate, key, value) {
                        due.push((key, Some(*word), value.clone(), None));
                    }
                    let chain = self.chains[key.index()].iter();
                    let last = { chain }.position(|version| version.writer == Some(txn));
                    let is_old = last.is_some_and(|last| {
                        met < last && self.incarnation(key, met) != self.incarnation(key, last)
                    });
                    let may_be_shown = is_old && self.may_show_another(op, key);
                    if is_match && may_be_shown && !self.by_rows() {
                        maybe.push(of_other);
                    }
                }
            }
        }
        let is_sum_like =
            |function: &Aggregate| !matches!(function, Aggregate::Count | Aggregate::Exists);
        for some in 0..1u32 << maybe.len() {
            let chosen = maybe.iter().enumerate().filter(|(at, _)| some >> at & 1 == 1);
            let all: Vec<_> = due.iter().chain(chosen.map(|(_, old)| old)).collect();
            let fits = match history.op(op) {
                Op::PredicateRead { rows: Some(rows), .. } => {
                    let mut seen: Vec<_> = rows
                        .iter()
                        .map(|r| (r.key, Some(history.encoded_row_version(r))))
                        .collect();
                    let mut expected: Vec<_> = all.iter().map(|row| (row.0, row.1)).collect();
                    seen.sort_unstable();
                    expected.sort_unstable();
                    seen == expected
                }
                Op::PredicateWrite { rows: Some(rows), .. } => {
                    let mut seen: Vec<_> = rows.iter().map(|row| row.key).collect();
                    let mut expected: Vec<_> = all.iter().map(|row| row.0).collect();
                    seen.sort_unstable();
                    expected.sort_unstable();
                    seen == expected
                }
                Op::Aggregate { function, result: Some(result), .. } => {
                    let rows = all.iter().map(|(key, _, value, _)| RowRef {
                        key: history.key_name(*key),
                        value: value.as_ref(),
                    });
                    let value = function.over(rows, Dialect::Postgres);
                    let seen = history.value(result).operand();
                    value
                        .ok()
                        .zip(seen)
                        .is_some_and(|(value, seen)| value.is(seen, Dialect::Postgres) == Ok(true))
                }
                _ => true,
            };
            if fits {
                let reads = match history.op(op) {
                    Op::PredicateRead { .. } => true,
                    Op::Aggregate { function, .. } => is_sum_like(function),
                    _ => false,
                };
                let read =
                    |row: &&(KeyId, Option<u64>, Value, Option<usize>)| Some((row.0, row.3?));
                let all = all.iter().filter(|_| reads);
                return Ok(all.filter_map(read).collect());
            }
        }
        Err(Wrong)
    }

    /// Whether some choice of what the reads saw, after these, leaves no forbidden cycle.
    fn some_choice(&self, reads: &[Read], chosen: &mut Vec<usize>) -> bool {
        let Some(read) = reads.get(chosen.len()) else {
            return !self.has_forbidden_cycle(&self.edges(reads, chosen));
        };
        read.candidates.iter().any(|candidate| {
            chosen.push(*candidate);
            let found = self.some_choice(reads, chosen);
            chosen.pop();
            found
        })
    }

    /// All dependencies, with their kinds.
    fn edges(&self, reads: &[Read], chosen: &[usize]) -> Vec<(TxnId, TxnId, Kind)> {
        let mut edges = Vec::new();
        let mut add = |from: Option<TxnId>, to: Option<TxnId>, kind| {
            if let (Some(from), Some(to)) = (from, to)
                && from != to
            {
                edges.push((from, to, kind));
            }
        };
        for (key, chain) in self.chains.iter().enumerate() {
            for at in 1..chain.len() {
                if self.is_one_object(KeyId::at(key), at - 1, at) {
                    add(chain[at - 1].writer, chain[at].writer, Kind::Overwrite);
                }
            }
        }
        for (read, at) in reads.iter().zip(chosen) {
            let chain = &self.chains[read.key.index()];
            add(chain[*at].writer, Some(read.txn), Kind::Other);
            add(Some(read.txn), chain.get(at + 1).and_then(|next| next.writer), Kind::Anti);
            // A read of a row by its key is a search for the key.
            let is_there = |at: usize| chain[at].value != Value::Nil;
            let is_search = read.by_key && self.history.is_row(read.key);
            for change in (1..chain.len()).filter(|_| is_search) {
                if is_there(change) != is_there(change - 1) {
                    match change <= *at {
                        true => add(chain[change].writer, Some(read.txn), Kind::Other),
                        false => add(Some(read.txn), chain[change].writer, Kind::Anti),
                    }
                }
            }
        }
        for txn in &self.kept {
            let mut own = Own::new();
            for op in self.history.txn_ops(*txn) {
                let predicate = self.history.op_predicate(op).map(|id| self.history.predicate(id));
                let others = self.keys().filter(|key| !own.contains_key(key));
                for (key, predicate) in others.flat_map(|key| predicate.map(|p| (key, p))) {
                    let Ok(met) = self.met(*txn, op, key) else { continue };
                    let chain = &self.chains[key.index()];
                    for at in 1..chain.len() {
                        let is = |at: usize| self.is_match(predicate, key, &chain[at].value);
                        if is(at) != is(at - 1) {
                            match at <= met {
                                true => add(chain[at].writer, Some(*txn), Kind::Other),
                                false => add(Some(*txn), chain[at].writer, Kind::PredicateAnti),
                            }
                        }
                    }
                }
                self.apply(op, &mut own);
            }
        }
        for set in self.sets.iter().filter(|_| self.level.shape().visible == VisibilityRule::Prefix)
        {
            let reader = self.history.op_txn(set.op);
            let VersionSet::Snapshot(snapshot) = &set.versions else { continue };
            for other in self.kept.iter().filter(|_| self.kept.contains(&reader)) {
                let commits = (self.history.db_commit(*other), self.history.db_commit(reader));
                let is_shown = match commits {
                    (Some(commit), Some(own)) => commit <= *snapshot && commit < own,
                    (Some(commit), None) => commit <= *snapshot,
                    (None, _) => false,
                };
                if is_shown {
                    add(Some(*other), Some(reader), Kind::Other);
                }
            }
        }
        for (first, second) in self.kept.iter().flat_map(|a| self.kept.iter().map(move |b| (a, b)))
        {
            if self.follows_in_session(*first, *second) {
                add(Some(*first), Some(*second), Kind::Session);
            }
            if self.level.shape().real_time && self.had_finished(*first, *second) {
                add(Some(*first), Some(*second), Kind::Other);
            }
        }
        edges
    }

    fn follows_in_session(&self, first: TxnId, second: TxnId) -> bool {
        self.options.session_order
            && first < second
            && self.history.session_of(first) == self.history.session_of(second)
            && self.history.outcome(first) == Outcome::Committed
    }

    fn had_finished(&self, first: TxnId, second: TxnId) -> bool {
        let is_committed = self.history.outcome(first) == Outcome::Committed;
        let ended = self.history.finish(first).filter(|_| is_committed);
        let skew = 2 * i128::from(self.options.clock_skew);
        ended
            .zip(self.history.start(second))
            .is_some_and(|(finish, start)| i128::from(finish) + skew < i128::from(start))
    }

    /// Goes through all cycles.
    fn has_forbidden_cycle(&self, edges: &[(TxnId, TxnId, Kind)]) -> bool {
        let counts = |kind: Kind| match self.level {
            // Reads do not count there, and real time is no overwrite, but counts.
            Level::ReadUncommitted => matches!(kind, Kind::Session | Kind::Overwrite),
            _ => true,
        };
        let is_time = |(first, second, _): &(TxnId, TxnId, Kind)| {
            self.level.shape().real_time && self.had_finished(*first, *second)
        };
        let counts = |edge: &&(TxnId, TxnId, Kind)| match self.level {
            Level::StrongReadUncommitted => {
                matches!(edge.2, Kind::Session | Kind::Overwrite)
                    || edge.2 == Kind::Other && is_time(edge)
            }
            Level::ConsistentView => edge.2 != Kind::Session,
            _ => counts(edge.2),
        };
        let edges: Vec<_> = edges.iter().filter(counts).copied().collect();
        self.kept.iter().any(|txn| self.comes_back(&edges, &mut vec![*txn], &mut Vec::new()))
    }

    fn comes_back(
        &self,
        edges: &[(TxnId, TxnId, Kind)],
        path: &mut Vec<TxnId>,
        kinds: &mut Vec<Kind>,
    ) -> bool {
        let (first, last) = (path[0], path[path.len() - 1]);
        edges.iter().filter(|edge| edge.0 == last).any(|(_, next, kind)| {
            kinds.push(*kind);
            let found = if *next == first {
                self.is_forbidden(kinds)
            } else if path.contains(next) {
                false
            } else {
                path.push(*next);
                let found = self.comes_back(edges, path, kinds);
                path.pop();
                found
            };
            kinds.pop();
            found
        })
    }

    /// Whether the level forbids a cycle of such edges.
    fn is_forbidden(&self, kinds: &[Kind]) -> bool {
        use Level as L;
        let is_anti = |kind: &Kind| matches!(kind, Kind::Anti | Kind::PredicateAnti);
        let antis = kinds.iter().filter(|kind| is_anti(kind)).count();
        match self.level {
            L::ReadUncommitted
            | L::StrongReadUncommitted
            | L::AdyaReadCommitted
            | L::StrongAdyaReadCommitted => antis == 0,
            L::ConsistentView | L::ParallelSnapshotIsolation => antis < 2,
            L::SnapshotIsolation | L::StrongSnapshotIsolation => {
                let next = kinds.iter().cycle().skip(1);
                let mut pairs = kinds.iter().zip(next);
                !pairs.any(|(one, other)| is_anti(one) && is_anti(other))
            }
            L::RepeatableRead | L::StrongRepeatableRead => !kinds.contains(&Kind::PredicateAnti),
            _ => true,
        }
    }
}

/// All orders of so many things.
fn permutations(count: usize, order: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
    if order.len() == count {
        all.push(order.clone());
        return;
    }
    for next in (0..count).filter(|next| !order.contains(next)).collect::<Vec<_>>() {
        order.push(next);
        permutations(count, order, all);
        order.pop();
    }
}
