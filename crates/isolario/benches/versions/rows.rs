//! Tables of a simulated store, as files, and how long it takes to decide levels of them without
//! version sets.

use std::path::Path;

use isolario::formats::{self, Target};
use isolario::model::{Level, SinkError, Stamp};
use isolario_bench::{Effort, Expected, Failure, Growth, Step, Table, median};
use isolario_sim::{Mix, TableChronicle, TableConfig, TableWorkload, VersionSet, generate_table};

use crate::Sizes;
use crate::question::Question;
use crate::targets::{Limit, row};
use crate::work::Work;

/// A history of transactions of five operations on a table.
#[derive(Clone, Copy)]
pub struct Rows {
    pub txns: u64,
    pub keys: u32,
    pub mix: Mix,
    /// What the store gives.
    pub level: Level,
}

impl Rows {
    /// Updates, reads, increments and inserts in the proportions of Emme's item histories (Section 8.2,
    /// Figure 9), and in addition so many reads by range out of a hundred operations. A range covers
    /// one row in a hundred.
    fn with_ranges(txns: u64, percent: f64, level: Level) -> Rows {
        let item = (100.0 - percent) / 100.0;
        let mix = format!(
            "insert:{},update:{},read:{},increment:{},range-read:{percent}",
            10.0 * item,
            30.0 * item,
            40.0 * item,
            20.0 * item
        );
        Rows { txns, keys: 1000, mix: mix.parse().unwrap_or(Mix::ITEMS), level }
    }

    /// Emme's predicate histories (Figure 10): a tenth inserts, the rest reads and updates, half and half,
    /// and so many out of a hundred operations by range.
    fn by_share(txns: u64, percent: f64) -> Rows {
        let (items, ranges) = ((90.0 - percent) / 2.0, percent / 2.0);
        let mix = format!(
            "insert:10,update:{items},read:{items},range-read:{ranges},range-update:{ranges}"
        );
        Rows { txns, keys: 100, mix: mix.parse().unwrap_or_default(), level: Level::Serializable }
    }

    /// Writes the history to a file; says how many operations it has.
    pub fn write(&self, file: &Path) -> Result<u64, Failure> {
        let Rows { txns, keys, mix, level } = *self;
        let workload = TableWorkload { keys, mix, ..TableWorkload::default() };
        let config = TableConfig { level, workload, txns, seed: 1, ..TableConfig::default() };
        let format = formats::find("isolario").ok_or("no such format")?;
        let mut writer = format.writer(Target::Path(file.to_owned()))?;
        let operations = generate_table(&config, &mut *writer, &mut Deaf)?.operations;
        writer.finish()?;
        Ok(operations)
    }
}

/// Does not listen to what the store knows and no client does.
struct Deaf;

impl TableChronicle for Deaf {
    fn version(&mut self, _: u64, _: u64) -> Result<(), SinkError> {
        Ok(())
    }

    fn met(&mut self, _: u64, _: usize, _: VersionSet<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    fn committed(&mut self, _: u64, _: Stamp) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Serializable, without version sets: of histories that are, and of those of a store that gives
/// snapshot isolation.
pub fn black_box(
    sizes: &Sizes,
    effort: &Effort,
    directory: &Path,
    table: &mut Table,
) -> Result<(), Failure> {
    let file = directory.join("rows");
    let [few, many] = sizes.rows;
    for (txns, seconds) in [(few, 0.5), (many, 20.0)] {
        for (level, name) in
            [(Level::Serializable, "rows"), (Level::SnapshotIsolation, "rows of snapshots")]
        {
            Rows::with_ranges(txns, 10.0, level).write(&file)?;
            let question = match level {
                Level::Serializable => Question::Holds(Work::LoadAndCheck(level)),
                _ => Question::Fails(Level::Serializable),
            };
            let sample = median(&question, &file, effort.threads, effort.runs)?;
            let limit = Limit { seconds, megabytes: None };
            table.row(row(txns, name, &question, &sample, Some(limit)));
            std::fs::remove_file(&file)?;
        }
    }
    Ok(())
}

/// The sweeps of Figures 9 to 12: the number of transactions, without predicates and with some; and the
/// share of predicates.
pub fn growths(sizes: &Sizes) -> Vec<Growth<Question>> {
    let step = |size: f64, rows: Rows| Step {
        size: Some(size),
        write: Box::new(move |file| rows.write(file)),
    };
    let serializable = Question::Holds(Work::Check(Level::Serializable));
    let growth = |name: &str, title: &str, quantity, steps, expected| Growth {
        name: name.to_owned(),
        title: title.to_owned(),
        quantity,
        jobs: vec![serializable],
        expected,
        steps,
    };
    let by_txns = |percent: f64| -> Vec<Step> {
        let rows =
            |txns: &u64| step(*txns as f64, Rows::with_ranges(*txns, percent, Level::Serializable));
        sizes.growing_rows.iter().map(rows).collect()
    };
    let [few, _] = sizes.rows;
    let by_share: Vec<Step> =
        [5.0, 10.0, 20.0, 40.0, 80.0].map(|share| step(share, Rows::by_share(few, share))).into();
    vec![
        growth(
            "items",
            "Rows by key, without version order, by transactions (Figures 9 and 11)",
            "transactions",
            by_txns(0.0),
            Expected::AtMost(1.3),
        ),
        growth(
            "ranges",
            "A tenth of the operations by range, without version sets, by transactions (Figures 10 and 12)",
            "transactions",
            by_txns(10.0),
            Expected::AtMost(1.3),
        ),
        growth(
            "share",
            "Without version sets, by the share of operations by range in percent (Figures 10 and 12)",
            "percent",
            by_share,
            Expected::Anything,
        ),
    ]
}
