//! Workloads of the literature, by name.

use crate::distribution::Distribution;
use crate::mix::Mix;
use crate::shape::{Kind, Workload};

/// A named workload with its size.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub description: &'static str,
    /// How many transactions.
    pub txns: u64,
    /// How many sessions.
    pub sessions: u32,
    ops: u32,
    keys: u32,
    read_ratio: f64,
    rmw_ratio: f64,
    one_kind_per_txn: bool,
    /// How often each operation comes, for operations on a table; the others are on registers.
    mix: Option<Mix>,
}

/// PolySI's general workloads, with the size Plume gives (Section 5.1).
const GENERAL: Preset = Preset {
    name: "",
    description: "",
    txns: 16_000,
    sessions: 25,
    ops: 20,
    keys: 10_000,
    read_ratio: 0.5,
    rmw_ratio: 0.0,
    one_kind_per_txn: false,
    mix: None,
};

/// King Cobra's workloads (Emme, Section 8.4). The paper leaves operations per transaction and
/// keys open; these are Cobra's own.
const KING_COBRA: Preset = Preset { txns: 10_000, sessions: 20, ops: 8, ..GENERAL };

/// The workloads of Emme's evaluation (Section 8.2), five operations per transaction. The paper leaves the
/// number of sessions open.
const EMME: Preset = Preset { txns: 2_500, sessions: 10, ops: 5, keys: 1000, ..GENERAL };

static TABLE: [Preset; 11] = [
    Preset {
        name: "blindw-rw",
        description: "Cobra's BlindW-RW: transactions of 8 reads or of 8 blind writes, half and half",
        txns: 10_000,
        sessions: 24,
        ops: 8,
        one_kind_per_txn: true,
        ..GENERAL
    },
    Preset {
        name: "cobra-mix",
        description: "Cobra's mix: of the transactions 20% only read, 40% only write, 40% do both",
        txns: 10_000,
        sessions: 24,
        ops: 8,
        read_ratio: 0.2,
        rmw_ratio: 0.4,
        one_kind_per_txn: true,
        ..GENERAL
    },
    Preset {
        name: "general-rh",
        description: "PolySI's GeneralRH: 20 operations per transaction, 95% reads",
        read_ratio: 0.95,
        ..GENERAL
    },
    Preset {
        name: "general-rw",
        description: "PolySI's GeneralRW: 20 operations per transaction, 50% reads",
        ..GENERAL
    },
    Preset {
        name: "general-wh",
        description: "PolySI's GeneralWH: 20 operations per transaction, 30% reads",
        read_ratio: 0.3,
        ..GENERAL
    },
    Preset {
        name: "king-cobra-rmw",
        description: "King Cobra's read-modify-write workload: 25% reads, 25% writes, 50% both",
        read_ratio: 0.25,
        rmw_ratio: 0.5,
        ..KING_COBRA
    },
    Preset {
        name: "king-cobra-rw",
        description: "King Cobra's read/write workload: 50% reads, 50% writes",
        ..KING_COBRA
    },
    Preset {
        name: "king-cobra-wh",
        description: "King Cobra's heavy write workload: 10% reads, 80% writes, 10% both",
        read_ratio: 0.1,
        rmw_ratio: 0.1,
        ..KING_COBRA
    },
    Preset {
        name: "emme-items",
        description: "Emme's item histories: 30% updates, 40% reads, 20% increments, 10% inserts by key",
        txns: 100_000,
        mix: Some(Mix::ITEMS),
        ..EMME
    },
    Preset {
        name: "emme-predicates",
        description: "Emme's predicate histories: 10% inserts, else reads and updates, a fifth by range",
        keys: 100,
        mix: Some(Mix::PREDICATES),
        ..EMME
    },
    Preset {
        name: "emme-ranges",
        description: "Emme's item histories with 10% reads by range",
        mix: Some(Mix::RANGES),
        ..EMME
    },
];

impl Preset {
    /// Every preset.
    pub fn all() -> &'static [Preset] {
        &TABLE
    }

    /// The preset of a name.
    pub fn find(name: &str) -> Option<&'static Preset> {
        TABLE.iter().find(|preset| preset.name == name)
    }

    /// Whether its operations are on a table, not on registers.
    pub fn is_of_table(&self) -> bool {
        self.mix.is_some()
    }

    /// Its workload.
    pub fn workload(&self) -> Workload {
        Workload {
            kind: if self.is_of_table() { Kind::Predicate } else { Kind::General },
            ops: self.ops,
            keys: self.keys,
            mix: self.mix.unwrap_or_default(),
            read_ratio: self.read_ratio,
            rmw_ratio: self.rmw_ratio,
            one_kind_per_txn: self.one_kind_per_txn,
            distribution: Distribution::Uniform,
            ..Workload::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_found_by_name() {
        for preset in Preset::all() {
            assert_eq!(Preset::find(preset.name), Some(preset));
            assert_eq!(preset.workload().validate(), Ok(()));
        }
        assert_eq!(Preset::find("blindw"), None);
    }

    #[test]
    fn sizes_are_those_of_the_papers() {
        let size = |name| Preset::find(name).map(|preset| (preset.txns, preset.sessions));
        assert_eq!(size("blindw-rw"), Some((10_000, 24)));
        assert_eq!(size("general-wh"), Some((16_000, 25)));
        assert_eq!(size("king-cobra-rmw"), Some((10_000, 20)));
    }
}
