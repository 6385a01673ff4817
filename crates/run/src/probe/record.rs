//! A play as a history: what its clients asked for and saw, and when.

use std::time::Duration;

use crate::script::{Reply, Script, ScriptAction, ScriptFamily, ScriptRun, StepResult};
use isolario_model::{
    Batch, History, Meta, Op, Outcome, SinkError, TxnEnd, TxnSink, TxnStart, Value,
};

use super::rows::Rows;

/// Why there is no history of a play.
pub(super) enum NoHistory {
    /// Nobody can tell what a statement in SQL did.
    Untold(String),
    /// It was told, and cannot be.
    Refused(SinkError),
}

impl From<SinkError> for NoHistory {
    fn from(error: SinkError) -> NoHistory {
        NoHistory::Refused(error)
    }
}

pub(super) fn history(script: &Script, play: &ScriptRun) -> Result<History, NoHistory> {
    let rows = match script.family {
        ScriptFamily::Sql => Some(Rows::new(script, play).map_err(NoHistory::Untold)?),
        _ => None,
    };
    let rows = rows.as_ref();
    let mut batch = Batch::new();
    batch.meta(&Meta::default())?;
    for session in 0..script.sessions.len() {
        Session { script, rows, session, batch: &mut batch, txns: 0, begun: None }.record(play)?;
    }
    Ok(batch.build()?)
}

struct Session<'a> {
    script: &'a Script,
    /// What statements in SQL did.
    rows: Option<&'a Rows<'a>>,
    session: usize,
    batch: &'a mut Batch,
    /// How many transactions it has begun.
    txns: u32,
    /// When the open one began.
    begun: Option<Duration>,
}

impl Session<'_> {
    fn record(&mut self, play: &ScriptRun) -> Result<(), NoHistory> {
        for (at, (step, turn)) in self.script.steps.iter().zip(&play.turns).enumerate() {
            let (Some(sent), Some(result)) = (turn.sent, &turn.result) else { continue };
            if step.session != self.session {
                continue;
            }
            // A statement outside of any transaction is one by itself.
            let is_alone = self.begun.is_none();
            if is_alone {
                self.begin(sent)?;
            }
            // A write counts even if it failed: somebody may have seen it.
            let reply = result.as_ref().ok();
            match self.rows {
                Some(rows) => {
                    let effect = rows.effect(at, reply).map_err(NoHistory::Untold)?;
                    effect.tell(&mut |op| self.batch.op(op))?;
                }
                None => self.op(&step.action, reply)?,
            }
            match (&step.action, result) {
                (ScriptAction::Rollback, _) | (_, Err(_)) => self.end(Outcome::Aborted, turn)?,
                (ScriptAction::Commit, Ok(_)) => self.end(Outcome::Committed, turn)?,
                (ScriptAction::Sql(_), Ok(_)) if is_alone => self.end(Outcome::Committed, turn)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn begin(&mut self, at: Duration) -> Result<(), SinkError> {
        self.txns += 1;
        self.begun = Some(at);
        let session = self.script.sessions[self.session].as_str();
        let id = match self.txns {
            1 => session.to_owned(),
            number => format!("{session}-{number}"),
        };
        self.batch.begin(&TxnStart {
            session: session.into(),
            id: Some(id.as_str().into()),
            line: None,
        })
    }

    fn op(&mut self, action: &ScriptAction, reply: Option<&Reply>) -> Result<(), SinkError> {
        let name = |key: &usize| self.script.keys[*key].as_str().into();
        match (action, reply) {
            (ScriptAction::Read(key), Some(Reply::Value(held))) => {
                let value = held.map_or(Value::Nil, Value::Int);
                self.batch.op(&Op::Read { key: name(key), value: Some(value.as_ref()) })
            }
            (ScriptAction::Write(key, value), _) => {
                self.batch.op(&Op::Write { key: name(key), value: (*value).into() })
            }
            (ScriptAction::Delete(key), _) => self.batch.op(&Op::Delete { key: name(key) }),
            (ScriptAction::ReadList(key), Some(Reply::List(seen))) => {
                let elements: Vec<_> = seen.iter().map(|element| (*element).into()).collect();
                self.batch.op(&Op::ReadList { key: name(key), elements: Some(&elements) })
            }
            (ScriptAction::Append(key, element), _) => {
                self.batch.op(&Op::Append { key: name(key), element: (*element).into() })
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, outcome: Outcome, turn: &StepResult) -> Result<(), SinkError> {
        let Some(begun) = self.begun.take() else { return Ok(()) };
        let nanoseconds = |at: Duration| i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
        self.batch.end(&TxnEnd {
            start: Some(nanoseconds(begun)),
            finish: turn.answered.map(nanoseconds),
            ..TxnEnd::new(outcome)
        })
    }
}
