//! Where transactions stand in a history that is told in pieces.

use std::ops::Range;

use isolario_model::{History, SessionId, SinkError, Value};
use rustc_hash::FxHashMap;

use super::SessionDigests;

/// The positions of the transactions of a history, session by session. The history is told in pieces that each
/// have the next transactions of some sessions.
#[derive(Clone, Debug)]
pub struct TxnPositions {
    numbers: FxHashMap<Value, usize>,
    /// By session, the position of its first transaction, and of the next one that will be told.
    first: Vec<u64>,
    next: Vec<u64>,
    count: u64,
}

/// The next transactions of a session.
pub(crate) struct OfSession {
    /// What the session is called in the piece.
    pub(crate) session: SessionId,
    /// Its number, in the order in which sessions first appear.
    pub(crate) number: usize,
    pub(crate) positions: Range<u64>,
}

impl TxnPositions {
    /// Of a history with these sessions, of which nothing was told so far.
    pub(crate) fn new(sessions: &SessionDigests) -> TxnPositions {
        let mut count = 0;
        let first_of = |of_session: &u64| {
            count += of_session;
            count - of_session
        };
        let first: Vec<u64> = sessions.counts().iter().map(first_of).collect();
        TxnPositions { numbers: sessions.names().clone(), next: first.clone(), first, count }
    }

    /// How many sessions there are.
    pub(crate) fn sessions(&self) -> usize {
        self.first.len()
    }

    /// How many transactions there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Everything is told once more.
    pub(crate) fn begin_again(&mut self) {
        self.next.clone_from(&self.first);
    }

    /// The next piece is told: the positions of its transactions.
    pub(crate) fn tell(&mut self, piece: &History) -> Result<Vec<OfSession>, SinkError> {
        let of_session = |session| {
            let name = piece.session_name(session).to_owned();
            let Some(number) = self.numbers.get(&name).copied() else {
                return Err(SinkError::Sequence("the history has changed"));
            };
            let next = &mut self.next[number];
            let begin = *next;
            *next += piece.session_txns(session).len() as u64;
            Ok(OfSession { session, number, positions: begin..*next })
        };
        piece.sessions().map(of_session).collect()
    }

    /// Whether the transaction at a position was told.
    pub(crate) fn is_told(&self, position: u64) -> bool {
        let session = self.first.partition_point(|first| *first <= position).checked_sub(1);
        session.is_some_and(|session| position < self.next[session])
    }
}
