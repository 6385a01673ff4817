//! The smallest script that still shows an anomaly, found by trying.
//!
//! The transactions of the anomaly become a script, in the order in which their statements were sent.
//! If that shows the anomaly again, whatever can go is taken from it, one thing at a time (transactions,
//! statements, tables, parts of statements, rows, columns, constraints), and each smaller script is
//! replayed on a fresh schema. What is left when nothing more can go is replayed a few times more: how
//! often it showed the anomaly is part of the result.

use std::sync::Arc;
use std::time::{Duration, Instant};

use isolario_check::{Checker, Options};
use isolario_db::DbError;
use isolario_model::{Anomaly, AnomalyKind, History, LevelResult};
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

/// What is looked for.
pub(super) struct Wanted<'w> {
    pub(super) kind: AnomalyKind,
    pub(super) isolation: &'w str,
    /// The round in which it was found.
    pub(super) round: u64,
}

/// The scripts that may show a finding: its transactions alone or, if they need others, all of its round.
pub(super) fn scripts_of(examined: &Examined, finding: &Finding) -> [Script; 2] {
    let whole = Script::of(&examined.round, &examined.schema);
    [whole.with_txns(&finding.txns), whole]
}

/// Looks for the smallest script that shows an anomaly, beginning with the first of some that shows it;
/// none if none of them does.
pub(super) fn simplify(
    site: &Site<'_>,
    wanted: &Wanted<'_>,
    scripts: &[Script],
    budget: Duration,
) -> Result<Option<Simplified>, DbError> {
    let stage = site.at(wanted.isolation)?;
    let mut search = Search { site, stage, wanted, tried: 0, deadline: Instant::now() + budget };
    let mut first = None;
    for script in scripts {
        first = search.shows(script).map(|shown| (script.clone(), shown));
        if first.is_some() {
            break;
        }
    }
    let Some((mut script, mut shown)) = first else {
        search.clear(scripts.last())?;
        return Ok(None);
    };
    let mut is_cut_short;
    loop {
        let before = script.clone();
        is_cut_short = false;
        for kind in Reduction::ALL {
            is_cut_short |= search.reduce(kind, &mut script, &mut shown);
        }
        if is_cut_short || script == before {
            break;
        }
    }
    let mut times = 0;
    for _ in 0..TRIALS {
        if let Some(again) = search.shows(&script) {
            times += 1;
            shown = again;
        }
    }
    search.clear(Some(&script))?;
    Ok(Some(Simplified {
        kind: wanted.kind,
        isolation: wanted.isolation.to_owned(),
        round: wanted.round,
        pattern: pattern(&shown.round, &script.txns()),
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
    wanted: &'s Wanted<'s>,
    tried: u32,
    deadline: Instant,
}

impl Search<'_> {
    /// Takes whatever can go of a kind; tells whether time was up.
    fn reduce(&mut self, kind: Reduction, script: &mut Script, shown: &mut Shows) -> bool {
        let mut at = 0;
        loop {
            let smaller = script.reductions(kind, &self.site.product);
            let Some(next) = smaller.into_iter().nth(at) else { return false };
            if Instant::now() >= self.deadline {
                return true;
            }
            match self.shows(&next) {
                // What stood at this position is gone, and something else stands there now.
                Some(again) => (*script, *shown) = (next, again),
                None => at += 1,
            }
        }
    }

    /// Replays a script, and tells whether it shows the anomaly. One whose schema the database does not
    /// take shows nothing.
    fn shows(&mut self, script: &Script) -> Option<Shows> {
        self.tried += 1;
        let round = replay(self.site, &self.stage, script).ok()?;
        let isolation = self.wanted.isolation;
        let without_locking_reads = self.site.product.has_current_reads(isolation);
        let history = history(&round, Reading { without_locking_reads }).ok()?;
        let checker = Checker::new(&history, Options::default());
        let result = checker.check(level_of_name(isolation));
        drop(checker);
        let is_same = |anomaly: &Arc<Anomaly>| anomaly.kind == self.wanted.kind;
        let is_shown = result.verdict.anomalies().iter().any(is_same);
        is_shown.then_some(Shows { round, history, result })
    }

    /// Leaves nothing of the last script behind.
    fn clear(&self, last: Option<&Script>) -> Result<(), DbError> {
        last.map_or(Ok(()), |script| self.stage.clear(&script.schema))
    }
}
