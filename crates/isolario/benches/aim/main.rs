//! How soon an anomaly is found by a workload that aims at it, and by one that goes by chance.
//!
//! `scripts/bench aim [--seeds N]`. The servers are started here. Without `--bench`, which cargo adds, only
//! the simulated store is asked, which has the anomaly and needs no server.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::time::Duration;

use isolario::Level;
use isolario::model::{AnomalyKind, History, Outcome, Verdict};
use isolario::report::involved;
use isolario::run::{Handle, RunOutcome, Settings, Shrinking, run};
use isolario::workload::{Aim, DefaultRun, Kind};
use isolario_bench::{Align, Arguments, Failure, Table, judge, scratch};
use isolario_servers::{Durability, Kind as Server, Servers};

/// How many times sooner it is to be found.
const TARGET: f64 = 5.0;

/// How many transactions are checked at a time. In short histories, the first counterexample is not one of
/// many in a knot of them.
const BATCH: u64 = 500;

/// After so many, it is not going to be found.
const MOST_BATCHES: u64 = 200;

/// A skew may take more than two transactions.
const SKEW: &[AnomalyKind] = &[AnomalyKind::WriteSkew, AnomalyKind::ItemAntiDependencyCycle];
const LOSS: &[AnomalyKind] = &[AnomalyKind::LostUpdate];

/// A database at repeatable read, an anomaly that can happen there, what that is called, and a level that
/// forbids it.
const CASES: [(Server, Aim, &[AnomalyKind], Level); 3] = [
    (Server::Postgres, Aim::WriteSkew, SKEW, Level::Serializable),
    (Server::MariaDb, Aim::WriteSkew, SKEW, Level::Serializable),
    (Server::MariaDb, Aim::LostUpdate, LOSS, Level::SnapshotIsolation),
];

/// By chance, on so many keys: few, as a run has without `--keys`, or as many as are usual elsewhere.
const BY_CHANCE: [u32; 2] = [10, 100];

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    let in_earnest = arguments.in_earnest();
    let seeds = arguments.value("--seeds")?.unwrap_or(if in_earnest { 9 } else { 1 });
    let mut table = Table::new(&[
        ("database", Align::Left),
        ("anomaly", Align::Left),
        ("workload", Align::Left),
        ("ms", Align::Right),
        ("transactions", Align::Right),
        ("aimed is sooner by", Align::Right),
        ("target", Align::Left),
    ]);
    for (server, aim, kinds, level) in CASES {
        let servers = match in_earnest {
            true => Some(Servers::start(server, Durability::Fast)?),
            false => None,
        };
        let url = servers.as_ref().map_or("sim:rc", |servers| servers.url());
        let search = Search { url, kinds, level, is_live: in_earnest };
        let aimed = search.median(Aimed::At(aim), seeds)?;
        let name = url.split(':').next().unwrap_or_default().to_owned();
        let Effort { ms, txns } = aimed;
        table.row([
            name.clone(),
            aim.to_string(),
            format!("--aim {aim}"),
            format!("{ms:.1}"),
            txns.to_string(),
            String::new(),
            String::new(),
        ]);
        for keys in BY_CHANCE {
            let Effort { ms, txns } = search.median(Aimed::Nowhere { keys }, seeds)?;
            let factor = ms / aimed.ms;
            let fewer = txns as f64 / aimed.txns.max(1) as f64;
            table.row([
                name.clone(),
                aim.to_string(),
                format!("by chance, {keys} keys"),
                format!("{ms:.1}"),
                txns.to_string(),
                format!("{factor:.1}\u{d7}, {fewer:.1}\u{d7} in transactions"),
                match in_earnest {
                    true => format!("{TARGET}\u{d7} {}", judge(factor >= TARGET)),
                    false => String::new(),
                },
            ]);
        }
    }
    println!("Repeatable read, 8 sessions: from the first transaction to the end of the first");
    println!("counterexample, and how many had committed by then; medians of {seeds} seeds");
    println!();
    println!("{table}");
    Ok(())
}

/// What the clients ask for.
#[derive(Clone, Copy)]
enum Aimed {
    At(Aim),
    Nowhere { keys: u32 },
}

/// What it took to find an anomaly.
#[derive(Clone, Copy, Default)]
struct Effort {
    ms: f64,
    txns: u64,
}

struct Search<'a> {
    url: &'a str,
    kinds: &'static [AnomalyKind],
    level: Level,
    is_live: bool,
}

impl Search<'_> {
    /// The medians over seeds.
    fn median(&self, aimed: Aimed, seeds: u64) -> Result<Effort, Failure> {
        let efforts = (0..seeds).map(|seed| self.effort(aimed, 1 + seed * MOST_BATCHES));
        let efforts = efforts.collect::<Result<Vec<Effort>, Failure>>()?;
        let mut times: Vec<f64> = efforts.iter().map(|effort| effort.ms).collect();
        let mut txns: Vec<u64> = efforts.iter().map(|effort| effort.txns).collect();
        times.sort_by(f64::total_cmp);
        txns.sort_unstable();
        Ok(Effort { ms: times[times.len() / 2], txns: txns[txns.len() / 2] })
    }

    fn effort(&self, aimed: Aimed, seed: u64) -> Result<Effort, Failure> {
        let mut spent = Effort::default();
        for batch in 0..MOST_BATCHES {
            let outcome = self.run(aimed, seed + batch)?;
            let found = self.found(&outcome);
            let last = found.unwrap_or(Effort {
                ms: outcome.record.run_ms,
                txns: outcome.record.counts.committed,
            });
            spent = Effort { ms: spent.ms + last.ms, txns: spent.txns + last.txns };
            if found.is_some() {
                break;
            }
        }
        Ok(spent)
    }

    fn run(&self, aimed: Aimed, seed: u64) -> Result<RunOutcome, Failure> {
        let directory = scratch()?;
        let mut workload = DefaultRun::of(Kind::Mini).workload;
        let settings = Settings::new(Kind::Mini).with_url(self.url)?;
        match aimed {
            Aimed::At(aim) => {
                (workload.aim, workload.keys) = (Some(aim), aim.keys(settings.sessions));
            }
            Aimed::Nowhere { keys } => workload.keys = keys,
        }
        let mut settings = settings
            .with_workload(workload)
            .with_txns(BATCH)
            .with_seed(seed)
            .with_levels([self.level])
            .with_shrinking(Shrinking::Never)
            .with_out(directory.path().join("run"));
        // The machine may be busy.
        settings.statement_timeout = Duration::from_secs(30);
        if self.is_live {
            settings = settings.with_isolation("repeatable-read");
        }
        Ok(run(&settings, &Handle::new(), &mut ())?)
    }

    /// What had been spent when the first anomaly of the kind was complete.
    fn found(&self, outcome: &RunOutcome) -> Option<Effort> {
        let history: &History = &outcome.history;
        let begun = history.txns().filter_map(|txn| history.start(txn)).min()?;
        let complete = |anomaly| {
            let txns = involved(history, anomaly).into_iter();
            txns.filter_map(|involved| history.finish(involved.txn)).max()
        };
        let results = outcome.examination.results.iter();
        let violated = results.filter_map(|result| match &result.verdict {
            Verdict::Violated(findings) => Some(&findings.anomalies),
            _ => None,
        });
        let own = violated.flatten().filter(|anomaly| self.kinds.contains(&anomaly.kind));
        let first = own.filter_map(|anomaly| complete(anomaly)).min()?;
        let committed = history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed);
        let txns = committed.filter(|txn| history.finish(*txn) <= Some(first)).count() as u64;
        Some(Effort { ms: first.abs_diff(begun) as f64 / 1e6, txns })
    }
}
