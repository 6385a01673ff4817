//! Operations on one key that no order explains: all orders are tried.
//!
//! What is not listed may have been anything, so the listed operations are taken for less than they
//! say, for as much as any history must bear out that contains them:
//!
//! - The last one listed ends the time that is looked at. What started after its finish followed it.
//!   What finished after it need not have taken effect by then.
//! - What an operation found counts only if everyone is listed who may have written it by then.
//! - What an operation did not find counts only if everyone is listed who may have written anything
//!   by then.
//!
//! An order of the whole history, cut off after the last one listed and without those that are not
//! listed, explains what is left: the last writer before a find that counts is listed, and with all
//! writers listed every state is what it was. So if nothing explains what is left, nothing explains
//! the history.

use std::collections::HashSet;

use isolario_model::{AnomalyKind, KeyId, OpId, Outcome, TxnId};
use rustc_hash::FxBuildHasher;

use super::calls::{Did, Singles, State};
use super::kept_txn;
use crate::Refusal;

/// How many different situations are looked at before the search is given up.
const MOST_SITUATIONS: usize = 1 << 22;

/// Refuses operations for which there is an order after all.
pub(super) fn verify(singles: &Singles<'_>, key: KeyId, ops: &[OpId]) -> Result<(), Refusal> {
    let claims = relaxed(singles, key, ops)?;
    let start = |state| Situation { done: vec![0; claims.len().div_ceil(64)], state };
    let mut seen: HashSet<Situation, FxBuildHasher> = HashSet::default();
    let initial = singles.possible_initial_states(key);
    let mut to_do: Vec<Situation> = initial.into_iter().map(start).collect();
    while let Some(situation) = to_do.pop() {
        if claims.iter().enumerate().all(|(at, claim)| !claim.must || situation.has_done(at)) {
            return Err(wrong("an order explains the operations"));
        }
        if seen.len() == MOST_SITUATIONS {
            return Err(Refusal::Unsupported("a search among this many operations"));
        }
        if seen.insert(situation.clone()) {
            go_on(singles, key, &claims, &situation, &mut to_do);
        }
    }
    Ok(())
}

/// What is claimed of one operation.
struct Claim {
    did: Did,
    must: bool,
    earliest: Option<i128>,
    latest: Option<i128>,
}

/// Who has taken effect, and what the key holds.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Situation {
    done: Vec<u64>,
    state: State,
}

impl Situation {
    fn has_done(&self, at: usize) -> bool {
        self.done[at / 64] >> (at % 64) & 1 == 1
    }

    fn after(&self, at: usize, state: State) -> Situation {
        let mut done = self.done.clone();
        done[at / 64] |= 1 << (at % 64);
        Situation { done, state }
    }
}

/// All that may come next: whoever started before the first one that must still come had finished.
fn go_on(
    singles: &Singles<'_>,
    key: KeyId,
    claims: &[Claim],
    now: &Situation,
    to_do: &mut Vec<Situation>,
) {
    let left = || claims.iter().enumerate().filter(|(at, _)| !now.has_done(*at));
    let end = left().filter(|(_, claim)| claim.must).filter_map(|(_, claim)| claim.latest).min();
    let is_next = |claim: &Claim| match (claim.earliest, end) {
        (Some(start), Some(end)) => start <= end,
        _ => true,
    };
    let begin = to_do.len();
    for (at, claim) in left().filter(|(_, claim)| is_next(claim)) {
        let after = singles.after(key, claim.did, now.state).map(|state| now.after(at, state));
        if matches!(claim.did, Did::Found(_) | Did::Missed(_) | Did::Nothing) {
            // Who only looks disturbs nobody and may as well do it at once.
            if let Some(only) = after.last() {
                to_do.truncate(begin);
                to_do.push(only);
                return;
            }
        } else {
            to_do.extend(after);
        }
    }
}

fn wrong(why: &'static str) -> Refusal {
    Refusal::WrongKind { kind: AnomalyKind::NotLinearizable, why }
}

/// The listed operations, as far as they count.
fn relaxed(singles: &Singles<'_>, key: KeyId, ops: &[OpId]) -> Result<Vec<Claim>, Refusal> {
    let history = singles.history;
    let Some(last) = ops.last() else { return Err(wrong("no operation is listed")) };
    let mut listed = Vec::with_capacity(ops.len());
    for op in ops {
        let txn = kept_txn(history, *op)?;
        if singles.key(*op) != key {
            return Err(wrong("an operation is on another key"));
        }
        listed.push(txn);
    }
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Refusal::Repeated(pair[0]));
    }
    // Nothing starts after the last time that there is: then the time that is looked at has no end.
    let end = singles.times.latest_finish(history.op_txn(*last));
    let end = end.filter(|end| *end < i128::from(i64::MAX));
    let by_end = |time: Option<i128>| end.is_none_or(|end| time.is_some_and(|time| time <= end));
    let unlisted = unlisted_writes(singles, key, &sorted, end);
    let claim = |(op, txn): (&OpId, &TxnId)| {
        let must = history.outcome(*txn) == Outcome::Committed
            && by_end(singles.times.latest_finish(*txn));
        let (did, must) = relax(singles.did(*op), must, &unlisted);
        let latest = singles.times.latest_finish(*txn).filter(|_| must);
        Claim { did, must, earliest: singles.times.earliest_start(*txn), latest }
    };
    Ok(ops.iter().zip(&listed).map(claim).collect())
}

/// What operations that are not listed may have written to the key by the end.
fn unlisted_writes(
    singles: &Singles<'_>,
    key: KeyId,
    listed: &[TxnId],
    end: Option<i128>,
) -> HashSet<Option<u64>, FxBuildHasher> {
    let history = singles.history;
    let starts_in_time = |txn: TxnId| match (singles.times.earliest_start(txn), end) {
        (Some(start), Some(end)) => start <= end,
        _ => true,
    };
    let is_unlisted = |op: &&OpId| {
        let txn = history.op_txn(**op);
        listed.binary_search(&txn).is_err() && starts_in_time(txn)
    };
    let unlisted = singles.on_key(key).iter().filter(is_unlisted);
    unlisted.filter_map(|op| singles.did(*op).written()).collect()
}

/// What counts of an operation, and whether it must take effect.
fn relax(did: Did, must: bool, unlisted: &HashSet<Option<u64>, FxBuildHasher>) -> (Did, bool) {
    let all_listed = unlisted.is_empty();
    let is_certain = |word| !unlisted.contains(word);
    match did {
        Did::Found(old) if !must || !is_certain(&old) => (Did::Nothing, false),
        Did::Missed(_) if !must || !all_listed => (Did::Nothing, false),
        // If it missed, it did nothing.
        Did::ReplacedOrMissed(old, new) if !must || !all_listed => {
            let did = if is_certain(&old) { Did::Replaced(old, new) } else { Did::Wrote(new) };
            (did, false)
        }
        Did::Replaced(old, new) if !is_certain(&old) => (Did::Wrote(new), must),
        other => (other, must),
    }
}
