//! A guess at the order in which transactions committed.
//!
//! It decides nothing. A search for a topological order that begins with a good guess finds that
//! guess to be one, and then most of what a level's rule infers agrees with it, too.

use isolario_model::History;

/// All transactions: by finish time where there are times, else by line, else with the sessions
/// running side by side.
pub(crate) fn commit_order(history: &History) -> Vec<u32> {
    let keys: Vec<u64> = if history.has_times() {
        let since = |finish: i64| finish.wrapping_sub(i64::MIN) as u64;
        history.txns().map(|txn| history.finish(txn).map_or(u64::MAX, since)).collect()
    } else if history.txns().next().is_some_and(|txn| history.line(txn).is_some()) {
        history.txns().map(|txn| history.line(txn).unwrap_or(u64::MAX)).collect()
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
    let mut pairs: Vec<(u32, u32)> = keys.iter().copied().map(short).zip(0..).collect();
    let mut other = vec![(0, 0); pairs.len()];
    let mut done = 0;
    while done < u32::BITS && (range >> shift) >> done > 0 {
        scatter(&pairs, &mut other, done);
        std::mem::swap(&mut pairs, &mut other);
        done += DIGIT;
    }
    pairs.into_iter().map(|(_, number)| number).collect()
}

/// Bits per round of sorting.
const DIGIT: u32 = 12;

/// Sorts by one digit of the keys, and leaves what is equal there in order.
fn scatter(from: &[(u32, u32)], to: &mut [(u32, u32)], shift: u32) {
    let digit = |key: u32| (key >> shift) as usize & ((1 << DIGIT) - 1);
    let mut next = [0u32; 1 << DIGIT];
    from.iter().for_each(|(key, _)| next[digit(*key)] += 1);
    let mut total = 0;
    for slot in &mut next {
        total += std::mem::replace(slot, total);
    }
    for pair in from {
        let slot = &mut next[digit(pair.0)];
        to[*slot as usize] = *pair;
        *slot += 1;
    }
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
