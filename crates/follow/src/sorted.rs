//! Sorts a history on disk by the times at which its transactions finished: in runs that fit into memory,
//! which are then read side by side.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use isolario_formats::{OutputTarget, Stream, find};
use isolario_model::{Batch, BatchEntries, History, TxnId, TxnSink, Value};

use super::reader::Reader;
use super::{FollowError, Input, failed};

/// The format of runs.
const FORMAT: &str = "isolario";

/// So many bytes of a file are read at a time; a block of transactions at least.
const AT_A_TIME: usize = 1 << 20;

/// Watches whether transactions come about in the order in which they finished: whether one finished
/// before another that came a whole tail earlier.
#[derive(Clone)]
pub(super) struct Finishes {
    tail: usize,
    /// How many came since the last one that ended a tail.
    seen: usize,
    /// The last finish of all up to the tail before the last one, and of all up to the last one.
    latest: [i64; 2],
    now: i64,
    pub(super) is_out_of_order: bool,
}

impl Finishes {
    pub(super) fn new(tail: usize) -> Finishes {
        let (seen, now) = (0, i64::MIN);
        Finishes { tail, seen, latest: [i64::MIN; 2], now, is_out_of_order: false }
    }

    pub(super) fn add(&mut self, batch: &Batch) {
        for finish in batch.finishes() {
            if let Some(finish) = finish {
                self.is_out_of_order |= finish < self.latest[0];
                self.now = self.now.max(finish);
            }
            self.seen += 1;
            if self.seen == self.tail {
                (self.seen, self.latest) = (0, [self.latest[1], self.now]);
            }
        }
    }
}

/// Sorted runs of a history, in a directory of their own that goes with them.
pub(super) struct Runs {
    directory: PathBuf,
    runs: Vec<Run>,
    bytes: u64,
}

/// A run, and by session how far the runs before it had come.
struct Run {
    path: PathBuf,
    before: Keys,
}

/// By session, the last of the times by which its transactions are sorted.
type Keys = BTreeMap<Value, i64>;

impl Runs {
    /// Sorts a history into a directory, so many transactions at a time.
    pub(super) fn sort(
        input: &Input<'_>,
        parent: &Path,
        at_a_time: usize,
    ) -> Result<Runs, FollowError> {
        let directory = private(parent).map_err(|error| failed(parent, error))?;
        let mut runs = Runs { directory, runs: Vec::new(), bytes: 0 };
        let mut reader = Reader::ahead(input.open()?.in_pieces_of(AT_A_TIME));
        let mut keys = Keys::new();
        let mut is_over = false;
        while !is_over {
            let mut batches = Vec::new();
            while batches.iter().map(Batch::len).sum::<usize>() < at_a_time && !is_over {
                let piece = reader.next()?;
                is_over = piece.is_empty();
                batches.extend(piece);
            }
            if is_over {
                batches.push(reader.close()?);
            }
            let history = History::from_batches(batches, BatchEntries::Whole)?;
            runs.add(&history, &mut keys).map_err(|error| failed(parent, error))?;
        }
        Ok(runs)
    }

    /// How many bytes there are on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn add(&mut self, history: &History, keys: &mut Keys) -> io::Result<()> {
        let path = self.directory.join(format!("{}.iso", self.runs.len()));
        let before = keys.clone();
        let format = find(FORMAT).ok_or(io::ErrorKind::Unsupported)?;
        let mut writer =
            format.writer(OutputTarget::Path(path.clone())).map_err(io::Error::other)?;
        writer.meta(history.meta()).map_err(io::Error::other)?;
        for (_, txn) in sorted(history, keys) {
            history.replay_txn(txn, &mut *writer).map_err(io::Error::other)?;
        }
        writer.finish().map_err(io::Error::other)?;
        self.bytes += fs::metadata(&path)?.len();
        self.runs.push(Run { path, before });
        Ok(())
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        // Who cannot remove it leaves it: there is nobody to tell.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A new directory inside of another one.
pub(super) fn private(parent: &Path) -> io::Result<PathBuf> {
    for number in 0.. {
        let path = parent.join(format!("isolario-spill-{}-{number}", process::id()));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The transactions by finish. One without comes by its start; and none comes before those that its
/// session had before, whatever the clock says.
fn sorted(history: &History, keys: &mut Keys) -> Vec<(i64, TxnId)> {
    let mut order = Vec::with_capacity(history.txn_count());
    for session in history.sessions() {
        let name = history.session_name(session).to_owned();
        let last = keys.entry(name).or_insert(i64::MIN);
        for txn in history.session_txns(session) {
            let time = history.finish(txn).or(history.start(txn));
            *last = (*last).max(time.unwrap_or(*last));
            order.push((*last, txn));
        }
    }
    order.sort_unstable();
    order
}

/// Runs, read side by side.
pub(super) struct Merge {
    runs: Vec<Open>,
}

/// A run that is read.
struct Open {
    stream: Stream,
    keys: Keys,
    /// What is in memory of it.
    history: History,
    order: Vec<(i64, TxnId)>,
    /// How many of these were passed on.
    passed: usize,
}

impl Merge {
    pub(super) fn new(runs: &Runs) -> Result<Merge, FollowError> {
        let open = |run: &Run| {
            let format =
                find(FORMAT).ok_or_else(|| failed(&run.path, io::ErrorKind::Other.into()))?;
            let stream = Stream::open(&run.path, format)?
                .ok_or_else(|| failed(&run.path, io::ErrorKind::Other.into()))?;
            Ok(Open {
                stream: stream.in_pieces_of(AT_A_TIME),
                keys: run.before.clone(),
                history: History::default(),
                order: Vec::new(),
                passed: 0,
            })
        };
        Ok(Merge { runs: runs.runs.iter().map(open).collect::<Result<_, FollowError>>()? })
    }

    /// All transactions up to the first moment up to which something is in memory of every run: a session's
    /// are in order, since those of an earlier run come first.
    pub(super) fn next(&mut self) -> Result<Vec<Batch>, FollowError> {
        for run in &mut self.runs {
            run.fill()?;
        }
        let last = |run: &Open| run.order.last().map(|(key, _)| *key);
        let Some(until) = self.runs.iter().filter_map(last).min() else { return Ok(Vec::new()) };
        let mut batches = Vec::new();
        for run in &mut self.runs {
            let mut batch = Batch::new();
            batch.meta(run.history.meta())?;
            while let Some((key, txn)) = run.order.get(run.passed)
                && *key <= until
            {
                run.history.replay_txn(*txn, &mut batch)?;
                run.passed += 1;
            }
            if !batch.is_empty() {
                batches.push(batch);
            }
        }
        Ok(batches)
    }
}

impl Open {
    /// Reads the next piece, if the last one was passed on.
    fn fill(&mut self) -> Result<(), FollowError> {
        if self.passed < self.order.len() {
            return Ok(());
        }
        let piece = self.stream.next_piece()?;
        self.history = History::from_batches(piece, BatchEntries::Whole)?;
        (self.order, self.passed) = (sorted(&self.history, &mut self.keys), 0);
        Ok(())
    }
}
