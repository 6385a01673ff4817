//! Files of JSON lines that grow while they are read.

use std::io::Write;

use isolario_formats::{Position, Tail};
use isolario_model::Batch;

const LINES: &str = concat!(
    "{\"isolario\": 2, \"initial\": 0}\n",
    "{\"session\": \"a\", \"ops\": [[\"w\", \"x\", 1]]}\n",
    "# a comment\n",
    "{\"session\": \"b\", \"ops\": [[\"r\", \"x\", 1]]}\n",
);

#[test]
fn lines_count_once_they_are_whole_and_add_up_to_the_history() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut tail = Tail::open(file.path()).unwrap();
    let mut batch = Batch::new();
    for byte in LINES.as_bytes() {
        file.write_all(&[*byte]).unwrap();
        assert_eq!(tail.read(&mut batch).unwrap(), *byte == b'\n');
        assert!(!tail.read(&mut batch).unwrap());
    }
    let whole = isolario_formats::read(file.path()).unwrap().history;
    assert_eq!(tail.position(), LINES.len() as u64);
    assert_eq!(tail.whole().unwrap(), whole);
    assert_eq!(batch.build().unwrap(), whole);
}

#[test]
fn mistakes_are_named_with_their_lines() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut tail = Tail::open(file.path()).unwrap();
    file.write_all(LINES.as_bytes()).unwrap();
    tail.read(&mut Batch::new()).unwrap();
    file.write_all(b"{\"session\": 1}\n").unwrap();
    let error = tail.read(&mut Batch::new()).unwrap_err();
    assert_eq!(error.position, Position::Column(5, 1));
    file.as_file().set_len(10).unwrap();
    assert!(tail.read(&mut Batch::new()).unwrap_err().to_string().contains("became shorter"));
    assert!(tail.whole().is_err());
}
