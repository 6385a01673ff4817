//! How a history splits.

use super::Checker;
use crate::windows::{self, Windows};

impl Checker<'_> {
    /// How the history splits into windows: parts that are not in order by themselves, and in one of
    /// which every cycle lies. None where it has operations other than those on registers and lists.
    pub fn windows(&self) -> Option<Windows> {
        self.engines().ok().map(|engines| windows::measure(&engines.resolved))
    }
}
