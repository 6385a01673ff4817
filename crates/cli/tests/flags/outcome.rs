//! The outcome of a command, without times and whatever else differs from run to run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Everything that a command left behind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    /// The new and changed files, by name.
    pub(crate) files: BTreeMap<String, String>,
    /// The parts that are not compared as a whole.
    pub(crate) record: Record,
}

/// The record of the run, if it is one, and what was printed. Any two are alike: they say how long it
/// took, and echo the flags.
#[derive(Clone, Default)]
pub(crate) struct Record {
    run: Value,
    out: String,
    err: String,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl PartialEq for Record {
    fn eq(&self, _: &Record) -> bool {
        true
    }
}

/// The part of an outcome that is the same in two runs of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Repeatable {
    /// Everything but times.
    Everything,
    /// Not the numbers either, nor what files contain: threads take turns.
    Words,
    /// Only the form of what is printed, the names of files, and what was asked for.
    Shape,
}

impl Outcome {
    /// Reads what was printed, and what lies in the directory in addition to the given files.
    pub(crate) fn of(
        output: &Output,
        directory: &Path,
        before: &BTreeMap<String, Vec<u8>>,
        repeatable: Repeatable,
    ) -> Outcome {
        let text = |bytes: &[u8]| {
            let text = masked(&String::from_utf8_lossy(bytes));
            match repeatable {
                Repeatable::Everything => text,
                Repeatable::Words => without_numbers(&text),
                Repeatable::Shape => shape(&text),
            }
        };
        let mut files = BTreeMap::new();
        let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (plain(&output.stdout), plain(&output.stderr));
        let mut record = Record { run: Value::Null, out, err };
        for (name, content) in contents(directory) {
            if before.get(&name) == Some(&content) {
                continue;
            }
            if name.ends_with("run.json") {
                record.run = serde_json::from_slice(&content).unwrap_or_default();
                if repeatable == Repeatable::Shape {
                    files.insert(name, asked(&record.run));
                    continue;
                }
            }
            let masked_text = match repeatable {
                Repeatable::Everything => described(directory, &name, &content),
                Repeatable::Words | Repeatable::Shape => String::new(),
            };
            files.insert(name, masked_text);
        }
        // A process that was killed by a signal has no code.
        let code = output.status.code().unwrap_or(-1);
        Outcome { code, out: text(&output.stdout), err: text(&output.stderr), files, record }
    }

    /// Whether the command printed this.
    pub(crate) fn says(&self, text: &str) -> bool {
        self.record.out.contains(text) || self.record.err.contains(text)
    }

    /// Whether a flag on the command line has no effect together with the others.
    pub(crate) fn is_refused(&self) -> bool {
        let first = self.record.err.lines().next().unwrap_or_default();
        self.code == 2 && first.starts_with("error: -") && first.contains(" has no effect ")
    }

    /// A number of the record, by a path such as `counts.retries`.
    pub(crate) fn number(&self, path: &str) -> Option<f64> {
        path.split('.').try_fold(&self.record.run, |at, name| at.get(name))?.as_f64()
    }

    /// Whether the command was refused because of a flag, with a remedy.
    pub(crate) fn refuses(&self, flag: &str) -> bool {
        let err = &self.record.err;
        let mut lines = err.lines();
        let names = |line: &str| {
            let is_end = |end: &str| !end.starts_with(|c: char| c.is_alphanumeric() || c == '-');
            line.match_indices(flag).any(|(at, _)| is_end(&line[at + flag.len()..]))
        };
        let is_named = lines.any(|line| line.starts_with("error: ") && names(line));
        let is_alone = err.contains("error: the following required arguments were not provided");
        self.code == 2 && (is_named && err.contains("\n  hint: ") || is_alone)
    }
}

/// Whether anything is printed, whether it is JSON, and whether it has colours. Of the phases of a hunt,
/// the first one is always the same.
fn shape(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let phase = text.lines().find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let phase = line.get("phases")?.get(0)?.clone();
        Some(
            ["workload", "sessions", "keys", "think_us", "value_size", "seed"]
                .map(|field| phase[field].clone()),
        )
    });
    let is = (
        text.is_empty(),
        first.starts_with('{'),
        text.contains('\x1b'),
        first.starts_with('<'),
        first.starts_with("::"),
    );
    format!("{is:?} {phase:?}")
}

/// The requested settings in the record of a run.
fn asked(record: &Value) -> String {
    let fields = ["urls", "isolation", "seed", "asked", "workload"];
    format!("{:?} {}", fields.map(|field| record[field].to_string()), record["whitebox"].is_null())
}

/// All files below a directory, by their paths.
pub(crate) fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}

/// Comparable content of a file.
fn described(directory: &Path, name: &str, content: &[u8]) -> String {
    let end = name.rsplit('.').next().unwrap_or_default();
    let is_of_run = name.contains('/');
    match end {
        "iso" if is_of_run => listing(directory, name),
        // The tables of a run are cleared; the pages that held them stay.
        "db" => format!("{} {}", rows(&directory.join(name)), content.len() >> 18),
        // They repeat what the history and the verdict say, with times.
        "html" | "proof" | "md" if is_of_run => String::new(),
        "db-wal" | "db-shm" => String::new(),
        _ => masked(&String::from_utf8_lossy(content)),
    }
}

/// The operations of a history, without times.
fn listing(directory: &Path, name: &str) -> String {
    let mut convert = Command::new(env!("CARGO_BIN_EXE_isolario"));
    convert.args(["convert", "--to", "jsonl", name, "-"]).current_dir(directory);
    let output = convert.output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| serde_json::from_str::<Value>(line).ok();
    let lines = lines.lines().filter_map(line);
    lines.map(|line| format!("{} {}\n", line["session"], line["ops"])).collect()
}

/// The tables of a database, and their rows.
fn rows(path: &Path) -> String {
    let database = rusqlite::Connection::open(path).unwrap();
    let list = |query: &str| {
        let mut query = database.prepare(query).ok()?;
        let rows = query.query_map([], |row| row.get::<_, String>(0)).ok()?;
        Some(rows.flatten().collect::<Vec<_>>())
    };
    let tables = list("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    let count = |table: &String| {
        let counted = list(&format!("SELECT CAST(COUNT(*) AS TEXT) FROM \"{table}\""));
        format!("{table} {counted:?}\n")
    };
    tables.unwrap_or_default().iter().map(count).collect()
}

/// Keys of JSON with times, sizes in memory, or copies of flags as values.
const MASKED: [&str; 17] = [
    "began_unix_s",
    "check_ms",
    "clock",
    "date",
    "digest",
    "finish",
    "isolario",
    "latency",
    "peak_rss_bytes",
    "provenance",
    "replay",
    "run_ms",
    "seconds",
    "simplified_in",
    "start",
    "timing",
    "workload",
];

/// Text without times and without commands that repeat a run. JSON is masked by its keys.
fn masked(text: &str) -> String {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return json(value).to_string();
    }
    let line = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(value) => json(value).to_string(),
        Err(_) if line.contains("isolario run ") => "COMMAND".to_owned(),
        Err(_) => without_times(line),
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

fn json(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| match MASKED.contains(&&name[..]) {
                true => (name, Value::Null),
                false => (name, json(value)),
            };
            Value::Object(fields.into_iter().map(field).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(json).collect()),
        Value::String(text) => Value::String(without_times(&text)),
        other => other,
    }
}

/// Units of what is measured.
const UNITS: [&str; 8] = ["ms", "s", "us", "µs", "ns", "MiB", "per second", "comparisons"];

/// Those of time.
const TIMES: [&str; 5] = ["ms", "s", "us", "µs", "ns"];

/// A line in which numbers with a unit of time or memory, and dates, are masked.
fn without_times(line: &str) -> String {
    let mut masked_text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        let is_inside = |c: char| c.is_ascii_digit() || matches!(c, ',' | '.' | ':' | '-');
        let number = from.find(|c: char| !is_inside(c)).unwrap_or(from.len());
        let number = from[..number].trim_end_matches([',', '.', ':', '-']).len();
        let after = &from[number..];
        let follows = |unit: &str| {
            let after = after.strip_prefix(' ').unwrap_or(after).strip_prefix(unit);
            after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric()))
        };
        let is_date = from[..number].matches(['-', ':']).count() >= 2;
        let is_measured = UNITS.iter().any(|unit| follows(unit)) || is_date;
        masked_text += before;
        masked_text += if is_measured { "#" } else { &from[..number] };
        // The unit depends on the time.
        let unit = TIMES.iter().find(|unit| is_measured && follows(unit));
        rest = match unit {
            Some(unit) => after.trim_start_matches(' ').strip_prefix(unit).unwrap_or(after),
            None => after,
        };
    }
    masked_text += rest;
    // The times of transactions in text: `T1 [0, 1]:`.
    let mut parts = masked_text.split(" [");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((times, rest)) if times.contains(", ") && is_of_numbers(times) => {
                plain += rest;
            }
            _ => {
                plain += " [";
                plain += part;
            }
        }
    }
    plain
}

fn is_of_numbers(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | ' ' | '.' | '-' | '#'))
}

/// Text with every run of digits replaced.
fn without_numbers(text: &str) -> String {
    let mut masked_text = String::new();
    for c in text.chars() {
        let is_number =
            c.is_ascii_digit() || (matches!(c, ',' | '.') && masked_text.ends_with('#'));
        match is_number {
            true if masked_text.ends_with('#') => {}
            true => masked_text.push('#'),
            false => masked_text.push(c),
        }
    }
    masked_text
}
