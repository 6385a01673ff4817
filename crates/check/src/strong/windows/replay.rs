//! Plays an order back, and finds what it gets wrong.
//!
//! A read is right in an order if the last version before it is the one that it saw. To know that takes
//! one number per key: who wrote it last. Where all reads are right, writers of a key do not overlap if they
//! must not, and what is known leads forward, the order is a solution: of two versions of a key, the
//! writer of the earlier one comes first, and so do its readers, before whom the later one would be the
//! last. So every choice is settled, and none has to be written down.
//!
//! Pieces of the order are played back on all cores, each without what came before it. What a piece asks
//! of keys that it has not written by then is answered once the pieces before it are done.

use isolario_model::{KeyId, TxnId};
use rayon::prelude::*;

use super::Question;
use crate::resolved::writes;

/// What an order gets wrong, and what it says of reads that may have seen several versions.
pub(super) struct Played {
    /// The first and the last place of each thing that is wrong.
    pub(super) wrong: Vec<(u32, u32)>,
    /// Per open read, who wrote the last version before it, where that is right.
    pub(super) saw: Vec<Option<TxnId>>,
}

/// Plays back the nodes of an order, with the place of each.
pub(super) fn replay(question: &Question<'_>, nodes: &[u32], places: &[u32]) -> Played {
    let share = nodes.len().div_ceil(rayon::current_num_threads()).max(1);
    let pieces: Vec<Piece<'_, '_>> = nodes
        .par_chunks(share)
        .map(|nodes| {
            let mut piece = Piece::new(question, places, NOBODY_KNOWS);
            nodes.iter().for_each(|node| piece.play(*node));
            piece
        })
        .collect();
    let mut whole = Piece::new(question, places, TxnId::INIT);
    for piece in pieces {
        whole.append(piece);
    }
    let mut saw = vec![None; question.open.reads.len()];
    whole.saw.iter().for_each(|(read, writer)| saw[*read as usize] = Some(*writer));
    Played { wrong: whole.wrong, saw }
}

/// Where a piece of the order has not written a key yet. There are fewer transactions.
const NOBODY_KNOWS: TxnId = TxnId(u32::MAX - 1);

/// What is asked of the last version of a key.
#[derive(Clone, Copy)]
enum Asked {
    /// That it is the one that somebody read.
    Read { reader: TxnId, writer: TxnId },
    /// That it is one of those that somebody may have read.
    Open { reader: TxnId, read: u32 },
    /// That it was there when whoever replaces it started.
    Replace { writer: TxnId },
}

struct Piece<'q, 'a> {
    question: &'q Question<'a>,
    places: &'q [u32],
    /// By key, who wrote it last; and one more place for what is no write.
    last: Vec<TxnId>,
    /// What was asked of keys that were not written by then.
    pending: Vec<(KeyId, Asked)>,
    wrong: Vec<(u32, u32)>,
    saw: Vec<(u32, TxnId)>,
}

impl<'q, 'a> Piece<'q, 'a> {
    fn new(question: &'q Question<'a>, places: &'q [u32], first: TxnId) -> Self {
        let last = vec![first; question.history().key_count() + 1];
        let (pending, wrong, saw) = (Vec::new(), Vec::new(), Vec::new());
        Piece { question, places, last, pending, wrong, saw }
    }

    fn play(&mut self, node: u32) {
        let layout = self.question.layout;
        let Some(txn) = layout.txn(node).filter(|txn| self.question.reads().is_kept(*txn)) else {
            return;
        };
        if node == layout.start(txn) {
            self.read_all(txn);
        }
        if node == layout.commit(txn) {
            self.write_all(txn);
        }
    }

    fn read_all(&mut self, reader: TxnId) {
        let question = self.question;
        let (history, reads) = (question.history(), question.reads());
        reads.for_each_writer(history.op_range(reader), |read, writer| {
            let key = history.op_keys()[read];
            if self.last[key.index()] != writer {
                self.ask(key, Asked::Read { reader, writer });
            }
        });
        for read in question.open_reads(reader) {
            let key = history.op_keys()[question.open.reads[read].index()];
            self.ask(key, Asked::Open { reader, read: read as u32 });
        }
    }

    fn write_all(&mut self, writer: TxnId) {
        let history = self.question.history();
        let ops = history.op_range(writer);
        let (keys, kinds) = (&history.op_keys()[ops.clone()], &history.op_kinds()[ops]);
        if self.question.layout.is_exclusive() {
            for (key, _) in keys.iter().zip(kinds).filter(|(_, kind)| writes(**kind)) {
                self.ask(*key, Asked::Replace { writer });
            }
        }
        // Without a branch: reads and writes come in no order that a processor could guess.
        let none = self.last.len() - 1;
        for (key, kind) in keys.iter().zip(kinds) {
            let place = if writes(*kind) { key.index() } else { none };
            self.last[place] = writer;
        }
    }

    fn ask(&mut self, key: KeyId, asked: Asked) {
        match self.last[key.index()] {
            NOBODY_KNOWS => self.pending.push((key, asked)),
            last => self.answer(last, asked),
        }
    }

    fn answer(&mut self, last: TxnId, asked: Asked) {
        match asked {
            Asked::Read { writer, .. } if last == writer => {}
            Asked::Open { read, .. }
                if self.question.candidates(read as usize).any(|c| c == last) =>
            {
                self.saw.push((read, last));
            }
            Asked::Replace { writer }
                if last.is_init()
                    || last == writer
                    || self.commit(last) < self.place(self.question.layout.start(writer)) => {}
            Asked::Read { reader, writer } => {
                self.wrong.push(self.wrong_read(reader, writer, last));
            }
            Asked::Open { reader, read } => {
                let nearest = self.nearest(reader, read);
                self.wrong.push(self.span(nearest, reader));
            }
            Asked::Replace { writer } => {
                let start = self.place(self.question.layout.start(writer));
                self.wrong.push((start, self.commit(writer)));
            }
        }
    }

    /// A version that lies between a read and what it saw belongs after the one or before the other:
    /// whichever is nearer.
    fn wrong_read(&self, reader: TxnId, writer: TxnId, last: TxnId) -> (u32, u32) {
        let after = self.span(last, reader);
        if writer.is_init() || last.is_init() {
            return after;
        }
        let before = self.span(last, writer);
        if before.1 - before.0 < after.1 - after.0 { before } else { after }
    }

    /// Of those who may have written what a read saw, the one nearest to the reader.
    fn nearest(&self, reader: TxnId, read: u32) -> TxnId {
        let start = self.place(self.question.layout.start(reader));
        let distance = |writer: &TxnId| match writer.is_init() {
            true => start,
            false => self.commit(*writer).abs_diff(start),
        };
        self.question.candidates(read as usize).min_by_key(distance).unwrap_or(TxnId::INIT)
    }

    /// The places from the commit of a writer to another transaction, or the other way round; those of the
    /// other one alone where nobody wrote.
    fn span(&self, writer: TxnId, other: TxnId) -> (u32, u32) {
        let (start, end) = (self.place(self.question.layout.start(other)), self.commit(other));
        match writer.is_init() {
            true => (start, end),
            false => (start.min(self.commit(writer)), end.max(self.commit(writer))),
        }
    }

    fn commit(&self, txn: TxnId) -> u32 {
        self.place(self.question.layout.commit(txn))
    }

    fn place(&self, node: u32) -> u32 {
        self.places[node as usize]
    }

    /// Goes on with what another piece found.
    fn append(&mut self, piece: Piece<'_, '_>) {
        for (key, asked) in piece.pending {
            self.ask(key, asked);
        }
        self.wrong.extend(piece.wrong);
        self.saw.extend(piece.saw);
        for (last, next) in self.last.iter_mut().zip(piece.last) {
            if next != NOBODY_KNOWS {
                *last = next;
            }
        }
    }
}
