//! Dependencies by predicate, where it is known what queries met.

use isolario::check::{CheckOptions, Checker};
use isolario::model::{AnomalyKind, Level};
use isolario::run::Judgement;
use isolario::run::relational::{FindingKind, Settings, replay_script, simplify_script};
use isolario::sql::{Product, Script, Table, Type, certified};
use isolario_servers::{Kind, Servers};

use super::figures::script;
use super::site::{go, settings, start};

const PAIR: [(&str, Type); 2] = [("c1", Type::Integer), ("c2", Type::Integer)];

fn knowing(servers: &Servers, isolation: &str, txns: u64) -> Settings {
    knowing_at(servers.url(), isolation, txns)
}

fn knowing_at(url: &str, isolation: &str, txns: u64) -> Settings {
    let mut settings = settings(url, isolation, txns, 3);
    settings.predicates = true;
    settings
}

/// Each sees that no row meets a condition, and inserts one that does.
fn predicate_write_skew() -> Script {
    script(
        vec![Table::plain("t", &PAIR, &[&["1", "1"], &["2", "2"]])],
        &[
            (1, "BEGIN"),
            (2, "BEGIN"),
            (1, "SELECT c2 FROM t WHERE c1 > 5"),
            (2, "SELECT c2 FROM t WHERE c1 > 5"),
            (1, "SELECT c2 FROM t WHERE c1 = 1"),
            (1, "INSERT INTO t (c1, c2) VALUES (8, 1)"),
            (2, "INSERT INTO t (c1, c2) VALUES (9, 2)"),
            (1, "COMMIT"),
            (2, "COMMIT"),
        ],
    )
}

#[test]
fn predicates_tell_on_postgres() {
    let servers = start(Kind::Postgres);
    let kind = FindingKind::Anomaly(AnomalyKind::PredicateWriteSkew);
    let skew = predicate_write_skew();
    let at = knowing(&servers, "repeatable-read", 1);
    let found = simplify_script(&at, &skew, kind).unwrap().unwrap();
    assert_eq!(found.size(), (2, 2), "{:?}", found.script);
    assert_eq!(found.pattern, "SELECT, INSERT | SELECT, INSERT");
    assert_eq!(found.shown, (3, 3));
    // At serializable one of them is given up. Without the option nobody knows.
    for settings in
        [knowing(&servers, "serializable", 1), settings(servers.url(), "repeatable-read", 1, 1)]
    {
        assert!(simplify_script(&settings, &skew, kind).unwrap().is_none());
    }

    // What was met is told row by row, whether it matched or not.
    let (round, _) = replay_script(&at, &skew).unwrap();
    let known =
        certified(&round, &skew.schema, &Product::POSTGRES, "repeatable-read").unwrap().unwrap();
    assert_eq!((known.orders.len(), known.sets.len()), (4, 3));

    // Whatever is found at repeatable read, it is a snapshot; serializable is that.
    let skewed = go(knowing(&servers, "repeatable-read", 300));
    assert_eq!(skewed.judgement, Judgement::Satisfied, "{:?}", skewed.findings);
    assert!(skewed.figures.certified > 0);
    let clean = go(knowing(&servers, "serializable", 150));
    assert_eq!(clean.judgement, Judgement::Satisfied, "{:?}", clean.findings);
    assert!(clean.findings.is_empty(), "{:?}", clean.findings);
    assert!(clean.figures.certified > 0);
}

/// Where each statement has a snapshot of its own, it tells itself what it met.
#[test]
fn predicates_tell_at_read_committed_of_postgres() {
    let servers = start(Kind::Postgres);
    let at = knowing(&servers, "read-committed", 1);
    let skew = predicate_write_skew();
    let (round, _) = replay_script(&at, &skew).unwrap();
    let answers: Vec<usize> = (round.transactions.iter().filter(|txn| !txn.is_final))
        .flat_map(|txn| txn.statements.iter().map(|statement| statement.rows.len()))
        .collect();
    assert_eq!(answers, [0, 1, 0, 0, 0], "{round:?}");
    let known = certified(&round, &skew.schema, &Product::POSTGRES, "read-committed").unwrap();
    assert_eq!(known.unwrap().sets.len(), 3);
    let kind = FindingKind::Anomaly(AnomalyKind::PredicateWriteSkew);
    assert!(simplify_script(&at, &skew, kind).unwrap().is_some());

    let held = go(knowing(&servers, "read-committed", 200));
    assert_eq!(held.judgement, Judgement::Satisfied, "{:?}", held.findings);
    assert!(held.figures.certified > 0);
}

/// MariaDB's repeatable read lets it happen, and its serializable level does not.
#[test]
fn predicates_tell_on_mariadb() {
    let servers = start(Kind::MariaDb);
    let kind = FindingKind::Anomaly(AnomalyKind::PredicateWriteSkew);
    let skew = predicate_write_skew();
    let at = knowing(&servers, "repeatable-read", 1);
    let found = simplify_script(&at, &skew, kind).unwrap().unwrap();
    assert_eq!(found.size(), (2, 2), "{:?}", found.script);
    assert!(simplify_script(&knowing(&servers, "serializable", 1), &skew, kind).unwrap().is_none());
    assert!(go(knowing(&servers, "repeatable-read", 200)).figures.certified > 0);
}

#[test]
fn predicates_change_nothing_on_sqlite() {
    for seed in 1..=6 {
        let mut settings = knowing_at("sqlite:", "serializable", 200);
        settings.seed = seed;
        let clean = go(settings);
        assert_eq!(clean.judgement, Judgement::Satisfied, "{:?}", clean.findings);
        assert!(clean.findings.is_empty() && clean.figures.certified > 0, "{:?}", clean.figures);
    }
}

/// A query comes before the insert and the delete of a row by its own transaction.
#[test]
fn a_row_that_comes_later_is_not_there_yet() {
    let later = script(
        vec![Table::plain("t", &PAIR, &[])],
        &[
            (1, "BEGIN"),
            (1, "SELECT c1 FROM t WHERE c1 > 0"),
            (1, "INSERT INTO t (c1, c2) VALUES (1, 1)"),
            (1, "DELETE FROM t"),
            (1, "SELECT c1 FROM t WHERE c1 > 0"),
            (1, "COMMIT"),
        ],
    );
    let at = knowing_at("sqlite:", "serializable", 1);
    let (round, _) = replay_script(&at, &later).unwrap();
    let known =
        certified(&round, &later.schema, &Product::SQLITE, "serializable").unwrap().unwrap();
    let options = CheckOptions::default().with_version_order(known.orders);
    let options = options.with_trusted_version_order(true).with_version_sets(known.sets);
    let result = Checker::new(&known.history, options).check(Level::StrictSerializable);
    assert!(result.verdict.is_satisfied(), "{:?}", result.verdict);
}
