//! What is known of transactions, column by column.

use super::grouping::{Grouping, Piece};
use super::tables::Tables;
use crate::batch::{Batch, TxnColumns, TxnTexts};
use crate::column::Column;
use crate::op::Outcome;

/// Joins the columns. The first piece of a transaction knows how it began, the last one how it
/// ended. Each column is a task of its own.
pub(super) fn gather(batches: &[Batch], tables: &Tables, grouping: &Grouping) -> TxnColumns {
    let mut txns = TxnColumns::default();
    let from = Gather { batches, grouping };
    rayon::scope(|scope| {
        let to = &mut txns;
        scope.spawn(|_| to.op_ends = from.op_ends());
        scope.spawn(|_| to.outcomes = from.outcomes());
        scope.spawn(|_| {
            let value = |piece: Piece, name| tables.maps[piece.batch as usize].value(name);
            to.names = from.column(first, |txns| &txns.names, value);
        });
        scope.spawn(|_| to.lines = from.column(first, |txns| &txns.lines, as_is));
        scope.spawn(|_| to.starts = from.column(first, |txns| &txns.starts, as_is));
        scope.spawn(|_| to.finishes = from.column(last, |txns| &txns.finishes, as_is));
        scope.spawn(|_| to.db_starts = from.column(first, |txns| &txns.db_starts, as_is));
        scope.spawn(|_| to.db_commits = from.column(last, |txns| &txns.db_commits, as_is));
        scope.spawn(|_| to.sessions = from.sessions());
        scope.spawn(|_| to.texts = from.texts());
    });
    txns
}

fn first(pieces: &[Piece]) -> Option<&Piece> {
    pieces.first()
}

fn last(pieces: &[Piece]) -> Option<&Piece> {
    pieces.last()
}

/// What needs no renumbering.
fn as_is<T>(_: Piece, value: T) -> T {
    value
}

/// Where columns are joined from.
#[derive(Clone, Copy)]
struct Gather<'a> {
    batches: &'a [Batch],
    grouping: &'a Grouping,
}

impl Gather<'_> {
    /// The first or last piece of every transaction, in the history's order.
    fn ends(
        &self,
        end: impl Fn(&[Piece]) -> Option<&Piece>,
    ) -> impl Iterator<Item = (usize, Piece)> {
        (0..self.grouping.len())
            .filter_map(move |txn| end(self.grouping.pieces_of(txn)).map(|piece| (txn, *piece)))
    }

    fn column<T: Copy>(
        &self,
        end: impl Fn(&[Piece]) -> Option<&Piece>,
        of: impl Fn(&TxnColumns) -> &Column<T>,
        renumber: impl Fn(Piece, T) -> T,
    ) -> Column<T> {
        let mut column = Column::default();
        if self.batches.iter().any(|batch| !of(&batch.txns).is_empty()) {
            for (txn, piece) in self.ends(end) {
                let row = of(&self.batches[piece.batch as usize].txns).get(piece.row as usize);
                column.set(txn, row.map(|value| renumber(piece, value)));
            }
        }
        column
    }

    fn op_ends(&self) -> Vec<u32> {
        let mut end = 0;
        (0..self.grouping.len())
            .map(|txn| {
                for piece in self.grouping.pieces_of(txn) {
                    end += piece.op_range(self.batches).len() as u32;
                }
                end
            })
            .collect()
    }

    fn outcomes(&self) -> Vec<Outcome> {
        let outcome = |(_, piece): (usize, Piece)| {
            self.batches[piece.batch as usize].txns.outcomes[piece.row as usize]
        };
        self.ends(last).map(outcome).collect()
    }

    fn sessions(&self) -> Vec<u32> {
        let mut sessions = Vec::with_capacity(self.grouping.len());
        for (session, end) in self.grouping.session_ends.iter().enumerate() {
            sessions.resize(*end as usize, session as u32);
        }
        sessions
    }

    fn texts(&self) -> Vec<(u32, TxnTexts)> {
        if self.batches.iter().all(|batch| batch.txns.texts.is_empty()) {
            return Vec::new();
        }
        self.ends(last)
            .filter_map(|(txn, piece)| {
                let texts = &self.batches[piece.batch as usize].txns.texts;
                let at = texts.binary_search_by_key(&piece.row, |(row, _)| *row).ok()?;
                Some((txn as u32, texts[at].1.clone()))
            })
            .collect()
    }
}
