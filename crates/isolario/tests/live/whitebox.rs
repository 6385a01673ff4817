//! Runs with `--whitebox` where something is in the way of the log: the message names the setting, the
//! answer by what clients saw is given all the same, and nothing is left in the database.

use std::fs::OpenOptions;
use std::io::Write;

use isolario::db::{self, DbUrl, Progress, SqlConnection};
use isolario::run::{Handle, Observer, RunOutcome, Settings, Shrinking, run};
use isolario::workload::{Kind as WorkloadKind, Workload};
use isolario_servers::{Durability, Kind, Servers};
use tempfile::TempDir;

/// How many transactions commit before trouble comes, and after it.
const SOME: u64 = 80;
/// Slow enough that there are not many more, whenever somebody looks.
const PER_SECOND: u64 = 400;

/// Makes trouble in the middle of a run, and interrupts it some time later: as Ctrl-C does.
struct Trouble<'t> {
    make: Option<&'t mut dyn FnMut()>,
    next: u64,
    handle: Handle,
}

impl Observer for Trouble<'_> {
    fn driving(&mut self, progress: &Progress) {
        if progress.counts.committed < self.next {
            return;
        }
        match self.make.take() {
            Some(make) => make(),
            None => _ = self.handle.interrupt(),
        }
        self.next = progress.counts.committed + SOME;
    }
}

fn troubled(url: &str, trouble: &mut dyn FnMut()) -> RunOutcome {
    let directory = TempDir::new().unwrap();
    let kind = WorkloadKind::Predicate;
    let mut settings = Settings::new(kind)
        .with_url(url)
        .unwrap()
        .with_workload(Workload { kind, ops: 3, keys: 40, ..Workload::default() })
        .with_sessions(4)
        .with_txns(u64::MAX)
        .with_shrinking(Shrinking::Never)
        .with_whitebox(true)
        .with_out(directory.path().join("run"));
    settings.rate = Some(PER_SECOND);
    let handle = Handle::new();
    let mut trouble = Trouble { make: Some(trouble), next: SOME, handle: handle.clone() };
    let outcome = run(&settings, &handle, &mut trouble).unwrap();
    assert!(!outcome.examination.results.is_empty());
    for result in &outcome.examination.results {
        assert!(!result.verdict.is_violated(), "{}: {:?}", result.level, result.verdict);
    }
    outcome
}

/// Why there is no answer by the log.
fn failure(url: &str, trouble: &mut dyn FnMut()) -> String {
    let own = troubled(url, trouble).whitebox.unwrap();
    assert!(own.by_versions.is_empty() && own.by_order.is_empty());
    own.failure.unwrap()
}

fn certified(url: &str, trouble: &mut dyn FnMut()) {
    let outcome = troubled(url, trouble);
    let own = outcome.whitebox.unwrap();
    assert_eq!(own.failure, None);
    assert!(own.certificate.unwrap().versions > 0);
    assert!(!own.by_versions.is_empty());
}

/// A line to the database that takes statements.
fn line(url: &str) -> Box<dyn SqlConnection> {
    db::open(&DbUrl::parse(url).unwrap(), &db::Settings::default()).unwrap().connect_sql().unwrap()
}

fn say(url: &str, statements: &[&str]) {
    let mut line = line(url);
    for statement in statements {
        line.statement(statement, true).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

fn first_row(url: &str, question: &str) -> String {
    format!("{:?}", line(url).statement(question, true).unwrap().rows[0])
}

#[test]
fn postgres_says_what_is_in_the_way_of_its_log() {
    let mut servers = Servers::start(Kind::Postgres, Durability::Durable).unwrap();
    let url = servers.url().to_owned();
    let nothing_is_left = |slots: u32| {
        let left = "SELECT (SELECT count(*) FROM pg_replication_slots), \
             (SELECT count(*) FROM pg_publication), \
             (SELECT count(*) FROM pg_class WHERE relname LIKE 'isolario%')";
        assert_eq!(first_row(&url, left), format!("[Int({slots}), Int(0), Int(0)]"));
    };

    certified(&url, &mut || {});
    nothing_is_left(0);

    say(&url, &["CREATE ROLE plain LOGIN", "GRANT ALL ON SCHEMA public TO plain"]);
    let why = failure(&url.replace("postgres@", "plain@"), &mut || {});
    assert!(why.contains("ALTER ROLE … REPLICATION"), "{why}");
    nothing_is_left(0);

    // Slots of others: those that are there are left alone, and one must be free.
    let slots = "SELECT pg_create_physical_replication_slot('isolario_' || n) \
         FROM generate_series(1, current_setting('max_replication_slots')::INT) n";
    say(&url, &[slots]);
    let why = failure(&url, &mut || {});
    assert!(why.contains("raise max_replication_slots"), "{why}");
    nothing_is_left(10);
    say(&url, &["SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"]);

    say(&url, &["ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()"]);
    let why = failure(&url, &mut || {
        // Until the slot is gone: the server looks at its limit at checkpoints.
        while first_row(&url, "SELECT count(*) FROM pg_replication_slots") != "[Int(0)]" {
            let message = "SELECT pg_logical_emit_message(false, 'test', 'a new segment')";
            say(&url, &[message, "SELECT pg_switch_wal()", "CHECKPOINT"]);
        }
    });
    assert!(why.contains("max_slot_wal_keep_size"), "{why}");
    nothing_is_left(0);

    say(&url, &["ALTER SYSTEM SET wal_level = replica"]);
    let why = failure(&url, &mut || {
        servers.kill().unwrap();
        servers.restart().unwrap();
    });
    assert!(why.contains("the server was restarted"), "{why}");
    nothing_is_left(0);

    let why = failure(&url, &mut || {});
    assert!(why.contains("wal_level is replica: set wal_level = logical"), "{why}");
    nothing_is_left(0);
}

#[test]
fn mariadb_says_what_is_in_the_way_of_its_log() {
    let mut servers = Servers::start(Kind::MariaDb, Durability::Durable).unwrap();
    let url = servers.url().to_owned();
    let nothing_is_left = || {
        let left = "SELECT count(*) FROM information_schema.tables \
             WHERE table_schema = 'isolario'";
        assert_eq!(first_row(&url, left), "[Int(0)]");
    };

    // The name of a log comes first: `[Text("binlog.000001"), …]`.
    let log = |question: &str| first_row(&url, question).split(',').next().unwrap().to_owned();
    let plain = url.replace("root@", "plain@");
    say(&url, &["CREATE USER plain", "GRANT ALL ON isolario.* TO plain"]);
    for right in ["BINLOG MONITOR", "REPLICATION SLAVE"] {
        let why = failure(&plain, &mut || {});
        assert!(why.contains(&format!("GRANT {right} ON")), "{why}");
        nothing_is_left();
        say(&url, &[&format!("GRANT {right} ON *.* TO plain")]);
    }
    certified(&plain, &mut || {});
    nothing_is_left();

    let why = failure(&url, &mut || {
        let begun = log("SHOW MASTER STATUS");
        let purge = "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY";
        // A log that the storage engine may still need stays for a while.
        while log("SHOW BINARY LOGS") <= begun {
            say(&url, &["FLUSH BINARY LOGS", purge]);
        }
    });
    assert!(why.contains("was purged while the run went on: raise expire_logs_days"), "{why}");
    nothing_is_left();

    // What was committed is in the log, and the log is still there.
    certified(&url, &mut || {
        servers.kill().unwrap();
        servers.restart().unwrap();
    });
    nothing_is_left();

    let settings = servers.directory().join("my.cnf");
    writeln!(OpenOptions::new().append(true).open(settings).unwrap(), "skip-log-bin").unwrap();
    servers.kill().unwrap();
    servers.restart().unwrap();
    let why = failure(&url, &mut || {});
    assert!(why.contains("start the server with log_bin"), "{why}");
    nothing_is_left();
}
