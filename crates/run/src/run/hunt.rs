//! A hunt: many short runs of many shapes, until a claim is broken or the time is up.
//!
//! Which shape shows a bug is not known beforehand. A lost update wants few keys; a long fork wants
//! readers that take their time; a page that is freed too early wants large values and a snapshot
//! that is held for long. So a hunt draws each phase from lists of values that have proved
//! themselves, kinds of workload in turn.

use std::time::Duration;

use isolario_db as db;
use isolario_workload::{DefaultRun, Kind, Rng, Workload};

use super::error::RunError;
use super::settings::{Ask, Settings};
use super::target::asked_of;

const KEYS: [u32; 5] = [2, 3, 5, 10, 30];
const SESSIONS: [u32; 4] = [2, 4, 8, 16];
const READ_RATIOS: [f64; 3] = [0.2, 0.5, 0.8];
const OPS: [u32; 3] = [2, 4, 8];
/// Bytes of a register: as small as can be, a part of a page, more than a page.
const VALUE_SIZES: [u32; 4] = [0, 0, 500, 10_000];
/// Microseconds. Most transactions pause for much less, and some hold their snapshot for as long as
/// thousands of others take.
const THINK: [u64; 5] = [0, 50, 300, 2_000, 20_000];
/// How long a phase drives its workload: long enough to meet thousands of times, short enough for the
/// check not to matter.
const PHASE: Duration = Duration::from_millis(1500);
/// A phase ends here, too: a fast store would make histories that take longer to check than to record.
const MOST_TXNS: u64 = 20_000;
/// So does one on rows: which of them a range met without returning them takes longer to work out.
const MOST_ON_ROWS: u64 = 1_000;

/// The phases of a hunt, one after the other.
#[derive(Clone, Debug)]
pub struct Hunt {
    base: Settings,
    kinds: Vec<Kind>,
    /// Whether values of several sizes make a difference.
    has_value_sizes: bool,
    phase: u64,
}

impl Hunt {
    /// A hunt with everything else as in these settings. Its workloads are those that the database
    /// supports and claims something for, or those that it supports where levels are asked for; ranges only
    /// where the levels are decided by them.
    pub fn new(base: Settings) -> Result<Hunt, RunError> {
        let url = base.urls.first().ok_or(RunError::Nothing("databases"))?;
        let database = db::open(url, &asked_of(&base)).map_err(RunError::Open)?;
        let nodes = base.urls.len();
        let is_wanted = |kind: &Kind| {
            let claim = database.claim(*kind, nodes);
            let phase = base.clone().with_workload(DefaultRun::of(*kind).workload);
            database.traits().workloads.contains(kind)
                && (base.ask != Ask::Claim || !claim.levels.is_empty())
                && !phase.leaves_ranges_open(&claim)
        };
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(is_wanted).collect();
        match kinds.is_empty() {
            true => Err(RunError::Nothing("workloads that the database claims something for")),
            false => {
                let has_value_sizes = database.traits().value_sizes;
                Ok(Hunt { base, kinds, has_value_sizes, phase: 0 })
            }
        }
    }

    /// The settings of the next phase, which takes no longer than this.
    pub fn next(&mut self, left: Duration) -> Settings {
        let phase = self.phase;
        self.phase += 1;
        let kind = self.kinds[phase as usize % self.kinds.len()];
        let mut rng = Rng::derive(self.base.seed, &[phase]);
        let mut pick = |count: usize| rng.below(count as u64) as usize;
        let DefaultRun { workload, .. } = DefaultRun::of(kind);
        let keys = KEYS[pick(KEYS.len())];
        let read_ratio = READ_RATIOS[pick(READ_RATIOS.len())];
        let ops = OPS[pick(OPS.len())];
        let value_size = VALUE_SIZES[pick(VALUE_SIZES.len())];
        Settings {
            workload: Workload { keys, read_ratio, ops, ..workload },
            sessions: SESSIONS[pick(SESSIONS.len())],
            think: Some(Duration::from_micros(THINK[pick(THINK.len())])),
            value_size: if self.has_value_sizes { value_size } else { 0 },
            duration: Some(PHASE.min(left)),
            txns: Some(if kind == Kind::Predicate { MOST_ON_ROWS } else { MOST_TXNS }),
            seed: self.base.seed.wrapping_add(phase),
            ..self.base.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::Level;

    use super::*;

    #[test]
    fn phases_differ_and_can_be_repeated() {
        let base = Settings::new(Kind::Mini).with_url("sim:serializable").unwrap();
        let shapes = |hunt: Hunt| {
            let mut hunt = hunt;
            let phase = |_| {
                let settings = hunt.next(Duration::from_secs(1));
                settings.planner().unwrap();
                (settings.workload.kind.name(), settings.workload.keys, settings.think)
            };
            (0..40).map(phase).collect::<Vec<_>>()
        };
        let first = shapes(Hunt::new(base.clone()).unwrap());
        assert_eq!(first, shapes(Hunt::new(base).unwrap()));
        for kind in Kind::ALL {
            assert!(first.iter().any(|(name, ..)| *name == kind.name()), "{kind}");
        }
        assert!(KEYS.iter().all(|keys| first.iter().any(|(_, found, _)| found == keys)));
    }

    #[test]
    fn ranges_are_hunted_where_they_are_decided() {
        let hunts_ranges = |settings: Settings| {
            let hunt = Hunt::new(settings).unwrap();
            hunt.kinds.contains(&Kind::Predicate)
        };
        let on = |url: &str| Settings::new(Kind::Mini).with_url(url).unwrap();
        assert!(hunts_ranges(on("sim:serializable")));
        assert!(!hunts_ranges(on("sim:read-committed")));
        assert!(!hunts_ranges(on("sim:serializable").with_levels([Level::ReadCommitted])));
        assert!(hunts_ranges(on("sim:read-committed").with_levels([Level::Prefix])));
        let all = Settings { ask: Ask::all(), ..on("sim:read-committed") };
        assert!(hunts_ranges(all));
    }

    #[test]
    fn what_nobody_claims_is_not_hunted() {
        let base = Settings::new(Kind::Mini).with_url("oracle:").unwrap();
        assert!(matches!(Hunt::new(base), Err(RunError::Open(_))));
    }
}
