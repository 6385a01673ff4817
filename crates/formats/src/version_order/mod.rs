//! Orders of versions: what a database or a user says, beside a history, about the order of writes.
//!
//! A JSON object per line, with a key and its values, or the names of their writers, earlier ones
//! first: `{"key": "x", "values": [1, 2]}` or `{"key": "x", "writers": ["T1", "T2"]}`. Neighbours
//! mean *before*, not *immediately before*, and any version may be missing. Keys, values and names
//! are spelled as in the JSON lines format of histories.

mod names;
mod read;
mod write;

pub use read::{Statements, Unknown, read};
pub use write::Writer;
