//! Cut isolation needs no witness: each transaction is looked through by itself.

use isolario_model::{KeyId, OpId, Outcome, TxnId};
use rustc_hash::FxHashMap;

use crate::Refusal;
use crate::facts::Facts;

/// All reads of a key from other, committed transactions saw the same one (Plume, Definition 3).
pub(crate) fn verify(facts: &Facts<'_>) -> Result<(), Refusal> {
    for txn in facts.history.txns().filter(|txn| facts.committed(*txn).is_ok()) {
        let mut first_reads: FxHashMap<KeyId, (OpId, TxnId)> = FxHashMap::default();
        for second in facts.reads(txn) {
            let Some((from, _)) = facts.external(second)? else { continue };
            if facts.history.outcome(from) == Outcome::Aborted {
                continue;
            }
            let (first, before) = *first_reads.entry(facts.key(second)).or_insert((second, from));
            if before != from || facts.see_two_initial_values(first, second) {
                return Err(Refusal::Disagree { first, second });
            }
        }
    }
    Ok(())
}
