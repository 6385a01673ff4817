//! What databases' own logs say: it fits the history, and every operation by predicate returned what
//! its versions make of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use isolario_check::CheckOptions;
use isolario_db::certificate::{
    Certificate, CommitLog, LogMismatch, LoggedCommit, RowChange, assemble,
};
use isolario_db::{Access, Database, DbUrl, Settings, StateReport, TableResult, open};
use isolario_formats::{Source, read, version_order};
use isolario_model::{
    Batch, Expr, History, Initial, KeyId, Level, Meta, Op, OpId, OpInput, Outcome, Predicate,
    PromisedOrder, RowInput, Stamp, TupleParts, TxnEnd, TxnId, TxnSink, TxnStart, Value, ValueId,
    ValueRef, Verdict, VersionSet,
};
use isolario_run::driver::{Control, RunPlan, run};
use isolario_servers::Kind;
use isolario_workload::{
    Column, Kind as WorkloadKind, Planner, RowValues, TableOp, ValueRange, Workload,
};
use tempfile::TempDir;

use super::rows::workload;
use super::site::{SLOW, prepare_nodes, start};

const SESSIONS: u32 = 6;
const ATTEMPTS: u32 = 4;

/// A run with everything that a certificate is made of.
struct Captured {
    history: History,
    log: CommitLog,
    sightings: Vec<StateReport>,
}

fn database(url: &str, isolation: &str) -> Box<dyn Database> {
    let settings = Settings {
        isolation: Some(isolation.to_owned()),
        statement_timeout: Duration::from_millis(SLOW),
        sessions: SESSIONS,
        evidence: true,
        ..Settings::default()
    };
    open(&DbUrl::parse(url).unwrap(), &settings).unwrap()
}

fn captured(url: &str, isolation: &str, workload: &Workload, txns: u64) -> Captured {
    let databases = [database(url, isolation)];
    prepare_nodes(&databases, WorkloadKind::Predicate, workload.keys);
    let capture = databases[0].capture().unwrap();
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("history.iso");
    let planner = Planner::new(workload, SESSIONS, 7).unwrap().with_attempts(ATTEMPTS);
    let plan = RunPlan {
        databases: &databases,
        generator: &planner,
        sessions: SESSIONS,
        txns: Some(txns),
        duration: None,
        rate: None,
        think: Duration::ZERO,
        gathers: false,
        max_retries: ATTEMPTS - 1,
        patience: Duration::from_secs(180),
        history: Some(&path),
        memory: 0,
    };
    let outcome = run(&plan, &Control::new(), &mut |_| {}).unwrap();
    assert_eq!(outcome.counts.committed, txns, "{:?}", outcome.cause);
    let log = capture.stop().unwrap();
    Captured { history: read(&path).unwrap().history, log, sightings: outcome.sightings }
}

impl Captured {
    /// The certificate, and the history with what the log adds.
    fn certified(&self) -> (Certificate, History) {
        let certificate = assemble(&self.history, &self.log, &self.sightings).unwrap();
        let mut batch = Batch::new();
        certificate.replay(&self.history, &mut batch).unwrap();
        (certificate, batch.build().unwrap())
    }
}

/// What the file of version orders says.
fn statements(certificate: &Certificate, history: &History) -> version_order::VersionStatements {
    let mut file = Vec::new();
    certificate.write_version_order(&mut file).unwrap();
    let found = version_order::read(&Source::from_bytes("order", file).unwrap(), history).unwrap();
    assert_eq!((found.unknown.keys, found.unknown.versions), (0, 0), "{:?}", found.unknown.first);
    found
}

/// The versions of every row with the commit timestamps of their writers, each as it was left.
type Versions = BTreeMap<KeyId, Vec<(Stamp, ValueId)>>;

fn last_writes(history: &History, txn: TxnId, before: Option<OpId>) -> BTreeMap<KeyId, ValueId> {
    let mut last = BTreeMap::new();
    for op in history.txn_ops(txn).take_while(|op| Some(*op) != before) {
        match history.op(op) {
            Op::Write { key, value } => _ = last.insert(key, value),
            Op::PredicateWrite { rows, .. } => {
                last.extend(rows.unwrap_or_default().iter().map(|row| (row.key, row.value)));
            }
            _ => {}
        }
    }
    last
}

fn versions(history: &History) -> Versions {
    let mut versions = Versions::new();
    for txn in history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed) {
        for (key, value) in last_writes(history, txn, None) {
            let at = history.db_commit(txn).unwrap();
            versions.entry(key).or_default().push((at, value));
        }
    }
    versions.values_mut().for_each(|of_row| of_row.sort_unstable());
    versions
}

/// A column of a row.
fn column(history: &History, value: ValueId, name: &str) -> Option<i64> {
    match history.value(value) {
        ValueRef::Tuple(tuple) => match tuple.get(name) {
            Some(ValueRef::Int(number)) => Some(number),
            _ => None,
        },
        _ => None,
    }
}

/// Every operation by predicate that has a set of versions returned exactly the rows among them that
/// match; and how many there are of reads and of writes.
fn sets_explain_results(
    history: &History,
    sets: &version_order::VersionStatements,
) -> (usize, usize) {
    let versions = versions(history);
    let (mut reads, mut writes) = (0, 0);
    for set in &sets.sets {
        let VersionSet::Snapshot(snapshot) = set.versions else { panic!("a snapshot") };
        let (predicate, rows) = match history.op(set.op) {
            Op::PredicateRead { predicate, rows } => (predicate, rows.unwrap()),
            Op::PredicateWrite { predicate, rows } => (predicate, rows.unwrap()),
            _ => continue,
        };
        let is_write = matches!(history.op(set.op), Op::PredicateWrite { .. });
        *(if is_write { &mut writes } else { &mut reads }) += 1;
        let own = last_writes(history, history.op_txn(set.op), Some(set.op));
        let text = predicate.to_string();
        let numbers: Vec<i64> = text
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|word| word.parse().ok())
            .collect();
        let (low, high) = (numbers[0], numbers[1]);
        let name = if text.contains("where a ") || text.contains("WHERE a ") { "a" } else { "b" };
        let mut expected: Vec<(KeyId, ValueId)> = Vec::new();
        for (key, of_row) in &versions {
            let met = of_row.iter().rev().find(|(at, _)| *at <= snapshot).map(|(_, value)| *value);
            let met = own.get(key).copied().or(met);
            if let Some(value) = met
                && column(history, value, name).is_some_and(|number| (low..=high).contains(&number))
            {
                expected.push((*key, value));
            }
        }
        for (key, value) in own.iter().filter(|(key, _)| !versions.contains_key(key)) {
            if column(history, *value, name).is_some_and(|number| (low..=high).contains(&number)) {
                expected.push((*key, *value));
            }
        }
        let mut found: Vec<(KeyId, ValueId)> =
            rows.iter().map(|row| (row.key, row.value)).collect();
        expected.sort_unstable();
        found.sort_unstable();
        if is_write {
            let keys = |rows: &[(KeyId, ValueId)]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
            assert_eq!(keys(&found), keys(&expected), "{text}");
        } else {
            assert_eq!(found, expected, "{text}");
        }
    }
    (reads, writes)
}

fn keeps_its_order(history: &History, level: Level) {
    let options = CheckOptions::default().with_promised_order(PromisedOrder::of_stamps(history));
    let result = isolario_check::check(history, &[level], &options).remove(0);
    assert!(matches!(result.verdict, Verdict::Satisfied(_)), "{level}: {:?}", result.verdict);
}

#[test]
fn postgres_tells_what_every_statement_saw() {
    let servers = start(Kind::Postgres);
    for isolation in ["read-committed", "repeatable-read", "serializable"] {
        let run = captured(servers.url(), isolation, &workload(), 400);
        let (certificate, history) = run.certified();
        let statements = statements(&certificate, &history);
        let (reads, writes) = sets_explain_results(&history, &statements);
        assert!(reads > 100, "{isolation}: {reads}");
        // At read committed, a write looks once more at the newest version of what it found.
        let has_sets = isolation != "read-committed";
        assert_eq!(writes > 20, has_sets, "{isolation}: {writes}");
        assert_eq!(certificate.sets == certificate.predicates, has_sets, "{isolation}");
        let promised = (isolation == "repeatable-read").then_some(Level::Prefix);
        assert_eq!(certificate.promised, promised);
        promised.iter().for_each(|level| keeps_its_order(&history, *level));
    }
}

/// The history of a row that is inserted, deleted by a second session, and inserted by the first one, which
/// then finds these versions of it.
fn of_two_rows(found: &[(u32, Option<RowValues>)]) -> History {
    let there = Expr::column("value").is_null().unwrap().negated_condition().unwrap();
    let predicate = &Predicate::rows("t", there).unwrap();
    let key = TupleParts { table: "t", columns: &[("id", ValueRef::Int(1))] };
    let key = ValueRef::from(&key);
    let row = |value| RowInput { key, value, version: None };
    let write = |version| Op::Write { key, value: ValueRef::Int(version) };
    let rows: Vec<RowInput<'_>> = found
        .iter()
        .filter_map(|(_, held)| Some(row(ValueRef::Int(held.as_ref()?.version))))
        .collect();
    let gone = [row(ValueRef::Nil)];
    let read = Op::Read { key, value: Some(ValueRef::Int(1)) };
    let txns: [(i64, Vec<OpInput<'_>>); 3] = [
        (1, vec![write(1)]),
        (2, vec![Op::PredicateWrite { predicate, rows: Some(&gone) }]),
        (1, vec![read, write(3), Op::PredicateRead { predicate, rows: Some(&rows) }]),
    ];
    let mut batch = Batch::new();
    let initial = Initial::Value(Value::Nil);
    batch.meta(&Meta { initial, ..Meta::default() }).unwrap();
    for (session, ops) in txns {
        let session = ValueRef::Int(session);
        batch.begin(&TxnStart { session, id: None, line: None }).unwrap();
        ops.iter().for_each(|op| batch.op(op).unwrap());
        batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
    }
    batch.build().unwrap()
}

/// An insert in place of a row that was deleted since the snapshot is let through: two transactions
/// that ran at the same time wrote the row. Without deletes there is snapshot isolation.
#[test]
fn repeatable_read_of_postgres_is_not_quite_snapshot_isolation() {
    let servers = start(Kind::Postgres);
    let database = database(servers.url(), "repeatable-read");
    prepare_nodes(std::slice::from_ref(&database), WorkloadKind::Predicate, 10);
    let held = |version| RowValues { a: 5, b: 5, version };
    let mut found = TableResult::default();
    let mut one = database.connect().unwrap();
    one.begin(Access::Write).unwrap();
    one.table(&TableOp::Insert { key: 1, held: held(1) }, &mut found).unwrap();
    one.commit().unwrap();
    one.begin(Access::Write).unwrap();
    one.table(&TableOp::Read { key: 1 }, &mut found).unwrap();
    assert_eq!(found.rows, [(1, Some(held(1)))]);
    let mut two = database.connect().unwrap();
    two.begin(Access::Write).unwrap();
    let range = ValueRange { column: Column::A, low: 5, high: 5 };
    two.table(&TableOp::Delete { range, version: 2 }, &mut found).unwrap();
    two.commit().unwrap();
    one.table(&TableOp::Insert { key: 1, held: held(3) }, &mut found).unwrap();
    // The deleted row is there in its snapshot, beside the one that it inserted.
    found.clear();
    one.table(&TableOp::RangeRead { range }, &mut found).unwrap();
    found.rows.sort_by_key(|(_, held)| held.map(|held| held.version));
    assert_eq!(found.rows, [(1, Some(held(1))), (1, Some(held(3)))]);
    one.commit().unwrap();
    // Nobody has to know the log to say what that is.
    let history = of_two_rows(&found.rows);
    let options = CheckOptions::default();
    let results =
        isolario_check::check(&history, &[Level::SnapshotIsolation, Level::Serializable], &options);
    assert!(results[0].verdict.is_satisfied(), "{:?}", results[0].verdict);
    assert!(results[1].verdict.is_violated(), "{:?}", results[1].verdict);

    let mix = "insert:30,update:30,read:20,range-read:10,range-update:10".parse().unwrap();
    let run = captured(servers.url(), "repeatable-read", &Workload { mix, ..workload() }, 300);
    keeps_its_order(&run.certified().1, Level::SnapshotIsolation);
}

#[test]
fn mariadb_tells_the_order_of_commits_and_the_snapshots_of_transactions() {
    let servers = start(Kind::MariaDb);
    for isolation in ["read-committed", "repeatable-read", "serializable"] {
        let run = captured(servers.url(), isolation, &workload(), 400);
        let (certificate, history) = run.certified();
        let statements = statements(&certificate, &history);
        let (reads, writes) = sets_explain_results(&history, &statements);
        assert_eq!(writes, 0, "{isolation}");
        assert_eq!(reads > 100, isolation == "repeatable-read", "{isolation}: {reads}");
        let promised = (isolation == "serializable").then_some(Level::Serializable);
        assert_eq!(certificate.promised, promised);
        promised.iter().for_each(|level| keeps_its_order(&history, *level));
    }
}

/// Nothing is lost without notice, and nobody else's changes are taken for the clients'.
#[test]
fn a_log_that_does_not_fit_makes_no_certificate() {
    let servers = start(Kind::Postgres);
    let run = captured(servers.url(), "serializable", &workload(), 300);
    let with = |change: &dyn Fn(&mut Vec<LoggedCommit>)| {
        let mut log = run.log.clone();
        change(&mut log.commits);
        assemble(&run.history, &log, &run.sightings).unwrap_err()
    };
    for at in [0, run.log.commits.len() / 2, run.log.commits.len() - 1] {
        let found = with(&|commits| drop(commits.remove(at)));
        assert!(matches!(found, LogMismatch::Lacks { .. }), "{found}");
    }
    let stranger = RowChange { row: 1, before: None, after: Some(i64::MAX) };
    let found = with(&|commits| commits[0].changes.push(stranger));
    assert_eq!(found, LogMismatch::Stranger { row: 1, version: i64::MAX });
    let number = u64::MAX;
    let delete =
        LoggedCommit { number, at: None, changes: vec![RowChange { after: None, ..stranger }] };
    let found = with(&|commits| commits.push(delete.clone()));
    assert_eq!(found, LogMismatch::StrangeDelete { number, row: 1 });
    let several = run.log.commits.iter().position(|commit| commit.changes.len() > 1).unwrap();
    let found = with(&|commits| _ = commits[several].changes.pop());
    assert!(matches!(found, LogMismatch::Lacks { .. } | LogMismatch::Differs { .. }), "{found}");
}

#[test]
fn nothing_is_left_of_a_capture() {
    let servers = start(Kind::Postgres);
    let database = database(servers.url(), "serializable");
    prepare_nodes(std::slice::from_ref(&database), WorkloadKind::Predicate, 10);
    let mut line = database.sql().unwrap().connect_sql().unwrap();
    let mut left = || {
        let sql = "SELECT (SELECT count(*) FROM pg_replication_slots), \
             (SELECT count(*) FROM pg_publication)";
        format!("{:?}", line.statement(sql, true).unwrap().rows[0])
    };
    let capture = database.capture().unwrap();
    assert_eq!(left(), "[Int(1), Int(1)]");
    assert!(capture.stop().unwrap().commits.is_empty());
    assert_eq!(left(), "[Int(0), Int(0)]");
    // One that was never stopped takes its slot with it, and the next one replaces the rest.
    drop(database.capture().unwrap());
    database.capture().unwrap().stop().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while left() != "[Int(0), Int(0)]" {
        assert!(Instant::now() < deadline, "{}", left());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_is_in_the_way_of_a_capture_is_named() {
    let servers = start(Kind::Postgres);
    let superuser = database(servers.url(), "serializable");
    let mut line = superuser.sql().unwrap().connect_sql().unwrap();
    for statement in [
        "CREATE ROLE plain LOGIN",
        "GRANT ALL ON SCHEMA public TO plain",
        "GRANT CREATE ON DATABASE isolario TO plain",
    ] {
        line.statement(statement, true).unwrap();
    }
    let refusal = |database: &dyn Database| match database.capture() {
        Ok(_) => panic!("it captures"),
        Err(error) => error.message,
    };
    let plain = database(&servers.url().replace("postgres@", "plain@"), "serializable");
    prepare_nodes(std::slice::from_ref(&plain), WorkloadKind::Predicate, 10);
    assert!(refusal(&*plain).contains("REPLICATION"));
    drop(plain);
    let servers = start(Kind::MariaDb);
    let database = database(servers.url(), "serializable");
    let mut line = database.sql().unwrap().connect_sql().unwrap();
    for (setting, value, back) in
        [("binlog_format", "STATEMENT", "ROW"), ("binlog_row_image", "MINIMAL", "FULL")]
    {
        line.statement(&format!("SET GLOBAL {setting} = '{value}'"), true).unwrap();
        let words = refusal(&*database);
        assert!(words.contains(&format!("set {setting} = {back}")), "{words}");
        line.statement(&format!("SET GLOBAL {setting} = '{back}'"), true).unwrap();
    }
}
