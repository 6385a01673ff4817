//! Why a proof cannot be taken.

use std::fmt;

use isolario_model::{KeyAssumption, KeyAssumptions};

use crate::proof::Digest;

/// A proof that says nothing about the history: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofError {
    /// The line and the column, both counted from 1, the column in bytes; none where it is the
    /// file as a whole.
    pub position: Option<(u64, u64)>,
    /// What is wrong there.
    pub problem: ProofProblem,
}

/// What is wrong with a proof as a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofProblem {
    /// It is not what the format says.
    #[error("expected {expected}, found {found}")]
    Malformed {
        /// What should stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// It reads well and is the proof of another history.
    #[error("the proof is about another history: it names {proof}, but this one is {history}")]
    OtherHistory {
        /// The digest that the proof names.
        proof: Digest,
        /// The digest of the history.
        history: Digest,
    },
    /// It takes stated orders of versions for granted and there are none, or the other way round.
    #[error("{}", other_question(*trusted))]
    OtherQuestion {
        /// Whether the proof takes them for granted.
        trusted: bool,
    },
    /// It makes other assumptions about every register than are given.
    #[error("{}", other_assumptions(*proof))]
    OtherAssumptions {
        /// What the proof assumes.
        proof: KeyAssumptions,
    },
    /// It is about an order that the database promises and there is none, or the other way round.
    #[error("{}", other_promise(*promised))]
    OtherPromise {
        /// Whether the proof is about one.
        promised: bool,
    },
    /// It takes for granted that the server was down at other times than are given.
    #[error("the proof rests on other outages of the server than those given")]
    OtherOutages,
    /// It was written by a version of Isolario that states proofs in another form.
    #[error(
        "the proof is in version {0} of the format, but this Isolario reads version 2: check the \
         history again to get a proof that it can verify"
    )]
    OtherVersion(String),
    /// It has fewer or more of something than it counts.
    #[error("the proof states {stated} {what} but contains {found}")]
    Miscounted {
        /// Of what.
        what: &'static str,
        /// How many it counts.
        stated: u64,
        /// How many there are, as far as it was read.
        found: u64,
    },
    /// It names a transaction, an operation or a key that the history does not have.
    #[error("the history has no {0}")]
    Missing(String),
}

impl ProofError {
    /// Whether the file is a proof at all, if a wrong one: one of another history, one that names
    /// what is not there, or one with less or more than it counts.
    pub fn is_wrong_proof(&self) -> bool {
        use ProofProblem::{Miscounted, Missing, OtherHistory};
        matches!(self.problem, OtherHistory { .. } | Missing(_) | Miscounted { .. })
    }
}

fn other_question(trusted: bool) -> &'static str {
    match trusted {
        true => "the proof takes a version order as given, but none was passed",
        false => "the proof does not take a version order as given, but one was passed",
    }
}

fn other_assumptions(proof: KeyAssumptions) -> String {
    let names: Vec<&str> = proof.iter().map(KeyAssumption::name).collect();
    match names.is_empty() {
        true => "the proof assumes nothing about keys, but an assumption was passed".to_owned(),
        false => {
            format!("the proof assumes {}, but the given assumptions differ", names.join(","))
        }
    }
}

fn other_promise(promised: bool) -> &'static str {
    match promised {
        true => "the proof is about an order that the database promises, but none was passed",
        false => "the proof is not about an order that the database promises, but one was passed",
    }
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "line {line}, column {column}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for ProofError {}
