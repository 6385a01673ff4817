//! The order of committed appends that lists show, whatever else they show.

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, Inapplicable, KeyId, OpId, Outcome, TxnId, ValueId,
};
use rayon::prelude::*;

use crate::resolved::lists::{Access, Appends, ListAccesses, OwnAppends, Scan, element, elements};
use crate::resolved::{KnownBy, VersionEdge};

/// What all lists show together.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) edges: Vec<VersionEdge>,
    pub(super) anomalies: Vec<Anomaly>,
    /// Why that is not certain: the first read that shows an element which two may have appended.
    pub(super) ambiguous: Option<Inapplicable>,
}

/// Puts together what the lists of committed transactions show.
pub(super) fn shown(history: &History) -> Shown {
    let accesses = ListAccesses::of(history);
    let of_keys = |keys: std::ops::Range<usize>| {
        let mut lists = Lists::new(history);
        keys.for_each(|key| {
            lists.add(KeyId::at(key), accesses.appends.get(key), accesses.reads.get(key));
        });
        lists.found
    };
    let parts: Vec<Found> = accesses.stretches().into_par_iter().map(of_keys).collect();
    let mut shown = Shown::default();
    let (mut incompatible, mut ambiguous) = (Vec::new(), Vec::new());
    for part in parts {
        shown.edges.extend(part.edges);
        shown.anomalies.extend(part.repeated);
        incompatible.extend(part.incompatible);
        ambiguous.extend(part.ambiguous);
    }
    incompatible.sort_by_key(|(read, _)| *read);
    shown.anomalies.splice(..0, incompatible.into_iter().map(|(_, anomaly)| anomaly));
    let first = ambiguous.into_iter().min_by_key(|(read, ..)| *read);
    shown.ambiguous = first.map(|(read, first, second)| Inapplicable::AmbiguousRead {
        read,
        first: Some(first),
        second,
        total: 1,
    });
    shown
}

/// What the lists of some keys show.
#[derive(Default)]
struct Found {
    edges: Vec<VersionEdge>,
    /// Elements that are shown more often than they were appended.
    repeated: Vec<Anomaly>,
    incompatible: Vec<(OpId, Anomaly)>,
    /// Reads, and two appends of an element that each of them shows.
    ambiguous: Vec<(OpId, OpId, OpId)>,
}

/// A committed append of an element.
#[derive(Clone, Copy)]
struct Appended {
    txn: TxnId,
    op: OpId,
    /// The place of the first append of the element.
    place: u32,
    /// How often its transaction appended it.
    times: u32,
    /// The append of the same element by another transaction, whatever became of that one.
    other: Option<OpId>,
}

/// A list, and what is left of it without what did not commit.
#[derive(Default)]
struct Committed {
    scan: Scan,
    elements: Vec<(ValueId, Appended)>,
    /// Per length of the list itself, how many of these it shows.
    counts: Vec<usize>,
    /// The first of them that two may have appended.
    ambiguous: Option<usize>,
}

impl Committed {
    fn refill(&mut self, appends: &Appends<'_>, list: &[ValueId]) {
        self.scan.refill(appends, list);
        self.elements.clear();
        self.counts.clear();
        self.counts.push(0);
        self.ambiguous = None;
        for (position, element) in list.iter().enumerate() {
            let place = self.scan.append_at(position);
            if let Some(appended) = place.and_then(|place| committed(appends, place)) {
                if appended.other.is_some() {
                    self.ambiguous.get_or_insert(self.elements.len());
                }
                self.elements.push((*element, appended));
            }
            self.counts.push(self.elements.len());
        }
    }
}

/// The first committed append of the element of an append that is the first of all of that element.
fn committed(appends: &Appends<'_>, place: u32) -> Option<Appended> {
    let history = appends.history;
    let appender = appends.appender(place);
    let first = appends.all()[place as usize];
    let has_outcome = |append: &Access, outcome| history.outcome(append.txn) == outcome;
    let word = element(history, first);
    let is_it = |append: &&Access| element(history, **append) == word;
    let times = |txn: TxnId| {
        let of_txn = appends.all().iter().filter(|append| append.txn == txn);
        of_txn.filter(is_it).count() as u32
    };
    if appender.other.is_none() {
        let is_alone = appends.nth_of_txn(appends.first_of_txn(place), 1).is_none();
        let times = if is_alone { 1 } else { times(first.txn) };
        let Access { txn, op } = first;
        let appended = Appended { txn, op, place, times, other: None };
        return has_outcome(&first, Outcome::Committed).then_some(appended);
    }
    let same: Vec<Access> = appends.all().iter().filter(is_it).copied().collect();
    let with = |outcome| same.iter().filter(move |append| has_outcome(append, outcome));
    let Access { txn, op } = *with(Outcome::Committed).next()?;
    let in_turn = with(Outcome::Committed).chain(with(Outcome::Unknown));
    let mut others = in_turn.chain(with(Outcome::Aborted)).filter(|append| append.txn != txn);
    let other = others.next_back().map(|append| append.op);
    Some(Appended { txn, op, place, times: times(txn), other })
}

/// What a committed transaction read of a list.
struct ShownRead {
    read: OpId,
    /// How many elements of committed appends it shows.
    len: usize,
    /// These, where it is not a prefix of the pool.
    copy: Option<Vec<(ValueId, Appended)>>,
}

/// Goes through one list after the other.
struct Lists<'a> {
    history: &'a History,
    appends: Appends<'a>,
    pool: Committed,
    copy: Committed,
    /// The reads of the list at hand.
    reads: Vec<ShownRead>,
    found: Found,
}

impl<'a> Lists<'a> {
    fn new(history: &'a History) -> Self {
        Lists {
            history,
            appends: Appends::new(history),
            pool: Committed::default(),
            copy: Committed::default(),
            reads: Vec::new(),
            found: Found::default(),
        }
    }

    fn add(&mut self, key: KeyId, appends: &'a [Access], reads: &[Access]) {
        if reads.is_empty() {
            return;
        }
        self.appends.turn_to(appends);
        self.pool.refill(&self.appends, self.history.list_pool(key));
        self.reads.clear();
        let mut own = OwnAppends(appends);
        for read in reads {
            if self.history.outcome(read.txn) == Outcome::Committed {
                self.read(*read, own.of(read.txn));
            }
        }
        let reads = std::mem::take(&mut self.reads);
        let longer = |a: &'_ usize, b: &'_ usize| reads[*a].len.cmp(&reads[*b].len).then(b.cmp(a));
        if let Some(longest) = (0..reads.len()).max_by(longer) {
            self.compare(key, &reads, &reads[longest]);
            let pool = std::mem::take(&mut self.pool);
            self.order(key, reads[longest].read, shown_by(&reads[longest], &pool));
            self.pool = pool;
        }
        self.reads = reads;
    }

    fn read(&mut self, read: Access, own: &[Access]) {
        let (elements, is_prefix) = elements(self.history, read);
        if !is_prefix {
            self.copy.refill(&self.appends, elements);
        }
        let list = if is_prefix { &self.pool } else { &self.copy };
        let len = list.counts[self.without_own(read, own, &list.scan, elements)];
        if let Some(at) = list.ambiguous.filter(|at| *at < len)
            && let Appended { op, other: Some(other), .. } = list.elements[at].1
        {
            self.found.ambiguous.push((read.op, op, other));
        }
        let copy = (!is_prefix).then(|| list.elements[..len].to_vec());
        self.reads.push(ShownRead { read: read.op, len, copy });
    }

    /// How much of a list is left without the reader's own appends so far, if they are at its end
    /// and nowhere else.
    fn without_own(
        &self,
        read: Access,
        own: &[Access],
        scan: &Scan,
        elements: &[ValueId],
    ) -> usize {
        let before = &own[..own.partition_point(|append| append.op < read.op)];
        let word = |append: &Access| element(self.history, *append);
        let others = elements.len().checked_sub(before.len()).filter(|others| {
            let end = elements[*others..].iter().map(|element| element.to_bits());
            let is_among = |append: &Access| {
                let place = self.appends.find(word(append));
                place.is_some_and(|place| scan.shows(place, *others))
            };
            end.eq(before.iter().map(word)) && !before.iter().any(is_among)
        });
        others.unwrap_or(elements.len())
    }

    /// Whether all reads show the beginning of what the longest one does.
    fn compare(&mut self, key: KeyId, reads: &[ShownRead], longest: &ShownRead) {
        let most = shown_by(longest, &self.pool);
        for shown in reads {
            if shown.copy.is_none() && longest.copy.is_none() {
                continue;
            }
            let elements = shown_by(shown, &self.pool).iter().map(|(element, _)| element);
            if elements.ne(most[..shown.len].iter().map(|(element, _)| element)) {
                let (one, other) = (shown.read, longest.read);
                let (first, second) = (one.min(other), one.max(other));
                let evidence = Evidence::Reads { key, first, second, edges: Vec::new() };
                let anomaly = Anomaly::new(AnomalyKind::IncompatibleOrder, evidence);
                self.found.incompatible.push((shown.read, anomaly));
            }
        }
    }

    /// The order of the elements of a key's longest list; what it does not show was appended later.
    fn order(&mut self, key: KeyId, read: OpId, shown: &[(ValueId, Appended)]) {
        let mut times = vec![0u32; self.appends.all().len()];
        let mut before: Option<TxnId> = None;
        for (_, appended) in shown {
            let times = &mut times[appended.place as usize];
            *times += 1;
            if *times == appended.times + 1 {
                let evidence = Evidence::Read { read, saw: Some(appended.op), instead: None };
                let anomaly = Anomaly::new(AnomalyKind::DuplicateElements, evidence);
                self.found.repeated.push(anomaly);
            }
            let after = appended.txn;
            if let Some(before) = before.replace(after).filter(|before| *before != after) {
                let known = KnownBy::List { read };
                self.found.edges.push(VersionEdge { before, after, key, known });
            }
        }
        let Some(before) = before else { return };
        let known = KnownBy::NotShown { read };
        for append in self.appends.all() {
            let of_element = self.appends.find(element(self.history, *append));
            let is_shown = of_element.is_some_and(|place| times[place as usize] > 0);
            if !is_shown
                && append.txn != before
                && self.history.outcome(append.txn) == Outcome::Committed
            {
                self.found.edges.push(VersionEdge { before, after: append.txn, key, known });
            }
        }
    }
}

/// The elements of committed appends that a read shows.
fn shown_by<'s>(shown: &'s ShownRead, pool: &'s Committed) -> &'s [(ValueId, Appended)] {
    match &shown.copy {
        Some(copy) => copy,
        None => &pool.elements[..shown.len],
    }
}
