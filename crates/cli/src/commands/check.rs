//! `isolario check`: which levels recorded histories satisfy.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use isolario::check::{self, CheckOptions, Checker, HistoryView, Plan, StopFlag};
use isolario::db::Claim;
use isolario::model::{
    Attempt, History, KeyAssumption, Level, LevelResult, Outcome as TxnOutcome, RunRecord, TxnId,
};
use isolario::report::sentences::{self, test_name};
use isolario::report::{
    HistoryName, Provenance, Renderer, Report, RequestedLevels, StatedOrderEffect, Summary, Timing,
    deciding, overall_of_patterns, shell_word,
};
use isolario::run::{
    Ask, LostCommits, Shrinking, examine_own_word_again, examine_with, peak_rss_bytes,
    recorded_ask, recorded_outages, report_of_lost,
};
use isolario::shrink::{self, Shrunk, ShrunkHistory};
use isolario::verify::proof::Digest;
use isolario::verify::verify;

use crate::args::MatchesBy;
use crate::commands::follow::{self, Followed, report_bad_times_in};
use crate::commands::spill;
use crate::commands::verify::{Proof, read_as};
use crate::config::{Check, Question, SerializationOrder, Spill};
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::join::load_joined;
use crate::load::{
    LoadedHistory, ask_for_matches, load, read_serialization_order, read_version_order,
    report_remarks,
};
use crate::output::Output;
use crate::progress::Progress;
use crate::reports::{Files, renderer, tell};
use crate::run::whitebox;
use crate::run_directory;

/// How long the smallest parts of all histories of one page are looked for.
const ALL_EXCERPTS: Duration = Duration::from_secs(30);

/// How long to look for another order of versions, where there is no limit.
const BRIEFLY: Duration = Duration::from_secs(10);

pub(crate) fn run(config: &Check, console: &mut Console) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::listen(console.quiet)?;
    let mut checking = Checking {
        config,
        stop: interrupt.stop(),
        renderer: renderer(config.form, console),
        files: Files::new(&config.reports),
        summary: Summary::default(),
        is_lost: false,
        left_for_excerpts: ALL_EXCERPTS,
        tests: BTreeMap::new(),
    };
    let mut outcome = Outcome::Done;
    if let (Some(follow), [history]) = (&config.follow, &config.histories[..])
        && follow::follow(config, follow, history, &interrupt, console)? == Followed::ToItsEnd
    {
        return Ok(Outcome::Done);
    }
    checking.renderer.begin(console.out())?;
    for path in &config.histories {
        outcome = outcome.max(match interrupt.happened() {
            false => checking.one(path, console)?,
            true => checking.leave_out(path, console)?,
        });
    }
    checking.end(console)?;
    Ok(if checking.is_lost { Outcome::Error } else { outcome })
}

/// A run over histories.
struct Checking<'c> {
    config: &'c Check,
    /// Asked when the run is interrupted.
    stop: StopFlag,
    renderer: Box<dyn Renderer>,
    files: Files<'c>,
    summary: Summary,
    /// Whether a file could not be written.
    is_lost: bool,
    /// How long the smallest parts of all histories may be looked for from now on.
    left_for_excerpts: Duration,
    /// How many histories there were of each test.
    tests: BTreeMap<String, u32>,
}

impl Checking<'_> {
    /// Checks one history. One that cannot be read does not stop the others; only standard output
    /// that cannot be written to does.
    fn one(&mut self, path: &Path, console: &mut Console) -> Result<Outcome, Failure> {
        let name = path.display().to_string();
        if let Err(failure) = run_directory::refuse_part(path) {
            return self.refuse(&name, &failure, console);
        }
        if let Some(spill) = &self.config.spill {
            let choice = spill::choose(spill, self.config.format, path);
            console.detail(&format!("{name}: {choice}"));
            // Lost commits are not looked for piece by piece.
            if choice.spills && run_directory::outages_beside(path).is_empty() {
                return self.spilled(spill, &name, path, console);
            }
        }
        let (loaded, mut options) = match self.prepare(&name, path, console) {
            Ok(prepared) => prepared,
            Err(failure) => return self.refuse(&name, &failure, console),
        };
        match &self.config.question {
            Question::Levels(request) => {
                let begun = Instant::now();
                let progress = (!console.quiet).then(|| Progress::of_check(&mut options));
                let checker = Checker::new(&loaded.history, options.clone());
                let mut record = run_directory::record_beside(path);
                let asked = self.as_in_the_run(record.as_ref());
                if console.verbose {
                    let levels = asked.as_ref().map(|(ask, claim)| ask.levels_or(claim));
                    let levels = levels.as_deref().unwrap_or(&request.levels);
                    detail_plan(&checker, levels, &name, console);
                }
                let examination =
                    asked.map(|(ask, claim)| examine_with(&checker, &loaded.history, &ask, &claim));
                let (results, asked) = match &examination {
                    Some(examination) => (examination.results.clone(), examination.asked()),
                    None => (
                        checker.check_named(&request.levels, &request.named),
                        RequestedLevels {
                            named: &request.named,
                            weakest_only: request.open,
                            claim: &[],
                        },
                    ),
                };
                if console.verbose {
                    results.iter().for_each(|result| {
                        let LevelResult { level, decided_by, .. } = result;
                        console.detail(&format!("{name}: {level}: decided by {decided_by}"));
                    });
                }
                let stated = self.stated(&checker, &results, begun);
                drop(progress);
                let outages = record.as_ref().map_or_else(Vec::new, recorded_outages);
                let durability =
                    record.as_ref().map_or_else(String::new, |run| run.durability.clone());
                let lost = LostCommits::find(&loaded.history, &outages);
                let test = self.test_name(&name, record.as_ref());
                let history = HistoryName { test: &test, ..self.named(&name) };
                let report = Report::new(history, &loaded.history, &results)
                    .with_asked(asked)
                    .with_lost(report_of_lost(lost.as_ref(), &outages, &durability));
                let excerpt = self.excerpt(&report, &options);
                let report = report
                    .with_excerpt(excerpt.as_ref().map(ShrunkHistory::excerpt))
                    .with_timing(timing(&loaded, begun))
                    .with_provenance(self.provenance(path, &loaded.history));
                let report = match &stated {
                    Some(stated) => report.with_stated(stated),
                    None => report,
                };
                let own_word = match (&mut record, &examination, path.parent()) {
                    (Some(record), Some(_), Some(directory)) => {
                        examine_own_word_again(&loaded.history, directory, record, &options)
                    }
                    _ => Ok(Default::default()),
                };
                let judgement = match &record {
                    Some(record) => report.judgement_of_run(record),
                    None => report.judgement(),
                };
                self.report(report, record.as_ref(), console)?;
                let own_word = own_word.unwrap_or_else(|why| {
                    console.warning(&format!("the database's own log could not be used: {why}"));
                    Default::default()
                });
                let own_word = [&own_word[0][..], &own_word[1][..]];
                whitebox::by_basis(history, own_word, |name, results| {
                    let asked = RequestedLevels { weakest_only: false, ..asked };
                    let report = Report::new(name, &loaded.history, results).with_asked(asked);
                    self.files.further(&report);
                    self.renderer.report(&report, console.out())
                })?;
                if request.open && examination.is_none() && deciding(&results).is_none() {
                    console.warning(&format!("{name}: no level could be decided"));
                }
                if let Some(file) = &self.config.proof {
                    let proof = Proof {
                        history: &loaded.history,
                        results: &results,
                        outages: &outages,
                        lost: lost.as_ref(),
                    };
                    let written = proof.write(&options, &name, file);
                    self.is_lost |= !tell(written, "the proof", file, console);
                }
                Ok(judgement.into())
            }
            Question::Patterns { kinds, named } => {
                let begun = Instant::now();
                let results = check::patterns(&loaded.history, kinds, &self.plain_options());
                let record = run_directory::record_beside(path);
                let test = self.test_name(&name, record.as_ref());
                let history = HistoryName { test: &test, ..self.named(&name) };
                let report = Report::of_patterns(history, &loaded.history, &results)
                    .with_timing(timing(&loaded, begun))
                    .with_provenance(self.provenance(path, &loaded.history));
                self.report(report, record.as_ref(), console)?;
                Ok(overall_of_patterns(&results, *named).into())
            }
        }
    }

    /// Decides levels of one history without loading it.
    fn spilled(
        &mut self,
        spill: &Spill,
        name: &str,
        path: &Path,
        console: &mut Console,
    ) -> Result<Outcome, Failure> {
        let Question::Levels(request) = &self.config.question else { return Ok(Outcome::Done) };
        let begun = Instant::now();
        let options = self.plain_options();
        let spilled = spill::decide(spill, self.config, path, &request.named, &options);
        let decided = spilled.and_then(|spilled| {
            match spilled.figures.has_evidence || self.config.allow_empty {
                true => Ok(spilled),
                false => Err(without_evidence(name, "no committed transaction wrote or read")),
            }
        });
        let spilled = match decided {
            Ok(spilled) => spilled,
            Err(failure) => return self.refuse(name, &failure, console),
        };
        report_bad_times_in(path, self.config.format, console)?;
        spill::tell(name, &spilled, console);
        let check = begun.elapsed();
        let timing = Timing { check, peak_rss_bytes: peak_rss_bytes(), ..Timing::default() };
        let verify = self.config.proof.iter().map(|proof| self.verify(path, proof));
        let provenance = verify.fold(Provenance::new(), Provenance::with_verify);
        let record = run_directory::record_beside(path);
        let test = self.test_name(name, record.as_ref());
        let history = HistoryName { test: &test, ..self.named(name) };
        let mut report = Report::new(history, &spilled.part, &spilled.results)
            .with_named(&request.named)
            .with_timing(timing)
            .with_provenance(provenance);
        report.size = spill::size(&spilled.figures);
        let judgement = report.judgement();
        self.report(report, record.as_ref(), console)?;
        if let Some(file) = &self.config.proof {
            let written = spill::write_proof(self.config, path, &spilled, &options, file);
            self.is_lost |= !tell(written, "the proof", file, console);
        }
        Ok(judgement.into())
    }

    /// What the answers owe to a version order that is trusted: whether another one would have done, as
    /// far as that is found out in the time that is left.
    fn stated(
        &self,
        checker: &Checker<'_>,
        results: &[LevelResult],
        begun: Instant,
    ) -> Option<StatedOrderEffect> {
        let options = &self.config.options;
        if self.config.version_order.is_none() || !options.trust_version_order {
            return None;
        }
        let left = match options.timeout {
            Some(limit) => limit.saturating_sub(begun.elapsed()),
            None => BRIEFLY,
        };
        let otherwise = checker.without_statements(results, left);
        let operations_without_set = checker.operations_without_set();
        (!otherwise.is_empty() || operations_without_set > 0)
            .then_some(StatedOrderEffect { otherwise, operations_without_set })
    }

    /// Says of a history that its turn did not come. That is no error: it is not decided.
    fn leave_out(&mut self, path: &Path, console: &mut Console) -> Result<Outcome, Failure> {
        let name = path.display().to_string();
        let why = "not checked: interrupted before this history";
        self.failure(&name, why, console)?;
        console.warning(&format!("{name}: {why}"));
        Ok(Outcome::Undecided)
    }

    /// What the run was asked that recorded a history, where nothing else is asked now.
    fn as_in_the_run(&self, record: Option<&RunRecord>) -> Option<(Ask, Claim)> {
        let Question::Levels(request) = &self.config.question else { return None };
        let is_plain = request.open && self.config.serialization_order.is_none();
        // A part of a history cannot keep a claim.
        record.filter(|record| is_plain && record.host.is_none()).map(recorded_ask)
    }

    /// What reports call a history. One in parts has no file of its own.
    fn named<'n>(&self, name: &'n str) -> HistoryName<'n> {
        let is_file = self.config.join.as_ref().is_none_or(|join| join.whole.is_some());
        let named = HistoryName::from(name);
        HistoryName { file: named.file.filter(|_| is_file), ..named }
    }

    /// What a history is a test of: of a run, what was run, since its directory has another name each
    /// time. Of several alike, all but the first have a number.
    fn test_name(&mut self, name: &str, record: Option<&RunRecord>) -> String {
        let test = record.map_or_else(|| name.to_owned(), test_name);
        let count = self.tests.entry(test.clone()).or_default();
        *count += 1;
        if *count == 1 { test } else { format!("{test} ({count})") }
    }

    fn plain_options(&self) -> CheckOptions {
        let mut options = self.config.options.clone();
        options.stop = self.stop.clone();
        options
    }

    /// A history that can be checked, and the options with the orders that are stated about it.
    fn prepare(
        &self,
        name: &str,
        path: &Path,
        console: &mut Console,
    ) -> Result<(LoadedHistory, CheckOptions), Failure> {
        let mut options = self.plain_options();
        let loaded = load_valid(name, path, self.config, &mut options, console)?;
        if let Some(file) = &self.config.version_order {
            let stated = read_version_order(file, name, &loaded.history, console)?;
            (options.version_order, options.version_sets) = (stated.orders, stated.sets);
        }
        if let Some(order) = &self.config.serialization_order {
            let order = read_serialization_order(order, name, &loaded.history, console)?;
            options.promised_order = Some(order);
        }
        Ok((loaded, options))
    }

    /// Ends with a history that cannot be checked. It does not stop the others.
    fn refuse(
        &mut self,
        name: &str,
        failure: &Failure,
        console: &mut Console,
    ) -> Result<Outcome, Failure> {
        self.failure(name, &failure.message, console)?;
        console.error(failure);
        Ok(Outcome::Error)
    }

    /// Reports that there is no answer about a history.
    fn failure(&mut self, name: &str, why: &str, console: &mut Console) -> Result<(), Failure> {
        self.renderer.failure(self.named(name), why, console.out())?;
        self.is_lost |= !self.files.failure(name, why, console);
        self.summary.add_failure();
        Ok(())
    }

    /// Prints first and writes files then: whatever becomes of those, the verdict is out.
    fn report(
        &mut self,
        report: Report<'_>,
        run: Option<&RunRecord>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let report = report.with_max_anomalies(self.config.max_anomalies);
        self.summary.add(&report);
        self.renderer.report(&report, console.out())?;
        console.out().flush()?;
        self.is_lost |= !self.files.report(&report, run, console);
        Ok(())
    }

    /// The smallest part that shows what is wrong, for a page or a bug report; if the verifier accepts
    /// it. Of many histories, the first ones have theirs.
    fn excerpt(&mut self, report: &Report<'_>, options: &CheckOptions) -> Option<ShrunkHistory> {
        let reports = &self.config.reports;
        reports.bug_report.as_ref().or(reports.html.as_ref()).filter(|_| options.minimize)?;
        let wanted = shrink::Settings::default()
            .with_options(options.clone())
            .with_first_of(report)
            .with_timeout(Shrinking::BRIEFLY.min(self.left_for_excerpts));
        let begun = Instant::now();
        let found = ShrunkHistory::find(report.history, report.results, &wanted);
        self.left_for_excerpts = self.left_for_excerpts.saturating_sub(begun.elapsed());
        let found = found?;
        let Shrunk { history, result, .. } = &found.shrunk;
        verify(history, result, &read_as(options)).is_ok().then_some(found)
    }

    /// Where the reports come from. The digest takes time: it is there where somebody reads it.
    fn provenance(&self, path: &Path, history: &History) -> Provenance {
        let mut provenance = Provenance::new();
        if self.config.reports.want_digest() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            provenance =
                provenance.with_unix_s(now.as_secs()).with_digest(Digest::of(history).to_string());
        }
        let verify = match &self.config.proof {
            Some(proof) => Some(self.verify(path, proof)),
            None if run_directory::record_beside(path).is_some() => {
                run_directory::verify_beside(path)
            }
            None => None,
        };
        verify.into_iter().fold(provenance, Provenance::with_verify)
    }

    /// The command that verifies the proof, with the flags it needs to read the history alike.
    fn verify(&self, history: &Path, proof: &Path) -> String {
        let mut command = run_directory::verify(history, proof);
        if let Some(format) = self.config.format.named {
            command += &format!(" --format {}", format.name());
        }
        if self.config.format.leaves_out_contradictory_times {
            command += " --bad-times unknown";
        }
        if let Some(file) = &self.config.version_order
            && self.config.options.trust_version_order
        {
            let file = shell_word(&file.display().to_string());
            command += &format!(" --version-order {file} --trust-version-order");
        }
        if !self.config.options.assume.is_empty() {
            let assumed: Vec<&str> =
                self.config.options.assume.iter().map(KeyAssumption::name).collect();
            command += &format!(" --assume {}", assumed.join(","));
        }
        if let Some(order) = &self.config.serialization_order {
            let order = match order {
                SerializationOrder::Timestamps => "timestamps".to_owned(),
                SerializationOrder::File(file) => shell_word(&file.display().to_string()),
            };
            command += &format!(" --serialization-order {order}");
        }
        if let Some(MatchesBy::Sqlite) = self.config.matches {
            command += " --matches sqlite";
        }
        command
    }

    fn end(&mut self, console: &mut Console) -> Result<(), Failure> {
        if self.config.histories.len() > 1 {
            self.renderer.summary(&self.summary, console.out())?;
        }
        self.renderer.end(console.out())?;
        console.out().flush()?;
        self.is_lost |= !self.files.end(console);
        Ok(())
    }
}

/// Says how each level will be decided: levels with the same plan together, then what each attempt does.
fn detail_plan(checker: &Checker<'_>, levels: &[Level], name: &str, console: &mut Console) {
    let mut plans: Vec<(Plan, Vec<Level>)> = Vec::new();
    for level in levels {
        let plan = checker.plan(*level);
        match plans.iter_mut().find(|(same, _)| *same == plan) {
            Some((_, levels)) => levels.push(*level),
            None => plans.push((plan, vec![*level])),
        }
    }
    let mut attempts: Vec<Attempt> = Vec::new();
    for (plan, levels) in &plans {
        let levels: Vec<&str> = levels.iter().map(|level| level.name()).collect();
        let steps: Vec<&str> = plan.attempts().iter().map(|attempt| attempt.name()).collect();
        let steps = match (steps.is_empty(), seen_as(plan.view())) {
            (true, _) => "not applicable".to_owned(),
            (false, None) => steps.join(", then "),
            (false, Some(view)) => format!("{view}: {}", steps.join(", then ")),
        };
        console.detail(&format!("{name}: plan for {}: {steps}", levels.join(", ")));
        attempts.extend_from_slice(plan.attempts());
    }
    attempts.sort_unstable();
    attempts.dedup();
    for attempt in attempts {
        console.detail(&format!("{name}: {attempt}: {}", sentences::attempt(attempt)));
    }
}

/// What is made of a history before the attempts, if anything is.
fn seen_as(view: HistoryView) -> Option<&'static str> {
    match view {
        HistoryView::Sessionless => Some("without session order"),
        HistoryView::Registers => Some("conditional writes as reads and writes"),
        HistoryView::SingleRows => Some("predicates and returning rows as single rows"),
        _ => None,
    }
}

fn timing(loaded: &LoadedHistory, begun: Instant) -> Timing {
    Timing { load: loaded.time, check: begun.elapsed(), peak_rss_bytes: peak_rss_bytes() }
}

/// Reads a history that can be checked. Of one in parts, the options learn how far its times may be off.
fn load_valid(
    name: &str,
    path: &Path,
    config: &Check,
    options: &mut CheckOptions,
    console: &mut Console,
) -> Result<LoadedHistory, Failure> {
    let loaded = match &config.join {
        None => load(path, config.format, console)?,
        Some(join) => {
            join.whole.as_ref().map_or(Ok(()), Output::refuse_existing)?;
            let joined = load_joined(&join.parts, config.format, join.stated_skew, console)?;
            options.clock_skew = joined.skew_ns;
            if let Some(whole) = &join.whole {
                whole.write(|sink| joined.loaded.history.replay(sink))?;
            }
            joined.loaded
        }
    };
    let loaded =
        LoadedHistory { history: ask_for_matches(loaded.history, config.matches)?, ..loaded };
    let remarks = loaded.history.validate();
    match report_remarks(name, &loaded.history, &remarks, console) {
        Some(contradiction) => Err(contradiction),
        None if !config.allow_empty && !loaded.history.has_evidence() => {
            Err(nothing_to_check(name, &loaded.history))
        }
        None => Ok(loaded),
    }
}

/// Every level holds of a history that shows nothing. To say so would let a test pass by accident.
fn nothing_to_check(name: &str, history: &History) -> Failure {
    let committed = |txn: &TxnId| history.outcome(*txn) == TxnOutcome::Committed;
    let why = match (history.txn_count(), history.txns().filter(committed).count()) {
        (0, _) => "the history has no transactions",
        (_, 0) => "no transaction committed",
        _ => "no committed transaction wrote anything or received the result of a read",
    };
    without_evidence(name, why)
}

fn without_evidence(name: &str, why: &str) -> Failure {
    Failure::new(format!("{name}: nothing to check: {why}"))
        .with_hint("use --allow-empty to treat such a history as satisfying every level")
}
