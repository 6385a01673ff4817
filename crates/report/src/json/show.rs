//! One transaction, key or session, for programs: schema `isolario.show/1`.

use std::io;

use isolario_model::{History, KeyId, OpId, SessionId, Stamp, TxnId};
use serde::Serialize;

use super::op::{JsonOp, JsonValue};
use super::{Json, outcome_name, session_label, write_line};
use crate::show::{KeyVersions, Subject, VersionSources, VersionUses};

impl Json {
    /// Writes what there is to show of a transaction, a key or a session as one line. The name is
    /// that of the history.
    pub fn show(
        &self,
        name: &str,
        history: &History,
        subject: Subject,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let versions = KeyVersions::of(history, subject);
        let shown = match subject {
            Subject::Transaction(txn) => Shown::Transaction(Txn::of(history, &versions, txn)),
            Subject::Key(key) => Shown::Key(Key::of(history, &versions, key)),
            Subject::Session(session) => Shown::Session(Session::of(history, &versions, session)),
        };
        write_line(&Object { schema: "isolario.show/1", history: name, shown }, out)
    }
}

#[derive(Serialize)]
struct Object<'a> {
    schema: &'static str,
    history: &'a str,
    #[serde(flatten)]
    shown: Shown<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Shown<'a> {
    Transaction(Txn<'a>),
    Key(Key<'a>),
    Session(Session<'a>),
}

#[derive(Serialize)]
struct Txn<'a> {
    id: String,
    session: String,
    line: Option<u64>,
    outcome: &'static str,
    start: Option<i64>,
    finish: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    db_start: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    db_commit: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    ops: Vec<ShownOp<'a>>,
}

#[derive(Serialize)]
struct ShownOp<'a> {
    #[serde(flatten)]
    op: JsonOp<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<&'a str>,
    /// Several where the read is ambiguous; none where nobody wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_from: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_by: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Key<'a> {
    key: JsonValue<'a>,
    versions: Vec<Version<'a>>,
}

#[derive(Serialize)]
struct Version<'a> {
    /// An operation that wrote it, or read it where nobody did.
    op: JsonOp<'a>,
    written_by: Vec<String>,
    read_by: Vec<String>,
}

#[derive(Serialize)]
struct Session<'a> {
    session: String,
    transactions: Vec<Txn<'a>>,
}

impl<'a> Txn<'a> {
    fn of(history: &'a History, versions: &KeyVersions<'a>, txn: TxnId) -> Self {
        let stamp = |Stamp { physical, logical }| [physical, logical];
        Txn {
            id: history.txn_label(txn),
            session: session_label(history, history.session_of(txn)),
            line: history.line(txn),
            outcome: outcome_name(history.outcome(txn)),
            start: history.start(txn),
            finish: history.finish(txn),
            db_start: history.db_start(txn).map(stamp),
            db_commit: history.db_commit(txn).map(stamp),
            snapshot: history.snapshot(txn),
            error: history.error(txn),
            ops: history.txn_ops(txn).map(|op| ShownOp::of(history, versions, op)).collect(),
        }
    }
}

impl<'a> ShownOp<'a> {
    fn of(history: &'a History, versions: &KeyVersions<'a>, op: OpId) -> Self {
        ShownOp {
            op: JsonOp::of(history, op),
            sql: history.op_sql(op),
            read_from: versions.sources(op).map(|sources| origins(history, &sources)),
            read_by: versions.readers(op).map(|reads| ids(history, &reads)),
        }
    }
}

impl<'a> Key<'a> {
    fn of(history: &'a History, versions: &KeyVersions<'a>, key: KeyId) -> Self {
        let version = |VersionUses { op, sources, reads }: VersionUses| Version {
            op: JsonOp::of(history, op),
            written_by: origins(history, &sources),
            read_by: ids(history, &reads),
        };
        Key {
            key: JsonValue(history.key_name(key)),
            versions: versions.of_key(key).into_iter().map(version).collect(),
        }
    }
}

impl<'a> Session<'a> {
    fn of(history: &'a History, versions: &KeyVersions<'a>, session: SessionId) -> Self {
        Session {
            session: session_label(history, session),
            transactions: history
                .session_txns(session)
                .map(|txn| Txn::of(history, versions, txn))
                .collect(),
        }
    }
}

/// Who wrote something; `init` for the initial state.
fn origins(history: &History, sources: &VersionSources) -> Vec<String> {
    let init = sources.initial.then(|| history.txn_label(TxnId::INIT));
    init.into_iter().chain(ids(history, &sources.writes)).collect()
}

/// The transactions of operations, each once.
fn ids(history: &History, ops: &[OpId]) -> Vec<String> {
    let mut txns: Vec<TxnId> = ops.iter().map(|op| history.op_txn(*op)).collect();
    txns.dedup();
    txns.into_iter().map(|txn| history.txn_label(txn)).collect()
}
