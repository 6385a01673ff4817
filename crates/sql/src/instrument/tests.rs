use super::*;
use crate::schema::{Column, Table, Type};

fn schema() -> Schema {
    let columns = [("c0", Type::Integer), ("c1", Type::Text)];
    let mut t0 = Table::plain("t0", &columns, &[]);
    t0.primary_key = vec![0];
    t0.columns[0] = Column { not_null: true, ..t0.columns[0].clone() };
    let t1 = Table::plain("t1", &columns, &[]);
    Schema { tables: vec![t0, t1], views: Vec::new() }
}

fn sent(product: &Product, sql: &str) -> Instrumented {
    let schema = schema();
    let aux = Aux::avoiding(&schema);
    Instrument { product, schema: &schema, aux: &aux }.statement(sql, 7, 3)
}

#[track_caller]
fn becomes(product: &Product, sql: &str, expected: &str) {
    let sent = sent(product, sql);
    assert_eq!(sent.refusal, None, "{sql}");
    assert_eq!(sent.sql, expected);
}

#[test]
fn a_query_shows_its_rows() {
    becomes(
        &Product::POSTGRES,
        "SELECT c0, c1 FROM t0 WHERE c1 > 'a'",
        "SELECT c0, c1, t0.row_id || '=' || t0.w_list AS isolario_seen_1 FROM t0 WHERE c1 > 'a'",
    );
    becomes(
        &Product::MARIADB,
        "SELECT * FROM t0 WHERE c0 > 1 FOR SHARE",
        "SELECT t0.c0, t0.c1, CONCAT(t0.row_id, '=', t0.w_list) AS isolario_seen_1 FROM t0 \
         WHERE c0 > 1 LOCK IN SHARE MODE",
    );
}

#[test]
fn a_join_shows_the_rows_of_each_table() {
    becomes(
        &Product::SQLITE,
        "SELECT t0.c0, u.c1 FROM t0 LEFT JOIN t0 AS u ON t0.c0 = u.c0",
        "SELECT t0.c0, u.c1, t0.row_id || '=' || t0.w_list AS isolario_seen_1, \
         u.row_id || '=' || u.w_list AS isolario_seen_2 FROM t0 LEFT JOIN t0 AS u ON t0.c0 = u.c0",
    );
}

#[test]
fn a_subquery_passes_its_rows_on() {
    becomes(
        &Product::SQLITE,
        "SELECT d.c0 FROM (SELECT c0 FROM t1 WHERE c0 < 5) AS d WHERE d.c0 > 1",
        "SELECT d.c0, d.isolario_seen_1 AS isolario_seen_2 FROM (SELECT c0, t1.row_id || '=' || \
         t1.w_list AS isolario_seen_1 FROM t1 WHERE c0 < 5) AS d WHERE d.c0 > 1",
    );
}

#[test]
fn where_columns_would_matter_rows_are_gathered() {
    becomes(
        &Product::POSTGRES,
        "SELECT count(*) FROM t0 WHERE c0 < 5",
        "SELECT count(*), string_agg(t0.row_id || '=' || t0.w_list, ';') AS isolario_seen_1 \
         FROM t0 WHERE c0 < 5",
    );
    becomes(
        &Product::MARIADB,
        "SELECT DISTINCT c1 FROM t0 WHERE c0 < 5",
        "SELECT DISTINCT c1, (SELECT GROUP_CONCAT(t0.row_id, '=', t0.w_list SEPARATOR ';') \
         FROM t0 WHERE c0 < 5) AS isolario_seen_1 FROM t0 WHERE c0 < 5",
    );
    let gathered = |table: &str, condition: &str| {
        format!(
            "(SELECT group_concat({table}.row_id || '=' || {table}.w_list, ';') FROM {table} WHERE \
             {condition})"
        )
    };
    let (a, b) = (gathered("t0", "c0 < 5"), gathered("t1", "c0 > 1"));
    let both = format!("{a} AS isolario_seen_1, {b} AS isolario_seen_2");
    becomes(
        &Product::SQLITE,
        "SELECT c0 FROM t0 WHERE c0 < 5 UNION SELECT c0 FROM t1 WHERE c0 > 1",
        &format!(
            "SELECT c0, {both} FROM t0 WHERE c0 < 5 UNION SELECT c0, {both} FROM t1 WHERE c0 > 1"
        ),
    );
}

#[test]
fn subqueries_of_conditions_show_their_rows_beside() {
    becomes(
        &Product::SQLITE,
        "SELECT c0 FROM t0 WHERE c0 IN (SELECT s.c0 FROM t1 AS s WHERE s.c1 = 'a')",
        "SELECT c0, t0.row_id || '=' || t0.w_list AS isolario_seen_1, \
         (SELECT group_concat(s.row_id || '=' || s.w_list, ';') FROM t1 AS s WHERE s.c1 = 'a') \
         AS isolario_seen_2 FROM t0 WHERE c0 IN (SELECT s.c0 FROM t1 AS s WHERE s.c1 = 'a')",
    );
    // A correlated one has no place beside an aggregate.
    let sent = sent(
        &Product::SQLITE,
        "SELECT count(*) FROM t0 WHERE EXISTS (SELECT 1 FROM t1 AS s WHERE s.c0 = t0.c0)",
    );
    assert_eq!(sent.shows.len(), 1);
}

#[test]
fn writes_leave_their_mark() {
    becomes(
        &Product::POSTGRES,
        "INSERT INTO t0 (c0, c1) VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO t0 (c0, c1, row_id, w_list) VALUES (1, 'a', 't0/7.3.1', '7.3'), \
         (2, 'b', 't0/7.3.2', '7.3')",
    );
    becomes(
        &Product::MARIADB,
        "UPDATE t0 SET c1 = 'b' WHERE c0 > 1",
        "UPDATE t0 SET c1 = 'b', w_list = CONCAT(w_list, ',7.3') WHERE c0 > 1",
    );
    becomes(
        &Product::POSTGRES,
        "INSERT INTO t0 (c0, c1) VALUES (1, 'a') ON CONFLICT (c0) DO UPDATE SET c1 = excluded.c1",
        "INSERT INTO t0 (c0, c1, row_id, w_list) VALUES (1, 'a', 't0/7.3.1', '7.3') ON CONFLICT(c0) \
         DO UPDATE SET c1 = excluded.c1, w_list = t0.w_list || ',7.3'",
    );
    becomes(
        &Product::MARIADB,
        "INSERT INTO t1 (c0, c1) SELECT s.c0, 'x' FROM t0 AS s WHERE s.c0 > 1",
        "INSERT INTO t1 (c0, c1, row_id, w_list) SELECT s.c0, 'x', CONCAT('t1/7.3:', s.row_id), \
         '7.3' FROM t0 AS s WHERE s.c0 > 1",
    );
}

#[test]
fn deletes_tell_what_was_there() {
    becomes(
        &Product::MARIADB,
        "DELETE FROM t0 WHERE c0 > 1",
        "DELETE FROM t0 WHERE c0 > 1 RETURNING CONCAT(row_id, '=', w_list) AS isolario_seen_1",
    );
    let on_mysql = sent(&Product::MYSQL, "DELETE FROM t0 WHERE c0 > 1");
    assert_eq!(on_mysql.sql, "DELETE FROM t0 WHERE c0 > 1");
    assert_eq!(
        on_mysql.before.as_deref(),
        Some(
            "SELECT CONCAT(row_id, '=', w_list) AS isolario_seen_0 FROM t0 WHERE c0 > 1 FOR UPDATE"
        )
    );
    let replace = sent(&Product::MARIADB, "REPLACE INTO t0 (c0, c1) VALUES (1, 'a')");
    assert_eq!(replace.kind, StatementKind::Replace);
    assert_eq!(
        replace.before.as_deref(),
        Some(
            "SELECT CONCAT(row_id, '=', w_list) AS isolario_seen_0 FROM t0 WHERE (c0 = 1) FOR UPDATE"
        )
    );
    // Without a key nothing is replaced.
    let replace = sent(&Product::MARIADB, "REPLACE INTO t1 (c0, c1) VALUES (1, 'a')");
    assert_eq!(replace.before, None);
}

#[test]
fn what_is_not_known_is_sent_as_it_is() {
    for (sql, why) in [
        ("SELEC c0 FROM t0", "cannot be parsed"),
        ("SELECT c0 FROM elsewhere", "unknown relation elsewhere"),
        ("WITH a AS (SELECT 1) SELECT c0 FROM t0", "not instrumented: WITH"),
    ] {
        let sent = sent(&Product::POSTGRES, sql);
        assert_eq!(sent.sql, sql);
        let refusal = sent.refusal.unwrap().to_string();
        assert!(refusal.starts_with(why), "{refusal}");
    }
    assert_eq!(sent(&Product::POSTGRES, "SAVEPOINT s1").refusal, None);
}
