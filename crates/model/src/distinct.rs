//! Whether words are all different, where most of them are numbers that count something.

/// Takes words one by one, and knows whether all were different.
///
/// Clients that must write unique values mostly count, and tools that name transactions mostly number them. So a bit
/// per number tells, and next to no memory is touched. Where words are anything else, it is not
/// known that they differ.
#[derive(Debug)]
pub struct DistinctnessCheck {
    bits: Vec<u64>,
    are_different: bool,
}

impl DistinctnessCheck {
    /// For so many words. Numbers may be up to twice as large.
    pub fn of_about(words: usize) -> DistinctnessCheck {
        DistinctnessCheck { bits: vec![0; words / 32 + 16], are_different: true }
    }

    /// Takes a word if it counts. There is no branch: whether one does cannot be guessed where reads and writes take
    /// turns.
    #[inline]
    pub fn take_if(&mut self, counts: bool, word: u64) {
        // An odd word is that of no number.
        let number = word >> 1;
        let last = self.bits.len() - 1;
        let at = (number / 64) as usize;
        let fits = (word & 1 == 0) & (at < last);
        // What does not count, or does not fit, goes to the last bits, where nobody looks.
        let entry = &mut self.bits[if fits & counts { at } else { last }];
        let bit = 1 << (number % 64);
        self.are_different &= !counts | (fits & (*entry & bit == 0));
        *entry |= bit;
    }

    /// Whether all words that counted are known to be different.
    pub fn are_different(&self) -> bool {
        self.are_different
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_different(words: &[u64]) -> bool {
        let mut distinct = DistinctnessCheck::of_about(words.len());
        words.iter().for_each(|word| distinct.take_if(true, *word));
        distinct.are_different()
    }

    #[test]
    fn numbers_are_told_apart_and_nothing_else_is() {
        assert!(are_different(&[]));
        assert!(are_different(&[0, 2, 4, 6, 200]));
        assert!(!are_different(&[0, 2, 4, 2]));
        // Other values, and numbers that are too large, may be different or not.
        assert!(!are_different(&[1, 2]));
        assert!(!are_different(&[u64::MAX - 1]));
    }

    #[test]
    fn what_does_not_count_is_not_taken() {
        let mut distinct = DistinctnessCheck::of_about(4);
        for (counts, word) in [(true, 2), (false, 2), (false, 1), (false, u64::MAX - 1)] {
            distinct.take_if(counts, word);
        }
        assert!(distinct.are_different());
        distinct.take_if(true, 2);
        assert!(!distinct.are_different());
    }
}
