//! `isolario levels`: the levels that can be checked, and how they relate.

use std::io::{self, Write};

use isolario::check::supported;
use isolario::model::Level;
use isolario::report::sentences::applies_to;
use isolario::report::wrap;
use serde::Serialize;

use crate::args::OutputForm;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;

const WIDTH: usize = 80;

pub(crate) fn run(output: OutputForm, console: &mut Console) -> Result<Outcome, Failure> {
    let verbose = console.verbose;
    let out = console.out();
    match (output, verbose) {
        (OutputForm::Json, _) => write_json(out)?,
        (OutputForm::Human, false) => write_list(out)?,
        (OutputForm::Human, true) => write_lattice(out)?,
    }
    Ok(Outcome::Done)
}

/// The strongest levels among the listed ones that a level implies: the lattice, with the levels
/// left out that cannot be checked.
fn directly_below(level: Level) -> Vec<Level> {
    let below = |other: Level| other != level && level.implies(other);
    let all: Vec<Level> = supported().iter().copied().filter(|other| below(*other)).collect();
    let covered = |other: Level| all.iter().any(|mid| *mid != other && mid.implies(other));
    all.iter().copied().filter(|other| !covered(*other)).collect()
}

fn names(levels: &[Level]) -> Vec<&'static str> {
    levels.iter().map(|level| level.name()).collect()
}

fn title(level: Level) -> String {
    format!("{level} ({})", level.aliases().join(", "))
}

fn write_list(out: &mut dyn Write) -> io::Result<()> {
    for level in supported() {
        writeln!(out, "{}\n{}", title(*level), wrap(level.promise(), WIDTH, "  ", "  "))?;
    }
    Ok(())
}

fn write_lattice(out: &mut dyn Write) -> io::Result<()> {
    for (index, level) in supported().iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", title(*level))?;
        let mut facts = vec![
            ("promises", level.promise().to_owned()),
            ("forbids", level.proscribes().to_owned()),
            ("applies to", applies_to(*level)),
        ];
        let below = directly_below(*level);
        if !below.is_empty() {
            facts.push(("implies", names(&below).join(", ")));
        }
        for (label, text) in facts {
            let first = format!("  {label:<12}");
            writeln!(out, "{}", wrap(&text, WIDTH, &first, &" ".repeat(first.len())))?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct JsonLevels {
    schema: &'static str,
    levels: Vec<JsonLevel>,
}

#[derive(Serialize)]
struct JsonLevel {
    name: &'static str,
    aliases: &'static [&'static str],
    implies: Vec<&'static str>,
    promises: &'static str,
    forbids: &'static str,
    applies_to: String,
}

fn write_json(out: &mut dyn Write) -> io::Result<()> {
    let json = |level: &Level| JsonLevel {
        name: level.name(),
        aliases: level.aliases(),
        implies: names(&directly_below(*level)),
        promises: level.promise(),
        forbids: level.proscribes(),
        applies_to: applies_to(*level),
    };
    let levels = supported().iter().map(json).collect();
    serde_json::to_writer(&mut *out, &JsonLevels { schema: "isolario.levels/1", levels })?;
    writeln!(out)
}
