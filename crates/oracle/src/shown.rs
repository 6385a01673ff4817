//! Histories, as failing tests show them.

use std::fmt;

use isolario_model::History;

/// A history with everything that its levels depend on, transaction by transaction.
pub struct Shown<'h>(pub &'h History);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let history = self.0;
        writeln!(f, "initially {:?}", history.initial())?;
        for txn in history.txns() {
            let (session, outcome) = (history.session_of(txn), history.outcome(txn));
            let times = (history.start(txn), history.finish(txn));
            let stamps = (history.db_start(txn), history.db_commit(txn));
            writeln!(f, "{txn:?} of {session:?}, {outcome:?}, {times:?}, {stamps:?}")?;
            for op in history.txn_ops(txn) {
                history.with_op_input(op, |input| writeln!(f, "  {op:?} {input:?}"))?;
            }
        }
        Ok(())
    }
}
