//! What clients ask a database for: plans of transactions, the distribution of their keys, and
//! presets from the literature.
//!
//! A plan is a function of seed, session, position and attempt, on every platform: the random generator is
//! part of this crate, and no step depends on a platform's mathematics library. Whoever executes
//! plans (the simulated store, a run against a real database) adds what the database answered.
//!
//! ```
//! use isolario_workload::{Generator, Kind, AttemptedTxn, Planner, Workload};
//!
//! let workload = Workload { kind: Kind::Mini, keys: 100, ..Workload::default() };
//! let planner = Planner::new(&workload, 8, 42)?;
//! let (mut plan, mut again) = (Vec::new(), Vec::new());
//! planner.plan(AttemptedTxn::first(3, 7), &mut plan);
//! planner.plan(AttemptedTxn::first(3, 7), &mut again);
//! assert_eq!(plan, again);
//! assert!((1..=4).contains(&plan.len()));
//! # Ok::<(), isolario_workload::WorkloadError>(())
//! ```
//!
//! To add a workload of your own, implement [`Generator`]. Transactions on a table have plans of
//! their own kind: see [`TablePlanner`].

mod aim;
mod alias;
mod application;
mod default_run;
mod distribution;
mod math;
mod mini;
mod mix;
mod plan;
mod planner;
mod preset;
mod rng;
mod sampler;
mod shape;
mod table;
mod turnover;

pub use aim::Aim;
pub use application::{Application, KeyColumn, KeyNames, RowName, Rows, Schema, Table};
pub use default_run::DefaultRun;
pub use distribution::{Distribution, DistributionError};
pub use mix::{Mix, MixError, TableOpKind};
pub use plan::{AttemptedTxn, Generator, PlannedOp, Rendezvous};
pub use planner::Planner;
pub use preset::Preset;
pub use rng::{Chance, Rng};
pub use sampler::Sampler;
pub use shape::{Kind, Workload, WorkloadError};
pub use table::{Column, Function, RowValues, TableOp, TablePlanner, TableWorkload, ValueRange};
