//! What is known of transactions, column by column.

use super::grouping::{Arrival, Grouping};
use super::tables::Tables;
use crate::batch::Batch;
use crate::columns::{Column, TxnColumns, TxnTexts};
use crate::op::Outcome;

/// Joins the columns, each in a task of its own.
///
/// The first piece of a transaction knows how it began, the last one how it ended. Rows are gone
/// through backwards for the one and forwards for the other, so that the right one is written
/// last.
pub(super) fn gather(batches: &[Batch], tables: &Tables, grouping: &Grouping) -> TxnColumns {
    let mut txns = TxnColumns::default();
    let from = Gather { batches, grouping };
    rayon::scope(|scope| {
        let to = &mut txns;
        scope.spawn(|_| {
            let value = |arrival: Arrival, name| tables.maps[arrival.batch].value(name);
            to.names = from.firsts(|txns| &txns.names, value);
        });
        scope.spawn(|_| to.lines = from.firsts(|txns| &txns.lines, as_is));
        scope.spawn(|_| to.op_ends = from.op_ends());
        scope.spawn(|_| to.outcomes = from.outcomes());
        scope.spawn(|_| to.sessions = from.sessions());
        scope.spawn(|_| to.starts = from.firsts(|txns| &txns.starts, as_is));
        scope.spawn(|_| to.finishes = from.lasts(|txns| &txns.finishes, as_is));
        scope.spawn(|_| to.db_starts = from.firsts(|txns| &txns.db_starts, as_is));
        scope.spawn(|_| to.db_commits = from.lasts(|txns| &txns.db_commits, as_is));
        scope.spawn(|_| to.texts = from.texts());
    });
    txns.without_contradictory_times()
}

/// What needs no renumbering.
fn as_is<T>(_: Arrival, value: T) -> T {
    value
}

/// Where columns are joined from.
#[derive(Clone, Copy)]
struct Gather<'a> {
    batches: &'a [Batch],
    grouping: &'a Grouping,
}

impl Gather<'_> {
    /// What the first piece of each transaction says.
    fn firsts<T: Copy>(
        &self,
        of: impl Fn(&TxnColumns) -> &Column<T>,
        renumber: impl Fn(Arrival, T) -> T,
    ) -> Column<T> {
        self.column(self.grouping.arrivals(self.batches).rev(), of, renumber)
    }

    /// What the last piece of each transaction says.
    fn lasts<T: Copy>(
        &self,
        of: impl Fn(&TxnColumns) -> &Column<T>,
        renumber: impl Fn(Arrival, T) -> T,
    ) -> Column<T> {
        self.column(self.grouping.arrivals(self.batches), of, renumber)
    }

    fn column<T: Copy>(
        &self,
        arrivals: impl Iterator<Item = Arrival>,
        of: impl Fn(&TxnColumns) -> &Column<T>,
        renumber: impl Fn(Arrival, T) -> T,
    ) -> Column<T> {
        let mut column = Column::default();
        if self.batches.iter().any(|batch| !of(&batch.txns).is_empty()) {
            arrivals.for_each(|arrival| {
                let value = of(&self.batches[arrival.batch].txns).get(arrival.row);
                column.set(arrival.txn, value.map(|value| renumber(arrival, value)));
            });
        }
        column
    }

    fn op_ends(&self) -> Vec<u32> {
        let mut ends = vec![0; self.grouping.txn_count()];
        self.grouping.arrivals(self.batches).for_each(|arrival| {
            ends[arrival.txn] += arrival.op_range(self.batches).len() as u32;
        });
        let mut total = 0;
        for end in &mut ends {
            total += *end;
            *end = total;
        }
        ends
    }

    fn outcomes(&self) -> Vec<Outcome> {
        let mut outcomes = vec![Outcome::Unknown; self.grouping.txn_count()];
        self.grouping.arrivals(self.batches).for_each(|arrival| {
            outcomes[arrival.txn] = self.batches[arrival.batch].txns.outcomes[arrival.row];
        });
        outcomes
    }

    fn sessions(&self) -> Vec<u32> {
        let mut sessions = Vec::with_capacity(self.grouping.txn_count());
        for (session, end) in self.grouping.session_ends.iter().enumerate() {
            sessions.resize(*end as usize, session as u32);
        }
        sessions
    }

    fn texts(&self) -> Vec<(u32, TxnTexts)> {
        if self.batches.iter().all(|batch| batch.txns.texts.is_empty()) {
            return Vec::new();
        }
        let mut texts = vec![None; self.grouping.txn_count()];
        self.grouping.arrivals(self.batches).for_each(|arrival| {
            let source = &self.batches[arrival.batch].txns.texts;
            let at = source.binary_search_by_key(&arrival.row, |(row, _)| *row as usize);
            texts[arrival.txn] = at.ok().map(|at| &source[at].1);
        });
        (0..).zip(texts).filter_map(|(txn, text)| Some((txn, text?.clone()))).collect()
    }
}
