//! Scripts of interleavings: who does what when, one step after the other.
//!
//! A [`Script`] names sessions and lists their steps in the order in which they are to be sent. A
//! [`ScriptRunner`] plays it against a database, each session on a connection and a thread of its own. A
//! step that has to wait for another session is put off, with all that its session was to do next,
//! and the others go on: the script needs not know which database it will meet.
//!
//! ```
//! use isolario_run::script::{Script, ScriptRunner};
//! use isolario_db::{DbUrl, Settings, open};
//!
//! let script = Script::parse(
//!     "dirty-read",
//!     "anomaly AbortedRead
//!      setup: write x 1
//!      T1: begin
//!      T1: write x 2
//!      T2: begin
//!      T2: read x      --> 2
//!      T1: rollback
//!      T2: commit",
//! )?;
//! let database = open(&DbUrl::parse("sqlite:")?, &Settings::default())?;
//! let play = ScriptRunner::new(&[database])?.play(&script)?;
//! assert!(!play.went_as_written(&script));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The book's page on probes describes the file format.

mod answer;
mod parse;
mod play;
mod worker;

use isolario_model::{AnomalyKind, Level};

pub use answer::{Expectation, ExpectedAnswer};
pub use parse::ScriptError;
pub use play::{ScriptEvent, ScriptRun, ScriptRunner, StepResult};
pub use worker::Reply;

/// An interleaving of sessions. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Script {
    /// What it is called: the name of its file.
    pub name: String,
    /// What a table calls it.
    pub title: String,
    /// What happens in it, in a sentence or two.
    pub about: String,
    /// The anomaly that has happened if all goes as written.
    pub anomaly: Option<AnomalyKind>,
    /// The weakest levels that forbid what is written: those of the anomaly, unless the script says
    /// otherwise.
    pub forbidden_by: Vec<Level>,
    /// The databases it is for, by their names in the table of claims; none where it is for all.
    pub databases: Vec<String>,
    /// How many nodes it takes to have a meaning.
    pub nodes: usize,
    /// How often it is tried until it goes as written, where that is a matter of chance.
    pub tries: u32,
    /// What its statements are about.
    pub family: ScriptFamily,
    /// The names of registers or lists.
    pub keys: Vec<String>,
    /// The names of sessions, in the order of their first steps.
    pub sessions: Vec<String>,
    /// What they do, in the order of the script.
    pub steps: Vec<ScriptStep>,
}

/// What the statements of a script are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScriptFamily {
    /// Registers: every database has them.
    Registers,
    /// Lists.
    Lists,
    /// Statements in SQL.
    Sql,
}

/// What one session does next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptStep {
    /// The line of the script, from 1.
    pub line: u32,
    /// The session, by its position.
    pub session: usize,
    /// What it does.
    pub action: ScriptAction,
    /// What is to come of it, if all goes as written.
    pub expected: Expectation,
    /// Whether it is sent together with the step before it, not after that one's answer.
    pub together: bool,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScriptAction {
    /// Begins a transaction.
    Begin {
        /// The node that it runs on, from 0; where there are fewer nodes, they are counted round.
        node: usize,
        /// Whether it writes.
        writes: bool,
    },
    /// Commits it.
    Commit,
    /// Gives it up.
    Rollback,
    /// Reads a register, by its position among the keys.
    Read(usize),
    /// Writes a register.
    Write(usize, i64),
    /// Deletes a register.
    Delete(usize),
    /// Reads a list.
    ReadList(usize),
    /// Appends to a list.
    Append(usize, i64),
    /// A statement in SQL.
    Sql(String),
}

impl ScriptAction {
    /// Whether it ends a transaction.
    pub fn is_end(&self) -> bool {
        matches!(self, ScriptAction::Commit | ScriptAction::Rollback)
    }

    fn writes(&self) -> bool {
        // What a statement in SQL does is the database's business.
        matches!(
            self,
            ScriptAction::Write(..)
                | ScriptAction::Delete(_)
                | ScriptAction::Append(..)
                | ScriptAction::Sql(_)
        )
    }
}

impl Script {
    /// A step as the script has it: `read x`.
    pub fn action_text(&self, action: &ScriptAction) -> String {
        let key = |key: &usize| self.keys.get(*key).map_or("?", String::as_str);
        match action {
            ScriptAction::Begin { node: 0, .. } => "begin".to_owned(),
            ScriptAction::Begin { node, .. } => format!("begin @{}", node + 1),
            ScriptAction::Commit => "commit".to_owned(),
            ScriptAction::Rollback => "rollback".to_owned(),
            ScriptAction::Read(register) => format!("read {}", key(register)),
            ScriptAction::Write(register, value) => format!("write {} {value}", key(register)),
            ScriptAction::Delete(register) => format!("delete {}", key(register)),
            ScriptAction::ReadList(list) => format!("read {}", key(list)),
            ScriptAction::Append(list, element) => format!("append {} {element}", key(list)),
            ScriptAction::Sql(sql) => sql.clone(),
        }
    }

    /// Whether some steps are sent at the same time, so that the order of events is open.
    pub fn is_race(&self) -> bool {
        self.steps.iter().any(|step| step.together)
    }

    /// Whether a session goes from one node to another.
    pub fn moves_sessions(&self) -> bool {
        let begun = self.steps.iter().filter_map(|step| match step.action {
            ScriptAction::Begin { node, .. } => Some((step.session, node)),
            _ => None,
        });
        let begun: Vec<_> = begun.collect();
        begun.iter().any(|(session, node)| {
            begun.iter().any(|(other, elsewhere)| other == session && elsewhere != node)
        })
    }

    /// Whether every transaction reads a register before it writes it, so that the order of
    /// versions can be told.
    pub fn reads_before_writes(&self) -> bool {
        let mut read: Vec<Vec<usize>> = vec![Vec::new(); self.sessions.len()];
        self.steps.iter().all(|step| {
            let known = &mut read[step.session];
            match step.action {
                ScriptAction::Begin { .. } => known.clear(),
                ScriptAction::Read(key) => known.push(key),
                ScriptAction::Write(key, _) | ScriptAction::Delete(key) => {
                    return known.contains(&key);
                }
                _ => {}
            }
            true
        })
    }
}
