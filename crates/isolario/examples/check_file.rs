//! Reads a history file of any known format, and says what it proves.
//!
//! `cargo run --example check_file --features formats -- examples/histories/lost-update.txt`

use std::error::Error;
use std::io;
use std::path::Path;

use isolario::check::{CheckOptions, check, supported};
use isolario::formats;
use isolario::report::{Human, Renderer, Report};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: check_file HISTORY")?;
    let is_right = check_file(Path::new(&path), &mut io::stdout())?;
    if is_right { Ok(()) } else { Err("it violates a level".into()) }
}

/// Writes a report on the history of a file. Tells whether it satisfies every level that applies.
pub fn check_file(path: &Path, out: &mut dyn io::Write) -> Result<bool, Box<dyn Error>> {
    let history = formats::read(path)?.history;
    let results = check(&history, supported(), &CheckOptions::default());
    let name = path.display().to_string();
    let mut human = Human::default();
    human.report(&Report::new(&name, &history, &results), out)?;
    human.end(out)?;
    Ok(!results.iter().any(|result| result.verdict.is_violated()))
}
