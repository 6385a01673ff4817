//! A history that is decided on a view of it, as reads and writes of single rows.

use std::sync::Arc;

use isolario_model::{History, ItemView, Level, LevelResult};

use crate::resolved::MetRows;
use crate::{CheckOptions, Checker};

/// A history with operations that are lowered to reads and writes of single rows: those by predicate, and
/// conditional writes.
pub(crate) struct LoweredHistory<'a> {
    history: &'a History,
    pub(crate) view: &'a ItemView,
    /// Decides the view.
    pub(crate) items: Checker<'a>,
}

impl<'a> LoweredHistory<'a> {
    /// A history with its view. Some reads of the view are of rows that were matched in an unknown version.
    pub(crate) fn new(
        history: &'a History,
        view: &'a ItemView,
        options: CheckOptions,
        matched: Arc<MetRows>,
    ) -> Self {
        let items = Checker::with_matched(view.history(), options, matched);
        LoweredHistory { history, view, items }
    }

    /// Decides a level of the view. The answer is about the history.
    pub(crate) fn decide(&self, level: Level) -> LevelResult {
        self.view.result_of(self.history, self.items.decide(level))
    }
}
