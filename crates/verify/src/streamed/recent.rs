//! The weak levels of a history that is not in memory: the end of the order, and of all that came before the
//! current version of each key.
//!
//! A read of the version that is current at the reader's place misses nothing: whatever is visible to the
//! reader comes before it in the order, so that no visible writer of the key is newer. That what is visible comes
//! first is part of what is asked: whoever precedes a transaction in its session is before it in the order, and so is
//! whoever wrote what it read, since a read is looked for among the versions of earlier places.
//!
//! Of a read of an older version, let *q* be the place of the first one that overwrote it. The question is whether
//! some writer of the key from *q* on is visible. Visible are transactions on paths of session order and reads, and
//! along a path places grow. So a path from *q* or later to the reader only has transactions between the two. If all from
//! *q* on are kept, nothing else has to be known.
//!
//! So what is kept is the last transactions of the order, and of each key the version that was current before
//! these. A read that saw yet an older one is beyond that, and takes a replay that keeps more. If that one does
//! not get as far back, either, it at least knows whether anybody wrote what was read.
//!
//! Where several transactions wrote the same value to a key, the last one before the reader is taken to be the one
//! that was read from. A level holds if it does for some such choice.

use std::collections::VecDeque;

use isolario_model::{Value, VisibilityRule};
use rustc_hash::FxHashMap;

use super::Halt;
use super::txn::{Read, Txn, Write};
use super::wrong::Wrong;

/// The end of an order.
pub(super) struct Recent {
    visible: VisibilityRule,
    session_order: bool,
    initial: Option<Value>,
    /// How much may be kept, in operations.
    most: usize,
    keys: Vec<Versions>,
    kept: VecDeque<Kept>,
    /// The place of the first one that is kept. The first place of all is 1; the initial state is at 0.
    first: u64,
    /// How much is kept.
    size: usize,
    /// By position, the places of those that are kept; only where paths are followed.
    places: FxHashMap<u64, u64>,
    /// What an earlier replay did not find.
    sought: Option<Sought>,
}

/// A version that somebody may have written.
pub(super) struct Sought {
    key: u32,
    value: Value,
    was_written: bool,
}

impl Sought {
    /// The initial version was there before anybody wrote.
    pub(super) fn new(key: u32, value: Value, initial: Option<&Value>) -> Sought {
        let was_written = initial == Some(&value);
        Sought { key, value, was_written }
    }

    fn is(&self, key: u32, value: &Value) -> bool {
        self.key == key && self.value == *value
    }
}

/// The versions of a key.
#[derive(Default)]
struct Versions {
    /// The last one before those that are kept.
    base: Base,
    /// Those that are kept, the oldest first.
    recent: VecDeque<Version>,
}

/// A version, and whether older ones were forgotten.
#[derive(Default)]
enum Base {
    #[default]
    Initial,
    Written(Version),
}

struct Version {
    value: Value,
    place: u64,
}

/// A transaction that is kept.
struct Kept {
    position: u64,
    session: u32,
    is_committed: bool,
    /// The places of those that it depends on at once; only where paths are followed.
    causes: Box<[u64]>,
    /// The keys that it writes.
    keys: Box<[u32]>,
    /// The place of the last one that was found to depend on it.
    found_by: u64,
}

impl Kept {
    fn size(&self) -> usize {
        1 + self.causes.len() + self.keys.len()
    }
}

/// A read of a version that was overwritten before its reader's place.
struct Old {
    index: u32,
    key: u32,
    /// The place of the first who overwrote it.
    overwritten: u64,
}

impl Recent {
    pub(super) fn new(
        visible: VisibilityRule,
        session_order: bool,
        initial: Option<Value>,
        most: usize,
        sought: Option<Sought>,
    ) -> Recent {
        Recent {
            visible,
            session_order,
            initial,
            most,
            keys: Vec::new(),
            kept: VecDeque::new(),
            first: 1,
            size: 0,
            places: FxHashMap::default(),
            sought,
        }
    }

    /// There are so many keys by now.
    pub(super) fn grow(&mut self, keys: usize) {
        self.keys.resize_with(keys, Versions::default);
    }

    /// The next transaction of the order.
    pub(super) fn take(&mut self, txn: Txn) -> Result<(), Halt> {
        if let Some(index) = txn.not_own {
            let why = "its transaction had written the key itself";
            return Err(Wrong::Unexplained { reader: txn.position, index, why }.into());
        }
        let mut sources = Vec::with_capacity(txn.reads.len() + 1);
        let mut old = Vec::new();
        for read in &txn.reads {
            let (source, overwritten) = self.source(&txn, read)?;
            if let Some(overwritten) = overwritten {
                old.push(Old { index: read.index, key: read.key, overwritten });
                if self.visible == VisibilityRule::EarlierReads {
                    self.sees_none(&txn, &old[old.len() - 1..], &sources)?;
                }
            }
            sources.push(source);
        }
        match self.visible {
            VisibilityRule::Direct => self.sees_none(&txn, &old, &sources)?,
            VisibilityRule::Causes => {
                sources.extend(txn.before.and_then(|before| self.places.get(&before).copied()));
                self.depends_on_none(&txn, &old, &sources)?;
            }
            _ => {}
        }
        self.keep(txn, sources);
        Ok(())
    }

    /// The place of whom a read saw, and of the first who overwrote that.
    fn source(&self, txn: &Txn, read: &Read) -> Result<(u64, Option<u64>), Halt> {
        let Versions { base, recent } = &self.keys[read.key as usize];
        let next = |at: usize| recent.get(at).map(|version| version.place);
        if let Some(at) = recent.iter().rposition(|version| version.value == read.value) {
            return Ok((recent[at].place, next(at + 1)));
        }
        match base {
            Base::Initial if self.initial.as_ref() == Some(&read.value) => Ok((0, next(0))),
            Base::Written(version) if version.value == read.value => Ok((version.place, next(0))),
            Base::Written(_) if !self.is_known_to_be_missing(read) => {
                Err(Halt::Beyond { key: read.key, value: read.value.clone() })
            }
            _ => {
                let why = "no transaction before it in the order wrote what it returned";
                Err(Wrong::Unexplained { reader: txn.position, index: read.index, why }.into())
            }
        }
    }

    /// Whether nobody so far wrote what was read, including those who are forgotten.
    fn is_known_to_be_missing(&self, read: &Read) -> bool {
        let sought = self.sought.as_ref().filter(|sought| sought.is(read.key, &read.value));
        sought.is_some_and(|sought| !sought.was_written)
    }

    /// Refuses reads of old versions if one of these places is that of a newer writer of the key, or, where
    /// it counts, if somebody earlier in the session is one.
    fn sees_none(&self, txn: &Txn, old: &[Old], sources: &[u64]) -> Result<(), Halt> {
        for read in old {
            let newer = self.newer(read);
            let is_newer = |place: &u64| newer.clone().any(|other| other == *place);
            let in_session = self.visible == VisibilityRule::Direct
                && self.session_order
                && newer.clone().any(|place| self.precedes_in_session(place, txn));
            if in_session || sources.iter().any(is_newer) {
                return Err(Wrong::Missed { reader: txn.position, index: read.index }.into());
            }
        }
        Ok(())
    }

    /// Refuses reads of old versions if their transaction depends on a newer writer of the key. Goes back along all
    /// paths, no farther than somebody overwrote what was read.
    fn depends_on_none(&mut self, txn: &Txn, old: &[Old], causes: &[u64]) -> Result<(), Halt> {
        let Some(least) = old.iter().map(|read| read.overwritten).min() else { return Ok(()) };
        let here = self.here();
        let mut to_do: Vec<u64> = causes.to_vec();
        while let Some(place) = to_do.pop() {
            if place < least {
                continue;
            }
            let kept = &mut self.kept[(place - self.first) as usize];
            if kept.found_by != here {
                kept.found_by = here;
                to_do.extend(kept.causes.iter().filter(|cause| **cause >= least));
            }
        }
        let is_found = |place: u64| self.at(place).is_some_and(|kept| kept.found_by == here);
        match old.iter().find(|read| self.newer(read).any(is_found)) {
            Some(read) => Err(Wrong::Missed { reader: txn.position, index: read.index }.into()),
            None => Ok(()),
        }
    }

    /// The places of all who overwrote what a read saw.
    fn newer(&self, read: &Old) -> impl Iterator<Item = u64> + Clone + '_ {
        let recent = &self.keys[read.key as usize].recent;
        let begin = recent.partition_point(|version| version.place < read.overwritten);
        recent.range(begin..).map(|version| version.place)
    }

    fn at(&self, place: u64) -> Option<&Kept> {
        self.kept.get(place.checked_sub(self.first)? as usize)
    }

    fn precedes_in_session(&self, place: u64, txn: &Txn) -> bool {
        self.at(place).is_some_and(|other| {
            other.is_committed && other.session == txn.session && other.position < txn.position
        })
    }

    /// The place of the next transaction.
    fn here(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Makes what a transaction wrote the current versions, and forgets what is too much.
    fn keep(&mut self, txn: Txn, causes: Vec<u64>) {
        let (place, is_committed) = (self.here(), txn.is_committed());
        let Txn { position, session, writes, .. } = txn;
        let keys = writes.iter().map(|write| write.key).collect();
        for Write { key, value } in writes {
            if let Some(sought) = &mut self.sought {
                sought.was_written |= sought.is(key, &value);
            }
            self.keys[key as usize].recent.push_back(Version { value, place });
        }
        let mut causes = causes;
        match self.visible {
            VisibilityRule::Causes => {
                self.places.insert(position, place);
                causes.retain(|cause| *cause >= self.first);
            }
            _ => causes.clear(),
        }
        let causes = causes.into_boxed_slice();
        let kept = Kept { position, session, is_committed, causes, keys, found_by: 0 };
        self.size += kept.size();
        self.kept.push_back(kept);
        while self.size > self.most
            && let Some(oldest) = self.kept.pop_front()
        {
            self.forget(&oldest);
        }
    }

    /// What the oldest one wrote is what came before all others.
    fn forget(&mut self, oldest: &Kept) {
        self.first += 1;
        self.size -= oldest.size();
        self.places.remove(&oldest.position);
        for key in &oldest.keys {
            let Versions { base, recent } = &mut self.keys[*key as usize];
            if let Some(version) = recent.pop_front() {
                *base = Base::Written(version);
            }
        }
    }
}
