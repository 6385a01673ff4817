//! One transaction, key or session of a history: what there is to show of it.
//!
//! Who read from whom is looked up by version, key by key, as the history states it: without a
//! checker, and without a guess. Where a read may have seen either of two writes, both are shown.

use std::collections::BTreeMap;

use isolario_model::{History, Initial, KeyId, Op, OpId, SessionId, TxnId, ValueId, ValueRef};

use crate::names::Names;

/// What can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Subject {
    /// A transaction.
    Transaction(TxnId),
    /// A key.
    Key(KeyId),
    /// A session.
    Session(SessionId),
}

impl Subject {
    /// The word that stands before a name to say what it is the name of.
    pub fn kind_name(self) -> &'static str {
        match self {
            Subject::Transaction(_) => "txn",
            Subject::Key(_) => "key",
            Subject::Session(_) => "session",
        }
    }

    /// Everything of this name: as reports call it, or as the history does. `txn`, `key` or
    /// `session` before the name says which is meant.
    pub fn find(history: &History, typed: &str) -> Vec<Subject> {
        let (word, name) = match typed.split_once(' ') {
            Some((word @ ("txn" | "key" | "session"), name)) => (Some(word), name),
            _ => (None, typed),
        };
        let mut found: Vec<Subject> = Subject::all(history)
            .filter(|subject| word.is_none_or(|word| word == subject.kind_name()))
            .filter(|subject| subject.is_called(history, name))
            .collect();
        if found.is_empty() && word.is_some() {
            // Somebody's own name may begin like that.
            found = Subject::all(history).filter(|it| it.is_called(history, typed)).collect();
        }
        found
    }

    /// All that can be looked at in a history.
    pub fn all(history: &History) -> impl Iterator<Item = Subject> + use<> {
        let keys = (0..history.key_count()).map(|key| Subject::Key(KeyId::at(key)));
        let txns = history.txns().map(Subject::Transaction);
        txns.chain(keys).chain(history.sessions().map(Subject::Session))
    }

    /// What reports call it.
    pub fn name(self, history: &History) -> String {
        let names = Names::new(history);
        match self {
            Subject::Transaction(txn) => names.txn(txn),
            Subject::Key(key) => names.key(key),
            Subject::Session(session) => names.session_named(session),
        }
    }

    fn is_called(self, history: &History, name: &str) -> bool {
        let is = |value: ValueRef<'_>| match value {
            ValueRef::Text(text) if text == name => true,
            value => value.to_string() == name,
        };
        self.name(history) == name
            || match self {
                Subject::Transaction(txn) => history.txn_label(txn) == name,
                Subject::Key(key) => is(history.key_name(key)),
                Subject::Session(session) => is(history.session_name(session)),
            }
    }
}

/// What a version of a key is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// A list without elements.
    Empty,
    /// The word of the version, or of the last element of a list.
    Version(u64),
}

/// Who wrote a version and who read it, in the order of the history.
#[derive(Clone, Debug, Default)]
struct Uses {
    writes: Vec<OpId>,
    reads: Vec<OpId>,
}

/// Where what a read returned came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionSources {
    /// Whether it may be the initial value.
    pub initial: bool,
    /// The writes that it may have seen. Where there are several sources, the read is ambiguous.
    pub writes: Vec<OpId>,
}

impl VersionSources {
    /// Whether the history does not say which of several it was.
    pub fn is_ambiguous(&self) -> bool {
        self.writes.len() + usize::from(self.initial) > 1
    }

    /// Whether it came out of thin air.
    pub fn is_empty(&self) -> bool {
        !self.initial && self.writes.is_empty()
    }
}

/// A version of a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VersionUses {
    /// An operation that wrote or read it, to name it by.
    pub op: OpId,
    /// Where it came from.
    pub sources: VersionSources,
    /// The operations that read it.
    pub reads: Vec<OpId>,
}

/// The versions of the keys that a subject is about.
#[derive(Debug)]
pub struct KeyVersions<'h> {
    history: &'h History,
    uses: BTreeMap<(KeyId, Mark), Uses>,
}

impl<'h> KeyVersions<'h> {
    /// The versions of a key, or of the keys that a transaction uses.
    pub fn of(history: &'h History, subject: Subject) -> KeyVersions<'h> {
        let mut wanted = vec![false; history.key_count()];
        match subject {
            Subject::Key(key) => wanted[key.index()] = true,
            Subject::Transaction(txn) => {
                let keys = history.txn_ops(txn).filter_map(|op| history.op(op).key());
                keys.for_each(|key| wanted[key.index()] = true);
            }
            Subject::Session(_) => {}
        }
        let mut versions = KeyVersions { history, uses: BTreeMap::new() };
        for (op, key) in history.op_keys().iter().enumerate() {
            if wanted.get(key.index()).is_some_and(|wanted| *wanted) {
                versions.add(OpId::at(op), *key);
            }
        }
        versions
    }

    /// The versions that some reads saw, and nothing of who else read them.
    pub fn seen_by(history: &'h History, reads: impl Iterator<Item = OpId>) -> KeyVersions<'h> {
        let mut uses: BTreeMap<(KeyId, Mark), Uses> = BTreeMap::new();
        for read in reads {
            if let (Some(key), (Some(mark), _)) = (history.op(read).key(), marks(history, read)) {
                uses.entry((key, mark)).or_default();
            }
        }
        if uses.is_empty() {
            return KeyVersions { history, uses };
        }
        let mut wanted = vec![false; history.key_count()];
        uses.keys().for_each(|(key, _)| wanted[key.index()] = true);
        for (op, key) in history.op_keys().iter().enumerate() {
            if wanted.get(key.index()).is_some_and(|wanted| *wanted)
                && let (_, Some(mark)) = marks(history, OpId::at(op))
                && let Some(uses) = uses.get_mut(&(*key, mark))
            {
                uses.writes.push(OpId::at(op));
            }
        }
        KeyVersions { history, uses }
    }

    /// Everyone who wrote one of them.
    pub fn writers(&self) -> impl Iterator<Item = TxnId> + '_ {
        let writes = self.uses.values().flat_map(|uses| &uses.writes);
        writes.map(|write| self.history.op_txn(*write))
    }

    fn add(&mut self, op: OpId, key: KeyId) {
        let (read, written) = marks(self.history, op);
        if let Some(mark) = read {
            self.uses.entry((key, mark)).or_default().reads.push(op);
        }
        if let Some(mark) = written {
            self.uses.entry((key, mark)).or_default().writes.push(op);
        }
    }

    /// Where what an operation read came from; none if it read nothing.
    pub fn sources(&self, read: OpId) -> Option<VersionSources> {
        let key = self.history.op(read).key()?;
        let mark = marks(self.history, read).0?;
        let uses = self.uses.get(&(key, mark))?;
        // A transaction reads its own last write, if it has one.
        let txn = self.history.op_txn(read);
        let own = self.history.txn_ops(txn).rev().find(|op| {
            *op < read
                && self.history.op(*op).key() == Some(key)
                && marks(self.history, *op).1.is_some()
        });
        if let Some(own) = own
            && marks(self.history, own).1 == Some(mark)
        {
            return Some(VersionSources { initial: false, writes: vec![own] });
        }
        Some(VersionSources { initial: self.is_initial(mark, uses), writes: uses.writes.clone() })
    }

    fn is_initial(&self, mark: Mark, uses: &Uses) -> bool {
        let is_word = |word| self.history.encoded_initial_version() == Some(word);
        match (self.history.initial(), mark) {
            (_, Mark::Empty) => true,
            (Initial::None, _) => false,
            (Initial::Unwritten, _) => uses.writes.is_empty(),
            (Initial::UnlessWritten(_), Mark::Version(word)) => {
                is_word(word) && uses.writes.is_empty()
            }
            (_, Mark::Version(word)) => is_word(word),
        }
    }

    /// The operations that read what an operation wrote, or may have; none if it wrote nothing.
    pub fn readers(&self, write: OpId) -> Option<Vec<OpId>> {
        let key = self.history.op(write).key()?;
        let mark = marks(self.history, write).1?;
        let reads = &self.uses.get(&(key, mark))?.reads;
        let saw = |read: &&OpId| {
            self.sources(**read).is_some_and(|sources| sources.writes.contains(&write))
        };
        Some(reads.iter().filter(saw).copied().collect())
    }

    /// The versions of a key: the initial one first, then those of a list by their place in it, and
    /// those of a register by when their writers finished, where that is known; last what nobody wrote.
    pub fn of_key(&self, key: KeyId) -> Vec<VersionUses> {
        let pool = self.history.list_pool(key);
        let place = |mark: Mark| {
            pool.iter()
                .position(|element| Mark::Version(element.to_bits()) == mark)
                .unwrap_or(pool.len())
        };
        let all = (key, Mark::Empty)..=(key, Mark::Version(u64::MAX));
        let mut versions: Vec<_> = self
            .uses
            .range(all)
            .filter_map(|((_, mark), uses)| {
                let op = *uses.writes.first().or(uses.reads.first())?;
                let initial = self.is_initial(*mark, uses);
                let finish = |op: &OpId| self.history.finish(self.history.op_txn(*op));
                let thin = !initial && uses.writes.is_empty();
                let finish = uses.writes.first().and_then(finish);
                let order = (!initial, thin, place(*mark), finish, op);
                let sources = VersionSources { initial, writes: uses.writes.clone() };
                Some((order, VersionUses { op, sources, reads: uses.reads.clone() }))
            })
            .collect();
        versions.sort_by_key(|(order, _)| *order);
        versions.into_iter().map(|(_, version)| version).collect()
    }
}

/// The versions that an operation read and wrote, as far as it is known that it did. A list is known
/// by its last element. Rows that a predicate found are not followed.
pub(crate) fn marks(history: &History, op: OpId) -> (Option<Mark>, Option<Mark>) {
    let word = |value: ValueId| Some(Mark::Version(value.to_bits()));
    let version = Some(Mark::Version(history.encoded_version(op)));
    match history.op(op) {
        Op::Read { value: Some(_), .. } => (version, None),
        Op::Write { .. } | Op::Delete { .. } | Op::Append { .. } => (None, version),
        Op::ReadList { elements: Some(elements), .. } => {
            (elements.last().map_or(Some(Mark::Empty), |last| word(*last)), None)
        }
        Op::InsertIfAbsent { value, applied, seen, .. } => match applied {
            Some(false) => (seen.and_then(word), None),
            _ => (None, word(value)),
        },
        Op::CompareAndSet { expected, new, applied, seen, .. } => match applied {
            Some(false) => (seen.and_then(word), None),
            Some(true) => (word(expected), word(new)),
            None => (None, word(new)),
        },
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{History as Builder, int, r, text, w};

    fn found(history: &History, typed: &str) -> Vec<Subject> {
        Subject::find(history, typed)
    }

    #[test]
    fn names_are_those_of_reports_and_those_of_the_history() {
        let history = Builder::new()
            .txn(&[w("x", 1)])
            .named(text("pay\u{7}"), &[w("1", 1), w("key x", 1)])
            .build();
        let (t1, pay) = (Subject::Transaction(TxnId(0)), Subject::Transaction(TxnId(1)));
        assert_eq!(found(&history, "T1"), [t1]);
        assert_eq!(found(&history, "1"), [t1, Subject::Key(KeyId(1))]);
        assert_eq!(found(&history, "txn 1"), [t1]);
        assert_eq!(found(&history, "pay\\u{7}"), [pay]);
        assert_eq!(found(&history, "pay\u{7}"), [pay]);
        assert_eq!(found(&history, "key x"), [Subject::Key(KeyId(0))]);
        assert_eq!(found(&history, "key key x"), [Subject::Key(KeyId(2))]);
        assert_eq!(found(&history, "session 0"), [Subject::Session(SessionId(0))]);
        assert_eq!(found(&history, "y"), []);
    }

    #[test]
    fn reads_come_from_whoever_wrote_the_version() {
        let history = Builder::new()
            .txn(&[r("x", 0), w("x", 1), r("x", 1)])
            .session()
            .txn(&[r("x", 1), r("x", 7), w("x", 2), w("x", 0)])
            .session()
            .txn(&[w("x", 1)])
            .build();
        let versions = KeyVersions::of(&history, Subject::Key(KeyId(0)));
        let sources = |read| versions.sources(OpId(read)).unwrap();
        let from = |initial, writes: &[u32]| VersionSources {
            initial,
            writes: writes.iter().copied().map(OpId).collect(),
        };
        assert_eq!(sources(0), from(true, &[6]), "a client wrote the initial value as well");
        assert_eq!(sources(2), from(false, &[1]), "its own write");
        assert_eq!(sources(3), from(false, &[1, 7]));
        assert!(sources(3).is_ambiguous() && sources(4).is_empty());
        assert_eq!(versions.readers(OpId(1)), Some(vec![OpId(2), OpId(3)]));
        assert_eq!(versions.readers(OpId(7)), Some(vec![OpId(3)]));
        assert_eq!(versions.readers(OpId(5)), Some(vec![]));
        assert_eq!((versions.readers(OpId(0)), versions.sources(OpId(1))), (None, None));
    }

    #[test]
    fn lists_are_known_by_their_last_element_and_conditionals_by_what_they_did() {
        let (l, k) = (text("l"), text("k"));
        let cas = |applied, seen| Op::CompareAndSet {
            key: k,
            expected: int(0),
            new: int(1),
            applied: Some(applied),
            seen,
        };
        let history = Builder::new()
            .txn(&[Op::Append { key: l, element: int(1) }, cas(true, None)])
            .txn(&[Op::Append { key: l, element: int(2) }, cas(false, Some(int(1)))])
            .session()
            .txn(&[Op::ReadList { key: l, elements: Some(&[int(1), int(2)]) }])
            .txn(&[Op::ReadList { key: l, elements: Some(&[]) }])
            .build();
        let lists = KeyVersions::of(&history, Subject::Key(KeyId(0)));
        assert_eq!(lists.readers(OpId(0)), Some(vec![]));
        assert_eq!(lists.readers(OpId(2)), Some(vec![OpId(4)]));
        assert!(lists.sources(OpId(5)).unwrap().initial);
        let order: Vec<_> = lists.of_key(KeyId(0)).iter().map(|version| version.op.0).collect();
        assert_eq!(order, [5, 0, 2]);
        let conditional = KeyVersions::of(&history, Subject::Key(KeyId(1)));
        assert!(conditional.sources(OpId(1)).unwrap().initial);
        assert_eq!(conditional.readers(OpId(1)), Some(vec![OpId(3)]));
        assert_eq!(conditional.readers(OpId(3)), None);
    }
}
