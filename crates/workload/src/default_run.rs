//! What a live run does when nothing else is asked for.

use crate::application::Application;
use crate::shape::{Kind, Workload};

/// A workload with its size, of a kind: what a run against a database takes where nobody says
/// otherwise.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DefaultRun {
    /// The shape.
    pub workload: Workload,
    /// How many sessions.
    pub sessions: u32,
    /// How many transactions are to commit.
    pub txns: u64,
}

impl DefaultRun {
    /// The default run of a kind.
    ///
    /// Few keys, so that sessions meet: anomalies are found where they do (MTC, Section V). With ten,
    /// mini-transactions show a planted write skew within some hundred transactions; with a hundred,
    /// ten thousand often do not. `scripts/bench promises` measures it. Only the general workload takes
    /// its parameters from PolySI's evaluation, and predicate those of Emme's.
    pub fn of(kind: Kind) -> DefaultRun {
        let (absent_ratio, slow_ratio) = (0.5, 0.1);
        let shape = Workload { kind, ..Workload::default() };
        let (workload, sessions, txns) = match kind {
            Kind::Mini => {
                let workload =
                    Workload { keys: 10, read_ratio: 0.25, absent_ratio, slow_ratio, ..shape };
                (workload, 8, 10_000)
            }
            Kind::General => {
                let workload =
                    Workload { ops: 20, keys: 10_000, absent_ratio, slow_ratio, ..shape };
                (workload, 25, 5_000)
            }
            Kind::Append => (Workload { ops: 4, keys: 10, ..shape }, 8, 10_000),
            Kind::Lwt => (Workload { keys: 10, ..shape }, 8, 10_000),
            Kind::Predicate => (Workload { ops: 5, ..shape }, 8, 10_000),
        };
        DefaultRun { workload, sessions, txns }
    }

    /// The default run of an application.
    pub fn of_application(application: Application, scale: u32) -> DefaultRun {
        let workload = Workload::of_application(application, scale);
        DefaultRun { workload, sessions: 8, txns: 5_000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_that_is_valid() {
        for kind in Kind::ALL {
            let run = DefaultRun::of(kind);
            assert_eq!((run.workload.validate(), run.workload.kind), (Ok(()), kind));
        }
    }
}
