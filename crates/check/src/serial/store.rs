//! Transactions run one after the other, in a given order, on a store of registers.

use std::ops::Range;

use isolario_model::{DistinctnessCheck, History, KeyId, OpKind, Outcome, SessionId, TxnId};
use rustc_hash::FxHashMap;

use super::ReplayInput;

/// No place in the order.
const NOWHERE: u32 = u32::MAX;

/// How many versions of a key are remembered: the current one, and some that were overwritten.
const VERSIONS: usize = 4;

/// One operation in so many may contradict the order. If there are more, the order is none to begin with.
const FEW: usize = 32;

/// That many may in any case.
const SOME: usize = 1 << 8;

/// What comes of running all transactions in a given order.
pub(super) struct Sweep {
    /// From whom to whom the order is contradicted, as places from the first to one past the last. None: every
    /// read returned what the client saw.
    pub(super) spans: Vec<(usize, usize)>,
    /// Writers of one key that are probably the wrong way round, by the earlier place.
    pub(super) flips: Vec<Flip>,
    /// Whether somebody wrote whatever was read.
    pub(super) is_explained: bool,
    /// Whether all values were written once, as far as they are numbers that count the writes.
    pub(super) is_unique: bool,
}

/// Two writers of a key, of whom the later one probably comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flip {
    pub(super) earlier: usize,
    pub(super) later: usize,
    pub(super) key: KeyId,
    /// Who saw the version of the earlier one, and stands after both.
    pub(super) reader: usize,
}

impl Sweep {
    /// Runs all transactions; none if too much contradicts the order, if something does that no other order
    /// would mend, or if somebody writes the initial value, or does anything but read and write. At `stubborn` places,
    /// contradictions are seen in another light: the last time, what was made of them could not be mended.
    ///
    /// While some transactions run, the next ones are gathered from all over the history: to wait for memory
    /// takes as long as to run them.
    pub(super) fn along(
        order: &[u32],
        replay: ReplayInput<'_>,
        stubborn: &[Range<usize>],
    ) -> Option<Sweep> {
        let ReplayInput { history, session_order, .. } = replay;
        let mut run = Run::new(history, order, stubborn, session_order);
        let (mut now, mut next) = (Gathered::default(), Gathered::default());
        let mut parts = order.chunks(TXNS_AT_A_TIME);
        while {
            let gather = || parts.next().is_some_and(|txns| next.gather(replay, txns));
            rayon::join(gather, || run.execute_all(&now)).0
        } {
            if run.is_hopeless || run.spans.len() + run.awaited.len() > SOME + run.executed / FEW {
                return None;
            }
            std::mem::swap(&mut now, &mut next);
        }
        let Run { spans, flips, awaited, written, is_hopeless, .. } = run;
        let mut flips: Vec<Flip> = flips.into_values().flatten().collect();
        flips.sort_unstable();
        let (is_explained, is_unique) = (awaited.is_empty(), written.are_different());
        (!is_hopeless).then_some(Sweep { spans, flips, is_explained, is_unique })
    }
}

/// How many transactions are gathered while as many run.
const TXNS_AT_A_TIME: usize = 1 << 12;

/// Transactions that stand one after the other in an order, with all that it takes to run them.
#[derive(Default)]
struct Gathered {
    txns: Vec<GatheredTxn>,
    ops: Vec<GatheredOp>,
}

struct GatheredTxn {
    txn: TxnId,
    session: SessionId,
    has_committed: bool,
    /// Whether it is one of unknown outcome, so that nothing follows it in its session.
    is_unknown: bool,
    /// Where its operations end here.
    end: u32,
}

#[derive(Clone, Copy)]
struct GatheredOp {
    word: u64,
    key: KeyId,
    kind: OpKind,
}

impl Gathered {
    /// Takes these transactions instead of those that it has. There are always some.
    fn gather(&mut self, replay: ReplayInput<'_>, txns: &[u32]) -> bool {
        let history = replay.history;
        self.txns.clear();
        self.ops.clear();
        for txn in txns.iter().map(|txn| TxnId(*txn)) {
            let range = history.op_range(txn);
            let kinds = history.op_kinds()[range.clone()].iter();
            let keys = history.op_keys()[range.clone()].iter();
            let words = history.encoded_values()[range.clone()].iter();
            let op = |((kind, key), word): ((&OpKind, &KeyId), &u64)| GatheredOp {
                word: *word,
                key: *key,
                kind: *kind,
            };
            self.ops.extend(kinds.zip(keys).zip(words).map(op));
            self.txns.push(GatheredTxn {
                txn,
                session: history.session_of(txn),
                has_committed: replay.has_committed(txn),
                is_unknown: history.outcome(txn) == Outcome::Unknown,
                end: self.ops.len() as u32,
            });
        }
        true
    }
}

/// A version of a key.
#[derive(Clone, Copy)]
struct Version {
    word: u64,
    place: u32,
    /// Whether its writer had not read the key.
    is_blind: bool,
}

impl Version {
    /// Whether its writer stands after that of another one.
    fn is_after(&self, other: &Version) -> bool {
        other.place != NOWHERE && self.place > other.place
    }
}

/// What is known of a key: in one line of the cache, since that is what an operation costs.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Cell {
    /// The last versions, and where they were written; the current one is at `current`, the one before
    /// it at the entry before that, and around the end.
    words: [u64; VERSIONS],
    places: [u32; VERSIONS],
    current: u8,
    /// A bit for each version whose writer had not read the key.
    blind: u8,
    /// Where it was read last.
    read: u32,
    /// Where a read last returned an older version, and where that had been overwritten.
    misread: u32,
    overwritten: u32,
}

impl Cell {
    fn new(initial: u64) -> Cell {
        Cell {
            words: [initial; VERSIONS],
            places: [NOWHERE; VERSIONS],
            current: 0,
            blind: 0,
            read: NOWHERE,
            misread: NOWHERE,
            overwritten: NOWHERE,
        }
    }

    /// The versions, the current one first.
    fn versions(&self) -> [Version; VERSIONS] {
        std::array::from_fn(|back| {
            let at = (self.current as usize + VERSIONS - back) % VERSIONS;
            let is_blind = self.blind >> at & 1 == 1;
            Version { word: self.words[at], place: self.places[at], is_blind }
        })
    }

    fn set(&mut self, versions: [Version; VERSIONS]) {
        self.current = VERSIONS as u8 - 1;
        self.blind = 0;
        for (at, version) in versions.into_iter().rev().enumerate() {
            self.words[at] = version.word;
            self.places[at] = version.place;
            self.blind |= u8::from(version.is_blind) << at;
        }
    }
}

/// A store, and what was found so far.
struct Run<'h> {
    history: &'h History,
    order: &'h [u32],
    stubborn: &'h [Range<usize>],
    session_order: bool,
    /// By session, its last transaction so far, and where it is.
    sessions: Vec<Option<(TxnId, u32)>>,
    /// How many transactions came so far, and how many operations were executed.
    place: u32,
    executed: usize,
    initial: u64,
    cells: Vec<Cell>,
    spans: Vec<(usize, usize)>,
    flips: Flips,
    /// Reads of versions that nobody had written when they ran, and where they are.
    awaited: FxHashMap<(KeyId, u64), Vec<u32>>,
    /// All values that were written.
    written: DistinctnessCheck,
    is_hopeless: bool,
}

/// Flips by key and later writer: a flip back takes back all of one writer.
type Flips = FxHashMap<(KeyId, usize), Vec<Flip>>;

fn note_flip(flips: &mut Flips, flip: Flip) {
    flips.entry((flip.key, flip.later)).or_default().push(flip);
}

impl<'h> Run<'h> {
    fn new(
        history: &'h History,
        order: &'h [u32],
        stubborn: &'h [Range<usize>],
        session_order: bool,
    ) -> Self {
        // Where no operation has the initial value, nothing is equal to it.
        let initial = history.encoded_initial_version().unwrap_or(u64::MAX);
        Run {
            history,
            order,
            stubborn,
            session_order,
            sessions: vec![None; history.session_count()],
            place: 0,
            executed: 0,
            initial,
            cells: vec![Cell::new(initial); history.key_count()],
            spans: Vec::new(),
            flips: Flips::default(),
            awaited: FxHashMap::default(),
            written: DistinctnessCheck::of_about(history.op_count()),
            is_hopeless: false,
        }
    }

    /// Runs the next transactions of the order.
    fn execute_all(&mut self, gathered: &Gathered) {
        let mut start = 0;
        for one in &gathered.txns {
            let ops = &gathered.ops[start..one.end as usize];
            match one.has_committed {
                true => {
                    self.look_at_session(one);
                    self.execute(ops, self.place);
                    self.executed += ops.len();
                }
                false => self.note_aborted(ops),
            }
            start = one.end as usize;
            self.place += 1;
        }
    }

    /// Notes what an aborted transaction wrote: it may be the same as what another one did.
    fn note_aborted(&mut self, ops: &[GatheredOp]) {
        for op in ops {
            let is_write = op.kind == OpKind::Write;
            self.written.take_if(is_write, op.word);
            self.is_hopeless |= is_write & (op.word == self.initial);
        }
    }

    /// Looks whether a transaction comes after those before it in its session.
    fn look_at_session(&mut self, one: &GatheredTxn) {
        let last = &mut self.sessions[one.session.index()];
        match *last {
            Some((txn, place)) if one.txn < txn && self.session_order => {
                if !one.is_unknown {
                    self.contradict(place, self.place);
                }
            }
            _ => *last = Some((one.txn, self.place)),
        }
    }

    /// Runs a transaction. Whether an operation is a read or a write cannot be guessed, so that a branch
    /// on it would take longer than all the rest: what is done is the same for both, and every branch here
    /// is for what is rare.
    fn execute(&mut self, ops: &[GatheredOp], place: u32) {
        for GatheredOp { word, key, kind } in ops {
            let (is_read, is_write) = (*kind == OpKind::Read, *kind == OpKind::Write);
            let Some(cell) = self.cells.get_mut(key.index()) else {
                self.is_hopeless = true;
                return;
            };
            let current = cell.current as usize % VERSIONS;
            let (held, written) = (cell.words[current], cell.places[current]);
            let is_own = written == place;
            let is_blind = is_write & !is_own & (cell.read != place);
            // A transaction's own last write takes the place of the one before.
            let next = (current + usize::from(is_write & !is_own)) % VERSIONS;
            cell.words[next] = if is_write { *word } else { cell.words[next] };
            cell.places[next] = if is_write { place } else { cell.places[next] };
            cell.blind &= !(u8::from(is_write & !is_own) << next);
            cell.blind |= u8::from(is_blind) << next;
            cell.current = next as u8;
            cell.read = if is_read { place } else { cell.read };
            let is_misplaced = is_write & !is_own & (cell.misread == place);
            self.written.take_if(is_write, *word);
            self.is_hopeless |= !(is_read | is_write) | (is_write & (*word == self.initial));
            if is_read & (held != *word) {
                self.surprised(*key, *word, place);
            }
            if is_misplaced {
                self.put_behind(*key);
            }
            if !self.awaited.is_empty() && is_write {
                self.fulfil(*key, *word, place);
            }
        }
    }

    /// Takes note of a read that did not return the current version of its key: whoever overwrote what it
    /// returned came too early, or whoever wrote that comes too late.
    #[cold]
    fn surprised(&mut self, key: KeyId, word: u64, place: u32) {
        let versions = self.cells[key.index()].versions();
        if versions[0].place == place {
            // It was not its own write: no other order changes that.
            self.is_hopeless = true;
            return;
        }
        match versions.iter().position(|version| version.word == word) {
            Some(seen)
                if versions[seen].is_blind && versions[seen].is_after(&versions[seen - 1]) =>
            {
                self.flip_back(key, seen);
            }
            Some(seen) if self.are_rather_flipped(versions[seen], versions[seen - 1], place) => {
                self.flip(key, seen, place);
            }
            Some(seen) => {
                let cell = &mut self.cells[key.index()];
                (cell.misread, cell.overwritten) = (place, versions[seen - 1].place);
                self.contradict(versions[seen - 1].place, place);
            }
            None => self.awaited.entry((key, word)).or_default().push(place),
        }
    }

    /// Takes note of those who read what is only written now. They come after the writer; and so does, probably,
    /// whoever wrote the key since they ran, unless the writer had read that.
    fn fulfil(&mut self, key: KeyId, word: u64, place: u32) {
        let Some(readers) = self.awaited.remove(&(key, word)) else { return };
        readers.iter().for_each(|reader| self.contradict(*reader, place));
        let Some(first) = readers.into_iter().min() else { return };
        let cell = &mut self.cells[key.index()];
        let mut versions = cell.versions();
        if versions[0].place != place || !versions[0].is_blind {
            return;
        }
        let since = |version: &&Version| version.place != NOWHERE && version.place > first;
        let since = versions.iter().skip(1).take_while(since).count();
        for version in &versions[1..=since] {
            let [earlier, later, reader] = [version.place, place, first].map(|at| at as usize);
            note_flip(&mut self.flips, Flip { earlier, later, key, reader });
        }
        versions[..=since].rotate_left(1);
        cell.set(versions);
    }

    /// Whether a read of an older version rather means that whoever overwrote it wrote before: if that one had not
    /// read it, and ran at the same time as its writer, and not as the reader. If it ran at the same time as both,
    /// or nobody knows, it is the nearer one: whoever reads much later saw what came of it all.
    fn are_rather_flipped(&self, seen: Version, next: Version, reader: u32) -> bool {
        next.is_blind
            && next.is_after(&seen)
            && !self.are_in_session_order(seen.place, next.place)
            && self.may_overlap(seen.place, next.place)
            && (!self.may_overlap(next.place, reader)
                || self.is_stubborn(reader) ^ (next.place - seen.place < reader - next.place))
    }

    /// Whether session order has the transaction at one position before that at the other.
    fn are_in_session_order(&self, earlier: u32, later: u32) -> bool {
        let [earlier, later] =
            [earlier, later].map(|position| TxnId(self.order[position as usize]));
        let session = |txn| self.history.session_of(txn);
        self.session_order && earlier < later && session(earlier) == session(later)
    }

    /// Whether two transactions may have run at the same time, the later one of which started second.
    fn may_overlap(&self, earlier: u32, later: u32) -> bool {
        let [earlier, later] = [earlier, later].map(|place| TxnId(self.order[place as usize]));
        match (self.history.finish(earlier), self.history.start(later)) {
            (Some(finish), Some(start)) => start <= finish,
            _ => true,
        }
    }

    fn is_stubborn(&self, place: u32) -> bool {
        let place = place as usize;
        let first = self.stubborn.partition_point(|stretch| stretch.end <= place);
        self.stubborn.get(first).is_some_and(|stretch| stretch.contains(&place))
    }

    /// Takes an older version for the current one, and those who wrote since for the wrong way round.
    fn flip(&mut self, key: KeyId, seen: usize, reader: u32) {
        let cell = &mut self.cells[key.index()];
        let mut versions = cell.versions();
        let earlier = versions[seen].place;
        for version in versions[..seen].iter().filter(|version| version.is_after(&versions[seen])) {
            let [earlier, later, reader] = [earlier, version.place, reader].map(|at| at as usize);
            note_flip(&mut self.flips, Flip { earlier, later, key, reader });
            self.spans.push((earlier, later + 1));
        }
        versions[..=seen].rotate_right(1);
        cell.set(versions);
    }

    /// Takes back that a version had been taken for an older one: somebody saw it, so it was the readers of
    /// the other one who came too late.
    fn flip_back(&mut self, key: KeyId, seen: usize) {
        let cell = &mut self.cells[key.index()];
        let mut versions = cell.versions();
        let later = versions[seen].place as usize;
        let taken_back = self.flips.remove(&(key, later)).into_iter().flatten();
        self.spans
            .extend(taken_back.map(|flip| (later.min(flip.reader), later.max(flip.reader) + 1)));
        versions[..=seen].rotate_right(1);
        cell.set(versions);
    }

    /// Puts the version that was just written behind those that overwrote what its writer had read: the writer
    /// stands too late, and whoever comes now saw what the others wrote.
    #[cold]
    fn put_behind(&mut self, key: KeyId) {
        let cell = &mut self.cells[key.index()];
        let mut versions = cell.versions();
        let first = versions.iter().position(|version| version.place == cell.overwritten);
        if let Some(first) = first {
            versions[..=first].rotate_left(1);
            cell.set(versions);
        }
    }

    /// Takes note that the one at the later place comes before the one at the earlier place.
    fn contradict(&mut self, earlier: u32, later: u32) {
        self.spans.push((earlier as usize, later as usize + 1));
    }
}
