//! Histories written in the formats that can express everything, and read again.

use isolario::formats::find;
use isolario::model::History;
use isolario_fuzz::files::{without_lines, write};

/// What goes wrong on the way there and back.
pub fn faults(history: &History) -> impl Iterator<Item = String> {
    ["isolario", "jsonl"].into_iter().filter_map(|format| fault(format, history))
}

fn fault(format: &str, history: &History) -> Option<String> {
    let convert = || -> Result<bool, Box<dyn std::error::Error>> {
        let format = find(format).ok_or("no such format")?;
        let again = format.read(&write(format, history)?.source("converted")?)?.history;
        // Lines are where the file has them, and jsonl has its own.
        Ok(again == *history || without_lines(&again)? == without_lines(history)?)
    };
    match convert() {
        Ok(true) => None,
        Ok(false) => Some(format!("comes back from {format} as another history")),
        Err(error) => Some(format!("does not survive {format}: {error}")),
    }
}
