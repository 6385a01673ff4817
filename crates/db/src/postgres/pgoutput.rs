//! PostgreSQL's logical decoding in the protocol of its own replication (`pgoutput`, version 1): only
//! what says which rows changed.

use std::collections::BTreeMap;

use crate::certificate::{LoggedCommit, RowChange};
use crate::error::DbError;
use crate::table::TABLE;

/// Where the columns of our table are.
#[derive(Clone, Copy)]
struct Columns {
    id: usize,
    version: usize,
}

/// Reads messages one after the other.
#[derive(Default)]
pub(crate) struct Decoder {
    /// The relations that are our table, by number.
    ours: BTreeMap<u32, Columns>,
    open: Option<LoggedCommit>,
    /// What has committed.
    pub(crate) commits: Vec<LoggedCommit>,
}

fn malformed(why: &str) -> DbError {
    DbError::fatal(format!("the server's log has a message that cannot be parsed: {why}"))
}

impl Decoder {
    /// Takes a message. Transactions without changes of our table are left out.
    pub(crate) fn take(&mut self, message: &[u8]) -> Result<(), DbError> {
        let mut bytes = Bytes(message);
        match bytes.byte()? {
            b'B' => {
                bytes.skip(16)?;
                let number = u64::from(bytes.u32()?);
                self.open = Some(LoggedCommit { number, ..LoggedCommit::default() });
            }
            b'C' => {
                let commit =
                    self.open.take().ok_or_else(|| malformed("an end without a beginning"))?;
                if !commit.changes.is_empty() {
                    self.commits.push(commit);
                }
            }
            b'R' => self.relation(&mut bytes)?,
            kind @ (b'I' | b'U' | b'D') => self.change(kind, &mut bytes)?,
            b'T' => return Err(malformed("the table was truncated")),
            // Types, origins and messages of others.
            _ => {}
        }
        Ok(())
    }

    fn relation(&mut self, bytes: &mut Bytes<'_>) -> Result<(), DbError> {
        let number = bytes.u32()?;
        bytes.text()?;
        let name = bytes.text()?;
        bytes.skip(1)?;
        let (mut id, mut version) = (None, None);
        for at in 0..usize::from(bytes.u16()?) {
            bytes.skip(1)?;
            match bytes.text()? {
                b"id" => id = Some(at),
                b"v" => version = Some(at),
                _ => {}
            }
            bytes.skip(8)?;
        }
        if name == TABLE.as_bytes() {
            let (Some(id), Some(version)) = (id, version) else {
                return Err(malformed("the table lacks its columns"));
            };
            self.ours.insert(number, Columns { id, version });
        }
        Ok(())
    }

    fn change(&mut self, kind: u8, bytes: &mut Bytes<'_>) -> Result<(), DbError> {
        let Some(columns) = self.ours.get(&bytes.u32()?).copied() else { return Ok(()) };
        let mut before = None;
        let mut tag = bytes.byte()?;
        if matches!(tag, b'O' | b'K') {
            before = Some(bytes.tuple(columns)?);
            tag = if kind == b'D' { 0 } else { bytes.byte()? };
        }
        let after = match (kind, tag) {
            (b'D', 0) => None,
            (b'I' | b'U', b'N') => Some(bytes.tuple(columns)?),
            _ => return Err(malformed("a change without its row")),
        };
        let row = after.or(before).ok_or_else(|| malformed("a change without its row"))?.0;
        let open =
            self.open.as_mut().ok_or_else(|| malformed("a change outside of a transaction"))?;
        if let (Some(before), Some(after)) = (before, after)
            && before.0 != after.0
        {
            return Err(malformed("a row that changed its key"));
        }
        let version = |tuple: Option<(i64, Option<i64>)>| tuple.and_then(|(_, version)| version);
        open.changes.push(RowChange { row, before: version(before), after: version(after) });
        Ok(())
    }
}

/// What is left of a message.
struct Bytes<'m>(&'m [u8]);

impl<'m> Bytes<'m> {
    fn take(&mut self, count: usize) -> Result<&'m [u8], DbError> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| malformed("it is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn skip(&mut self, count: usize) -> Result<(), DbError> {
        self.take(count).map(|_| ())
    }

    fn byte(&mut self) -> Result<u8, DbError> {
        Ok(self.take(1)?[0])
    }

    fn u16(&mut self) -> Result<u16, DbError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, DbError> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Up to the byte that ends it.
    fn text(&mut self) -> Result<&'m [u8], DbError> {
        let end = self
            .0
            .iter()
            .position(|byte| *byte == 0)
            .ok_or_else(|| malformed("a text has no end"))?;
        let text = self.take(end)?;
        self.skip(1)?;
        Ok(text)
    }

    /// The key and the version of a row.
    fn tuple(&mut self, columns: Columns) -> Result<(i64, Option<i64>), DbError> {
        let (mut id, mut version) = (None, None);
        for at in 0..usize::from(self.u16()?) {
            let number = match self.byte()? {
                b'n' | b'u' => None,
                b't' => {
                    let length = self.u32()? as usize;
                    std::str::from_utf8(self.take(length)?).ok().and_then(|text| text.parse().ok())
                }
                _ => return Err(malformed("a column of an unknown form")),
            };
            if at == columns.id {
                id = number;
            }
            if at == columns.version {
                version = number;
            }
        }
        Ok((id.ok_or_else(|| malformed("a row without its key"))?, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(name: &str) -> Vec<u8> {
        let mut message = b"R\0\0\0\x07public\0".to_vec();
        message.extend(name.bytes());
        message.extend(b"\0f\0\x02");
        for column in ["id", "v"] {
            message.push(1);
            message.extend(column.bytes());
            message.extend([0; 9]);
        }
        message
    }

    fn begin(number: u32) -> Vec<u8> {
        [&b"B"[..], &[0; 16], &number.to_be_bytes()].concat()
    }

    fn tuple(values: [&str; 2]) -> Vec<u8> {
        let mut bytes = vec![0, 2];
        for value in values {
            bytes.push(b't');
            bytes.extend((value.len() as u32).to_be_bytes());
            bytes.extend(value.bytes());
        }
        bytes
    }

    fn change(kind: u8, parts: &[(u8, [&str; 2])]) -> Vec<u8> {
        let mut message = vec![kind, 0, 0, 0, 7];
        for (tag, values) in parts {
            message.push(*tag);
            message.extend(tuple(*values));
        }
        message
    }

    fn decoded(messages: &[Vec<u8>]) -> Result<Vec<LoggedCommit>, DbError> {
        let mut decoder = Decoder::default();
        messages.iter().try_for_each(|message| decoder.take(message))?;
        Ok(decoder.commits)
    }

    #[test]
    fn changes_of_our_table_come_with_their_transaction() {
        let commits = decoded(&[
            begin(8),
            relation(TABLE),
            change(b'I', &[(b'N', ["3", "10"])]),
            change(b'U', &[(b'O', ["3", "10"]), (b'N', ["3", "11"])]),
            change(b'D', &[(b'O', ["3", "11"])]),
            b"C".to_vec(),
            begin(9),
            b"C".to_vec(),
        ]);
        let change = |before, after| RowChange { row: 3, before, after };
        let changes =
            vec![change(None, Some(10)), change(Some(10), Some(11)), change(Some(11), None)];
        assert_eq!(commits.unwrap(), [LoggedCommit { number: 8, at: None, changes }]);
    }

    #[test]
    fn other_tables_do_not_count_and_a_truncated_one_is_an_error() {
        let other =
            [begin(8), relation("other"), change(b'I', &[(b'N', ["3", "1"])]), b"C".to_vec()];
        assert_eq!(decoded(&other), Ok(Vec::new()));
        assert!(decoded(&[begin(8), b"T".to_vec()]).is_err());
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let whole = [begin(8), relation(TABLE), change(b'I', &[(b'N', ["3", "10"])])];
        for message in 0..whole.len() {
            for length in 0..whole[message].len() {
                let mut cut = whole[..=message].to_vec();
                cut[message].truncate(length);
                assert!(decoded(&cut).is_err(), "{message}, {length}");
            }
        }
    }
}
