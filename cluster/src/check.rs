//! Levels, decided by plans over the whole history and by our own checkers on small parts of it.

use std::fs::remove_file;
use std::path::{Path, PathBuf};

use isolario_check::{CheckOptions, Checker};
use isolario_formats::read;
use isolario_model::{History, Level, LevelResult, Verdict};
use rayon::prelude::*;

use crate::Error;
use crate::convert::write_history;
use crate::edges::{Edges, Rule};
use crate::engine::{Engine, Settings};
use crate::parts::{Beginning, Part, take_out};
use crate::reads::{Reads, resolve};
use crate::rows::integers;
use crate::table::{Table, blame};
use crate::windows::Windows;

/// So many operations are taken out of the history before they are looked at.
const AT_ONCE: usize = 1 << 18;
/// A window of more transactions is too large to be handed to a worker.
const TASK: usize = 100_000;
/// So many violated parts are handed back.
const FINDINGS: usize = 20;

/// What came of a level.
#[derive(Debug)]
pub struct Answer {
    /// The level.
    pub level: Level,
    /// What is said of it.
    pub conclusion: Conclusion,
    /// How many windows were looked at.
    pub windows: usize,
    /// How many transactions the largest of them has.
    pub largest: usize,
    /// Whether the largest was too large to be handed to a worker, and was looked at by the process that was asked.
    pub too_large: bool,
}

/// What is said of a level.
#[derive(Debug)]
#[non_exhaustive]
pub enum Conclusion {
    /// It holds: all edges between windows lead forward, and each window satisfies it.
    Satisfied,
    /// It does not: a part of the history does not satisfy it.
    Violated(Vec<Finding>),
    /// Plans and windows do not tell.
    Undecided(Reason),
}

impl Conclusion {
    fn is_satisfied(&self) -> bool {
        matches!(self, Conclusion::Satisfied)
    }
}

/// A part of the history that violates a level. Its transactions have the names that they have in the whole, or
/// their positions there.
#[derive(Debug)]
pub struct Finding {
    /// The part.
    pub history: History,
    /// What the checker says of it.
    pub result: LevelResult,
}

/// Why a level is not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// This transaction, by position, read what several may have written.
    Ambiguous(i64),
    /// This transaction, by position, read an initial value of a key that others saw with another one.
    SeveralInitial(i64),
    /// This transaction, by position, wrote a key without having read it, and nothing says after whom.
    BlindWrite(i64),
    /// There are no plans for the level.
    NoPlan,
    /// Weaker levels hold, stronger ones do not, and there are no plans for the one between.
    Between,
    /// The level is about times, and there are none.
    NoTimes,
    /// The checker did not decide a part.
    PartOpen,
}

/// Decides levels of the history in a table.
pub fn check(path: &Path, levels: &[Level], settings: &Settings) -> Result<Vec<Answer>, Error> {
    let table = Table::open(path)?;
    let files = table.files.clone();
    decide_all(table, levels, settings).map_err(|error| blame(&files, error))
}

fn decide_all(table: Table, levels: &[Level], settings: &Settings) -> Result<Vec<Answer>, Error> {
    let mut engine = Engine::new(settings)?;
    engine.open(&table)?;
    let reads = resolve(&mut engine, &table)?;
    let mut check = Check { engine, table, reads };
    levels.iter().map(|level| check.decide(*level)).collect()
}

struct Check {
    engine: Engine,
    table: Table,
    reads: Reads,
}

impl Check {
    fn decide(&mut self, level: Level) -> Result<Answer, Error> {
        match Rule::of(level) {
            Some(_) if level.shape().real_time && !self.has_times()? => {
                Ok(undecided(level, Reason::NoTimes))
            }
            Some(rule) => self.decide_by(rule, level),
            None if level == Level::Causal => self.decide_causal(),
            None => Ok(undecided(level, Reason::NoPlan)),
        }
    }

    /// What a reader depends on is not bounded by windows. But causal consistency lies between two levels that are
    /// decided.
    fn decide_causal(&mut self) -> Result<Answer, Error> {
        let level = Level::Causal;
        let weaker = self.decide_by(Rule::ReadAtomic, Level::ReadAtomic)?;
        match weaker.conclusion {
            Conclusion::Satisfied => {}
            Conclusion::Violated(findings) => {
                let again = |finding: Finding| examine(finding.history, level);
                let findings = findings.into_iter().map(again).collect();
                return Ok(Answer { level, conclusion: confirm(findings), ..weaker });
            }
            Conclusion::Undecided(_) => return Ok(Answer { level, ..weaker }),
        }
        let stronger = self.decide_by(Rule::Replacements, Level::SnapshotIsolation)?;
        let conclusion = match stronger.conclusion.is_satisfied() {
            true => Conclusion::Satisfied,
            false => Conclusion::Undecided(Reason::Between),
        };
        Ok(Answer { level, conclusion, ..stronger })
    }

    fn decide_by(&mut self, rule: Rule, level: Level) -> Result<Answer, Error> {
        if !self.reads.suspicions.is_empty() {
            let suspicions = self.reads.suspicions.clone();
            let found = self.decide_parts(&suspicions, level)?;
            return Ok(answer(level, confirm(found)));
        }
        if let Some(reason) = self.reads.open {
            return Ok(undecided(level, reason));
        }
        let edges = Edges::find(&mut self.engine, rule)?;
        if let Some(txn) = edges.blind {
            return Ok(undecided(level, Reason::BlindWrite(txn)));
        }
        if !edges.stale.is_empty() {
            let found = self.decide_parts(&edges.stale, level)?;
            return Ok(answer(level, confirm(found)));
        }
        self.decide_windows(&Windows::join(edges.back), rule, level)
    }

    /// Decides parts of a few transactions each.
    fn decide_parts(&mut self, parts: &[Vec<i64>], level: Level) -> Result<Vec<Finding>, Error> {
        let mut parts: Vec<Part> =
            parts.iter().map(|txns| Part::of(txns.iter().copied())).collect();
        parts.iter_mut().for_each(|part| part.add_vouchers(&self.reads.vouchers));
        self.examine_all(&parts, Beginning::AsWhole, level)
    }

    fn decide_windows(
        &mut self,
        windows: &Windows,
        rule: Rule,
        level: Level,
    ) -> Result<Answer, Error> {
        let mut parts = self.members(windows)?;
        let beginning = match rule {
            Rule::Replacements => Beginning::Unwritten,
            _ => {
                self.add_readers(&mut parts)?;
                Beginning::AsWhole
            }
        };
        parts.iter_mut().for_each(|part| part.add_vouchers(&self.reads.vouchers));
        let found = self.examine_all(&parts, beginning, level)?;
        let largest = parts.iter().map(Part::len).max().unwrap_or_default();
        Ok(Answer {
            windows: parts.len(),
            largest,
            too_large: self.engine.has_workers() && largest > TASK,
            ..answer(level, conclude(found))
        })
    }

    /// The transactions of each window.
    fn members(&self, windows: &Windows) -> Result<Vec<Part>, Error> {
        let Some(whole) = windows.whole() else { return Ok(Vec::new()) };
        let mut parts = vec![Part::default(); windows.len()];
        let query = format!(
            "SELECT txn, rank FROM counted WHERE rank BETWEEN {} AND {}",
            whole.first, whole.last
        );
        self.engine.each(&query, |batch| {
            let (txn, rank) = (integers(batch, "txn")?, integers(batch, "rank")?);
            for (txn, rank) in txn.values().iter().zip(rank.values()) {
                if let Some(window) = windows.of(*rank) {
                    parts[window].members.insert(*txn);
                }
            }
            Ok(())
        })?;
        Ok(parts)
    }

    /// Adds to each window the readers from which its inferred edges follow.
    fn add_readers(&mut self, parts: &mut [Part]) -> Result<(), Error> {
        if parts.is_empty() {
            return Ok(());
        }
        self.engine.keep_rows("members", &crate::parts::table(parts)?)?;
        let query = "SELECT DISTINCT a.part, i.reader FROM inferred i
                     JOIN members a ON a.txn = i.before
                     JOIN members b ON b.txn = i.after AND b.part = a.part";
        self.engine.each(query, |batch| {
            let (part, reader) = (integers(batch, "part")?, integers(batch, "reader")?);
            for (part, reader) in part.values().iter().zip(reader.values()) {
                let part = &mut parts[*part as usize];
                if !part.members.contains(reader) {
                    part.witnesses.insert(*reader);
                }
            }
            Ok(())
        })
    }

    /// Takes parts out and asks the checker about each, here or as tasks of the workers; what it does not find to
    /// hold is handed back.
    fn examine_all(
        &mut self,
        parts: &[Part],
        beginning: Beginning,
        level: Level,
    ) -> Result<Vec<Finding>, Error> {
        let mut found: Vec<Finding> = Vec::new();
        let mut here: Vec<History> = Vec::new();
        let mut operations = 0;
        let mut tasks: Vec<PathBuf> = Vec::new();
        let (vouchers, meta) = (&self.reads.vouchers, &self.table.about.meta);
        take_out(&mut self.engine, parts, vouchers, beginning, meta, |engine, number, history| {
            if engine.has_workers() && history.txn_count() <= TASK {
                tasks.push(engine.history_file(number));
                return write_history(&history, &engine.history_file(number));
            }
            operations += history.op_count();
            here.push(history);
            if operations >= AT_ONCE {
                found.extend(examine_here(&mut here, level));
                operations = 0;
            }
            Ok(())
        })?;
        found.extend(examine_here(&mut here, level));
        if !tasks.is_empty() {
            for file in self.engine.hand_out(level, &tasks)? {
                found.push(examine(read(&file)?.history, level));
            }
            tasks.iter().try_for_each(|file| remove_file(file).map_err(Error::file(file)))?;
        }
        Ok(found)
    }

    fn has_times(&self) -> Result<bool, Error> {
        let mut has_times = false;
        let query = "SELECT txn FROM ops WHERE start IS NOT NULL OR finish IS NOT NULL LIMIT 1";
        self.engine.each(query, |batch| {
            has_times |= batch.num_rows() > 0;
            Ok(())
        })?;
        Ok(has_times)
    }
}

/// Examines all that wait, several at once.
fn examine_here(waiting: &mut Vec<History>, level: Level) -> Vec<Finding> {
    let waiting = std::mem::take(waiting).into_par_iter();
    let examined = waiting.map(|history| examine(history, level));
    examined.filter(|finding| !finding.result.verdict.is_satisfied()).collect()
}

fn examine(history: History, level: Level) -> Finding {
    let result = Checker::new(&history, CheckOptions::default()).check(level);
    Finding { history, result }
}

/// What follows from the windows that were not found to satisfy a level.
fn conclude(findings: Vec<Finding>) -> Conclusion {
    match findings.is_empty() {
        true => Conclusion::Satisfied,
        false => confirm(findings),
    }
}

/// What follows where something is wrong: a violation of a part is certain, and nothing else is.
fn confirm(mut findings: Vec<Finding>) -> Conclusion {
    findings.retain(|finding| matches!(finding.result.verdict, Verdict::Violated(_)));
    findings.truncate(FINDINGS);
    match findings.is_empty() {
        true => Conclusion::Undecided(Reason::PartOpen),
        false => Conclusion::Violated(findings),
    }
}

fn answer(level: Level, conclusion: Conclusion) -> Answer {
    Answer { level, conclusion, windows: 0, largest: 0, too_large: false }
}

fn undecided(level: Level, reason: Reason) -> Answer {
    answer(level, Conclusion::Undecided(reason))
}
