//! The order of each key's versions, as far as it is known.
//!
//! It is known from three sources: lists show the order of their elements, and that what they do not
//! show came later; a transaction that read a version and then wrote the key wrote a later one; and
//! orders may be stated. Together they are edges between the versions of a key. From the initial
//! version on, the order is known for as long as a single version can be next. For registers that is
//! all or nothing to us. Of a list, the appends that nobody has read are left, its *tail*.
//!
//! The levels that forbid cycles with one anti-dependency know a little more, the *rule for tails*: if
//! one transaction read the last version before the tail and then appended, it is the first of the
//! tail. Anybody before it would have overwritten what it had read, and would be overwritten by it in
//! turn.

use isolario_model::{KeyId, OpKind};
use rayon::prelude::*;

use super::versions::Reader;
use super::{Dependencies, SharedVersions, Version, Versions};
use crate::graph::Rows;
use crate::order::Demand;

/// Per key, its versions in order.
pub(crate) struct VersionOrders {
    pub(crate) versions: SharedVersions,
    /// All versions, key by key: first those in a known order, then the others.
    sorted: Vec<Version>,
    /// Per version, its place among these.
    place: Vec<u32>,
    /// Per key, how many of its versions are in a known order.
    known: Vec<u32>,
    /// Per key, whether the last of these is known to be next only by the rule for tails.
    led: Vec<bool>,
    /// What is stated about the tails of lists.
    within_tails: Vec<(Version, Version)>,
    is_list: Vec<bool>,
}

/// Edges are bundled where there would be so many times as many as nodes.
const BUNDLED: usize = 16;

/// Whether the rule for the first of a tail is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TailRule {
    With,
    Without,
}

/// A version that two transactions overwrote which had both read it.
pub(crate) struct Divergence {
    pub(crate) key: KeyId,
    /// None for the initial version.
    pub(crate) version: Option<Version>,
    pub(crate) first: Reader,
    pub(crate) second: Reader,
}

impl VersionOrders {
    /// The orders that reads and statements show. The reads must be right and agree with each other.
    pub(crate) fn new(dependencies: &Dependencies<'_>, versions: SharedVersions) -> Self {
        let pairs = known_pairs(dependencies, &versions);
        let successors = Rows::group(versions.len(), pairs.iter().map(|(a, b)| (a.0, *b)));
        let mut waits_for = vec![0u32; versions.len()];
        pairs.iter().for_each(|(_, after)| waits_for[after.0 as usize] += 1);
        let keys = versions.key_count();
        let mut orders = VersionOrders {
            sorted: Vec::with_capacity(versions.len()),
            place: Vec::new(),
            known: Vec::with_capacity(keys),
            led: vec![false; keys],
            within_tails: Vec::new(),
            is_list: lists(dependencies, keys),
            versions,
        };
        for key in (0..keys).map(KeyId::at) {
            orders.sort(key, &successors, &mut waits_for);
        }
        orders.place = places(&orders.sorted);
        let is_in_tail = |(before, _): &(Version, Version)| {
            let key = orders.versions.key(*before);
            orders.place_of(key, *before) >= orders.known[key.index()]
        };
        orders.within_tails = pairs.into_iter().filter(is_in_tail).collect();
        orders
    }

    /// Takes the one version that can be next for as long as there is just one; leaves the others as
    /// they are.
    fn sort(&mut self, key: KeyId, successors: &Rows<Version>, waits_for: &mut [u32]) {
        let begin = self.sorted.len();
        let of_key = self.versions.of(key);
        let mut next: Vec<Version> =
            of_key.clone().filter(|version| waits_for[version.0 as usize] == 0).collect();
        while let [only] = next[..] {
            self.sorted.push(only);
            next.clear();
            for after in successors.get(only.0 as usize) {
                let waits = &mut waits_for[after.0 as usize];
                *waits -= 1;
                if *waits == 0 {
                    next.push(*after);
                }
            }
        }
        let known = self.sorted.len() - begin;
        self.known.push(known as u32);
        if known < of_key.len() {
            let mut is_sorted: Vec<u32> = self.sorted[begin..].iter().map(|v| v.0).collect();
            is_sorted.sort_unstable();
            let is_left = |version: &Version| is_sorted.binary_search(&version.0).is_err();
            self.sorted.extend(of_key.filter(is_left));
            self.lead(key, begin);
        }
    }

    /// Puts the first of a tail where it belongs, if it is known.
    fn lead(&mut self, key: KeyId, begin: usize) {
        let end = begin + self.known[key.index()] as usize;
        let last = self.sorted[begin..end].last().copied();
        let mut overwriters = self.overwriters(key, last);
        let only = overwriters.next().filter(|_| overwriters.next().is_none());
        drop(overwriters);
        if let Some(leader) = only.and_then(|reader| self.versions.version(key, reader.txn))
            && let Some(at) = self.sorted[end..].iter().position(|version| *version == leader)
        {
            self.sorted[end..=end + at].rotate_right(1);
            self.known[key.index()] += 1;
            self.led[key.index()] = true;
        }
    }

    /// Those who read a version and then wrote the key; none is the initial version.
    fn overwriters(
        &self,
        key: KeyId,
        version: Option<Version>,
    ) -> impl Iterator<Item = Reader> + '_ {
        let writes = move |r: &&Reader| self.versions.version(key, r.txn).is_some();
        self.readers(key, version).iter().filter(writes).copied()
    }

    /// Those who read a version; none is the initial one.
    pub(crate) fn readers(&self, key: KeyId, version: Option<Version>) -> &[Reader] {
        match version {
            Some(version) => self.versions.readers(version),
            None => self.versions.initial_readers(key),
        }
    }

    /// The versions of a key in their order, as far as it is known, and the others.
    pub(crate) fn of(&self, key: KeyId, rule: TailRule) -> (&[Version], &[Version]) {
        let of_key = self.versions.of(key);
        let start = of_key.clone().next().map_or(0, |first| first.0 as usize);
        let by_rule = rule == TailRule::Without && self.led[key.index()];
        let known = self.known[key.index()] as usize - usize::from(by_rule);
        self.sorted[start..start + of_key.len()].split_at(known)
    }

    /// The place of a version among those of its key.
    fn place_of(&self, key: KeyId, version: Version) -> u32 {
        let start = self.versions.of(key).next().map_or(0, |first| first.0);
        self.place[version.0 as usize] - start
    }

    /// Whether a version may be the next one after another, with the rule for tails or without; none
    /// is the initial version.
    pub(crate) fn is_next(&self, key: KeyId, before: Option<Version>, after: Version) -> bool {
        let next = before.map_or(0, |before| self.place_of(key, before) + 1);
        let (place, led) = (self.place_of(key, after), self.known[key.index()]);
        let shown = led - u32::from(self.led[key.index()]);
        if next < shown { place == next } else { next <= led && place >= next }
    }

    /// All keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = KeyId> + use<> {
        (0..self.known.len()).map(KeyId::at)
    }

    /// Whether a key holds a list.
    pub(crate) fn is_list(&self, key: KeyId) -> bool {
        self.is_list[key.index()]
    }

    /// The version that is the first of its tail by the rule for tails alone.
    pub(crate) fn leader(&self, key: KeyId) -> Option<Version> {
        self.of(key, TailRule::With).0.last().copied().filter(|_| self.led[key.index()])
    }

    /// A register whose versions are not all in a known order.
    pub(crate) fn incomplete(&self) -> Option<KeyId> {
        self.keys().find(|key| !self.is_list(*key) && !self.tail(*key).is_empty())
    }

    /// Whether the order of some versions is a choice.
    pub(crate) fn has_tails(&self) -> bool {
        self.keys().any(|key| !self.tail(key).is_empty())
    }

    /// The versions of a key that are in no known order, with the rule for tails applied.
    pub(crate) fn tail(&self, key: KeyId) -> &[Version] {
        self.of(key, TailRule::With).1
    }

    /// The overwrites: who wrote a version before who wrote the next one, and before all of a tail.
    pub(crate) fn overwrites(&self, rule: TailRule) -> Vec<Demand> {
        let writer = |version: Version| self.versions.writer(version).0;
        let mut edges = Vec::with_capacity(self.sorted.len());
        for key in self.keys() {
            let (known, tail) = self.of(key, rule);
            edges.extend(known.windows(2).map(|pair| (writer(pair[0]), writer(pair[1]))));
            if let Some(last) = known.last() {
                edges.extend(tail.iter().map(|after| (writer(*last), writer(*after))));
            }
        }
        edges.extend(self.within_tails.iter().map(|(a, b)| (writer(*a), writer(*b))));
        edges
    }

    /// The anti-dependencies: who read a version before who wrote the next one, or any of a tail.
    pub(crate) fn anti_dependencies(&self, rule: TailRule) -> impl Iterator<Item = Demand> + '_ {
        self.keys().flat_map(move |key| {
            self.overwritten(key, rule).flat_map(move |(readers, next)| {
                let pairs = readers.iter().flat_map(move |reader| {
                    next.iter().map(move |next| (reader.txn.0, self.versions.writer(*next).0))
                });
                pairs.filter(|(reader, writer)| reader != writer)
            })
        })
    }

    /// The same for the question what leads where: if many read what comes before a long tail, their
    /// edges pass through a node of its own. Nodes are numbered from `first` on, and the number after
    /// the last one is told.
    ///
    /// Those who read the last version and are of the tail themselves do not come before themselves.
    /// Each of them comes before all others, so that a cycle of them and one edge into it are as good
    /// as all edges between them.
    pub(crate) fn bundled_anti_dependencies(
        &self,
        rule: TailRule,
        first: u32,
    ) -> (Vec<Demand>, u32) {
        self.bundled(rule, first, BUNDLED)
    }

    fn bundled(&self, rule: TailRule, first: u32, many: usize) -> (Vec<Demand>, u32) {
        let (mut edges, mut node) = (Vec::new(), first);
        for key in self.keys() {
            for (readers, next) in self.overwritten(key, rule) {
                let writers = next.iter().map(|next| self.versions.writer(*next).0);
                let read_by = readers.iter().map(|reader| reader.txn.0);
                if readers.len() * next.len() <= many * (readers.len() + next.len()) {
                    for reader in read_by {
                        let others = writers.clone().filter(|writer| *writer != reader);
                        edges.extend(others.map(|writer| (reader, writer)));
                    }
                    continue;
                }
                let bundle = node;
                node += 1;
                let mut of_tail: Vec<u32> = writers.collect();
                of_tail.sort_unstable();
                let is_of_tail = |txn: u32| of_tail.binary_search(&txn).is_ok();
                let mut both: Vec<u32> = read_by.clone().filter(|txn| is_of_tail(*txn)).collect();
                both.sort_unstable();
                let only_write = of_tail.iter().filter(|txn| both.binary_search(txn).is_err());
                edges.extend(only_write.map(|writer| (bundle, *writer)));
                edges.extend(read_by.clone().map(|reader| (reader, bundle)));
                let only_read = read_by.filter(|txn| !is_of_tail(*txn));
                edges.extend(only_read.zip(both.first().copied().into_iter().cycle()));
                let next = both.iter().cycle().skip(1);
                let around = both.iter().zip(next).filter(|(one, other)| one != other);
                edges.extend(around.map(|(one, other)| (*one, *other)));
            }
        }
        (edges, node)
    }

    /// The versions of a key that are overwritten, by who read them and what may come next.
    fn overwritten(
        &self,
        key: KeyId,
        rule: TailRule,
    ) -> impl Iterator<Item = (&[Reader], &[Version])> + '_ {
        let (known, tail) = self.of(key, rule);
        let versions = std::iter::once(None).chain(known.iter().copied().map(Some));
        versions.enumerate().map(move |(at, version)| {
            let next = known.get(at).map_or(tail, std::slice::from_ref);
            (self.readers(key, version), next)
        })
    }

    /// Versions that several transactions overwrote which had all read it; the first two of each.
    pub(crate) fn divergences(&self) -> Vec<Divergence> {
        let mut found = Vec::new();
        for key in self.keys() {
            let versions = std::iter::once(None).chain(self.versions.of(key).map(Some));
            for version in versions {
                let mut overwriters = self.overwriters(key, version);
                if let (Some(first), Some(second)) = (overwriters.next(), overwriters.next()) {
                    found.push(Divergence { key, version, first, second });
                }
            }
        }
        found
    }

    /// Whether nobody overwrote the version of a divergence but the two whom it names.
    pub(crate) fn is_overwritten_twice(&self, divergence: &Divergence) -> bool {
        self.overwriters(divergence.key, divergence.version).count() == 2
    }
}

/// Which version comes before which, as far as something shows it.
pub(super) fn known_pairs(
    dependencies: &Dependencies<'_>,
    versions: &Versions,
) -> Vec<(Version, Version)> {
    let shown = dependencies.reads.version_order.par_iter().filter_map(|edge| {
        let version = |writer| versions.version(edge.key, writer);
        version(edge.before).zip(version(edge.after))
    });
    let updated = (0..versions.len() as u32).into_par_iter().map(Version).flat_map_iter(|before| {
        let key = versions.key(before);
        let readers = versions.readers(before).iter();
        let written = readers.filter_map(move |reader| versions.version(key, reader.txn));
        written.map(move |after| (before, after))
    });
    shown.chain(updated).collect()
}

/// Per key, whether it holds a list.
fn lists(dependencies: &Dependencies<'_>, keys: usize) -> Vec<bool> {
    let history = dependencies.history;
    let mut is_list = vec![false; keys];
    for (kind, key) in history.op_kinds().iter().zip(history.op_keys()) {
        if *kind == OpKind::Append {
            is_list[key.index()] = true;
        }
    }
    is_list
}

/// Per version, its place in an order of all.
fn places(sorted: &[Version]) -> Vec<u32> {
    let mut places = vec![0u32; sorted.len()];
    for (place, version) in (0..).zip(sorted) {
        places[version.0 as usize] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use isolario_oracle::random::Case;

    use super::*;
    use crate::resolved::Reads;

    /// Which of the first nodes lead to which of them.
    fn closure(nodes: usize, edges: &[Demand], first: usize) -> Vec<Vec<bool>> {
        let mut leads = vec![vec![false; nodes]; nodes];
        edges.iter().for_each(|(from, to)| leads[*from as usize][*to as usize] = true);
        for via in 0..nodes {
            for from in 0..nodes {
                for to in 0..nodes {
                    leads[from][to] |= leads[from][via] && leads[via][to];
                }
            }
        }
        leads.truncate(first);
        leads.iter_mut().for_each(|row| row.truncate(first));
        leads
    }

    #[test]
    fn bundles_lead_where_the_edges_lead_that_they_stand_for() {
        let mut bundles = 0;
        for case in Case::first(5_000) {
            let history = case.list_draft().history().unwrap();
            let reads = Reads::resolve(&history);
            if !reads.anomalies.is_empty() || reads.choices.refusal.is_some() {
                continue;
            }
            let dependencies = Dependencies::new(&history, reads, true);
            let versions = Versions::new(&dependencies).into();
            let orders = VersionOrders::new(&dependencies, versions);
            let txns = history.txn_count();
            for rule in [TailRule::With, TailRule::Without] {
                let all: Vec<_> = orders.anti_dependencies(rule).collect();
                let (edges, nodes) = orders.bundled(rule, txns as u32, 0);
                bundles += nodes as usize - txns;
                let bundled = closure(nodes as usize, &edges, txns);
                assert_eq!(bundled, closure(txns, &all, txns), "{}", case.list_draft());
            }
        }
        assert!(bundles > 1000);
    }
}
