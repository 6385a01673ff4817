//! Read uncommitted: versions are not mixed up, whatever reads saw (Adya's PL-1, no G0).
//!
//! Adya takes the order of versions as given. Here it is what the history shows of it, and where that
//! leaves a choice, some order has to do:
//!
//! - A list shows the order of its elements. Reads may be dirty, so that aborted and invented
//!   elements, and transactions of which a part is missing, mean nothing. What remains of all reads
//!   are prefixes of one list: lists never forget.
//! - Who read a register and then wrote it wrote the later version, unless no order that agrees with what
//!   is stated of the key says so: G0 is about the order of versions, and reads only suggest one. A version
//!   is the last write of the key by its transaction: a read of an earlier one says nothing.
//! - What is stated is stated, and what is assumed of registers holds of the versions that committed.
//!
//! The elements of one transaction may stand in any order among themselves: G0 is about different
//! ones. A transaction of unknown outcome committed or not, also if it was read from: dirty reads are
//! allowed.

use isolario_model::{Level, Outcome, StatedOrder};

use crate::Options;
use crate::adya::{Forbidden, Graph, agrees_with_statements, some_orders, some_permutation};
use crate::guaranteed::{self, Access, follows};
use crate::small::{MAX_TXNS, Read, Seen, Small, Txns, Write, bit, members};
use crate::worlds::{given_order, outcomes, some_choice, stated_order};

/// Whether some outcomes and some orders of versions have no cycle of overwrites.
pub(crate) fn satisfied(
    small: &Small,
    level: Level,
    options: Options,
    stated: &[StatedOrder],
) -> bool {
    let contradicted = Contradicted::new(small, stated);
    outcomes(small).any(|committed| {
        let Some(stated) = stated_order(stated, committed) else { return false };
        let writes = Writes::new(small, committed);
        let reads: Vec<&Read> =
            small.reads.iter().filter(|r| committed & bit(r.txn) != 0).collect();
        let lists: Vec<(usize, Vec<u64>)> =
            reads.iter().filter_map(|read| Some((read.key, writes.shown(read)?))).collect();
        let seen: Vec<Vec<SeenVersion>> = reads.iter().filter_map(|r| writes.seen(r)).collect();
        let written = small.writes.iter().filter(|w| committed & bit(w.txn) != 0 && !w.appends);
        let write = |w: &Write| Access { txn: w.txn, at: w.at, key: w.key, version: Some(w.txn) };
        let written: Vec<Access> = written.map(write).collect();
        let graph = Graph::new(&given_order(small, level, options, committed));
        fit_together(&lists)
            && some_choice(&seen, &mut Vec::new(), &|seen| {
                let before = seen.iter().filter_map(|seen| seen.overwritten);
                let before: Vec<Before> = before.filter(|b| !contradicted.contains(b)).collect();
                let read = seen.iter().filter_map(|seen| seen.access);
                let accesses: Vec<Access> = read.chain(written.iter().copied()).collect();
                let follows = follows(small, options, &accesses);
                some_orders(&graph, Forbidden::ALL, &writes.writers, 0, &|graph, key, order| {
                    graph.add_overwrites(order);
                    let mut of_key = lists.iter().filter(|(of, _)| *of == key);
                    agrees_with_statements(&stated, order)
                        && guaranteed::agrees(&follows, key, order)
                        && agrees_with_statements(&known(&before, key), order)
                        && of_key.all(|(_, shown)| writes.explain(key, order, shown))
                })
            })
    })
}

/// That a transaction, if it is one that committed, wrote a key before another one did.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Before {
    first: Option<usize>,
    second: usize,
    key: usize,
}

/// What statements rule out, whoever of those that did not abort committed.
struct Contradicted(Vec<Before>);

impl Contradicted {
    fn new(small: &Small, stated: &[StatedOrder]) -> Contradicted {
        let mut contradicted = Vec::new();
        for key in 0..small.history.key_count() {
            let of_key: Vec<&StatedOrder> =
                stated.iter().filter(|order| order.key.index() == key).collect();
            if of_key.is_empty() {
                continue;
            }
            let may_count = |w: &&Write| w.key == key && small.outcomes[w.txn] != Outcome::Aborted;
            let writers = small.writes.iter().filter(may_count).fold(0, |all, w| all | bit(w.txn));
            let some_order = |holds: &dyn Fn(&[usize]) -> bool| {
                some_permutation(writers, &mut Vec::new(), &|order| {
                    of_key.iter().all(|stated| is_in_order(stated, order)) && holds(order)
                })
            };
            if !some_order(&|_| true) {
                continue;
            }
            for (first, second) in
                members(writers).flat_map(|one| members(writers).map(move |other| (one, other)))
            {
                let place = |order: &[usize], txn| order.iter().position(|other| *other == txn);
                if !some_order(&|order| place(order, first) < place(order, second)) {
                    contradicted.push(Before { first: Some(first), second, key });
                }
            }
        }
        Contradicted(contradicted)
    }

    fn contains(&self, before: &Before) -> bool {
        self.0.contains(before)
    }
}

/// Whether the writers that a statement names are in that order, as far as they are there at all.
fn is_in_order(stated: &StatedOrder, order: &[usize]) -> bool {
    let named = stated.writers.iter().filter(|writer| !writer.is_init());
    let mut places: Vec<usize> =
        named.filter_map(|w| order.iter().position(|txn| *txn == w.index())).collect();
    places.dedup();
    places.is_sorted_by(|one, other| one < other)
}

/// What a read of a register says if it saw one of the writes that it may have seen.
#[derive(Clone, Copy)]
struct SeenVersion {
    /// That its transaction overwrote that version.
    overwritten: Option<Before>,
    /// The access to the version, if it is one that committed.
    access: Option<Access>,
}

/// Per transaction, those that wrote the key before it.
fn known(before: &[Before], key: usize) -> [Txns; MAX_TXNS] {
    let mut known = [0; MAX_TXNS];
    for Before { first, second, .. } in before.iter().filter(|before| before.key == key) {
        known[*second] |= first.map_or(0, bit);
    }
    known
}

/// Whether of any two lists of a key one begins the other.
fn fit_together(lists: &[(usize, Vec<u64>)]) -> bool {
    lists.iter().all(|(key, one)| {
        let of_key = lists.iter().filter(|(other, _)| other == key);
        of_key.into_iter().all(|(_, other)| one.starts_with(other) || other.starts_with(one))
    })
}

/// What those who committed wrote.
struct Writes<'s, 'h> {
    small: &'s Small<'h>,
    committed: Txns,
    /// Per key, who wrote it.
    writers: Vec<Txns>,
}

impl<'s, 'h> Writes<'s, 'h> {
    fn new(small: &'s Small<'h>, committed: Txns) -> Self {
        let mut writers = vec![0; small.history.key_count()];
        let of_committed = small.writes.iter().filter(|write| committed & bit(write.txn) != 0);
        of_committed.for_each(|write| writers[write.key] |= bit(write.txn));
        Writes { small, committed, writers }
    }

    /// The committed elements that a list shows, the reader's own appends so far left out if they are
    /// at its end and nowhere else. None if it is no list.
    fn shown(&self, read: &Read) -> Option<Vec<u64>> {
        let Seen::List(elements) = read.seen else { return None };
        let words: Vec<u64> = elements.iter().map(|element| element.to_bits()).collect();
        let is_own = |w: &&Write| w.txn == read.txn && w.key == read.key && w.at < read.at;
        let own: Vec<u64> = self.small.writes.iter().filter(is_own).map(|w| w.word).collect();
        let others = words.strip_suffix(own.as_slice());
        let others = others.filter(|others| !others.iter().any(|word| own.contains(word)));
        let others = others.unwrap_or(&words);
        let has_committed = |word: &u64| {
            self.small.writes_of(read.key, *word).any(|w| self.committed & bit(w.txn) != 0)
        };
        Some(others.iter().copied().filter(has_committed).collect())
    }

    /// What a read of a register may have seen of others; none if it saw its own transaction's write, if
    /// nobody wrote what it saw, or if it is of a list.
    fn seen(&self, read: &Read) -> Option<Vec<SeenVersion>> {
        let Seen::Version(word) = read.seen else { return None };
        let (key, txn, at) = (read.key, read.txn, read.at);
        let mut own = self.small.writes.iter().filter(|w| w.txn == txn && w.key == key);
        let overwrites = own.clone().next().is_some_and(|first| first.at > at);
        let access = |version| Some(Access { txn, at, key, version });
        let last_own = own.rfind(|w| w.at < at);
        if last_own.is_some_and(|own| own.word == word) {
            return None;
        }
        let before = |first| overwrites.then_some(Before { first, second: txn, key });
        // A version is the last write of the key by its transaction.
        let is_version = |w: &Write| {
            let mut last = self.small.writes_of(key, word);
            last.any(|last| last.txn == w.txn && !last.replaced)
        };
        let writers = self.small.writes_of(key, word).map(|w| {
            let is_there = self.committed & bit(w.txn) != 0 && w.txn != txn;
            let first = Some(w.txn).filter(|_| is_there && is_version(&w));
            SeenVersion { overwritten: before(first), access: first.and_then(|w| access(Some(w))) }
        });
        let init = SeenVersion { overwritten: before(None), access: access(None) };
        let init = self.small.may_be_initial(key, word).then_some(init);
        Some(writers.chain(init).collect()).filter(|seen: &Vec<SeenVersion>| !seen.is_empty())
    }

    /// Whether a list shows what those who wrote the key appended, in this order of them: of each
    /// everything, but for the last that is shown.
    fn explain(&self, key: usize, order: &[usize], shown: &[u64]) -> bool {
        let mut rest = shown;
        for writer in order {
            let of_writer = |w: &&Write| w.txn == *writer && w.key == key && w.appends;
            let mut appended: Vec<u64> =
                self.small.writes.iter().filter(of_writer).map(|w| w.word).collect();
            let (now, later) = rest.split_at(rest.len().min(appended.len()));
            for element in now {
                match appended.iter().position(|other| other == element) {
                    Some(at) => appended.swap_remove(at),
                    None => return false,
                };
            }
            rest = later;
        }
        rest.is_empty()
    }
}
