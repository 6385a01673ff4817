//! Puts a log, what clients were told, and the history together.

mod clock;
mod shadow;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

use isolario_formats::version_order::VersionOrderWriter;
use isolario_model::{
    History, KeyId, Level, Op, OpId, OpInput, OpNotes, Outcome, SinkError, Stamp, TxnEnd, TxnId,
    TxnSink, TxnStart, ValueId, ValueRef,
};

use super::visibility::{Disorder, Visibility, Words};
use super::{CommitLog, LoggedCommit, SnapshotNaming};
use crate::StateReport;
use crate::table::TABLE;

/// What the database itself says about a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Certificate {
    /// The level that the database gives in the order of the timestamps, if it promises an order.
    pub promised: Option<Level>,
    /// How many transactions of unknown outcome committed, as the log shows.
    pub settled: usize,
    /// How many operations by predicate have a set of versions that they met.
    pub sets: usize,
    /// How many such operations committed transactions have.
    pub predicates: usize,
    /// How many versions of rows there are.
    pub versions: usize,
    /// How many transactions had a shadow, which saw the versions that their snapshots stand for.
    pub shadows: usize,
    /// Per transaction, the snapshot that it read.
    starts: Vec<Option<Stamp>>,
    /// Per transaction, its place in the order of commits.
    commits: Vec<Option<Stamp>>,
    /// Rows and the names of the writers of their versions, in the order of the log.
    order: Vec<(u64, i64)>,
    /// What operations met: the name of the transaction, the operation, and the snapshot.
    met: Vec<(u64, usize, Stamp)>,
}

/// Why a log and a history do not fit together: something was lost, or somebody else was there. It
/// says nothing about isolation; a transaction that was [lost](LogMismatch::Lacks) may be one that the database acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogMismatch {
    /// The log has a version that no client wrote.
    #[error("the log contains version {version} of row {row}, which no client wrote")]
    Stranger {
        /// The row.
        row: i64,
        /// The version.
        version: i64,
    },
    /// The log has a transaction that only deleted rows, and no client knows of it.
    #[error(
        "the log contains a transaction {number} that deleted row {row}, and that no client sent"
    )]
    StrangeDelete {
        /// The database's number of the transaction.
        number: u64,
        /// The row.
        row: i64,
    },
    /// The log lacks what a committed transaction wrote. Which of the two it is, the log cannot tell.
    #[error(
        "the log lacks {what} of row {row}, which transaction {txn} wrote and committed: either the log is \
         filtered or incomplete, or the database has lost a transaction that it acknowledged; check the table \
         and the logs of all nodes for it"
    )]
    Lacks {
        /// The transaction.
        txn: String,
        /// The row.
        row: i64,
        /// Which version.
        what: String,
    },
    /// The log has another version than the client wrote last.
    #[error(
        "transaction {txn} last wrote {written} to row {row}, but by the log it last wrote {logged}"
    )]
    Differs {
        /// The transaction.
        txn: String,
        /// The row.
        row: i64,
        /// What the client wrote.
        written: String,
        /// What the log has.
        logged: String,
    },
    /// A committed transaction read a version that the log does not have.
    #[error("the log lacks version {version} of row {row}, which transaction {txn} read")]
    Unseen {
        /// The transaction.
        txn: String,
        /// The row.
        row: i64,
        /// The version.
        version: i64,
    },
    /// The log has a transaction of which the client was told that it had not committed.
    #[error(
        "the log contains transaction {txn}, which the database reported to its client as not committed"
    )]
    Revived {
        /// The transaction.
        txn: String,
    },
    /// A transaction in the snapshot of another saw something else than that snapshot stands for.
    #[error(
        "the shadow of transaction {txn} read {seen} in row {row}, but its snapshot contains {shown}"
    )]
    Shadow {
        /// The transaction.
        txn: String,
        /// The row.
        row: i64,
        /// What was seen.
        seen: String,
        /// What was expected.
        shown: String,
    },
    /// A row was deleted, and several clients may have done it, or none.
    #[error(
        "the log contains a deletion of row {row} that no single transaction can be found for: run without \
         deletes (--mix)"
    )]
    AmbiguousDelete {
        /// The row.
        row: i64,
    },
    /// The log has a transaction at another moment than its client was told, or at two.
    #[error(
        "transaction {txn} committed at {told}, but the log has one of its changes at {logged}"
    )]
    OtherTimestamp {
        /// The transaction.
        txn: String,
        /// The moment that its client was told.
        told: String,
        /// The moment that the log has.
        logged: String,
    },
    /// Two versions of a row have the same moment.
    #[error("the log has two versions of row {row} with one timestamp, so their order is unknown")]
    SameTimestamp {
        /// The row.
        row: i64,
    },
    /// A state in words that cannot be understood.
    #[error("the database described a snapshot as {0:?}, which cannot be parsed")]
    Snapshot(String),
    /// Two snapshots contradict each other.
    #[error("the snapshots {0:?} and {1:?} each contain a commit that the other does not")]
    Contradiction(String, String),
    /// A later version of a row became visible before an earlier one.
    #[error("the versions of row {row} became visible in another order than that of the log")]
    Overtaken {
        /// The row.
        row: i64,
    },
}

/// What clients wrote and read, by the numbers that they put into the rows.
struct Clients<'h> {
    history: &'h History,
    /// Who wrote a version.
    writers: HashMap<i64, TxnId>,
    /// Per transaction and row, the last version that it wrote; none where it deleted the row.
    last: BTreeMap<(TxnId, i64), Option<i64>>,
    /// Versions that committed transactions read, and the first who did.
    read: BTreeMap<(i64, i64), TxnId>,
    names: HashMap<i64, TxnId>,
    /// Those that wrote rows, and were not told which.
    unanswered: BTreeSet<TxnId>,
}

impl<'h> Clients<'h> {
    fn new(history: &'h History) -> Clients<'h> {
        let mut clients = Clients {
            history,
            writers: HashMap::new(),
            last: BTreeMap::new(),
            read: BTreeMap::new(),
            names: HashMap::new(),
            unanswered: BTreeSet::new(),
        };
        for txn in history.txns() {
            if let Some(ValueRef::Int(name)) = history.txn_name(txn) {
                clients.names.insert(name, txn);
            }
            history.txn_ops(txn).for_each(|op| clients.learn(txn, op));
        }
        clients
    }

    fn learn(&mut self, txn: TxnId, op: OpId) {
        match self.history.op(op) {
            Op::Write { key, value } => self.wrote(txn, key, value),
            Op::PredicateWrite { rows: None, .. } => _ = self.unanswered.insert(txn),
            Op::PredicateWrite { rows: Some(rows), .. } => {
                rows.iter().for_each(|row| self.wrote(txn, row.key, row.value));
            }
            Op::Read { key, value: Some(value) } => self.saw(txn, key, value),
            Op::PredicateRead { rows, .. } => {
                rows.unwrap_or_default().iter().for_each(|row| self.saw(txn, row.key, row.value));
            }
            _ => {}
        }
    }

    fn wrote(&mut self, txn: TxnId, key: KeyId, value: ValueId) {
        let Some(row) = self.column(self.history.key_name(key), "id") else { return };
        let version = self.column(self.history.value(value), "v");
        self.last.insert((txn, row), version);
        if let Some(version) = version {
            self.writers.insert(version, txn);
        }
    }

    fn saw(&mut self, txn: TxnId, key: KeyId, value: ValueId) {
        let row = self.column(self.history.key_name(key), "id");
        let version = self.column(self.history.value(value), "v");
        if let (Some(row), Some(version), Outcome::Committed) =
            (row, version, self.history.outcome(txn))
        {
            self.read.entry((row, version)).or_insert(txn);
        }
    }

    fn column(&self, value: ValueRef<'_>, name: &str) -> Option<i64> {
        match value {
            ValueRef::Tuple(tuple) => match tuple.get(name) {
                Some(ValueRef::Int(number)) => Some(number),
                _ => None,
            },
            _ => None,
        }
    }

    fn label(&self, txn: TxnId) -> String {
        self.history.txn_label(txn)
    }
}

/// Makes a certificate of a history from a log, and from what clients were told.
pub fn assemble(
    history: &History,
    log: &CommitLog,
    sightings: &[StateReport],
) -> Result<Certificate, LogMismatch> {
    let clients = Clients::new(history);
    let is_by_clock = log.commits.iter().any(|commit| commit.at.is_some());
    if is_by_clock || matches!(log.snapshots, SnapshotNaming::Starts | SnapshotNaming::Commits) {
        return clock::assemble(&clients, log);
    }
    let owners = owners(&clients, log, sightings)?;
    nothing_is_lost(&clients, log, &owners)?;
    let in_log: BTreeSet<TxnId> = owners.iter().copied().collect();
    let is_committed = |txn: TxnId| is_committed(history, &in_log, txn);
    let told = |sighting: &&StateReport| {
        clients.names.get(&sighting.name).is_some_and(|txn| is_committed(*txn))
    };
    let snapshots = sightings.iter().filter(told).filter_map(words_of);
    let visibility = Visibility::new(&log.commits, log.snapshots, snapshots).map_err(
        |disorder| match disorder {
            Disorder::Words(words) => LogMismatch::Snapshot(words),
            Disorder::Contradiction(one, other) => LogMismatch::Contradiction(one, other),
        },
    )?;
    in_log_order(&log.commits, &visibility.places)?;

    let moments = visibility.places.iter().map(|place| commit_stamp(*place));
    let mut certificate = Certificate::of_commits(history, log, &owners, moments);
    let shown = |sighting: &StateReport| {
        words_of(sighting).and_then(|words| visibility.shown(words)).map(start_stamp)
    };
    let of_op: HashMap<(i64, usize), Stamp> = (sightings.iter())
        .filter_map(|sighting| Some(((sighting.name, sighting.op?), shown(sighting)?)))
        .collect();
    let of_txns = sightings.iter().filter(|sighting| sighting.op.is_none());
    for sighting in of_txns.filter(|sighting| sighting.snapshot.is_some()) {
        if let Some(txn) = clients.names.get(&sighting.name) {
            // Several may have seen the same state: each of them has a moment of its own.
            let logical = txn.index() as u64;
            let start = shown(sighting).map(|start| Stamp { logical, ..start });
            certificate.starts[txn.index()] = start;
        }
    }
    certificate.shadows = shadow::agree(&clients, log, &owners, &certificate, sightings)?;
    for txn in history.txns().filter(|txn| is_committed(*txn)) {
        certificate.meet(history, txn, log, &of_op);
    }
    Ok(certificate)
}

/// Whether a transaction committed, as its client was told or as the log shows.
fn is_committed(history: &History, in_log: &BTreeSet<TxnId>, txn: TxnId) -> bool {
    history.outcome(txn) == Outcome::Committed || in_log.contains(&txn)
}

/// The state that somebody saw.
fn words_of(sighting: &StateReport) -> Option<Words<'_>> {
    Some((sighting.snapshot.as_deref()?, sighting.txn))
}

/// Commits stand at even moments, and snapshots between them: no two of them at the same one.
fn commit_stamp(place: u64) -> Stamp {
    Stamp { physical: 2 * place, logical: 0 }
}

fn start_stamp(shown: u64) -> Stamp {
    Stamp { physical: 2 * shown + 1, logical: 0 }
}

/// Whose transactions the log has: by the versions they wrote or marked rows with, or by the database's
/// own number, if the client was told.
fn owners(
    clients: &Clients<'_>,
    log: &CommitLog,
    sightings: &[StateReport],
) -> Result<Vec<TxnId>, LogMismatch> {
    let named = |sighting: &StateReport| clients.names.get(&sighting.name).copied();
    let by_number: HashMap<u64, TxnId> =
        (sightings.iter()).filter_map(|sighting| Some((sighting.txn?, named(sighting)?))).collect();
    let by_mark: HashMap<i64, TxnId> = (sightings.iter())
        .filter_map(|sighting| Some((sighting.mark?, named(sighting)?)))
        .collect();
    let writer = |version| clients.writers.get(&version).or(by_mark.get(&version)).copied();
    let owner = |commit: &LoggedCommit| {
        let mut found = by_number.get(&commit.number).copied();
        for change in &commit.changes {
            let Some(version) = change.after else { continue };
            let stranger = LogMismatch::Stranger { row: change.row, version };
            let writer = writer(version).ok_or(stranger.clone())?;
            if *found.get_or_insert(writer) != writer {
                return Err(stranger);
            }
        }
        let row = commit.changes.first().map_or(0, |change| change.row);
        let txn = found.ok_or(LogMismatch::StrangeDelete { number: commit.number, row })?;
        match clients.history.outcome(txn) {
            Outcome::Aborted => Err(LogMismatch::Revived { txn: clients.label(txn) }),
            _ => Ok(txn),
        }
    };
    log.commits.iter().map(owner).collect()
}

/// The log has all that clients committed and read, and nothing else of theirs.
fn nothing_is_lost(
    clients: &Clients<'_>,
    log: &CommitLog,
    owners: &[TxnId],
) -> Result<(), LogMismatch> {
    let (mut logged, mut versions) = (BTreeMap::new(), BTreeSet::new());
    for (commit, txn) in log.commits.iter().zip(owners) {
        for change in &commit.changes {
            logged.insert((*txn, change.row), change.after);
            versions.extend(change.after.map(|version| (change.row, version)));
        }
    }
    let in_log: BTreeSet<TxnId> = owners.iter().copied().collect();
    for ((txn, row), written) in &clients.last {
        let must_be_there = clients.history.outcome(*txn) == Outcome::Committed;
        let found = logged.remove(&(*txn, *row));
        if found == Some(*written) || (!must_be_there && !in_log.contains(txn)) {
            continue;
        }
        let (txn, row) = (clients.label(*txn), *row);
        return Err(match found {
            None => LogMismatch::Lacks { txn, row, what: words(*written, "the deletion") },
            Some(found) => {
                let (written, logged) = (words(*written, "nothing"), words(found, "nothing"));
                LogMismatch::Differs { txn, row, written, logged }
            }
        });
    }
    // What is left, no client was told of. One who got no answer does not know its rows.
    let stranger = logged.into_iter().find(|((txn, _), _)| !clients.unanswered.contains(txn));
    if let Some(((txn, row), version)) = stranger {
        return Err(match version {
            Some(version) => LogMismatch::Stranger { row, version },
            None => LogMismatch::Differs {
                txn: clients.label(txn),
                row,
                written: "what was there".to_owned(),
                logged: "nothing".to_owned(),
            },
        });
    }
    for ((row, version), reader) in &clients.read {
        let writer = clients.writers.get(version);
        let is_own = writer == Some(reader);
        let is_known_not_to_be_there =
            writer.is_some_and(|writer| clients.history.outcome(*writer) == Outcome::Aborted);
        if !versions.contains(&(*row, *version)) && !is_own && !is_known_not_to_be_there {
            let txn = clients.label(*reader);
            return Err(LogMismatch::Unseen { txn, row: *row, version: *version });
        }
    }
    Ok(())
}

fn words(version: Option<i64>, nothing: &str) -> String {
    version.map_or_else(|| nothing.to_owned(), |version| format!("version {version}"))
}

/// Versions of a row become visible in the order of the log.
fn in_log_order(commits: &[LoggedCommit], places: &[u64]) -> Result<(), LogMismatch> {
    let mut last: HashMap<i64, u64> = HashMap::new();
    for (commit, place) in commits.iter().zip(places) {
        for change in &commit.changes {
            if last.insert(change.row, *place).is_some_and(|before| before > *place) {
                return Err(LogMismatch::Overtaken { row: change.row });
            }
        }
    }
    Ok(())
}

impl Certificate {
    /// The transactions of a log, with the moments of their commits.
    fn of_commits(
        history: &History,
        log: &CommitLog,
        owners: &[TxnId],
        moments: impl Iterator<Item = Stamp>,
    ) -> Certificate {
        let mut certificate = Certificate {
            promised: log.promised,
            starts: vec![None; history.txn_count()],
            commits: vec![None; history.txn_count()],
            ..Certificate::default()
        };
        for ((commit, txn), moment) in log.commits.iter().zip(owners).zip(moments) {
            certificate.commits[txn.index()] = Some(moment);
            certificate.settled += usize::from(history.outcome(*txn) == Outcome::Unknown);
            let Some(ValueRef::Int(name)) = history.txn_name(*txn) else { continue };
            let rows: BTreeSet<i64> = commit.changes.iter().map(|change| change.row).collect();
            certificate.order.extend(rows.iter().map(|row| (*row as u64, name)));
        }
        certificate.versions = certificate.order.len();
        certificate
    }

    /// Notes what the operations by predicate of a transaction met: by their own snapshots, or by that
    /// of the transaction.
    fn meet(
        &mut self,
        history: &History,
        txn: TxnId,
        log: &CommitLog,
        of_op: &HashMap<(i64, usize), Stamp>,
    ) {
        let Some(ValueRef::Int(name)) = history.txn_name(txn) else { return };
        let mut before = None;
        for (number, op) in history.txn_ops(txn).enumerate() {
            let own = of_op.get(&(name, number)).copied();
            let met = match history.op(op) {
                Op::PredicateRead { .. } => own,
                Op::PredicateWrite { .. } if log.writes_see_snapshots => own,
                Op::PredicateWrite { .. } => {
                    self.predicates += 1;
                    before = None;
                    continue;
                }
                // It comes from the statement that the read before it comes from.
                Op::Aggregate { .. } => own.or(before),
                _ => {
                    before = None;
                    continue;
                }
            };
            self.predicates += 1;
            before = met;
            if let Some(stamp) = met.or(self.starts[txn.index()]) {
                self.sets += 1;
                self.met.push((name as u64, number, stamp));
            }
        }
    }

    /// Writes the history once more, with what the log says: places of commits, snapshots, and
    /// outcomes that clients did not learn.
    pub fn replay(&self, history: &History, sink: &mut dyn TxnSink) -> Result<(), SinkError> {
        history.replay(&mut Settled { certificate: self, sink, next: 0 })
    }

    /// Writes the order of versions, and the versions that operations by predicate met: what
    /// `check --version-order` reads.
    pub fn write_version_order(&self, out: impl Write) -> io::Result<()> {
        let mut writer = VersionOrderWriter::of_rows(out, TABLE, "id");
        for (row, name) in &self.order {
            writer.version(*row, *name)?;
        }
        for (name, op, stamp) in &self.met {
            writer.snapshot(*name, *op, *stamp)?;
        }
        writer.finish().map(|_| ())
    }
}

/// Passes a history on, with what a certificate adds.
struct Settled<'c> {
    certificate: &'c Certificate,
    sink: &'c mut dyn TxnSink,
    next: usize,
}

impl TxnSink for Settled<'_> {
    fn meta(&mut self, meta: &isolario_model::Meta) -> Result<(), SinkError> {
        self.sink.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.sink.begin(start)
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.sink.op_with(op, notes)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        let at = self.next;
        self.next += 1;
        let stamp = |stamps: &[Option<Stamp>]| stamps.get(at).copied().flatten();
        let commit = stamp(&self.certificate.commits);
        let outcome = if commit.is_some() { Outcome::Committed } else { end.outcome };
        let db_start = match outcome {
            Outcome::Committed => stamp(&self.certificate.starts).or(end.db_start),
            _ => end.db_start,
        };
        self.sink.end(&TxnEnd { outcome, db_start, db_commit: commit.or(end.db_commit), ..*end })
    }
}
