//! A history that is followed: how fast, and in how much memory.

use std::path::Path;

use isolario::check::CheckOptions;
use isolario::follow::{Following, Input, Settings};
use isolario::formats;
use isolario::model::Level;
use isolario_bench::{Align, Effort, Failure, Job, Kept, Stopwatch, Table, judge, median};

use crate::history::Recipe;

/// The format that is followed.
pub const FORMAT: &str = "isolario";

/// What the job is called, followed by the level.
pub const NAME: &str = "follow ";

/// Follows a level from the beginning of a file to its end.
pub struct Follow(Level);

impl Job for Follow {
    fn name(&self) -> String {
        format!("{NAME}{}", self.0)
    }

    fn of_name(name: &str) -> Result<Self, Failure> {
        let level = name.strip_prefix(NAME).and_then(Level::find);
        Ok(Follow(level.ok_or_else(|| format!("no such job: {name}"))?))
    }

    fn run(&self, file: &Path, _: &mut Stopwatch) -> Result<Kept, Failure> {
        let format = formats::find(FORMAT).ok_or("no such format")?;
        let input = Input::new(file, format);
        let options = CheckOptions::default();
        let mut following = Following::new(input, self.0, &options, Settings::default())?;
        match following.to_end()? {
            None => Ok(Box::new(following.follower().figures())),
            Some(_) => Err(format!("{} should be satisfied and is not", self.0).into()),
        }
    }

    fn maps_file(&self) -> bool {
        false
    }
}

/// Transactions per second that following must keep up with.
pub const PER_SECOND: f64 = 150_000.0;

/// Measures and prints histories of two lengths: the longer one should take no more memory.
pub fn bench(shrink: u64, effort: &Effort, directory: &Path) -> Result<(), Failure> {
    println!("Followed from `.iso`, which is read ahead while it is looked at");
    let mut table = Table::new(&[
        ("history", Align::Left),
        ("level", Align::Left),
        ("ms", Align::Right),
        ("cpu ms", Align::Right),
        ("1000 txn/s", Align::Right),
        ("MB", Align::Right),
        ("target", Align::Left),
    ]);
    let levels = [
        Level::ReadCommitted,
        Level::ReadAtomic,
        Level::Causal,
        Level::SnapshotIsolation,
        Level::Serializable,
        Level::StrictSerializable,
    ];
    for txns in [1_000_000, 4_000_000] {
        let recipe = Recipe::mini(txns / shrink, 10_000, FORMAT);
        let file = directory.join("followed.iso");
        recipe.write(&file)?;
        for level in levels {
            let sample = median(&Follow(level), &file, effort.threads, effort.runs)?;
            let seconds = sample.wall.as_secs_f64();
            let rate = recipe.txns as f64 / seconds;
            table.row([
                recipe.title(),
                level.to_string(),
                format!("{:.0}", seconds * 1e3),
                format!("{:.0}", sample.cpu.as_secs_f64() * 1e3),
                format!("{:.0}", rate / 1e3),
                format!("{:.0}", sample.peak_bytes as f64 / 1e6),
                format!("{} {}", PER_SECOND / 1e3, judge(rate >= PER_SECOND)),
            ]);
        }
        std::fs::remove_file(&file)?;
    }
    println!("{table}");
    Ok(())
}
