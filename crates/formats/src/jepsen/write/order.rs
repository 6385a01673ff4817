//! The order of entries in a file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use isolario_model::{History, SessionId, TxnId};

/// One entry to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Invocation(TxnId),
    Completion(TxnId),
}

impl Entry {
    /// When it happened, as far as the history tells.
    pub(super) fn moment(self, history: &History) -> Option<i64> {
        match self {
            Entry::Invocation(txn) => history.start(txn),
            Entry::Completion(txn) => history.finish(txn),
        }
    }
}

/// The entries of a history.
///
/// With times: invocations and completions, by time, where each session keeps its own order even
/// if its times run backwards. At the same time invocations come first: transactions that touch
/// are concurrent. Without times: completions alone, since invocations would state an order of
/// events that nobody observed.
pub(super) fn entries(history: &History) -> Vec<Entry> {
    if !history.has_times() {
        return history.txns().map(Entry::Completion).collect();
    }
    let mut sessions: Vec<_> = history.sessions().map(|s| Walk::new(history, s)).collect();
    let mut next: BinaryHeap<_> = sessions.iter().filter_map(Walk::rank).map(Reverse).collect();
    let mut entries = Vec::with_capacity(2 * history.txn_count());
    while let Some(Reverse((_, _, session))) = next.pop() {
        let walk = &mut sessions[session as usize];
        entries.extend(walk.advance(history));
        next.extend(walk.rank().map(Reverse));
    }
    entries
}

/// A session's entries that are still to come.
struct Walk {
    session: SessionId,
    next: Option<Entry>,
    rest: std::ops::Range<usize>,
    /// The latest time so far: entries of a session never go back behind it.
    latest: i64,
}

impl Walk {
    fn new(history: &History, session: SessionId) -> Walk {
        let first = history.session_txns(session).next().map_or(0, TxnId::index);
        let rest = first..first + history.session_txns(session).len();
        let mut walk = Walk { session, next: None, rest, latest: i64::MIN };
        walk.load(history);
        walk
    }

    /// Where its next entry stands among those of all sessions.
    fn rank(&self) -> Option<(i64, bool, u32)> {
        let is_completion = matches!(self.next?, Entry::Completion(_));
        Some((self.latest, is_completion, self.session.0))
    }

    fn advance(&mut self, history: &History) -> Option<Entry> {
        let entry = self.next.take();
        match entry {
            Some(Entry::Invocation(txn)) => self.set(Entry::Completion(txn), history),
            _ => self.load(history),
        }
        entry
    }

    fn load(&mut self, history: &History) {
        if let Some(txn) = self.rest.next() {
            self.set(Entry::Invocation(TxnId::at(txn)), history);
        }
    }

    fn set(&mut self, entry: Entry, history: &History) {
        self.latest = entry.moment(history).map_or(self.latest, |at| at.max(self.latest));
        self.next = Some(entry);
    }
}
