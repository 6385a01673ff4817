//! Schemas that chance does not make: those of scripts, which need not have an integer anywhere.

use isolario_model::Value;
use isolario_sql::{Aux, Instrument, Planner, Product, Schema, Table, Type, kind_of};
use rusqlite::Connection;

use super::client::{Running, Shared, make};
use super::style;

const TYPES: [(Type, &str); 5] = [
    (Type::Integer, "1"),
    (Type::Text, "'a'"),
    (Type::Decimal, "0.25"),
    (Type::Boolean, "TRUE"),
    (Type::Date, "'2024-01-01'"),
];

/// A table per type, of a single column; then tables of different types side by side.
fn schemas() -> Vec<Schema> {
    let table = |name: &str, (ty, literal): (Type, &str)| {
        Table::plain(name, &[("c0", ty)], &[&[literal], &["NULL"]])
    };
    let alone = |tables: Vec<Table>| Schema { tables, views: Vec::new() };
    let mut schemas = Vec::new();
    for ty in TYPES {
        schemas.push(alone(vec![table("t0", ty)]));
        let mut keyed = table("t0", ty);
        keyed.rows.truncate(1);
        (keyed.primary_key, keyed.columns[0].not_null) = (vec![0], true);
        schemas.push(alone(vec![keyed]));
    }
    for (at, ty) in TYPES.into_iter().enumerate() {
        let tables = vec![table("t0", ty), table("t1", TYPES[(at + 1) % TYPES.len()])];
        schemas.push(alone(tables));
    }
    // Nothing but a column that counts up.
    let mut counting = Table::plain("t0", &[("c0", Type::Integer)], &[]);
    (counting.primary_key, counting.columns[0].not_null) = (vec![0], true);
    counting.columns[0].auto_increment = true;
    schemas.push(alone(vec![counting]));
    schemas
}

#[test]
fn every_schema_has_statements_of_every_kind() {
    for (number, schema) in schemas().iter().enumerate() {
        let style = style(false);
        for product in [Product::POSTGRES, Product::MARIADB, Product::MYSQL, Product::SQLITE] {
            let aux = Aux::avoiding(schema);
            let planner = Planner {
                schema,
                product: &product,
                style: &style,
                models: &[],
                seed: number as u64,
                round: 0,
            };
            let instrument = Instrument { product: &product, schema, aux: &aux };
            let statements: Vec<String> =
                (0..400).flat_map(|at| planner.transaction(0, at).statements).collect();
            let mut kinds = std::collections::BTreeSet::new();
            for sql in &statements {
                kinds.insert(kind_of(&product, sql));
                assert_eq!(instrument.statement(sql, 1, 1).refusal, None, "{sql}");
            }
            assert!(kinds.len() >= 5, "{kinds:?} of {schema:?}");
        }
    }
}

#[test]
fn most_of_their_statements_work() {
    for schema in &schemas() {
        let (style, product, aux) = (style(false), Product::SQLITE, Aux::avoiding(schema));
        let planner =
            Planner { schema, product: &product, style: &style, models: &[], seed: 1, round: 0 };
        let shared = Shared::new(Instrument { product: &product, schema, aux: &aux }, false);
        let connection = Connection::open_in_memory().unwrap();
        make(&connection, schema, Some(&aux));
        let (mut all, mut failed, mut values) = (0, 0, 0);
        for id in 1..=100 {
            let planned = planner.transaction(0, u64::from(id));
            let txn = Running::begin(&shared, &connection, &planned, id, 0);
            let txn = txn.finish(&shared, &connection);
            all += txn.statements.len();
            failed += txn.statements.iter().filter(|s| s.failure.is_some()).count();
            let rows = txn.statements.iter().flat_map(|s| &s.rows).flatten();
            values += rows.filter(|value| **value != Value::Nil).count();
        }
        // Keys of few values are mostly taken.
        assert!(failed * 3 < all * 2, "{failed} of {all} failed: {schema:?}");
        assert!(values > 50, "{values} of {schema:?}");
    }
}
