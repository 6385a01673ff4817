//! Few calls that no order explains, whatever the other calls did.
//!
//! A set of calls stands for itself if it is *relaxed* enough to be part of any history:
//!
//! - Only what happens until the last listed call returns counts. Calls that start later come after
//!   it. Calls that return later may or may not have taken effect by then.
//! - What a call found counts only if all calls that may have written it are listed. Else a read
//!   says nothing, and a compare-and-set is a write.
//! - That a call did not find something counts only if all calls that may have written anything are
//!   listed.
//!
//! Take an order that explains the whole history, cut it off after the last listed call, and strike
//! out what is not listed. A listed call that still has to find something finds it, because whoever
//! wrote it last is listed, and nobody who is left wrote in between. One that must not find
//! something finds what it found before, because no writer was struck out. So the order explains
//! the relaxed calls; if there is none, there was none for the whole history either. The verifier
//! relaxes and searches by itself.

use super::calls::{Action, Call, INITIAL, Register};
use super::search::{Limits, SearchEnd, search};

/// How many ways may be looked at in all to make the evidence smaller.
const BUDGET: u64 = 1 << 20;

/// Finds a few calls that no order explains, the one that cannot take effect last.
pub(super) fn few(calls: &[Call], initial: u64, stuck: u32) -> Vec<u32> {
    let mut evidence = Evidence { calls, initial, stuck, budget: BUDGET };
    let end = calls[stuck as usize].finish;
    let matters = |at: &u32| {
        let call = &calls[*at as usize];
        *at != stuck && call.start <= end && call.action != Action::Free
    };
    let mut all: Vec<u32> = (0..calls.len() as u32).filter(matters).collect();
    all.sort_by_key(|at| calls[*at as usize].start);
    let mut few = evidence.recent(&all);
    evidence.drop_parts(&mut few);
    few.push(stuck);
    few
}

/// All calls, the last to finish last.
pub(super) fn all(calls: &[Call]) -> Vec<u32> {
    let mut all: Vec<u32> = (0..calls.len() as u32).collect();
    all.sort_by_key(|at| calls[*at as usize].finish);
    all
}

/// Where it took a call to know what the register held at first, evidence that depends on it must
/// have that call in it, and in time.
pub(super) fn with_initial(register: &Register<'_>, few: &[u32]) -> Vec<u32> {
    let Register { calls, found_initial: [Some(found), _], .. } = register else {
        return few.to_vec();
    };
    let finish = |at: &u32| calls[*at as usize].finish;
    let end = few.iter().map(finish).max().unwrap_or(i64::MAX);
    let in_time = finish(found) <= end;
    if few.contains(found) && in_time {
        return few.to_vec();
    }
    let mut listed = few.to_vec();
    listed.sort_unstable();
    let relaxed = relaxed(calls, &listed, end);
    let limits = Limits { ways: Some(BUDGET), ..Limits::default() };
    let is_stuck = |initial| matches!(search(&relaxed, initial, limits), SearchEnd::Stuck(_));
    let asked_for = relaxed.iter().filter_map(|call| call.action.old_word());
    if asked_for.chain([INITIAL]).all(is_stuck) {
        few.to_vec()
    } else if in_time {
        [&[*found], few].concat()
    } else {
        all(calls)
    }
}

struct Evidence<'c> {
    calls: &'c [Call],
    initial: u64,
    stuck: u32,
    budget: u64,
}

impl Evidence<'_> {
    /// The most recent calls that are enough, about; all in the worst case.
    fn recent(&mut self, all: &[u32]) -> Vec<u32> {
        let mut count = 4;
        while count < all.len() {
            let recent = &all[all.len() - count..];
            if self.is_enough(recent) {
                return recent.to_vec();
            }
            count *= 2;
        }
        all.to_vec()
    }

    /// Leaves out what can be left out, larger parts first.
    fn drop_parts(&mut self, few: &mut Vec<u32>) {
        let mut size = few.len().div_ceil(2);
        while size > 0 {
            let mut dropped = false;
            let mut at = 0;
            while at < few.len() {
                let mut fewer = few.clone();
                fewer.drain(at..(at + size).min(few.len()));
                if self.is_enough(&fewer) {
                    *few = fewer;
                    dropped = true;
                } else {
                    at += size;
                }
            }
            // Dropping one may make another superfluous.
            size = if dropped && size == 1 { 1 } else { size / 2 };
        }
    }

    /// Whether no order explains these calls and the one that is stuck.
    fn is_enough(&mut self, few: &[u32]) -> bool {
        if self.budget == 0 {
            return false;
        }
        let mut listed: Vec<u32> = few.iter().copied().chain([self.stuck]).collect();
        listed.sort_unstable();
        let end = self.calls[self.stuck as usize].finish;
        let relaxed = relaxed(self.calls, &listed, end);
        // An estimate of what the search takes, so that the result does not depend on timing.
        self.budget =
            self.budget.saturating_sub(self.calls.len() as u64 / 64 + 4 * few.len() as u64);
        let limits = Limits { ways: Some(self.budget), ..Limits::default() };
        matches!(search(&relaxed, self.initial, limits), SearchEnd::Stuck(_))
    }
}

/// The listed calls, as far as they mean something on their own until `end`.
fn relaxed(calls: &[Call], listed: &[u32], end: i64) -> Vec<Call> {
    let mut unlisted: Vec<u64> = (0..calls.len() as u32)
        .filter(|at| calls[*at as usize].start <= end && listed.binary_search(at).is_err())
        .filter_map(|at| calls[at as usize].action.new_word())
        .collect();
    unlisted.sort_unstable();
    let is_certain = |word: u64| unlisted.binary_search(&word).is_err();
    let relax = |at: &u32| {
        let call = calls[*at as usize];
        let in_time = call.must && call.finish <= end;
        let action = match call.action {
            Action::Read(old) if !in_time || !is_certain(old) => Action::Free,
            Action::Differs(_) if !in_time || !unlisted.is_empty() => Action::Free,
            Action::Maybe(old, new) if !in_time || !unlisted.is_empty() => {
                let action =
                    if is_certain(old) { Action::Swap(old, new) } else { Action::Write(new) };
                return Call { action, must: false, finish: i64::MAX, ..call };
            }
            Action::Swap(old, new) if !is_certain(old) => Action::Write(new),
            other => other,
        };
        Call { action, must: in_time, finish: if in_time { call.finish } else { i64::MAX }, ..call }
    };
    listed.iter().map(relax).collect()
}
