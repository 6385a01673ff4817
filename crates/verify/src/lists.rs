//! List reads: what they must look like, and what shows that they do not.
//!
//! A list must end with exactly the reader's own appends so far. What comes before shows appends of
//! others: of each transaction all or none, in program order, and none of an aborted one. Of two
//! reads of a list, one is a prefix of the other, own appends left out.

use isolario_model::{AnomalyKind, KeyId, Level, Op, OpId, Outcome, TxnId, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::facts::{Facts, Source};
use crate::order::Order;
use crate::single_reads::BadRead;
use crate::{Refusal, allows_dirty_reads};

/// A list read.
#[derive(Clone, Copy)]
struct ListRead<'h> {
    reader: TxnId,
    read: OpId,
    key: KeyId,
    elements: &'h [ValueId],
}

impl<'h> ListRead<'h> {
    fn new(facts: &Facts<'h>, read: OpId) -> Option<Self> {
        match facts.history.op(read) {
            Op::ReadList { key, elements: Some(elements) } => {
                Some(ListRead { reader: facts.txn(read), read, key, elements })
            }
            _ => None,
        }
    }

    /// The reader's own appends before the read.
    fn own_before(&self, facts: &Facts<'_>) -> Vec<OpId> {
        appends_of(facts, self.reader, self.key).filter(|op| *op < self.read).collect()
    }

    /// What the reader appended before the read.
    fn own_elements(&self, facts: &Facts<'_>) -> Vec<ValueId> {
        self.own_before(facts).iter().filter_map(|op| element(facts, *op)).collect()
    }

    /// What the list shows, the reader's own appends at its end left out; none if they are not
    /// there.
    fn foreign(&self, facts: &Facts<'_>) -> Option<&'h [ValueId]> {
        self.elements.strip_suffix(self.own_elements(facts).as_slice())
    }

    /// Whether the list shows an append, which is nobody else's.
    fn certainly_shows(&self, facts: &Facts<'_>, append: OpId) -> bool {
        let is_it = |e: ValueId| {
            self.elements.contains(&e) && facts.appender(self.key, e) == Some(facts.txn(append))
        };
        facts.key(append) == self.key && element(facts, append).is_some_and(is_it)
    }

    /// Whether the list shows an append although nobody may have appended that element whom the
    /// reader may see: who did aborted, or is the reader itself, later.
    fn shows_wrongly(&self, facts: &Facts<'_>, append: OpId) -> bool {
        let own_left_out = self.foreign(facts).is_some();
        let explains = |other: OpId| {
            let writer = facts.txn(other);
            let is_own = writer == self.reader;
            facts.history.outcome(writer) != Outcome::Aborted
                && (!is_own || (other < self.read && !own_left_out))
        };
        facts.key(append) == self.key
            && element(facts, append).is_some_and(|e| {
                self.others(facts).contains(&e) && !facts.appends(self.key, e).any(explains)
            })
    }

    /// What the list shows, without the own appends at its end: these are the reader's, whoever
    /// else appended the same. All of it where they are missing.
    fn others(&self, facts: &Facts<'_>) -> &'h [ValueId] {
        self.foreign(facts).unwrap_or(self.elements)
    }

    /// What the list shows where reads may be dirty: without the own appends so far, if they are at its
    /// end and nowhere else.
    fn shown_dirty(&self, facts: &Facts<'_>) -> &'h [ValueId] {
        let own = self.own_elements(facts);
        let foreign = self.elements.strip_suffix(own.as_slice());
        let foreign = foreign.filter(|rest| !own.iter().any(|element| rest.contains(element)));
        foreign.unwrap_or(self.elements)
    }

    /// Whether the list shows an append, but not all that its transaction appended.
    fn shows_part_of(&self, facts: &Facts<'_>, append: OpId) -> bool {
        let writer = facts.txn(append);
        let appended = elements_of(facts, writer, self.key);
        let mut shown = appended.iter().filter(|e| self.elements.contains(e));
        let certain = shown.all(|e| facts.appender(self.key, *e) == Some(writer));
        certain && self.certainly_shows(facts, append) && self.shown(facts, writer) != appended
    }

    /// Whether the list shows an append after another, or its reader made it after having read the
    /// other: it was made to a list that held the other one. Who made it committed.
    fn is_built_on(&self, facts: &Facts<'_>, first: OpId, second: OpId) -> bool {
        let place = |append: OpId| {
            let element = element(facts, append)?;
            self.elements.iter().rposition(|other| *other == element)
        };
        let by_reader = facts.txn(second) == self.reader && second > self.read;
        let shown_after = || {
            self.certainly_shows(facts, second)
                && place(first).zip(place(second)).is_some_and(|(first, second)| first < second)
        };
        facts.key(second) == self.key
            && element(facts, second).is_some()
            && facts.committed(facts.txn(second)).is_ok()
            && (by_reader || shown_after())
    }

    /// What the list shows of a transaction.
    fn shown(&self, facts: &Facts<'_>, txn: TxnId) -> Vec<ValueId> {
        let is_of = |e: &&ValueId| facts.appender(self.key, **e) == Some(txn);
        self.elements.iter().filter(is_of).copied().collect()
    }
}

fn appends_of<'f>(
    facts: &'f Facts<'_>,
    txn: TxnId,
    key: KeyId,
) -> impl Iterator<Item = OpId> + use<'f> {
    let history = facts.history;
    history
        .txn_ops(txn)
        .filter(move |op| matches!(history.op(*op), Op::Append { key: other, .. } if other == key))
}

fn element(facts: &Facts<'_>, append: OpId) -> Option<ValueId> {
    match facts.history.op(append) {
        Op::Append { element, .. } => Some(element),
        _ => None,
    }
}

/// What a transaction appended to a list.
pub(crate) fn elements_of(facts: &Facts<'_>, txn: TxnId, key: KeyId) -> Vec<ValueId> {
    appends_of(facts, txn, key).filter_map(|op| element(facts, op)).collect()
}

/// The last element of a list read that is not the reader's own, with its key; none if there is no
/// such element, or it is no list read. The own appends at its end are the reader's, whoever else
/// appended the same.
pub(crate) fn last_of_others(facts: &Facts<'_>, read: OpId) -> Option<(KeyId, ValueId)> {
    let list = ListRead::new(facts, read)?;
    let own = elements_of(facts, list.reader, list.key);
    let last = list.others(facts).iter().rfind(|e| !own.contains(e))?;
    Some((list.key, *last))
}

/// What a list read shows, with its key, where reads may be dirty. None if it is no list read.
pub(crate) fn shown<'h>(facts: &Facts<'h>, read: OpId) -> Option<(KeyId, &'h [ValueId])> {
    let list = ListRead::new(facts, read)?;
    Some((list.key, list.shown_dirty(facts)))
}

/// Where a list read came from: the last element of others; none if it is no list read.
pub(crate) fn source(facts: &Facts<'_>, read: OpId) -> Option<Source> {
    ListRead::new(facts, read)?;
    let Some((key, last)) = last_of_others(facts, read) else { return Some(Source::Init) };
    let is_sole = || facts.appender(key, last).is_some();
    let all_wrong = || !facts.may_see_one(read, facts.appends(key, last));
    Some(match facts.appends(key, last).next_back() {
        None => Source::Nobody,
        Some(append) if is_sole() || all_wrong() => Source::Write(append),
        Some(_) => Source::Ambiguous,
    })
}

/// Refuses an order in which a list read is not right: registers are left to the caller.
pub(crate) fn check_read(order: &Order<'_, '_>, read: OpId) -> Result<(), Refusal> {
    let Some(list) = ListRead::new(order.facts, read) else { return Ok(()) };
    let wrong = |why| Err(Refusal::Unexplained { read, why });
    let Some(foreign) = list.foreign(order.facts) else {
        return wrong("it does not end with its transaction's own appends");
    };
    let scan = order.scans.of(order, list.key, foreign);
    scan.fault(foreign.len(), list.reader).map_or(Ok(()), wrong)
}

/// Refuses an order that does not follow the lists, and lists that do not fit together.
pub(crate) fn check_order(order: &Order<'_, '_>) -> Result<(), Refusal> {
    let facts = order.facts;
    let longest = order.scans.longest(order);
    for list in lists_of(order) {
        let (first, all) = longest[&list.key];
        let foreign = list.foreign(facts).unwrap_or_default();
        if !is_prefix(foreign, all) {
            return Err(Refusal::Disagree { first, second: list.read });
        }
    }
    let mut keys: Vec<_> = longest.iter().collect();
    keys.sort_unstable_by_key(|(key, _)| **key);
    keys.iter().try_for_each(|(key, (_, all))| follows(order, **key, all))?;
    forgets_nothing(order, longest)
}

/// Lists never forget: what the longest read of a list does not show was appended after the last
/// that it shows. Shorter reads leave out what the longest one orders.
fn forgets_nothing(order: &Order<'_, '_>, longest: &Longest<'_>) -> Result<(), Refusal> {
    let appender = |key: KeyId, element| Some((key, order.facts.appender(key, element)?));
    let shown: FxHashSet<(KeyId, TxnId)> = (longest.iter())
        .flat_map(|(key, (_, all))| all.iter().filter_map(|element| appender(*key, *element)))
        .collect();
    for second in order.txns {
        for op in order.facts.history.txn_ops(*second) {
            let Op::Append { key, .. } = order.facts.history.op(op) else { continue };
            let Some(last) = longest.get(&key).and_then(|(_, all)| all.last()) else { continue };
            let Some(first) = order.facts.appender(key, *last) else { continue };
            if !shown.contains(&(key, *second)) && order.place(*second) < order.place(first) {
                let (second, why) = (*second, "a list shows the one and not the other");
                return Err(Refusal::OutOfOrder { first, second, why });
            }
        }
    }
    Ok(())
}

/// The list reads of an order's transactions.
fn lists_of<'h>(order: &Order<'_, 'h>) -> impl Iterator<Item = ListRead<'h>> {
    let facts = order.facts;
    let reads = order.txns.iter().flat_map(|txn| facts.reads(*txn));
    reads.filter_map(|read| ListRead::new(facts, read))
}

/// Per key, the first of the reads that show the most of others' appends, and what it shows.
pub(crate) type Longest<'h> = FxHashMap<KeyId, (OpId, &'h [ValueId])>;

/// The longest lists that an order's transactions read.
pub(crate) fn longest<'h>(order: &Order<'_, 'h>) -> Longest<'h> {
    let mut longest = Longest::default();
    for list in lists_of(order) {
        let foreign = list.foreign(order.facts).unwrap_or_default();
        let entry = longest.entry(list.key).or_insert((list.read, foreign));
        if foreign.len() > entry.1.len() {
            *entry = (list.read, foreign);
        }
    }
    longest
}

/// Whether one list begins another. Most share their elements in memory, and need not be compared.
pub(crate) fn is_prefix(list: &[ValueId], all: &[ValueId]) -> bool {
    let shares = std::ptr::eq(all.as_ptr(), list.as_ptr()) && list.len() <= all.len();
    shares || all.starts_with(list)
}

fn follows(order: &Order<'_, '_>, key: KeyId, elements: &[ValueId]) -> Result<(), Refusal> {
    let writers: Vec<_> = elements.iter().filter_map(|e| order.facts.appender(key, *e)).collect();
    match writers.windows(2).find(|pair| order.place(pair[0]) > order.place(pair[1])) {
        None => Ok(()),
        Some(pair) => {
            let why = "a list shows its element before the other's";
            Err(Refusal::OutOfOrder { first: pair[0], second: pair[1], why })
        }
    }
}

/// Whether a read of a list shows an element of one writer before one of another.
pub(crate) fn shows_order(
    facts: &Facts<'_>,
    level: Level,
    read: OpId,
    key: KeyId,
    first: TxnId,
    second: TxnId,
) -> Result<bool, Refusal> {
    let Some(foreign) = shown_by_others(facts, level, read, key)? else { return Ok(false) };
    let is_of = |txn: TxnId| move |e: &ValueId| facts.appender(key, *e) == Some(txn);
    let first = foreign.iter().position(is_of(first));
    let second = foreign.iter().rposition(is_of(second));
    Ok(first.zip(second).is_some_and(|(first, second)| first < second))
}

/// Whether a read of a list ends with one writer and does not show all of another. A version of a list
/// holds every append before it, so what is not shown then came later. What did not commit for certain
/// says nothing.
pub(crate) fn leaves_out(
    facts: &Facts<'_>,
    level: Level,
    read: OpId,
    key: KeyId,
    last: TxnId,
    hidden: TxnId,
) -> Result<bool, Refusal> {
    let Some(foreign) = shown_by_others(facts, level, read, key)? else { return Ok(false) };
    let mut writers = foreign.iter().rev().map(|e| facts.appender(key, *e));
    let ends_with = match allows_dirty_reads(level) {
        false => writers.next().flatten(),
        true => writers.flatten().find(|writer| facts.committed_at(level, *writer).is_ok()),
    };
    // An element that others appended as well may be this one's.
    let is_hidden = |e: &ValueId| !foreign.contains(e);
    Ok(ends_with == Some(last) && elements_of(facts, hidden, key).iter().any(is_hidden))
}

/// What a committed transaction's read of this list shows of others; none if it is no such read.
fn shown_by_others<'h>(
    facts: &Facts<'h>,
    level: Level,
    read: OpId,
    key: KeyId,
) -> Result<Option<&'h [ValueId]>, Refusal> {
    let Some(list) = ListRead::new(facts, facts.known_op(read)?) else { return Ok(None) };
    facts.committed_at(level, list.reader)?;
    let shown = match allows_dirty_reads(level) {
        true => Some(list.shown_dirty(facts)),
        false => list.foreign(facts),
    };
    Ok(shown.filter(|_| list.key == key))
}

/// Whether two reads of a list do not fit together.
pub(crate) fn disagree(
    facts: &Facts<'_>,
    level: Level,
    key: KeyId,
    first: OpId,
    second: OpId,
) -> Result<bool, Refusal> {
    let is_certain = |e: &ValueId| {
        let appender = facts.appender(key, *e);
        appender.is_some_and(|txn| facts.committed_at(level, txn).is_ok())
    };
    let shown = |read| -> Result<Option<Vec<ValueId>>, Refusal> {
        let shown = shown_by_others(facts, level, read, key)?.map(<[ValueId]>::iter);
        Ok(shown.map(|all| match allows_dirty_reads(level) {
            true => all.filter(|e| is_certain(e)).copied().collect(),
            false => all.copied().collect(),
        }))
    };
    Ok(match (shown(first)?, shown(second)?) {
        (Some(one), Some(other)) => !one.starts_with(&other) && !other.starts_with(&one),
        _ => false,
    } && first < second)
}

/// Whether a list may have shown the one append or the other.
pub(crate) fn is_ambiguous(facts: &Facts<'_>, read: OpId, first: OpId, second: OpId) -> bool {
    let Some(list) = ListRead::new(facts, read) else { return false };
    let shown = element(facts, first).filter(|e| list.elements.contains(e));
    let same = shown.is_some() && shown == element(facts, second);
    let of_key = [first, second].iter().all(|op| facts.key(*op) == list.key);
    same && of_key && facts.txn(first) != facts.txn(second)
}

/// Whether a list read is wrong in the way it is said to be; none if it is no list read.
pub(crate) fn shows(facts: &Facts<'_>, kind: AnomalyKind, bad: BadRead) -> Option<bool> {
    let list = ListRead::new(facts, bad.read)?;
    let BadRead { saw, instead, .. } = bad;
    let own = list.own_before(facts);
    let own_missing = || list.foreign(facts).is_none() && instead == own.last().copied();
    let others = ListRead { elements: list.others(facts), ..list };
    let is_own = |append: OpId| facts.txn(append) == list.reader;
    let shows_aborted = |append: OpId| {
        let aborted = facts.history.outcome(facts.txn(append)) == Outcome::Aborted;
        !is_own(append) && aborted && list.shows_wrongly(facts, append)
    };
    Some(match (kind, saw) {
        (AnomalyKind::ThinAirRead, None) => {
            let is_nobodys = |e: &ValueId| facts.appends(list.key, *e).next().is_none();
            instead.is_none() && others.elements.iter().any(is_nobodys)
        }
        (AnomalyKind::AbortedRead, Some(saw)) => instead.is_none() && shows_aborted(saw),
        (AnomalyKind::DirtyUpdate, Some(saw)) => {
            shows_aborted(saw) && instead.is_some_and(|built| list.is_built_on(facts, saw, built))
        }
        (AnomalyKind::FutureRead, Some(saw)) => {
            instead.is_none() && is_own(saw) && saw > bad.read && list.shows_wrongly(facts, saw)
        }
        (AnomalyKind::NotMyOwnWrite, None) => own_missing(),
        (AnomalyKind::NotMyLastWrite, Some(saw)) => {
            own_missing() && is_own(saw) && Some(saw) < instead && own.contains(&saw)
        }
        (AnomalyKind::IntermediateRead, Some(saw)) => {
            let another = instead.is_some_and(|i| i != saw && facts.txn(i) == facts.txn(saw));
            !is_own(saw) && another && others.shows_part_of(facts, saw)
        }
        (AnomalyKind::DuplicateElements, Some(saw)) if instead.is_none() => {
            let shown = if is_own(saw) { list } else { others };
            let appended = elements_of(facts, facts.txn(saw), list.key);
            let times =
                |all: &[ValueId]| all.iter().filter(|e| Some(**e) == element(facts, saw)).count();
            shown.certainly_shows(facts, saw) && times(shown.elements) > times(&appended)
        }
        _ => false,
    })
}
