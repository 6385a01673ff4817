//! How time grows with one thing while the others stay as they are.

use std::fmt::Write;
use std::path::Path;

use isolario::model::Level;
use isolario_bench::{Align, Chart, Failure, Job, Sample, Series, Table, exponent, judge, median};
use isolario_sim::Distribution;

use crate::Effort;
use crate::hard::Family;
use crate::history::{OPS_PER_TXN, Recipe, SESSIONS};
use crate::job::Work;

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::ReadAtomic, Level::Causal];
const THREADS: usize = 2;

/// What the exponent should be.
#[derive(Clone, Copy)]
enum Expected {
    AtMost(f64),
    Between(f64, f64),
    /// Nobody has said.
    Anything,
}

/// One thing that grows.
pub struct Growth {
    /// By which it is selected, and its chart is found.
    pub name: String,
    title: String,
    /// What grows; its name heads a column.
    quantity: &'static str,
    jobs: Vec<Work>,
    expected: Expected,
    steps: Vec<Step>,
}

/// One size of it.
struct Step {
    /// None for the number of operations, which the recipe tells.
    size: Option<f64>,
    recipe: Recipe,
}

impl Growth {
    /// Everything that is to be measured.
    pub fn all(effort: &Effort) -> Vec<Growth> {
        let mut all = vec![
            Growth::of_transactions(effort),
            Growth::of_sessions(effort),
            Growth::of_operations_per_transaction(effort),
        ];
        all.extend(Family::ALL.map(|family| Growth::of_graph(family, effort)));
        all
    }

    fn of_transactions(effort: &Effort) -> Growth {
        let step = |&txns: &u64| Step {
            size: Some(txns as f64),
            recipe: Recipe::simulated(txns, SESSIONS, OPS_PER_TXN, Distribution::Uniform),
        };
        Growth {
            name: "transactions".to_owned(),
            title: format!("Load and check, {SESSIONS} sessions"),
            quantity: "transactions",
            jobs: LEVELS.map(Work::LoadAndCheck).to_vec(),
            expected: Expected::AtMost(1.1),
            steps: effort.growing_txns.iter().map(step).collect(),
        }
    }

    fn of_sessions(effort: &Effort) -> Growth {
        let txns = effort.fixed_txns;
        let step = |&sessions: &u32| Step {
            size: Some(sessions.into()),
            recipe: Recipe::simulated(txns, sessions, OPS_PER_TXN, Distribution::Uniform),
        };
        Growth {
            name: "sessions".to_owned(),
            title: format!("Check alone, {txns} transactions of {OPS_PER_TXN} operations"),
            quantity: "sessions",
            jobs: vec![Work::Check(Level::Causal)],
            expected: Expected::AtMost(1.1),
            steps: [10, 100, 1000].iter().map(step).collect(),
        }
    }

    fn of_operations_per_transaction(effort: &Effort) -> Growth {
        let ops = effort.fixed_txns * u64::from(OPS_PER_TXN);
        let step = |&per_txn: &u32| Step {
            size: Some(per_txn.into()),
            recipe: Recipe::simulated(
                ops / u64::from(per_txn),
                SESSIONS,
                per_txn,
                Distribution::Uniform,
            ),
        };
        Growth {
            name: "operations-per-transaction".to_owned(),
            title: format!("Check alone, {ops} operations, {SESSIONS} sessions"),
            quantity: "operations per transaction",
            jobs: LEVELS.map(Work::Check).to_vec(),
            expected: Expected::Anything,
            steps: [2, 8, 32, 128].iter().map(step).collect(),
        }
    }

    fn of_graph(family: Family, effort: &Effort) -> Growth {
        let step = |&nodes: &u32| Step { size: None, recipe: Recipe::Hard(family, nodes) };
        Growth {
            name: format!("hard-{}", family.name()),
            title: format!("Check alone, the hard family {}", family.name()),
            quantity: "operations",
            jobs: family.levels().iter().copied().map(Work::Check).collect(),
            expected: Expected::Between(1.4, 1.6),
            steps: effort.nodes.iter().map(step).collect(),
        }
    }

    /// Measures, prints the figures, and draws the chart.
    pub fn bench(&self, effort: &Effort, directory: &Path) -> Result<(), Failure> {
        println!("{}", self.title);
        let mut table = Table::new(&[
            (self.quantity, Align::Right),
            ("job", Align::Left),
            ("ms", Align::Right),
            ("cpu ms", Align::Right),
            ("Mop/s", Align::Right),
            ("MB", Align::Right),
        ]);
        let mut measured: Vec<Vec<(f64, Sample)>> = vec![Vec::new(); self.jobs.len()];
        for step in &self.steps {
            let file = directory.join(&self.name);
            let ops = step.recipe.write(&file)? as f64;
            let size = step.size.unwrap_or(ops);
            for (job, samples) in self.jobs.iter().zip(&mut measured) {
                let sample = median(job, &file, THREADS, effort.runs)?;
                samples.push((size, sample));
                table.row(row(size, &job.name(), ops, &sample));
            }
            std::fs::remove_file(&file)?;
        }
        print!("{table}");
        println!("{}", self.exponents(&measured));
        std::fs::write(
            effort.charts.join(format!("weak-{}.svg", self.name)),
            self.chart(&measured).to_svg(),
        )?;
        Ok(())
    }

    fn exponents(&self, measured: &[Vec<(f64, Sample)>]) -> String {
        let mut text = String::new();
        for (job, samples) in self.jobs.iter().zip(measured) {
            let Some(wall) = exponent(&wall_seconds(samples)) else { continue };
            // None where jobs were too short for the clock of the processors.
            let cpu = exponent(&cpu_seconds(samples));
            let cpu = cpu.map_or_else(|| "too short".to_owned(), |cpu| format!("{cpu:.2}"));
            let target = match self.expected {
                Expected::AtMost(limit) => format!(", at most {limit}: {}", judge(wall <= limit)),
                Expected::Between(low, high) => {
                    format!(", {low} to {high}: {}", judge((low..=high).contains(&wall)))
                }
                Expected::Anything => String::new(),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: exponent {wall:.2} (cpu {cpu}){target}", job.name());
        }
        text
    }

    fn chart(&self, measured: &[Vec<(f64, Sample)>]) -> Chart {
        let lines = self.jobs.iter().zip(measured);
        let mut series: Vec<Series> = lines
            .map(|(job, samples)| Series::measured(job.name(), wall_seconds(samples)))
            .collect();
        let guides = match self.expected {
            Expected::Between(..) => vec![1.0, 1.5],
            Expected::AtMost(_) => vec![1.0],
            Expected::Anything => Vec::new(),
        };
        let beside = series.first().cloned();
        series
            .extend(guides.into_iter().filter_map(|guide| Series::power(guide, beside.as_ref()?)));
        let x = self.quantity.to_owned();
        Chart { title: self.title.clone(), x, y: "seconds".to_owned(), series }
    }
}

fn row(size: f64, job: &str, ops: f64, sample: &Sample) -> [String; 6] {
    let seconds = sample.wall.as_secs_f64();
    [
        size.to_string(),
        job.to_owned(),
        format!("{:.1}", seconds * 1e3),
        format!("{:.1}", sample.cpu.as_secs_f64() * 1e3),
        format!("{:.2}", ops / seconds / 1e6),
        format!("{:.0}", sample.peak_bytes as f64 / 1e6),
    ]
}

fn wall_seconds(samples: &[(f64, Sample)]) -> Vec<(f64, f64)> {
    samples.iter().map(|(size, sample)| (*size, sample.wall.as_secs_f64())).collect()
}

fn cpu_seconds(samples: &[(f64, Sample)]) -> Vec<(f64, f64)> {
    samples.iter().map(|(size, sample)| (*size, sample.cpu.as_secs_f64())).collect()
}
