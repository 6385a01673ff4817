//! The rows of a certificate: their versions in order, and which of them an operation met.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{
    Aggregate, History, Initial, KeyId, Op, OpId, Outcome, RowRef, Stamp, StatedOrder, StatedSet,
    TxnId, Value, ValueRef, VersionSet,
};

use crate::VerifyOptions;

/// A history and its certificate.
#[derive(Debug)]
pub(crate) struct Certificate<'h> {
    pub(super) history: &'h History,
    pub(super) options: VerifyOptions,
    pub(super) orders: &'h [StatedOrder],
    sets: BTreeMap<OpId, &'h VersionSet>,
    /// Who takes part: whoever committed, by its client or by what is stated, or was read from.
    kept: Vec<bool>,
    /// Per row, its versions in order, the initial one first.
    rows: Vec<Vec<Version<'h>>>,
    /// Per row, the positions of the versions that insert or delete it.
    changes: Vec<Vec<usize>>,
    /// Per transaction and row, the place of its version.
    places: BTreeMap<(TxnId, KeyId), usize>,
}

/// A version of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version<'h> {
    pub(super) writer: TxnId,
    /// None for the initial version.
    pub(super) write: Option<OpId>,
    pub(super) value: ValueRef<'h>,
    pub(super) word: Option<u64>,
}

/// What a certificate does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacks {
    /// How the versions of a row follow each other.
    Order(KeyId),
    /// What an operation wrote.
    Rows(OpId),
    /// What rows hold at first.
    Initial,
}

impl<'h> Certificate<'h> {
    pub(crate) fn new(
        history: &'h History,
        options: VerifyOptions,
        orders: &'h [StatedOrder],
        stated: &'h [StatedSet],
    ) -> Result<Self, Lacks> {
        let (initial, encoded_initial_version) = match history.initial() {
            Initial::Value(value) => (value.as_ref(), history.encoded_initial_version()),
            Initial::None => (ValueRef::Nil, None),
            _ => return Err(Lacks::Initial),
        };
        let sets = stated.iter().map(|set| (set.op, &set.versions)).collect();
        let kept = kept(history, orders, stated);
        let mut certificate = Certificate {
            history,
            options,
            orders,
            sets,
            kept,
            rows: Vec::new(),
            changes: Vec::new(),
            places: BTreeMap::new(),
        };
        certificate.says_what_was_written()?;
        let mut writers: Vec<Vec<Version<'h>>> = vec![Vec::new(); history.key_count()];
        for txn in certificate.txns() {
            for (key, (write, value, word)) in certificate.writes(txn) {
                let (write, word) = (Some(write), Some(word));
                writers[key.index()].push(Version { writer: txn, write, value, word });
            }
        }
        let mut lines: Vec<Vec<&StatedOrder>> = vec![Vec::new(); history.key_count()];
        orders.iter().for_each(|order| lines[order.key.index()].push(order));
        for (key, (versions, lines)) in writers.iter().zip(&lines).enumerate() {
            let key = KeyId::at(key);
            let first = Version {
                writer: TxnId::INIT,
                write: None,
                value: initial,
                word: encoded_initial_version,
            };
            let sorted = in_order(versions, lines);
            let sorted = sorted.ok_or(Lacks::Order(key))?;
            let row: Vec<Version<'h>> = std::iter::once(first).chain(sorted).collect();
            for (place, version) in row.iter().enumerate().skip(1) {
                certificate.places.insert((version.writer, key), place);
            }
            let is_there = |at: usize| row[at].value != ValueRef::Nil;
            let is_change = |at: &usize| is_there(*at) != is_there(*at - 1);
            certificate.changes.push((1..row.len()).filter(is_change).collect());
            certificate.rows.push(row);
        }
        Ok(certificate)
    }

    /// Refuses histories that do not say what operations wrote.
    fn says_what_was_written(&self) -> Result<(), Lacks> {
        let mut ops = self.txns().flat_map(|txn| self.history.txn_ops(txn));
        let lacks =
            |op: &OpId| matches!(self.history.op(*op), Op::PredicateWrite { rows: None, .. });
        ops.find(lacks).map_or(Ok(()), |op| Err(Lacks::Rows(op)))
    }

    /// Whether an operation got an answer, and the certificate does not say what it met.
    pub(super) fn is_unstated(&self, op: OpId) -> bool {
        self.is_asked(op) && !self.sets.contains_key(&op)
    }

    /// The operations of which the certificate does not say what they met.
    pub(super) fn unstated(&self) -> impl Iterator<Item = OpId> + '_ {
        let ops = self.txns().flat_map(|txn| self.history.txn_ops(txn));
        ops.filter(|op| self.is_unstated(*op))
    }

    /// Whether an operation asked by predicate and got an answer.
    pub(super) fn is_asked(&self, op: OpId) -> bool {
        matches!(
            self.history.op(op),
            Op::PredicateRead { rows: Some(_), .. }
                | Op::PredicateWrite { rows: Some(_), .. }
                | Op::Aggregate { result: Some(_), .. }
        )
    }

    pub(super) fn is_kept(&self, txn: TxnId) -> bool {
        txn.is_init() || self.kept.get(txn.index()).is_some_and(|kept| *kept)
    }

    /// The transactions that take part.
    pub(super) fn txns(&self) -> impl Iterator<Item = TxnId> + '_ {
        self.history.txns().filter(|txn| self.is_kept(*txn))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = KeyId> + use<> {
        (0..self.history.key_count()).map(KeyId::at)
    }

    pub(super) fn row(&self, key: KeyId) -> &[Version<'h>] {
        self.rows.get(key.index()).map_or(&[], Vec::as_slice)
    }

    /// The positions of the versions that insert a row or delete it.
    pub(super) fn changes_of_presence(&self, key: KeyId) -> &[usize] {
        self.changes.get(key.index()).map_or(&[], Vec::as_slice)
    }

    /// The place of a transaction's version of a row; 0 for `init`.
    pub(super) fn place(&self, txn: TxnId, key: KeyId) -> Option<usize> {
        if txn.is_init() { Some(0) } else { self.places.get(&(txn, key)).copied() }
    }

    /// What a transaction left of each row that it wrote.
    fn writes(&self, txn: TxnId) -> BTreeMap<KeyId, (OpId, ValueRef<'h>, u64)> {
        let mut rows = BTreeMap::new();
        for op in self.history.txn_ops(txn) {
            self.apply(op, &mut rows);
        }
        rows
    }

    /// What a transaction had written before an operation.
    pub(super) fn written_before(
        &self,
        txn: TxnId,
        op: OpId,
    ) -> BTreeMap<KeyId, (OpId, ValueRef<'h>, u64)> {
        let mut rows = BTreeMap::new();
        for earlier in self.history.txn_ops(txn).take_while(|earlier| *earlier < op) {
            self.apply(earlier, &mut rows);
        }
        rows
    }

    fn apply(&self, op: OpId, rows: &mut BTreeMap<KeyId, (OpId, ValueRef<'h>, u64)>) {
        let history = self.history;
        match history.op(op) {
            Op::Write { key, value } => {
                rows.insert(key, (op, history.value(value), history.encoded_version(op)));
            }
            Op::Delete { key } => {
                rows.insert(key, (op, ValueRef::Nil, history.encoded_version(op)));
            }
            Op::PredicateWrite { rows: Some(written), .. } => {
                for row in written {
                    let word = history.encoded_row_version(row);
                    rows.insert(row.key, (op, history.value(row.value), word));
                }
            }
            _ => {}
        }
    }

    /// How often a row had been inserted anew by a version, though its writer may have deleted it again.
    pub(super) fn incarnation(&self, key: KeyId, place: usize) -> usize {
        let row = self.row(key);
        let is_anew = |at: &usize| {
            let is_there = row[*at].value != ValueRef::Nil || self.inserts(row[*at].writer, key);
            row[*at - 1].value == ValueRef::Nil && is_there
        };
        (2..=place).filter(is_anew).filter(|_| self.history.is_row(key)).count()
    }

    /// Whether the first write of a row by a transaction puts it there by its key.
    fn inserts(&self, txn: TxnId, key: KeyId) -> bool {
        let mut rows = BTreeMap::new();
        let first = self.history.txn_ops(txn).find(|op| {
            self.apply(*op, &mut rows);
            rows.contains_key(&key)
        });
        let is_there = rows.get(&key).is_some_and(|(_, value, _)| *value != ValueRef::Nil);
        is_there && first.is_some_and(|op| self.history.op_predicate(op).is_none())
    }

    /// The writers that a set names for a row.
    pub(super) fn named(&self, op: OpId, key: KeyId) -> Option<TxnId> {
        match self.sets.get(&op) {
            Some(VersionSet::Writers(writers)) => {
                writers.iter().find(|(named, _)| *named == key).map(|(_, writer)| *writer)
            }
            _ => None,
        }
    }

    /// The snapshot that an operation read, where one is stated.
    pub(super) fn snapshot(&self, op: OpId) -> Option<Stamp> {
        match self.sets.get(&op) {
            Some(VersionSet::Snapshot(at)) => Some(*at),
            _ => None,
        }
    }

    /// Whether one transaction had committed by a snapshot of another. What the other one committed
    /// itself, or anybody since, it cannot have started after.
    pub(super) fn is_in_snapshot(&self, one: TxnId, reader: TxnId, snapshot: Stamp) -> bool {
        let own = self.history.db_commit(reader);
        let commit = self.history.db_commit(one).filter(|commit| *commit <= snapshot);
        commit.is_some_and(|commit| own.is_none_or(|own| commit < own))
    }

    /// The snapshots that are stated, each with its operation.
    pub(super) fn snapshots(&self) -> impl Iterator<Item = (OpId, Stamp)> + '_ {
        self.sets.keys().filter_map(|op| Some((*op, self.snapshot(*op)?)))
    }

    /// The place of the version of a row that an operation met, own writes aside.
    pub(super) fn met(&self, txn: TxnId, op: OpId, key: KeyId) -> usize {
        match self.sets.get(&op) {
            Some(VersionSet::Snapshot(at)) => {
                let is_in = |version: &Version<'_>| {
                    let stamp = || self.history.db_commit(version.writer);
                    version.write.is_none()
                        || version.writer != txn && stamp().is_some_and(|stamp| stamp <= *at)
                };
                self.row(key).iter().rposition(is_in).unwrap_or(0)
            }
            _ => self.named(op, key).and_then(|writer| self.place(writer, key)).unwrap_or(0),
        }
    }

    /// Whether a version satisfies the predicate of an operation.
    pub(super) fn matches(&self, op: OpId, key: KeyId, value: ValueRef<'_>) -> bool {
        let row = RowRef { key: self.history.key_name(key), value };
        let predicate = self.history.op_predicate(op).map(|id| self.history.predicate(id));
        predicate.is_some_and(|predicate| row.matches_everywhere(predicate) == Ok(true))
    }

    /// Whether a version changes what an operation matches.
    pub(super) fn changes(&self, op: OpId, key: KeyId, place: usize) -> bool {
        let row = self.row(key);
        let is = |at: usize| row.get(at).is_some_and(|v| self.matches(op, key, v.value));
        place > 0 && is(place) != is(place - 1)
    }

    /// The rows of others that an operation read one by one: those that it returned, or took a sum or
    /// an extreme over. And of others that it returned, what they show.
    pub(super) fn rows_read(&self, txn: TxnId, op: OpId) -> Vec<(KeyId, usize)> {
        let own = self.written_before(txn, op);
        let (returned, all): (BTreeMap<KeyId, Vec<u64>>, bool) = match self.history.op(op) {
            Op::PredicateRead { rows: Some(rows), .. } => {
                let mut shown: BTreeMap<KeyId, Vec<u64>> = BTreeMap::new();
                for row in rows {
                    shown.entry(row.key).or_default().push(self.history.encoded_row_version(row));
                }
                (shown, false)
            }
            Op::Aggregate { function, result: Some(_), .. } => {
                (BTreeMap::new(), !matches!(function, Aggregate::Count | Aggregate::Exists))
            }
            _ => return Vec::new(),
        };
        if self.is_unstated(op) {
            return self.may_be_shown(txn, &returned, &own);
        }
        let formers = if all { self.formers_taken_over(txn, op) } else { Vec::new() };
        let mut found = Vec::new();
        for key in self.keys() {
            let met = self.met(txn, op, key);
            let Some(version) = self.row(key).get(met) else { continue };
            let is_read = match own.contains_key(&key) {
                false => all && self.matches(op, key, version.value),
                true => formers.contains(&key),
            };
            let seen = returned.get(&key).map_or(&[][..], Vec::as_slice);
            let times = seen.iter().filter(|seen| Some(**seen) == version.word).count();
            // One that looks like it is the transaction's own row.
            let is_own = own.get(&key).is_some_and(|(_, _, word)| Some(*word) == version.word);
            if is_read || times > usize::from(is_own) {
                found.push((key, met));
            }
        }
        found
    }
}

impl Certificate<'_> {
    /// The versions of others that rows of a result may be. Which of several equal ones it was, nothing
    /// says.
    fn may_be_shown(
        &self,
        txn: TxnId,
        returned: &BTreeMap<KeyId, Vec<u64>>,
        own: &BTreeMap<KeyId, (OpId, ValueRef<'_>, u64)>,
    ) -> Vec<(KeyId, usize)> {
        let mut found = Vec::new();
        for (key, words) in returned.iter().filter(|(key, _)| !own.contains_key(key)) {
            for (place, version) in self.row(*key).iter().enumerate() {
                let is_shown = version.word.is_some_and(|word| words.contains(&word));
                if is_shown && version.writer != txn {
                    found.push((*key, place));
                }
            }
        }
        found
    }
}

/// Who takes part.
fn kept(history: &History, orders: &[StatedOrder], sets: &[StatedSet]) -> Vec<bool> {
    let mut named: BTreeSet<TxnId> =
        orders.iter().flat_map(|order| order.writers.iter().copied()).collect();
    for set in sets {
        if let VersionSet::Writers(writers) = &set.versions {
            named.extend(writers.iter().map(|(_, writer)| *writer));
        }
    }
    let is_known = |txn: TxnId| named.contains(&txn) || history.db_commit(txn).is_some();
    let mut kept: Vec<bool> = history
        .txns()
        .map(|txn| match history.outcome(txn) {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Unknown => is_known(txn),
        })
        .collect();
    // Whoever is read from by one that takes part takes part, if nobody else wrote that.
    let mut writers: BTreeMap<(KeyId, u64), Vec<TxnId>> = BTreeMap::new();
    for txn in history.txns() {
        for op in history.txn_ops(txn) {
            each_version(history, op, |key, word, is_write| {
                if is_write {
                    writers.entry((key, word)).or_default().push(txn);
                }
            });
        }
    }
    loop {
        let mut more = Vec::new();
        for txn in history.txns().filter(|txn| kept[txn.index()]) {
            for op in history.txn_ops(txn) {
                each_version(history, op, |key, word, is_write| {
                    let wrote = writers.get(&(key, word)).map_or(&[][..], Vec::as_slice);
                    let initial = history.encoded_initial_version() == Some(word);
                    if let (false, false, [only]) = (is_write, initial, wrote)
                        && history.outcome(*only) == Outcome::Unknown
                        && !kept[only.index()]
                    {
                        more.push(*only);
                    }
                });
            }
        }
        if more.is_empty() {
            return kept;
        }
        more.into_iter().for_each(|txn| kept[txn.index()] = true);
    }
}

/// Tells the versions that an operation read and wrote.
fn each_version(history: &History, op: OpId, mut tell: impl FnMut(KeyId, u64, bool)) {
    match history.op(op) {
        Op::Read { key, value: Some(_) } => tell(key, history.encoded_version(op), false),
        Op::Write { key, .. } | Op::Delete { key } => tell(key, history.encoded_version(op), true),
        Op::PredicateRead { rows, .. } => {
            let rows = rows.unwrap_or_default().iter();
            rows.for_each(|row| tell(row.key, history.encoded_row_version(row), false));
        }
        Op::PredicateWrite { rows, .. } => {
            let rows = rows.unwrap_or_default().iter();
            rows.for_each(|row| tell(row.key, history.encoded_row_version(row), true));
        }
        _ => {}
    }
}

/// Versions in the one order that lines state; none if they state no order of all.
fn in_order<'h>(versions: &[Version<'h>], lines: &[&StatedOrder]) -> Option<Vec<Version<'h>>> {
    let of: BTreeMap<TxnId, Version<'h>> =
        versions.iter().map(|version| (version.writer, *version)).collect();
    let mut next: BTreeMap<TxnId, BTreeSet<TxnId>> = BTreeMap::new();
    let mut waits: BTreeMap<TxnId, usize> = of.keys().map(|txn| (*txn, 0)).collect();
    for line in lines {
        let writers: Vec<TxnId> =
            line.writers.iter().filter(|writer| of.contains_key(writer)).copied().collect();
        for pair in writers.windows(2).filter(|pair| pair[0] != pair[1]) {
            if next.entry(pair[0]).or_default().insert(pair[1]) {
                *waits.entry(pair[1]).or_default() += 1;
            }
        }
    }
    let mut free: Vec<TxnId> =
        waits.iter().filter(|(_, waits)| **waits == 0).map(|(txn, _)| *txn).collect();
    let mut sorted: Vec<Version<'h>> = Vec::with_capacity(of.len());
    while sorted.len() < of.len() {
        let [only] = free[..] else { return None };
        let follows = |last: TxnId| next.get(&last).is_some_and(|next| next.contains(&only));
        if !sorted.last().is_none_or(|last| follows(last.writer)) {
            return None;
        }
        free.clear();
        for after in next.get(&only).into_iter().flatten() {
            let waits = waits.entry(*after).or_default();
            *waits -= 1;
            if *waits == 0 {
                free.push(*after);
            }
        }
        sorted.push(of[&only]);
    }
    Some(sorted)
}

/// The value that a function has over rows.
pub(super) fn over(function: &Aggregate, rows: &[RowRef<'_>]) -> Option<Value> {
    let value = function.over(rows.iter().copied(), isolario_predicate::Dialect::Postgres);
    value.ok().map(Value::from)
}
