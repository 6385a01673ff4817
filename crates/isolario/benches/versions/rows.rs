//! Tables of a simulated store, as files, and how long it takes to decide levels of them: by version
//! certificates (Emme), by the promised order (Enne), and without either.

use std::path::Path;

use isolario::formats::{self, OutputTarget};
use isolario::model::Level;
use isolario_bench::{Effort, Expected, Failure, Growth, Step, Table, median};
use isolario_sim::{Mix, TableConfig, TableWorkload, generate_table};

use crate::Sizes;
use crate::orders::Orders;
use crate::question::{Loading, Question, Statement};
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
    pub fn with_ranges(txns: u64, percent: f64, level: Level) -> Rows {
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
    pub fn by_share(txns: u64, percent: f64) -> Rows {
        let (items, ranges) = ((90.0 - percent) / 2.0, percent / 2.0);
        let mix = format!(
            "insert:10,update:{items},read:{items},range-read:{ranges},range-update:{ranges}"
        );
        Rows { txns, keys: 100, mix: mix.parse().unwrap_or_default(), level: Level::Serializable }
    }

    /// Writes the history to a file, and what the store knows of it beside it; says how many
    /// operations it has.
    pub fn write(&self, file: &Path) -> Result<u64, Failure> {
        let Rows { txns, keys, mix, level } = *self;
        let workload = TableWorkload { keys, mix, ..TableWorkload::default() };
        let config = TableConfig { level, workload, txns, seed: 1, ..TableConfig::default() };
        let format = formats::find("isolario").ok_or("no such format")?;
        let mut writer = format.writer(OutputTarget::Path(file.to_owned()))?;
        let mut orders = Orders::create(file)?;
        let operations = generate_table(&config, &mut *writer, &mut orders)?.operations;
        orders.finish()?;
        writer.finish()?;
        Ok(operations)
    }
}

/// The rows of the table of targets that the Emme paper has figures for.
pub fn by_statements(
    sizes: &Sizes,
    effort: &Effort,
    directory: &Path,
    table: &mut Table,
) -> Result<(), Failure> {
    let file = directory.join("rows");
    let [few, many] = sizes.rows;
    let items = Rows::with_ranges(many, 0.0, Level::Serializable);
    let (predicates, ranges) = (|txns| Rows::by_share(txns, 20.0), Rows::with_ranges);
    for (rows, name, emme, enne) in [
        (items, "items", Some(0.3), Some(0.15)),
        (predicates(few), "predicates", Some(0.15), Some(0.03)),
        (predicates(many), "predicates", Some(10.0), None),
        (ranges(many, 10.0, Level::Serializable), "rows", None, Some(2.0)),
    ] {
        rows.write(&file)?;
        for (statement, seconds) in [(Statement::Certificate, emme), (Statement::Promise, enne)] {
            let question = Question::Stated(statement, Loading::Counts);
            let sample = median(&question, &file, effort.threads, effort.runs)?;
            let limit = seconds.map(|seconds| Limit { seconds, megabytes: None });
            table.row(row(rows.txns, name, &question, &sample, limit));
        }
        std::fs::remove_file(&file)?;
    }
    Ok(())
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

/// How time grows beyond the sweeps of the paper: with ranges, with their share, and where every version
/// is visited.
pub fn growths(sizes: &Sizes) -> Vec<Growth<Question>> {
    let step = |size: f64, rows: Rows| Step {
        size: Some(size),
        write: Box::new(move |file| rows.write(file)),
    };
    let black_box = Question::Holds(Work::Check(Level::Serializable));
    let by = |statement| Question::Stated(statement, Loading::IsLeftOut);
    let (emme, enne) = (by(Statement::Certificate), by(Statement::Promise));
    let by_txns = |rows: &dyn Fn(u64) -> Rows, sizes: &[u64]| -> Vec<Step> {
        sizes.iter().map(|txns| step(*txns as f64, rows(*txns))).collect()
    };
    let [few, _] = sizes.rows;
    let by_share: Vec<Step> =
        [5.0, 10.0, 20.0, 40.0, 80.0].map(|share| step(share, Rows::by_share(few, share))).into();
    let growth = |name: &str, title: &str, jobs: &[Question], steps, expected| Growth {
        name: name.to_owned(),
        title: title.to_owned(),
        quantity: if name == "share" { "percent" } else { "transactions" },
        jobs: jobs.to_vec(),
        expected,
        steps,
    };
    let all = [emme, enne, black_box];
    vec![
        growth(
            "ranges",
            "A tenth of the operations by range, by transactions",
            &all,
            by_txns(
                &|txns| Rows::with_ranges(txns, 10.0, Level::Serializable),
                &sizes.growing_rows,
            ),
            Expected::AtMost(1.3),
        ),
        growth(
            "share",
            "2,500 transactions, by the share of operations by range in percent",
            &all,
            by_share,
            Expected::Anything,
        ),
        growth(
            "every-version",
            "A fifth of the operations by range: versions near the member, and every version",
            &[emme, Question::EveryVersion],
            by_txns(&|txns| Rows::by_share(txns, 20.0), &sizes.every_version),
            Expected::Anything,
        ),
    ]
}
