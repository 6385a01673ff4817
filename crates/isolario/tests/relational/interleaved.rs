//! Instrumentation changes no outcome: the same interleavings, with and without it.

use std::time::Duration;

use isolario::db::DbUrl;
use isolario::model::Outcome;
use isolario::run::relational::{Settings, replay_script};
use isolario::sql::{
    Action, Bounds, Planner, Product, Recorded, Round, Schema, Script, Step, Style,
};
use isolario_servers::Kind;
use isolario_workload::Rng;

use super::site::start;

/// Two transactions of three sessions each, in an order that follows from the seed.
fn random_script(product: &Product, seed: u64) -> Script {
    let schema = Schema::random(seed, 0, &Bounds::default());
    let mut style = Style::default();
    style.statements = 4;
    let planner = Planner { schema: &schema, product, style: &style, models: &[], seed, round: 0 };
    let mut sessions: Vec<Vec<Step>> = Vec::new();
    for session in 0..3u32 {
        let mut steps = Vec::new();
        for position in 0..2 {
            let txn = 1 + session + 3 * position;
            let step = |action| Step { session, txn, action };
            let planned = planner.transaction(u64::from(session), u64::from(position));
            steps.push(step(Action::Begin));
            steps.extend(planned.statements.into_iter().map(Action::Statement).map(step));
            steps.push(step(if planned.commits { Action::Commit } else { Action::Rollback }));
        }
        steps.reverse();
        sessions.push(steps);
    }
    let mut rng = Rng::derive(seed, &[5]);
    let mut steps = Vec::new();
    while sessions.iter().any(|steps| !steps.is_empty()) {
        let session = rng.below(3) as usize;
        steps.extend(sessions[session].pop());
    }
    Script { schema, steps }
}

/// What came of each transaction: how its statements ended, and how it did itself.
fn classes(round: &Round) -> Vec<(u32, Outcome, Vec<Option<String>>)> {
    let class = |statement: &Recorded| {
        statement.failure.as_ref().map(|f| f.code.clone().unwrap_or_else(|| "other".to_owned()))
    };
    let txns = round.transactions.iter().filter(|txn| !txn.is_final);
    txns.map(|txn| (txn.id, txn.outcome, txn.statements.iter().map(class).collect())).collect()
}

/// Whom a database gives up to end a deadlock, and who is given up for a conflict that may lead to an
/// anomaly, depends on how much each has done and on who asks first.
fn has_victim(round: &Round) -> bool {
    let statements = round.transactions.iter().flat_map(|txn| &txn.statements);
    let codes = statements.filter_map(|statement| statement.failure.as_ref()?.code.as_deref());
    let errors = round.transactions.iter().filter_map(|txn| txn.error.as_deref());
    let is_victim = |text: &str| ["1213", "1205", "40P01", "40001", "SQLITE_BUSY"].contains(&text);
    codes.into_iter().any(is_victim) || errors.into_iter().any(|error| error.contains("40001"))
}

fn is_neutral(url: &str, product: &Product, isolation: &str) {
    // Where nobody sees a deadlock, one ends when a statement has waited for too long.
    let patience = if *product == Product::SQLITE { 300 } else { 4000 };
    let mut compared = 0;
    for seed in 0..12 {
        let script = random_script(product, seed);
        let replayed = |instrumented: bool| {
            let mut settings = Settings::new(vec![DbUrl::parse(url).unwrap()]);
            settings.isolation = Some(isolation.to_owned());
            settings.seed = seed;
            settings.statement_timeout = Duration::from_millis(patience);
            settings.instrumented = instrumented;
            replay_script(&settings, &script).unwrap().0
        };
        let (with, without) = (replayed(true), replayed(false));
        if has_victim(&with) || has_victim(&without) {
            continue;
        }
        assert_eq!(
            classes(&with),
            classes(&without),
            "seed {seed} at {isolation}:\n{}",
            script.to_sql(product, Some(&without))
        );
        compared += 1;
    }
    assert!(compared >= 3, "{compared} at {isolation}");
}

#[test]
fn interleavings_end_the_same_on_sqlite() {
    is_neutral("sqlite:", &Product::SQLITE, "serializable");
}

#[test]
fn interleavings_end_the_same_on_postgres() {
    let servers = start(Kind::Postgres);
    for isolation in ["read-committed", "repeatable-read"] {
        is_neutral(servers.url(), &Product::POSTGRES, isolation);
    }
}

#[test]
fn interleavings_end_the_same_on_mariadb() {
    let servers = start(Kind::MariaDb);
    for isolation in ["read-committed", "repeatable-read"] {
        is_neutral(servers.url(), &Product::MARIADB, isolation);
    }
}
