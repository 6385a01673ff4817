//! What rounds must find, and what they must not.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use isolario::check::{CheckOptions, Checker};
use isolario::db::{DbUrl, Settings as DbSettings, open};
use isolario::model::{AnomalyKind, Level, Outcome};
use isolario::run::relational::{
    Figures, FindingKind, Observer, Outcome as Found, ShrinkRun, replay_script, run, shrink_run,
    simplify_script,
};
use isolario::run::{Ask, Handle, Judgement, RunError};
use isolario::sql::{Element, OldVersion, Product, Reading, Script, Table, Type, old_versions};
use isolario_servers::Kind;

use super::figures::script;
use super::site::{go, settings, start};

/// Nothing was found, and what was claimed holds.
#[track_caller]
fn is_clean(outcome: &Found) {
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    assert_eq!(outcome.judgement, Judgement::Satisfied);
    assert_eq!(outcome.figures.uninstrumented, 0);
    assert!(outcome.figures.seen > outcome.figures.committed);
}

#[test]
fn sqlite_is_clean() {
    is_clean(&go(settings("sqlite:", "serializable", 600, 1)));
}

#[test]
fn a_run_leaves_its_directory_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("theirs.db");
    let url = format!("sqlite:{}", path.display());
    let mut settings = settings(&url, "serializable", 60, 7);
    settings.out = Some(dir.path().join("run"));
    run(&settings, &Handle::new(), &mut ()).unwrap();
    for file in ["run.json", "findings.json"] {
        assert!(dir.path().join("run").join(file).is_file(), "{file}");
    }
    let database = open(&DbUrl::parse(&url).unwrap(), &DbSettings::default()).unwrap();
    let mut connection = database.sql().unwrap().connect_sql().unwrap();
    let tables = "SELECT name FROM sqlite_master";
    assert!(connection.statement(tables, false).unwrap().rows.is_empty());

    // Somebody else's table is left alone.
    connection.statement("CREATE TABLE t0 (mine INTEGER)", true).unwrap();
    settings.out = Some(dir.path().join("again"));
    let error = run(&settings, &Handle::new(), &mut ()).unwrap_err();
    let RunError::Database { error, .. } = error else { panic!("{error}") };
    assert!(error.message.contains("there is a table t0 already"), "{}", error.message);
    connection.statement("SELECT mine FROM t0", false).unwrap();
}

#[test]
fn an_aim_is_clean_where_nothing_is_wrong_and_unknown_ones_are_refused() {
    let mut settings = settings("sqlite:", "serializable", 120, 1);
    settings.aim = Some("WriteSkew".to_owned());
    is_clean(&go(settings.clone()));
    settings.aim = Some("chaos".to_owned());
    let error = run(&settings, &Handle::new(), &mut ()).unwrap_err();
    assert!(matches!(error, RunError::NoAim { .. }), "{error}");
}

/// Statements that the database refuses have its code, and end nothing; what the parser does not know is
/// sent as it is, and named.
#[test]
fn what_is_refused_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let script = "CREATE TABLE t (c INTEGER UNIQUE);\nINSERT INTO t (c) VALUES (1);\n\
                  /* session 1, T1 */ BEGIN;\n\
                  /* session 1, T1 */ INSERT INTO t (c) VALUES (1);\n\
                  /* session 1, T1 */ SELECT nothing FROM t;\n\
                  /* session 1, T1 */ WITH a AS (SELECT c FROM t) SELECT c FROM a;\n\
                  /* session 1, T1 */ PRAGMA does_not_exist(3) IS NOT SQL;\n\
                  /* session 1, T1 */ INSERT INTO t (c) VALUES (2);\n\
                  /* session 1, T1 */ COMMIT;\n";
    std::fs::write(dir.path().join("refused.sql"), script).unwrap();
    let mut settings = settings("sqlite:", "serializable", 1, 1);
    settings.templates = Some(dir.path().to_owned());
    let outcome = go(settings);
    assert_eq!((outcome.figures.committed, outcome.figures.refused), (1, 3));
    assert_eq!(outcome.errors.values().map(|(count, _)| count).sum::<u64>(), 3);
    assert!(outcome.errors.contains_key("2067"), "{:?}", outcome.errors);
    assert_eq!(outcome.refusals["WITH: not instrumented: WITH"], 1);
    assert!(outcome.refusals.keys().any(|why| why.starts_with("PRAGMA: cannot be parsed")));
}

/// What a simplified script leaves of a schema need not have an integer in it.
#[test]
fn templates_without_an_integer_are_gone_through() {
    let dir = tempfile::tempdir().unwrap();
    for (name, ty, value) in [("a", "TEXT", "'a'"), ("b", "BOOLEAN", "TRUE"), ("c", "DATE", "NULL")]
    {
        let script = format!(
            "CREATE TABLE t ({name} {ty});\nINSERT INTO t ({name}) VALUES ({value});\n\
             /* session 1, T1 */ BEGIN;\n\
             /* session 1, T1 */ UPDATE t SET {name} = {value};\n\
             /* session 1, T1 */ COMMIT;\n"
        );
        std::fs::write(dir.path().join(format!("{name}.sql")), script).unwrap();
    }
    // No statement can be made up where there is no table.
    let without = "/* session 1, T1 */ SELECT 1;\n";
    std::fs::write(dir.path().join("d.sql"), without).unwrap();
    let mut settings = settings("sqlite:", "serializable", 600, 1);
    settings.templates = Some(dir.path().to_owned());
    let outcome = go(settings);
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    assert_eq!(outcome.judgement, Judgement::Satisfied);
    assert!(outcome.figures.refused * 5 < outcome.figures.statements, "{:?}", outcome.figures);
}

/// When the time is up at whatever moment, or a part of it panics, a run ends, and leaves nothing in the database.
fn every_run_ends(url: &str) {
    struct Panics;
    impl Observer for Panics {
        fn round(&mut self, _: &Figures) {
            panic!("a panic of the test");
        }
    }
    let (url, (done, over)) = (url.to_owned(), channel());
    std::thread::spawn(move || {
        for seed in 1..=8 {
            let mut timed = settings(&url, "serializable", 0, seed);
            (timed.txns, timed.duration) = (None, Some(Duration::from_millis(60 * seed)));
            timed.predicates = seed % 2 == 0;
            let outcome = go(timed);
            assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
        }
        let dir = tempfile::tempdir().unwrap();
        let mut panics = settings(&url, "serializable", 1000, 1);
        panics.out = Some(dir.path().join("run"));
        let error = run(&panics, &Handle::new(), &mut Panics).unwrap_err();
        assert!(matches!(error, RunError::Panicked), "{error}");
        done.send(()).unwrap();
    });
    // Each takes a second or so; one that hangs would never end.
    over.recv_timeout(Duration::from_secs(300)).unwrap();
}

#[test]
fn every_run_ends_on_sqlite() {
    every_run_ends("sqlite:");
}

#[test]
fn a_schema_that_is_kept_stays() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("kept.db").display());
    // That of the last one of several rounds.
    let mut settings = settings(&url, "serializable", 100, 7);
    settings.keep = true;
    assert!(go(settings).figures.rounds > 1);
    let database = open(&DbUrl::parse(&url).unwrap(), &DbSettings::default()).unwrap();
    database
        .sql()
        .unwrap()
        .connect_sql()
        .unwrap()
        .statement("SELECT row_id, w_list FROM t0", false)
        .unwrap();
}

#[test]
fn postgres_gives_what_it_claims() {
    let servers = start(Kind::Postgres);
    let url = servers.url();
    is_clean(&go(settings(url, "serializable", 300, 3)));
    is_clean(&go(settings(url, "read-committed", 300, 3)));

    // Only cycles with two anti-dependencies side by side are left at its repeatable read.
    let skewed = go(settings(url, "repeatable-read", 600, 3));
    assert_eq!(skewed.judgement, Judgement::Satisfied);
    let allowed = [AnomalyKind::WriteSkew, AnomalyKind::ItemAntiDependencyCycle];
    let allowed = allowed.map(FindingKind::Anomaly);
    for finding in &skewed.findings {
        assert!(allowed.contains(&finding.kind), "{finding:?}");
    }

    what_comes_before_is_there_from_the_beginning(url);
    every_run_ends(url);

    // A run that stops early, while other rounds are on their way.
    let mut stopped = settings(url, "read-committed", 1200, 3);
    let levels = vec![Level::RepeatableRead];
    stopped.ask = Ask::Levels { named: levels.clone(), levels };
    stopped.stop_on_violation = true;
    assert!(go(stopped).figures.broken <= 1);

    // Nothing of it is left.
    let database = open(&DbUrl::parse(url).unwrap(), &DbSettings::default()).unwrap();
    let ours = "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'isolario_sql%'";
    let left = database.sql().unwrap().connect_sql().unwrap().statement(ours, false).unwrap();
    assert_eq!(left.rows.len(), 0, "{:?}", left.rows);
}

/// A transaction that makes the rows that others skew is not one of the smallest script; nor are large values.
fn what_comes_before_is_there_from_the_beginning(url: &str) {
    let columns = [("c0", Type::Integer), ("c1", Type::Integer)];
    let skew = script(
        vec![Table::plain("t", &columns, &[])],
        &[
            (1, "BEGIN"),
            (1, "INSERT INTO t (c0, c1) VALUES (7, 3), (8, 4)"),
            (1, "COMMIT"),
            (2, "BEGIN"),
            (2, "SELECT c1 FROM t WHERE c0 = 7"),
            (3, "BEGIN"),
            (3, "SELECT c1 FROM t WHERE c0 = 8"),
            (2, "UPDATE t SET c1 = 5 WHERE c0 = 8"),
            (3, "UPDATE t SET c1 = 6 WHERE c0 = 7"),
            (2, "COMMIT"),
            (3, "COMMIT"),
        ],
    );
    let settings = settings(url, "repeatable-read", 1, 1);
    let kind = FindingKind::Anomaly(AnomalyKind::WriteSkew);
    let found = simplify_script(&settings, &skew, kind).unwrap().unwrap();
    assert_eq!((found.size(), found.shown), ((2, 2), (3, 3)), "{:?}", found.script);
    let sql = found.script.to_sql(&Product::POSTGRES, None);
    assert!(!sql.contains(['3', '4', '5', '6', '7', '8']), "{sql}");
}

#[test]
fn mariadb_loses_updates_at_its_repeatable_read_only() {
    let servers = start(Kind::MariaDb);
    let url = servers.url();
    is_clean(&go(settings(url, "serializable", 200, 3)));
    is_clean(&go(settings(url, "read-committed", 200, 3)));
    reads_may_be_dirty_at_read_uncommitted(url);
    an_old_version_beside_an_own_write(url);
    a_deadlock_by_another_name(url);
    a_refusal_outside_of_a_transaction(url);
    findings_without_time_to_simplify_are_listed(url);

    // One seed after the other, until everything that its design allows has shown.
    let wanted = [AnomalyKind::LostUpdate, AnomalyKind::ReadWriteSkew, AnomalyKind::WriteSkew];
    let wanted = wanted.map(FindingKind::Anomaly);
    let mut found = BTreeSet::new();
    let begun = Instant::now();
    for seed in 0.. {
        let outcome = go(settings(url, "repeatable-read", 150, seed));
        found.extend(outcome.findings.iter().map(|finding| finding.kind));
        if wanted.iter().all(|kind| found.contains(kind)) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(900), "{found:?}");
    }
    // Consistent reads come from one snapshot, and nothing uncommitted is seen.
    for kind in [AnomalyKind::AbortedRead, AnomalyKind::IntermediateRead, AnomalyKind::DirtyWrite] {
        assert!(!found.contains(&FindingKind::Anomaly(kind)), "{kind:?}");
    }
}

/// Once the grace after its duration is over, a run simplifies nothing more, and says how much is left to be simplified
/// later.
fn findings_without_time_to_simplify_are_listed(url: &str) {
    for seed in 1..=100 {
        let dir = tempfile::tempdir().unwrap();
        let mut timed = settings(url, "repeatable-read", 0, seed);
        (timed.txns, timed.duration) = (None, Some(Duration::from_millis(500)));
        (timed.simplify, timed.grace) = (Some(Duration::from_secs(20)), Some(Duration::ZERO));
        timed.out = Some(dir.path().join("run"));
        let outcome = run(&timed, &Handle::new(), &mut ()).unwrap();
        if outcome.findings.is_empty() {
            continue;
        }
        assert!(outcome.simplified.is_empty());
        assert_eq!(outcome.figures.not_simplified, outcome.findings.len() as u64);
        let what = ShrinkRun::new(outcome.directory, vec![DbUrl::parse(url).unwrap()]);
        let shrunk = shrink_run(&what, &Handle::new(), &mut ()).unwrap();
        assert_eq!(shrunk.findings, outcome.findings.len());
        return;
    }
    panic!("nothing was found");
}

/// A dirty read breaks nothing that is claimed there; the claim is what the verdict follows.
fn reads_may_be_dirty_at_read_uncommitted(url: &str) {
    let held = go(settings(url, "read-uncommitted", 300, 3));
    assert_eq!(held.judgement, Judgement::Satisfied, "{:?}", held.findings);
    assert_eq!(held.asked["read-uncommitted"], "read-uncommitted");
    let dirty = script(
        vec![Table::plain("t", &[("c", Type::Integer)], &[&["1"]])],
        &[
            (1, "BEGIN"),
            (2, "BEGIN"),
            (1, "UPDATE t SET c = 2"),
            (2, "SELECT c FROM t"),
            (1, "ROLLBACK"),
            (2, "COMMIT"),
        ],
    );
    let (_, history) = replay_script(&settings(url, "read-uncommitted", 1, 1), &dirty).unwrap();
    let satisfies =
        |level| Checker::new(&history, CheckOptions::default()).check(level).verdict.is_satisfied();
    assert!(satisfies(Level::ReadUncommitted) && !satisfies(Level::AdyaReadCommitted));
}

/// InnoDB keeps a row whose primary key was changed under both keys. A transaction with an older snapshot that
/// changes the row as well sees its own version under the new key, and that of its snapshot under the old one.
fn an_old_version_beside_an_own_write(url: &str) {
    let columns = [("c0", Type::Integer), ("c1", Type::Decimal)];
    let mut table = Table::plain("t1", &columns, &[&["0", "1"]]);
    table.primary_key = vec![0, 1];
    (table.columns[0].not_null, table.columns[1].not_null) = (true, true);
    let select = "SELECT c0, c1 FROM t1 WHERE c1 BETWEEN 0 AND 1";
    for (own, shown) in [("UPDATE t1 SET c1 = c1 + 0", 2), ("DELETE FROM t1", 1)] {
        let moved = script(
            vec![table.clone(), Table::plain("t0", &[("c", Type::Integer)], &[])],
            &[
                (1, "BEGIN"),
                (2, "BEGIN"),
                (2, "SELECT c FROM t0"),
                (1, "UPDATE t1 SET c1 = 0"),
                (2, own),
                (1, "COMMIT"),
                (2, select),
                (2, "COMMIT"),
            ],
        );
        let (round, history) =
            replay_script(&settings(url, "repeatable-read", 1, 1), &moved).unwrap();
        assert_eq!(round.transactions[1].statements[2].rows.len(), shown, "{round:?}");
        let reading = Reading::of(&Product::MARIADB, "repeatable-read");
        let old = old_versions(&round, reading);
        let element = |txn, statement| Element { txn, statement };
        let expected =
            OldVersion { read: element(2, 3), own: element(2, 2), between: element(1, 1) };
        assert_eq!(old, [expected]);
        // It is not taken for a read that does not see the own write.
        let result =
            Checker::new(&history, CheckOptions::default()).check(Level::AdyaReadCommitted);
        assert!(result.verdict.is_satisfied(), "{:?}", result.verdict);

        let found = simplify_script(
            &settings(url, "repeatable-read", 1, 1),
            &moved,
            FindingKind::OldVersion,
        );
        let found = found.unwrap().unwrap();
        assert_eq!((found.size(), found.shown), ((2, 3), (3, 3)), "{:?}", found.script);
        // Nothing is claimed there that it would break; with a claim, there is nothing of the kind.
        let dir = tempfile::tempdir().unwrap();
        let script = moved.to_sql(&Product::MARIADB, None);
        std::fs::write(dir.path().join("moved.sql"), script).unwrap();
        let mut templates = settings(url, "repeatable-read", 1, 1);
        templates.templates = Some(dir.path().to_owned());
        let outcome = go(templates);
        assert_eq!(outcome.judgement, Judgement::Satisfied, "{:?}", outcome.findings);
        let kinds: Vec<FindingKind> = outcome.findings.iter().map(|found| found.kind).collect();
        assert!(kinds.contains(&FindingKind::OldVersion), "{kinds:?}");
        for isolation in ["innodb-snapshot-isolation", "serializable"] {
            let at = settings(url, isolation, 1, 1);
            let found = simplify_script(&at, &moved, FindingKind::OldVersion).unwrap();
            assert!(found.is_none(), "{found:?}");
        }
    }
}

/// MariaDB reports a deadlock over the lock that counts a column up as 1467, and rolls the transaction back: whatever
/// its session sends next is no part of it.
fn a_deadlock_by_another_name(url: &str) {
    let script = Script::read(
        "CREATE TABLE t0 (c0 INTEGER AUTO_INCREMENT NOT NULL, c1 INTEGER, PRIMARY KEY (c0));\n\
         INSERT INTO t0 (c1) VALUES (1), (2);\n\
         CREATE TABLE t1 (c0 INTEGER);\n\
         CREATE TABLE t2 (c0 INTEGER);\n\
         INSERT INTO t2 (c0) VALUES (1);\n\
         /* session 1, T1 */ START TRANSACTION;\n\
         /* session 2, T2 */ START TRANSACTION;\n\
         /* session 2, T2 */ INSERT INTO t1 (c0) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9);\n\
         /* session 1, T1 */ UPDATE t2 SET c0 = 5;\n\
         /* session 1, T1 */ SELECT c1 FROM t0;\n\
         /* session 2, T2 */ INSERT INTO t0 (c1) SELECT s.c1 FROM t0 AS s WHERE s.c0 = 2;\n\
         /* session 1, T1 */ INSERT INTO t0 (c1) VALUES (3);\n\
         /* session 2, T2 */ COMMIT;\n\
         /* session 1, T1 */ INSERT INTO t0 (c1) VALUES (4);\n\
         /* session 1, T1 */ SELECT c0 FROM t2;\n\
         /* session 1, T1 */ COMMIT;\n",
        &Product::MARIADB,
    )
    .unwrap();
    let (round, history) = replay_script(&settings(url, "serializable", 1, 1), &script).unwrap();
    // Whoever is given up, and under whatever name, has done nothing.
    let given_up: Vec<_> = (round.transactions.iter())
        .filter(|txn| txn.outcome == Outcome::Aborted)
        .map(|txn| txn.statements.last().and_then(|statement| statement.failure.clone()))
        .collect();
    assert!(matches!(given_up.as_slice(), [Some(_)]), "{given_up:?}");
    let result = Checker::new(&history, CheckOptions::default()).check(Level::Serializable);
    assert!(result.verdict.is_satisfied(), "{:?}", result.verdict);
}

/// A statement that breaks a constraint has not taken effect, and everybody knows that.
fn a_refusal_outside_of_a_transaction(url: &str) {
    let script = Script::read(
        "CREATE TABLE t0 (c0 INTEGER NOT NULL, PRIMARY KEY (c0));\n\
         INSERT INTO t0 (c0) VALUES (1);\n\
         /* session 1, T1 */ INSERT INTO t0 (c0) VALUES (1);\n\
         /* session 1, T2 */ INSERT INTO t0 (c0) VALUES (2);\n",
        &Product::MARIADB,
    )
    .unwrap();
    let (round, _) = replay_script(&settings(url, "serializable", 1, 1), &script).unwrap();
    let outcomes: Vec<Outcome> = round.transactions.iter().map(|txn| txn.outcome).collect();
    assert_eq!(outcomes, [Outcome::Aborted, Outcome::Committed, Outcome::Committed]);
}
