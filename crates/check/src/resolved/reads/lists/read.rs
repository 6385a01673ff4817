//! One read of a list.

use isolario_model::{Anomaly, AnomalyKind, Evidence, OpId, TxnId, ValueId};

use super::appends::{Access, Appender, Appends, Live, element};
use super::scan::{Fault, Prefix, Scan};
use super::{Part, Seen};
use crate::resolved::AmbiguousRead;

/// What was read of a list.
pub(super) struct List<'s, 'a> {
    pub(super) appends: &'s Appends<'a>,
    pub(super) scan: &'s Scan,
    pub(super) elements: &'s [ValueId],
}

/// A read, and its transaction's own appends to the list.
struct Reading<'s> {
    read: Access,
    own: &'s [Access],
}

impl List<'_, '_> {
    /// Resolves a read, given its transaction's own appends. Leaves in `part` what is wrong or
    /// ambiguous about it.
    pub(super) fn read(&self, read: Access, own: &[Access], part: &mut Part) -> Seen {
        let reading = Reading { read, own };
        let (own_result, foreign) = match reading.own.is_empty() {
            true => (Ok(()), self.elements.len()),
            false => self.split_own(&reading),
        };
        let last_writer = self.last_writer(&reading, foreign, part);
        let wrong = self.wrong(read.op, own_result, self.scan.prefix(foreign));
        let is_right = wrong.is_none();
        if let Some(wrong) = wrong {
            part.dirty_updates.extend(self.dirty_update(read, foreign, &wrong));
            if let Wrong::Ambiguous(first, second) = wrong
                && last_writer.is_some()
            {
                part.ambiguous.push(AmbiguousRead { read: read.op, first, second });
            }
            part.wrong.push(match wrong {
                Wrong::Ambiguous(..) => None,
                Wrong::Found(anomaly) => Some(anomaly),
            });
        }
        Seen { foreign: foreign as u32, is_right, last_writer }
    }

    /// That somebody built on what an aborted transaction had appended, where that is what is wrong.
    fn dirty_update(
        &self,
        read: Access,
        foreign: usize,
        wrong: &Wrong,
    ) -> Option<(Access, Anomaly)> {
        match wrong {
            Wrong::Found(Anomaly {
                kind: AnomalyKind::AbortedRead,
                evidence: Evidence::Read { saw, instead: None, .. },
                ..
            }) => {
                let instead = Some(self.scan.built(foreign)?);
                let evidence = Evidence::Read { read: read.op, saw: *saw, instead };
                Some((read, Anomaly::new(AnomalyKind::DirtyUpdate, evidence)))
            }
            _ => None,
        }
    }

    /// Who appended the last element that is not the reader's own.
    fn last_writer(&self, reading: &Reading<'_>, foreign: usize, part: &mut Part) -> Option<TxnId> {
        let is_own = |at: &usize| {
            let word = self.elements[*at].to_bits();
            reading.own.iter().any(|append| element(self.appends.history, *append) == word)
        };
        let Some(last) = (0..foreign).rev().find(|at| !is_own(at)) else {
            return Some(TxnId::INIT);
        };
        match self.appends.appender(self.scan.append_at(last)?) {
            Appender { txn, other: None, .. } => Some(txn),
            Appender { live: Live::None, .. } => None,
            Appender { txn: first, other: Some(second), .. } => {
                part.ambiguous.push(AmbiguousRead { read: reading.read.op, first, second });
                None
            }
        }
    }

    fn wrong(&self, read: OpId, own: Result<(), Anomaly>, prefix: Prefix) -> Option<Wrong> {
        let found = |Fault { kind, saw, instead }| {
            Wrong::Found(Anomaly::new(kind, Evidence::Read { read, saw, instead }))
        };
        match (own, prefix) {
            (Err(own), _) => Some(Wrong::Found(own)),
            (_, Prefix { fault: Some(fault), .. }) => Some(found(fault)),
            (_, Prefix { ambiguous: Some((first, second)), .. }) => {
                Some(Wrong::Ambiguous(first, second))
            }
            (_, Prefix { out_of_turn: Some(fault), .. }) => Some(found(fault)),
            (_, Prefix { missing: Some((saw, next)), .. }) => {
                let kind = AnomalyKind::IntermediateRead;
                Some(found(Fault { kind, saw: Some(saw), instead: Some(next) }))
            }
            (Ok(()), _) => None,
        }
    }

    /// How much is left of a list without the reader's own appends at its end, and whether those are
    /// right.
    fn split_own(&self, reading: &Reading<'_>) -> (Result<(), Anomaly>, usize) {
        let Reading { read: Access { txn: reader, op: read }, own } = *reading;
        let history = self.appends.history;
        let word = |append: &Access| element(history, *append);
        let wrong =
            |kind, saw, instead| Err(Anomaly::new(kind, Evidence::Read { read, saw, instead }));
        let before = &own[..own.partition_point(|append| append.op < read)];
        let foreign = self.elements.len().checked_sub(before.len());
        let ends_with_own = |foreign: &usize| {
            self.elements[*foreign..].iter().map(|e| e.to_bits()).eq(before.iter().map(word))
        };
        let Some(foreign) = foreign.filter(ends_with_own) else {
            let is_shown =
                |append: &&Access| self.elements.iter().any(|e| e.to_bits() == word(append));
            let last = before.last().map(|append| append.op);
            let result = match before.iter().rfind(is_shown).map(|append| append.op) {
                seen if seen.is_some() && seen < last => {
                    wrong(AnomalyKind::NotMyLastWrite, seen, last)
                }
                _ => wrong(AnomalyKind::NotMyOwnWrite, None, last),
            };
            return (result, self.elements.len());
        };
        // An own element among the others' is from the future, or there twice. Unless somebody
        // else appended it, too: then it may be theirs, if they did not abort.
        let misplaced = own.iter().rev().find_map(|append| {
            let of_element = self.appends.find(word(append))?;
            let appender = self.appends.appender(of_element);
            let is_foreign = self.scan.shows(of_element, foreign);
            (is_foreign && appender.live != Live::Several).then_some((append, appender))
        });
        let result = match misplaced {
            None => Ok(()),
            Some((append, _)) if append.op > read => {
                wrong(AnomalyKind::FutureRead, Some(append.op), None)
            }
            Some((append, Appender { txn, other: Some(other), .. })) => {
                let aborted = if txn == reader { other } else { txn };
                let seen = self.appends.last_append(aborted, word(append));
                wrong(AnomalyKind::AbortedRead, seen, None)
            }
            Some((append, _)) => wrong(AnomalyKind::DuplicateElements, Some(append.op), None),
        };
        (result, foreign)
    }
}

/// Why a read is not right.
enum Wrong {
    /// Two transactions may have appended what it shows.
    Ambiguous(TxnId, TxnId),
    Found(Anomaly),
}
