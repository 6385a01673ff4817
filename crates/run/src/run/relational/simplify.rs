//! The smallest script that still shows a finding, found by trying.
//!
//! The transactions of the finding become a script, in the order in which their statements were sent.
//! If that shows it again, whatever can go is taken from it, one thing at a time (transactions,
//! statements, tables, parts of statements, rows, columns, constraints, values), and each smaller script is
//! replayed on a fresh schema. A transaction that only has to be over before the others begin goes as well: what it
//! leaves is there from the beginning. What is left when nothing more can go is replayed a few times more: how
//! often it showed the finding is part of the result.

use std::sync::Arc;
use std::time::{Duration, Instant};

use isolario_check::{CheckOptions, Checker};
use isolario_db::{Claim, DbError};
use isolario_model::{Anomaly, AnomalyKind, History, LevelResult};
use isolario_sql::{Reading, Reduction, Round, Script, history, old_versions};

use super::cause::Cause;
use super::certified::ByPredicate;
use super::findings::{Finding, FindingKind, level_of_name, pattern};
use super::orders::Orders;
use super::replay::replay;
use super::serial::{self, Difference, Serially};
use super::site::{Site, Stage};
use crate::run::Handle;

/// How often the smallest script is replayed in the end.
const TRIALS: u32 = 3;

/// A script that shows what was found, and nothing in it can be left out.
#[derive(Debug)]
#[non_exhaustive]
pub struct Simplified {
    /// What it shows.
    pub kind: FindingKind,
    /// The isolation level.
    pub isolation: String,
    /// The round in which it was found.
    pub round: u64,
    /// What its files are called.
    pub name: String,
    /// How many findings became the same as this one when they were simplified, itself included.
    pub findings: u64,
    /// The script.
    pub script: Script,
    /// What came back when it was replayed.
    pub replayed: Round,
    /// The history of that.
    pub history: History,
    /// The answer for Adya's level of the setting's name.
    pub result: LevelResult,
    /// What differs when its transactions are run one after the other, if that is what was found.
    pub difference: Option<Difference>,
    /// What the database claims at this level.
    pub claim: Claim,
    /// What its transactions give one after the other, if there are few.
    pub orders: Option<Orders>,
    /// The statements, by which two findings are the same or not.
    pub pattern: String,
    /// What lets it happen.
    pub cause: Cause,
    /// How many scripts were tried.
    pub tried: u32,
    /// How often it showed what was found, of how many times.
    pub shown: (u32, u32),
    /// Whether time was up before nothing more could go.
    pub is_cut_short: bool,
}

impl Simplified {
    /// How many transactions it has, and how many statements the longest of them has, its beginning and
    /// end left aside.
    pub fn size(&self) -> (usize, usize) {
        let txns = self.replayed.transactions.iter().filter(|txn| !txn.is_final);
        let longest = txns.clone().map(|txn| txn.statements.len()).max().unwrap_or(0);
        (txns.count(), longest)
    }

    /// Whether it shows findings like this one.
    pub(super) fn is_of(&self, finding: &Finding) -> bool {
        self.kind == finding.kind && self.isolation == finding.isolation
    }
}

/// What is looked for.
pub(super) struct Wanted<'w> {
    pub(super) kind: FindingKind,
    pub(super) isolation: &'w str,
    /// The round in which it was found.
    pub(super) round: u64,
}

/// What of its round may show a finding, without all of it: the statements that it is about, with those that
/// wrote the same rows before, all of its transactions, and all of theirs. The smallest comes first: it mostly
/// does, and then there is little left to take.
pub(super) fn parts_of(round: &Script, finding: &Finding) -> Vec<Script> {
    let Finding { txns, statements, before, .. } = finding;
    let both = [statements.as_slice(), before].concat();
    let earlier: Vec<u32> = txns.iter().copied().chain(before.iter().map(|e| e.txn)).collect();
    let mut parts = vec![
        round.with_statements(statements),
        round.with_statements(&both),
        round.with_txns(txns),
        round.with_txns(&earlier),
    ];
    parts.retain(|part| !part.steps.is_empty() && part != round);
    parts.dedup();
    parts
}

/// Looks for the smallest script that shows what was found, beginning with the first of some that shows
/// it; none if none of them does.
pub(super) fn simplify(
    site: &Site<'_>,
    wanted: &Wanted<'_>,
    scripts: &[Script],
    budget: Duration,
    handle: &Handle,
) -> Result<Option<Simplified>, DbError> {
    let stage = site.at(wanted.isolation)?;
    let deadline = Instant::now() + budget;
    let mut search = Search { site, stage, wanted, tried: 0, deadline, handle };
    let mut first = None;
    for script in scripts {
        if search.is_over() {
            break;
        }
        let script = script.renumbered();
        first = search.shows(&script).map(|shown| (script, shown));
        if first.is_some() {
            break;
        }
    }
    let Some((mut script, mut shown)) = first else {
        search.stage.clear()?;
        return Ok(None);
    };
    let is_cut_short = search.reduce_all(&mut script, &mut shown);
    let renumbered = script.renumbered();
    let mut times = 0;
    for _ in 0..TRIALS {
        if let Some(again) = search.shows(&renumbered) {
            times += 1;
            (script, shown) = (renumbered.clone(), again);
        }
    }
    // What it comes to otherwise is worth knowing, but not worth losing it.
    let orders = Orders::of(site, &search.stage, &script, &shown.round).ok().flatten();
    search.stage.clear()?;
    Ok(Some(Simplified {
        claim: search.stage.claim(),
        orders,
        kind: wanted.kind,
        isolation: wanted.isolation.to_owned(),
        round: wanted.round,
        name: format!("{}-{}", wanted.isolation, wanted.kind),
        findings: 1,
        pattern: pattern(&shown.round, &script.txns()),
        cause: match wanted.kind {
            FindingKind::WrongResult => Cause::Other,
            _ => Cause::of(&shown.round, &site.product, wanted.isolation),
        },
        script,
        replayed: shown.round,
        history: shown.history,
        result: shown.result,
        difference: shown.difference,
        tried: search.tried,
        shown: (times, TRIALS),
        is_cut_short,
    }))
}

/// A replay that showed what was found.
struct Shows {
    round: Round,
    history: History,
    result: LevelResult,
    difference: Option<Difference>,
}

struct Search<'s> {
    site: &'s Site<'s>,
    stage: Stage<'s>,
    wanted: &'s Wanted<'s>,
    tried: u32,
    deadline: Instant,
    handle: &'s Handle,
}

impl Search<'_> {
    /// Whether there is no time for another script.
    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline || self.handle.is_interrupted()
    }

    /// Takes whatever can go, until nothing more can; tells whether time was up.
    fn reduce_all(&mut self, script: &mut Script, shown: &mut Shows) -> bool {
        loop {
            let before = script.clone();
            for kind in Reduction::ALL {
                if self.reduce(kind, script, shown)
                    || kind == Reduction::Transactions && self.fold(script, shown)
                {
                    return true;
                }
            }
            if *script == before {
                return false;
            }
        }
    }

    /// Takes whatever can go of a kind; tells whether time was up.
    fn reduce(&mut self, kind: Reduction, script: &mut Script, shown: &mut Shows) -> bool {
        // If everything becomes 0, nobody sees who overwrote whom.
        let is_plain = kind == Reduction::Values && self.is_plain(script, shown);
        let mut at = 0;
        loop {
            let smaller = script.reductions(kind, &self.site.product);
            let Some(next) = smaller.into_iter().nth(at) else { return false };
            if self.is_over() {
                return true;
            }
            match self.shows(&next).filter(|again| !is_plain || self.is_plain(&next, again)) {
                // What stood at this position is gone, and something else stands there now.
                Some(again) => (*script, *shown) = (next, again),
                None => at += 1,
            }
        }
    }

    /// Whether the answers alone tell that something is wrong: no order of the transactions gives them.
    fn is_plain(&self, script: &Script, shown: &Shows) -> bool {
        let orders = Orders::of(self.site, &self.stage, script, &shown.round);
        orders.ok().flatten().is_some_and(|orders| orders.same().is_none())
    }

    /// Puts what transactions leave among the first rows, where that will do; tells whether time was up.
    fn fold(&mut self, script: &mut Script, shown: &mut Shows) -> bool {
        let mut at = 0;
        while let Some(txn) = script.txns().get(at) {
            if self.is_over() {
                return true;
            }
            let folded = self.folded(script, *txn);
            match folded.and_then(|folded| self.shows(&folded).map(|again| (folded, again))) {
                Some(smaller) => (*script, *shown) = smaller,
                None => at += 1,
            }
        }
        false
    }

    fn folded(&mut self, script: &Script, txn: u32) -> Option<Script> {
        self.tried += 1;
        let alone = replay(self.site, &self.stage, &script.with_txns(&[txn])).ok()?;
        script.folded(txn, &alone)
    }

    /// Replays a script, and tells whether it shows what was found. One whose schema the database does
    /// not take shows nothing.
    fn shows(&mut self, script: &Script) -> Option<Shows> {
        self.tried += 1;
        let round = replay(self.site, &self.stage, script).ok()?;
        let isolation = self.wanted.isolation;
        let reading = Reading::of(&self.site.product, isolation);
        let history = history(&round, reading).ok()?;
        let checker = Checker::new(&history, CheckOptions::default());
        let result = checker.check(level_of_name(isolation));
        drop(checker);
        let difference = match self.wanted.kind {
            FindingKind::Anomaly(kind) => {
                let is_same = |anomaly: &Arc<Anomaly>| anomaly.kind == kind;
                if !result.verdict.anomalies().iter().any(is_same) {
                    return self.shows_by_predicate(kind, script, round);
                }
                Some(None)
            }
            FindingKind::OldVersion => (!old_versions(&round, reading).is_empty()).then_some(None),
            FindingKind::WrongResult if result.verdict.is_satisfied() => {
                match serial::compare(self.site, &self.stage, &script.schema, &round, &|| {
                    self.is_over()
                })
                .ok()?
                {
                    Serially::Different(difference) => Some(Some(difference)),
                    Serially::Same | Serially::Open => None,
                }
            }
            FindingKind::WrongResult => None,
        }?;
        Some(Shows { round, history, result, difference })
    }

    /// The same for an anomaly that takes a predicate.
    fn shows_by_predicate(
        &self,
        kind: AnomalyKind,
        script: &Script,
        round: Round,
    ) -> Option<Shows> {
        let (isolation, options) = (self.wanted.isolation, CheckOptions::default());
        let known =
            ByPredicate::of(self.site, &self.stage, isolation, &script.schema, &round, &options);
        let known = known.ok()??;
        known.anomalies().find(|anomaly| anomaly.kind == kind)?;
        let ByPredicate { history, results, .. } = known;
        let result = results.into_iter().next_back()?;
        Some(Shows { round, history, result, difference: None })
    }
}
