//! The examples of the IsoRel paper, statement by statement on MariaDB at repeatable read.

use isolario::check::{CheckOptions, Checker};
use isolario::model::{AnomalyKind, EdgeKind, History, Level, ValueRef};
use isolario::run::relational::{Cause, FindingKind, replay_script, simplify_script};
use isolario::sql::{Action, Reading, Round, Schema, Script, Step, Table, Type, history};
use isolario_servers::{Kind, Servers};

use super::shrink::a_directory_is_shrunk;
use super::site::{settings, start};

const PAIR: [(&str, Type); 2] = [("c1", Type::Integer), ("c2", Type::Integer)];

/// Steps in their order: a transaction, and what it does.
pub fn script(tables: Vec<Table>, steps: &[(u32, &str)]) -> Script {
    let step = |(txn, sql): &(u32, &str)| Step {
        session: txn - 1,
        txn: *txn,
        action: match *sql {
            "BEGIN" => Action::Begin,
            "COMMIT" => Action::Commit,
            "ROLLBACK" => Action::Rollback,
            sql => Action::Statement(sql.to_owned()),
        },
    };
    let schema = Schema { tables, views: Vec::new() };
    Script { schema, steps: steps.iter().map(step).collect() }
}

fn replayed(servers: &Servers, script: &Script) -> (Round, History) {
    let settings = settings(servers.url(), "repeatable-read", 1, 1);
    let (round, history) = replay_script(&settings, script).unwrap();
    for txn in &round.transactions {
        for statement in &txn.statements {
            assert_eq!(statement.failure, None, "{}", statement.sql);
        }
    }
    (round, history)
}

/// The anomalies that Adya's repeatable read forbids, each with its edges: `T1 -rw(t1/1)-> T2`.
fn anomalies(history: &History) -> Vec<(AnomalyKind, Vec<String>)> {
    let result = Checker::new(history, CheckOptions::default()).check(Level::RepeatableRead);
    let name = |txn| match history.txn_name(txn) {
        Some(ValueRef::Int(id)) => format!("T{id}"),
        other => format!("{other:?}"),
    };
    let told = |edge: &isolario::model::Edge| {
        let kind = match edge.reason.kind() {
            EdgeKind::ReadWrite => "rw",
            EdgeKind::WriteWrite => "ww",
            EdgeKind::WriteRead => "wr",
            _ => "other",
        };
        format!("{} {kind} {}", name(edge.from), name(edge.to))
    };
    let anomalies = result.verdict.anomalies().iter();
    anomalies
        .map(|anomaly| {
            let mut edges: Vec<String> = anomaly.evidence.edges().iter().map(told).collect();
            edges.sort();
            (anomaly.kind, edges)
        })
        .collect()
}

#[test]
fn figures_of_the_paper() {
    let servers = start(Kind::MariaDb);
    motivating_example(&servers);
    a_delete_comes_after_whom_it_overwrites(&servers);
    a_locking_read_is_current(&servers);
    write_skew_over_two_tables(&servers);
    what_does_not_matter_goes(&servers);
    a_directory_is_shrunk(&servers);
}

/// Figure 1: T1 reads a row that T2 overwrites, and overwrites one that T2 inserted.
fn motivating_example(servers: &Servers) {
    let tables = vec![
        Table::plain("t1", &PAIR, &[&["1", "1"], &["2", "1"], &["2", "2"]]),
        Table::plain("t2", &PAIR, &[&["4", "4"]]),
    ];
    let (_, history) = replayed(
        servers,
        &script(
            tables,
            &[
                (1, "BEGIN"),
                (1, "SELECT c2 FROM t1 WHERE c1 < 2"),
                (2, "BEGIN"),
                (2, "UPDATE t1 SET c2 = 2 WHERE c1 < 2"),
                (2, "INSERT INTO t2 (c1, c2) VALUES (1, 1)"),
                (2, "COMMIT"),
                (1, "UPDATE t2 SET c2 = 3 WHERE c1 < 2"),
                (1, "COMMIT"),
            ],
        ),
    );
    let edges = vec!["T1 rw T2".to_owned(), "T2 ww T1".to_owned()];
    assert_eq!(anomalies(&history), [(AnomalyKind::ReadWriteSkew, edges)]);
}

/// Figure 4: a delete overwrites what it deletes, and nothing is wrong with that.
fn a_delete_comes_after_whom_it_overwrites(servers: &Servers) {
    let table = Table::plain("t", &PAIR, &[&["1", "1"], &["2", "2"], &["6", "6"]]);
    let (round, history) = replayed(
        servers,
        &script(
            vec![table],
            &[
                (1, "BEGIN"),
                (2, "BEGIN"),
                (1, "UPDATE t SET c1 = 1 WHERE c1 < 5"),
                (1, "SELECT c1, c2 FROM t WHERE c1 < 5"),
                (1, "COMMIT"),
                (2, "DELETE FROM t WHERE c2 < 2"),
                (2, "COMMIT"),
            ],
        ),
    );
    let deleted = &round.transactions[1].statements[0].deleted;
    assert_eq!(deleted.len(), 1);
    assert_eq!((deleted[0].row.as_str(), deleted[0].list[0].txn), ("t/1", 1));
    assert_eq!(anomalies(&history), []);
}

/// Figure 5: a locking read sees the newest row, which is no anomaly there.
fn a_locking_read_is_current(servers: &Servers) {
    let table = Table::plain("t", &PAIR, &[&["1", "1"]]);
    let (round, with_exception) = replayed(
        servers,
        &script(
            vec![table],
            &[
                (1, "BEGIN"),
                (1, "SELECT c2 FROM t WHERE c1 = 1"),
                (2, "BEGIN"),
                (2, "UPDATE t SET c2 = 2 WHERE c1 = 1"),
                (2, "COMMIT"),
                (1, "SELECT c2 FROM t WHERE c1 = 1 FOR UPDATE"),
                (1, "COMMIT"),
            ],
        ),
    );
    assert_eq!(anomalies(&with_exception), []);
    let without = history(&round, Reading::default()).unwrap();
    assert_eq!(anomalies(&without).len(), 1, "elsewhere it would be one");
}

/// Figure 6: each reads what the other one writes, in two tables.
fn write_skew_over_two_tables(servers: &Servers) {
    let tables = vec![
        Table::plain("t1", &PAIR, &[&["1", "1"], &["2", "2"]]),
        Table::plain("t2", &PAIR, &[&["3", "3"], &["4", "4"]]),
    ];
    let (_, history) = replayed(
        servers,
        &script(
            tables,
            &[
                (1, "BEGIN"),
                (2, "BEGIN"),
                (1, "SELECT c2 FROM t1 WHERE c1 < 2"),
                (2, "SELECT c2 FROM t2 WHERE c1 < 4"),
                (1, "UPDATE t2 SET c2 = 5 WHERE c1 < 4"),
                (2, "UPDATE t1 SET c2 = 5 WHERE c1 < 2"),
                (1, "COMMIT"),
                (2, "COMMIT"),
            ],
        ),
    );
    let edges = vec!["T1 rw T2".to_owned(), "T2 rw T1".to_owned()];
    assert_eq!(anomalies(&history), [(AnomalyKind::WriteSkew, edges)]);
}

/// The motivating example again, among things that have nothing to do with it: what is left has two
/// transactions of two statements, and no table, row, column or key more than it takes.
fn what_does_not_matter_goes(servers: &Servers) {
    let wide = [("c1", Type::Integer), ("c2", Type::Integer), ("c3", Type::Text)];
    let mut first = Table::plain("t1", &wide, &[&["1", "1", "'a'"], &["2", "1", "'b'"]]);
    first.columns[0].not_null = true;
    first.primary_key = vec![0];
    first.indexes = vec![vec![1]];
    let tables = vec![
        first,
        Table::plain("t2", &PAIR, &[&["4", "4"]]),
        Table::plain("t3", &PAIR, &[&["5", "5"]]),
    ];
    let script = script(
        tables,
        &[
            (3, "BEGIN"),
            (3, "UPDATE t3 SET c2 = 6 WHERE c1 = 5"),
            (1, "BEGIN"),
            (1, "SELECT c2, c3 FROM t1 WHERE c1 < 2 OR c3 = 'a' ORDER BY c1"),
            (2, "BEGIN"),
            (2, "UPDATE t1 SET c2 = 2, c3 = 'c' WHERE (c1 < 2 AND c2 = 1)"),
            (2, "INSERT INTO t2 (c1, c2) VALUES (1, 1), (9, 9)"),
            (2, "SELECT count(*) FROM t3"),
            (2, "COMMIT"),
            (3, "COMMIT"),
            (1, "UPDATE t2 SET c2 = 3 WHERE c1 < 2"),
            (1, "COMMIT"),
        ],
    );
    let settings = settings(servers.url(), "repeatable-read", 1, 1);
    let found =
        simplify_script(&settings, &script, FindingKind::Anomaly(AnomalyKind::ReadWriteSkew))
            .unwrap()
            .unwrap();
    assert_eq!(found.size(), (2, 2), "{:?}", found.script);
    assert_eq!(found.shown, (3, 3));
    assert_eq!(found.pattern, "SELECT, UPDATE | UPDATE, INSERT");
    assert_eq!(found.cause, Cause::CommitTiming);
    let schema = &found.script.schema;
    assert_eq!(schema.tables.len(), 2);
    assert_eq!(schema.tables.iter().map(|table| table.rows.len()).sum::<usize>(), 1);
    assert!(schema.tables.iter().all(|table| table.primary_key.is_empty()));
    assert!(schema.tables[0].indexes.is_empty() && schema.tables[0].columns.len() <= 2);
    let lost =
        simplify_script(&settings, &script, FindingKind::Anomaly(AnomalyKind::LostUpdate)).unwrap();
    assert!(lost.is_none(), "what does not show is not made up");
}
