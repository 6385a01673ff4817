//! What there is to say about the figures of a history.

use isolario_model::{History, Remark, Stats};

/// The figures of a history, under the name by which the user knows it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StatsReport<'h> {
    /// The name by which the user knows the history: its path.
    pub name: &'h str,
    /// What was observed.
    pub history: &'h History,
    /// Its figures.
    pub stats: &'h Stats,
    /// What is odd about it.
    pub remarks: &'h [Remark],
}

impl<'h> StatsReport<'h> {
    /// A report on the figures of a history.
    pub fn new(
        name: &'h str,
        history: &'h History,
        stats: &'h Stats,
        remarks: &'h [Remark],
    ) -> Self {
        StatsReport { name, history, stats, remarks }
    }
}
