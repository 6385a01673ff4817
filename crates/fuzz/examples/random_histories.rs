//! Writes random histories of every kind that the oracle makes to a directory, for `scripts/compare`.
//!
//! ```sh
//! cargo run --profile heavy -p isolario-fuzz --example random_histories -- DIRECTORY COUNT
//! ```
//!
//! The same arguments give the same files: JSON lines, with an order of versions, a certificate or a promised
//! order in a file of its own where the kind has one. `cases` lists a history per line: its kind, its file, and
//! the options with which to check it, separated by tabs.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use isolario_formats::find;
use isolario_fuzz::files::{Files, write};
use isolario_model::{
    Batch, History, Meta, OpInput, OpNotes, Outcome, PromisedOrder, SinkError, StatedOrder,
    StatedSet, TxnEnd, TxnId, TxnSink, TxnStart, ValueRef, VersionSet,
};
use isolario_oracle::Draft;
use isolario_oracle::random::Case;
use isolario_oracle::random::certificates::{CertificateCase, certificate_case};
use isolario_oracle::random::postgres::postgres_case;
use isolario_oracle::random::tables::{black_box_case, incarnations_case, table_case};

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Sunk = std::result::Result<(), SinkError>;

/// A history, and what is known of it from elsewhere.
struct Written {
    history: History,
    statement: Statement,
}

enum Statement {
    Nothing,
    /// Options alone.
    Options(&'static [&'static str]),
    Versions(Vec<StatedOrder>, Vec<StatedSet>),
    Promised(PromisedOrder),
}

/// A kind of history, by the seed.
type Kind = (&'static str, fn(u64) -> Result<Written>);

const KINDS: [Kind; 18] = [
    ("registers", |seed| plain(&Case { seed }.draft())),
    ("read-modify-write", |seed| plain(&Case { seed }.read_modify_write_draft())),
    ("duplicates", |seed| plain(&Case { seed }.ambiguous_draft())),
    ("conditional", |seed| plain(&Case { seed }.conditional_draft())),
    ("lists", |seed| plain(&Case { seed }.list_draft())),
    ("mixed", |seed| plain(&Case { seed }.mixed_draft())),
    ("intermediate", |seed| plain(&Case { seed }.intermediate_draft())),
    ("single", |seed| plain(&Case { seed }.single_draft())),
    ("clock-ends", |seed| plain(&one_of_three(seed).at_both_ends())),
    ("assumed", |seed| {
        let assumed: [&[&str]; 3] = [
            &["--assume", "sequential-keys"],
            &["--assume", "linearizable-keys"],
            &["--assume", "sequential-keys,linearizable-keys"],
        ];
        with(&one_of_three(seed), |_| Ok(Statement::Options(assumed[(seed / 3 % 3) as usize])))
    }),
    ("stated-registers", |seed| stated(seed, &Case { seed }.draft())),
    ("stated-lists", |seed| stated(seed, &Case { seed }.list_draft())),
    ("stated-mixed", |seed| stated(seed, &Case { seed }.mixed_draft())),
    ("promised", |seed| {
        let case = table_case(seed)?;
        Ok(Written { history: case.history, statement: Statement::Promised(case.order) })
    }),
    ("certificates", |seed| Ok(certified(certificate_case(seed)?))),
    ("postgres-certificates", |seed| Ok(certified(postgres_case(seed)?.stated))),
    ("predicates", |seed| {
        let history = match seed % 3 {
            0 => postgres_case(seed)?.stated.history,
            _ => black_box_case(seed)?,
        };
        Ok(Written { history, statement: Statement::Nothing })
    }),
    ("incarnations", |seed| {
        Ok(Written { history: incarnations_case(seed)?, statement: Statement::Nothing })
    }),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, count] = &arguments[..] else {
        return Err("usage: random_histories DIRECTORY COUNT".into());
    };
    let (directory, count) = (Path::new(directory), count.parse::<u64>()?);
    fs::create_dir_all(directory)?;
    let mut cases = String::new();
    for number in 0..count {
        let (name, case) = KINDS[(number % KINDS.len() as u64) as usize];
        let seed = number / KINDS.len() as u64;
        let written = case(seed).map_err(|error| format!("{name}, seed {seed}: {error}"))?;
        let options = save(directory, &format!("{name}-{seed}"), seed, &written)?;
        writeln!(cases, "{name}\t{name}-{seed}.jsonl\t{}", options.join(" "))?;
    }
    Ok(fs::write(directory.join("cases"), cases)?)
}

fn one_of_three(seed: u64) -> Draft {
    let case = Case { seed };
    match seed % 3 {
        0 => case.draft(),
        1 => case.read_modify_write_draft(),
        _ => case.list_draft(),
    }
}

fn plain(draft: &Draft) -> Result<Written> {
    with(draft, |_| Ok(Statement::Nothing))
}

/// Some order of the writers of each key: the order of the transactions, or its reverse.
fn stated(seed: u64, draft: &Draft) -> Result<Written> {
    with(draft, |history| {
        let committed = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
        let mut txns: Vec<TxnId> = history.txns().filter(committed).collect();
        if seed % 4 == 3 {
            txns.reverse();
        }
        let orders = PromisedOrder::of_txns(history, &txns).version_orders(history);
        let orders = orders.map_err(|pair| format!("{pair:?} commit at the same time"))?;
        Ok(Statement::Versions(orders, Vec::new()))
    })
}

/// A history of transactions with names, and a statement about it.
fn with(draft: &Draft, state: impl FnOnce(&History) -> Result<Statement>) -> Result<Written> {
    let mut named = Named { batch: Batch::new(), count: 0 };
    draft.history()?.replay(&mut named)?;
    let history = named.batch.build()?;
    let statement = state(&history)?;
    Ok(Written { history, statement })
}

fn certified(case: CertificateCase) -> Written {
    Written { history: case.history, statement: Statement::Versions(case.orders, case.sets) }
}

/// Writes a history, and returns the options with which to check it.
fn save(directory: &Path, name: &str, seed: u64, written: &Written) -> Result<Vec<String>> {
    let history = &written.history;
    let format = find("jsonl").ok_or("there is no format jsonl")?;
    let Files::One(bytes) = write(format, history)? else {
        return Err("jsonl is one file".into());
    };
    fs::write(directory.join(format!("{name}.jsonl")), bytes)?;
    let mut options = Vec::new();
    if seed.is_multiple_of(4) {
        options.push("--no-session-order".to_owned());
    }
    match &written.statement {
        Statement::Nothing => options.extend(skew(seed)),
        Statement::Options(more) => options.extend(more.iter().map(|it| (*it).to_owned())),
        Statement::Versions(orders, sets) => {
            let path = format!("{name}.versions");
            fs::write(directory.join(&path), version_file(history, orders, sets)?)?;
            options.extend(["--version-order".to_owned(), path]);
            if seed % 8 != 7 {
                options.push("--trust-version-order".to_owned());
            }
            options.extend(skew(seed));
        }
        Statement::Promised(order) if order.is_by_stamps() => {
            options.extend(["--serialization-order".to_owned(), "timestamps".to_owned()]);
        }
        Statement::Promised(order) => {
            let path = format!("{name}.order");
            fs::write(directory.join(&path), order_file(history, order))?;
            options.extend(["--serialization-order".to_owned(), path]);
        }
    }
    Ok(options)
}

fn skew(seed: u64) -> Option<String> {
    let skew = [0, 0, 0, 1, 4][seed as usize % 5];
    (skew > 0).then(|| format!("--clock-skew={skew}ns"))
}

fn order_file(history: &History, order: &PromisedOrder) -> String {
    let may_count =
        |txn: &TxnId| order.points(*txn).is_some() && history.outcome(*txn) != Outcome::Aborted;
    let mut txns: Vec<TxnId> = history.txns().filter(may_count).collect();
    txns.sort_by_key(|txn| order.points(*txn).map(|at| at.commit));
    format!("{{\"order\":[{}]}}\n", names(history, &txns))
}

fn version_file(history: &History, orders: &[StatedOrder], sets: &[StatedSet]) -> Result<String> {
    let mut file = String::new();
    for order in orders {
        let key = json(history.key_name(order.key));
        writeln!(file, r#"{{"key":{key},"writers":[{}]}}"#, names(history, &order.writers))?;
    }
    for set in sets {
        let txn = history.op_txn(set.op);
        let op = history.txn_ops(txn).take_while(|op| *op != set.op).count();
        let txn = names(history, &[txn]);
        match &set.versions {
            VersionSet::Snapshot(at) => writeln!(
                file,
                r#"{{"txn":{txn},"op":{op},"snapshot":[{},{}]}}"#,
                at.physical, at.logical
            )?,
            VersionSet::Writers(versions) => {
                let version = |(key, writer): &(_, TxnId)| {
                    format!("[{},{}]", json(history.key_name(*key)), names(history, &[*writer]))
                };
                let versions: Vec<String> = versions.iter().map(version).collect();
                let versions = versions.join(",");
                writeln!(file, r#"{{"txn":{txn},"op":{op},"versions":[{versions}]}}"#)?;
            }
        }
    }
    Ok(file)
}

/// The names of transactions; the initial state's is `null`.
fn names(history: &History, txns: &[TxnId]) -> String {
    let name = |txn: &TxnId| match *txn {
        TxnId::INIT => "null".to_owned(),
        txn => json(history.txn_name(txn).unwrap_or(ValueRef::Nil)),
    };
    txns.iter().map(name).collect::<Vec<_>>().join(",")
}

/// A name or a key as JSON: those of random histories are numbers, plain words or rows.
fn json(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Int(number) => number.to_string(),
        ValueRef::Tuple(row) => {
            let columns = row.columns().map(|(name, value)| format!("\"{name}\":{}", json(value)));
            let columns: Vec<String> = columns.collect();
            format!(r#"{{"table":"{}","row":{{{}}}}}"#, row.table(), columns.join(","))
        }
        other => format!("\"{other}\""),
    }
}

/// Gives each transaction its number as its name.
struct Named {
    batch: Batch,
    count: i64,
}

impl TxnSink for Named {
    fn meta(&mut self, meta: &Meta) -> Sunk {
        self.batch.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Sunk {
        self.count += 1;
        self.batch.begin(&TxnStart { id: Some(self.count.into()), ..*start })
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Sunk {
        self.batch.op_with(op, notes)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Sunk {
        self.batch.end(end)
    }
}
