//! The one place that maps outcomes to exit codes.

use std::process::ExitCode;

use isolario::model::{LevelResult, PatternResult, Verdict};
use isolario::report::deciding;

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

/// Leaves at once: for whoever asks a second time.
#[expect(clippy::exit, reason = "a signal has no caller to return to")]
pub(crate) fn leave() -> ! {
    std::process::exit(2)
}

/// What the answers about one history come to.
pub(crate) fn judge(request: &Request, results: &[LevelResult]) -> Outcome {
    if request.open {
        return deciding(results).map_or(Outcome::Done, |result| judge_one(&result.verdict, false));
    }
    let outcome =
        |result: &LevelResult| judge_one(&result.verdict, request.named.contains(&result.level));
    results.iter().map(outcome).max().unwrap_or(Outcome::Done)
}

/// What the answers about single anomalies come to. Those that were named must apply.
pub(crate) fn judge_patterns(results: &[PatternResult], named: bool) -> Outcome {
    let outcomes = results.iter().map(|result| judge_one(&result.verdict, named));
    outcomes.max().unwrap_or(Outcome::Done)
}

fn judge_one(verdict: &Verdict, must_apply: bool) -> Outcome {
    match verdict {
        Verdict::Violated(_) => Outcome::Violated,
        Verdict::Undecided { .. } => Outcome::Undecided,
        Verdict::NotApplicable(_) if must_apply => Outcome::Error,
        _ => Outcome::Done,
    }
}

#[cfg(test)]
mod tests {
    use isolario::model::{Engine, Findings, Inapplicable, Level, Witness};

    use super::*;

    fn satisfied() -> Verdict {
        Verdict::Satisfied(Witness::Empty)
    }

    fn violated() -> Verdict {
        Verdict::Violated(Findings::default())
    }

    fn undecided() -> Verdict {
        Verdict::Undecided { reason: String::new() }
    }

    fn not_applicable() -> Verdict {
        Verdict::NotApplicable(Inapplicable::NoTimes)
    }

    fn results(verdicts: &[(Level, Verdict)]) -> Vec<LevelResult> {
        let result = |(level, verdict): &(Level, Verdict)| LevelResult {
            level: *level,
            engine: Engine::Weak,
            verdict: verdict.clone(),
        };
        verdicts.iter().map(result).collect()
    }

    fn judged(open: bool, named: &[Level], verdicts: &[(Level, Verdict)]) -> Outcome {
        let levels = verdicts.iter().map(|(level, _)| *level).collect();
        let request = Request { levels, named: named.to_vec(), open };
        judge(&request, &results(verdicts))
    }

    #[test]
    fn errors_outweigh_violations_and_those_outweigh_undecided() {
        let order = [Outcome::Error, Outcome::Violated, Outcome::Undecided, Outcome::Done];
        assert!(order.is_sorted_by(|a, b| a > b));
    }

    #[test]
    fn without_a_level_the_weakest_applicable_one_decides_alone() {
        use Level::{AdyaReadCommitted, CutIsolation, ReadAtomic, ReadCommitted};
        let open = |verdicts: &[_]| judged(true, &[], verdicts);
        assert_eq!(open(&[(ReadCommitted, satisfied()), (ReadAtomic, violated())]), Outcome::Done);
        assert_eq!(
            open(&[(AdyaReadCommitted, not_applicable()), (ReadCommitted, violated())]),
            Outcome::Violated
        );
        assert_eq!(
            open(&[(CutIsolation, violated()), (ReadAtomic, undecided())]),
            Outcome::Undecided
        );
        assert_eq!(open(&[(ReadCommitted, not_applicable())]), Outcome::Done);
    }

    #[test]
    fn named_levels_must_apply_and_others_need_not() {
        use Level::{ReadCommitted, StrictSerializable};
        let verdicts = [(ReadCommitted, satisfied()), (StrictSerializable, not_applicable())];
        assert_eq!(judged(false, &[], &verdicts), Outcome::Done);
        assert_eq!(judged(false, &[StrictSerializable], &verdicts), Outcome::Error);
        let worse = [(ReadCommitted, undecided()), (StrictSerializable, violated())];
        assert_eq!(judged(false, &[ReadCommitted], &worse), Outcome::Violated);
    }
}
