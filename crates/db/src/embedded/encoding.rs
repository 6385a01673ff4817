//! Registers and lists as bytes.

use crate::database::RegisterValue;

/// What a register reads as whose bytes nobody wrote: a value that nobody wrote either. Values of
/// clients are positive.
const NONSENSE: i64 = -1;

const WORD: usize = 8;

/// How the keys and values of a run look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    /// Tells the keys of this run from those of earlier ones.
    run: u64,
    /// The least length of a register.
    size: usize,
}

impl Encoding {
    pub(super) fn new(run: u64, size: usize) -> Encoding {
        Encoding { run, size: size.max(WORD) }
    }

    pub(super) fn key(&self, number: u64) -> Vec<u8> {
        [*b"isolario", self.run.to_be_bytes(), number.to_be_bytes()].concat()
    }

    /// The value, as often as it fits: a value that was torn or cut off shows.
    pub(super) fn register(&self, value: i64) -> Vec<u8> {
        value.to_le_bytes().into_iter().cycle().take(self.size).collect()
    }

    pub(super) fn held(&self, stored: Option<&[u8]>) -> RegisterValue {
        let stored = stored?;
        let value = words(stored).next().unwrap_or(NONSENSE);
        Some(if stored == self.register(value) { value } else { NONSENSE })
    }
}

/// The elements of a list; what is cut off is one that nobody appended.
pub(super) fn elements(stored: &[u8]) -> impl Iterator<Item = i64> {
    let is_whole = stored.len().is_multiple_of(WORD);
    words(stored).chain((!is_whole).then_some(NONSENSE))
}

fn words(stored: &[u8]) -> impl Iterator<Item = i64> {
    let (words, _) = stored.as_chunks::<WORD>();
    words.iter().map(|word| i64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_come_back_whatever_their_size() {
        for size in [0, 8, 13, 100] {
            let encoding = Encoding::new(1, size);
            for value in [1, 77, i64::MAX] {
                let stored = encoding.register(value);
                assert_eq!(stored.len(), size.max(8));
                assert_eq!(encoding.held(Some(&stored)), Some(value));
            }
            assert_eq!(encoding.held(None), None);
        }
    }

    #[test]
    fn bytes_that_nobody_wrote_are_a_value_that_nobody_wrote() {
        let encoding = Encoding::new(1, 20);
        let mut torn = encoding.register(5);
        torn[17] ^= 1;
        let other = Encoding::new(1, 30).register(5);
        for stored in [&torn[..], &torn[..4], &[], &other] {
            assert_eq!(encoding.held(Some(stored)), Some(NONSENSE));
        }
        let list = [7i64.to_le_bytes(), 9i64.to_le_bytes()].concat();
        assert_eq!(elements(&list).collect::<Vec<_>>(), [7, 9]);
        assert_eq!(elements(&list[..12]).collect::<Vec<_>>(), [7, NONSENSE]);
    }

    #[test]
    fn runs_and_keys_do_not_share_bytes() {
        let (one, other) = (Encoding::new(1, 0), Encoding::new(2, 0));
        assert_ne!(one.key(3), other.key(3));
        assert!(one.key(255) < one.key(256), "in the order of their numbers");
    }
}
