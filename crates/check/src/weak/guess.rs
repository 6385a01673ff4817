//! A guess at the order in which transactions committed.
//!
//! It decides nothing. A search for a topological order that begins with a good guess finds that
//! guess to be one, and then most of what a level's rule infers agrees with it, too.

use isolario_model::History;
use rayon::prelude::*;

/// All transactions: by finish time where there are times, else by line, else with the sessions
/// running side by side.
pub(crate) fn commit_order(history: &History) -> Vec<u32> {
    let mut keyed: Vec<(u64, u32)> = Vec::with_capacity(history.txn_count());
    let has_lines = history.txns().next().is_some_and(|txn| history.line(txn).is_some());
    for session in history.sessions() {
        let txns = history.session_txns(session);
        let length = txns.len() as u64;
        for (position, txn) in (0u64..).zip(txns) {
            let key = if history.has_times() {
                history.finish(txn).map_or(u64::MAX, |finish| finish.wrapping_sub(i64::MIN) as u64)
            } else if has_lines {
                history.line(txn).unwrap_or(u64::MAX)
            } else {
                (position << 32) / length
            };
            keyed.push((key, txn.0));
        }
    }
    // Sessions are sorted runs, which a merge sort makes use of.
    keyed.par_sort();
    keyed.into_iter().map(|(_, txn)| txn).collect()
}

#[cfg(test)]
mod tests {
    use isolario_model::{Batch, Outcome, TxnEnd, TxnSink, TxnStart};

    use super::*;

    fn history(txns: &[(&str, Option<i64>, Option<u64>)]) -> History {
        let mut batch = Batch::new();
        for (session, finish, line) in txns {
            let session = (*session).into();
            batch.begin(&TxnStart { session, id: None, line: *line }).unwrap();
            batch.end(&TxnEnd { finish: *finish, ..TxnEnd::new(Outcome::Committed) }).unwrap();
        }
        batch.build().unwrap()
    }

    #[test]
    fn times_come_before_lines_and_lines_before_positions() {
        let timed = [("a", Some(5), Some(1)), ("a", Some(-7), Some(2)), ("b", None, Some(3))];
        assert_eq!(commit_order(&history(&timed)), [1, 0, 2]);
        let lined = [("a", None, Some(1)), ("b", None, Some(2)), ("a", None, Some(3))];
        assert_eq!(commit_order(&history(&lined)), [0, 2, 1]);
        let bare = [("a", None, None), ("a", None, None), ("b", None, None), ("b", None, None)];
        assert_eq!(commit_order(&history(&bare)), [0, 2, 1, 3]);
    }
}
