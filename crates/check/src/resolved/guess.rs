//! A guess at the order in which transactions committed.
//!
//! It decides nothing. A search for a topological order that begins with a good guess finds that
//! guess to be one, and then most of what a level's rule infers agrees with it, too.

use std::sync::atomic::{AtomicU64, Ordering};

use isolario_model::{History, TxnId};
use rayon::prelude::*;

use super::Dependencies;
use crate::graph::Order;
use crate::order::OrderRule;

/// What a guess goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clue {
    /// The database's own stamps.
    Stamps,
    /// The clients' times.
    Times,
    /// Lines of the file, or positions in sessions.
    Places,
}

/// A guess.
#[derive(Clone)]
pub(crate) struct Guess {
    /// All transactions, in the order in which they probably committed.
    pub(crate) commits: Vec<u32>,
    pub(crate) clue: Clue,
}

/// All transactions: by the database's stamps or by finish time, else by line, else with the
/// sessions running side by side.
///
/// Stamps and times may both be there, and either may be misleading: the one that fewer reads and
/// sessions contradict is taken.
pub(crate) fn commit_order(dependencies: &Dependencies<'_>) -> Guess {
    let contradicted = |guess: &Guess| {
        let denied = dependencies.denied(&Order::new(guess.commits.clone()));
        denied.map_or(0, |denied| denied.len())
    };
    match clues(dependencies.history) {
        (guess, None) => guess,
        (stamps, Some(times)) if contradicted(&times) < contradicted(&stamps) => times,
        (stamps, Some(_)) => stamps,
    }
}

/// The same before any read is resolved; none where that takes knowing who contradicts what.
pub(crate) fn suggested(history: &History) -> Option<Vec<u32>> {
    match clues(history) {
        (guess, None) => Some(guess.commits),
        (_, Some(_)) => None,
    }
}

/// What a history suggests, and what else if it has both stamps and times.
fn clues(history: &History) -> (Guess, Option<Guess>) {
    let guess = |commits, clue| Guess { commits, clue };
    let times = || history.has_times().then(|| guess(by_times(history), Clue::Times));
    match by_stamps(history) {
        Some(stamps) => (guess(stamps, Clue::Stamps), times()),
        None => (times().unwrap_or_else(|| guess(by_places(history), Clue::Places)), None),
    }
}

/// By the stamps of commits, if any has one; those without come last.
fn by_stamps(history: &History) -> Option<Vec<u32>> {
    let stamp = |txn: u32| history.db_commit(TxnId(txn));
    let txns = 0..history.txn_count() as u32;
    txns.clone().into_par_iter().any(|txn| stamp(txn).is_some()).then(|| {
        let mut order: Vec<u32> = txns.collect();
        order.par_sort_by_key(|txn| stamp(*txn).map_or((true, None), |stamp| (false, Some(stamp))));
        order
    })
}

fn by_times(history: &History) -> Vec<u32> {
    let since = |finish: i64| finish.wrapping_sub(i64::MIN) as u64;
    let finish = |txn: usize| history.finish(TxnId::at(txn)).map_or(u64::MAX, since);
    let keys: Vec<u64> = (0..history.txn_count()).into_par_iter().map(finish).collect();
    sorted(&keys)
}

fn by_places(history: &History) -> Vec<u32> {
    let has_lines = history.txns().next().is_some_and(|txn| history.line(txn).is_some());
    let keys: Vec<u64> = if has_lines {
        let line = |txn: usize| history.line(TxnId::at(txn)).unwrap_or(u64::MAX);
        (0..history.txn_count()).into_par_iter().map(line).collect()
    } else {
        let side_by_side = |session| {
            let length = history.session_txns(session).len() as u64;
            (0..length).map(move |position| (position << 32) / length)
        };
        history.sessions().flat_map(side_by_side).collect()
    };
    sorted(&keys)
}

/// The numbers from 0 on, in the order of their keys. Of a guess, 32 bits of a key are enough: the
/// keys lose what comes after those. The largest of all stands for an unknown one and comes last.
fn sorted(keys: &[u64]) -> Vec<u32> {
    let known = keys.iter().copied().filter(|key| *key != u64::MAX);
    let (least, most) =
        known.fold((u64::MAX, 0), |(least, most), key| (least.min(key), most.max(key)));
    let least = least.min(most);
    let range = most - least + 1;
    let shift = (u64::BITS - range.leading_zeros()).saturating_sub(u32::BITS);
    let short = |key: u64| ((key - least).min(range) >> shift) as u32;
    let pair = |(number, key): (usize, &u64)| {
        AtomicU64::new(u64::from(short(*key)) << u32::BITS | number as u64)
    };
    let mut pairs: Vec<AtomicU64> = keys.par_iter().enumerate().map(pair).collect();
    let mut other: Vec<AtomicU64> = keys.par_iter().map(|_| AtomicU64::new(0)).collect();
    let mut done = 0;
    while done < u32::BITS && (range >> shift) >> done > 0 {
        scatter(&pairs, &other, done);
        std::mem::swap(&mut pairs, &mut other);
        done += DIGIT;
    }
    pairs.into_par_iter().map(|pair| pair.into_inner() as u32).collect()
}

/// Bits per round of sorting.
const DIGIT: u32 = 12;

/// Sorts by one digit of the keys, and leaves what is equal there in order. A key stands in the
/// upper half of its word.
///
/// Every task puts what it has of a digit behind what those before it have: no two write to one
/// place, so the atomics need no order among them, and threads do not show.
fn scatter(from: &[AtomicU64], to: &[AtomicU64], shift: u32) {
    let digit = |pair: u64| (pair >> (u32::BITS + shift)) as usize & ((1 << DIGIT) - 1);
    let share = from.len().div_ceil(rayon::current_num_threads()).max(1);
    let count = |part: &[AtomicU64]| {
        let mut counts = vec![0u32; 1 << DIGIT];
        part.iter().for_each(|pair| counts[digit(pair.load(Ordering::Relaxed))] += 1);
        counts
    };
    let mut next: Vec<Vec<u32>> = from.par_chunks(share).map(count).collect();
    let mut total = 0;
    for digit in 0..1 << DIGIT {
        for next in &mut next {
            total += std::mem::replace(&mut next[digit], total);
        }
    }
    from.par_chunks(share).zip(next).for_each(|(part, mut next)| {
        for pair in part.iter().map(|pair| pair.load(Ordering::Relaxed)) {
            let slot = &mut next[digit(pair)];
            to[*slot as usize].store(pair, Ordering::Relaxed);
            *slot += 1;
        }
    });
}

#[cfg(test)]
mod tests {
    use isolario_model::{Batch, Outcome, Stamp, TxnEnd, TxnSink, TxnStart};

    use super::*;
    use crate::resolved::Reads;

    fn history(txns: &[(&str, Option<i64>, Option<u64>)]) -> History {
        let mut batch = Batch::new();
        for (session, finish, line) in txns {
            let session = (*session).into();
            batch.begin(&TxnStart { session, id: None, line: *line }).unwrap();
            batch.end(&TxnEnd { finish: *finish, ..TxnEnd::new(Outcome::Committed) }).unwrap();
        }
        batch.build().unwrap()
    }

    fn guess(history: &History) -> (Vec<u32>, Clue) {
        let dependencies = Dependencies::new(history, Reads::resolve(history), true);
        let Guess { commits, clue } = commit_order(&dependencies);
        (commits, clue)
    }

    /// Three transactions of one session, each with a finish time and a stamp.
    fn stamped(txns: [(Option<i64>, Option<u64>); 3]) -> History {
        let mut batch = Batch::new();
        for (finish, stamp) in txns {
            batch.begin(&TxnStart { session: "a".into(), id: None, line: None }).unwrap();
            let db_commit = stamp.map(|physical| Stamp { physical, logical: 0 });
            let end = TxnEnd::new(Outcome::Committed);
            batch.end(&TxnEnd { finish, db_commit, ..end }).unwrap();
        }
        batch.build().unwrap()
    }

    #[test]
    fn stamps_and_times_are_judged_by_what_contradicts_them() {
        let right = [(Some(1), Some(1)), (Some(2), Some(2)), (Some(3), Some(3))];
        assert_eq!(guess(&stamped(right)), (vec![0, 1, 2], Clue::Stamps));
        let only_stamps = [(None, Some(7)), (None, None), (None, Some(5))];
        assert_eq!(guess(&stamped(only_stamps)), (vec![2, 0, 1], Clue::Stamps));
        let wrong_times = [(Some(3), Some(1)), (Some(2), Some(2)), (Some(1), Some(3))];
        assert_eq!(guess(&stamped(wrong_times)), (vec![0, 1, 2], Clue::Stamps));
        let wrong_stamps = [(Some(1), Some(3)), (Some(2), Some(2)), (Some(3), Some(1))];
        assert_eq!(guess(&stamped(wrong_stamps)), (vec![0, 1, 2], Clue::Times));
    }

    #[test]
    fn times_come_before_lines_and_lines_before_positions() {
        let timed = [("a", Some(5), Some(1)), ("a", Some(-7), Some(2)), ("b", None, Some(3))];
        assert_eq!(guess(&history(&timed)), (vec![1, 0, 2], Clue::Times));
        let lined = [("a", None, Some(1)), ("b", None, Some(2)), ("a", None, Some(3))];
        assert_eq!(guess(&history(&lined)), (vec![0, 2, 1], Clue::Places));
        let bare = [("a", None, None), ("a", None, None), ("b", None, None), ("b", None, None)];
        assert_eq!(guess(&history(&bare)), (vec![0, 2, 1, 3], Clue::Places));
    }

    #[test]
    fn keys_of_any_size_are_sorted_as_far_as_32_bits_tell() {
        assert!(sorted(&[]).is_empty());
        assert_eq!(sorted(&[7]), [0]);
        assert_eq!(sorted(&[5, 3, 5, 4]), [1, 3, 0, 2]);
        assert_eq!(sorted(&[u64::MAX, 9, u64::MAX - 1, 0]), [1, 3, 0, 2]);
        assert_eq!(sorted(&[u64::MAX, 1 << 40, 1 << 41, u64::MAX, 7]), [4, 1, 0, 2, 3]);
        let keys: Vec<u64> = (0..100_000u64).map(|i| i * 7919 % 100_003).collect();
        assert!(sorted(&keys).is_sorted_by_key(|number| keys[*number as usize]));
    }
}
