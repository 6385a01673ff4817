//! The shape of a workload: all knobs in one plain struct.

use std::fmt;
use std::str::FromStr;

use crate::aim::Aim;
use crate::application::Application;
use crate::distribution::{Distribution, DistributionError};
use crate::mix::Mix;

/// The kinds of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Kind {
    /// Mini-transactions (MTC, Definition 8): one or two reads and at most two writes, each after
    /// a read of its key.
    #[default]
    Mini,
    /// Reads, blind writes and read-modify-writes of registers.
    General,
    /// Appends to lists and reads of them.
    Append,
    /// Lightweight transactions: single reads, inserts if absent, compare-and-sets.
    Lwt,
    /// Operations on the rows of a table, by key and by range.
    Predicate,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 5] =
        [Kind::Mini, Kind::General, Kind::Append, Kind::Lwt, Kind::Predicate];

    /// The kinds whose operations each touch one key: registers and lists, no tables.
    pub const KEYED: [Kind; 4] = [Kind::Mini, Kind::General, Kind::Append, Kind::Lwt];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Mini => "mini",
            Kind::General => "general",
            Kind::Append => "append",
            Kind::Lwt => "lwt",
            Kind::Predicate => "predicate",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = WorkloadError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = |kind: &Kind| kind.name() == name;
        Kind::ALL.into_iter().find(named).ok_or_else(|| WorkloadError::Kind(name.to_owned()))
    }
}

/// The shape of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The kind of transactions.
    pub kind: Kind,
    /// Operations per transaction, for `general`, `append` and `predicate`. A read-modify-write is
    /// two.
    pub ops: u32,
    /// How many keys there are; for lists, at a time; for a table, how many rows there may be.
    pub keys: u32,
    /// The share of the keys of `mini` and `general` that begin absent, and that new ones keep
    /// replacing. The other keys exist before the run.
    pub absent_ratio: f64,
    /// The share of the transactions of `mini` and `general` that are [slow](crate::Generator::is_slow): they
    /// let others commit after their first read, and then access a key that is about to come into existence.
    pub slow_ratio: f64,
    /// The share of reads among the operations; for `mini`, of read-only transactions.
    pub read_ratio: f64,
    /// The share of read-modify-writes among the operations of `general`. The rest, neither read
    /// nor read-modify-write, are blind writes.
    pub rmw_ratio: f64,
    /// Whether `general` chooses between read, read-modify-write and write once per transaction,
    /// as Cobra's benchmarks do, instead of once per operation.
    pub one_kind_per_txn: bool,
    /// How operations spread over keys.
    pub distribution: Distribution,
    /// How many elements a list is to get, on average, before a new list takes its place.
    pub list_length: u32,
    /// The share of writes whose value is one of a few, so that values repeat.
    pub duplicate_ratio: f64,
    /// How often each operation of `predicate` comes.
    pub mix: Mix,
    /// The anomaly that `mini` aims at, if it does not go by chance. Then only the sessions count:
    /// shapes and keys follow from the aim.
    pub aim: Option<Aim>,
    /// The application that `general` plays, if its operations are not drawn by chance. Then shapes
    /// and keys follow from it.
    pub application: Option<Application>,
    /// How large the application is: how many warehouses, or hundreds of users, it has.
    pub scale: u32,
}

impl Default for Workload {
    fn default() -> Self {
        Workload {
            kind: Kind::Mini,
            ops: 8,
            keys: 1000,
            absent_ratio: 0.0,
            slow_ratio: 0.0,
            read_ratio: 0.5,
            rmw_ratio: 0.0,
            one_kind_per_txn: false,
            distribution: Distribution::Uniform,
            list_length: 32,
            duplicate_ratio: 0.0,
            mix: Mix::default(),
            aim: None,
            application: None,
            scale: 1,
        }
    }
}

/// Why there is no such workload.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// An unknown name.
    #[error(
        "there is no workload {0:?}: expected mini, general, append, lwt, predicate, tpcc, rubis or \
         twitter"
    )]
    Kind(String),
    /// An unknown aim.
    #[error("there is no aim {found:?}: expected {}", aims())]
    Aim {
        /// What was named.
        found: String,
    },
    /// A workload that cannot aim.
    #[error("only the mini workload can be aimed at an anomaly, not {0}")]
    Aimless(Kind),
    /// An application in another workload than the one that plays it.
    #[error("only the general workload can run an application, not {0}")]
    NotGeneral(Kind),
    /// Another number of keys than the application has.
    #[error("{application} has exactly {keys} keys at this scale")]
    OtherKeys {
        /// The application.
        application: Application,
        /// How many keys it has.
        keys: u32,
    },
    /// Too few sessions or keys for an aim.
    #[error("to aim at {aim}, at least {sessions} sessions and {keys} keys are required")]
    TooFew {
        /// The aim.
        aim: Aim,
        /// How many sessions it takes.
        sessions: u32,
        /// How many keys these sessions need.
        keys: u32,
    },
    /// A number that has to be positive.
    #[error("{0}: at least one is required")]
    Zero(&'static str),
    /// A share outside of its range.
    #[error("the {name} must be from 0 to 1; found {found}")]
    Ratio {
        /// Its name.
        name: &'static str,
        /// What it was.
        found: f64,
    },
    /// More reads and read-modify-writes than operations.
    #[error("the shares of reads and read-modify-writes add up to {found}, which is more than 1")]
    Shares {
        /// Their sum.
        found: f64,
    },
    /// A wrong distribution.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}

fn aims() -> String {
    Aim::ALL.map(Aim::name).join(", ")
}

impl Workload {
    /// The transactions of an application.
    pub fn of_application(application: Application, scale: u32) -> Workload {
        let keys = application.keys(scale);
        let kind = Kind::General;
        Workload { kind, keys, application: Some(application), scale, ..Workload::default() }
    }

    /// Says what is wrong with the knobs, if anything is.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        for (count, name) in [
            (self.ops, "operations"),
            (self.keys, "keys"),
            (self.list_length, "list elements"),
            (self.scale, "units of scale"),
        ] {
            if count == 0 {
                return Err(WorkloadError::Zero(name));
            }
        }
        for (found, name) in [
            (self.read_ratio, "read ratio"),
            (self.rmw_ratio, "read-modify-write ratio"),
            (self.absent_ratio, "absent ratio"),
            (self.slow_ratio, "slow ratio"),
            (self.duplicate_ratio, "duplicate ratio"),
        ] {
            if !(0.0..=1.0).contains(&found) {
                return Err(WorkloadError::Ratio { name, found });
            }
        }
        let found = self.read_ratio + self.rmw_ratio;
        if found > 1.0 && self.kind == Kind::General {
            return Err(WorkloadError::Shares { found });
        }
        if self.aim.is_some() && self.kind != Kind::Mini {
            return Err(WorkloadError::Aimless(self.kind));
        }
        if let Some(application) = self.application {
            let keys = application.keys(self.scale);
            match self.kind {
                Kind::General if self.keys == keys => {}
                Kind::General => return Err(WorkloadError::OtherKeys { application, keys }),
                kind => return Err(WorkloadError::NotGeneral(kind)),
            }
        }
        Ok(self.distribution.validate()?)
    }

    /// The number of keys that exist before the run.
    pub fn standing_keys(&self) -> u32 {
        let can_begin_absent =
            matches!(self.kind, Kind::Mini | Kind::General) && self.application.is_none();
        let absent = if can_begin_absent { self.absent_ratio } else { 0.0 };
        self.keys - (f64::from(self.keys) * absent).round() as u32
    }

    /// The share of its transactions that are slow: none if it aims, or plays an application.
    pub fn slow_share(&self) -> f64 {
        let is_drawn = self.aim.is_none() && self.application.is_none();
        match self.kind {
            Kind::Mini | Kind::General if is_drawn => self.slow_ratio,
            _ => 0.0,
        }
    }

    /// What it is called: the application's name, or its kind's.
    pub fn name(&self) -> &'static str {
        self.application.map_or(self.kind.name(), Application::name)
    }

    /// The most operations a transaction can have.
    pub fn max_ops(&self) -> u32 {
        if let Some(application) = self.application {
            return application.max_ops();
        }
        match self.kind {
            Kind::Mini => 4,
            Kind::General | Kind::Append | Kind::Predicate => self.ops,
            Kind::Lwt => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_knobs_are_named() {
        let message = |workload: Workload| workload.validate().unwrap_err().to_string();
        let of = Workload::default;
        assert_eq!(message(Workload { keys: 0, ..of() }), "keys: at least one is required");
        assert_eq!(
            message(Workload { read_ratio: 1.5, ..of() }),
            "the read ratio must be from 0 to 1; found 1.5"
        );
        assert_eq!(
            message(Workload { kind: Kind::General, rmw_ratio: 0.75, ..of() }),
            "the shares of reads and read-modify-writes add up to 1.25, which is more than 1"
        );
        assert_eq!(
            "maxi".parse::<Kind>().unwrap_err().to_string(),
            "there is no workload \"maxi\": expected mini, general, append, lwt, \
             predicate, tpcc, rubis or twitter"
        );
        assert_eq!("lwt".parse(), Ok(Kind::Lwt));
    }
}
