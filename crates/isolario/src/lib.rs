//! Isolario charts the isolation a database really gives.
//!
//! # In a test of your own store
//!
//! Give every client a session, tell it what the client did and saw, and assert a level:
//!
//! ```
#![doc = include_str!("../examples/record_from_threads/first_test.rs")]
//! ```
//!
//! A store that does not give the level fails the test with an explanation: which transactions, what
//! they saw, and why that cannot be. See [`recorder`].
//!
//! # Histories, checks and reports
//!
//! A history may come from anywhere: from a [`Recorder`], from a file (`formats`), from a live
//! database (`run`), or from your own code:
//!
//! ```
//! use isolario::Level;
//! use isolario::check::{CheckOptions, check};
//! use isolario::model::{Batch, Op, Outcome, TxnEnd, TxnSink, TxnStart};
//! use isolario::report::{Human, Renderer, Report};
//!
//! // Alice and Bob each read what the other one wrote: a cycle.
//! let mut batch = Batch::new();
//! for (session, read, write) in [("alice", "x", "y"), ("bob", "y", "x")] {
//!     batch.begin(&TxnStart { session: session.into(), id: Some(session.into()), line: None })?;
//!     batch.op(&Op::Read { key: read.into(), value: Some(1i64.into()) })?;
//!     batch.op(&Op::Write { key: write.into(), value: 1i64.into() })?;
//!     batch.end(&TxnEnd::new(Outcome::Committed))?;
//! }
//! let history = batch.build()?;
//!
//! let results = check(&history, &[Level::ReadCommitted], &CheckOptions::default());
//! assert!(!results[0].verdict.is_satisfied());
//! let mut text = Vec::new();
//! Human::default().report(&Report::new("example", &history, &results), &mut text)?;
//! assert!(String::from_utf8(text)?.contains("bob read y=1, which alice wrote"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! None is on by default. Whoever checks a store in a test needs the recorder, the checkers and the
//! report in words, and gets them with fewer than thirty dependencies that build in seconds; history
//! files bring compression libraries, and every database brings its driver, which few tests want.
//! `full` is all of them, as the `isolario` command has them.
//!
//! | module | what is in it | feature |
//! |---|---|---|
//! | [`recorder`] | what clients of a store do and see, checked in the same process | |
//! | [`shrink`] | the smallest part of a history that still shows an anomaly | |
//! | [`model`] | histories, levels, anomalies, verdicts: the types that all the others share | |
//! | [`check`] | the checkers | |
//! | [`report`] | what a history proves, in words; as JSON and as a page | `json`, `html` |
//! | [`verify`] | verdicts re-checked against the history alone; the proof file | `proof` |
//! | `formats` | history files of many tools: read, write, recognise | `formats` |
//! | `follow` | levels of a file that is read piece by piece, while it grows | `formats` |
//! | `workload` | what clients ask a database for | `run`, `sim` |
//! | `db` | databases: the trait, the adapters (one feature each: `sqlite`, `postgres`, `mysql`, `etcd`, `redis`, `sim`, `exec`), what they claim; `power` lets the power of servers fail | `run` |
//! | `run` | live runs: driven, recorded, checked, written down | `run` |
//! | `probe` | scripted interleavings: which anomalies can happen at which level | `run` |
//! | `sql` | random schemas and SQL, instrumentation, and the dependencies that follow | `run` |
//! | `sim` | synthetic histories: a simulated store, with planted anomalies | `sim` |

#[cfg(feature = "run")]
pub mod db;
pub mod recorder;

pub use isolario_check as check;
#[cfg(feature = "formats")]
pub use isolario_follow as follow;
#[cfg(feature = "formats")]
pub use isolario_formats as formats;
pub use isolario_model as model;
pub use isolario_report as report;
#[cfg(feature = "run")]
pub use isolario_run::{probe, run};
pub use isolario_shrink as shrink;
#[cfg(feature = "sim")]
pub use isolario_sim as sim;
#[cfg(feature = "run")]
pub use isolario_sql as sql;
pub use isolario_verify as verify;
#[cfg(any(feature = "run", feature = "sim"))]
pub use isolario_workload as workload;

pub use model::Level;
pub use recorder::Recorder;
