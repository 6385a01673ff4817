//! CockroachDB's changefeeds: the rows that `EXPERIMENTAL CHANGEFEED FOR … WITH updated,
//! mvcc_timestamp, resolved` returns, with a key and a value in JSON each ("Changefeed Messages" of its
//! documentation).

use std::collections::BTreeMap;

use isolario_model::Stamp;
use serde::Deserialize;

use crate::certificate::{CommitLog, RowChange};
use crate::error::DbError;

/// Reads messages one after the other. They come at least once, and those of different rows in any order.
#[derive(Default)]
pub(crate) struct Decoder {
    versions: BTreeMap<(Stamp, i64), Option<i64>>,
}

/// A value: a change of a row, or the promise that nothing before a moment is still to come.
#[derive(Deserialize)]
struct Message {
    /// The row as it is now; nothing if it was deleted.
    after: Option<Row>,
    mvcc_timestamp: Option<String>,
    resolved: Option<String>,
}

#[derive(Deserialize)]
struct Row {
    v: i64,
}

impl Decoder {
    /// Takes a message. Tells up to which moment all changes have come, if it says so.
    pub(crate) fn take(
        &mut self,
        key: Option<&[u8]>,
        value: &[u8],
    ) -> Result<Option<Stamp>, DbError> {
        let strange = || {
            let message = String::from_utf8_lossy(value);
            DbError::fatal(format!("the changefeed has a message that cannot be parsed: {message}"))
        };
        let message: Message = serde_json::from_slice(value).map_err(|_| strange())?;
        if let Some(resolved) = message.resolved {
            return timestamp(&resolved).map(Some).ok_or_else(strange);
        }
        let key = key.and_then(|key| serde_json::from_slice::<[i64; 1]>(key).ok());
        let at = message.mvcc_timestamp.as_deref().and_then(timestamp);
        let ([row], at) = key.zip(at).ok_or_else(strange)?;
        self.versions.insert((at, row), message.after.map(|after| after.v));
        Ok(None)
    }

    /// What came up to a moment.
    pub(crate) fn log(self, end: Stamp) -> CommitLog {
        let versions = self.versions.into_iter().filter(|((at, _), _)| *at <= end);
        CommitLog::of_versions(
            versions.map(|((at, row), after)| (at, RowChange { row, before: None, after })),
        )
    }
}

/// A moment of the hybrid logical clock: nanoseconds, a point, and ten digits that count what happened
/// in the same one.
pub(crate) fn timestamp(decimal: &str) -> Option<Stamp> {
    let (physical, logical) = decimal.trim().split_once('.').unwrap_or((decimal.trim(), ""));
    if logical.len() > 10 {
        return None;
    }
    let logical = format!("{logical:0<10}");
    Some(Stamp { physical: physical.parse().ok()?, logical: logical.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::LoggedCommit;

    #[test]
    fn a_moment_is_a_decimal_number() {
        let moment = |physical, logical| Some(Stamp { physical, logical });
        let nanos = 1_783_372_618_230_329_595;
        assert_eq!(timestamp("1783372618230329595.0000000000"), moment(nanos, 0));
        assert_eq!(timestamp("1783372618230329595.0000000012"), moment(nanos, 12));
        assert_eq!(timestamp("1783372618230329595"), moment(nanos, 0));
        assert_eq!(timestamp("1783372618230329595.00000000001"), None);
        assert_eq!(timestamp("soon"), None);
    }

    /// As the documentation shows them, for our table.
    #[test]
    fn messages_are_versions_and_promises() {
        let mut decoder = Decoder::default();
        let insert = r#"{"after": {"a": 5, "b": 7, "id": 1, "v": 10001, "w": null}, "mvcc_timestamp": "1783372618230329595.0000000000", "updated": "1783372618230329595.0000000000"}"#;
        let delete = r#"{"after": null, "mvcc_timestamp": "1783372619000000000.0000000003", "updated": "1783372619000000000.0000000003"}"#;
        let later =
            r#"{"after": {"id": 2, "v": 3}, "mvcc_timestamp": "1783372630000000000.0000000000"}"#;
        for value in [delete, insert, insert] {
            assert_eq!(decoder.take(Some(b"[1]"), value.as_bytes()), Ok(None));
        }
        assert_eq!(decoder.take(Some(b"[2]"), later.as_bytes()), Ok(None));
        let end = timestamp("1783372620000000000.0000000000").unwrap();
        let resolved = br#"{"resolved":"1783372620000000000.0000000000"}"#;
        assert_eq!(decoder.take(None, resolved), Ok(Some(end)));
        for wrong in [&b"{}"[..], b"nothing", br#"{"after":{"a":1},"mvcc_timestamp":"1.0"}"#] {
            assert!(decoder.take(Some(b"[1]"), wrong).is_err());
        }
        assert!(decoder.take(Some(b"[\"x\"]"), delete.as_bytes()).is_err());

        let commit = |at: &str, row, after| LoggedCommit {
            number: 0,
            at: timestamp(at),
            changes: vec![RowChange { row, before: None, after }],
        };
        assert_eq!(
            decoder.log(end).commits,
            [
                commit("1783372618230329595.0000000000", 1, Some(10001)),
                commit("1783372619000000000.0000000003", 1, None),
            ]
        );
    }
}
