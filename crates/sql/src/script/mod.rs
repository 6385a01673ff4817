//! A round as a script: the statements of all sessions, in one order.

mod read;

use std::fmt::Write as _;

use isolario_model::{Outcome, Value};

use crate::product::Product;
use crate::round::{Recorded, RecordedTxn, Round};
use crate::schema::Schema;

pub use read::{ScriptError, ScriptProblem};

/// What a session does at its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begins a transaction.
    Begin,
    /// Sends a statement.
    Statement(String),
    /// Commits.
    Commit,
    /// Rolls back.
    Rollback,
}

/// A step of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The session, from 0.
    pub session: u32,
    /// The transaction, from 1.
    pub txn: u32,
    /// What it does.
    pub action: Action,
}

/// Statements of several sessions over a schema, in the order in which they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The schema.
    pub schema: Schema,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Script {
    /// The script of a round, the last looks of its sessions left aside.
    pub fn of(round: &Round, schema: &Schema) -> Script {
        let mut steps: Vec<((u64, u8), Step)> = Vec::new();
        for txn in round.transactions.iter().filter(|txn| !txn.is_final) {
            let mut add = |turn: u64, rank: u8, action: Action| {
                steps.push(((turn, rank), Step { session: txn.session, txn: txn.id, action }));
            };
            let Some(first) = txn.statements.first() else { continue };
            if !txn.autocommit {
                add(first.turn.0, 0, Action::Begin);
            }
            for statement in &txn.statements {
                add(statement.turn.0, 1, Action::Statement(statement.sql.clone()));
            }
            let last = txn.statements.last().map_or(0, |statement| statement.turn.1);
            match (txn.autocommit, txn.outcome) {
                (true, _) => {}
                (_, Outcome::Aborted) => add(last.max(txn.end_turn.0), 2, Action::Rollback),
                _ => add(txn.end_turn.0, 2, Action::Commit),
            }
        }
        steps.sort_by_key(|(turn, _)| *turn);
        let steps = steps.into_iter().map(|(_, step)| step).collect();
        Script { schema: schema.clone(), steps }
    }

    /// Its transactions, in the order in which they begin.
    pub fn txns(&self) -> Vec<u32> {
        let mut txns = Vec::new();
        for step in &self.steps {
            if !txns.contains(&step.txn) {
                txns.push(step.txn);
            }
        }
        txns
    }

    /// The same with its transactions one after the other.
    #[must_use]
    pub fn in_order(&self, txns: &[u32]) -> Script {
        let of = |txn: u32| self.steps.iter().filter(move |step| step.txn == txn);
        let steps = txns.iter().flat_map(|txn| of(*txn)).cloned().collect();
        Script { schema: self.schema.clone(), steps }
    }

    /// The script as SQL that can be pasted into terminals, one per session. Where the round is given
    /// that it comes from, answers stand beside the statements.
    pub fn to_sql(&self, product: &Product, round: Option<&Round>) -> String {
        let mut text = String::from("-- The schema.\n");
        for statement in self.schema.create(product, None) {
            let _ = writeln!(text, "{statement};");
        }
        text += "\n-- The sessions, in the order in which their statements are sent.\n";
        for (at, step) in self.steps.iter().enumerate() {
            let sql = match &step.action {
                Action::Begin => product.begin().to_owned(),
                Action::Statement(sql) => product.respell(sql),
                Action::Commit => "COMMIT".to_owned(),
                Action::Rollback => "ROLLBACK".to_owned(),
            };
            let _ = write!(text, "/* session {}, T{} */ {sql};", step.session + 1, step.txn);
            if let Some(answer) = round.and_then(|round| self.answer(at, round)) {
                let _ = write!(text, "  -- {answer}");
            }
            text.push('\n');
        }
        text
    }

    /// What came back for the statement at a position.
    fn answer(&self, at: usize, round: &Round) -> Option<String> {
        let step = &self.steps[at];
        let Action::Statement(_) = step.action else { return None };
        let txn = round.transactions.iter().find(|txn| txn.id == step.txn)?;
        let is_statement =
            |other: &&Step| other.txn == step.txn && matches!(other.action, Action::Statement(_));
        let number = self.steps[..at].iter().filter(is_statement).count();
        let statement = txn.statements.get(number)?;
        Some(match round.is_in_turn && round.waited(txn, statement) {
            true => format!("waits for another session; then: {}", statement.told()),
            false => statement.told(),
        })
    }
}

impl Recorded {
    /// What came back, in short.
    pub fn told(&self) -> String {
        if let Some(failure) = &self.failure {
            let code = failure.code.as_deref().unwrap_or("error");
            return format!("{code}: {}", failure.message.lines().next().unwrap_or_default());
        }
        if self.kind.is_read() {
            let row = |row: &Vec<Value>| {
                let values: Vec<String> = row.iter().map(in_sql).collect();
                format!("({})", values.join(", "))
            };
            let rows: Vec<String> = self.rows.iter().map(row).collect();
            return if rows.is_empty() { "no rows".to_owned() } else { rows.join(", ") };
        }
        match self.deleted.len().max(usize::try_from(self.changed).unwrap_or(0)) {
            1 => "1 row".to_owned(),
            count => format!("{count} rows"),
        }
    }
}

/// A value in the words of SQL.
fn in_sql(value: &Value) -> String {
    match value {
        Value::Nil => "NULL".to_owned(),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}

impl RecordedTxn {
    /// The statements that held, by kind.
    pub fn kinds(&self) -> impl Iterator<Item = crate::StatementKind> + '_ {
        self.statements.iter().filter(|statement| statement.holds()).map(|statement| statement.kind)
    }
}
