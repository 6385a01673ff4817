//! Proofs: what `isolario check --proof` writes, and `isolario verify`, which says whether it is right by
//! the history alone.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use isolario::check;
use isolario::follow::FollowError;
use isolario::follow::proof::{Means, Told, Verified, verify as verify_by_pieces};
use isolario::formats::version_order::VersionStatements;
use isolario::model::{History, Inapplicable, Level, LevelResult, Verdict, Witness};
use isolario::report::grouped;
use isolario::run::{LostCommits, Outage};
use isolario::verify::proof::{
    self, ProofError, ProofPremises, ProofProblem, VerifiedProof, verify_proof_with,
};
use isolario::verify::{NotLost, Refusal, VerifyOptions};
use serde::Serialize;

use crate::args::OutputForm;
use crate::commands::follow::{input_of, report_bad_times_in};
use crate::commands::spill::USUAL_MEMORY;
use crate::config::Verify;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::load::{ask_for_matches, load, read_serialization_order, read_version_order};
use crate::outfile::write_whole;
use crate::run_directory;

const SCHEMA: &str = "isolario.verification/1";

/// What a proof is to be written of.
pub(crate) struct Proof<'p> {
    pub(crate) history: &'p History,
    pub(crate) results: &'p [LevelResult],
    /// When the server was down.
    pub(crate) outages: &'p [Outage],
    pub(crate) lost: Option<&'p LostCommits>,
}

impl Proof<'_> {
    /// Writes it. The file is there as a whole or not at all.
    pub(crate) fn write(
        &self,
        options: &check::CheckOptions,
        name: &str,
        file: &Path,
    ) -> Result<(), Failure> {
        let Proof { history, results, outages, lost } = *self;
        let options = read_as(options);
        let lost = lost.map_or(&[][..], |lost| &lost.evidence);
        write_whole(file, |out| {
            let out = &mut { out };
            proof::write_with_lost(history, results, outages, lost, &options, name, out)
        })
    }
}

/// How the verifier is to read a history that was checked with these options.
pub(crate) fn read_as(options: &check::CheckOptions) -> VerifyOptions {
    VerifyOptions::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew)
        .with_trusted_version_order(options.trust_version_order)
        .with_assumptions(options.assume)
        .with_promised_order(options.promised_order.is_some())
}

pub(crate) fn run(
    config: &Verify,
    output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let name = config.proof.display().to_string();
    let verification = match piece_by_piece(config, &name)? {
        Some(verification) => {
            report_bad_times_in(&config.history, config.format, console)?;
            verification
        }
        None => {
            let file = std::fs::read(&config.proof).map_err(|error| unreadable(&name, &error))?;
            by_all(config, &name, &file, console)?
        }
    };
    match output {
        OutputForm::Human => verification.say(&name, console.out())?,
        OutputForm::Json => {
            let history = config.history.display().to_string();
            verification.write_json(&history, &name, console.out())?;
        }
    }
    Ok(match verification.right {
        Some(true) => Outcome::Done,
        Some(false) => Outcome::Violated,
        None => Outcome::Undecided,
    })
}

/// Re-checks a proof without loading the history, if that can be done.
fn piece_by_piece(config: &Verify, name: &str) -> Result<Option<Verification>, Failure> {
    // Both are read several times.
    let are_files = config.history.is_file() && config.proof.is_file();
    if !are_files || !config.can_go_by_pieces {
        return Ok(None);
    }
    // What cannot be read piece by piece is loaded.
    let Ok(input) = input_of(config.format, &config.history) else { return Ok(None) };
    let proof = File::open(&config.proof).map_err(|error| unreadable(name, &error))?;
    let directory = std::env::temp_dir();
    let means = Means { memory: config.memory.unwrap_or(USUAL_MEMORY), directory: &directory };
    let verified = verify_by_pieces(input, &mut BufReader::new(proof), means);
    match verified.map_err(|error| unread(&error, config))? {
        // What a part does not bear out, the whole may.
        Verified::Told(told) if has_open_violation(&told.verified) => Ok(None),
        Verified::Told(told) => Ok(Some(Verification::of_pieces(&told))),
        Verified::NoProof(error) => refused(name, &error).map(Some),
        Verified::TooLarge(level) => Ok(Some(Verification::too_large(level))),
        _ => Ok(None),
    }
}

/// Whether a part of the history does not show that a level is violated.
fn has_open_violation(verified: &VerifiedProof) -> bool {
    let mut claims = verified.proof.results.iter().zip(&verified.refusals);
    claims.any(|(result, refusal)| result.verdict.is_violated() && refusal.is_some())
}

/// A history that could not be read piece by piece.
fn unread(error: &FollowError, config: &Verify) -> Failure {
    match error {
        FollowError::Read(error) => Failure::reading(error, config.format),
        FollowError::Spill { .. } => Failure::new(error.to_string())
            .with_hint("allow more memory with --memory, or set TMPDIR to another directory"),
        error => Failure::new(error.to_string()),
    }
}

/// Re-checks a proof against the history as a whole.
fn by_all(
    config: &Verify,
    name: &str,
    file: &[u8],
    console: &mut Console,
) -> Result<Verification, Failure> {
    let history = load(&config.history, config.format, console)?.history;
    let history = ask_for_matches(history, config.matches)?;
    let trusted = trusted_order(config, &history, console)?;
    let promised = config.serialization_order.as_ref().map(|order| {
        let name = config.history.display().to_string();
        read_serialization_order(order, &name, &history, console)
    });
    let promised = promised.transpose()?;
    let outages = run_directory::outages_beside(&config.history);
    let given = ProofPremises::default()
        .with_outages(&outages)
        .with_version_order(trusted.as_ref().map(|stated| &stated.orders[..]))
        .with_version_sets(trusted.as_ref().map_or(&[], |stated| &stated.sets[..]))
        .with_assumptions(config.assume)
        .with_promised_order(promised.as_ref());
    match verify_proof_with(&history, given, file) {
        Ok(verified) => Ok(Verification::of(&history, &verified)),
        Err(error) => refused(name, &error),
    }
}

/// A proof that says nothing about the history.
fn refused(name: &str, error: &ProofError) -> Result<Verification, Failure> {
    match error.is_wrong_proof() {
        true => Ok(Verification::wrong(error.to_string())),
        false => Err(malformed(name, error)),
    }
}

/// The orders of versions that are part of the question. Others decide nothing, so that they are
/// only looked at for errors.
fn trusted_order(
    config: &Verify,
    history: &History,
    console: &mut Console,
) -> Result<Option<VersionStatements>, Failure> {
    let Some(file) = &config.version_order else { return Ok(None) };
    let name = config.history.display().to_string();
    let stated = read_version_order(file, &name, history, console)?;
    Ok(config.trust_version_order.then_some(stated))
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("{name}: {error}"));
    match error.kind() {
        io::ErrorKind::NotFound => failure
            .with_hint("check the path; `isolario check --proof FILE HISTORY` writes a proof"),
        _ => failure.with_hint("give the file that `isolario check --proof FILE` wrote"),
    }
}

/// A file that is not a proof, or one that answers another question.
fn malformed(name: &str, error: &ProofError) -> Failure {
    let place = error.position.map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
    let hint = match error.problem {
        ProofProblem::OtherQuestion { trusted: true } => {
            "add --version-order FILE --trust-version-order, as for `isolario check`"
        }
        ProofProblem::OtherQuestion { trusted: false } => "omit --trust-version-order",
        ProofProblem::OtherAssumptions { .. } => {
            "use the same --assume as for `isolario check`; the header of the proof lists the assumptions"
        }
        ProofProblem::OtherPromise { promised: true } => {
            "add --serialization-order, as for `isolario check`"
        }
        ProofProblem::OtherOutages => {
            "verify the proof in its run directory: run.json, next to the history, lists the outages"
        }
        ProofProblem::OtherPromise { promised: false } => "omit --serialization-order",
        _ => "give a proof that `isolario check --proof FILE HISTORY` wrote",
    };
    Failure::new(format!("{name}{place}: {}", error.problem)).with_hint(hint)
}

/// What came of a proof.
struct Verification {
    /// None if that takes more memory than may be used.
    right: Option<bool>,
    /// Why nothing in it could be looked at.
    reason: Option<String>,
    claims: Vec<Claim>,
    /// What came of the claims about lost transactions, where there are any.
    lost: Option<LostClaims>,
}

/// What came of the claims about lost transactions.
#[derive(Serialize)]
struct LostClaims {
    claims: usize,
    right: bool,
    /// Why the first one is refused that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What came of the claim about one level.
#[derive(Serialize)]
struct Claim {
    level: &'static str,
    claim: &'static str,
    right: bool,
    /// What was re-checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    checked: Option<String>,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Verification {
    fn of(history: &History, verified: &VerifiedProof) -> Verification {
        let right = verified.is_right();
        let results = verified.proof.results.iter().zip(&verified.refusals);
        let claims = results
            .map(|(result, refusal)| Claim::new(history, result, refusal.as_ref()))
            .collect();
        let lost = LostClaims::of(&verified.not_lost);
        Verification { right: Some(right), reason: None, claims, lost }
    }

    /// What came of a proof without loading the history.
    fn of_pieces(told: &Told) -> Verification {
        let mut verification = Verification::of(&told.part, &told.verified);
        for (claim, order) in verification.claims.iter_mut().zip(&told.orders) {
            if let (Some(checked), Some(order)) = (&mut claim.checked, order) {
                *checked = match order.in_points {
                    true => looked_through(told.txns),
                    false => replayed(order.count),
                };
            }
        }
        verification
    }

    fn wrong(reason: String) -> Verification {
        Verification { right: Some(false), reason: Some(reason), claims: Vec::new(), lost: None }
    }

    fn too_large(level: Level) -> Verification {
        let reason = format!(
            "{level}: too much of the history is out of order to be replayed in so little memory; allow \
             more with --memory"
        );
        Verification { right: None, reason: Some(reason), claims: Vec::new(), lost: None }
    }

    fn say(&self, name: &str, out: &mut dyn io::Write) -> io::Result<()> {
        let answer = match self.right {
            Some(true) => "the proof is right",
            Some(false) => "the proof is wrong",
            None => "it is not known whether the proof is right",
        };
        writeln!(out, "{name}: {answer}")?;
        if let Some(reason) = &self.reason {
            writeln!(out, "  {reason}")?;
        }
        for Claim { level, claim, checked, reason, .. } in &self.claims {
            let claim = claim.replace('-', " ");
            match (checked, reason) {
                (_, Some(reason)) => writeln!(out, "  {level}: {claim}, refused: {reason}")?,
                (Some(checked), None) => writeln!(out, "  {level}: {claim}, {checked}")?,
                (None, None) => writeln!(out, "  {level}: {claim}")?,
            }
        }
        if let Some(LostClaims { claims, reason, .. }) = &self.lost {
            match reason {
                Some(reason) => writeln!(out, "  lost commits: refused: {reason}")?,
                None => writeln!(out, "  lost commits: {} re-checked", grouped(*claims as u64))?,
            }
        }
        Ok(())
    }

    fn write_json(&self, history: &str, proof: &str, out: &mut dyn io::Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct Object<'a> {
            schema: &'static str,
            history: &'a str,
            proof: &'a str,
            right: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'a str>,
            results: &'a [Claim],
            #[serde(skip_serializing_if = "Option::is_none")]
            lost_commits: Option<&'a LostClaims>,
        }
        let (right, reason, results) = (self.right, self.reason.as_deref(), &self.claims[..]);
        let lost_commits = self.lost.as_ref();
        let object =
            Object { schema: SCHEMA, history, proof, right, reason, results, lost_commits };
        serde_json::to_writer(&mut *out, &object)?;
        writeln!(out)
    }
}

impl LostClaims {
    fn of(not_lost: &[Option<NotLost>]) -> Option<LostClaims> {
        let first = not_lost.iter().flatten().next();
        let (claims, right, reason) =
            (not_lost.len(), first.is_none(), first.map(ToString::to_string));
        (claims > 0).then_some(LostClaims { claims, right, reason })
    }
}

impl Claim {
    fn new(history: &History, result: &LevelResult, refusal: Option<&Refusal>) -> Claim {
        Claim {
            level: result.level.name(),
            claim: result.verdict.name(),
            right: refusal.is_none(),
            checked: refusal.is_none().then(|| checked(history, &result.verdict)),
            reason: refusal.map(|refusal| refusal.describe(history)),
        }
    }
}

/// What was done to be sure of a claim that holds.
fn checked(history: &History, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Satisfied(Witness::CommitOrder(order) | Witness::Chosen { order, .. }) => {
            replayed(order.len() as u64)
        }
        Verdict::Satisfied(Witness::Linearization(ops)) => {
            format!("replayed {}", counted(ops.len() as u64, "operation", "operations"))
        }
        Verdict::Satisfied(_) => looked_through(history.txn_count() as u64),
        Verdict::Violated(findings) => {
            let count = counted(findings.anomalies.len() as u64, "anomaly", "anomalies");
            format!("{count} re-checked")
        }
        Verdict::NotApplicable(Inapplicable::NoVersionOrder) => {
            "on its word: the reason cannot be re-checked".to_owned()
        }
        Verdict::NotApplicable(_) => "the reason holds".to_owned(),
        _ => "nothing is claimed".to_owned(),
    }
}

fn replayed(txns: u64) -> String {
    format!("replayed {}", counted(txns, "transaction", "transactions"))
}

fn looked_through(txns: u64) -> String {
    format!("looked through {}", counted(txns, "transaction", "transactions"))
}

/// A count with its noun, in groups of three digits.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}
