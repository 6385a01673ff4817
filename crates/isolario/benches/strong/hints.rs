//! What orders that are known beforehand are worth: the target, and Figures 13 and 14 of the Emme
//! paper. Clients tell no times here, unless it is said: with them, the first guess is the answer.

use std::path::Path;
use std::time::Duration;

use isolario::model::Level;
use isolario_bench::{Align, Chart, Effort, Failure, Job, Sample, Series, Table, judge, median};

use crate::history::{Clues, Recipe};
use crate::question::{PATIENCE, Question};
use crate::targets::WRITES_95;

const LEVEL: Level = Level::Serializable;

/// King Cobra's workloads, which are easy here with or without orders, and one that is not.
fn workloads() -> Result<Vec<Recipe>, Failure> {
    let contended = Recipe {
        name: "contended",
        txns: 20_000,
        sessions: 24,
        ops: 20,
        keys: 1_000,
        reads: 0.3,
        duplicates: 0.0,
    };
    let presets = ["king-cobra-rmw", "king-cobra-rw", "king-cobra-wh"];
    presets.into_iter().map(Recipe::preset).chain([Ok(contended)]).collect()
}

/// With session order or without, with version order or without; as the paper has them.
const MODES: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

/// Measures the parts whose names begin like this.
pub fn bench(part: &str, shrink: u64, effort: &Effort, directory: &Path) -> Result<(), Failure> {
    let bench = Bench { shrink, effort, directory };
    if "version-order".starts_with(part) {
        bench.target()?;
    }
    if "figure-13".starts_with(part) {
        bench.modes()?;
    }
    if "figure-14".starts_with(part) {
        bench.shares()?;
    }
    Ok(())
}

struct Bench<'a> {
    shrink: u64,
    effort: &'a Effort,
    directory: &'a Path,
}

impl Bench<'_> {
    /// All of the order of versions, only tried: half the time.
    fn target(&self) -> Result<(), Failure> {
        println!("The order of all versions, tried: {} of 10,000 transactions", WRITES_95.name);
        let mut table = Table::new(&[
            ("times of clients", Align::Left),
            ("job", Align::Left),
            ("ms", Align::Right),
            ("cpu ms", Align::Right),
            ("target", Align::Left),
        ]);
        for (times, loads) in [(false, true), (false, false), (true, true), (true, false)] {
            let file = self.directory.join("history.iso");
            WRITES_95.write(LEVEL, self.shrink, Clues { times, versions: 1.0 }, &file)?;
            let alone = Question { loads, ..Question::of(LEVEL) };
            let hinted = Question { version_order: true, ..alone };
            let (before, after) = (self.measure(&alone, &file)?, self.measure(&hinted, &file)?);
            let half = judge(after.wall * 2 <= before.wall);
            for (job, sample, target) in
                [(alone, before, String::new()), (hinted, after, format!("half {half}"))]
            {
                let known = if times { "known" } else { "unknown" };
                let [wall, cpu] = [sample.wall, sample.cpu].map(milliseconds);
                table.row([known.to_owned(), job.name(), wall, cpu, target]);
            }
        }
        println!("{table}");
        Ok(())
    }

    /// Figure 13: with and without session order, with and without 90% of the order of versions.
    fn modes(&self) -> Result<(), Failure> {
        println!("Session order and 90% of the version order (Emme, Figure 13); check alone");
        let mut table = self.table("mode");
        let mut lines = Vec::new();
        for recipe in workloads()? {
            let file = self.directory.join("history.iso");
            let clues = Clues { times: false, versions: 0.9 };
            recipe.write(LEVEL, self.shrink, clues, &file)?;
            let mut points = Vec::new();
            for (at, (session_order, version_order)) in MODES.into_iter().enumerate() {
                let question =
                    Question { level: LEVEL, loads: false, session_order, version_order };
                let sample = self.measure(&question, &file)?;
                points.push((at as f64 + 1.0, sample.wall.as_secs_f64()));
                let mode = match (session_order, version_order) {
                    (false, false) => "neither",
                    (false, true) => "version order",
                    (true, false) => "session order",
                    (true, true) => "both",
                };
                table.row(row(recipe.name, mode, &sample));
            }
            lines.push(Series::measured(recipe.name, points));
        }
        println!("{table}");
        let x = "1 neither, 2 version order, 3 session order, 4 both";
        self.draw("figure-13", "Serializable: what orders are worth", x, lines)
    }

    /// Figure 14: without session order, a growing share of the order of versions.
    fn shares(&self) -> Result<(), Failure> {
        println!("A share of the version order, no session order (Emme, Figure 14); check alone");
        let mut table = self.table("% of versions");
        let mut lines = Vec::new();
        for recipe in workloads()? {
            let mut points = Vec::new();
            for percent in [0, 25, 50, 75, 90, 100] {
                let file = self.directory.join("history.iso");
                let clues = Clues { times: false, versions: f64::from(percent) / 100.0 };
                recipe.write(LEVEL, self.shrink, clues, &file)?;
                let question = Question {
                    level: LEVEL,
                    loads: false,
                    session_order: false,
                    version_order: percent > 0,
                };
                let sample = self.measure(&question, &file)?;
                points.push((percent.into(), sample.wall.as_secs_f64()));
                table.row(row(recipe.name, &percent.to_string(), &sample));
            }
            lines.push(Series::measured(recipe.name, points));
        }
        println!("{table}");
        let x = "% of the version order";
        self.draw("figure-14", "Serializable, no session order", x, lines)
    }

    fn measure(&self, question: &Question, file: &Path) -> Result<Sample, Failure> {
        median(question, file, self.effort.threads, self.effort.runs)
    }

    fn table(&self, changes: &'static str) -> Table {
        Table::new(&[
            ("workload", Align::Left),
            (changes, Align::Right),
            ("ms", Align::Right),
            ("cpu ms", Align::Right),
        ])
    }

    fn draw(&self, name: &str, title: &str, x: &str, series: Vec<Series>) -> Result<(), Failure> {
        let (title, x, y) = (title.to_owned(), x.to_owned(), "seconds".to_owned());
        let chart = Chart { title, x, even: true, y, series };
        let file = self.effort.charts.join(format!("{}-{name}.svg", self.effort.family));
        std::fs::write(&file, chart.to_svg())?;
        println!("The chart is in {}", file.display());
        println!();
        Ok(())
    }
}

fn row(workload: &str, changes: &str, sample: &Sample) -> [String; 4] {
    let [wall, cpu] = [sample.wall, sample.cpu].map(milliseconds);
    [workload.to_owned(), changes.to_owned(), wall, cpu]
}

/// What took all the patience there is was given up.
fn milliseconds(time: Duration) -> String {
    let given_up = if time >= PATIENCE { "> " } else { "" };
    format!("{given_up}{:.1}", time.as_secs_f64() * 1e3)
}
