//! Files that grow while they are read, piece by piece.

use std::io::Write;
use std::path::Path;

use isolario_formats::{LiveRecorder, OutputTarget, Position, Stream, find};
use isolario_fuzz::arbitrary::{Facts, sample};
use isolario_model::{Batch, BatchEntries, History, Meta, Op, Outcome, TxnEnd, TxnStart, ValueRef};

const LINES: &str = concat!(
    "{\"isolario\": 2, \"initial\": 0}\n",
    "{\"session\": \"a\", \"ops\": [[\"w\", \"x\", 1]]}\n",
    "# a comment\n",
    "{\"session\": \"b\", \"ops\": [[\"r\", \"x\", 1]]}\n",
);

fn open(path: &Path, format: &str) -> Stream {
    Stream::open(path, find(format).unwrap()).unwrap().unwrap()
}

fn joined(batches: Vec<Batch>) -> History {
    History::from_batches(batches, BatchEntries::Whole).unwrap()
}

/// All that can be read now.
fn rest(stream: &mut Stream) -> Vec<Batch> {
    let mut all = Vec::new();
    loop {
        match stream.next_piece().unwrap() {
            piece if piece.is_empty() => return all,
            piece => all.extend(piece),
        }
    }
}

#[test]
fn lines_count_once_they_are_whole_and_add_up_to_the_history() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut stream = open(file.path(), "jsonl");
    let mut batches = Vec::new();
    let (last, lines) = LINES.as_bytes().split_last().unwrap();
    for byte in lines {
        file.write_all(&[*byte]).unwrap();
        let piece = stream.next_piece().unwrap();
        assert_eq!(piece.is_empty(), *byte != b'\n');
        batches.extend(piece);
        assert!(stream.next_piece().unwrap().is_empty());
    }
    // The last one counts without its end, too, if nothing more is waited for.
    batches.push(stream.close().unwrap());
    file.write_all(&[*last]).unwrap();
    let whole = isolario_formats::read(file.path()).unwrap().history;
    assert_eq!(joined(batches), whole);
    assert_eq!(stream.position(), LINES.len() as u64 - 1);
    stream.rewind().unwrap();
    assert_eq!(joined(rest(&mut stream)), whole);
}

#[test]
fn mistakes_are_named_with_their_lines() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut stream = open(file.path(), "jsonl");
    file.write_all(LINES.as_bytes()).unwrap();
    stream.next_piece().unwrap();
    file.write_all(b"{\"session\": 1}\n").unwrap();
    assert_eq!(stream.next_piece().unwrap_err().position, Position::Column(5, 1));
    file.as_file().set_len(10).unwrap();
    assert!(stream.next_piece().unwrap_err().to_string().contains("became shorter"));
}

#[test]
fn other_formats_are_not_read_so() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(Stream::open(file.path(), find("plume").unwrap()).unwrap().is_none());
    assert!(Stream::FORMATS.iter().all(|name| find(name).is_some()));
}

/// A file of blocks with everything that a history can have.
fn blocks() -> (Vec<u8>, History) {
    let history = sample(Facts::All, 300).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let target = OutputTarget::Path(file.path().to_owned());
    let mut writer = find("isolario").unwrap().writer(target).unwrap();
    history.replay(&mut *writer).unwrap();
    writer.finish().unwrap();
    (std::fs::read(file.path()).unwrap(), history)
}

#[test]
fn a_file_of_blocks_is_read_as_it_grows_and_knows_its_end() {
    let (bytes, history) = blocks();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes[..40]).unwrap();
    let mut stream = open(file.path(), "isolario");
    let mut batches = Vec::new();
    for part in bytes[40..].chunks(997) {
        file.write_all(part).unwrap();
        assert!(!stream.is_complete());
        batches.extend(stream.next_piece().unwrap());
    }
    assert!(stream.is_complete());
    assert!(stream.close().unwrap().is_empty());
    assert_eq!(joined(batches), history);
}

#[test]
fn damage_is_an_error_wherever_it_is_and_a_cut_end_is_none() {
    let (bytes, history) = blocks();
    let read = |bytes: &[u8]| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut stream = Stream::open(file.path(), find("isolario").unwrap())?.unwrap();
        let mut all = Vec::new();
        loop {
            match stream.next_piece()? {
                piece if piece.is_empty() => return Ok::<_, isolario_formats::ReadError>(all),
                piece => all.extend(piece),
            }
        }
    };
    assert_eq!(joined(read(&bytes).unwrap()), history);
    for at in [3, 60, bytes.len() / 2] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        let error = read(&damaged).unwrap_err();
        assert!(matches!(error.position, Position::Byte(_) | Position::Whole), "{error}");
    }
    // Without the end mark, or without half of a block, the rest is what there is so far.
    assert_eq!(joined(read(&bytes[..bytes.len() - 5]).unwrap()), history);
    assert!(read(&bytes[..bytes.len() / 2]).unwrap().is_empty());
    let mut more = bytes.clone();
    more.extend_from_slice(&bytes[bytes.len() - 21..]);
    assert!(read(&more).unwrap_err().to_string().contains("nothing after the end mark"));
}

#[test]
fn a_recording_is_read_while_it_goes_on_and_when_it_is_packed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let recorder = LiveRecorder::create(file.path(), &Meta::default()).unwrap();
    let mut stream = open(file.path(), "isolario");
    let mut batches = rest(&mut stream);
    let mut sessions = [recorder.session(), recorder.session()];
    for value in 0..50i64 {
        let session = value % 2;
        let write = Op::Write { key: ValueRef::Text("x"), value: value.into() };
        let records = &mut sessions[session as usize];
        let start = TxnStart { session: session.into(), id: None, line: None };
        records.begin(&start, Some(value), &[write]).unwrap();
        batches.extend(rest(&mut stream));
        let unended = stream.unended().unwrap().build().unwrap();
        let is_announced = |op| unended.encoded_version(op) == write_word(&unended, value);
        assert!(unended.txns().any(|txn| unended.txn_ops(txn).any(is_announced)), "{value}");
        records.op(&write).unwrap();
        if value < 48 {
            records.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        }
    }
    sessions.iter_mut().for_each(|records| records.flush().unwrap());
    drop(sessions);
    assert!(!stream.is_complete());
    recorder.finish().unwrap();
    batches.extend(rest(&mut stream));
    assert!(stream.is_complete());
    batches.push(stream.close().unwrap());
    let packed = isolario_formats::read(file.path()).unwrap().history;
    assert_eq!(packed.txn_count(), 50);
    assert_eq!(joined(batches), packed);
    stream.rewind().unwrap();
    assert_eq!(joined(rest(&mut stream)), packed);
    assert!(stream.is_complete());
}

#[test]
fn a_fork_goes_on_where_its_stream_was() {
    let (bytes, history) = blocks();
    for (format, bytes) in [("jsonl", LINES.as_bytes()), ("isolario", &bytes[..])] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let whole = joined(rest(&mut open(file.path(), format)));
        assert!(format != "isolario" || whole == history);
        let mut stream = open(file.path(), format).in_pieces_of(40);
        let mut before = Vec::new();
        loop {
            let mut fork = stream.fork().unwrap().unwrap();
            assert_eq!(fork.position(), stream.position());
            let after = rest(&mut fork);
            assert_eq!(fork.is_complete(), format == "isolario");
            assert_eq!(joined([&before[..], &after].concat()), whole);
            match stream.next_piece().unwrap() {
                piece if piece.is_empty() => break,
                piece => before.extend(piece),
            }
        }
        assert!(!before.is_empty());
    }
}

#[test]
fn a_fork_of_a_recording_knows_what_has_begun_and_ends_when_it_is_packed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let recorder = LiveRecorder::create(file.path(), &Meta::default()).unwrap();
    let mut stream = open(file.path(), "isolario");
    let mut session = recorder.session();
    let write = Op::Write { key: ValueRef::Text("x"), value: 1i64.into() };
    let start = TxnStart { session: 0i64.into(), id: None, line: None };
    session.begin(&start, None, &[write]).unwrap();
    session.flush().unwrap();
    assert!(rest(&mut stream).is_empty());
    let mut fork = stream.fork().unwrap().unwrap();
    session.op(&write).unwrap();
    session.end(&TxnEnd::new(Outcome::Committed)).unwrap();
    session.flush().unwrap();
    let told = joined(rest(&mut fork));
    assert_eq!((told.txn_count(), told.op_count()), (1, 1));
    assert_eq!(told, joined(rest(&mut stream)));
    drop(session);
    recorder.finish().unwrap();
    assert!(stream.fork().unwrap().is_none());
}

fn write_word(history: &History, value: i64) -> u64 {
    history.find_value(value.into()).unwrap().to_bits()
}
