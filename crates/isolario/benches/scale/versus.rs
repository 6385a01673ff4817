//! Another checker beside this one, on the same files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use isolario::model::Level;
use isolario_bench::{Adapter, Align, Arguments, Effort, Failure, Table, median};

use crate::history::Recipe;
use crate::work::Work;

/// Transactions, unless told otherwise: others take their time.
const TXNS: u64 = 10_000;
/// How long an answer is waited for, unless told otherwise, in seconds.
const PATIENCE: u64 = 60;

/// Runs the other checker on histories in a format that it reads, and prints how long both took.
pub fn bench(
    program: &Path,
    arguments: &Arguments,
    effort: &Effort,
    directory: &Path,
) -> Result<(), Failure> {
    let name: Option<String> = arguments.value("--as")?;
    let adapter = Adapter::find(name.as_deref(), program)?;
    let txns = arguments.value("--txns")?.unwrap_or(TXNS);
    let patience = Duration::from_secs(arguments.value("--timeout")?.unwrap_or(PATIENCE));
    let note =
        if adapter.is_tested { "" } else { ", whose command line is as documented, untested" };
    println!("Against {} as {}{note}", program.display(), adapter.name);
    println!("Theirs is the time of the whole process; ours is from the file to the verdict");
    let mut table = Table::new(&[
        ("history", Align::Left),
        ("format", Align::Left),
        ("level", Align::Left),
        ("ours ms", Align::Right),
        ("theirs ms", Align::Right),
        ("x ours", Align::Right),
        ("their answer", Align::Left),
    ]);
    // As cargo runs benchmarks elsewhere, the path is made to hold there, too.
    let program: PathBuf = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let histories =
        [Recipe::general(txns, 8, 1000, adapter.format), Recipe::mini(txns, 1000, adapter.format)];
    for recipe in histories {
        let place = directory.join(format!("{:?}", recipe.kind));
        std::fs::create_dir(&place)?;
        let file = adapter.file_in(&place);
        recipe.write(&file)?;
        for level in adapter.levels().filter_map(Level::find) {
            let ours = median(&Work::LoadAndCheck(level), &file, effort.threads, effort.runs)?;
            let reply = adapter.ask(&program, level.name(), &place, patience)?;
            let ours = ours.wall.as_secs_f64();
            let theirs = reply.time.unwrap_or(patience).as_secs_f64();
            let bound = if reply.time.is_none() { ">" } else { "" };
            let answer = match (reply.time, reply.holds) {
                (None, _) => "given up",
                (_, Some(true)) => "satisfied",
                (_, Some(false)) => "violated: THEY DIFFER",
                (_, None) => "cannot be read",
            };
            table.row([
                recipe.title(),
                recipe.format.to_owned(),
                level.to_string(),
                format!("{:.1}", ours * 1e3),
                format!("{bound}{:.1}", theirs * 1e3),
                format!("{bound}{:.1}", theirs / ours),
                answer.to_owned(),
            ]);
        }
        std::fs::remove_dir_all(&place)?;
    }
    println!("{table}");
    Ok(())
}
