//! Conflicts in the terms of the history: operations, transactions, edges.

use isolario_model::{Anomaly, AnomalyKind, Edge, Evidence, History, Reason, TxnId, VersionOrder};

use super::calls::Register;
use super::conflict::{Arrow, Conflict, Why};
use super::evidence;
use super::sources::NONE;
use crate::cycles;

/// The anomaly that a conflict is.
pub(super) fn of(history: &History, register: &Register<'_>, conflict: &Conflict) -> Anomaly {
    match conflict {
        Conflict::Nobody(at) => bad_read(register, *at),
        Conflict::NoOrder { calls, cycle } if cycle.is_empty() => no_order(register, calls),
        Conflict::NoOrder { cycle, .. } => {
            cycles::of_clients(Drawing { history, register }.edges(cycle))
        }
    }
}

/// These calls have no order, the last to finish last.
pub(super) fn no_order(register: &Register<'_>, few: &[u32]) -> Anomaly {
    let few = evidence::with_initial(register, few);
    let ops = few.iter().map(|at| register.calls[*at as usize].op).collect();
    let evidence = Evidence::Operations { key: register.key, ops };
    Anomaly::new(AnomalyKind::NotLinearizable, evidence)
}

/// All calls together have no order.
pub(super) fn no_order_of_all(register: &Register<'_>) -> Anomaly {
    no_order(register, &evidence::all(register.calls))
}

/// Two calls found different values that nobody wrote, and a register has only one initial value.
pub(super) fn two_initial_values(register: &Register<'_>, one: u32, other: u32) -> Anomaly {
    let op = |at: u32| register.calls[at as usize].op;
    let (first, second) = (op(one).min(op(other)), op(one).max(op(other)));
    let evidence = Evidence::Reads { key: register.key, first, second, edges: Vec::new() };
    Anomaly::new(AnomalyKind::ThinAirRead, evidence)
}

/// A call found what nobody wrote, or only someone who aborted.
fn bad_read(register: &Register<'_>, at: u32) -> Anomaly {
    let call = &register.calls[at as usize];
    let is_it = |word: &u64| call.action.old_word() == Some(*word);
    let saw = register.aborted.iter().find(|(_, word, _)| is_it(word)).map(|(_, _, op)| *op);
    let kind = if saw.is_some() { AnomalyKind::AbortedRead } else { AnomalyKind::ThinAirRead };
    Anomaly::new(kind, Evidence::Read { read: call.op, saw, instead: None })
}

struct Drawing<'a> {
    history: &'a History,
    register: &'a Register<'a>,
}

impl Drawing<'_> {
    fn txn(&self, at: u32) -> TxnId {
        if at == NONE {
            return TxnId::INIT;
        }
        self.history.op_txn(self.register.calls[at as usize].op)
    }

    fn edges(&self, arrows: &[Arrow]) -> Vec<Edge> {
        let edge = |arrow: &Arrow| Edge {
            from: self.txn(arrow.from),
            to: self.txn(arrow.to),
            reason: self.reason(arrow),
        };
        arrows.iter().map(edge).collect()
    }

    fn reason(&self, arrow: &Arrow) -> Reason {
        let op = |at: u32| self.register.calls[at as usize].op;
        let key = self.register.key;
        match &arrow.why {
            Why::RealTime => Reason::RealTime {
                finish: self.history.finish(self.txn(arrow.from)).unwrap_or(i64::MAX),
                start: self.history.start(self.txn(arrow.to)).unwrap_or(i64::MIN),
            },
            Why::Found => Reason::Read { key, read: op(arrow.to), write: Some(op(arrow.from)) },
            Why::Missed(writer, order) => {
                let known = if *writer == NONE {
                    VersionOrder::Initial
                } else if order.is_empty() {
                    VersionOrder::ReadModifyWrite { read: op(arrow.to) }
                } else {
                    VersionOrder::Path { edges: self.edges(order) }
                };
                let (read, writer) = (op(arrow.from), self.txn(*writer));
                Reason::AntiDependency { key, read, writer, known }
            }
        }
    }
}
