//! Packed files: gzip and zstd, recognised by their first bytes.

use std::io::{self, Read};

use crate::error::Problem;
use crate::source::{Bytes, Meter, Metered};

/// So much may come out of any packed file.
const ALWAYS: u64 = 1 << 30;
/// Beyond that, so many times as much may come out as is in. Histories give 5 to 30 times as much; a
/// file that gives 100 times as much was made to fill the memory.
const TIMES: u64 = 100;

/// Unpacks what is packed, and leaves the rest alone.
pub(crate) fn unpack(bytes: Bytes, meter: &Meter) -> Result<Bytes, Problem> {
    let limit = ALWAYS.max(TIMES * bytes.len() as u64);
    unpack_within(bytes, limit, meter)
}

fn unpack_within(bytes: Bytes, limit: u64, meter: &Meter) -> Result<Bytes, Problem> {
    let is_gzip = bytes.starts_with(&[0x1f, 0x8b]);
    if !is_gzip && !bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Ok(bytes);
    }
    meter.begin(bytes.len());
    let packed = Metered { inner: &bytes[..], meter };
    let unpacked = match is_gzip {
        true => read_within(flate2::read::MultiGzDecoder::new(packed), limit)?,
        false => read_within(zstd::Decoder::new(packed)?, limit)?,
    };
    match unpacked {
        Some(unpacked) => Ok(Bytes::Owned(unpacked)),
        None => Err(Problem::UnpacksTooLarge { packed: bytes.len() as u64, limit }),
    }
}

/// All there is to read, unless that is more than the limit.
fn read_within(reader: impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unpacks_to_too_much_is_refused_as_soon_as_it_does() {
        let plain = vec![7u8; 100_000];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gzip, &plain).unwrap();
        for packed in [gzip.finish().unwrap(), zstd::encode_all(&plain[..], 3).unwrap()] {
            let unpacked =
                |limit| unpack_within(Bytes::Owned(packed.clone()), limit, &Meter::default());
            assert_eq!(unpacked(100_000).unwrap()[..], plain[..]);
            let error = unpacked(99_999).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{} compressed bytes", packed.len())), "{error}");
        }
        // Plain files may be as large as they are.
        assert!(unpack_within(Bytes::Owned(plain), 1, &Meter::default()).is_ok());
    }

    #[test]
    fn packed_bytes_are_counted() {
        let packed = zstd::encode_all(&[7u8; 1000][..], 3).unwrap();
        let (len, meter) = (packed.len() as u64, Meter::default());
        unpack(Bytes::Owned(packed), &meter).unwrap();
        assert_eq!((meter.read(), meter.total()), (len, len));
    }
}
