//! Runs with `--whitebox` where something is in the way of the log: the message names the setting, the
//! answer by what clients saw is given all the same, and nothing is left in the database.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Arc;

use isolario::Level;
use isolario::db::{self, DbUrl, RunProgress, SqlConnection};
use isolario::model::{Anomaly, AnomalyKind, Edge, History, Op, Outcome, Reason, TxnId, Verdict};
use isolario::report::{Names, sentences};
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
    fn driving(&mut self, progress: &RunProgress) {
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

fn checked(url: &str, isolation: &str, mix: &str, seed: u64, levels: &[Level]) -> RunOutcome {
    let (kind, mix) = (WorkloadKind::Predicate, mix.parse().unwrap());
    let workload = Workload { kind, ops: 4, keys: 12, mix, ..Workload::default() };
    checked_with(url, isolation, workload, seed, levels)
}

fn checked_with(
    url: &str,
    isolation: &str,
    workload: Workload,
    seed: u64,
    levels: &[Level],
) -> RunOutcome {
    let directory = TempDir::new().unwrap();
    let settings = Settings::new(workload.kind)
        .with_url(url)
        .unwrap()
        .with_isolation(isolation)
        .with_workload(workload)
        .with_sessions(6)
        .with_txns(150 * seed)
        .with_seed(seed)
        .with_levels(levels.iter().copied())
        .with_shrinking(Shrinking::Never)
        .with_whitebox(true)
        .with_out(directory.path().join("run"));
    let outcome = run(&settings, &Handle::new(), &mut ()).unwrap();
    assert_eq!(outcome.whitebox.as_ref().unwrap().failure, None);
    outcome
}

/// The kinds of the anomalies of a level, by the order of versions.
fn found(outcome: &RunOutcome, level: Level) -> Vec<AnomalyKind> {
    let own = outcome.record.whitebox.as_ref().unwrap();
    let answers = own.by_versions.iter().filter(|answer| answer.level == level);
    answers.flat_map(|answer| answer.anomalies.iter().copied()).collect()
}

/// Runs get longer until one shows what has to happen some time.
fn happens(mut shows: impl FnMut(u64) -> bool) {
    assert!((1..=6).any(&mut shows), "it has never happened");
}

/// Statements of their own snapshots see each other's rows come and go; updates and deletes have no
/// snapshot, and no answer is claimed for what they met.
#[test]
fn read_committed_of_postgres_is_neither_repeatable_nor_serializable() {
    let servers = Servers::start(Kind::Postgres, Durability::Fast).unwrap();
    let mix = "insert:20,update:20,read:20,range-read:20,range-update:10,delete:5,aggregate:5";
    let levels = [Level::AdyaReadCommitted, Level::RepeatableRead, Level::Serializable];
    happens(|seed| {
        let outcome = checked(servers.url(), "read-committed", mix, seed, &levels);
        let own = outcome.whitebox.as_ref().unwrap();
        let certificate = own.certificate.as_ref().unwrap();
        assert!(0 < certificate.sets && certificate.sets < certificate.predicates);
        assert!(found(&outcome, Level::AdyaReadCommitted).is_empty());
        levels[1..].iter().all(|level| !found(&outcome, *level).is_empty())
    });
}

/// Two or more transactions in a cycle, of which one inserts a row that the predicate of another would
/// have found: nobody read what it wrote, and only the predicate tells. The explanation names it, and the
/// row that came.
#[test]
fn repeatable_read_of_postgres_lets_phantoms_skew_writes() {
    let servers = Servers::start(Kind::Postgres, Durability::Fast).unwrap();
    let (kind, mix) = (WorkloadKind::Predicate, "insert:50,range-read:50".parse().unwrap());
    // So many keys that rows are rarely inserted twice, and so many operations that ranges are hit.
    let workload = Workload { kind, ops: 8, keys: 100_000, mix, ..Workload::default() };
    happens(|seed| {
        let levels = [Level::Serializable];
        let outcome =
            checked_with(servers.url(), "repeatable-read", workload.clone(), seed, &levels);
        let answers = &outcome.whitebox.as_ref().unwrap().by_versions;
        let Verdict::Violated(violation) = &answers[0].verdict else { return false };
        let phantom = |anomaly: &Arc<Anomaly>| {
            let edges = anomaly.evidence.edges().iter();
            let mut words = edges.filter_map(|edge| phantom_in_words(&outcome.history, edge));
            words.next().zip(anomaly.elle_name())
        };
        let Some((words, name)) = violation.anomalies.iter().find_map(phantom) else {
            return false;
        };
        assert!(name.starts_with("G2") && !name.starts_with("G2-item"), "{name}: {words}");
        true
    });
}

/// What is said of a predicate that missed a row which nobody but the later transaction ever wrote: it
/// was not there before.
fn phantom_in_words(history: &History, edge: &Edge) -> Option<String> {
    let Reason::PredicateAntiDependency { read, key, .. } = edge.reason else { return None };
    let is_write = |op| matches!(history.op(op), Op::Write { key: of, .. } if of == key);
    let writes = |txn: &TxnId| history.txn_ops(*txn).any(is_write);
    if history.txns().filter(writes).collect::<Vec<_>>() != [edge.to] {
        return None;
    }
    let Op::PredicateRead { predicate, .. } = history.op(read) else { panic!("{edge:?}") };
    let text = predicate.to_string();
    let (_, condition) =
        text.to_ascii_lowercase().find("where ").map(|at| text.split_at(at + 6))?;
    let names = Names::new(history);
    let words = sentences::explain(names, edge).sentence;
    assert!(words.contains(condition) && words.contains(&names.key(key)), "{words}");
    Some(words)
}

/// What a snapshot's list of transactions stands for is what a second transaction sees in it.
#[test]
fn shadows_see_what_the_snapshots_of_postgres_stand_for() {
    let servers = Servers::start(Kind::Postgres, Durability::Fast).unwrap();
    let shadowed = |isolation: &str| {
        let directory = TempDir::new().unwrap();
        let kind = WorkloadKind::Predicate;
        let settings = Settings::new(kind)
            .with_url(servers.url())
            .unwrap()
            .with_isolation(isolation)
            .with_workload(Workload { kind, ops: 4, keys: 40, ..Workload::default() })
            .with_sessions(6)
            .with_txns(300)
            .with_shrinking(Shrinking::Never)
            .with_whitebox(true)
            .with_shadow(true)
            .with_out(directory.path().join("run"));
        run(&settings, &Handle::new(), &mut ()).unwrap().whitebox.unwrap()
    };
    for isolation in ["repeatable-read", "serializable"] {
        let own = shadowed(isolation);
        assert_eq!(own.failure, None, "{isolation}");
        let certificate = own.certificate.unwrap();
        assert_eq!(certificate.shadows, 300, "{isolation}");
        assert_eq!(certificate.sets, certificate.predicates, "{isolation}");
    }
    let why = shadowed("read-committed").failure.unwrap();
    assert!(why.contains("PostgreSQL at repeatable read or serializable"), "{why}");
}

/// Predicates see a snapshot, and updates the newest rows: so what was read by predicate is overwritten by
/// the reader itself, who has never seen it.
#[test]
fn repeatable_read_of_mariadb_violates_its_snapshots_by_current_reads() {
    let servers = Servers::start(Kind::MariaDb, Durability::Fast).unwrap();
    let mix = "insert:10,update:40,read:20,range-read:20,range-update:10";
    happens(|seed| {
        let levels = [Level::SnapshotIsolation];
        let outcome = checked(servers.url(), "repeatable-read", mix, seed, &levels);
        !found(&outcome, Level::SnapshotIsolation).is_empty()
    });
}

/// The logs of all nodes are the same, and tell the order of versions; unless a transaction that was told
/// to have committed is in none of them, as happens in MariaDB 10.11 to one that prepares a statement while
/// it is aborted for the sake of another node's.
#[test]
fn the_nodes_of_galera_agree_about_their_log() {
    let servers = Servers::start(Kind::Galera, Durability::Fast).unwrap();
    let kind = WorkloadKind::Predicate;
    happens(|seed| {
        let directory = TempDir::new().unwrap();
        let mut settings = Settings::new(kind)
            .with_workload(Workload { kind, ops: 3, keys: 400, ..Workload::default() })
            .with_sessions(6)
            .with_txns(150)
            .with_seed(seed)
            .with_shrinking(Shrinking::Never)
            .with_whitebox(true)
            .with_out(directory.path().join("run"));
        for url in servers.urls() {
            settings = settings.with_url(url).unwrap();
        }
        let own = run(&settings, &Handle::new(), &mut ()).unwrap().whitebox.unwrap();
        assert_eq!(own.disagreement, None);
        if let Some(failure) = &own.failure {
            assert!(failure.contains("the log lacks"), "{failure}");
        }
        own.certificate.is_some_and(|certificate| certificate.versions > 0)
    });
}

/// Every transaction has its place in the order that Redis and etcd promise, reads and single operations
/// included: nothing has to be searched for.
#[test]
fn redis_and_etcd_tell_the_place_of_everything() {
    for kind in [Kind::Redis, Kind::Etcd3] {
        let servers = Servers::start(kind, Durability::Fast).unwrap();
        for workload in [WorkloadKind::Mini, WorkloadKind::Append, WorkloadKind::Lwt] {
            let directory = TempDir::new().unwrap();
            let mut settings = Settings::new(workload)
                .with_workload(Workload { kind: workload, keys: 10, ..Workload::default() })
                .with_sessions(6)
                .with_txns(150)
                .with_whitebox(true)
                .with_out(directory.path().join("run"));
            for url in servers.urls() {
                settings = settings.with_url(url).unwrap();
            }
            let outcome = run(&settings, &Handle::new(), &mut ()).unwrap();
            let history = &outcome.history;
            let committed =
                history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed);
            let without = committed.filter(|txn| history.db_commit(*txn).is_none()).count();
            assert_eq!(without, 0, "{kind} {workload}");
            let own = outcome.whitebox.unwrap();
            let [answer] = &own.by_order[..] else { panic!("{:?}", own.by_order) };
            assert_eq!(answer.level, Level::StrictSerializable);
            assert!(answer.verdict.is_satisfied(), "{kind} {workload}: {:?}", answer.verdict);
        }
    }
}

/// A line to the database that takes statements.
fn line(url: &str) -> Box<dyn SqlConnection> {
    db::open(&DbUrl::parse(url).unwrap(), &db::Settings::default())
        .unwrap()
        .sql()
        .unwrap()
        .connect_sql()
        .unwrap()
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
    assert!(why.contains("was purged during the run: raise expire_logs_days"), "{why}");
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
