//! What the tests do to files: histories written and read in memory.

pub mod files;
