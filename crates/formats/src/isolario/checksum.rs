//! The checksums of frames.

use super::layout::frame;

/// The checksum of a part of a frame of some kind.
#[inline]
pub(super) fn checksum(kind: u8, part: &[u8]) -> u32 {
    match kind {
        frame::ROWS => mixed(part),
        _ => crc32fast::hash(part),
    }
}

/// An odd number without a pattern: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A checksum of short parts, which sessions compute between two transactions.
///
/// A CRC of so few bytes is looked up in tables, and a database at work leaves no tables in the
/// processor's caches. This takes eight bytes at a time and needs none. Each step maps different
/// sums to different sums, so that one changed word is lost in the last step alone, which keeps 32
/// of 64 bits. Lost pages are told as surely as by a CRC; what a CRC tells better are a few flipped
/// bits on a line, and there is no line here.
#[inline]
fn mixed(part: &[u8]) -> u32 {
    let (words, rest) = part.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mix = |sum: u64, word: &[u8; 8]| {
        let product = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        product ^ product >> 32
    };
    words.iter().chain([&last]).fold(part.len() as u64, mix) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_what_the_book_says() {
        assert_eq!(mixed(b""), 0);
        assert_eq!(mixed(b"\x01"), 0);
        assert_eq!(mixed(b"isolario"), 0xcf35_a17c);
        assert_eq!(mixed(b"isolario, a book of islands"), 0x7a8f_6958);
    }

    #[test]
    fn every_changed_bit_and_every_change_of_length_is_told() {
        let part: Vec<u8> = (0..40).collect();
        for len in 1..part.len() {
            let whole = mixed(&part[..len]);
            assert_ne!(whole, mixed(&part[..len - 1]), "{len} bytes, one cut");
            assert_ne!(whole, mixed(&[&part[..len], &[0]].concat()), "{len} bytes, one more");
            for bit in 0..len * 8 {
                let mut changed = part[..len].to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(whole, mixed(&changed), "{len} bytes, bit {bit}");
            }
        }
    }
}
