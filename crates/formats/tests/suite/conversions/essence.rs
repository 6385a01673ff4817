//! What a history says, apart from what two formats have no place for.

use std::collections::BTreeMap;

use isolario_model::{History, Initial, KeyId, Op, OpId, SessionId, TxnId, VersionRef};

use super::capabilities::{Common, Times};

/// The sessions of a history in words, in an order of their own: some formats number sessions
/// anew, and some sort them.
pub fn essence(history: &History, common: &Common) -> Vec<String> {
    let teller = Teller { history, common, writes: writes(history), times: ranks(history) };
    let mut sessions: Vec<_> = history.sessions().map(|session| teller.session(session)).collect();
    sessions.sort();
    sessions
}

/// How many writes there are of each version, per key.
fn writes(history: &History) -> BTreeMap<(KeyId, u64), usize> {
    let mut writes = BTreeMap::new();
    for op in (0..history.op_count()).map(OpId::at) {
        if let Op::Write { key, .. } = history.op(op) {
            *writes.entry((key, history.encoded_version(op))).or_default() += 1;
        }
    }
    writes
}

/// The place of each moment among all there are.
fn ranks(history: &History) -> BTreeMap<i64, usize> {
    let times = history.txns().flat_map(|txn| [history.start(txn), history.finish(txn)]);
    let times: std::collections::BTreeSet<_> = times.flatten().collect();
    times.into_iter().zip(0..).collect()
}

struct Teller<'a> {
    history: &'a History,
    common: &'a Common,
    writes: BTreeMap<(KeyId, u64), usize>,
    times: BTreeMap<i64, usize>,
}

impl Teller<'_> {
    fn session(&self, session: SessionId) -> String {
        let name = self.common.session_names.then(|| self.history.session_name(session));
        let txns: Vec<_> = self.history.session_txns(session).map(|txn| self.txn(txn)).collect();
        format!("session {name:?}: {}", txns.join("; "))
    }

    fn txn(&self, txn: TxnId) -> String {
        let end = self.history.txn_end(txn);
        let name = self.history.txn_name(txn).filter(|_| self.common.keeps_txn_names);
        let stamps = self.common.keeps_stamps.then_some((end.db_start, end.db_commit));
        let times = [end.start, end.finish].map(|time| match self.common.times {
            Times::None => None,
            Times::Order => time.map(|time| self.times[&time] as i64),
            Times::Exact => time,
        });
        let ops: Vec<_> = self.history.txn_ops(txn).map(|op| self.op(op)).collect();
        format!("{name:?} {:?} at {times:?} {stamps:?} {}", end.outcome, ops.join(", "))
    }

    /// A read says beside its value what it refers to: how many writes, and perhaps `init`.
    fn op(&self, op: OpId) -> String {
        let shown = self.history.with_op_input(op, |op| format!("{op:?}"));
        match self.history.op(op) {
            Op::Read { key, value: Some(value) } => {
                let word = self.history.encoded_version(op);
                let writes = self.writes.get(&(key, word)).copied().unwrap_or(0);
                let value = self.history.value(value);
                let is_initial = match self.history.initial() {
                    Initial::Value(first) => first.as_ref() == value,
                    Initial::UnlessWritten(first) => writes == 0 && first.as_ref() == value,
                    Initial::Unwritten => writes == 0,
                    Initial::Marked => self.history.op_version(op) == Some(VersionRef::Initial),
                    _ => false,
                };
                format!("{shown} from {writes} writes, initial: {is_initial}")
            }
            _ => shown,
        }
    }
}
