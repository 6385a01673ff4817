//! A few transactions as SQL, to be typed into as many terminals as there are sessions.

use std::fmt::Write;

use isolario_model::{History, Op, OpId, Outcome, RunRecord, TxnId, Value, ValueId, ValueRef};

use crate::names::Names;
use crate::printable::printable;
use crate::schedule::{Schedule, Step, What};

/// How wide terminals are in all before they are no longer set beside each other.
const WIDEST: usize = 170;
/// The room between two terminals.
const GAP: usize = 3;

/// How databases differ in what the transactions of a run need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Postgres,
    Mysql,
    Sqlite,
}

impl Dialect {
    /// That of a database, by its name in the record of a run.
    fn of(database: &str) -> Option<Dialect> {
        match database {
            "postgres" | "cockroach" => Some(Dialect::Postgres),
            "mysql" | "mariadb" | "galera" | "tidb" => Some(Dialect::Mysql),
            "sqlite" => Some(Dialect::Sqlite),
            _ => None,
        }
    }
}

/// Statements that do what transactions did.
pub(crate) struct Script {
    /// What makes the tables, before anything else.
    pub(crate) setup: Vec<String>,
    /// What each terminal is called.
    pub(crate) terminals: Vec<String>,
    /// Statements in the order of the schedule, each with the number of its terminal.
    pub(crate) statements: Vec<(usize, String)>,
}

impl Script {
    /// That of a schedule: the statements that were recorded, or those by which a run asks a database for
    /// the same. Nothing where neither is known.
    pub(crate) fn of(
        history: &History,
        schedule: &Schedule,
        run: Option<&RunRecord>,
    ) -> Option<Script> {
        let is_recorded = history
            .txns()
            .flat_map(|txn| history.txn_ops(txn))
            .all(|op| history.op_sql(op).is_some());
        let run = run.map(|run| (run, Dialect::of(&run.database)));
        let writer = match run {
            _ if is_recorded => Writer { history, dialect: None, run: run.map(|(run, _)| run) },
            Some((run, Some(dialect))) => {
                Writer { history, dialect: Some(dialect), run: Some(run) }
            }
            _ => return None,
        };
        let mut statements: Vec<(usize, String)> = Vec::new();
        for terminal in 0..schedule.sessions.len() {
            statements.extend(writer.opening().into_iter().map(|statement| (terminal, statement)));
        }
        for step in &schedule.steps {
            statements.extend(writer.step(step)?.map(|statement| (step.column, statement)));
        }
        if is_recorded {
            // One statement may be several operations.
            statements.dedup();
        }
        let terminals = (0..schedule.sessions.len()).map(|at| writer.terminal(schedule, at));
        Some(Script { setup: writer.setup()?, terminals: terminals.collect(), statements })
    }

    /// How to go through it.
    pub(crate) fn lead(&self) -> &'static str {
        match self.setup.is_empty() {
            true => "Line by line, from top to bottom:",
            false => "Then line by line, from top to bottom; what the run saw stands behind it:",
        }
    }

    /// The terminals beside each other, time downwards; where they are too wide for that, each statement
    /// after the name of its terminal.
    pub(crate) fn side_by_side(&self) -> String {
        let width = |terminal: usize| {
            let own = self.statements.iter().filter(|(at, _)| *at == terminal);
            let statements = own.map(|(_, statement)| statement.chars().count());
            statements.chain([self.terminals[terminal].chars().count() + 3]).max().unwrap_or(0)
        };
        let indents: Vec<usize> = (0..=self.terminals.len())
            .map(|terminal| (0..terminal).map(|before| width(before) + GAP).sum())
            .collect();
        if indents.last().is_some_and(|all| *all > WIDEST) {
            return self.one_by_one();
        }
        let mut text = String::new();
        for (indent, terminal) in indents.iter().zip(&self.terminals) {
            let gap = indent - text.chars().count().min(*indent);
            // Writing to a string does not fail, here and below.
            let _ = write!(text, "{}-- {terminal}", " ".repeat(gap));
        }
        for (terminal, statement) in &self.statements {
            let _ = write!(text, "\n{}{statement}", " ".repeat(indents[*terminal]));
        }
        text
    }

    fn one_by_one(&self) -> String {
        let name = |terminal: &usize| {
            let name = &self.terminals[*terminal];
            format!("/* {} */", name.split(',').next().unwrap_or(name))
        };
        let widest =
            (0..self.terminals.len()).map(|at| name(&at).chars().count()).max().unwrap_or(0);
        let line = |(terminal, statement): &(usize, String)| {
            format!("{:widest$} {statement}", name(terminal))
        };
        self.statements.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The statements of one terminal.
    pub(crate) fn of_terminal(&self, terminal: usize) -> String {
        let own = self.statements.iter().filter(|(at, _)| *at == terminal);
        own.map(|(_, statement)| statement.as_str()).collect::<Vec<_>>().join("\n")
    }
}

struct Writer<'h> {
    history: &'h History,
    /// None where statements were recorded.
    dialect: Option<Dialect>,
    run: Option<&'h RunRecord>,
}

impl Writer<'_> {
    /// The session, and the node that it spoke to where there are several: sessions go round them.
    fn terminal(&self, schedule: &Schedule, at: usize) -> String {
        let name = self.history.session_name(schedule.sessions[at]);
        let nodes = self.run.map_or(&[][..], |run| &run.urls);
        let node = match name {
            ValueRef::Int(number) if nodes.len() > 1 => {
                let node = number.unsigned_abs() as usize % nodes.len();
                format!(", on {}", printable(&nodes[node]))
            }
            _ => String::new(),
        };
        format!("session {}{node}", printable(&name.to_string()))
    }

    /// The isolation level, as SQL spells it.
    fn level(&self) -> String {
        let isolation = self.run.map_or("", |run| run.isolation.as_str());
        match isolation {
            "innodb-snapshot-isolation" => "REPEATABLE READ".to_owned(),
            other => other.to_uppercase().replace('-', " "),
        }
    }

    /// What a session says first.
    fn opening(&self) -> Vec<String> {
        if self.dialect != Some(Dialect::Mysql) {
            return Vec::new();
        }
        let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {};", self.level());
        let is_special = self.run.is_some_and(|run| run.isolation == "innodb-snapshot-isolation");
        let special = is_special.then(|| "SET SESSION innodb_snapshot_isolation = ON;".to_owned());
        special.into_iter().chain([level]).collect()
    }

    /// The statement of a step. The outer option says whether it can be put as one; some steps need none.
    fn step(&self, step: &Step) -> Option<Option<String>> {
        let is_single = self.run.is_some_and(|run| run.workload.kind == "lwt");
        match step.what {
            What::Begin | What::End if is_single => Some(None),
            What::Begin => Some(Some(self.begin(step.txn))),
            What::Op(op) => match self.dialect {
                None => self.history.op_sql(op).map(|sql| Some(ended(sql))),
                Some(dialect) => self.op(dialect, op).map(Some),
            },
            What::End => Some(Some(match self.history.outcome(step.txn) {
                Outcome::Committed => "COMMIT;".to_owned(),
                Outcome::Aborted => "ROLLBACK;".to_owned(),
                Outcome::Unknown => "COMMIT; -- no answer".to_owned(),
            })),
        }
    }

    fn begin(&self, txn: TxnId) -> String {
        match self.dialect {
            None => "BEGIN;".to_owned(),
            Some(Dialect::Postgres) => format!("BEGIN ISOLATION LEVEL {};", self.level()),
            Some(Dialect::Mysql) => "START TRANSACTION;".to_owned(),
            Some(Dialect::Sqlite) => {
                let mut ops = self.history.txn_ops(txn).map(|op| self.history.op(op));
                let reads = ops.all(|op| matches!(op, Op::Read { .. } | Op::ReadList { .. }));
                if reads { "BEGIN;" } else { "BEGIN IMMEDIATE;" }.to_owned()
            }
        }
    }

    fn op(&self, dialect: Dialect, op: OpId) -> Option<String> {
        let key = |key| literal(self.history.key_name(key));
        let value = |value: ValueId| literal(self.history.value(value));
        let seen = |value: ValueId| match self.history.value(value) {
            ValueRef::Nil => "NULL".to_owned(),
            _ => Names::new(self.history).value(value),
        };
        Some(match self.history.op(op) {
            Op::Read { key: k, value: saw } => {
                let saw = saw.map_or(String::new(), |saw| format!(" -- {}", seen(saw)));
                format!("SELECT v FROM isolario_register WHERE k = {};{saw}", key(k)?)
            }
            Op::Write { key: k, value: v } => {
                format!("UPDATE isolario_register SET v = {} WHERE k = {};", value(v)?, key(k)?)
            }
            Op::Delete { key: k } => {
                format!("UPDATE isolario_register SET v = NULL WHERE k = {};", key(k)?)
            }
            Op::Append { key: k, element } => appended(dialect, &key(k)?, &value(element)?),
            Op::ReadList { key: k, elements } => {
                let saw = elements.map_or(String::new(), |elements| {
                    let all: Vec<String> = elements.iter().map(|one| seen(*one)).collect();
                    if all.is_empty() {
                        " -- no row".to_owned()
                    } else {
                        format!(" -- {}", all.join(", "))
                    }
                });
                let order = if dialect == Dialect::Sqlite { " ORDER BY n" } else { "" };
                format!("SELECT e FROM isolario_list WHERE k = {}{order};{saw}", key(k)?)
            }
            Op::InsertIfAbsent { key: k, value: v, applied, .. } => {
                let (k, v) = (key(k)?, value(v)?);
                let rows = rows(applied);
                format!("UPDATE isolario_register SET v = {v} WHERE k = {k} AND v IS NULL;{rows}")
            }
            Op::CompareAndSet { key: k, expected, new, applied, .. } => {
                let (k, old, new, rows) = (key(k)?, value(expected)?, value(new)?, rows(applied));
                format!("UPDATE isolario_register SET v = {new} WHERE k = {k} AND v = {old};{rows}")
            }
            _ => return None,
        })
    }

    /// The tables, with a row per register.
    fn setup(&self) -> Option<Vec<String>> {
        let Some(dialect) = self.dialect else { return Some(Vec::new()) };
        let mut registers = Vec::new();
        let mut has_lists = false;
        for op in self.history.txns().flat_map(|txn| self.history.txn_ops(txn)) {
            match self.history.op(op) {
                Op::Append { .. } | Op::ReadList { .. } => has_lists = true,
                other => registers.extend(other.key()),
            }
        }
        registers.sort_unstable();
        registers.dedup();
        let mut setup = Vec::new();
        if !registers.is_empty() {
            setup.push(
                "CREATE TABLE isolario_register (k BIGINT PRIMARY KEY, v BIGINT);".to_owned(),
            );
            let initial = self.history.initial_value().map_or(ValueRef::Nil, Value::as_ref);
            let initial = literal(initial)?;
            let row = |key| Some(format!("({}, {initial})", literal(self.history.key_name(key))?));
            let rows: Option<Vec<String>> = registers.into_iter().map(row).collect();
            setup.push(format!("INSERT INTO isolario_register VALUES {};", rows?.join(", ")));
        }
        let list = match dialect {
            Dialect::Postgres => "(k BIGINT PRIMARY KEY, e BIGINT[] NOT NULL)",
            Dialect::Mysql => "(k BIGINT PRIMARY KEY, e LONGTEXT NOT NULL)",
            Dialect::Sqlite => "(k BIGINT, n INTEGER, e BIGINT NOT NULL, PRIMARY KEY (k, n))",
        };
        setup.extend(has_lists.then(|| format!("CREATE TABLE isolario_list {list};")));
        Some(setup)
    }
}

fn appended(dialect: Dialect, key: &str, element: &str) -> String {
    match dialect {
        Dialect::Postgres => format!(
            "INSERT INTO isolario_list AS l VALUES ({key}, ARRAY[{element}]) ON CONFLICT (k) DO UPDATE \
             SET e = l.e || {element}::BIGINT;"
        ),
        Dialect::Mysql => format!(
            "INSERT INTO isolario_list VALUES ({key}, '{element}') ON DUPLICATE KEY UPDATE e = \
             CONCAT(e, ',{element}');"
        ),
        Dialect::Sqlite => format!(
            "INSERT INTO isolario_list SELECT {key}, ifnull(max(n), 0) + 1, {element} FROM isolario_list \
             WHERE k = {key};"
        ),
    }
}

/// How many rows a conditional write changed.
fn rows(applied: Option<bool>) -> &'static str {
    match applied {
        Some(true) => " -- 1 row",
        Some(false) => " -- no row",
        None => "",
    }
}

/// Runs ask for numbers alone.
fn literal(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Int(int) => Some(int.to_string()),
        ValueRef::Nil => Some("NULL".to_owned()),
        _ => None,
    }
}

/// A statement on one line, with a semicolon.
fn ended(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{};", printable(line.trim_end_matches(';')))
}
