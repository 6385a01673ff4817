//! Making a failing case small enough to understand.

use crate::Draft;

/// Removes transactions, then operations, then times, for as long as the history still fails.
pub fn shrink(mut draft: Draft, fails: impl Fn(&Draft) -> bool) -> Draft {
    loop {
        let next = smaller(&draft).find(|smaller| fails(smaller));
        match next {
            Some(smaller) => draft = smaller,
            None => return draft,
        }
    }
}

/// Every history that is one step smaller, bigger steps first.
fn smaller(draft: &Draft) -> impl Iterator<Item = Draft> + '_ {
    let txns = 0..draft.txns.len();
    let without_txn = txns.clone().map(|txn| {
        let mut draft = draft.clone();
        draft.txns.remove(txn);
        draft
    });
    let ops = move |txn: usize| (0..draft.txns[txn].ops.len()).map(move |op| (txn, op));
    let without_op = txns.clone().flat_map(ops).map(|(txn, op)| {
        let mut draft = draft.clone();
        draft.txns[txn].ops.remove(op);
        draft
    });
    let timed =
        move |txn: &usize| draft.txns[*txn].start.is_some() || draft.txns[*txn].finish.is_some();
    let without_times = txns.filter(timed).map(|txn| {
        let mut draft = draft.clone();
        (draft.txns[txn].start, draft.txns[txn].finish) = (None, None);
        draft
    });
    without_txn.chain(without_op).chain(without_times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DraftOp;
    use crate::random::Case;

    #[test]
    fn what_does_not_matter_goes_and_what_does_stays() {
        let reads = |draft: &Draft| {
            draft.txns.iter().flat_map(|t| &t.ops).any(|op| matches!(op, DraftOp::Read(..)))
        };
        for case in Case::first(50).filter(|case| reads(&case.draft())) {
            let small = shrink(case.draft(), reads);
            assert_eq!((small.txns.len(), small.txns[0].ops.len()), (1, 1), "{small}");
        }
    }
}
