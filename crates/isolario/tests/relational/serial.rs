//! The side oracle: answers that no order of the transactions, one after the other, gives.
//!
//! No database at hand has such a bug. So the statements have it: they answer differently on another
//! connection, or each time.

use isolario::run::relational::{FindingKind, simplify_script};
use isolario::sql::{Script, Table, Type};
use isolario_servers::Kind;

use super::figures::script;
use super::site::{settings, start};

const PAIR: [(&str, Type); 2] = [("c1", Type::Integer), ("c2", Type::Integer)];

fn table() -> Vec<Table> {
    vec![Table::plain("t", &PAIR, &[&["1", "1"], &["2", "2"], &["3", "3"]])]
}

/// Three transactions, of which one is to write something else than it says.
fn with_update(value: &str) -> Script {
    let wrong = format!("UPDATE t SET c2 = {value} WHERE c1 = 1");
    script(
        table(),
        &[
            (1, "BEGIN"),
            (1, "SELECT c2 FROM t WHERE c1 = 3"),
            (1, &wrong),
            (1, "COMMIT"),
            (2, "BEGIN"),
            (2, "UPDATE t SET c2 = 5 WHERE c1 = 3"),
            (2, "SELECT c2 FROM t WHERE c1 = 1 OR c1 = 2"),
            (2, "COMMIT"),
            (3, "BEGIN"),
            (3, "SELECT count(*) FROM t"),
            (3, "COMMIT"),
        ],
    )
}

#[track_caller]
fn is_found(url: &str, value: &str) {
    let settings = settings(url, "serializable", 1, 1);
    let kind = FindingKind::WrongResult;
    let right = simplify_script(&settings, &with_update("7"), kind).unwrap();
    assert!(right.is_none(), "{right:?}");
    let found = simplify_script(&settings, &with_update(value), kind).unwrap().unwrap();
    assert_eq!(found.size(), (1, 1), "{:?}", found.script);
    assert_eq!(found.pattern, "UPDATE");
    assert_eq!(found.shown, (3, 3));
    let difference = found.difference.unwrap();
    // The tables in the end tell.
    assert_eq!(difference.txn, None);
    assert_ne!(difference.observed, difference.expected);
}

#[test]
fn wrong_results_are_found_on_sqlite() {
    is_found("sqlite:", "abs(random() % 1000000007)");
}

#[test]
fn wrong_results_are_found_on_postgres() {
    let servers = start(Kind::Postgres);
    is_found(servers.url(), "pg_backend_pid()");

    // T1 does not see what T2 has committed already, and so comes first. No item tells.
    let phantom = script(
        table(),
        &[
            (1, "BEGIN"),
            (1, "SELECT c1 FROM t WHERE c2 = 9"),
            (2, "INSERT INTO t (c1, c2) VALUES (9, 9)"),
            (1, "SELECT c1 FROM t WHERE c2 = 9"),
            (1, "COMMIT"),
        ],
    );
    let settings = settings(servers.url(), "serializable", 1, 1);
    let found = simplify_script(&settings, &phantom, FindingKind::WrongResult).unwrap();
    assert!(found.is_none(), "{found:?}");
}
