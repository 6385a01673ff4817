//! History files to tables, and back.

use std::path::Path;

use isolario_formats::{HistoryFormat, OutputTarget, by_extension, find, read};
use isolario_model::{History, TxnSink};

use crate::Error;
use crate::engine::{Engine, Settings};
use crate::rows::{Operations, Teller};
use crate::table::Table;
use crate::write::{Written, write_table};

/// Reads a history file of any format, and writes its table of operations.
pub fn to_table(from: &Path, to: &Path, parts: usize) -> Result<Written, Error> {
    write_table(&read(from)?.history, to, parts)
}

/// Writes the history in a table to a file whose extension says the format; says how many transactions it has.
pub fn from_table(from: &Path, to: &Path, settings: &Settings) -> Result<u64, Error> {
    let format =
        by_extension(to).ok_or_else(|| Error::part(to, "its name does not tell the format"))?;
    if to.exists() {
        return Err(Error::part(to, "it is there already"));
    }
    replay(from, to, format, settings)
}

/// Writes a history to a file of Isolario's own format.
pub fn write_history(history: &History, path: &Path) -> Result<(), Error> {
    let format = find("isolario").ok_or_else(|| Error::part(path, "there is no such format"))?;
    let mut writer = format.writer(OutputTarget::Path(path.to_owned()))?;
    history.replay(&mut *writer)?;
    Ok(writer.finish()?)
}

fn replay(
    from: &Path,
    to: &Path,
    format: &dyn HistoryFormat,
    settings: &Settings,
) -> Result<u64, Error> {
    let table = Table::open(from)?;
    let mut engine = Engine::new(settings)?;
    engine.open(&table)?;
    let mut writer = format.writer(OutputTarget::Path(to.to_owned()))?;
    writer.meta(&table.about.meta)?;
    let mut teller = Teller::default();
    let sink: &mut dyn TxnSink = &mut *writer;
    engine.each("SELECT * FROM ops ORDER BY txn, op", |batch| {
        let rows = Operations::of(batch)?;
        for row in (0..batch.num_rows()).map(|row| rows.get(row)) {
            teller.begin(&row, row.name, sink)?;
            teller.tell(&row, sink)?;
        }
        Ok(())
    })?;
    teller.end(sink)?;
    writer.finish()?;
    Ok(table.about.transactions)
}
