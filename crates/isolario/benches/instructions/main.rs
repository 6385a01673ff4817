//! The work whose instructions `scripts/instructions` counts: small histories, always the same, on one
//! thread.
//!
//! `instructions names` prints what there is, `instructions prepare DIRECTORY` writes the histories, and
//! `instructions NAME DIRECTORY` does one piece of work, of which [`measured`] alone is counted. Without
//! arguments it only shows that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

#[allow(dead_code, reason = "titles are for tables, of which there is none here")]
#[path = "../scale/history.rs"]
mod history;

use std::any::Any;
use std::path::Path;

use isolario::check::{CheckOptions, check};
use isolario::follow::{Following, Input, Settings};
use isolario::formats::{self, ParsedHistory, Source};
use isolario::model::{Level, Verdict};
use isolario_bench::{Arguments, Failure};
use rayon::ThreadPoolBuilder;

use history::Recipe;

/// What is done with a history.
#[derive(Clone, Copy)]
enum Task {
    Load,
    /// Decide a level of what was loaded.
    Check(Level),
    /// Follow a level from the beginning of the file to its end.
    Follow(Level),
}

/// Half reads and half blind writes, in short transactions and in long ones; and read-modify-writes.
const TEXT: Recipe = Recipe::general(20_000, 8, 1_000, "plume");
const BINARY: Recipe = Recipe::general(20_000, 8, 1_000, "isolario");
const FOLLOWED: Recipe = Recipe::mini(20_000, 1_000, "jsonl");

/// Large enough to be replayed before an engine is asked.
const LARGE_MINI: Recipe = Recipe::mini(50_000, 1_000, "isolario");

/// Small enough for the engines.
const SHORT: Recipe = Recipe::general(8_000, 8, 1_000, "isolario");
const LONG: Recipe = Recipe::general(3_000, 20, 1_000, "isolario");
const MINI: Recipe = Recipe::mini(25_000, 1_000, "isolario");

/// Everything that is counted. Cut isolation is hardly more than to resolve all reads.
static JOBS: [(&str, Recipe, Task); 14] = [
    ("load-plume", TEXT, Task::Load),
    ("load-iso", BINARY, Task::Load),
    ("serial", BINARY, Task::Check(Level::Serializable)),
    ("serial-mini", LARGE_MINI, Task::Check(Level::Serializable)),
    ("resolve", SHORT, Task::Check(Level::CutIsolation)),
    ("rc", SHORT, Task::Check(Level::ReadCommitted)),
    ("ra", SHORT, Task::Check(Level::ReadAtomic)),
    ("cc", SHORT, Task::Check(Level::Causal)),
    ("mini-si", MINI, Task::Check(Level::SnapshotIsolation)),
    ("mini-ser", MINI, Task::Check(Level::Serializable)),
    ("mini-sser", MINI, Task::Check(Level::StrictSerializable)),
    ("general-ser", LONG, Task::Check(Level::Serializable)),
    ("follow-cc", FOLLOWED, Task::Follow(Level::Causal)),
    ("follow-ser", FOLLOWED, Task::Follow(Level::Serializable)),
];

/// What a task works on, and what is kept of it so that to drop it is not counted.
enum Given<'f> {
    File(&'f Path),
    Loaded(Box<ParsedHistory>),
}

fn main() -> Result<(), Failure> {
    // The thread that counts does everything: nobody waits for others, which takes more or less long.
    ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()?;
    let arguments = Arguments::of_process();
    match arguments.all() {
        [names] if names == "names" => JOBS.iter().for_each(|(name, ..)| println!("{name}")),
        [prepare, directory] if prepare == "prepare" => write_all(Path::new(directory), 1)?,
        [name, directory] => run(name, Path::new(directory))?,
        _ => {
            let directory = isolario_bench::scratch()?;
            write_all(directory.path(), 100)?;
            JOBS.iter().try_for_each(|(name, ..)| run(name, directory.path()))?;
        }
    }
    Ok(())
}

/// Writes the history of each job, shorter by `shrink`.
fn write_all(directory: &Path, shrink: u64) -> Result<(), Failure> {
    for (name, recipe, _) in &JOBS {
        Recipe { txns: recipe.txns / shrink, ..*recipe }.write(&directory.join(name))?;
    }
    Ok(())
}

fn run(name: &str, directory: &Path) -> Result<(), Failure> {
    let job = JOBS.iter().find(|(job, ..)| *job == name);
    let (_, _, task) = job.ok_or_else(|| format!("no such work: {name}"))?;
    let file = directory.join(name);
    let given = match task {
        Task::Check(_) => Given::Loaded(Box::new(load(&file)?)),
        Task::Load | Task::Follow(_) => Given::File(&file),
    };
    let kept = measured(*task, &given)?;
    drop(kept);
    Ok(())
}

fn load(file: &Path) -> Result<ParsedHistory, Failure> {
    let source = Source::open(file)?;
    let format = formats::sniff(&source).ok_or("no known format")?;
    Ok(format.read(&source)?)
}

/// What is counted. Callgrind knows it by its name.
#[inline(never)]
fn measured(task: Task, given: &Given<'_>) -> Result<Box<dyn Any>, Failure> {
    match (task, given) {
        (Task::Check(level), Given::Loaded(loaded)) => {
            let results = check(&loaded.history, &[level], &CheckOptions::default());
            match &results[..] {
                [result] if matches!(result.verdict, Verdict::Satisfied(_)) => {
                    Ok(Box::new(results))
                }
                _ => Err(unsatisfied(level)),
            }
        }
        (Task::Follow(level), Given::File(file)) => follow(file, level),
        (_, Given::File(file)) => Ok(Box::new(load(file)?)),
        (_, Given::Loaded(_)) => Err("loaded already".into()),
    }
}

fn follow(path: &Path, level: Level) -> Result<Box<dyn Any>, Failure> {
    let format = formats::find(FOLLOWED.format).ok_or("no such format")?;
    let input = Input::new(path, format);
    let mut following =
        Following::new(input, level, &CheckOptions::default(), Settings::default())?;
    match following.to_end()? {
        None => Ok(Box::new(following.follower().figures())),
        Some(_) => Err(unsatisfied(level)),
    }
}

fn unsatisfied(level: Level) -> Failure {
    format!("{level} should be satisfied and is not").into()
}
