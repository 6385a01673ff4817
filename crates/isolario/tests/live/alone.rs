//! Two commands on one database at the same time: the second is refused, and the first is not disturbed.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::Duration;

use isolario::db::{DbUrl, Obstacle, RunProgress};
use isolario::probe::{self, probe};
use isolario::run::{Handle, Judgement, Observer, RunError, RunOutcome, Settings, relational, run};
use isolario::workload::Kind as Workload;
use isolario_servers::{Durability, Kind, Servers};

/// Says that the first transaction has committed.
struct Begun(mpsc::Sender<()>);

impl Observer for Begun {
    fn driving(&mut self, progress: &RunProgress) {
        if progress.counts.committed > 0 {
            let _ = self.0.send(());
        }
    }
}

fn settings(url: &str, out: &std::path::Path) -> Settings {
    let mut settings = Settings::new(Workload::Mini).with_url(url).unwrap().with_out(out);
    settings.statement_timeout = Duration::from_secs(30);
    settings
}

fn is_in_use<T>(result: &Result<T, RunError>) -> bool {
    matches!(result, Err(RunError::Database { error, .. }) if error.obstacle == Some(Obstacle::InUse))
}

/// Does something while a run goes on, and returns what came of the run.
fn beside(url: &str, work: impl FnOnce()) -> RunOutcome {
    let directory = tempfile::tempdir().unwrap();
    let handle = Handle::new();
    let (sender, begun) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut first = settings(url, &directory.path().join("first"));
        first.txns = None;
        first.duration = Some(Duration::from_secs(600));
        first.rate = Some(200);
        let handle = &handle;
        let first = scope.spawn(move || run(&first, handle, &mut Begun(sender)));
        begun.recv().unwrap();
        work();
        handle.interrupt();
        first.join().unwrap().unwrap()
    })
}

/// A run, a probe and random SQL beside a run, by the URL of another node where there is one; then one after the
/// other.
fn one_at_a_time(urls: &[String], has_sql: bool) {
    let (first, last) = (urls.first().unwrap(), urls.last().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let second = || {
        let settings = settings(last, &directory.path().join("second")).with_txns(50);
        run(&settings, &Handle::new(), &mut ())
    };
    let probed = || {
        let mut settings = probe::Settings::new(vec![DbUrl::parse(last).unwrap()]);
        settings.statement_timeout = Duration::from_secs(30);
        settings.scripts.retain(|script| script.name == "lost-update");
        probe(&settings, &mut |_, _| ControlFlow::Continue(()))
    };
    let random = || {
        let mut settings = relational::Settings::new(vec![DbUrl::parse(last).unwrap()]);
        settings.txns = Some(20);
        settings.out = Some(directory.path().join("random"));
        relational::run(&settings, &Handle::new(), &mut ())
    };
    let outcome = beside(first, || {
        assert!(is_in_use(&second()), "a run beside a run on {last}");
        assert!(is_in_use(&probed()), "a probe beside a run on {last}");
        assert!(!has_sql || is_in_use(&random()), "random SQL beside a run on {last}");
    });
    assert_eq!(outcome.judgement(), Judgement::Satisfied, "{first}: {}", outcome.promise());
    assert_eq!(second().unwrap().judgement(), Judgement::Satisfied);
    probed().unwrap();
    if has_sql {
        random().unwrap();
    }
}

fn on(kind: Kind, has_sql: bool) {
    let servers = Servers::start(kind, Durability::Fast).unwrap_or_else(|error| panic!("{error}"));
    one_at_a_time(servers.urls(), has_sql);
}

#[test]
fn on_postgres() {
    on(Kind::Postgres, true);
}

#[test]
fn on_mariadb() {
    on(Kind::MariaDb, true);
}

#[test]
fn on_the_nodes_of_galera() {
    on(Kind::Galera, true);
}

#[test]
fn on_the_members_of_etcd() {
    on(Kind::Etcd3, false);
}

#[test]
fn on_redis() {
    on(Kind::Redis, false);
}

#[test]
fn on_a_file_of_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    one_at_a_time(&[format!("sqlite:{}", directory.path().join("db").display())], true);
}
