//! The weak levels: Adya's read committed, read committed, cut isolation, read atomic, causal.
//!
//! Each of the ordering levels infers a minimal saturated commit relation (AWDIT, Section 3): the
//! history satisfies the level exactly when that relation is acyclic, and any order that extends
//! it is a witness.

mod causal;
mod chains;
pub(crate) mod chosen;
mod contradictions;
mod cut;
mod first_reads;
mod inference;
mod instances;
mod levels;
mod naming;
mod patterns;
mod read_atomic;
mod read_committed;
mod recent;
mod recheck;
mod relation;
mod visible;

pub(crate) use levels::Weak;
pub(crate) use patterns::PATTERNS;
