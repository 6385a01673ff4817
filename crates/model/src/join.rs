//! One history of the parts that several hosts recorded of it.

use crate::batch::Batch;
use crate::op::{OpInput, OpNotes, TxnEnd, TxnStart};
use crate::sink::{Clock, Meta, SinkError, TxnSink};
use crate::value::ValueRef;
use crate::{History, TxnId};

/// Puts a history together from parts that were recorded apart: by clients on several hosts, each with a
/// file and a clock of its own.
///
/// Sessions and transactions get the name of their part in front, so that two hosts may call theirs
/// alike. Keys, values and versions are those of the database, which is one: they stay. Lines of files
/// are left out, since it is not one file any more.
///
/// ```
/// use isolario_model::{Batch, Joiner, Op, Outcome, TxnEnd, TxnSink, TxnStart, ValueRef};
///
/// let part = |op| {
///     let mut batch = Batch::new();
///     batch.begin(&TxnStart { session: "client".into(), id: Some("T1".into()), line: None })?;
///     batch.op(&op)?;
///     batch.end(&TxnEnd::new(Outcome::Committed))?;
///     batch.build()
/// };
/// let (x, one) = (ValueRef::Text("x"), ValueRef::Int(1));
/// let mut joiner = Joiner::new();
/// joiner.add("berlin", &part(Op::Write { key: x, value: one })?, None)?;
/// joiner.add("rome", &part(Op::Read { key: x, value: Some(one) })?, None)?;
/// let history = joiner.finish()?;
/// assert_eq!((history.session_count(), history.key_count()), (2, 1));
/// assert_eq!(history.txn_label(isolario_model::TxnId(1)), "rome/T1");
/// # Ok::<(), isolario_model::JoinError>(())
/// ```
#[derive(Default)]
pub struct Joiner {
    batch: Batch,
    /// What the first part says of the whole, and its name.
    first: Option<(String, Meta)>,
}

/// Why parts are not one history.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// They begin differently.
    #[error("{first} and {second} have different initial states")]
    Initial {
        /// The first part.
        first: String,
        /// The one that differs from it.
        second: String,
    },
    /// A time is outside of what the clock can tell once it is moved.
    #[error("{part}: shifting the times of {txn} by {offset} ns overflows")]
    Time {
        /// The part.
        part: String,
        /// The transaction, as the part calls it.
        txn: String,
        /// By how much they were to be moved.
        offset: i64,
    },
    /// Together they are no history.
    #[error("{0}")]
    Sink(#[from] SinkError),
}

impl Joiner {
    /// Nothing yet.
    pub fn new() -> Joiner {
        Joiner::default()
    }

    /// Adds a part. Its times are moved by so many nanoseconds, to the clock that all parts share; without
    /// a number they are left out, since nothing is known of how the clocks of two hosts compare. Times
    /// that are only an order of events mean nothing to another part, and are left out as well.
    pub fn add(
        &mut self,
        name: &str,
        part: &History,
        offset: Option<i64>,
    ) -> Result<(), JoinError> {
        match &self.first {
            None => {
                let meta = Meta { clock: Clock::Nanoseconds, ..part.meta().clone() };
                self.batch.meta(&meta)?;
                self.first = Some((name.to_owned(), meta));
            }
            Some((first, meta)) if meta.initial != part.meta().initial => {
                return Err(JoinError::Initial { first: first.clone(), second: name.to_owned() });
            }
            Some(_) => {}
        }
        let offset = offset.filter(|_| part.clock() == Clock::Nanoseconds);
        for txn in part.txns() {
            let moved = moved(part, txn, offset).ok_or_else(|| JoinError::Time {
                part: name.to_owned(),
                txn: part.txn_label(txn),
                offset: offset.unwrap_or_default(),
            })?;
            part.replay_txn(
                txn,
                &mut Renamed { part: name, times: moved, batch: &mut self.batch },
            )?;
        }
        Ok(())
    }

    /// The history of all parts.
    pub fn finish(self) -> Result<History, JoinError> {
        Ok(self.batch.build()?)
    }
}

/// Start and finish of a transaction, as far as they are known on the clock that all parts share; none if
/// that clock cannot tell them.
fn moved(part: &History, txn: TxnId, offset: Option<i64>) -> Option<[Option<i64>; 2]> {
    let Some(offset) = offset else { return Some([None; 2]) };
    let moved = |time: Option<i64>| match time {
        None => Some(None),
        Some(time) => time.checked_add(offset).map(Some),
    };
    Some([moved(part.start(txn))?, moved(part.finish(txn))?])
}

/// Takes a transaction of a part, and passes it on as one of the whole.
struct Renamed<'r> {
    part: &'r str,
    times: [Option<i64>; 2],
    batch: &'r mut Batch,
}

impl Renamed<'_> {
    fn name(&self, name: ValueRef<'_>) -> String {
        match name {
            ValueRef::Text(name) => format!("{}/{name}", self.part),
            name => format!("{}/{name}", self.part),
        }
    }
}

impl TxnSink for Renamed<'_> {
    fn meta(&mut self, _: &Meta) -> Result<(), SinkError> {
        Ok(())
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        let session = self.name(start.session);
        let id = start.id.map(|id| self.name(id));
        let id = id.as_deref().map(ValueRef::Text);
        self.batch.begin(&TxnStart { session: ValueRef::Text(&session), id, line: None })
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.batch.op_with(op, notes)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        let [start, finish] = self.times;
        self.batch.end(&TxnEnd { start, finish, ..*end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{history, timed};
    use crate::{Initial, Outcome, Value};

    fn joined(parts: &[(&str, &History, Option<i64>)]) -> Result<History, JoinError> {
        let mut joiner = Joiner::new();
        parts.iter().try_for_each(|(name, part, offset)| joiner.add(name, part, *offset))?;
        joiner.finish()
    }

    fn times(history: &History) -> Vec<(Option<i64>, Option<i64>)> {
        history.txns().map(|txn| (history.start(txn), history.finish(txn))).collect()
    }

    fn starting_with(initial: Initial, clock: Clock) -> History {
        let mut batch = Batch::new();
        batch.meta(&Meta { initial, clock }).unwrap();
        batch.begin(&TxnStart { session: "s".into(), id: None, line: Some(1) }).unwrap();
        let end = TxnEnd::new(Outcome::Committed);
        batch.end(&TxnEnd { start: Some(1), finish: Some(2), ..end }).unwrap();
        batch.build().unwrap()
    }

    #[test]
    fn equal_names_of_two_hosts_are_kept_apart() {
        let part = history(&[timed("a", 1, 2), timed("a", 3, 4), timed("b", 1, 5)]);
        let whole = joined(&[("h1", &part, Some(0)), ("h2", &part, Some(0))]).unwrap();
        let sessions: Vec<String> =
            whole.sessions().map(|session| whole.session_name(session).to_string()).collect();
        assert_eq!(sessions, ["h1/a", "h1/b", "h2/a", "h2/b"]);
        assert_eq!(whole.txn_count(), 6);
    }

    #[test]
    fn times_are_moved_to_the_clock_of_all_and_left_out_where_there_is_none() {
        let part = history(&[timed("a", 1, 2)]);
        let whole = joined(&[("h1", &part, Some(10)), ("h2", &part, Some(-4))]).unwrap();
        assert_eq!(times(&whole), [(Some(11), Some(12)), (Some(-3), Some(-2))]);
        let whole = joined(&[("h1", &part, None), ("h2", &part, None)]).unwrap();
        assert_eq!(times(&whole), [(None, None); 2]);
        let events = starting_with(Initial::Value(Value::Nil), Clock::EventOrder);
        assert_eq!(times(&joined(&[("h1", &events, Some(0))]).unwrap()), [(None, None)]);
        let late = joined(&[("h1", &part, Some(i64::MAX))]);
        assert!(matches!(late, Err(JoinError::Time { .. })));
    }

    #[test]
    fn parts_that_begin_differently_are_refused_by_name() {
        let nil = starting_with(Initial::Value(Value::Nil), Clock::Nanoseconds);
        let zero = starting_with(Initial::Value(Value::Int(0)), Clock::Nanoseconds);
        let error = joined(&[("h1", &nil, None), ("h2", &zero, None)]).unwrap_err();
        assert_eq!(error.to_string(), "h1 and h2 have different initial states");
    }
}
