//! How fast the weak levels are decided on what applications do: the figures of the AWDIT paper (7 to 9) and of
//! the Plume paper (8), on histories recorded from PostgreSQL, from an embedded engine, and made by the simulated store.
//!
//! `scripts/bench applications [--full] [--part NAME] [--runs N] [--charts DIR]`. The server is started here.
//! Without `--bench`, which cargo adds, it only shows on small histories, and without the server, that everything
//! works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod history;
#[path = "../common/work.rs"]
mod work;

use isolario::model::Level;
use isolario::workload::{Application, Workload};
use isolario_bench::{
    Arguments, Effort, Expected, Failure, Growth, Step, answer_if_child, scratch,
};
use isolario_servers::{Durability, Kind as Server, Servers};

use history::{Recipe, general, played, played_at};
use work::Work;

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::ReadAtomic, Level::Causal];

/// Runs per figure, unless told otherwise.
const RUNS: usize = 3;

/// Those of recorded histories.
const SESSIONS: u32 = 50;

/// How many transactions there are.
struct Sizes {
    /// In recorded histories.
    recorded: Vec<u64>,
    /// In those of the simulated store.
    simulated: Vec<u64>,
    /// Where something else grows.
    fixed: u64,
}

impl Sizes {
    fn of(arguments: &Arguments) -> Sizes {
        let powers = |powers: &[u32]| powers.iter().map(|power| 1 << power).collect();
        if !arguments.in_earnest() {
            return Sizes { recorded: vec![50, 200], simulated: vec![50, 500], fixed: 500 };
        }
        let simulated =
            if arguments.has("--full") { powers(&[16, 18, 20]) } else { powers(&[14, 16, 18]) };
        Sizes { recorded: powers(&[10, 12, 14, 15]), simulated, fixed: 100_000 }
    }
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    if let Some(answer) = answer_if_child::<Work>(&arguments)? {
        println!("{answer}");
        return Ok(());
    }
    let effort = Effort::of(&arguments, "applications", RUNS)?;
    let part: String = arguments.value("--part")?.unwrap_or_default();
    let is_wanted = |growth: &Growth<Work>| growth.name.starts_with(&part);
    let sizes = Sizes::of(&arguments);
    let directory = scratch()?;
    println!("Medians of {} processes; megabytes beyond the mapped file", effort.runs);
    println!();
    let mut all = figure_7("sqlite", "sqlite:", false, &sizes);
    all.extend(figure_7("sqlite-tables", "sqlite:", true, &sizes));
    all.extend(figure_8(&sizes));
    all.extend(figure_9(&sizes));
    for growth in all.iter().filter(|growth| is_wanted(growth)) {
        growth.bench(&effort, directory.path())?;
    }
    if arguments.in_earnest() {
        let servers = Servers::start(Server::Postgres, Durability::Fast)?;
        let mut recorded = figure_7("postgres", servers.url(), false, &sizes);
        recorded.extend(figure_7("postgres-tables", servers.url(), true, &sizes));
        for growth in recorded.iter().filter(|growth| is_wanted(growth)) {
            growth.bench(&effort, directory.path())?;
        }
    }
    println!("Charts are in {}", effort.charts.display());
    Ok(())
}

/// AWDIT, Figure 7: each application at 50 sessions, by the number of transactions, as it was recorded from a
/// database: on registers, or on SQL tables of its own.
fn figure_7(database: &str, url: &str, sql_tables: bool, sizes: &Sizes) -> Vec<Growth<Work>> {
    let growth = |application: Application| {
        let step = |&txns: &u64| Step {
            size: Some(txns as f64),
            write: Recipe::Recorded {
                url: url.to_owned(),
                workload: played_at(application, SESSIONS),
                sql_tables,
                txns,
                sessions: SESSIONS,
            }
            .writer(),
        };
        Growth {
            name: format!("figure-7-{database}-{application}"),
            title: format!("Check alone, {application} on {database}, {SESSIONS} sessions"),
            quantity: "transactions",
            jobs: LEVELS.map(Work::Check).to_vec(),
            expected: Expected::Anything,
            steps: sizes.recorded.iter().map(step).collect(),
        }
    };
    Application::ALL.map(growth).into()
}

/// AWDIT, Figure 8, and Plume, Figure 8: larger ones, with 100 sessions, from the file to the verdict.
fn figure_8(sizes: &Sizes) -> Vec<Growth<Work>> {
    let growth = |application: Application| Growth {
        name: format!("figure-8-{application}"),
        title: format!("Load and check, {application}, 100 sessions"),
        quantity: "transactions",
        jobs: LEVELS.map(Work::LoadAndCheck).to_vec(),
        expected: Expected::AtMost(1.1),
        steps: steps(&sizes.simulated, |txns| (played(application), txns, 100)),
    };
    Application::ALL.map(growth).into()
}

/// AWDIT, Figure 9: how the time to check grows with transactions, sessions, and operations per transaction.
fn figure_9(sizes: &Sizes) -> Vec<Growth<Work>> {
    let twitter = || played(Application::Twitter);
    let fixed = sizes.fixed;
    let ops = 10 * fixed;
    let growth = |name: &str, title: String, quantity, expected, steps| Growth {
        name: format!("figure-9-{name}"),
        title: format!("Check alone, {title}"),
        quantity,
        jobs: LEVELS.map(Work::Check).to_vec(),
        expected,
        steps,
    };
    vec![
        growth(
            "transactions",
            "twitter, 100 sessions".to_owned(),
            "transactions",
            Expected::AtMost(1.1),
            steps(&sizes.simulated, |txns| (twitter(), txns, 100)),
        ),
        growth(
            "sessions",
            format!("twitter, {fixed} transactions"),
            "sessions",
            Expected::AtMost(1.1),
            steps(&[20, 50, 100, 200], |sessions| (twitter(), fixed, sessions as u32)),
        ),
        growth(
            "operations",
            format!("{ops} operations, 100 sessions"),
            "operations per transaction",
            Expected::Anything,
            steps(&[5, 10, 20, 50], |per_txn| (general(per_txn as u32), ops / per_txn, 100)),
        ),
    ]
}

/// Histories of the simulated store: for each size, the workload, how many transactions and how many sessions.
fn steps(sizes: &[u64], shape: impl Fn(u64) -> (Workload, u64, u32)) -> Vec<Step> {
    let step = |&size: &u64| {
        let (workload, txns, sessions) = shape(size);
        Step {
            size: Some(size as f64),
            write: Recipe::Simulated { workload, txns, sessions }.writer(),
        }
    };
    sizes.iter().map(step).collect()
}
