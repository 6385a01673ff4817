//! The smallest script that still shows an anomaly, found by trying.
//!
//! The transactions of the anomaly become a script, in the order in which their statements were sent.
//! If that shows the anomaly again, whatever can go is taken from it, one thing at a time (transactions,
//! statements, tables, parts of statements, rows, columns, constraints), and each smaller script is
//! replayed on a fresh schema. What is left when nothing more can go is replayed a few times more: how
//! often it showed the anomaly is part of the result.

use std::time::{Duration, Instant};

use isolario_check::{Checker, Options};
use isolario_db::DbError;
use isolario_model::{AnomalyKind, History, LevelResult};
use isolario_sql::{Reading, Reduction, Round, Script, history};

use super::findings::{level_of_name, pattern};
use super::replay::replay;
use super::site::{Site, Stage};
use super::{Examined, Finding};

/// How often the smallest script is replayed in the end.
const TRIALS: u32 = 3;

/// A script that shows an anomaly, and nothing in it can be left out.
#[derive(Debug)]
#[non_exhaustive]
pub struct Simplified {
    /// What it shows.
    pub kind: AnomalyKind,
    /// The isolation level.
    pub isolation: String,
    /// The round in which it was found.
    pub round: u64,
    /// The script.
    pub script: Script,
    /// What came back when it was replayed.
    pub replayed: Round,
    /// The history of that.
    pub history: History,
    /// The answer for Adya's level of the setting's name.
    pub result: LevelResult,
    /// The statements, by which two findings are the same or not.
    pub pattern: String,
    /// How many scripts were tried.
    pub tried: u32,
    /// How often it showed the anomaly, of how many times.
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
}

/// Looks for the smallest script that shows a finding; none if it does not show when it is replayed.
pub(super) fn simplify(
    site: &Site<'_>,
    examined: &Examined,
    finding: &Finding,
    budget: Duration,
) -> Result<Option<Simplified>, DbError> {
    let stage = site.at(&finding.isolation)?;
    let mut search = Search { site, stage, finding, tried: 0, deadline: Instant::now() + budget };
    let whole = Script::of(&examined.round, &examined.schema);
    let Some((mut script, mut shown)) = search.first(&whole)? else {
        search.stage.clear(&whole.schema)?;
        return Ok(None);
    };
    let mut is_cut_short = false;
    loop {
        let size = script.clone();
        for kind in Reduction::ALL {
            is_cut_short = search.reduce(kind, &mut script, &mut shown)?;
        }
        if is_cut_short || script == size {
            break;
        }
    }
    let mut times = 0;
    for _ in 0..TRIALS {
        if let Some(again) = search.shows(&script)? {
            times += 1;
            shown = again;
        }
    }
    search.stage.clear(&script.schema)?;
    let txns: Vec<u32> = script.txns();
    Ok(Some(Simplified {
        kind: finding.kind,
        isolation: finding.isolation.clone(),
        round: finding.round,
        pattern: pattern(&shown.round, &txns),
        script,
        replayed: shown.round,
        history: shown.history,
        result: shown.result,
        tried: search.tried,
        shown: (times, TRIALS),
        is_cut_short,
    }))
}

/// A replay that showed the anomaly.
struct Shows {
    round: Round,
    history: History,
    result: LevelResult,
}

struct Search<'s> {
    site: &'s Site<'s>,
    stage: Stage<'s>,
    finding: &'s Finding,
    tried: u32,
    deadline: Instant,
}

impl Search<'_> {
    /// The transactions of the finding alone, or, if they need others, all that were sent.
    fn first(&mut self, whole: &Script) -> Result<Option<(Script, Shows)>, DbError> {
        for script in [whole.with_txns(&self.finding.txns), whole.clone()] {
            if let Some(shown) = self.shows(&script)? {
                return Ok(Some((script, shown)));
            }
        }
        Ok(None)
    }

    /// Takes whatever can go of a kind; tells whether time was up.
    fn reduce(
        &mut self,
        kind: Reduction,
        script: &mut Script,
        shown: &mut Shows,
    ) -> Result<bool, DbError> {
        let mut at = 0;
        loop {
            let smaller = script.reductions(kind, &self.site.product);
            let Some(next) = smaller.into_iter().nth(at) else { return Ok(false) };
            if Instant::now() >= self.deadline {
                return Ok(true);
            }
            match self.shows(&next)? {
                // What stood at this position is gone, and something else stands there now.
                Some(again) => (*script, *shown) = (next, again),
                None => at += 1,
            }
        }
    }

    fn shows(&mut self, script: &Script) -> Result<Option<Shows>, DbError> {
        self.tried += 1;
        // A script whose schema the database does not take shows nothing.
        let Ok(round) = replay(self.site, &self.stage, script) else { return Ok(None) };
        let isolation = &self.finding.isolation;
        let without_locking_reads = self.site.product.has_current_reads(isolation);
        let Ok(history) = history(&round, Reading { without_locking_reads }) else {
            return Ok(None);
        };
        let checker = Checker::new(&history, Options::default());
        let result = checker.check(level_of_name(isolation));
        let same = |kind: AnomalyKind| kind == self.finding.kind;
        let is_shown = result.verdict.anomalies().iter().any(|anomaly| same(anomaly.kind));
        drop(checker);
        Ok(is_shown.then_some(Shows { round, history, result }))
    }
}
