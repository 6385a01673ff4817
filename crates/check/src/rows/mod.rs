//! Rows and the operations on them, for whatever knows the version of each row: a replay, which has
//! one at a time, and a certificate, which states them.
//!
//! | path | idea |
//! |---|---|
//! | `results.rs` | the result of an operation compared with the rows that it must return |
//! | `search.rs` | where to look for the rows that a predicate matches |
//! | `writes.rs` | what operations write to rows |

mod results;
mod search;
mod writes;

pub(crate) use results::{Contents, by_key};
pub(crate) use search::{ColumnBounds, RowSearch, SearchPlan, whole_number};
pub(crate) use writes::{LastWrite, OwnWrites, RowVersions, WrittenRow, written_rows};
