//! The table of operations: what a Parquet file of a history says, and what it is called by.
//!
//! One row per operation, sorted by key, then by value: whoever looks for a key reads few row groups, and the
//! writers of a version stand beside its readers. Everything that a transaction has is repeated in its rows, so
//! that no plan has to look it up; sorted or not, such columns pack well.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use isolario_formats::{Source, by_extension, sniff};
use isolario_model::{Clock, Initial, Meta, Value, ValueRef};

use crate::Error;

/// What sessions, transactions, keys or values are called by: one column has names of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Integers,
    Text,
}

impl Names {
    fn data_type(self) -> DataType {
        match self {
            Names::Integers => DataType::Int64,
            Names::Text => DataType::Utf8,
        }
    }
}

/// What the columns of names are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) session: Names,
    pub(crate) name: Names,
    pub(crate) key: Names,
    pub(crate) value: Names,
}

impl Layout {
    /// The columns.
    pub(crate) fn schema(self) -> Arc<Schema> {
        let integer = |name, nullable| Field::new(name, DataType::Int64, nullable);
        let text = |name, nullable| Field::new(name, DataType::Utf8, nullable);
        let names = |name, names: Names, nullable| Field::new(name, names.data_type(), nullable);
        Arc::new(Schema::new(vec![
            names("session", self.session, false),
            // The position of the transaction in the history, and its own name.
            integer("txn", false),
            names("name", self.name, true),
            // The position of the operation in its transaction.
            integer("op", false),
            // read, write, unobserved (a read without an answer), or none (a transaction without operations).
            text("kind", false),
            names("key", self.key, true),
            // Null is nil: nothing there.
            names("value", self.value, true),
            // Of a read, that no write of its own transaction to the key precedes it; of a write, that none follows.
            Field::new("external", DataType::Boolean, false),
            text("outcome", false),
            integer("start", true),
            integer("finish", true),
        ]))
    }

    /// What the columns of a table are, if it is one of operations.
    fn of_schema(schema: &Schema) -> Result<Layout, String> {
        let names = |column: &str| match schema.field_with_name(column).map(Field::data_type) {
            Ok(DataType::Int64) => Ok(Names::Integers),
            Ok(DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8) => Ok(Names::Text),
            Ok(other) => Err(format!("the column `{column}` is of type {other}")),
            Err(_) => Err(format!("there is no column `{column}`")),
        };
        let layout = Layout {
            session: names("session")?,
            name: names("name")?,
            key: names("key")?,
            value: names("value")?,
        };
        for wanted in layout.schema().fields() {
            match schema.field_with_name(wanted.name()) {
                Ok(field) if field.data_type() == wanted.data_type() => {}
                Ok(field) => {
                    return Err(format!(
                        "the column `{}` is of type {}",
                        wanted.name(),
                        field.data_type()
                    ));
                }
                Err(_) => return Err(format!("there is no column `{}`", wanted.name())),
            }
        }
        Ok(layout)
    }
}

/// What holds for a history as a whole, as the file states it beside its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) meta: Meta,
    pub(crate) transactions: u64,
    /// So many files there are of this history.
    pub(crate) parts: usize,
}

const VERSION: &str = "isolario.table";
const INITIAL: &str = "isolario.initial";
const CLOCK: &str = "isolario.clock";
const TRANSACTIONS: &str = "isolario.transactions";
const PARTS: &str = "isolario.parts";

impl About {
    pub(crate) fn to_pairs(&self) -> Vec<(String, String)> {
        let clock = match self.meta.clock {
            Clock::EventOrder => "event-order",
            _ => "nanoseconds",
        };
        let pairs = [
            (VERSION, "1".to_owned()),
            (INITIAL, initial_text(&self.meta.initial)),
            (CLOCK, clock.to_owned()),
            (TRANSACTIONS, self.transactions.to_string()),
            (PARTS, self.parts.to_string()),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn of_pairs(pairs: &BTreeMap<String, String>) -> Result<About, String> {
        let get = |key: &str| {
            pairs.get(key).map(String::as_str).ok_or_else(|| format!("it does not say `{key}`"))
        };
        let odd = |key: &str, value: &str| format!("what it says of `{key}` is not known: {value}");
        let number = |key| get(key).and_then(|n| n.parse().map_err(|_| odd(key, n)));
        match get(VERSION) {
            Ok("1") => {}
            Ok(other) => return Err(odd(VERSION, other)),
            Err(_) => {
                return Err("this is not a table of operations that Isolario wrote".to_owned());
            }
        }
        let clock = match get(CLOCK)? {
            "nanoseconds" => Clock::Nanoseconds,
            "event-order" => Clock::EventOrder,
            other => return Err(odd(CLOCK, other)),
        };
        let initial = get(INITIAL)?;
        let initial = initial_of(initial).ok_or_else(|| odd(INITIAL, initial))?;
        Ok(About {
            meta: Meta { initial, clock },
            transactions: number(TRANSACTIONS)?,
            parts: number(PARTS)? as usize,
        })
    }
}

fn initial_text(initial: &Initial) -> String {
    let typed = |value: &Value| match value.as_ref() {
        ValueRef::Nil => "nil".to_owned(),
        ValueRef::Text(text) => format!("text {text}"),
        other => format!("integer {other}"),
    };
    match initial {
        Initial::Value(value) => format!("value {}", typed(value)),
        Initial::UnlessWritten(value) => format!("unless written {}", typed(value)),
        Initial::Unwritten => "unwritten".to_owned(),
        _ => "none".to_owned(),
    }
}

fn initial_of(text: &str) -> Option<Initial> {
    let typed = |text: &str| match text.split_once(' ') {
        None if text == "nil" => Some(Value::Nil),
        Some(("integer", number)) => number.parse().ok().map(Value::Int),
        Some(("text", text)) => Some(Value::from(text)),
        _ => None,
    };
    match text {
        "unwritten" => Some(Initial::Unwritten),
        "none" => Some(Initial::None),
        _ => match text.strip_prefix("unless written ") {
            Some(value) => typed(value).map(Initial::UnlessWritten),
            None => typed(text.strip_prefix("value ")?).map(Initial::Value),
        },
    }
}

/// The files of a history: one, or the parts in a directory.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) about: About,
    pub(crate) layout: Layout,
}

impl Table {
    /// Looks at what the files say of themselves. No row is read.
    pub(crate) fn open(path: &Path) -> Result<Table, Error> {
        let files = files(path)?;
        let mut first: Option<(About, Layout)> = None;
        for file in &files {
            let found = open_file(file)?;
            let (about, layout) = first.get_or_insert_with(|| found.clone());
            if (&*about, *layout) != (&found.0, found.1) {
                let problem =
                    format!("it is not a part of the same history as {}", files[0].display());
                return Err(Error::part(file, problem));
            }
        }
        match first {
            Some((about, layout)) if about.parts == files.len() => {
                Ok(Table { files, about, layout })
            }
            Some((about, _)) => {
                let problem = format!("{} of {} parts are here", files.len(), about.parts);
                Err(Error::part(path, problem))
            }
            None => Err(Error::part(path, "there is no Parquet file in this directory")),
        }
    }
}

/// Says which of several files is to blame where a plan failed: the first that cannot be read through.
pub(crate) fn blame(files: &[PathBuf], error: Error) -> Error {
    if !matches!(error, Error::Engine(_) | Error::Worker { .. }) {
        return error;
    }
    let read_through = |path: &PathBuf| {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(file).and_then(|reader| reader.build());
        reader.map_err(|error| error.to_string())?.try_for_each(|batch| match batch {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        })
    };
    let found = files.iter().find_map(|path| Some((path, read_through(path).err()?)));
    found.map_or(error, |(path, problem)| Error::part(path, problem))
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir().map_err(Error::file(path))? {
        let file = entry.map_err(Error::file(path))?.path();
        if file.extension().is_some_and(|extension| extension == "parquet") {
            files.push(file);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// What every Parquet file begins with.
const PARQUET: &[u8] = b"PAR1";

/// What to do with a file that is something else: who has a history wants its table.
fn not_parquet(path: &Path) -> String {
    let looks_like = Source::open(path).ok().and_then(|source| sniff(&source));
    match looks_like.or_else(|| by_extension(path)) {
        Some(format) => format!(
            "this is a history file ({}), not a table of operations; make one with `isolario-cluster convert {} {}`",
            format.name(),
            path.display(),
            path.with_extension("parquet").display()
        ),
        None => "this is not a Parquet file".to_owned(),
    }
}

fn open_file(path: &Path) -> Result<(About, Layout), Error> {
    let wrong = |problem: String| Error::part(path, problem);
    let mut file = File::open(path).map_err(Error::file(path))?;
    let mut beginning = Vec::new();
    let magic = (&mut file).take(PARQUET.len() as u64).read_to_end(&mut beginning);
    magic.map_err(Error::file(path))?;
    if beginning != PARQUET {
        return Err(wrong(not_parquet(path)));
    }
    let reader = SerializedFileReader::new(file).map_err(|error| wrong(error.to_string()))?;
    let metadata = reader.metadata().file_metadata();
    let pairs = metadata.key_value_metadata().into_iter().flatten();
    let pairs = pairs.filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?)));
    let about = About::of_pairs(&pairs.collect()).map_err(wrong)?;
    let schema = datafusion::parquet::arrow::parquet_to_arrow_schema(
        metadata.schema_descr(),
        metadata.key_value_metadata(),
    );
    let schema = schema.map_err(|error| wrong(error.to_string()))?;
    let layout = Layout::of_schema(&schema).map_err(wrong)?;
    Ok((about, layout))
}
