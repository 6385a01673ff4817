//! The mix of operations on a table.

use std::fmt;
use std::str::FromStr;

/// The kinds of operation on a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableOpKind {
    /// Insert a row, or update it if it is there.
    Insert,
    /// Update a row by its key.
    Update,
    /// Read a row by its key.
    Read,
    /// Read a row by its key, and update it to what follows from that.
    Increment,
    /// Read the rows of a range.
    RangeRead,
    /// Update the rows of a range.
    RangeUpdate,
    /// Delete the rows of a range.
    Delete,
    /// Compute a function over the rows of a range.
    Aggregate,
}

impl TableOpKind {
    /// Every kind.
    pub const ALL: [TableOpKind; 8] = [
        TableOpKind::Insert,
        TableOpKind::Update,
        TableOpKind::Read,
        TableOpKind::Increment,
        TableOpKind::RangeRead,
        TableOpKind::RangeUpdate,
        TableOpKind::Delete,
        TableOpKind::Aggregate,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            TableOpKind::Insert => "insert",
            TableOpKind::Update => "update",
            TableOpKind::Read => "read",
            TableOpKind::Increment => "increment",
            TableOpKind::RangeRead => "range-read",
            TableOpKind::RangeUpdate => "range-update",
            TableOpKind::Delete => "delete",
            TableOpKind::Aggregate => "aggregate",
        }
    }
}

/// How often each kind of operation comes. Only the proportions count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// In the order of [`TableOpKind::ALL`].
    shares: [f64; TableOpKind::ALL.len()],
}

/// Why there is no such mix.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MixError {
    /// Not of the form `read:40,update:30`.
    #[error("expected a list such as read:40,update:30; found {0:?}")]
    Form(String),
    /// An unknown kind of operation.
    #[error("there is no operation {found:?}: expected {}", names())]
    Name {
        /// What was named.
        found: String,
    },
    /// A share that is no number from 0 to a million.
    #[error("the share of {name} must be a number from 0 to 1000000; found {found:?}")]
    Share {
        /// Of which operation.
        name: &'static str,
        /// What it was.
        found: String,
    },
    /// A kind that is named twice.
    #[error("the share of {0} is given twice")]
    Twice(&'static str),
    /// Nothing to do.
    #[error("all shares of the mix are zero")]
    Empty,
}

fn names() -> String {
    TableOpKind::ALL.map(TableOpKind::name).join(", ")
}

impl Mix {
    /// The mix of Emme's item histories (Section 8.2, Figure 9): 30% updates, 40% reads, 20%
    /// increments, 10% inserts.
    pub const ITEMS: Mix = Mix { shares: [10.0, 30.0, 40.0, 20.0, 0.0, 0.0, 0.0, 0.0] };

    /// The mix of Emme's predicate histories (Section 8.2, Figure 10): 10% inserts, the rest reads and
    /// updates, half and half, and of these a fifth by range.
    pub const PREDICATES: Mix = Mix { shares: [10.0, 36.0, 36.0, 0.0, 9.0, 9.0, 0.0, 0.0] };

    /// The mix of item histories, of which a tenth gave way to reads by range.
    pub const RANGES: Mix = Mix { shares: [9.0, 27.0, 36.0, 18.0, 10.0, 0.0, 0.0, 0.0] };

    /// The share of a kind, out of [`Mix::total`].
    pub fn share(&self, kind: TableOpKind) -> f64 {
        self.shares[kind as usize]
    }

    /// The sum of all shares.
    pub fn total(&self) -> f64 {
        self.shares.iter().sum()
    }
}

/// A tenth inserts. The rest are reads and updates, half and half, and of these a fifth by range:
/// Emme's predicate histories (Section 8.2, Figure 10). One in three reads by range is a function.
/// Deletes, which the paper does not have, are few: each takes the rows of a whole range, and
/// inserts bring back one at a time.
impl Default for Mix {
    fn default() -> Self {
        Mix { shares: [10.0, 36.0, 36.0, 0.0, 6.0, 8.5, 0.5, 3.0] }
    }
}

/// Reads `OP:SHARE,…`. Operations that are not named do not occur.
impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut shares = [None; TableOpKind::ALL.len()];
        for part in text.split(',') {
            let Some((name, share)) = part.trim().split_once(':') else {
                return Err(MixError::Form(text.to_owned()));
            };
            let kind = TableOpKind::ALL.into_iter().find(|kind| kind.name() == name);
            let kind = kind.ok_or_else(|| MixError::Name { found: name.to_owned() })?;
            let number = share.parse().ok().filter(|share| (0.0..=1e6).contains(share));
            let wrong = || MixError::Share { name: kind.name(), found: share.to_owned() };
            let number: f64 = number.ok_or_else(wrong)?;
            if shares[kind as usize].replace(number).is_some() {
                return Err(MixError::Twice(kind.name()));
            }
        }
        let mix = Mix { shares: shares.map(|share| share.unwrap_or(0.0)) };
        if mix.total() > 0.0 { Ok(mix) } else { Err(MixError::Empty) }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = TableOpKind::ALL.into_iter().filter(|kind| self.share(*kind) > 0.0);
        let parts: Vec<_> =
            parts.map(|kind| format!("{}:{}", kind.name(), self.share(kind))).collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read_again() {
        for mix in [Mix::default(), Mix::ITEMS, Mix::PREDICATES, Mix::RANGES] {
            assert_eq!(mix.to_string().parse(), Ok(mix));
            assert_eq!(mix.total(), 100.0);
        }
        assert_eq!(Mix::ITEMS.to_string(), "insert:10,update:30,read:40,increment:20");
    }

    #[test]
    fn mistakes_are_named() {
        let message = |text: &str| text.parse::<Mix>().unwrap_err().to_string();
        assert_eq!(message("read"), "expected a list such as read:40,update:30; found \"read\"");
        assert_eq!(
            message("read:1,reed:2"),
            "there is no operation \"reed\": expected insert, update, read, increment, range-read, \
             range-update, delete, aggregate"
        );
        assert_eq!(
            message("read:-1"),
            "the share of read must be a number from 0 to 1000000; found \"-1\""
        );
        assert_eq!(message("read:1,read:2"), "the share of read is given twice");
        assert_eq!(message("read:0"), "all shares of the mix are zero");
    }
}
