//! A given order of starts and commits: the results that do not come out right in it.

use isolario_model::{Evidence, History, Inapplicable, Point, Witness};

use super::TxnPoints;
use super::state::ReplayState;
use crate::CheckOptions;

/// How the results of operations differ from what they had to be if the transactions were in the order of a
/// witness. Nothing if the check was asked to end.
pub(crate) fn differences(
    history: &History,
    witness: &Witness,
    options: &CheckOptions,
) -> Result<Option<Vec<Evidence>>, Inapplicable> {
    let commits: Vec<Point>;
    let (points, moments) = match witness {
        Witness::CommitOrder(txns) => {
            commits = txns.iter().map(|txn| Point::Commit(*txn)).collect();
            (&commits, TxnPoints::One)
        }
        Witness::Points(points) => (points, TxnPoints::Two { exclusive_writers: false }),
        _ => return Ok(Some(Vec::new())),
    };
    let mut state = ReplayState::new(history);
    let mut differences = Vec::new();
    for point in points {
        if options.stop.is_asked() {
            return Ok(None);
        }
        state.perform(*point, moments, &mut differences)?;
        state.keep();
    }
    Ok(Some(differences))
}
