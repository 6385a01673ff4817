//! What an answer means for whoever asked. Exit codes, colours and CI formats all follow it.

use isolario_model::{Level, LevelResult, PatternResult, Verdict, VerdictKind};

use crate::implied::known;
use crate::report::Report;

/// What an answer means for whoever asked. What outweighs comes last: of several answers, the
/// greatest meaning counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Meaning {
    /// Nobody asked for the level to be satisfied, and it is not.
    Unasked,
    /// The level is satisfied.
    Satisfied,
    /// A limit was reached first, and the level was asked for.
    Undecided,
    /// The level is violated, and was asked for.
    Violated,
    /// The level does not apply, although it was named.
    DoesNotApply,
}

/// The answer that counts where no level was asked for: that of the weakest level that applies.
/// Cut isolation is comparable with few others, and no database is set to it: it is left aside. So are
/// the levels that need a known order of versions: what a code means must not depend on whether writes
/// follow reads, and the weakest of them allows dirty reads.
pub fn deciding(results: &[LevelResult]) -> Option<&LevelResult> {
    results.iter().find(|result| {
        let is_aside = result.level == Level::CutIsolation || result.level.needs().version_order;
        !is_aside && !matches!(result.verdict, Verdict::NotApplicable(_))
    })
}

/// Which of the answers count, and which levels must apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The levels that were named: each of them must apply.
    pub named: &'a [Level],
    /// Whether no level was asked for, so that the weakest one decides alone.
    pub weakest_only: bool,
}

impl Asked<'_> {
    /// What one of the answers means.
    pub fn meaning(&self, result: &LevelResult, results: &[LevelResult]) -> Meaning {
        let counts = !self.weakest_only
            || deciding(results).is_some_and(|deciding| deciding.level == result.level);
        let must_apply = self.named.contains(&result.level);
        match known(results, result.level) {
            // What a named level cannot say by itself may follow from another one.
            Some(known) if must_apply => of(known.verdict, counts, must_apply),
            _ => of(result.verdict.kind(), counts, must_apply),
        }
    }

    /// What all answers come to.
    pub fn overall(&self, results: &[LevelResult]) -> Meaning {
        let meanings = results.iter().map(|result| self.meaning(result, results));
        meanings.max().unwrap_or(Meaning::Unasked)
    }
}

/// What answers about single anomalies come to. Those that were named must be decided.
pub fn overall_of_patterns(results: &[PatternResult], named: bool) -> Meaning {
    let meanings = results.iter().map(|result| of(result.verdict.kind(), true, named));
    meanings.max().unwrap_or(Meaning::Unasked)
}

impl Report<'_> {
    /// What the answer for a level means for whoever asked.
    pub fn meaning(&self, result: &LevelResult) -> Meaning {
        let asked = Asked { named: self.named, weakest_only: self.weakest_only };
        asked.meaning(result, self.results)
    }
}

fn of(verdict: VerdictKind, counts: bool, must_apply: bool) -> Meaning {
    match verdict {
        VerdictKind::Satisfied => Meaning::Satisfied,
        VerdictKind::NotApplicable if must_apply => Meaning::DoesNotApply,
        VerdictKind::Violated if counts => Meaning::Violated,
        VerdictKind::Undecided if counts => Meaning::Undecided,
        _ => Meaning::Unasked,
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{Engine, Findings, Inapplicable, Limit, Undecided, Witness};

    use super::*;
    use crate::testing::History as Builder;

    fn satisfied() -> Verdict {
        Verdict::Satisfied(Witness::Empty)
    }

    fn violated() -> Verdict {
        Verdict::Violated(Findings::default())
    }

    fn undecided() -> Verdict {
        Verdict::Undecided(Undecided::new(Limit::Steps))
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

    fn overall(weakest_only: bool, named: &[Level], verdicts: &[(Level, Verdict)]) -> Meaning {
        Asked { named, weakest_only }.overall(&results(verdicts))
    }

    #[test]
    fn what_was_asked_for_counts_and_what_was_named_must_apply() {
        use Meaning::{DoesNotApply, Satisfied, Unasked, Violated};
        let history = Builder::new().build();
        let results = results(&[
            (Level::AdyaReadCommitted, not_applicable()),
            (Level::CutIsolation, violated()),
            (Level::ReadAtomic, satisfied()),
            (Level::Causal, violated()),
            (Level::Linearizable, not_applicable()),
        ]);
        let meanings = |report: &Report<'_>| -> Vec<Meaning> {
            report.results.iter().map(|result| report.meaning(result)).collect()
        };
        let report = Report::new("h", &history, &results);
        assert_eq!(meanings(&report), [Unasked, Violated, Satisfied, Violated, Unasked]);
        let named = report.clone().with_named(&[Level::Linearizable]);
        assert_eq!(meanings(&named), [Unasked, Violated, Satisfied, Violated, DoesNotApply]);
        // The weakest level that applies is satisfied, and the rest is for information.
        let weakest = report.with_weakest_only(true);
        assert_eq!(meanings(&weakest), [Unasked, Unasked, Satisfied, Unasked, Unasked]);
    }

    #[test]
    fn without_a_level_the_weakest_applicable_one_decides_alone() {
        use Level::{AdyaReadCommitted, CutIsolation, ReadAtomic, ReadCommitted};
        let weakest = |verdicts: &[_]| overall(true, &[], verdicts);
        assert_eq!(
            weakest(&[(ReadCommitted, satisfied()), (ReadAtomic, violated())]),
            Meaning::Satisfied
        );
        assert_eq!(
            weakest(&[(AdyaReadCommitted, not_applicable()), (ReadCommitted, violated())]),
            Meaning::Violated
        );
        assert_eq!(
            weakest(&[(CutIsolation, violated()), (ReadAtomic, undecided())]),
            Meaning::Undecided
        );
        assert_eq!(weakest(&[(ReadCommitted, not_applicable())]), Meaning::Unasked);
    }

    #[test]
    fn named_levels_must_apply_and_others_need_not() {
        use Level::{ReadCommitted, StrictSerializable};
        let verdicts = [(ReadCommitted, satisfied()), (StrictSerializable, not_applicable())];
        assert_eq!(overall(false, &[], &verdicts), Meaning::Satisfied);
        assert_eq!(overall(false, &[StrictSerializable], &verdicts), Meaning::DoesNotApply);
        let worse = [(ReadCommitted, undecided()), (StrictSerializable, violated())];
        assert_eq!(overall(false, &[ReadCommitted], &worse), Meaning::Violated);
        // What does not apply by itself is violated where a level that it implies is.
        let implied = [(ReadCommitted, violated()), (StrictSerializable, not_applicable())];
        assert_eq!(overall(false, &[StrictSerializable], &implied), Meaning::Violated);
    }
}
