//! Reports as text, for messages of failed tests.

use crate::{Human, Renderer, Report};

/// The text that `isolario check` prints of a report.
pub fn as_text(report: &Report<'_>) -> String {
    let mut text = Vec::new();
    let mut human = Human::default();
    // Writing to memory does not fail.
    let _ = human.report(report, &mut text).and_then(|()| human.end(&mut text));
    String::from_utf8_lossy(&text).trim_end().to_owned()
}
