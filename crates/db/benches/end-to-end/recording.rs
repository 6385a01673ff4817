//! What recording costs the clients: the same run, with a history and without.

use std::path::Path;
use std::time::Duration;

use isolario_bench::{Align, Effort, Failure, Table, judge, median};
use isolario_servers::{Durability, Kind as Server, Servers};
use isolario_workload::Kind;

use crate::Sizes;
use crate::work::{Run, Work, without_encryption};

/// By which it is selected.
pub const NAME: &str = "recording";

/// How much of the throughput recording may cost.
const SHARE: f64 = 0.03;

/// Measures and prints the table. The two variants take turns, so that both see the same machine.
pub fn bench(sizes: &Sizes, effort: &Effort, directory: &Path) -> Result<(), Failure> {
    println!("The cost of recording: mini-transactions, 8 sessions");
    let mut table = Table::new(&[
        ("database", Align::Left),
        ("without ms", Align::Right),
        ("with ms", Align::Right),
        ("cost", Align::Right),
        ("target", Align::Left),
    ]);
    let postgres = Servers::start(Server::Postgres, Durability::Fast)?;
    for (name, url, txns) in [
        ("SQLite", "sqlite:", sizes.many),
        ("PostgreSQL", &without_encryption(&postgres), sizes.many / 5),
    ] {
        let file = directory.join("run");
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..effort.runs {
            for (recorded, times) in times.iter_mut().enumerate() {
                let run = Run {
                    url: url.to_owned(),
                    isolation: "serializable".to_owned(),
                    kind: Kind::Mini,
                    sessions: 8,
                    txns,
                    history: (recorded == 1).then(|| directory.join("history.iso")),
                };
                run.write(&file)?;
                times.push(median(&Work::Run, &file, 1, 1)?.wall);
            }
        }
        let [without, with] = times.map(middle);
        let cost = with.as_secs_f64() / without.as_secs_f64() - 1.0;
        table.row([
            name.to_owned(),
            without.as_millis().to_string(),
            with.as_millis().to_string(),
            format!("{:.1}%", cost * 100.0),
            judge(cost <= SHARE).to_owned(),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
