//! What is left of a recording that did not end: whatever its last bytes are, it is what the
//! recording was at some moment.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use isolario_model::{History, Meta, Op, Outcome, TxnEnd, TxnStart, ValueRef};

use super::super::layout::{HEAD, frame, read_header};
use super::{load, read, temp_file, write};
use crate::{LiveRecorder, ParsedHistory, Position, SessionRecorder};

fn start<'a>(session: i64) -> TxnStart<'a> {
    TxnStart { session: session.into(), id: None, line: None }
}

/// The bytes of a recording, with a little of its room, and what it was after each record: where
/// that ended, and the history.
struct Recording {
    bytes: Vec<u8>,
    moments: Vec<(usize, History)>,
}

impl Recording {
    fn new() -> Recording {
        let file = temp_file();
        let recorder = LiveRecorder::create(file.path(), &Meta::default()).unwrap();
        let mut sessions: Vec<_> = (0..3).map(|_| recorder.session()).collect();
        let moment = || {
            let loaded = crate::read(file.path()).unwrap();
            (end_of(&loaded), loaded.history)
        };
        let mut moments = vec![moment()];
        for round in 0..4i64 {
            for (session, records) in sessions.iter_mut().enumerate() {
                let value = 10 * round + session as i64;
                step(records, session as i64, value);
                moments.push(moment());
            }
        }
        let mut bytes = std::fs::read(file.path()).unwrap();
        bytes.truncate(moments.last().unwrap().0 + 50);
        Recording { bytes, moments }
    }

    fn header(&self) -> usize {
        read_header(&self.bytes).unwrap().len
    }

    fn end(&self) -> usize {
        self.moments.last().unwrap().0
    }

    /// What it was when it had at most so many bytes.
    fn at(&self, len: usize) -> &History {
        &self.moments.iter().rev().find(|(end, _)| *end <= len).unwrap().1
    }
}

/// Ends the session's transaction, if one is open, and begins another. The file has one record more.
fn step(records: &mut SessionRecorder<'_>, session: i64, value: i64) {
    if value >= 10 {
        records.op(&read(session, value - 10)).unwrap();
        records.op(&write(session, value)).unwrap();
        // Longer than what has its length in one byte.
        let error = "e".repeat(if value % 20 == 0 { 300 } else { 0 });
        let end = TxnEnd { error: Some(&error), ..TxnEnd::new(Outcome::Committed) };
        records.end(&end).unwrap();
    }
    records.begin(&start(session), Some(value), &[write(session, value)]).unwrap();
}

/// Where the reader found the end of the records.
fn end_of(loaded: &ParsedHistory) -> usize {
    let message = "the file has no end mark: it was truncated, or its recorder did not finish";
    assert_eq!(loaded.warnings[0].message, message);
    match loaded.warnings[0].position {
        Position::Byte(at) => at as usize,
        _ => unreachable!("a byte"),
    }
}

#[test]
fn wherever_a_recording_is_cut_it_is_what_it_was_before() {
    let recording = Recording::new();
    for len in 0..=recording.bytes.len() {
        let loaded = load(&recording.bytes[..len]);
        if len < recording.header() {
            assert!(loaded.is_err(), "cut at {len}");
        } else {
            let loaded = loaded.unwrap();
            assert!(loaded.history == *recording.at(len), "cut at {len}");
            assert!(!loaded.warnings.is_empty(), "cut at {len}");
        }
    }
}

#[test]
fn whatever_became_zeros_it_is_what_it_was_before() {
    let recording = Recording::new();
    for from in recording.header()..recording.end() {
        let mut bytes = recording.bytes.clone();
        let first_lost = from + bytes[from..].iter().take_while(|byte| **byte == 0).count();
        bytes[from..].fill(0);
        assert!(load(&bytes).unwrap().history == *recording.at(first_lost), "zeros from {from}");
    }
}

/// The kind of a record comes last, and the other bytes in any order: every record is either there
/// or is not.
#[test]
fn a_record_without_its_kind_is_not_there() {
    let recording = Recording::new();
    for ends in recording.moments.windows(2) {
        let (from, to) = (ends[0].0, ends[1].0);
        assert_eq!(recording.bytes[from], frame::ROWS);
        for half in [from + 1..from + 1, from + 1..from + HEAD, from + HEAD..to, from + 1..to] {
            let mut bytes = recording.bytes[..to].to_vec();
            bytes[from] = 0;
            bytes[half.clone()].fill(0);
            bytes.resize(to + 100, 0);
            let loaded = load(&bytes).unwrap();
            assert!(loaded.history == *recording.at(from), "{half:?}");
            let is_room = half == (from + 1..to);
            assert_eq!(loaded.warnings[0].message.starts_with("the file is truncated"), !is_room);
        }
    }
}

/// When a machine dies, memory has reached the disk in any order.
#[test]
fn what_comes_after_a_gap_is_no_part_of_it() {
    let recording = Recording::new();
    for (from, to) in [(recording.header(), 70), (100, 300), (301, 302)] {
        let mut bytes = recording.bytes.clone();
        bytes[from..to].fill(0);
        let loaded = load(&bytes).unwrap();
        assert!(loaded.history == *recording.at(from), "zeros from {from} to {to}");
        assert!(loaded.warnings[0].message.starts_with("the file is truncated"));
    }
}

#[test]
fn a_changed_byte_is_never_another_history() {
    let recording = Recording::new();
    let bytes = &recording.bytes[..recording.end()];
    for at in recording.header()..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= flip;
            let loaded = load(&damaged).unwrap();
            assert!(loaded.history == *recording.at(at), "byte {at} ^ {flip:#x}");
        }
    }
}

/// Sessions exchange the value of one register, as a database would. Whoever reads the file in the
/// meantime finds the write of every value that was read.
#[test]
fn a_reader_never_meets_a_read_before_its_write() {
    let file = temp_file();
    let recorder = LiveRecorder::create(file.path(), &Meta::default()).unwrap();
    let (register, over) = (AtomicI64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (1..=4)
            .map(|session| {
                let (mut records, register) = (recorder.session(), &register);
                scope.spawn(move || {
                    for round in 0..1500 {
                        exchange(&mut records, session, 10 * round + session, register);
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while looks == 0 || !over.load(Ordering::Relaxed) {
                assert_no_thin_air(&crate::read(file.path()).unwrap().history);
                looks += 1;
            }
        });
        sessions.into_iter().for_each(|session| session.join().unwrap());
        over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    recorder.finish().unwrap();
    assert_no_thin_air(&crate::read(file.path()).unwrap().history);
}

fn exchange(records: &mut SessionRecorder<'_>, session: i64, value: i64, register: &AtomicI64) {
    records.begin(&start(session), None, &[write(0, value)]).unwrap();
    let seen = register.swap(value, Ordering::AcqRel);
    if seen != 0 {
        records.op(&read(0, seen)).unwrap();
    }
    records.op(&write(0, value)).unwrap();
    records.end(&TxnEnd::new(Outcome::Committed)).unwrap();
}

fn assert_no_thin_air(history: &History) {
    let (mut written, mut seen) = (Vec::new(), Vec::new());
    for op in history.txns().flat_map(|txn| history.txn_ops(txn)) {
        history.with_op_input(op, |op| match *op {
            Op::Write { value: ValueRef::Int(value), .. } => written.push(value),
            Op::Read { value: Some(ValueRef::Int(value)), .. } => seen.push(value),
            _ => {}
        });
    }
    written.sort_unstable();
    for value in seen {
        assert!(written.binary_search(&value).is_ok(), "{value} out of thin air");
    }
}
