//! The versions of every key.

use std::collections::VecDeque;

use super::clock::{Clock, Dot};

/// A committed version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// The number of its commit in the global sequence, from 1.
    pub(super) sequence: u64,
    /// Its commit.
    pub(super) dot: Dot,
    /// The value of a register; how many elements a list had.
    pub(super) value: i64,
}

/// The versions of one key that somebody may still read, oldest first.
#[derive(Clone, Debug, Default)]
struct Chain {
    versions: Vec<Version>,
    /// All elements of a list.
    elements: Vec<i64>,
}

/// The versions of all keys.
///
/// Keys are small numbers, so they are places in a queue. Keys at its front can be forgotten once
/// nobody will ask for them again.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// How many keys were forgotten.
    forgotten: u64,
    chains: VecDeque<Chain>,
}

impl Chains {
    fn chain(&self, key: u64) -> Option<&Chain> {
        self.chains.get(key.checked_sub(self.forgotten)? as usize)
    }

    fn chain_mut(&mut self, key: u64) -> Option<&mut Chain> {
        let at = key.checked_sub(self.forgotten)? as usize;
        if at >= self.chains.len() {
            self.chains.resize_with(at + 1, Chain::default);
        }
        self.chains.get_mut(at)
    }

    /// The last version of a key; none if it was never written.
    #[inline]
    pub(super) fn latest(&self, key: u64) -> Option<&Version> {
        self.chain(key)?.versions.last()
    }

    /// The last version of a key in a set of commits.
    #[inline]
    pub(super) fn latest_in(&self, key: u64, set: &Clock) -> Option<&Version> {
        self.chain(key)?.versions.iter().rev().find(|version| set.contains(version.dot))
    }

    /// The elements of a list.
    pub(super) fn elements(&self, key: u64) -> &[i64] {
        self.chain(key).map_or(&[], |chain| &chain.elements)
    }

    /// Adds a version of a register. Those that are older than one that everybody has, and so
    /// hidden from all present and future readers, are dropped.
    pub(super) fn write(&mut self, key: u64, version: Version, everybody_has: &Clock) {
        let Some(chain) = self.chain_mut(key) else { return };
        let hidden = chain.versions.iter().rposition(|old| everybody_has.contains(old.dot));
        if let Some(hidden @ 1..) = hidden {
            chain.versions.drain(..hidden);
        }
        chain.versions.push(version);
    }

    /// Adds an element to a list, as part of a commit.
    pub(super) fn append(
        &mut self,
        key: u64,
        element: i64,
        sequence: u64,
        dot: Dot,
        everybody_has: &Clock,
    ) {
        let Some(chain) = self.chain_mut(key) else { return };
        chain.elements.push(element);
        let value = chain.elements.len() as i64;
        match chain.versions.last_mut() {
            Some(last) if last.sequence == sequence => last.value = value,
            _ => self.write(key, Version { sequence, dot, value }, everybody_has),
        }
    }

    /// Forgets all keys below one.
    pub(super) fn forget_below(&mut self, key: u64) {
        let forget = key.saturating_sub(self.forgotten).min(self.chains.len() as u64);
        self.chains.drain(..forget as usize);
        self.forgotten += forget;
    }

    /// How many versions are kept, in all.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.chains.iter().map(|chain| chain.versions.len()).sum()
    }
}
