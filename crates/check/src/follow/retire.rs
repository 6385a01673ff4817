//! Which transactions are settled, and what is kept of them.

use isolario_model::{
    History, KeyId, NameTable, Op, OpId, OpKind, Outcome, Point, TxnId, Value, ValueRef, Witness,
};
use rustc_hash::FxHashMap;

/// The initial value where it is no longer the current one: nobody writes this.
const GONE: ValueRef<'static> = ValueRef::Text("\u{0}the initial version, which is gone");

/// What is kept of all settled transactions.
#[derive(Debug, Default)]
pub(super) struct Settled {
    keys: NameTable,
    /// By key, its current value.
    current: Vec<Value>,
    /// When the last of them started.
    pub(super) latest_start: Option<i64>,
}

/// The values that were current before others were, by key; none where the key had none.
pub(super) type Displaced = FxHashMap<u32, Option<Value>>;

impl Settled {
    /// What a value that was read is called in the part that is kept: a current version is the initial
    /// one there.
    pub(super) fn inside<'v>(
        &self,
        key: ValueRef<'_>,
        value: ValueRef<'v>,
        initial: ValueRef<'v>,
    ) -> ValueRef<'v> {
        match self.keys.find(key) {
            None => value,
            Some(key) if self.current[key as usize].as_ref() == value => initial,
            Some(_) if value == initial => GONE,
            Some(_) => value,
        }
    }

    /// What a value is that was called so in the part that was kept, before these were displaced.
    pub(super) fn original<'v>(
        &'v self,
        displaced: &'v Displaced,
        key: ValueRef<'_>,
        inside: ValueRef<'v>,
        initial: ValueRef<'v>,
    ) -> ValueRef<'v> {
        if inside == GONE {
            return initial;
        }
        let Some(key) = self.keys.find(key).filter(|_| inside == initial) else { return inside };
        match displaced.get(&key) {
            Some(value) => value.as_ref().map_or(initial, Value::as_ref),
            None => self.current[key as usize].as_ref(),
        }
    }

    /// Adds the settled transactions of the part that was kept; gives what they displaced.
    pub(super) fn extend(&mut self, history: &History, cut: &Cut) -> Displaced {
        let mut displaced = Displaced::default();
        for txn in cut.settled() {
            for op in history.txn_ops(txn).filter(|op| is(OpKind::Write, history, *op)) {
                history.with_op_input(op, |op| {
                    if let Op::Write { key, value } = op {
                        self.write(*key, *value, &mut displaced);
                    }
                });
            }
            self.latest_start = self.latest_start.max(history.start(txn));
        }
        displaced
    }

    fn write(&mut self, key: ValueRef<'_>, value: ValueRef<'_>, displaced: &mut Displaced) {
        let key = self.keys.intern(key);
        match self.current.get_mut(key as usize) {
            None => {
                self.current.push(value.to_owned());
                displaced.insert(key, None);
            }
            Some(current) => {
                let before = std::mem::replace(current, value.to_owned());
                displaced.entry(key).or_insert(Some(before));
            }
        }
    }
}

fn is(kind: OpKind, history: &History, op: OpId) -> bool {
    history.op_kinds()[op.index()] == kind
}

/// Nowhere in the order.
const NOWHERE: u32 = u32::MAX;

/// A cut through the order by which a history satisfies a level.
pub(super) struct Cut {
    /// The transactions of the order, by their commits.
    order: Vec<TxnId>,
    /// By transaction, where it starts and commits.
    starts: Vec<u32>,
    commits: Vec<u32>,
    /// How long the order is.
    end: u32,
    /// What commits before this place is settled.
    place: u32,
}

impl Cut {
    /// Cuts at the last place that leaves `tail` transactions after it, that is in nobody's life, and
    /// where everybody after it saw, of what was written before it, current versions alone.
    /// Transactions that wait for their writers are after every place. Those of unknown outcome that
    /// nobody has seen are kept, but hold nothing up: what they saw counts only if somebody sees them.
    pub(super) fn new(history: &History, witness: &Witness, tail: usize) -> Cut {
        let mut cut = Cut::nowhere(history, witness);
        let mut barriers = Barriers::new(cut.end);
        for txn in &cut.order {
            barriers.forbid(cut.starts[txn.index()], cut.commits[txn.index()]);
        }
        let versions = Versions::new(history, &cut);
        let waits = |txn: &TxnId| history.outcome(*txn) == Outcome::Committed;
        for txn in history.txns().filter(|txn| cut.is_ordered(*txn) || waits(txn)) {
            let start = cut.starts[txn.index()].min(cut.end);
            for read in history.txn_ops(txn).filter(|op| is(OpKind::Read, history, *op)) {
                if let Some(overwritten) = versions.overwritten(history, read) {
                    barriers.forbid(overwritten, start);
                }
            }
        }
        let points_per_txn = cut.end as usize / cut.order.len().max(1);
        cut.place = barriers.last_gap((cut.end as usize).saturating_sub(tail * points_per_txn));
        cut
    }

    /// The order, not yet cut. Where it is open what reads saw, there is none, and everything stays.
    fn nowhere(history: &History, witness: &Witness) -> Cut {
        let nowhere = vec![NOWHERE; history.txn_count()];
        let mut cut =
            Cut { order: Vec::new(), starts: nowhere.clone(), commits: nowhere, end: 0, place: 0 };
        match witness {
            Witness::CommitOrder(txns) => txns.iter().for_each(|txn| {
                cut.starts[txn.index()] = cut.end;
                cut.commit(*txn);
            }),
            Witness::Points(points) => points.iter().for_each(|point| match point {
                Point::Start(txn) => {
                    cut.starts[txn.index()] = cut.end;
                    cut.end += 1;
                }
                Point::Commit(txn) => cut.commit(*txn),
            }),
            _ => {}
        }
        cut
    }

    fn commit(&mut self, txn: TxnId) {
        self.commits[txn.index()] = self.end;
        self.order.push(txn);
        self.end += 1;
    }

    fn is_ordered(&self, txn: TxnId) -> bool {
        self.commits[txn.index()] != NOWHERE
    }

    pub(super) fn is_settled(&self, txn: TxnId) -> bool {
        self.commits[txn.index()] < self.place
    }

    /// The settled ones, in order.
    fn settled(&self) -> impl Iterator<Item = TxnId> {
        self.order.iter().copied().take_while(|txn| self.is_settled(*txn))
    }
}

/// Where an order must not be cut.
struct Barriers {
    /// By place, how many more barriers there are than at the place before.
    change: Vec<i32>,
}

impl Barriers {
    fn new(end: u32) -> Barriers {
        Barriers { change: vec![0; end as usize + 2] }
    }

    /// Forbids cuts that have one place before and another, later one after them.
    fn forbid(&mut self, before: u32, after: u32) {
        if before < after {
            self.change[before as usize + 1] += 1;
            self.change[after as usize + 1] -= 1;
        }
    }

    /// The last cut up to this one that is not forbidden; before everything there is one.
    fn last_gap(&self, limit: usize) -> u32 {
        let mut barriers = 0;
        let mut last = 0;
        for (place, change) in self.change.iter().enumerate().take(limit + 1) {
            barriers += change;
            if barriers == 0 {
                last = place;
            }
        }
        last as u32
    }
}

/// The versions that an order has, by key.
struct Versions {
    /// Where each is written, by key and place.
    places: Vec<(KeyId, u32)>,
    /// Where a value of a key is written.
    written: FxHashMap<(KeyId, u64), u32>,
    initial: Option<u64>,
}

impl Versions {
    fn new(history: &History, cut: &Cut) -> Versions {
        let (mut places, mut written) = (Vec::new(), FxHashMap::default());
        for txn in &cut.order {
            let place = cut.commits[txn.index()];
            for op in history.txn_ops(*txn).filter(|op| is(OpKind::Write, history, *op)) {
                let key = history.op_keys()[op.index()];
                places.push((key, place));
                written.insert((key, history.version_word(op)), place);
            }
        }
        places.sort_unstable();
        Versions { places, written, initial: history.initial_word() }
    }

    /// Where what a read saw is overwritten.
    fn overwritten(&self, history: &History, read: OpId) -> Option<u32> {
        let (key, word) = (history.op_keys()[read.index()], history.version_word(read));
        let after = match self.initial == Some(word) {
            true => 0,
            false => self.written.get(&(key, word))? + 1,
        };
        let next = self.places.partition_point(|version| *version < (key, after));
        self.places.get(next).filter(|(of, _)| *of == key).map(|(_, place)| *place)
    }
}
