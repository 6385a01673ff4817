//! Isolario charts the isolation a database really gives.
//!
//! Read a history of transactions, check which isolation levels it satisfies, and explain what
//! it violates:
//!
//! ```
//! use isolario::check::{Options, check, supported};
//! use isolario::model::{Batch, Op, Outcome, TxnEnd, TxnSink, TxnStart};
//! use isolario::report::{Human, Renderer, Report};
//!
//! // Alice and Bob each read what the other one wrote: a circle. `formats::read` takes such a
//! // history from a file.
//! let mut batch = Batch::new();
//! for (session, read, write) in [("alice", "x", "y"), ("bob", "y", "x")] {
//!     batch.begin(&TxnStart { session: session.into(), id: Some(session.into()), line: None })?;
//!     batch.op(&Op::Read { key: read.into(), value: Some(1i64.into()) })?;
//!     batch.op(&Op::Write { key: write.into(), value: 1i64.into() })?;
//!     batch.end(&TxnEnd::new(Outcome::Committed))?;
//! }
//! let history = batch.build()?;
//!
//! let results = check(&history, supported(), &Options::default());
//! let mut text = Vec::new();
//! Human::default().report(&Report::new("example", &history, &results), &mut text)?;
//! let text = String::from_utf8(text)?;
//! assert!(text.contains("bob read y=1, which alice wrote"));
//! assert!(text.contains("comes before itself"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what is in it | feature |
//! |---|---|---|
//! | [`model`] | histories, levels, anomalies, verdicts: the types that all the others share | |
//! | [`check`] | the checkers | |
//! | [`report`] | what a history proves, in words; as JSON and as a page | `json`, `html` |
//! | [`verify`] | verdicts re-checked against the history alone; the proof file | `proof` |
//! | `formats` | history files of many tools: read, write, recognise | `formats` |
//! | `workload` | what clients ask a database for | `run`, `sim` |
//! | `db` | databases, and runs of workloads against them | `run` |
//! | `sim` | synthetic histories: a simulated store, with planted anomalies | `sim` |

pub use isolario_check as check;
#[cfg(feature = "run")]
pub use isolario_db as db;
#[cfg(feature = "formats")]
pub use isolario_formats as formats;
pub use isolario_model as model;
pub use isolario_report as report;
#[cfg(feature = "sim")]
pub use isolario_sim as sim;
pub use isolario_verify as verify;
#[cfg(any(feature = "run", feature = "sim"))]
pub use isolario_workload as workload;
