//! The query engine: DataFusion in this process, and in as many worker processes as there are.
//!
//! Workers have the operations of some keys each, and so does a table that they keep: under its name, a worker sees
//! the rows of its own keys, and this process those of all. So a plan that goes by key is carried out by all workers at
//! once, in the same words. What needs more than its own keys asks for a table that is [shared](Engine::share).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use futures_util::StreamExt;
use isolario_model::Level;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::Error;
use crate::table::Table;
use crate::workers::{Request, Workers};

/// With how much plans are carried out.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// So many bytes may be used, by each process, before sorts, groups and joins go to disk.
    pub memory: Option<usize>,
    /// How many partitions a process works on at once.
    pub partitions: Option<usize>,
    /// How many worker processes the keys are divided among; with none, this process does the work.
    pub workers: usize,
    /// The program that they run, if not this one: `isolario-cluster`.
    pub program: Option<PathBuf>,
    /// Where intermediate tables are kept. The system's temporary directory unless named.
    pub work: Option<PathBuf>,
}

/// A session with the engine.
pub(crate) struct Engine {
    context: SessionContext,
    /// Where tables are kept that later plans read.
    work: TempDir,
    /// The files of each of these.
    kept: BTreeMap<String, Vec<PathBuf>>,
    /// How many there were.
    serial: usize,
    runtime: Runtime,
    workers: Workers,
}

impl Engine {
    pub(crate) fn new(settings: &Settings) -> Result<Engine, Error> {
        let parent = settings.work.clone().unwrap_or_else(std::env::temp_dir);
        let work = tempfile::Builder::new().prefix("isolario-cluster-").tempdir_in(&parent);
        let work = work.map_err(Error::file(&parent))?;
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.enable_all().build().map_err(Error::file(work.path()))?;
        let mut config = SessionConfig::new();
        config.options_mut().execution.parquet.schema_force_view_types = false;
        if let Some(partitions) = settings.partitions {
            config = config.with_target_partitions(partitions);
        }
        let spilled = DiskManagerMode::Directories(vec![work.path().to_owned()]);
        let disk = DiskManagerBuilder::default().with_mode(spilled);
        let mut environment = RuntimeEnvBuilder::new().with_disk_manager_builder(disk);
        if let Some(memory) = settings.memory {
            // Joins by hashing do not go to disk; those by sorting do. Each of many sorts sets something aside for that.
            config.options_mut().optimizer.prefer_hash_join = false;
            let aside = &mut config.options_mut().execution.sort_spill_reservation_bytes;
            *aside = (*aside).min(memory / 64);
            environment = environment.with_memory_pool(Arc::new(FairSpillPool::new(memory)));
        }
        let context = SessionContext::new_with_config_rt(config, environment.build_arc()?);
        let workers = Workers::start(settings)?;
        Ok(Engine { context, work, kept: BTreeMap::new(), serial: 0, runtime, workers })
    }

    /// Makes a history's table of operations known as `ops`, and divides it among the workers.
    pub(crate) fn open(&mut self, table: &Table) -> Result<(), Error> {
        self.register("ops", &table.files)?;
        self.workers.open(&table.files)
    }

    /// Makes Parquet files known as a table.
    pub(crate) fn register(&self, name: &str, files: &[PathBuf]) -> Result<(), Error> {
        let paths: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        self.runtime.block_on(async {
            let rows = self.context.read_parquet(paths, ParquetReadOptions::default()).await?;
            self.context.deregister_table(name)?;
            self.context.register_table(name, rows.into_view())?;
            Ok(())
        })
    }

    /// Gives a query a name, here and for all workers. It is worked out wherever the name is used.
    pub(crate) fn view(&mut self, name: &str, query: &str) -> Result<(), Error> {
        self.workers.ask_all(|_| Request::View { name, query })?;
        self.runtime.block_on(async {
            let view = self.context.sql(query).await?.into_view();
            self.context.deregister_table(name)?;
            self.context.register_table(name, view)?;
            Ok(())
        })
    }

    /// Works out a query that goes by key, and keeps what comes of it as a table.
    pub(crate) fn keep(&mut self, name: &str, query: &str) -> Result<(), Error> {
        let files = self.new_files(name, self.workers.len().max(1))?;
        match self.has_workers() {
            false => self.keep_in(name, query, &files[0]),
            true => {
                self.workers.ask_all(|at| Request::Keep { name, query, file: &files[at] })?;
                self.register(name, &files)
            }
        }
    }

    /// Works out a query in this process, and keeps what comes of it in a file.
    pub(crate) fn keep_in(&self, name: &str, query: &str, file: &Path) -> Result<(), Error> {
        let path = file.display().to_string();
        self.runtime.block_on(async {
            let options = DataFrameWriteOptions::new().with_single_file_output(true);
            self.context.sql(query).await?.write_parquet(&path, options, None).await
        })?;
        self.register(name, &[file.to_owned()])
    }

    /// Makes a table that was kept known to everybody under another name, with the rows of all keys.
    pub(crate) fn share(&mut self, name: &str, shared: &str) -> Result<(), Error> {
        let files = self.kept.get(name).cloned().unwrap_or_default();
        self.workers.ask_all(|_| Request::Table { name: shared, files: &files })?;
        self.register(shared, &files)
    }

    /// Keeps rows of this process as a table that everybody knows.
    pub(crate) fn keep_rows(&mut self, name: &str, rows: &RecordBatch) -> Result<(), Error> {
        let files = self.new_files(name, 1)?;
        let file = std::fs::File::create(&files[0]).map_err(Error::file(&files[0]))?;
        let mut writer = ArrowWriter::try_new(file, rows.schema(), None)?;
        writer.write(rows)?;
        writer.close()?;
        self.workers.ask_all(|_| Request::Table { name, files: &files })?;
        self.register(name, &files)
    }

    /// The files of a table that is about to be kept, in place of what was kept under its name. They have new names, so
    /// that nothing that the engine remembers of files is about the old ones.
    fn new_files(&mut self, name: &str, count: usize) -> Result<Vec<PathBuf>, Error> {
        for old in self.kept.remove(name).unwrap_or_default() {
            std::fs::remove_file(&old).map_err(Error::file(&old))?;
        }
        self.serial += 1;
        let file = |at| self.work.path().join(format!("{name}-{}-{at}.parquet", self.serial));
        let files: Vec<PathBuf> = (0..count).map(file).collect();
        self.kept.insert(name.to_owned(), files.clone());
        Ok(files)
    }

    pub(crate) fn has_workers(&self) -> bool {
        self.workers.len() > 0
    }

    /// Where a history of some number can be kept.
    pub(crate) fn history_file(&self, number: usize) -> PathBuf {
        self.work.path().join(format!("{number}.iso"))
    }

    /// Divides histories among the workers, and says which of them do not satisfy a level.
    pub(crate) fn hand_out(
        &mut self,
        level: Level,
        files: &[PathBuf],
    ) -> Result<Vec<PathBuf>, Error> {
        let count = self.workers.len();
        let share = |at| files.iter().skip(at).step_by(count.max(1)).cloned().collect();
        let shares: Vec<Vec<PathBuf>> = (0..count).map(share).collect();
        let found = self.workers.ask_all(|at| Request::Decide { level, files: &shares[at] })?;
        let of_share = |(share, places): (Vec<PathBuf>, Vec<usize>)| {
            places.into_iter().filter_map(move |place| share.get(place).cloned())
        };
        Ok(shares.into_iter().zip(found).flat_map(of_share).collect())
    }

    /// Hands over what a query finds among the rows of all keys, as it comes.
    pub(crate) fn each(
        &self,
        query: &str,
        mut take: impl FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.runtime.block_on(async {
            let mut found = self.context.sql(query).await?.execute_stream().await?;
            while let Some(batch) = found.next().await {
                take(&batch?)?;
            }
            Ok(())
        })
    }
}
