//! Checking past one machine: a history as a Parquet file that any engine can read, and its levels decided by
//! query plans over that file, by DataFusion in this process or in several.
//!
//! Plans do what goes by key: who wrote what was read, who replaced which version, which edges follow. What is
//! left are windows: groups of transactions that
//! are not in order by themselves. These are small, and are asked of the checkers of `isolario-check`.

mod check;
mod convert;
mod edges;
mod engine;
mod error;
mod parts;
mod reads;
mod rows;
mod table;
mod windows;
mod workers;
mod write;

pub use check::{Answer, Conclusion, Finding, Reason, check};
pub use convert::{from_table, to_table, write_history};
pub use engine::Settings;
pub use error::Error;
pub use workers::serve;
pub use write::{Written, write_table};
