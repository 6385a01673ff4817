//! How soon an anomaly is found by a workload that aims at it, and by one that goes by chance.
//!
//! `scripts/bench aim [--seeds N]`. The servers are started here. Without `--bench`, which cargo adds, only
//! the simulated store is asked, which has the anomaly and needs no server.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::time::Duration;

use isolario::Level;
use isolario::model::{AnomalyKind, History, Verdict};
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

/// A database at repeatable read, an anomaly that can happen there, a level that forbids it, and whether
/// there is a target. MariaDB loses updates as soon as two transactions meet: that cannot be much sooner.
const CASES: [(Server, Aim, &[AnomalyKind], Level, bool); 3] = [
    (Server::Postgres, Aim::WriteSkew, SKEW, Level::Serializable, true),
    (Server::MariaDb, Aim::WriteSkew, SKEW, Level::Serializable, true),
    (Server::MariaDb, Aim::LostUpdate, LOSS, Level::SnapshotIsolation, false),
];

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    let in_earnest = arguments.in_earnest();
    let seeds = arguments.value("--seeds")?.unwrap_or(if in_earnest { 9 } else { 1 });
    let mut table = Table::new(&[
        ("database", Align::Left),
        ("anomaly", Align::Left),
        ("by chance, ms", Align::Right),
        ("aimed, ms", Align::Right),
        ("sooner by", Align::Right),
        ("target", Align::Left),
    ]);
    for (server, aim, kinds, level, has_target) in CASES {
        let servers = match in_earnest {
            true => Some(Servers::start(server, Durability::Fast)?),
            false => None,
        };
        let url = servers.as_ref().map_or("sim:rc", |servers| servers.url());
        let search = Search { url, kinds, level, is_live: in_earnest };
        let chance = search.median(None, seeds)?;
        let aimed = search.median(Some(aim), seeds)?;
        let factor = chance / aimed;
        table.row([
            url.split(':').next().unwrap_or_default().to_owned(),
            aim.to_string(),
            format!("{chance:.1}"),
            format!("{aimed:.1}"),
            format!("{factor:.0}×"),
            match in_earnest && has_target {
                true => format!("{TARGET}× {}", judge(factor >= TARGET)),
                false => String::new(),
            },
        ]);
    }
    println!("Repeatable read, 8 sessions: from the first transaction to the end of the first");
    println!("counterexample; medians of {seeds} seeds");
    println!();
    println!("{table}");
    Ok(())
}

struct Search<'a> {
    url: &'a str,
    kinds: &'static [AnomalyKind],
    level: Level,
    is_live: bool,
}

impl Search<'_> {
    /// The median over seeds of the time until the anomaly is there, in milliseconds.
    fn median(&self, aim: Option<Aim>, seeds: u64) -> Result<f64, Failure> {
        let times = (0..seeds).map(|seed| self.time(aim, 1 + seed * MOST_BATCHES));
        let mut times = times.collect::<Result<Vec<f64>, Failure>>()?;
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    fn time(&self, aim: Option<Aim>, seed: u64) -> Result<f64, Failure> {
        let mut spent = 0.0;
        for batch in 0..MOST_BATCHES {
            let outcome = self.run(aim, seed + batch)?;
            if let Some(found) = self.found(&outcome) {
                return Ok(spent + found);
            }
            spent += outcome.record.run_ms;
        }
        Ok(spent)
    }

    fn run(&self, aim: Option<Aim>, seed: u64) -> Result<RunOutcome, Failure> {
        let directory = scratch()?;
        let mut workload = DefaultRun::of(Kind::Mini).workload;
        let settings = Settings::new(Kind::Mini).with_url(self.url)?;
        if let Some(aim) = aim {
            (workload.aim, workload.keys) = (Some(aim), aim.keys(settings.sessions));
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

    /// When the first anomaly of the kind was complete, in milliseconds since the first transaction.
    fn found(&self, outcome: &RunOutcome) -> Option<f64> {
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
        Some(first.abs_diff(begun) as f64 / 1e6)
    }
}
