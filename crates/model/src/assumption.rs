//! What may be assumed of every register by itself, beside what a level asks.

use std::fmt;

/// A guarantee that each key is said to give, whatever the level of transactions. It orders the
/// versions of registers, whose reads do not show an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum KeyAssumption {
    /// Whoever reads a version of a key and then writes the key writes a later version. Every level
    /// takes this for granted, so that it adds nothing.
    WritesFollowReads,
    /// Each key is sequentially consistent: a session that accessed one version of it and then
    /// another one accessed the earlier version first.
    SequentialKeys,
    /// Each key is linearizable: if a transaction that accessed one version of it had finished
    /// before another one started that accessed a different version, the first version is the
    /// earlier one.
    LinearizableKeys,
}

impl KeyAssumption {
    /// All of them.
    pub const ALL: [KeyAssumption; 3] = [
        KeyAssumption::WritesFollowReads,
        KeyAssumption::SequentialKeys,
        KeyAssumption::LinearizableKeys,
    ];

    /// Its name, as flags and proofs have it.
    pub fn name(self) -> &'static str {
        match self {
            KeyAssumption::WritesFollowReads => "wfr",
            KeyAssumption::SequentialKeys => "sequential-keys",
            KeyAssumption::LinearizableKeys => "linearizable-keys",
        }
    }

    /// The one of a name.
    pub fn by_name(name: &str) -> Option<KeyAssumption> {
        KeyAssumption::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl fmt::Display for KeyAssumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyAssumptions(u8);

impl KeyAssumptions {
    /// Whether one is in the set.
    pub fn contains(self, one: KeyAssumption) -> bool {
        self.0 & 1 << one as u8 != 0
    }

    /// Whether nothing is assumed.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether any of them orders versions that are not ordered anyway.
    pub fn order_versions(self) -> bool {
        self.iter().any(|one| one != KeyAssumption::WritesFollowReads)
    }

    /// Those in the set.
    pub fn iter(self) -> impl Iterator<Item = KeyAssumption> {
        KeyAssumption::ALL.into_iter().filter(move |one| self.contains(*one))
    }
}

impl FromIterator<KeyAssumption> for KeyAssumptions {
    fn from_iter<T: IntoIterator<Item = KeyAssumption>>(items: T) -> Self {
        KeyAssumptions(items.into_iter().fold(0, |set, one| set | 1 << one as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_into_it() {
        use KeyAssumption::{LinearizableKeys, SequentialKeys, WritesFollowReads};
        let set: KeyAssumptions = [LinearizableKeys, WritesFollowReads].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [WritesFollowReads, LinearizableKeys]);
        assert!(!set.contains(SequentialKeys) && set.order_versions() && !set.is_empty());
        assert!(!KeyAssumptions::from_iter([WritesFollowReads]).order_versions());
        assert!(KeyAssumptions::default().is_empty());
        for one in KeyAssumption::ALL {
            assert_eq!(KeyAssumption::by_name(&one.to_string()), Some(one));
        }
        assert_eq!(KeyAssumption::by_name("keys"), None);
    }
}
