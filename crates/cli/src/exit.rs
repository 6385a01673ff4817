//! The one place that maps outcomes to exit codes.

use std::process::ExitCode;

use isolario::report::Judgement;

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

impl From<Judgement> for Outcome {
    fn from(judgement: Judgement) -> Outcome {
        match judgement {
            Judgement::Unasked | Judgement::Satisfied => Outcome::Done,
            Judgement::Undecided => Outcome::Undecided,
            Judgement::Violated => Outcome::Violated,
            _ => Outcome::Error,
        }
    }
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
        use Judgement::{NotDecidable, NothingToCheck, Satisfied, Unasked, Undecided, Violated};
        let judgements = [Unasked, Satisfied, Undecided, Violated, NotDecidable, NothingToCheck];
        assert!(judgements.is_sorted());
        assert!(judgements.map(Outcome::from).is_sorted());
    }
}
