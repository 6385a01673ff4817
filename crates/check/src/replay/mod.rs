//! Levels by the order that the database itself promises: the transactions are run once more in that
//! order, and every result must come out as it did.
//!
//! This is the Enne checker of Clark et al. (Section 6, Algorithm 4) for serializable. With start and
//! commit timestamps it is that of snapshot isolation, too: a transaction reads the state as of its
//! start. A history that another order would explain is refused all the same: the order is part of
//! the question.
//!
//! | path | idea |
//! |---|---|
//! | `state.rs` | all keys, with what it takes to try something and to take it back |
//! | `rows.rs` | the rows that satisfy a predicate, by index where one serves |
//! | `operation.rs` | operations on a state: what they had to return |
//! | `run.rs` | the replay itself, one timestamp after the other |
//! | `schedule.rs` | the transactions that take part, and their order |
//! | `waiting.rs` | transactions without a position, which only read: they go where they fit |
//! | `agreement.rs` | whether the order agrees with sessions and real time |
//! | `points.rs` | a given order of starts and commits, which is not promised |

mod agreement;
mod operation;
mod points;
mod rows;
mod run;
mod schedule;
mod state;
mod waiting;

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, Findings, History, Inapplicable, Level, LevelNodes,
    PromisedOrder, TxnId, VisibilityRule, Witness,
};

use crate::CheckOptions;
use crate::plan::Conclusion;
pub(crate) use agreement::ends_before;
pub(crate) use points::differences;
pub(crate) use schedule::commits;
use schedule::{ReplaySchedule, txn_of};

/// Number of findings that are kept with their evidence. All are counted.
const KEPT: usize = 100;

/// Decides a level by a promised order.
pub(crate) fn check(
    history: &History,
    order: &PromisedOrder,
    level: Level,
    options: &CheckOptions,
) -> Conclusion {
    answer(history, order, level, options).unwrap_or_else(Conclusion::from)
}

fn answer(
    history: &History,
    order: &PromisedOrder,
    level: Level,
    options: &CheckOptions,
) -> Result<Conclusion, Inapplicable> {
    let schedule = ReplaySchedule::new(
        history,
        order,
        moments(level, order.is_by_stamps())?,
        level.shape().real_time,
    )?;
    let mut found = Contradictions::new(level, schedule.left_out);
    let Some(points) = run::run(&schedule, options, &mut found)? else {
        return Ok(Conclusion::not_begun());
    };
    agreement::check(&schedule, &points, options, &mut found);
    match (found.total, found.inconclusive) {
        (0, Some(txn)) => Err(Inapplicable::NotInPromisedOrder { txn }),
        (0, None) => Ok(Conclusion::Holds(match schedule.moments {
            TxnPoints::One => Witness::CommitOrder(points.into_iter().map(txn_of).collect()),
            TxnPoints::Two { .. } => Witness::Points(points),
        })),
        _ => Ok(Conclusion::Refuted(found.findings())),
    }
}

/// The points of a transaction at a level that a promised order decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TxnPoints {
    /// All of it happens at its commit.
    One,
    /// It reads at its start, and what it wrote is there from its commit on.
    Two {
        /// Whether writers of one key must not run at the same time.
        exclusive_writers: bool,
    },
}

pub(crate) fn moments(level: Level, by_stamps: bool) -> Result<TxnPoints, Inapplicable> {
    let shape = level.shape();
    match (shape.nodes, shape.visible) {
        _ if level.needs().version_order => Err(Inapplicable::NotByPromisedOrder),
        (LevelNodes::One, VisibilityRule::Everything) => Ok(TxnPoints::One),
        (LevelNodes::StartAndCommit, VisibilityRule::Prefix) if by_stamps => {
            Ok(TxnPoints::Two { exclusive_writers: shape.exclusive_writers })
        }
        _ => Err(Inapplicable::NotByPromisedOrder),
    }
}

/// Whether a level is about the order of versions, which commit timestamps give.
pub(crate) fn is_by_versions(level: Level) -> bool {
    level.needs().version_order
}

/// The contradictions of the order.
struct Contradictions {
    level: Level,
    anomalies: Vec<Anomaly>,
    total: u64,
    /// A transaction of unknown outcome that the order left out.
    left_out: Option<TxnId>,
    /// That transaction, if it may be the reason why something does not come out right.
    inconclusive: Option<TxnId>,
}

impl Contradictions {
    fn new(level: Level, left_out: Option<TxnId>) -> Contradictions {
        Contradictions { level, anomalies: Vec::new(), total: 0, left_out, inconclusive: None }
    }

    /// Adds a contradiction that depends on what the transactions in the order wrote. It shows nothing if
    /// another one may have written something, too.
    fn add_result(&mut self, evidence: Evidence) {
        match self.left_out {
            Some(_) => self.inconclusive = self.left_out,
            None => self.add(evidence),
        }
    }

    fn add(&mut self, evidence: Evidence) {
        self.total += 1;
        if self.anomalies.len() < KEPT {
            let anomaly = Anomaly::new(AnomalyKind::OrderContradiction, evidence);
            self.anomalies.push(anomaly.at(self.level));
        }
    }

    fn findings(self) -> Findings {
        let exact = Findings::new(self.anomalies, true);
        Findings { total: self.total, ..exact }
    }
}
