//! Rows that are deleted and come back.
//!
//! A row that is inserted after a delete is another row of the same name. Its writers do not exclude
//! those of the former one: databases let a transaction insert a key that a concurrent one deleted. So
//! of two versions, the later writer has to start after the commit of the earlier one only if no delete
//! lies between the two, and the earlier one is none.
//!
//! Which deletes lie between two versions is part of what is searched for. As far as it is asked here,
//! they exclude each other if nobody else deletes the key: then no delete can lie between them.

use isolario_model::{History, KeyId, Outcome, TxnId};

use super::problem::Precedes;
use crate::resolved::{Version, Versions};

/// Which versions are deletes, by version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incarnations {
    deletes: Vec<bool>,
    /// How many versions of the key are.
    of_key: Vec<u32>,
}

impl Incarnations {
    /// Those of a history; none if no row of a table is deleted in it.
    pub(crate) fn new(history: &History, versions: &Versions) -> Option<Self> {
        if !history.may_reuse_rows() {
            return None;
        }
        let deletes: Vec<bool> = (0..versions.len() as u32)
            .map(|version| is_delete(history, versions, Version(version)))
            .collect();
        // One of unknown outcome may be the delete between two others, seen or not.
        let mut by_key = vec![0; versions.key_count()];
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            deleted(history, txn).for_each(|key| by_key[key.index()] += 1);
        }
        let of_version = |version: u32| by_key[versions.key(Version(version)).index()];
        let of_key = (0..versions.len() as u32).map(of_version).collect();
        Some(Incarnations { deletes, of_key })
    }

    /// The same for some of the versions.
    pub(crate) fn restricted(&self, to: &[Version]) -> Self {
        let at = |version: &Version| version.0 as usize;
        Incarnations {
            deletes: to.iter().map(|version| self.deletes[at(version)]).collect(),
            of_key: to.iter().map(|version| self.of_key[at(version)]).collect(),
        }
    }

    /// Whether the later writer has to start after the commit of the earlier one.
    #[inline]
    pub(crate) fn exclude(&self, Precedes { first, second }: Precedes) -> bool {
        let deletes = |version: Version| self.deletes[version.0 as usize];
        let others = self.of_key[first.0 as usize] - u32::from(deletes(second));
        !deletes(first) && others == 0
    }

    /// Whether a version is of a key that nobody deletes.
    #[inline]
    pub(crate) fn is_immortal(&self, version: Version) -> bool {
        self.of_key[version.0 as usize] == 0
    }
}

fn is_delete(history: &History, versions: &Versions, version: Version) -> bool {
    let key = versions.key(version);
    deleted(history, versions.writer(version)).any(|deleted| deleted == key)
}

/// The rows that a transaction leaves deleted.
fn deleted(history: &History, txn: TxnId) -> impl Iterator<Item = KeyId> {
    let left = history.rows_left(txn).into_iter();
    left.filter(|(_, is_there)| !is_there).map(|(key, _)| key)
}
