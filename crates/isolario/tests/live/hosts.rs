//! Several hosts that stress one real server: here, threads of one machine.

use isolario::check::{CheckOptions, Checker};
use isolario::formats;
use isolario::model::{HostClock, Joiner, Level};
use isolario::run::{Handle, Host, PartOutcome, Settings, run_part};
use isolario::workload::Kind as Workload;
use isolario_servers::{Durability, Kind, Servers};

const HOSTS: u32 = 2;
const SECOND: i64 = 1_000_000_000;

fn parts(url: &str, workload: Workload, place: &std::path::Path) -> Vec<PartOutcome> {
    std::thread::scope(|scope| {
        let start = |number: u32| {
            let settings = Settings::new(workload)
                .with_url(url)
                .unwrap()
                .with_sessions(3)
                .with_txns(300)
                .with_seed(5)
                .with_host(Host::new(number, HOSTS).unwrap())
                .with_out(place.join(format!("{workload}-{number}")));
            scope.spawn(move || run_part(&settings, &Handle::new(), &mut ()).unwrap())
        };
        let hosts: Vec<_> = (1..=HOSTS).map(start).collect();
        hosts.into_iter().map(|host| host.join().unwrap()).collect()
    })
}

/// Joins the parts as if the clock of the last one had been wrong by so much, and its own comparison told.
fn is_strict(parts: &[PartOutcome], wrong_by: i64) -> bool {
    let mut joiner = Joiner::new();
    let mut bound = 0;
    for (number, part) in parts.iter().enumerate() {
        let loaded = formats::read(&part.directory.join("history.iso")).unwrap();
        let HostClock { offset_us, bound_us, .. } = part.record.host.unwrap().clock.unwrap();
        bound = bound.max(bound_us * 1000);
        let wrong_by = if number + 1 == parts.len() { wrong_by } else { 0 };
        let mut moved = Joiner::new();
        moved.add("part", &loaded.history, Some(wrong_by)).unwrap();
        let told = offset_us * 1000 - wrong_by;
        joiner.add(&number.to_string(), &moved.finish().unwrap(), Some(told)).unwrap();
    }
    let history = joiner.finish().unwrap();
    let options = CheckOptions::default().with_clock_skew(bound);
    Checker::new(&history, options).check(Level::StrictSerializable).verdict.is_satisfied()
}

/// On one node, both servers give strict serializability at their strongest level: two-phase locking does, and
/// so do snapshots of all that is acknowledged, of which no two anti-dependencies in a row are let through.
fn hosts_agree(kind: Kind) {
    let servers = Servers::start(kind, Durability::Fast).unwrap_or_else(|error| panic!("{error}"));
    let place = tempfile::tempdir().unwrap();
    for workload in [Workload::Mini, Workload::Append] {
        let parts = parts(&servers.urls()[0], workload, place.path());
        assert!(is_strict(&parts, 0), "{workload}");
        // A clock that is far ahead does no harm, as long as it is known to be.
        assert!(is_strict(&parts, 1000 * SECOND), "{workload}");
    }
}

#[test]
fn postgres() {
    hosts_agree(Kind::Postgres);
}

#[test]
fn mariadb() {
    hosts_agree(Kind::MariaDb);
}
