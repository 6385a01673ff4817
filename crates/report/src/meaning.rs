//! What answers come to: the one place that maps verdicts, claims and lost commits to a judgement. Exit
//! codes, headings, colours and CI formats all follow it.

use isolario_model::{AnomalyKind, Level, LevelResult, PatternResult, Verdict, VerdictKind};
#[cfg(feature = "html")]
use isolario_model::{RunRecord, RunVerdict, StopReason};

use crate::finding::Finding;
use crate::implied::known;
use crate::report::Report;
#[cfg(feature = "html")]
use crate::sentences::{is_satisfied_by, own_word};

/// What an answer means, given what was asked. Of several answers, the greatest judgement counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Judgement {
    /// The level is not satisfied, and was not asked for.
    Unasked,
    /// Everything that was asked for is satisfied.
    Satisfied,
    /// A limit was reached first, and nothing was found to be violated.
    Undecided,
    /// A level that was asked for is violated, or one that it implies; or a commit is lost.
    Violated,
    /// A level that was named or claimed cannot be decided for such a history.
    NotDecidable,
    /// No transaction committed that read or wrote.
    NothingToCheck,
}

impl Judgement {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Judgement::Unasked => "unasked",
            Judgement::Satisfied => "satisfied",
            Judgement::Undecided => "undecided",
            Judgement::Violated => "violated",
            Judgement::NotDecidable => "not-decidable",
            Judgement::NothingToCheck => "nothing-to-check",
        }
    }
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
pub struct RequestedLevels<'a> {
    /// The levels that were named: each of them must apply.
    pub named: &'a [Level],
    /// The levels that the database claims, where these are the question: each of them must apply, and
    /// other levels that are decided along with them count only as far as the claim implies them.
    pub claim: &'a [Level],
    /// Whether no level was asked for, so that the weakest one decides alone.
    pub weakest_only: bool,
}

impl RequestedLevels<'_> {
    /// What one of the answers means.
    pub fn meaning(&self, result: &LevelResult, results: &[LevelResult]) -> Judgement {
        let must_apply = self.must_apply(result.level);
        match known(results, result.level) {
            // What a named level cannot say by itself may follow from another one.
            Some(known) if must_apply => self.of(known.verdict, result.level, results),
            _ => self.of(result.verdict.kind(), result.level, results),
        }
    }

    /// What the answers for levels come to.
    pub fn overall(&self, results: &[LevelResult]) -> Judgement {
        let answers = results.iter().map(|result| self.meaning(result, results));
        let is_open = |level: &&Level| !results.iter().any(|result| result.level == **level);
        let open = self.named.iter().chain(self.claim).filter(is_open);
        let implied = open.map(|level| match known(results, *level) {
            Some(known) => self.of(known.verdict, *level, results),
            None => Judgement::NotDecidable,
        });
        answers.chain(implied).max().unwrap_or(Judgement::Unasked)
    }

    fn must_apply(&self, level: Level) -> bool {
        self.named.contains(&level) || self.claim.contains(&level)
    }

    fn of(&self, verdict: VerdictKind, level: Level, results: &[LevelResult]) -> Judgement {
        match verdict {
            VerdictKind::Satisfied => Judgement::Satisfied,
            VerdictKind::NotApplicable if self.must_apply(level) => Judgement::NotDecidable,
            VerdictKind::Violated if self.counts(level, results) => Judgement::Violated,
            VerdictKind::Undecided if self.counts(level, results) => Judgement::Undecided,
            _ => Judgement::Unasked,
        }
    }

    /// Whether a violation of a level is one of what was asked for.
    fn counts(&self, level: Level, results: &[LevelResult]) -> bool {
        if self.weakest_only {
            return deciding(results).is_some_and(|deciding| deciding.level == level);
        }
        let rules_out = |asked: &Level| *asked == level || asked.is_ruled_out_by(level);
        self.claim.is_empty() || self.claim.iter().chain(self.named).any(rules_out)
    }
}

/// What answers about single anomalies come to. Those that were named must be decided.
pub fn overall_of_patterns(results: &[PatternResult], named: bool) -> Judgement {
    let meanings = results.iter().map(|result| match result.verdict.kind() {
        VerdictKind::Satisfied => Judgement::Satisfied,
        VerdictKind::Violated => Judgement::Violated,
        VerdictKind::Undecided => Judgement::Undecided,
        _ if named => Judgement::NotDecidable,
        _ => Judgement::Unasked,
    });
    meanings.max().unwrap_or(Judgement::Unasked)
}

impl Report<'_> {
    /// What the answer for a level means.
    pub fn meaning(&self, result: &LevelResult) -> Judgement {
        self.asked.meaning(result, self.results)
    }

    /// What all answers come to. A database that loses what it has acknowledged keeps no promise,
    /// whatever else can be said of it.
    pub fn judgement(&self) -> Judgement {
        if self.lost.is_some_and(|lost| lost.total() > 0) {
            return Judgement::Violated;
        }
        self.asked.overall(self.results).max(overall_of_patterns(self.patterns, false))
    }

    /// What the answers about the history of a run come to, together with those that the run got by the
    /// database's own word. A violation by either is one; where clients' answers leave something open,
    /// the database's own log may settle it.
    #[cfg(feature = "html")]
    pub fn judgement_of_run(&self, run: &RunRecord) -> Judgement {
        let judgement = self.judgement();
        if judgement != Judgement::Violated && !self.history.has_evidence() {
            return Judgement::NothingToCheck;
        }
        match self.with_own_word(run, judgement) {
            // What a database keeps until it is gone is no kept promise.
            Judgement::Satisfied
                if run.stopped == StopReason::Database && self.asked.named.is_empty() =>
            {
                Judgement::NotDecidable
            }
            judgement => judgement,
        }
    }

    /// A judgement by what clients saw, together with the answers by the database's own word.
    #[cfg(feature = "html")]
    fn with_own_word(&self, run: &RunRecord, judgement: Judgement) -> Judgement {
        let Some(own) = &run.whitebox else { return judgement };
        let mut asked = [self.asked.named, self.asked.claim].concat();
        let is_for_all = asked.is_empty() && !self.asked.weakest_only;
        if asked.is_empty() {
            // The weakest level that databases offer is what the log is asked about then.
            asked.push(Level::AdyaReadCommitted);
        }
        let is_violated = |answer: &RunVerdict| {
            let rules_out =
                |asked: &Level| *asked == answer.level || asked.is_ruled_out_by(answer.level);
            let counts = is_for_all || asked.iter().any(rules_out);
            answer.verdict == VerdictKind::Violated && counts
        };
        let is_settled = |level: &Level| own_word(run).any(|own| is_satisfied_by(*level, own));
        let is_open = matches!(judgement, Judgement::NotDecidable | Judgement::Undecided);
        match () {
            () if own.disagreement.is_some() || own_word(run).any(is_violated) => {
                Judgement::Violated
            }
            () if is_open && asked.iter().all(is_settled) => Judgement::Satisfied,
            () => judgement,
        }
    }

    /// Whether a finding violates what was asked for.
    pub(crate) fn counts(&self, finding: &Finding<'_>) -> bool {
        let is_found_at_violated = |result: &LevelResult| {
            finding.found_at.contains(result.level) && self.meaning(result) == Judgement::Violated
        };
        finding.kind() == AnomalyKind::LostCommit
            || !self.patterns.is_empty()
            || self.results.iter().any(is_found_at_violated)
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{Attempt, Findings, Inapplicable, Limit, Undecided, Witness};

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
            decided_by: Attempt::Rule,
            verdict: verdict.clone(),
        };
        verdicts.iter().map(result).collect()
    }

    fn overall(weakest_only: bool, named: &[Level], verdicts: &[(Level, Verdict)]) -> Judgement {
        RequestedLevels { named, weakest_only, ..RequestedLevels::default() }
            .overall(&results(verdicts))
    }

    #[test]
    fn what_was_asked_for_counts_and_what_was_named_must_apply() {
        use Judgement::{NotDecidable, Satisfied, Unasked, Violated};
        let history = Builder::new().build();
        let results = results(&[
            (Level::AdyaReadCommitted, not_applicable()),
            (Level::CutIsolation, violated()),
            (Level::ReadAtomic, satisfied()),
            (Level::Causal, violated()),
            (Level::Linearizable, not_applicable()),
        ]);
        let meanings = |report: &Report<'_>| -> Vec<Judgement> {
            report.results.iter().map(|result| report.meaning(result)).collect()
        };
        let report = Report::new("h", &history, &results);
        assert_eq!(meanings(&report), [Unasked, Violated, Satisfied, Violated, Unasked]);
        let named = report.clone().with_named(&[Level::Linearizable]);
        assert_eq!(meanings(&named), [Unasked, Violated, Satisfied, Violated, NotDecidable]);
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
            Judgement::Satisfied
        );
        assert_eq!(
            weakest(&[(AdyaReadCommitted, not_applicable()), (ReadCommitted, violated())]),
            Judgement::Violated
        );
        assert_eq!(
            weakest(&[(CutIsolation, violated()), (ReadAtomic, undecided())]),
            Judgement::Undecided
        );
        assert_eq!(weakest(&[(ReadCommitted, not_applicable())]), Judgement::Unasked);
    }

    #[test]
    fn of_a_claim_only_what_it_implies_counts_and_all_of_it_must_be_decided() {
        use Level::{ReadCommitted, Serializable, SnapshotIsolation, StrictSerializable};
        let kept = |claim: &[Level], verdicts: &[_]| {
            RequestedLevels { claim, ..RequestedLevels::default() }.overall(&results(verdicts))
        };
        let all = [
            (ReadCommitted, satisfied()),
            (SnapshotIsolation, violated()),
            (Serializable, undecided()),
            (StrictSerializable, not_applicable()),
        ];
        assert_eq!(kept(&[ReadCommitted], &all), Judgement::Satisfied);
        assert_eq!(kept(&[SnapshotIsolation], &all), Judgement::Violated);
        assert_eq!(kept(&[Serializable], &all), Judgement::Violated);
        assert_eq!(kept(&[SnapshotIsolation], &all[..1]), Judgement::NotDecidable);
        assert_eq!(kept(&[Serializable], &all[2..]), Judgement::Undecided);
        assert_eq!(kept(&[StrictSerializable], &all[2..]), Judgement::NotDecidable);
        let stronger = [(Serializable, satisfied())];
        assert_eq!(kept(&[SnapshotIsolation], &stronger), Judgement::Satisfied);
        // What is named besides the claim counts, too.
        let asked = RequestedLevels {
            claim: &[ReadCommitted],
            named: &[SnapshotIsolation],
            weakest_only: false,
        };
        assert_eq!(asked.overall(&results(&all)), Judgement::Violated);
    }

    #[test]
    fn named_levels_must_apply_and_others_need_not() {
        use Level::{ReadCommitted, StrictSerializable};
        let verdicts = [(ReadCommitted, satisfied()), (StrictSerializable, not_applicable())];
        assert_eq!(overall(false, &[], &verdicts), Judgement::Satisfied);
        assert_eq!(overall(false, &[StrictSerializable], &verdicts), Judgement::NotDecidable);
        let worse = [(ReadCommitted, undecided()), (StrictSerializable, violated())];
        assert_eq!(overall(false, &[ReadCommitted], &worse), Judgement::Violated);
        // What does not apply by itself is violated where a level that it implies is.
        let implied = [(ReadCommitted, violated()), (StrictSerializable, not_applicable())];
        assert_eq!(overall(false, &[StrictSerializable], &implied), Judgement::Violated);
    }
}
