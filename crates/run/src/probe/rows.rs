//! What the statements of a play in SQL did to the rows of its table.
//!
//! A server returns the rows that a query found. Of a write by condition it says only how many rows
//! it changed. Which ones follows from the conditions, where so many rows ever held something that
//! satisfies them, or from the rows that are left when all is over. Where neither tells, nothing is
//! recorded.

use std::collections::{BTreeMap, BTreeSet};

use crate::script::{Reply, Script, ScriptAction, ScriptRun, ScriptStep};
use isolario_model::{Op, OpInput, RowInput, RowRef, SinkError, TupleParts, Value, ValueRef};
use isolario_predicate::Predicate;

use super::statement::{KEY, Selection, Statement, TABLE, VALUE, Which};

/// Tells an operation to a history.
type Tell<'t> = dyn FnMut(&OpInput<'_>) -> Result<(), SinkError> + 't;

/// The statements of a script that were answered, and what is known of the rows.
pub(super) struct Rows<'a> {
    script: &'a Script,
    /// By step.
    statements: Vec<Option<Statement>>,
    /// The rows that are left when all is over, where the script asks for them.
    left: Option<BTreeMap<i64, i64>>,
}

/// What a statement did: rows by key, with what they hold, or nothing where they are gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect<'a> {
    /// A row was read by its key.
    Read(i64, Option<i64>),
    /// Rows were written by their keys.
    Write(Vec<(i64, Option<i64>)>),
    /// Rows were read by a condition.
    ReadMatching(&'a Predicate, Vec<(i64, Option<i64>)>),
    /// Rows were written by a condition.
    WriteMatching(&'a Predicate, Vec<(i64, Option<i64>)>),
    /// There is nothing to tell.
    None,
}

impl<'a> Rows<'a> {
    /// Understands the statements that were answered; says of which one it cannot be told what it
    /// did, otherwise.
    pub(super) fn new(script: &'a Script, play: &ScriptRun) -> Result<Rows<'a>, String> {
        let mut rows = Rows { script, statements: Vec::new(), left: None };
        for (step, turn) in script.steps.iter().zip(&play.turns) {
            rows.statements.push(match (&step.action, &turn.result) {
                (ScriptAction::Sql(text), Some(_)) => {
                    Some(Statement::parse(text).map_err(|what| untold(step, &what))?)
                }
                _ => None,
            });
        }
        if let Some(step) = rows.undone_write() {
            return Err(untold(step, "what is left of the writes before it"));
        }
        let is_last = |at: &usize| script.sessions[script.steps[*at].session] == "finally";
        for at in (0..rows.statements.len()).filter(is_last) {
            if let (Some(Statement::Select(selection)), Some(Ok(Reply::Rows { rows: found, .. }))) =
                (&rows.statements[at], &play.turns[at].result)
                && selection.is_whole_table()
            {
                let found =
                    selection.rows(found).map_err(|what| untold(&script.steps[at], &what))?;
                rows.left = Some(found.into_iter().collect());
            }
        }
        Ok(rows)
    }

    /// A return to a savepoint in a transaction that wrote something before.
    fn undone_write(&self) -> Option<&'a ScriptStep> {
        let steps = self.script.steps.iter().zip(&self.statements);
        let mut has_written = vec![false; self.script.sessions.len()];
        for (step, statement) in steps {
            let own = &mut has_written[step.session];
            match statement {
                Some(Statement::RollbackTo) if *own => return Some(step),
                Some(Statement::Nothing | Statement::RollbackTo | Statement::Select(_)) => {}
                Some(_) => *own = true,
                None if matches!(step.action, ScriptAction::Begin { .. }) => *own = false,
                None => {}
            }
        }
        None
    }

    /// By key, every value that a row may have held when a statement met it. A write by condition may
    /// have written any row.
    fn held(&self, at: usize) -> BTreeMap<i64, BTreeSet<i64>> {
        let keys: BTreeSet<i64> = self.statements.iter().flatten().flat_map(inserted).collect();
        let mut held: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        let others = self.statements.iter().enumerate().filter(|(other, _)| *other != at);
        for statement in others.flat_map(|(_, statement)| statement) {
            match statement {
                Statement::Insert(new) => {
                    for (key, value) in new {
                        held.entry(*key).or_default().insert(*value);
                    }
                }
                Statement::Update(Which::Key(key), value) => {
                    held.entry(*key).or_default().insert(*value);
                }
                Statement::Update(_, value) | Statement::UpdateCurrent(_, value) => {
                    for key in &keys {
                        held.entry(*key).or_default().insert(*value);
                    }
                }
                _ => {}
            }
        }
        held
    }

    /// What a step did, by its answer; nothing is known of one that failed but what it would have
    /// written.
    pub(super) fn effect(&self, at: usize, reply: Option<&Reply>) -> Result<Effect<'_>, String> {
        let Some(statement) = &self.statements[at] else { return Ok(Effect::None) };
        let (found, changed) = match reply {
            Some(Reply::Rows { rows, changed }) => (rows.as_slice(), Some(*changed)),
            _ => (&[][..], None),
        };
        let told = |what: String| untold(&self.script.steps[at], &what);
        match (statement, changed) {
            (Statement::Insert(new), _) => {
                Ok(Effect::Write(new.iter().map(|(key, value)| (*key, Some(*value))).collect()))
            }
            (Statement::Select(selection), Some(_)) => selection.effect(found).map_err(told),
            (Statement::Fetch(cursor), Some(_)) => {
                self.cursor(at, cursor).and_then(|over| over.effect(found)).map_err(told)
            }
            (Statement::Update(which, value), _) => {
                self.written(at, which, Some(*value), changed).map_err(told)
            }
            (Statement::Delete(which), _) => self.written(at, which, None, changed).map_err(told),
            (Statement::UpdateCurrent(cursor, value), _) => {
                let over = self.cursor(at, cursor).map_err(told)?;
                self.written(at, &over.which, Some(*value), changed).map_err(told)
            }
            _ => Ok(Effect::None),
        }
    }

    /// The query of a cursor: the last one of that name in the session.
    fn cursor(&self, at: usize, name: &str) -> Result<&Selection, String> {
        let session = self.script.steps[at].session;
        let declared = (0..at).rev().find_map(|before| match &self.statements[before] {
            Some(Statement::Declare(declared, over))
                if declared == name && self.script.steps[before].session == session =>
            {
                Some(over)
            }
            _ => None,
        });
        declared.ok_or_else(|| format!("what the cursor {name} is over"))
    }

    /// What a write did that changed so many rows.
    fn written<'s>(
        &'s self,
        at: usize,
        which: &'s Which,
        value: Option<i64>,
        changed: Option<u64>,
    ) -> Result<Effect<'s>, String> {
        match (which, changed) {
            // A row that is not there was looked for.
            (Which::Key(key), Some(0)) => Ok(Effect::Read(*key, None)),
            (Which::Key(key), _) => Ok(Effect::Write(vec![(*key, value)])),
            (Which::Matching(_), None) => Ok(Effect::None),
            (Which::Matching(predicate), Some(changed)) => {
                let keys = self.changed(at, predicate, value, changed)?;
                let rows = keys.into_iter().map(|key| (key, value)).collect();
                Ok(Effect::WriteMatching(predicate, rows))
            }
        }
    }

    /// The rows that a write by condition changed, by key.
    fn changed(
        &self,
        at: usize,
        predicate: &Predicate,
        value: Option<i64>,
        changed: u64,
    ) -> Result<Vec<i64>, String> {
        let mut candidates = Vec::new();
        for (key, held) in self.held(at) {
            let mut any = false;
            for value in held {
                any |= matches(key, value, predicate)?;
            }
            if any {
                candidates.push(key);
            }
        }
        if changed == 0 {
            return Ok(Vec::new());
        }
        if candidates.len() as u64 != changed {
            let shows = |key: &i64| self.is_left_by(at, *key, value);
            candidates.retain(shows);
        }
        match candidates.len() as u64 == changed {
            true => Ok(candidates),
            false => Err(format!("which rows it changed ({changed} in all)")),
        }
    }

    /// Whether the rows that are left show that this statement, and no other one, wrote that value.
    fn is_left_by(&self, at: usize, key: i64, value: Option<i64>) -> bool {
        let Some(left) = &self.left else { return false };
        let may_write = |other: &Statement| match (other, value) {
            (Statement::Delete(_), None) => true,
            (Statement::Insert(new), _) => new.iter().any(|(k, v)| *k == key && Some(*v) == value),
            (Statement::Update(_, written) | Statement::UpdateCurrent(_, written), Some(value)) => {
                *written == value
            }
            _ => false,
        };
        let others = self.statements.iter().enumerate().filter(|(other, _)| *other != at);
        let is_only = !others.flat_map(|(_, other)| other).any(may_write);
        // A row that was inserted twice may have been deleted in between.
        let keys = self.statements.iter().flatten().flat_map(inserted);
        is_only
            && keys.filter(|inserted| *inserted == key).count() == 1
            && left.get(&key).copied() == value
    }
}

fn untold(step: &ScriptStep, what: &str) -> String {
    format!("line {}: it is not known {what}", step.line)
}

/// The keys that a statement inserts.
fn inserted(statement: &Statement) -> impl Iterator<Item = i64> + '_ {
    let new = match statement {
        Statement::Insert(new) => new.as_slice(),
        _ => &[],
    };
    new.iter().map(|(key, _)| *key)
}

impl Selection {
    fn is_whole_table(&self) -> bool {
        Which::parse("").is_ok_and(|all| all == self.which)
    }

    /// The rows of an answer.
    fn rows(&self, found: &[Vec<Value>]) -> Result<Vec<(i64, i64)>, String> {
        let column = |row: &[Value], at: usize| {
            let value = row.get(at).and_then(whole);
            value.ok_or_else(|| "what a row held that is no whole number".to_owned())
        };
        let row = |row: &Vec<Value>| {
            let key = match (self.key_at, &self.which) {
                (Some(at), _) => column(row, at)?,
                (None, Which::Key(key)) => *key,
                (None, Which::Matching(_)) => return Err("which row was returned".to_owned()),
            };
            Ok((key, column(row, self.value_at)?))
        };
        found.iter().map(row).collect()
    }

    fn effect(&self, found: &[Vec<Value>]) -> Result<Effect<'_>, String> {
        let rows = self.rows(found)?;
        Ok(match &self.which {
            Which::Key(key) => Effect::Read(*key, rows.first().map(|(_, value)| *value)),
            Which::Matching(predicate) => Effect::ReadMatching(
                predicate,
                rows.into_iter().map(|(key, value)| (key, Some(value))).collect(),
            ),
        })
    }
}

/// A whole number, whichever type the database gives it.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int(int) => Some(*int),
        Value::Uint(uint) => i64::try_from(*uint).ok(),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

type Columns = [(&'static str, ValueRef<'static>); 1];

fn key_columns(key: i64) -> Columns {
    [(KEY, key.into())]
}

fn value_columns(value: i64) -> Columns {
    [(VALUE, value.into())]
}

fn key_of(columns: &Columns) -> TupleParts<'_> {
    TupleParts { table: TABLE, columns }
}

fn value_of(columns: &Columns) -> TupleParts<'_> {
    TupleParts { table: "", columns }
}

fn matches(key: i64, value: i64, predicate: &Predicate) -> Result<bool, String> {
    let (key, value) = (key_columns(key), value_columns(value));
    let (key, value) = (key_of(&key), value_of(&value));
    let row = RowRef { key: (&key).into(), value: (&value).into() };
    row.matches_everywhere(predicate).map_err(|_| format!("which rows satisfy {predicate}"))
}

impl Effect<'_> {
    /// Tells it to a history.
    pub(super) fn tell(&self, tell: &mut Tell<'_>) -> Result<(), SinkError> {
        match self {
            Effect::None => Ok(()),
            Effect::Read(key, held) => {
                one(*key, *held, &mut |key, value| tell(&Op::Read { key, value: Some(value) }))
            }
            Effect::Write(rows) => rows.iter().try_for_each(|(key, held)| {
                one(*key, *held, &mut |key, value| {
                    tell(&match value {
                        ValueRef::Nil => Op::Delete { key },
                        value => Op::Write { key, value },
                    })
                })
            }),
            Effect::ReadMatching(predicate, rows) => {
                many(rows, &mut |rows| tell(&Op::PredicateRead { predicate, rows: Some(rows) }))
            }
            Effect::WriteMatching(predicate, rows) => {
                many(rows, &mut |rows| tell(&Op::PredicateWrite { predicate, rows: Some(rows) }))
            }
        }
    }
}

/// Gives a row as histories have it.
fn one(
    key: i64,
    held: Option<i64>,
    give: &mut dyn FnMut(ValueRef<'_>, ValueRef<'_>) -> Result<(), SinkError>,
) -> Result<(), SinkError> {
    many(&[(key, held)], &mut |rows| rows.iter().try_for_each(|row| give(row.key, row.value)))
}

/// Gives rows as histories have them.
fn many(
    rows: &[(i64, Option<i64>)],
    give: &mut dyn FnMut(&[RowInput<'_>]) -> Result<(), SinkError>,
) -> Result<(), SinkError> {
    let columns: Vec<_> =
        rows.iter().map(|(key, held)| (key_columns(*key), held.map(value_columns))).collect();
    let parts: Vec<_> =
        columns.iter().map(|(key, held)| (key_of(key), held.as_ref().map(value_of))).collect();
    let rows: Vec<RowInput<'_>> = parts
        .iter()
        .map(|(key, held)| RowInput::new(key, held.as_ref().map_or(ValueRef::Nil, ValueRef::from)))
        .collect();
    give(&rows)
}

#[cfg(test)]
mod tests {
    use crate::script::ScriptRunner;
    use isolario_db::{DbUrl, Settings, open};

    use super::*;

    /// What the last statement of a script did, on an engine that gives strict serializability.
    fn last_write(text: &str) -> Result<String, String> {
        let script = Script::parse("test", text).unwrap();
        let nodes = [open(&DbUrl::parse("sqlite:").unwrap(), &Settings::default()).unwrap()];
        let play = ScriptRunner::new(&nodes).unwrap().play(&script).unwrap();
        let rows = Rows::new(&script, &play)?;
        let is_write =
            |step: &ScriptStep| matches!(&step.action, ScriptAction::Sql(s) if !s.starts_with('S'));
        let at = script.steps.iter().rposition(is_write).unwrap();
        let reply = play.turns[at].result.as_ref().and_then(|result| result.as_ref().ok());
        rows.effect(at, reply).map(|effect| match effect {
            Effect::Write(rows) => format!("{rows:?}"),
            Effect::WriteMatching(predicate, rows) => format!("{predicate}: {rows:?}"),
            other => format!("{other:?}"),
        })
    }

    const SETUP: &str = "setup: INSERT INTO isolario_register VALUES (1, 10), (2, 20)\nT1: begin\n";

    #[test]
    fn conditions_tell_which_rows_were_written() {
        let after = |steps: &str| last_write(&format!("{SETUP}{steps}\nT1: commit"));
        for (steps, wrote) in [
            ("T1: UPDATE isolario_register SET v = 12 WHERE k = 1", "[(1, Some(12))]"),
            ("T1: UPDATE isolario_register SET v = 12 WHERE k = 3", "Read(3, None)"),
            (
                "T1: UPDATE isolario_register SET v = 12 WHERE v < 15",
                "FROM isolario_register WHERE v < 15: [(1, Some(12))]",
            ),
            (
                "T1: DELETE FROM isolario_register WHERE v % 10 = 0",
                "FROM isolario_register WHERE v % 10 = 0: [(1, None), (2, None)]",
            ),
            (
                "T1: DELETE FROM isolario_register WHERE v = 30",
                "FROM isolario_register WHERE v = 30: []",
            ),
        ] {
            assert_eq!(after(steps).as_deref(), Ok(wrote), "{steps}");
        }
    }

    /// Row 1 holds 20 after the update, and row 2 held it before.
    #[test]
    fn where_conditions_do_not_tell_the_rows_that_are_left_may() {
        let moved = "T1: UPDATE isolario_register SET v = 20 WHERE k = 1\n\
                     T1: UPDATE isolario_register SET v = 30 WHERE k = 2\n\
                     T1: DELETE FROM isolario_register WHERE v = 20\nT1: commit\n";
        let script = format!("{SETUP}{moved}");
        let unclear = last_write(&script).unwrap_err();
        assert_eq!(unclear, "line 5: it is not known which rows it changed (1 in all)");
        let told = last_write(&format!("{script}finally: SELECT k, v FROM isolario_register"));
        assert_eq!(told.as_deref(), Ok("FROM isolario_register WHERE v = 20: [(1, None)]"));
        // Of two deletes, that says nothing.
        let first = "T1: DELETE FROM isolario_register WHERE k = 2\nT1: DELETE";
        let two =
            script.replacen("T1: DELETE", first, 1).replace("v = 20\nT1: c", "v >= 20\nT1: c");
        let told = last_write(&format!("{two}finally: SELECT k, v FROM isolario_register"));
        assert!(told.is_err(), "{told:?}");
    }
}
