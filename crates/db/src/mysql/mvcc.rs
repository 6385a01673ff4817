//! The versions that TiDB's storage has of a row: the answers of its HTTP API under
//! `/mvcc/key/{db}/{table}/{handle}` (`docs/tidb_http_api.md` of its source).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use isolario_model::Stamp;
use serde::Deserialize;

use crate::certificate::RowChange;
use crate::error::DbError;

/// The number of the column that holds versions: columns are counted from 1 when a table is made.
const VERSION: u8 = 4;

/// Kinds of records, as the protocol of the storage numbers them (`kvrpcpb`, `Op`). There are others,
/// for locks and for what was rolled back: these change nothing.
const PUT: u32 = 0;
const DELETE: u32 = 1;

/// The first byte of a row, and the bit of the second one that says that numbers of columns take four
/// bytes (`docs/design/2018-07-19-row-format.md` of TiDB's source).
const FORMAT: u8 = 128;
const IS_BIG: u8 = 1;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    value: Value,
    /// Where versions before 4.0 have it.
    info: Info,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Value {
    info: Info,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
    writes: Vec<Write>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Write {
    r#type: u32,
    commit_ts: u64,
    short_value: String,
}

/// The versions of a row, with their moments.
pub(crate) fn versions(row: i64, answer: &str) -> Result<Vec<(Stamp, RowChange)>, DbError> {
    let strange = |why: String| {
        DbError::fatal(format!(
            "the storage has a version of row {row} that cannot be parsed: {why}"
        ))
    };
    let answer: Answer =
        serde_json::from_str(answer).map_err(|error| strange(error.to_string()))?;
    let writes = answer.value.info.writes.into_iter().chain(answer.info.writes);
    let change = |write: Write| {
        let after = match write.r#type {
            DELETE => None,
            _ => match version_in(&write.short_value) {
                Some(version) => Some(version),
                None => return Err(strange(format!("{:?}", write.short_value))),
            },
        };
        Ok((moment(write.commit_ts), RowChange { row, before: None, after }))
    };
    writes.filter(|write| matches!(write.r#type, PUT | DELETE)).map(change).collect()
}

/// A moment of TiDB's clock: milliseconds and a counter in one number.
pub(crate) fn moment(timestamp: u64) -> Stamp {
    Stamp { physical: timestamp, logical: 0 }
}

/// The version in a row as it is stored: how many columns have values and how many have none, their
/// numbers, where the values end, and the values.
fn version_in(stored: &str) -> Option<i64> {
    let row = BASE64_STANDARD.decode(stored).ok()?;
    let [FORMAT, flags, a, b, c, d, rest @ ..] = &row[..] else { return None };
    if flags & IS_BIG != 0 {
        return None;
    }
    let count = usize::from(u16::from_le_bytes([*a, *b]));
    let without = usize::from(u16::from_le_bytes([*c, *d]));
    let columns = rest.get(..count)?;
    let ends = rest.get(count + without..count + without + 2 * count)?;
    let values = &rest[count + without + 2 * count..];
    let at = columns.iter().position(|column| *column == VERSION)?;
    let end = |at: usize| usize::from(u16::from_le_bytes([ends[2 * at], ends[2 * at + 1]]));
    let begin = at.checked_sub(1).map_or(0, end);
    whole(values.get(begin..end(at))?)
}

/// A whole number takes as few bytes as it can: one, two, four or eight.
fn whole(bytes: &[u8]) -> Option<i64> {
    Some(match *bytes {
        [a] => i64::from(i8::from_le_bytes([a])),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => i64::from_le_bytes(bytes.try_into().ok()?),
    })
}

/// What TiDB says of a session's last transaction, `@@tidb_last_txn_info`: when it started, and when it
/// committed, if it wrote anything.
pub(crate) fn last_transaction(info: &str) -> Option<(Stamp, Option<Stamp>)> {
    #[derive(Deserialize)]
    struct Transaction {
        start_ts: u64,
        #[serde(default)]
        commit_ts: u64,
    }
    let found: Transaction = serde_json::from_str(info).ok()?;
    let commit = (found.commit_ts > 0).then(|| moment(found.commit_ts));
    Some((moment(found.start_ts), commit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of our table: a, b and v have values, w has none.
    fn stored(a: i8, b: i16, v: i32) -> String {
        let mut row = vec![FORMAT, 0, 3, 0, 1, 0, 2, 3, VERSION, 5, 1, 0, 3, 0, 7, 0];
        row.extend(a.to_le_bytes());
        row.extend(b.to_le_bytes());
        row.extend(v.to_le_bytes());
        BASE64_STANDARD.encode(row)
    }

    #[test]
    fn the_version_is_found_in_a_stored_row() {
        assert_eq!(version_in(&stored(5, 860, 55_173)), Some(55_173));
        assert_eq!(version_in(&stored(-5, -860, -1)), Some(-1));
        // A row of another table, which has no such column.
        assert_eq!(version_in("gAABAAAAAgEAZA=="), None);
        assert_eq!(version_in("CAICAkE="), None, "the format before 4.0");
        let whole_row = stored(5, 860, 55_173);
        for length in (0..whole_row.len()).step_by(4) {
            assert_eq!(version_in(&whole_row[..length]), None, "{length} of its letters");
        }
    }

    #[test]
    fn the_first_byte_of_a_documented_row_is_its_format() {
        // `{"id": 1, "value": 100}`: column 2 has one byte.
        let row = BASE64_STANDARD.decode("gAABAAAAAgEAZA==").unwrap();
        assert_eq!(row, [FORMAT, 0, 1, 0, 0, 0, 2, 1, 0, 100]);
    }

    #[test]
    fn the_versions_of_a_row_come_with_their_moments() {
        let (one, two) = (stored(1, 2, 10_001), stored(1, 3, 20_001));
        let answer = format!(
            r#"{{"key": "7480000000000000875F728000000000000001", "region_id": 3003,
              "value": {{"info": {{"writes": [
                {{"type": 1, "start_ts": 458949167647817760, "commit_ts": 458949167660924960}},
                {{"type": 3, "start_ts": 458949167647817750, "commit_ts": 458949167647817750}},
                {{"start_ts": 458949167647817747, "commit_ts": 458949167660924940, "short_value": "{two}"}},
                {{"start_ts": 458949167647817745, "commit_ts": 458949167660924930, "short_value": "{one}"}}
              ]}}}}}}"#
        );
        let change = |at, after| (moment(at), RowChange { row: 1, before: None, after });
        assert_eq!(
            versions(1, &answer).unwrap(),
            [
                change(458_949_167_660_924_960, None),
                change(458_949_167_660_924_940, Some(20_001)),
                change(458_949_167_660_924_930, Some(10_001)),
            ]
        );
        let nothing = r#"{"key": "74", "region_id": 3003, "value": {"info": {}}}"#;
        assert_eq!(versions(1, nothing), Ok(Vec::new()));
        let old =
            format!(r#"{{"info": {{"writes": [{{"commit_ts": 7, "short_value": "{one}"}}]}}}}"#);
        assert_eq!(versions(1, &old).unwrap(), [change(7, Some(10_001))]);
        assert!(versions(1, r#"{"value": {"info": {"writes": [{"commit_ts": 7}]}}}"#).is_err());
        assert!(versions(1, "404 page not found").is_err());
    }

    #[test]
    fn the_last_transaction_tells_its_moments() {
        let told = r#"{"txn_scope":"global","start_ts":419141254530957313,"commit_ts":419141254530957314,"txn_commit_mode":"async_commit","async_commit_fallback":false,"one_pc_fallback":false}"#;
        let moments = last_transaction(told).unwrap();
        assert_eq!(moments.0, moment(419_141_254_530_957_313));
        assert_eq!(moments.1, Some(moment(419_141_254_530_957_314)));
        let read_only = r#"{"txn_scope":"global","start_ts":419141254530957313,"commit_ts":0}"#;
        assert_eq!(last_transaction(read_only).unwrap().1, None);
        assert_eq!(last_transaction(""), None);
    }
}
