//! What an answer means for whoever asked: CI fails by it, and the exit code follows it.

use isolario_model::{Level, LevelResult, Verdict};

use crate::report::Report;

/// What an answer means for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Standing {
    /// The level is satisfied.
    Satisfied,
    /// The level is violated, and was asked for.
    Violated,
    /// A limit was reached first, and the level was asked for.
    Undecided,
    /// The level does not apply, although it was named.
    MustApply,
    /// The level is not satisfied, which nobody asked for.
    Beside,
}

/// The answer that counts where no level was asked for: that of the weakest level that applies.
/// Cut isolation is comparable with few others, and no database is set to it: it is left aside.
pub fn deciding(results: &[LevelResult]) -> Option<&LevelResult> {
    results.iter().find(|result| {
        result.level != Level::CutIsolation && !matches!(result.verdict, Verdict::NotApplicable(_))
    })
}

impl Report<'_> {
    /// What the answer for a level means for whoever asked.
    pub fn standing(&self, result: &LevelResult) -> Standing {
        let counts = !self.weakest_only
            || deciding(self.results).is_some_and(|deciding| deciding.level == result.level);
        match &result.verdict {
            Verdict::Satisfied(_) => Standing::Satisfied,
            Verdict::NotApplicable(_) if self.named.contains(&result.level) => Standing::MustApply,
            Verdict::Violated(_) if counts => Standing::Violated,
            Verdict::Undecided { .. } if counts => Standing::Undecided,
            _ => Standing::Beside,
        }
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{Engine, Findings, Inapplicable, Witness};

    use super::*;
    use crate::testing::History as Builder;

    fn results() -> Vec<LevelResult> {
        let violated = || Verdict::Violated(Findings::default());
        [
            (Level::AdyaReadCommitted, Verdict::NotApplicable(Inapplicable::NoVersionOrder)),
            (Level::CutIsolation, violated()),
            (Level::ReadAtomic, Verdict::Satisfied(Witness::Empty)),
            (Level::Causal, violated()),
        ]
        .map(|(level, verdict)| LevelResult { level, engine: Engine::Weak, verdict })
        .to_vec()
    }

    fn standings(report: &Report<'_>) -> Vec<Standing> {
        report.results.iter().map(|result| report.standing(result)).collect()
    }

    #[test]
    fn what_was_asked_for_counts_and_what_was_named_must_apply() {
        use Standing::{Beside, MustApply, Satisfied, Violated};
        let (history, results) = (Builder::new().build(), results());
        let report = Report::new("h", &history, &results);
        assert_eq!(standings(&report), [Beside, Violated, Satisfied, Violated]);
        let named = report.clone().with_named(&[Level::AdyaReadCommitted]);
        assert_eq!(standings(&named), [MustApply, Violated, Satisfied, Violated]);
        // The weakest level that applies is satisfied, and the rest is for information.
        let open = report.with_weakest_only(true);
        assert_eq!(standings(&open), [Beside, Beside, Satisfied, Beside]);
    }
}
