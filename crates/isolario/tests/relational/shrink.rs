//! The directory of a run, whose findings are run again and simplified.

use std::fs;

use isolario::db::DbUrl;
use isolario::model::AnomalyKind;
use isolario::run::Handle;
use isolario::run::relational::{Cause, FindingKind, ShrinkRun, run, shrink_run};
use isolario::sql::{Product, Script, Table, Type};
use isolario_servers::Servers;

use super::figures::script;
use super::site::{go, settings};

const PAIR: [(&str, Type); 2] = [("c1", Type::Integer), ("c2", Type::Integer)];

/// A round with a lost update between T1 and T2, and a transaction that has nothing to do with it.
fn lost_update(statement: &str) -> Script {
    script(
        vec![Table::plain("t", &PAIR, &[&["1", "1"], &["2", "2"]])],
        &[
            (1, "BEGIN"),
            (1, "SELECT c2 FROM t WHERE c1 = 1"),
            (1, statement),
            (3, "BEGIN"),
            (3, "SELECT c2 FROM t WHERE c1 = 2"),
            (2, "BEGIN"),
            (2, "SELECT c2 FROM t WHERE c1 = 1"),
            (2, "UPDATE t SET c2 = 5 WHERE c1 = 1"),
            (2, "COMMIT"),
            (3, "COMMIT"),
            (1, "UPDATE t SET c2 = c2 + 1 WHERE c1 = 1"),
            (1, "COMMIT"),
        ],
    )
}

/// Two findings that are different as they were found, and the same when simplified, and a third one
/// that does not happen any more.
pub fn a_directory_is_shrunk(servers: &Servers) {
    let dir = tempfile::tempdir().unwrap();
    let scripts = [
        lost_update("SELECT c1 FROM t WHERE c1 = 2"),
        lost_update("SELECT count(*) FROM t WHERE c2 = 2"),
        lost_update("SELECT c2 FROM t").with_txns(&[1, 3]),
    ];
    for (round, script) in scripts.iter().enumerate() {
        let folder = dir.path().join(format!("round-{round:04}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("statements.sql"), script.to_sql(&Product::MARIADB, None)).unwrap();
    }
    let finding = |round: usize| {
        format!(
            r#"{{"round":{round},"isolation":"repeatable-read","anomaly":"LostUpdate",
            "transactions":[1,2],"pattern":"as found","breaks_claim":false}}"#
        )
    };
    let record = format!(
        r#"{{"schema":"isolario.relational/1","database":"mariadb","version":"","figures":{{}},
        "table":{{}},"asked":{{}},"errors":{{}},"findings":[{}],"simplified":[]}}"#,
        [0, 1, 2].map(finding).join(",")
    );
    fs::write(dir.path().join("findings.json"), record).unwrap();
    let urls = vec![DbUrl::parse(servers.url()).unwrap()];
    let what = ShrinkRun::new(dir.path().to_owned(), urls);
    // Once more, it is all there again.
    for _ in 0..2 {
        let shrunk = shrink_run(&what, &Handle::new(), &mut ()).unwrap();
        assert!(shrunk.unwritten.is_empty(), "{:?}", shrunk.unwritten);
        assert_eq!((shrunk.findings, shrunk.gone), (3, 1));
        let [only] = shrunk.simplified.as_slice() else { panic!("{:?}", shrunk.simplified) };
        assert_eq!((only.findings, only.size()), (2, (2, 2)));
        assert_eq!(only.pattern, "SELECT, UPDATE | SELECT, UPDATE");
        assert_eq!(only.cause, Cause::CommitTiming);
        let count = &shrunk.table["repeatable-read"].anomalies["LostUpdate"];
        assert_eq!((count.simplified, count.unique), (2, 1));
    }
    let file = |end: &str| dir.path().join(format!("repeatable-read-LostUpdate.{end}"));
    assert!(file("iso").is_file());
    let report = fs::read_to_string(file("md")).unwrap();
    for known in
        ["| Database | MariaDB ", "| Isolation setting | repeatable-read |", "| Seed | 1 |"]
    {
        assert!(report.contains(known), "{known}: {report}");
    }
    assert!(
        report.contains("isolario check --level repeatable-read repeatable-read-LostUpdate.iso")
    );
    let script = fs::read_to_string(file("sql")).unwrap();
    let expected = [
        "--   SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;\n",
        "-- One after the other, the transactions give other answers, in whatever order:\n",
        "-- T2: SELECT c2 FROM t\n",
        "--   T1, T2    (",
    ];
    for line in expected {
        assert!(script.contains(line), "{line}: {script}");
    }
    // The script is one that can be read again.
    let text = fs::read_to_string(dir.path().join("repeatable-read-LostUpdate.sql")).unwrap();
    assert_eq!(Script::read(&text, &Product::MARIADB).unwrap().txns(), [1, 2]);

    // A run that begins with it finds the same at once; SQLite keeps it away.
    for (url, isolation, is_found) in
        [(servers.url(), "repeatable-read", true), ("sqlite:", "serializable", false)]
    {
        let mut settings = settings(url, isolation, 1, 1);
        settings.templates = Some(dir.path().to_owned());
        let outcome = go(settings);
        let lost = FindingKind::Anomaly(AnomalyKind::LostUpdate);
        let found = outcome.findings.iter().any(|f| f.round == 0 && f.kind == lost);
        assert_eq!(found, is_found, "{:?}", outcome.findings);
    }
}

#[test]
fn templates_that_cannot_be_read_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = |text: Option<&str>| {
        if let Some(text) = text {
            fs::write(dir.path().join("a.sql"), text).unwrap();
        }
        let mut settings = settings("sqlite:", "serializable", 1, 1);
        settings.templates = Some(dir.path().to_owned());
        run(&settings, &Handle::new(), &mut ()).unwrap_err().to_string()
    };
    assert!(error(None).ends_with("there is no script in it, called *.sql"));
    assert!(error(Some("SELECT 1;")).contains("a.sql: line 1: not a statement of a schema"));
}
