//! Cut and damaged files: never a panic, never a history that is silently another.

use isolario_model::{History, Outcome, SessionId};

use super::super::layout::read_header;
use super::{any, describe, history, load, mixed_file};
use crate::Position;

/// Every outcome is known, so that what is unknown in a cut file is so because it was cut.
fn sample() -> History {
    let random = any(14);
    history(|sink| {
        sink.meta(random.meta())?;
        // In the order of a real recording: sessions interleave.
        for txn in random.txns().filter(|txn| random.outcome(*txn) != Outcome::Unknown) {
            random.replay_txn(txn, sink)?;
        }
        Ok(())
    })
}

/// Whether each session of `part` is a beginning of that session of `whole`, but for at most two
/// last transactions, of unknown outcome and with no more operations than they had.
fn is_prefix(part: &History, whole: &History) -> bool {
    part.meta() == whole.meta()
        && part.sessions().all(|session| {
            let name = part.session_name(session);
            let same = whole.sessions().find(|s| whole.session_name(*s) == name);
            same.is_some_and(|same| session_is_prefix(part, session, whole, same))
        })
}

fn session_is_prefix(part: &History, a: SessionId, whole: &History, b: SessionId) -> bool {
    let theirs: Vec<_> = whole.session_txns(b).collect();
    let ours: Vec<_> = part.session_txns(a).collect();
    ours.len() <= theirs.len()
        && ours.iter().zip(&theirs).enumerate().all(|(i, (our, their))| {
            if part.outcome(*our) == Outcome::Unknown {
                i + 2 >= ours.len()
                    && part.txn_name(*our) == whole.txn_name(*their)
                    && part.txn_ops(*our).len() <= whole.txn_ops(*their).len()
            } else {
                describe(part, *our) == describe(whole, *their)
            }
        })
}

#[test]
fn a_file_cut_anywhere_gives_a_prefix_and_a_warning() {
    let whole = sample();
    assert!(whole.txn_count() > 6);
    let bytes = mixed_file(&whole, 4, 2);
    let header = read_header(&bytes).unwrap().len;
    let mut most = 0;
    for len in 0..bytes.len() {
        if len < header {
            assert!(load(&bytes[..len]).is_err(), "cut at {len}");
            continue;
        }
        let loaded = load(&bytes[..len]).unwrap();
        assert!(!loaded.warnings.is_empty(), "cut at {len}");
        assert!(loaded.warnings.iter().all(|w| matches!(w.position, Position::Byte(_))));
        assert!(is_prefix(&loaded.history, &whole), "cut at {len}");
        assert!(loaded.history.txn_count() >= most, "cut at {len} loses more than less does");
        most = loaded.history.txn_count();
    }
    assert_eq!(most, whole.txn_count(), "only the end mark was cut");
}

#[test]
fn a_changed_byte_is_an_error_or_a_warning_and_never_another_history() {
    let whole = sample();
    let finished = mixed_file(&whole, 4, 2);
    let unfinished = &finished[..finished.len() - super::HEAD - 8];
    for bytes in [&finished[..], unfinished] {
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= flip;
                if let Ok(loaded) = load(&damaged) {
                    assert!(!loaded.warnings.is_empty(), "byte {at} ^ {flip:#x} passed unseen");
                    assert!(is_prefix(&loaded.history, &whole), "byte {at} ^ {flip:#x}");
                }
            }
        }
    }
}

#[test]
fn damage_before_whole_records_is_an_error_that_says_where() {
    let bytes = mixed_file(&sample(), 4, 2);
    let header = read_header(&bytes).unwrap().len;
    for at in [header, header + 3, header + super::HEAD + 9] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert_eq!(
            load(&damaged).unwrap_err().to_string(),
            format!(
                "h.iso: byte {header}: expected a record that fits its checksum, \
                 found a damaged one, with whole ones after it"
            )
        );
    }
}

#[test]
fn a_missing_record_is_missed() {
    let whole = sample();
    let bytes = mixed_file(&whole, 4, 2);
    let header = read_header(&bytes).unwrap().len;
    let block = super::super::layout::Head::parse(&bytes[header..]).unwrap().len as usize;
    let mut without = bytes[..header].to_vec();
    without.extend_from_slice(&bytes[header + super::HEAD + block..]);
    let error = load(&without).unwrap_err().to_string();
    assert!(error.contains("transactions before the end"), "{error}");
}

#[test]
fn an_end_of_zeros_is_a_cut_one() {
    let whole = sample();
    let mut bytes = mixed_file(&whole, 4, 2);
    bytes.truncate(bytes.len() - super::HEAD - 8);
    let len = bytes.len();
    bytes.resize(len + 5000, 0);
    let loaded = load(&bytes).unwrap();
    assert!(loaded.history == whole);
    assert_eq!(
        loaded.warnings[0].message,
        "the file is truncated: its last 5000 bytes are an incomplete record and are ignored"
    );
    assert_eq!(loaded.warnings[0].position, Position::Byte(len as u64));
}
