//! A given order of starts and commits: what does not come out right in it.

use isolario_model::{Evidence, History, Inapplicable, Point, TxnId, Witness};

use super::state::State;
use crate::CheckOptions;

/// How the results of operations differ from what they had to be, were the transactions in the order of
/// a witness. Nothing if the check was asked to end.
pub(crate) fn differences(
    history: &History,
    witness: &Witness,
    options: &CheckOptions,
) -> Result<Option<Vec<Evidence>>, Inapplicable> {
    let mut rerun = Rerun { history, state: State::new(history), differences: Vec::new() };
    match witness {
        Witness::CommitOrder(txns) => {
            for txn in txns {
                if options.stop.is_asked() {
                    return Ok(None);
                }
                rerun.run(*txn)?;
                rerun.state.keep();
            }
        }
        Witness::Points(points) => {
            for point in points {
                if options.stop.is_asked() {
                    return Ok(None);
                }
                rerun.happen(*point)?;
            }
        }
        _ => {}
    }
    Ok(Some(rerun.differences))
}

struct Rerun<'h> {
    history: &'h History,
    state: State<'h>,
    differences: Vec<Evidence>,
}

impl Rerun<'_> {
    fn run(&mut self, txn: TxnId) -> Result<(), Inapplicable> {
        for op in self.history.txn_ops(txn) {
            self.differences.extend(self.state.perform(op)?);
        }
        Ok(())
    }

    fn happen(&mut self, point: Point) -> Result<(), Inapplicable> {
        match point {
            Point::Start(txn) => {
                self.run(txn)?;
                self.state.take_back(0);
            }
            Point::Commit(txn) => {
                self.history.txn_ops(txn).for_each(|op| self.state.install(op));
                self.state.keep();
            }
        }
        Ok(())
    }
}
