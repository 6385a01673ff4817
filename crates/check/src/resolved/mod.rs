//! What every checker stands on: a history whose reads are resolved.
//!
//! - *Accesses*: which operation reads or writes which key, and whom a read is from. An operation on
//!   a register or a list is one access to one key, so that the columns of the history together
//!   with a column of sources ([`Reads`]) are the table of all accesses, and nothing is copied.
//!   [`Dependencies`] is that table as a graph, [`WriteSets`] answers who writes what.
//! - *Versions*: per key its versions with their writers and readers ([`Versions`]), and what is
//!   known of their order: what read-modify-writes show ([`Overwrites`]), what lists show, what is
//!   stated ([`VersionEdge`]) and what is assumed ([`guaranteed`]); and all of that together
//!   ([`VersionOrders`]).
//! - *Choices*: what observations leave open ([`Choices`]).
//!
//! All of it is data about the history alone. What a level makes of it is up to the checkers, none
//! of which knows another.

mod accesses;
mod choices;
mod contents;
mod dependencies;
mod guaranteed;
mod guess;
mod overwrites;
mod reads;
mod relation;
mod version_orders;
mod versions;
mod write_sets;

use std::sync::{Arc, OnceLock};

use isolario_model::{History, OpFamily, OpId, OpKind, TxnId};

pub(crate) use accesses::writes;
pub(crate) use choices::{AmbiguousRead, Choices, MetRows, OpenReads};
pub(crate) use contents::{InitialContent, InitialContents};
pub(crate) use dependencies::Dependencies;
pub(crate) use guaranteed::{cyclic_versions, guaranteed};
pub(crate) use guess::{Clue, Guess, commit_order as guess_order, suggested as suggested_order};
pub(crate) use overwrites::Overwrites;
pub(crate) use reads::lists;
pub(crate) use reads::{Reads, Source};
pub(crate) use relation::{Inferred, Saturated};
pub(crate) use version_orders::{Divergence, TailRule, VersionOrders};
pub(crate) use versions::{KnownBy, Reader, Version, VersionEdge, Versions, stated, writes_key};
pub(crate) use write_sets::{KeySet, WriteSets, filter_bit};

use crate::CheckOptions;
use crate::graph::{
    InEdges, InTime, Moments, RealTime, agrees, commit_of, precedes, start_of, topological_order,
};
use crate::order::{self, OrderRule, Patience};

/// Versions that the problems of several levels are about.
pub(crate) type SharedVersions = Arc<Versions>;

/// A resolved history. What only some checkers need is worked out when one first asks for it.
pub(crate) struct Resolved<'h> {
    pub(crate) dependencies: Dependencies<'h>,
    /// Where searches for an order begin.
    pub(crate) guess: Guess,
    /// A topological order of session order ∪ write-read, if there is one.
    pub(crate) order: Option<Vec<u32>>,
    /// Whether something is assumed of the order of versions.
    pub(crate) assumes_orders: bool,
    clock_skew: u64,
    write_sets: OnceLock<Arc<WriteSets<'h>>>,
    versions: OnceLock<SharedVersions>,
    real_time: OnceLock<RealTime>,
}

impl<'h> Resolved<'h> {
    /// Resolves a history that has only operations on registers and lists.
    #[cfg(test)]
    pub(crate) fn new(history: &'h History, options: &CheckOptions) -> Self {
        Resolved::with_matched(history, &[], options)
    }

    /// The same with rows that were met, and nobody knows in which version.
    pub(crate) fn with_matched(
        history: &'h History,
        met: &MetRows,
        options: &CheckOptions,
    ) -> Self {
        let mut reads = Reads::resolve_and_keep(history, &options.committed, met);
        if options.trusts_orders() {
            let is_kept = |txn| reads.is_kept(txn);
            let stated = stated(history, is_kept, &options.version_order);
            reads.version_order.extend(stated);
        }
        let saw = |read| match reads.source(read) {
            Source::Txn(writer) => Some(writer),
            Source::Own | Source::Aside => None,
        };
        let is_kept = |txn| reads.is_kept(txn);
        let guaranteed = guaranteed(history, options.assume, options.clock_skew, is_kept, saw);
        reads.version_order.extend(guaranteed);
        Resolved::of(history, Arc::new(reads), options)
    }

    /// The same history under other options: its reads are what they are.
    pub(crate) fn again(&self, options: &CheckOptions) -> Self {
        let Dependencies { history, reads, .. } = &self.dependencies;
        Resolved::of(history, Arc::clone(reads), options)
    }

    /// The same history where what its reads leave open is settled.
    pub(crate) fn choosing(&self, saw: &[(OpId, TxnId)], there: &[TxnId]) -> Self {
        let Dependencies { history, reads, session_order, .. } = &self.dependencies;
        let reads = reads.choosing(saw, there);
        let dependencies = Dependencies::new(history, reads, *session_order);
        let order = self.order.as_ref().unwrap_or(&self.guess.commits);
        Resolved {
            order: first_order(&dependencies, order),
            dependencies,
            guess: self.guess.clone(),
            assumes_orders: self.assumes_orders,
            clock_skew: self.clock_skew,
            write_sets: self.write_sets.clone(),
            versions: OnceLock::new(),
            real_time: OnceLock::new(),
        }
    }

    fn of(history: &'h History, reads: Arc<Reads>, options: &CheckOptions) -> Self {
        let dependencies = Dependencies::new(history, reads, options.session_order);
        let guess = guess::commit_order(&dependencies);
        let order = first_order(&dependencies, &guess.commits);
        Resolved {
            dependencies,
            guess,
            order,
            assumes_orders: options.assume.order_versions(),
            clock_skew: options.clock_skew,
            write_sets: OnceLock::new(),
            versions: OnceLock::new(),
            real_time: OnceLock::new(),
        }
    }

    /// Which keys transactions write.
    pub(crate) fn write_sets(&self) -> &WriteSets<'h> {
        self.write_sets.get_or_init(|| WriteSets::new(self.dependencies.history).into())
    }

    /// The versions of all registers.
    pub(crate) fn versions(&self) -> SharedVersions {
        let versions = self.versions.get_or_init(|| Versions::new(&self.dependencies).into());
        Arc::clone(versions)
    }

    /// Whether a transaction had finished before another started, however the clocks may differ.
    pub(crate) fn precedes(&self, before: TxnId, after: TxnId) -> bool {
        precedes(self.dependencies.history, self.clock_skew, before, after)
    }

    /// Whether an order of transactions agrees with real time.
    pub(crate) fn agrees(&self, order: &[u32]) -> bool {
        agrees(self.dependencies.history, self.clock_skew, order)
    }

    /// An order of the nodes of a graph that begins with a guess, and agrees with real time if that counts; none
    /// if they have a cycle.
    pub(crate) fn order_of<G: Moments>(
        &self,
        graph: &G,
        guess: &[u32],
        in_time: bool,
    ) -> Option<Vec<u32>> {
        if !in_time {
            return topological_order(graph, guess);
        }
        let timed = InTime { graph, time: self.real_time() };
        let mut order = topological_order(&timed, &timed.and_helpers(guess.to_vec()))?;
        order.retain(|node| timed.is_own(*node));
        Some(order)
    }

    /// An order of the nodes of a graph that begins with the guess at the order of commits; none if they have a
    /// cycle.
    pub(crate) fn guessed_order(&self, graph: &impl InEdges) -> Option<Vec<u32>> {
        topological_order(graph, &self.guess.commits)
    }

    /// The guess at the order of commits, with the start of each transaction just before its commit.
    pub(crate) fn guessed_moments(&self) -> Vec<u32> {
        let commits = self.guess.commits.iter();
        commits.flat_map(|txn| [start_of(*txn), commit_of(*txn)]).collect()
    }

    /// The transactions of an order that are kept.
    pub(crate) fn kept(&self, order: &[u32]) -> impl Iterator<Item = TxnId> {
        let Dependencies { history, reads, .. } = &self.dependencies;
        let nodes = order.iter().filter(|node| (**node as usize) < history.txn_count());
        nodes.map(|txn| TxnId(*txn)).filter(|txn| reads.is_kept(*txn))
    }

    /// Real time, as far as the clocks allow to tell.
    pub(crate) fn real_time(&self) -> &RealTime {
        let Dependencies { history, reads, .. } = &self.dependencies;
        let is_kept = |txn| reads.is_kept(txn);
        self.real_time.get_or_init(|| RealTime::new(history, self.clock_skew, is_kept))
    }
}

/// A topological order of the dependencies, if there is one.
fn first_order(dependencies: &Dependencies<'_>, guess: &[u32]) -> Option<Vec<u32>> {
    let rules: &[&dyn OrderRule] = &[dependencies];
    let found = order::find(guess.to_vec(), rules, Patience::ENDLESS, |order, _, denied| {
        order.mend(dependencies, denied).ok_or(())
    });
    found.ok()?.order()
}

/// The operations that can be resolved.
pub(crate) const RESOLVED: &[OpFamily] = &[OpFamily::Registers, OpFamily::Lists];

/// The first operation that belongs to none of these families.
pub(crate) fn first_outside(history: &History, families: &[OpFamily]) -> Option<OpId> {
    // A bit per family: there may be many millions of operations to look at.
    let known = families.iter().fold(0u32, |known, family| known | 1 << *family as u32);
    let is_unknown = |kind: &OpKind| known >> OpFamily::of(*kind) as u32 & 1 == 0;
    history.op_kinds().iter().position(is_unknown).map(OpId::at)
}
