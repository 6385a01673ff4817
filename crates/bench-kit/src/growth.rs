//! How time grows with one thing while the others stay as they are.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::{
    Align, Arguments, Chart, Failure, Job, Sample, Series, Table, exponent, judge, median,
};

/// How much to measure, and where charts go.
#[derive(Debug)]
pub struct Effort {
    /// Runs per figure, of which the median counts.
    pub runs: usize,
    /// Threads per run.
    pub threads: usize,
    /// Where charts go.
    pub charts: PathBuf,
    /// The benchmark's name, with which those of its charts begin.
    pub family: &'static str,
}

impl Effort {
    /// As the command line asks for, with so many runs per figure where it does not say.
    pub fn of(
        arguments: &Arguments,
        family: &'static str,
        usual_runs: usize,
    ) -> Result<Effort, Failure> {
        let usual_charts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/bench-charts");
        let charts = arguments.value("--charts")?.unwrap_or_else(|| PathBuf::from(usual_charts));
        std::fs::create_dir_all(&charts)?;
        let usual_runs = if arguments.in_earnest() { usual_runs } else { 1 };
        let runs = arguments.value("--runs")?.unwrap_or(usual_runs);
        Ok(Effort { runs, threads: 2, charts, family })
    }
}

/// What the exponent should be.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// No more than this.
    AtMost(f64),
    /// Within these limits.
    Between(f64, f64),
    /// Nobody has said.
    Anything,
}

/// One thing that grows.
#[expect(missing_debug_implementations, reason = "its steps hold functions")]
pub struct Growth<J> {
    /// By which it is selected, and its chart is found.
    pub name: String,
    /// What stays as it is.
    pub title: String,
    /// What grows; its name heads a column.
    pub quantity: &'static str,
    /// What is measured.
    pub jobs: Vec<J>,
    /// What the exponents should be.
    pub expected: Expected,
    /// The sizes.
    pub steps: Vec<Step>,
}

/// Writes a history to a file, and says how many operations it has.
pub type Writer = Box<dyn Fn(&Path) -> Result<u64, Failure>>;

/// One size of what grows.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct Step {
    /// None for the number of operations.
    pub size: Option<f64>,
    /// Writes the history of that size.
    pub write: Writer,
}

impl<J: Job> Growth<J> {
    /// Measures, prints the figures, and draws the chart.
    #[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
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
            let ops = (step.write)(&file)? as f64;
            let size = step.size.unwrap_or(ops);
            for (job, samples) in self.jobs.iter().zip(&mut measured) {
                let sample = median(job, &file, effort.threads, effort.runs)?;
                samples.push((size, sample));
                table.row(row(size, &job.name(), ops, &sample));
            }
            std::fs::remove_file(&file)?;
        }
        print!("{table}");
        println!("{}", self.exponents(&measured));
        std::fs::write(
            effort.charts.join(format!("{}-{}.svg", effort.family, self.name)),
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
        Chart { title: self.title.clone(), x, even: false, y: "seconds".to_owned(), series }
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
