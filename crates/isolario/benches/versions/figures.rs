//! The sweeps of the Emme paper (Figures 9 to 12): how long it takes to check histories of so many
//! transactions, without predicates and with a share of them, beside what the paper says of its own
//! checkers.

use std::path::Path;

use isolario::model::Level;
use isolario_bench::{Align, Chart, Effort, Failure, Series, Table, exponent, judge, median};

use crate::Sizes;
use crate::question::{Loading, Question, Statement};
use crate::rows::Rows;
use crate::work::Work;

/// Shares of operations by range, in percent. The paper does not say in words which ones it took.
const SHARES: [f64; 4] = [10.0, 20.0, 40.0, 80.0];

/// By which power time may grow with the number of transactions.
const MOST: f64 = 1.3;

/// What the paper states, in seconds of checking alone: of histories by key with 100,000 transactions
/// of five operations, and of histories with predicates with 2,500 (Section 8.3).
const BY_KEY: [(&str, f64); 3] = [("Emme", 98.3), ("Enne", 1.7), ("Elle", 184.2)];
const BY_RANGE: [(&str, f64); 2] = [("Emme", 76.2), ("Enne", 0.6)];

/// What it is told by: the database's order of versions, its order of transactions, or nothing.
const QUESTIONS: [(&str, Question); 3] = [
    ("version certificate", Question::Stated(Statement::Certificate, Loading::IsLeftOut)),
    ("promised order", Question::Stated(Statement::Promise, Loading::IsLeftOut)),
    ("black box", Question::Holds(Work::Check(Level::Serializable))),
];

/// Measures and draws the figures whose names begin with `part`.
pub fn bench(part: &str, sizes: &Sizes, effort: &Effort, directory: &Path) -> Result<(), Failure> {
    let sweep = Sweep { effort, directory };
    if "figure-9".starts_with(part) || "figure-11".starts_with(part) {
        let items = |txns| Rows::with_ranges(txns, 0.0, Level::Serializable);
        println!("Rows by key (Emme, Figures 9 and 11); check alone");
        let lines = sweep.measure("by key", &items, &QUESTIONS, &sizes.growing_rows)?;
        let title = "Rows by key (Figures 9 and 11)";
        sweep.draw("figure-9", title, lines, published(&BY_KEY, 100_000.0))?;
    }
    if "figure-10".starts_with(part) || "figure-12".starts_with(part) {
        println!("A share of the operations by range (Emme, Figures 10 and 12); check alone");
        let mut of_questions = vec![Vec::new(); 2];
        for share in SHARES {
            let name = format!("{share}% by range");
            let rows = |txns| Rows::by_share(txns, share);
            let lines = sweep.measure(&name, &rows, &QUESTIONS[..2], &sizes.growing_predicates)?;
            for (lines, line) in of_questions.iter_mut().zip(lines) {
                lines.push(Series { name: name.clone(), ..line });
            }
        }
        for ((figure, title), (lines, stated)) in [
            ("figure-10", "Predicates by a version certificate (Figure 10)"),
            ("figure-12", "Predicates by a promised order (Figure 12)"),
        ]
        .into_iter()
        .zip(of_questions.into_iter().zip(BY_RANGE))
        {
            sweep.draw(figure, title, lines, published(&[stated], 2_500.0))?;
        }
    }
    Ok(())
}

fn published(stated: &[(&str, f64)], txns: f64) -> Vec<Series> {
    let series = |(name, seconds): &(&str, f64)| {
        Series::published(format!("{name}, published"), vec![(txns, *seconds)])
    };
    stated.iter().map(series).collect()
}

struct Sweep<'a> {
    effort: &'a Effort,
    directory: &'a Path,
}

impl Sweep<'_> {
    /// How long each question takes on histories of so many transactions: a line per question. It is
    /// processor time that is drawn, so that the charts are the same on a machine that is busy with other
    /// work. What is too short for that clock is left out.
    fn measure(
        &self,
        name: &str,
        rows: &dyn Fn(u64) -> Rows,
        questions: &[(&str, Question)],
        sizes: &[u64],
    ) -> Result<Vec<Series>, Failure> {
        let mut table = Table::new(&[
            ("transactions", Align::Right),
            ("history", Align::Left),
            ("by", Align::Left),
            ("ms", Align::Right),
            ("cpu ms", Align::Right),
        ]);
        let mut points = vec![Vec::new(); questions.len()];
        for txns in sizes {
            let file = self.directory.join("figure");
            rows(*txns).write(&file)?;
            for ((by, question), points) in questions.iter().zip(&mut points) {
                let sample = median(question, &file, self.effort.threads, self.effort.runs)?;
                let [wall, cpu] = [sample.wall, sample.cpu].map(|time| time.as_secs_f64());
                let ms = |seconds: f64| format!("{:.1}", seconds * 1e3);
                table.row([txns.to_string(), name.to_owned(), (*by).to_owned(), ms(wall), ms(cpu)]);
                points.push((*txns as f64, cpu));
            }
            std::fs::remove_file(&file)?;
        }
        print!("{table}");
        for ((by, _), points) in questions.iter().zip(&points) {
            if let Some(exponent) = exponent(points) {
                let judged = judge(exponent <= MOST);
                println!("{by}: exponent {exponent:.2}, at most {MOST}: {judged}");
            }
        }
        println!();
        let lines = questions.iter().zip(points);
        Ok(lines.map(|((by, _), points)| Series::measured(*by, points)).collect())
    }

    fn draw(
        &self,
        name: &str,
        title: &str,
        lines: Vec<Series>,
        published: Vec<Series>,
    ) -> Result<(), Failure> {
        let guide = lines.last().and_then(|line| Series::power(1.0, line));
        let series = lines.into_iter().chain(published).chain(guide).collect();
        let [x, y] = ["transactions", "seconds of processor time"].map(str::to_owned);
        let chart = Chart { title: title.to_owned(), x, even: false, y, series };
        let file = self.effort.charts.join(format!("{}-{name}.svg", self.effort.family));
        std::fs::write(&file, chart.to_svg())?;
        println!("The chart is in {}\n", file.display());
        Ok(())
    }
}
