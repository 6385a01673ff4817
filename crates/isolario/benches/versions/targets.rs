//! The table of targets: lists, from a file to a verdict.

use std::path::Path;

use isolario::model::{AnomalyKind, Level};
use isolario_bench::{Align, Effort, Failure, Job, Sample, Table, judge, median};

use crate::history::Lists;
use crate::question::Question;
use crate::work::Work;
use crate::{Sizes, giant, rows};

/// What a job must stay under.
#[derive(Clone, Copy)]
pub struct Limit {
    pub seconds: f64,
    /// Beyond the mapped file.
    pub megabytes: Option<f64>,
}

/// The transactions that Elle's README gives 2 minutes and 60 GB for.
const ELLE: f64 = 22e6;

/// Measures and prints the table.
pub fn bench(sizes: &Sizes, effort: &Effort, directory: &Path) -> Result<(), Failure> {
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!("Load and check lists; others keep {} processors busy", first_word(&load));
    let mut table = Table::new(&[
        ("transactions", Align::Right),
        ("format", Align::Left),
        ("job", Align::Left),
        ("ms", Align::Right),
        ("cpu ms", Align::Right),
        ("MB", Align::Right),
        ("target", Align::Left),
    ]);
    let strict = Work::LoadAndCheck(Level::StrictSerializable);
    let mut largest = None;
    for (txns, format, seconds, megabytes) in [
        (sizes.txns, "elle-edn", 1.0, 500.0),
        (sizes.txns, "isolario", 0.4, 500.0),
        (sizes.many_txns, "isolario", 10.0, 8000.0),
    ] {
        let file = directory.join("lists");
        Lists { txns, format }.write(&file)?;
        let limit = Limit { seconds, megabytes: Some(megabytes) };
        for (work, limit) in [(Work::Load, None), (strict, Some(limit))] {
            let question = Question::Holds(work);
            let sample = median(&question, &file, effort.threads, effort.runs)?;
            table.row(row(txns, format, &question, &sample, limit));
            largest = Some((txns, sample));
        }
        std::fs::remove_file(&file)?;
    }
    giant_component(sizes, effort, directory, &mut table)?;
    rows::by_statements(sizes, effort, directory, &mut table)?;
    rows::black_box(sizes, effort, directory, &mut table)?;
    println!("{table}");
    if let Some((txns, sample)) = largest {
        let times = ELLE / txns as f64;
        println!(
            "{ELLE} transactions would take {:.1} s and {:.1} GB (Elle: 120 s, 60 GB)\n",
            sample.wall.as_secs_f64() * times,
            sample.peak_bytes as f64 * times / 1e9,
        );
    }
    Ok(())
}

/// One component of all transactions: what there is in it is still found.
fn giant_component(
    sizes: &Sizes,
    effort: &Effort,
    directory: &Path,
    table: &mut Table,
) -> Result<(), Failure> {
    let file = directory.join("giant");
    giant::write(sizes.giant, &file)?;
    let limit = Limit { seconds: 5.0, megabytes: None };
    for (level, kind) in [
        (Level::ReadUncommitted, AnomalyKind::DirtyWrite),
        (Level::AdyaReadCommitted, AnomalyKind::CyclicCo),
        (Level::ParallelSnapshotIsolation, AnomalyKind::CyclicCo),
        (Level::Serializable, AnomalyKind::CyclicCo),
    ] {
        let question = Question::Broken(level, kind);
        let sample = median(&question, &file, effort.threads, effort.runs)?;
        table.row(row(sizes.giant.into(), "one cycle", &question, &sample, Some(limit)));
    }
    Ok(std::fs::remove_file(&file)?)
}

pub fn row(
    txns: u64,
    format: &str,
    question: &Question,
    sample: &Sample,
    limit: Option<Limit>,
) -> [String; 7] {
    let (wall, bytes) = (sample.wall.as_secs_f64(), sample.peak_bytes as f64 / 1e6);
    let target = limit.map_or_else(String::new, |Limit { seconds, megabytes }| {
        let memory = megabytes.map(|most| format!(", {most} MB {}", judge(bytes < most)));
        format!("{seconds} s {}{}", judge(wall <= seconds), memory.unwrap_or_default())
    });
    [
        txns.to_string(),
        format.to_owned(),
        question.name(),
        format!("{:.1}", wall * 1e3),
        format!("{:.1}", sample.cpu.as_secs_f64() * 1e3),
        format!("{bytes:.0}"),
        target,
    ]
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("?")
}
