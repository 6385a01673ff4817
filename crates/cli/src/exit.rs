//! The one place that maps outcomes to exit codes.

use std::process::ExitCode;

use isolario::model::LevelResult;
use isolario::report::{Asked, Meaning};

use crate::config::Request;

/// How a command ended, in the order in which outcomes outweigh each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Done, and everything asked for is satisfied.
    Done,
    /// A limit was reached first, and nothing was found to be violated.
    Undecided,
    /// A violation was found.
    Violated,
    /// Usage, input, or a level named explicitly that does not apply.
    Error,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(match outcome {
            Outcome::Done => 0,
            Outcome::Violated => 1,
            Outcome::Error => 2,
            Outcome::Undecided => 3,
        })
    }
}

/// Leaves at once, when the user asks a second time.
#[expect(clippy::exit, reason = "a signal has no caller to return to")]
pub(crate) fn leave() -> ! {
    std::process::exit(2)
}

impl From<Meaning> for Outcome {
    fn from(meaning: Meaning) -> Outcome {
        match meaning {
            Meaning::Undecided => Outcome::Undecided,
            Meaning::Violated => Outcome::Violated,
            Meaning::DoesNotApply => Outcome::Error,
            _ => Outcome::Done,
        }
    }
}

/// What the answers about one history come to.
pub(crate) fn judge(request: &Request, results: &[LevelResult]) -> Outcome {
    Asked { named: &request.named, weakest_only: request.open }.overall(results).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_outweigh_violations_and_those_outweigh_undecided() {
        let order = [Outcome::Error, Outcome::Violated, Outcome::Undecided, Outcome::Done];
        assert!(order.is_sorted_by(|a, b| a > b));
    }

    #[test]
    fn answers_outweigh_each_other_as_the_outcomes_do() {
        use Meaning::{DoesNotApply, Satisfied, Unasked, Undecided, Violated};
        let meanings = [Unasked, Satisfied, Undecided, Violated, DoesNotApply];
        assert!(meanings.is_sorted());
        assert!(meanings.map(Outcome::from).is_sorted());
    }
}
