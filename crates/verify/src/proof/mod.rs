//! The proof file: verdicts with their evidence, for another program to re-check.
//!
//! Lines of JSON: a header that names the history by its digest, then the anomalies, each once, then
//! a section per level, all in the user's own names. The book documents every field. [`write()`] and [`read()`] are each other's
//! inverse; [`verify_proof`] reads a proof and re-checks all of it.
//!
//! ```
//! use isolario_model::{
//!     Attempt, Batch, Level, LevelResult, Op, Outcome, TxnEnd, TxnId, TxnSink, TxnStart, Verdict,
//!     Witness,
//! };
//! use isolario_verify::{VerifyOptions, proof};
//!
//! let mut batch = Batch::new();
//! for (name, op) in [
//!     ("pay", Op::Write { key: "x".into(), value: 1i64.into() }),
//!     ("look", Op::Read { key: "x".into(), value: Some(1i64.into()) }),
//! ] {
//!     batch.begin(&TxnStart { session: name.into(), id: Some(name.into()), line: None })?;
//!     batch.op(&op)?;
//!     batch.end(&TxnEnd::new(Outcome::Committed))?;
//! }
//! let history = batch.build()?;
//! let result = LevelResult {
//!     level: Level::Serializable,
//!     decided_by: Attempt::Search,
//!     verdict: Verdict::Satisfied(Witness::CommitOrder(vec![TxnId(0), TxnId(1)])),
//! };
//! let mut file = Vec::new();
//! proof::write(&history, &[result], &VerifyOptions::default(), "example", &mut file)?;
//! assert!(String::from_utf8_lossy(&file).ends_with("{\"order\":[\"pay\",\"look\"]}\n"));
//! assert!(proof::verify_proof(&history, &file)?.is_right());
//!
//! let forged = String::from_utf8(file)?.replace(r#"["pay","look"]"#, r#"["look","pay"]"#);
//! assert!(!proof::verify_proof(&history, forged.as_bytes())?.is_right());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod digest;
mod error;
mod excerpt;
mod names;
mod outline;
mod positions;
mod read;
mod replay;
mod write;

use isolario_model::{
    Attempt, History, KeyAssumptions, LevelResult, PromisedOrder, StatedOrder, StatedSet,
};

pub use digest::{Digest, SessionDigests};
pub use error::{ProofError, ProofProblem};
pub use excerpt::ProofExcerpt;
pub use names::PartPositionsRef;
pub use outline::{OrderLocation, ProofOutline};
pub use positions::TxnPositions;
pub use read::read;
pub use replay::{
    EvictedVersion, OrderRefusal, OrderReplay, ReplayError, ReplayLimits, ReplayOutcome,
};
pub use write::{OrderPoint, StreamedOrder, WholeHistory, write, write_of_whole, write_with_lost};

use crate::{LostCommit, NotLost, Outage, Refusal, Verifier, VerifyOptions, verify_lost};

/// The form that is written and read.
pub const SCHEMA: &str = "isolario.proof/2";

/// How deep reasons may lie within each other. Weak levels take one or two, refutations more; the bound keeps a
/// forged file from exhausting the stack.
const MAX_DEPTH: usize = 48;

/// A proof as it was read: what it claims of one history, not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Who wrote it: information only.
    pub tool: String,
    /// What the history was called: information only.
    pub history: String,
    /// How the history is to be read.
    pub options: VerifyOptions,
    /// The claims, with their evidence.
    pub results: Vec<LevelResult>,
    /// When the server was down: taken for granted where something was lost.
    pub outages: Vec<Outage>,
    /// The transactions that were lost then.
    pub lost: Vec<LostCommit>,
}

/// A proof that was re-checked.
#[derive(Clone, Debug)]
pub struct VerifiedProof {
    /// What it claims.
    pub proof: Proof,
    /// Per claim, why it is refused; none where it holds.
    pub refusals: Vec<Option<Refusal>>,
    /// Per transaction that is said to be lost, why that is refused; none where it is.
    pub not_lost: Vec<Option<NotLost>>,
}

impl VerifiedProof {
    /// Whether every claim holds.
    pub fn is_right(&self) -> bool {
        self.refusals.iter().all(Option::is_none) && self.not_lost.iter().all(Option::is_none)
    }
}

/// Reads a proof of this history and re-checks every claim.
pub fn verify_proof(history: &History, file: &[u8]) -> Result<VerifiedProof, ProofError> {
    verify_proof_with(history, ProofPremises::default(), file)
}

/// What is stated beside a history and taken for granted.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ProofPremises<'g> {
    /// Orders of versions that are trusted.
    pub version_order: Option<&'g [StatedOrder]>,
    /// What is assumed of every register.
    pub assume: KeyAssumptions,
    /// The versions that predicate operations met, which are trusted with the orders.
    pub version_sets: &'g [StatedSet],
    /// The order of transactions that the database promises.
    pub promised_order: Option<&'g PromisedOrder>,
    /// When the server was down.
    pub outages: &'g [Outage],
}

impl<'g> ProofPremises<'g> {
    /// With orders of versions that are trusted.
    #[must_use]
    pub fn with_version_order(self, version_order: Option<&'g [StatedOrder]>) -> Self {
        ProofPremises { version_order, ..self }
    }

    /// With what is assumed of every register.
    #[must_use]
    pub fn with_assumptions(self, assume: KeyAssumptions) -> Self {
        ProofPremises { assume, ..self }
    }

    /// With the versions that predicate operations met.
    #[must_use]
    pub fn with_version_sets(self, version_sets: &'g [StatedSet]) -> Self {
        ProofPremises { version_sets, ..self }
    }

    /// With an order of transactions that the database promises.
    #[must_use]
    pub fn with_promised_order(self, promised_order: Option<&'g PromisedOrder>) -> Self {
        ProofPremises { promised_order, ..self }
    }

    /// With the times at which the server was down.
    #[must_use]
    pub fn with_outages(self, outages: &'g [Outage]) -> Self {
        ProofPremises { outages, ..self }
    }
}

/// As [`verify_proof`], with what is stated or assumed beside the history. A proof takes it for granted
/// or it does not, and is verified only with or without it.
pub fn verify_proof_with(
    history: &History,
    given: ProofPremises<'_>,
    file: &[u8],
) -> Result<VerifiedProof, ProofError> {
    let proof = read(history, file)?;
    let VerifyOptions { trust_version_order: trusted, promised_order: promised, .. } =
        proof.options;
    let problem = if trusted != given.version_order.is_some() {
        Some(ProofProblem::OtherQuestion { trusted })
    } else if proof.options.assume != given.assume {
        Some(ProofProblem::OtherAssumptions { proof: proof.options.assume })
    } else if promised != given.promised_order.is_some() {
        Some(ProofProblem::OtherPromise { promised })
    } else if !proof.lost.is_empty() && proof.outages != given.outages {
        Some(ProofProblem::OtherOutages)
    } else {
        None
    };
    if let Some(problem) = problem {
        return Err(ProofError { position: None, problem });
    }
    let mut verifier = Verifier::new(history, &proof.options)
        .with_version_order(given.version_order.unwrap_or(&[]))
        .with_version_sets(given.version_sets);
    if let Some(order) = given.promised_order {
        verifier = verifier.with_promised_order(order);
    }
    let refusals = proof.results.iter().map(|result| verifier.verify(result).err()).collect();
    let lost = verify_lost(history, &proof.outages, &proof.lost);
    let not_lost = lost.into_iter().map(Result::err).collect();
    Ok(VerifiedProof { proof, refusals, not_lost })
}

/// The name of the checker that makes an attempt, in a proof file.
fn checker(attempt: Attempt) -> &'static str {
    match attempt {
        Attempt::Linearization => "lin",
        Attempt::Segments | Attempt::Search => "strong",
        Attempt::PromisedOrder | Attempt::Certificate | Attempt::Versions | Attempt::Rows => {
            "versions"
        }
        _ => "weak",
    }
}
