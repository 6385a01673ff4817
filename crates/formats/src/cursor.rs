//! A place in binary input that moves forward and never past the end.

use std::fmt;

use crate::error::Fault;

/// Bytes and a place in them. What is asked for is put into words only when it is not there.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the first byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    /// Where the next byte stands.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Whether no byte is left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// How many bytes are left.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(
        &mut self,
        what: impl fmt::Display,
    ) -> Result<[u8; N], Fault> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => Err(self.cut(what)),
        }
    }

    /// The next `len` bytes. The length may come from the input: nothing is allocated.
    pub(crate) fn take(&mut self, len: u64, what: impl fmt::Display) -> Result<&'a [u8], Fault> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        match self.bytes[self.at..].split_at_checked(len) {
            Some((head, _)) => {
                self.at += len;
                Ok(head)
            }
            None => Err(self.cut(what)),
        }
    }

    /// The next byte.
    pub(crate) fn byte(&mut self, what: impl fmt::Display) -> Result<u8, Fault> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    /// The next eight bytes, most significant first.
    pub(crate) fn u64_be(&mut self, what: impl fmt::Display) -> Result<u64, Fault> {
        self.array(what).map(u64::from_be_bytes)
    }

    /// The next eight bytes, least significant first.
    pub(crate) fn u64_le(&mut self, what: impl fmt::Display) -> Result<u64, Fault> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn cut(&self, what: impl fmt::Display) -> Fault {
        let found = match self.remaining() {
            0 => "the end of the file".to_owned(),
            1 => "only 1 more byte".to_owned(),
            n => format!("only {n} more bytes"),
        };
        Fault::malformed(self.at, what.to_string(), found)
    }
}
