//! Joins reads with writes.

use isolario_model::{History, Initial, OpId, Outcome, TxnId};

use super::record::Record;
use super::{ASIDE, OWN, direct, hashed};
use crate::resolved::AmbiguousRead;

/// What the join found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Joined {
    /// Per operation, the word of its source.
    pub(super) sources: Vec<u32>,
    /// Reads that are wrong unless their transaction turns out not to count, by operation.
    pub(super) suspects: Vec<Suspect>,
    /// Reads with more than one candidate, by operation.
    pub(super) ambiguous: Vec<AmbiguousRead>,
    /// Reads from transactions of unknown outcome, wrong ones included: (read, writer).
    pub(super) unknown_reads: Vec<(OpId, TxnId)>,
}

/// A read to look at closely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Suspect {
    pub(super) read: OpId,
    pub(super) saw: Saw,
}

/// Whose write a suspect saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Saw {
    /// Nobody wrote what it saw.
    Nothing,
    /// One transaction did, or `init`.
    One(TxnId),
    /// These did, and perhaps others.
    Several(TxnId, TxnId),
}

/// Joins the reads and writes of a whole history.
pub(super) fn join(history: &History) -> Joined {
    Joined::new(direct::join(history).unwrap_or_else(|| hashed::join(history)))
}

impl Joined {
    /// Puts in order what was found.
    fn new((sources, found): (Vec<u32>, Found)) -> Joined {
        let Found { suspects, ambiguous, unknown_reads, own } = found;
        let mut joined = Joined { sources, suspects, ambiguous, unknown_reads };
        joined.ambiguous.sort_unstable_by_key(|a| a.read);
        joined.unknown_reads.sort_unstable();
        let own_suspects: Vec<_> = own.iter().filter_map(|read| joined.suspect(*read)).collect();
        joined.suspects.extend(own_suspects);
        joined.suspects.sort_unstable();
        joined.suspects.dedup();
        joined
    }

    /// What a read saw, looked up again. None if it saw its own last write after all.
    fn suspect(&self, read: OpId) -> Option<Suspect> {
        let saw = match self.sources[read.index()] {
            OWN => return None,
            ASIDE => match self.ambiguous.binary_search_by_key(&read, |a| a.read) {
                Ok(at) => Saw::Several(self.ambiguous[at].first, self.ambiguous[at].second),
                Err(_) => Saw::Nothing,
            },
            writer => Saw::One(TxnId(writer)),
        };
        Some(Suspect { read, saw })
    }
}

/// What some part of a join found, in no particular order.
#[derive(Default)]
pub(super) struct Found {
    pub(super) suspects: Vec<Suspect>,
    pub(super) ambiguous: Vec<AmbiguousRead>,
    pub(super) unknown_reads: Vec<(OpId, TxnId)>,
    /// Reads whose own transaction's writes make them look wrong.
    pub(super) own: Vec<OpId>,
}

impl Found {
    pub(super) fn concat(parts: &[Found]) -> Found {
        Found {
            suspects: parts.iter().flat_map(|part| &part.suspects).copied().collect(),
            ambiguous: parts.iter().flat_map(|part| &part.ambiguous).copied().collect(),
            unknown_reads: parts.iter().flat_map(|part| &part.unknown_reads).copied().collect(),
            own: parts.iter().flat_map(|part| &part.own).copied().collect(),
        }
    }
}

/// Settles reads, once it is known who wrote what they saw.
pub(super) struct Resolver<'h> {
    history: &'h History,
    /// The word that stands for the initial version, and whether it yields to a client's write.
    encoded_initial_version: Option<u64>,
    pub(super) found: Found,
}

impl<'h> Resolver<'h> {
    pub(super) fn new(history: &'h History) -> Self {
        Resolver {
            history,
            encoded_initial_version: history.encoded_initial_version(),
            found: Found::default(),
        }
    }

    /// The word that stands for the initial version, if there is one.
    pub(super) fn encoded_initial_version(&self) -> Option<u64> {
        self.encoded_initial_version
    }

    /// The word of a read's source. `written` is the write it saw, and another transaction that
    /// wrote the same.
    #[inline]
    pub(super) fn resolve(
        &mut self,
        read: Record,
        written: Option<(Record, Option<TxnId>)>,
    ) -> u32 {
        let op = OpId(read.id);
        let from_init = self.may_be_initial(read, written.is_some());
        match written {
            None if from_init => self.resolve_to(op, TxnId::INIT, true),
            None => {
                self.found.suspects.push(Suspect { read: op, saw: Saw::Nothing });
                ASIDE
            }
            Some((write, Some(other))) => {
                let first = TxnId(write.id);
                self.found.ambiguous.push(AmbiguousRead { read: op, first, second: other });
                ASIDE
            }
            Some((write, None)) if from_init => {
                let second = TxnId(write.id);
                self.found.ambiguous.push(AmbiguousRead { read: op, first: TxnId::INIT, second });
                ASIDE
            }
            Some((write, None)) => self.resolve_to(op, TxnId(write.id), write.is_final()),
        }
    }

    /// Whether `init` is a candidate for what was read.
    #[inline]
    fn may_be_initial(&self, read: Record, written: bool) -> bool {
        match self.history.initial() {
            Initial::Unwritten => !written,
            Initial::UnlessWritten(_) => {
                !written && self.encoded_initial_version == Some(read.word)
            }
            _ => self.encoded_initial_version == Some(read.word),
        }
    }

    #[inline]
    fn resolve_to(&mut self, read: OpId, writer: TxnId, is_final: bool) -> u32 {
        let outcome = self.history.outcome(writer);
        if outcome == Outcome::Unknown {
            self.found.unknown_reads.push((read, writer));
        }
        // The source is told even for suspects: whether they are wrong is decided by `classify`.
        if !is_final || outcome == Outcome::Aborted {
            self.found.suspects.push(Suspect { read, saw: Saw::One(writer) });
        }
        writer.0
    }
}

const _: () = assert!(ASIDE < OWN && OWN < TxnId::INIT.0);

#[cfg(test)]
mod tests {
    use isolario_model::{Batch, Op, TxnEnd, TxnSink, TxnStart};
    use isolario_oracle::random::Case;

    use super::*;

    #[test]
    fn both_joins_find_the_same() {
        for case in Case::first(5_000) {
            let history = case.draft().history().unwrap();
            let direct = direct::join(&history).map(Joined::new);
            let hashed = Joined::new(hashed::join(&history));
            assert!(direct.is_none_or(|direct| direct == hashed), "{}", case.draft());
        }
    }

    /// Writes these values to keys in turn, one transaction each, and reads each once.
    fn written_and_read(keys: i64, values: impl Iterator<Item = i64>) -> History {
        let mut batch = Batch::new();
        for (at, value) in values.enumerate() {
            let (key, value) = ((at as i64 % keys).into(), value.into());
            for op in [Op::Write { key, value }, Op::Read { key, value: Some(value) }] {
                batch.begin(&TxnStart { session: 0i64.into(), id: None, line: None }).unwrap();
                batch.op(&op).unwrap();
                batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
            }
        }
        batch.build().unwrap()
    }

    #[test]
    fn values_that_number_the_writes_are_joined_directly_and_others_are_not() {
        let directly = |history: &History| {
            let hashed = Joined::new(hashed::join(history));
            let direct = direct::join(history).map(Joined::new);
            assert!(hashed.suspects.is_empty() && hashed.ambiguous.is_empty());
            direct.is_some_and(|direct| direct == hashed)
        };
        assert!(directly(&written_and_read(7, 1..20_000)));
        assert!(directly(&written_and_read(7, (1..20_000).rev())));
        // A few strangers do no harm: the same number for several keys, and numbers far off.
        assert!(directly(&written_and_read(7, (0..7).map(|_| 5).chain(6..20_000).chain([-1]))));
        assert!(directly(&written_and_read(7, (1..20_000).chain([1 << 40]))));
        // Each key counted by itself; and numbers that are too far apart.
        assert!(!directly(&written_and_read(7, (7..20_000).map(|at| at / 7))));
        assert!(!directly(&written_and_read(7, (1..20_000).map(|at| at << 20))));
    }
}
