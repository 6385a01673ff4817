//! A claimed commit order, and what every level asks of it.

use isolario_model::{Level, OpId, OpKind, Outcome, ReadSource, TxnId};
use rustc_hash::FxHashMap;

use crate::facts::{Facts, Source};
use crate::scans::Scans;
use crate::times::InTurn;
use crate::{Refusal, guaranteed, lists, single_reads};

/// A commit order: each transaction at most once, all committed ones, no aborted ones. Those of
/// unknown outcome are taken to have committed if they are in it, and to have aborted if not.
#[derive(Debug)]
pub(crate) struct Order<'f, 'h> {
    pub(crate) facts: &'f Facts<'h>,
    pub(crate) txns: &'f [TxnId],
    /// Per transaction, its place counted from 1; 0 if it is not in the order.
    places: Vec<u32>,
    pub(crate) scans: Scans<'h>,
    /// What is said of reads that may have seen the writes of several transactions.
    sources: FxHashMap<OpId, TxnId>,
}

/// A read from another transaction of the order, or from `init`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExternalRead {
    pub(crate) read: OpId,
    pub(crate) from: TxnId,
}

/// The external reads of all transactions of an order.
#[derive(Debug)]
pub(crate) struct ExternalReads {
    reads: Vec<ExternalRead>,
    /// Where the reads of each transaction end, in the order.
    ends: Vec<usize>,
}

impl ExternalReads {
    /// Those of the transaction that stands here in the order, counted from 0.
    pub(crate) fn at(&self, place: usize) -> &[ExternalRead] {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.reads[begin..self.ends[place]]
    }
}

impl<'f, 'h> Order<'f, 'h> {
    /// Takes an order that has the right transactions.
    pub(crate) fn new(facts: &'f Facts<'h>, txns: &'f [TxnId]) -> Result<Self, Refusal> {
        let mut places = vec![0; facts.history.txn_count()];
        for (place, txn) in (1..).zip(txns) {
            facts.may_have_committed(*txn)?;
            if std::mem::replace(&mut places[txn.index()], place) != 0 {
                return Err(Refusal::Repeated(*txn));
            }
        }
        let sources = FxHashMap::default();
        let order = Order { facts, txns, places, scans: Scans::default(), sources };
        order.has_all_committed()?;
        Ok(order)
    }

    /// With what is said of reads that may have seen the writes of several transactions. Only what
    /// explains a read counts.
    pub(crate) fn with_sources(mut self, sources: &[ReadSource]) -> Result<Self, Refusal> {
        for ReadSource { read, writer } in sources {
            self.facts.known_op(*read)?;
            self.facts.known_txn(*writer)?;
            self.sources.insert(*read, *writer);
        }
        Ok(self)
    }

    /// The place of a transaction in the order, counted from 1; `init` is at 0.
    pub(crate) fn place(&self, txn: TxnId) -> u32 {
        self.places.get(txn.index()).copied().unwrap_or(0)
    }

    pub(crate) fn contains(&self, txn: TxnId) -> bool {
        txn.is_init() || self.place(txn) != 0
    }

    fn has_all_committed(&self) -> Result<(), Refusal> {
        let history = self.facts.history;
        let is_missing =
            |txn: &TxnId| history.outcome(*txn) == Outcome::Committed && !self.contains(*txn);
        history.txns().find(is_missing).map_or(Ok(()), |txn| Err(Refusal::Missing(txn)))
    }

    /// Whoever comes earlier in a session comes first.
    pub(crate) fn respects_sessions(&self) -> Result<(), Refusal> {
        let predecessors = self.facts.session_predecessors();
        for txn in self.txns {
            match predecessors[txn.index()] {
                Some(first) if self.place(first) > self.place(*txn) => {
                    let why = "session order";
                    return Err(Refusal::OutOfOrder { first, second: *txn, why });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whoever finished before another started comes first.
    pub(crate) fn respects_real_time(&self) -> Result<(), Refusal> {
        let mut in_turn = InTurn::new(self.facts.times);
        self.txns.iter().try_for_each(|txn| {
            in_turn.start(*txn);
            in_turn.commit(*txn)
        })
    }

    /// Refuses an order that contradicts what is stated or assumed of the order of versions.
    pub(crate) fn agrees_with_statements(&self, level: Level) -> Result<(), Refusal> {
        let place = |txn| Some(self.place(txn)).filter(|place| *place > 0);
        self.facts.stated.agrees_with(place)?;
        guaranteed::agrees_with(self.facts, level, place)
    }

    /// Read consistency, and that the order respects the reads.
    pub(crate) fn check_reads(&self) -> Result<(), Refusal> {
        self.txns.iter().try_for_each(|txn| self.external_reads(*txn).map(|_| ()))
    }

    /// The external reads of all transactions, having checked all their reads.
    pub(crate) fn all_external_reads(&self) -> Result<ExternalReads, Refusal> {
        let mut all =
            ExternalReads { reads: Vec::new(), ends: Vec::with_capacity(self.txns.len()) };
        for txn in self.txns {
            for read in self.facts.reads(*txn) {
                let from = self.explain(*txn, read)?;
                all.reads.extend(from.map(|from| ExternalRead { read, from }));
            }
            all.ends.push(all.reads.len());
        }
        Ok(all)
    }

    /// The external reads of a transaction, in program order, having checked all its reads.
    pub(crate) fn external_reads(&self, txn: TxnId) -> Result<Vec<ExternalRead>, Refusal> {
        let mut external = Vec::new();
        for read in self.facts.reads(txn) {
            if let Some(from) = self.explain(txn, read)? {
                external.push(ExternalRead { read, from });
            }
        }
        Ok(external)
    }

    /// The other transaction that a read saw; none if it saw the reader's own write.
    fn explain(&self, reader: TxnId, read: OpId) -> Result<Option<TxnId>, Refusal> {
        let unexplained = |why| Err(Refusal::Unexplained { read, why });
        let is_list = self.facts.history.op_kinds()[read.index()] == OpKind::ReadList;
        if is_list {
            lists::check_read(self, read)?;
        }
        let from = match self.facts.source(read) {
            None | Some(Source::Own) => return Ok(None),
            Some(Source::Ambiguous) => match self.sources.get(&read) {
                None if is_list => return Err(Refusal::Ambiguous(read)),
                None => self.last_explaining(reader, read).ok_or(Refusal::Ambiguous(read))?,
                Some(writer) if single_reads::explaining(self.facts, read).contains(writer) => {
                    *writer
                }
                Some(_) => {
                    return unexplained("its claimed source did not write what it returned");
                }
            },
            Some(Source::Nobody) => return unexplained("no transaction wrote what it returned"),
            Some(Source::Init) => TxnId::INIT,
            Some(Source::Write(write)) if !is_list && self.facts.next_own(write).is_some() => {
                return unexplained("its writer overwrote what it returned");
            }
            Some(Source::Write(write)) => self.facts.txn(write),
        };
        if from == reader {
            return unexplained("it returned what its transaction wrote only later");
        }
        if !is_list && self.facts.own_before(read).is_some() {
            return unexplained("its transaction had written the key itself");
        }
        if !self.contains(from) {
            return unexplained("what it returned was written by a transaction that is not there");
        }
        if self.place(from) > self.place(reader) {
            let why = "the later one read from the earlier one";
            return Err(Refusal::OutOfOrder { first: from, second: reader, why });
        }
        Ok(Some(from))
    }

    /// The last transaction before the reader with a write that explains the read. Without a stated source, an order
    /// holds if it does with this one.
    fn last_explaining(&self, reader: TxnId, read: OpId) -> Option<TxnId> {
        let is_before =
            |writer: &TxnId| self.contains(*writer) && self.place(*writer) < self.place(reader);
        let writers = single_reads::explaining(self.facts, read).into_iter();
        writers.filter(is_before).max_by_key(|writer| self.place(*writer))
    }
}
