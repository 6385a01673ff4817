//! The check of a run's history: what was asked for, or what the database claims.

use isolario_check::{CheckOptions, Checker, supported};
use isolario_db::Claim;
use isolario_model::{Contention, History, Level, LevelResult, RunRecord, RunVerdict, Verdict};
pub use isolario_report::Judgement;
use isolario_report::{Report, RequestedLevels};

use super::settings::Ask;

/// What a check of a run's history came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Examination {
    /// The answers, weakest level first.
    pub results: Vec<LevelResult>,
    /// The levels that were named, each of which must apply.
    pub named: Vec<Level>,
    /// The levels that the database claims, where these are the question.
    pub claim: Vec<Level>,
    /// Whether no level was named and nothing is claimed: then the weakest level decides.
    pub weakest_only: bool,
    /// Claimed levels that could not be decided.
    pub missing: Vec<Level>,
    /// Whether the history holds anything to check.
    pub has_evidence: bool,
    /// How often transactions met, where they have times.
    pub contention: Option<Contention>,
}

/// What a run was asked, as its record tells; a check of its history answers the same.
pub fn recorded_ask(record: &RunRecord) -> (Ask, Claim) {
    let claim = Claim { levels: record.claim.clone(), source: record.claim_source.clone() };
    let named = record.asked.clone();
    let ask = match (record.asked_all, named.is_empty()) {
        (true, _) => Ask::Levels { levels: supported().to_vec(), named },
        (false, false) => Ask::levels(named),
        (false, true) => Ask::Claim,
    };
    (ask, claim)
}

/// Decides what was asked. Of a claim that cannot be decided, it decides whatever weaker level it
/// can: to break one of those is to break the claim. Without a claim, it decides all levels.
pub fn examine(history: &History, ask: &Ask, claim: &Claim, options: &CheckOptions) -> Examination {
    examine_with(&Checker::new(history, options.clone()), history, ask, claim)
}

/// As [`examine`], by a checker of the history.
pub fn examine_with(
    checker: &Checker<'_>,
    history: &History,
    ask: &Ask,
    claim: &Claim,
) -> Examination {
    let claimed = match ask {
        Ask::Levels { levels, named } => {
            let results = checker.check_named(levels, named);
            // Where all levels are decided, it is still the claim that has to be kept.
            let claim = if levels.len() > named.len() { &claim.levels[..] } else { &[] };
            return Examination {
                claim: claim.to_vec(),
                weakest_only: named.is_empty() && claim.is_empty(),
                named: named.clone(),
                ..Examination::of(history, results)
            };
        }
        Ask::Claim if claim.levels.is_empty() => {
            let results = checker.check_all(supported());
            return Examination { weakest_only: true, ..Examination::of(history, results) };
        }
        Ask::Claim => &claim.levels,
    };
    let has_checker = |level: &Level| supported().contains(level);
    let decidable: Vec<Level> = claimed.iter().copied().filter(has_checker).collect();
    let mut results = checker.check_all(&decidable);
    let mut missing: Vec<Level> =
        claimed.iter().copied().filter(|level| !is_decided(*level, &results)).collect();
    if !missing.is_empty() && !results.iter().any(|result| result.level == Level::Linearizable) {
        // Single operations that are linearizable took effect one after the other, in an order that
        // real time and sessions agree with: as transactions, they are strictly serializable. The
        // converse says nothing about weaker claims, so only a "yes" counts.
        let linearizable = checker.check(Level::Linearizable);
        if linearizable.verdict.is_satisfied() {
            results.retain(|result| !missing.contains(&result.level));
            results.push(linearizable);
            missing.clear();
        }
    }
    if !missing.is_empty() {
        let follows = |level: &Level| missing.iter().any(|claim| claim.implies(*level));
        let weaker: Vec<Level> = (supported().iter().copied())
            .filter(|level| follows(level) && !decidable.contains(level))
            .collect();
        let answers = checker.check_all(&weaker).into_iter();
        results.extend(answers.filter(|answer| is_answer(&answer.verdict)));
    }
    results.sort_by_key(|result| result.level);
    Examination { claim: claimed.clone(), missing, ..Examination::of(history, results) }
}

impl Examination {
    fn of(history: &History, results: Vec<LevelResult>) -> Examination {
        Examination {
            results,
            named: Vec::new(),
            claim: Vec::new(),
            weakest_only: false,
            missing: Vec::new(),
            has_evidence: history.has_evidence(),
            contention: Contention::of(history),
        }
    }

    /// Which of the answers count.
    pub fn asked(&self) -> RequestedLevels<'_> {
        RequestedLevels { named: &self.named, claim: &self.claim, weakest_only: self.weakest_only }
    }

    /// What the answers come to.
    ///
    /// A level that was named or claimed and cannot be decided is an error, unless one that it implies is
    /// violated: then it is violated as well, whatever its own checker says.
    pub fn judgement(&self) -> Judgement {
        match self.has_evidence {
            true => self.asked().overall(&self.results).max(Judgement::Satisfied),
            false => Judgement::NothingToCheck,
        }
    }

    /// The answers in short, each with the names under which its anomalies are told.
    pub fn verdicts(&self, history: &History) -> Vec<RunVerdict> {
        Report::new("", history, &self.results).answers_in_short()
    }
}

fn is_answer(verdict: &Verdict) -> bool {
    verdict.is_satisfied() || verdict.is_violated()
}

fn is_decided(level: Level, results: &[LevelResult]) -> bool {
    results.iter().any(|result| result.level == level && is_answer(&result.verdict))
}

#[cfg(test)]
mod tests {
    use isolario_model::{Op, OpInput, Outcome, TxnEnd, TxnSink, TxnStart, ValueRef};

    use super::*;

    /// Single operations, one after the other, each of a session of its own.
    fn singles(ops: &[OpInput<'_>]) -> History {
        let mut batch = isolario_model::Batch::new();
        for (at, op) in ops.iter().enumerate() {
            let at = at as i64;
            batch.begin(&TxnStart { session: at.into(), id: None, line: None }).unwrap();
            batch.op(op).unwrap();
            let (start, finish) = (Some(2 * at), Some(2 * at + 1));
            batch.end(&TxnEnd { start, finish, ..TxnEnd::new(Outcome::Committed) }).unwrap();
        }
        batch.build().unwrap()
    }

    fn insert(value: i64) -> OpInput<'static> {
        let key = ValueRef::Text("x");
        Op::InsertIfAbsent { key, value: value.into(), applied: Some(true), seen: None }
    }

    fn read(value: i64) -> OpInput<'static> {
        Op::Read { key: ValueRef::Text("x"), value: Some(value.into()) }
    }

    fn judged(ops: &[OpInput<'_>], levels: &[Level]) -> Judgement {
        let claim = Claim { levels: levels.to_vec(), source: String::new() };
        examine(&singles(ops), &Ask::Claim, &claim, &CheckOptions::default()).judgement()
    }

    #[test]
    fn single_operations_that_are_linearizable_are_serializable() {
        let serializable = [Level::Serializable];
        assert_eq!(judged(&[insert(1), read(1)], &serializable), Judgement::Satisfied);
    }

    #[test]
    fn a_claim_that_cannot_be_decided_is_no_success_and_no_violation() {
        // The read of nothing is stale, which a serializable database may do.
        let key = ValueRef::Text("x");
        let stale = Op::Read { key, value: Some(ValueRef::Nil) };
        assert_eq!(judged(&[insert(1), stale], &[Level::Serializable]), Judgement::Satisfied);
        // What the failed write met is not told, so the order of versions stays open.
        let (expected, new) = (ValueRef::Int(5), ValueRef::Int(6));
        let failed = Op::CompareAndSet { key, expected, new, applied: Some(false), seen: None };
        let ops = [insert(1), stale, failed];
        assert_eq!(judged(&ops, &[Level::RepeatableRead]), Judgement::NotDecidable);
    }

    #[test]
    fn nothing_satisfies_nothing() {
        assert_eq!(judged(&[], &[Level::Serializable]), Judgement::NothingToCheck);
        let unseen = Op::Read { key: ValueRef::Text("x"), value: None };
        assert_eq!(judged(&[unseen], &[]), Judgement::NothingToCheck);
    }

    #[test]
    fn a_level_that_does_not_apply_is_violated_where_one_that_it_implies_is() {
        let history = {
            let mut batch = isolario_model::Batch::new();
            batch.begin(&TxnStart { session: 1i64.into(), id: None, line: None }).unwrap();
            batch.op(&read(7)).unwrap();
            batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
            batch.build().unwrap()
        };
        let ask = Ask::levels([Level::ReadCommitted, Level::StrictSerializable]);
        let examination = examine(&history, &ask, &Claim::none(""), &CheckOptions::default());
        assert_eq!(examination.judgement(), Judgement::Violated);
    }
}
