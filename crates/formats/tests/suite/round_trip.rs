//! `jsonl` and `text`: what they write is read back as it was, whatever the history holds.

use isolario_formats::{HistoryFormat, Source, find, sniff};
use isolario_fuzz::arbitrary::{Facts, history};
use isolario_model::{Batch, History, Initial, SinkError};
use proptest::prelude::*;

use crate::memory::{read, write};

/// Writes, recognises and reads a history again; then writes it a second time.
fn round_trip(format: &str, history: &History) -> Result<(), TestCaseError> {
    let bytes = write(format, history).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let source = Source::from_bytes("written", bytes.clone()).unwrap();
    if history.op_count() > 0 {
        prop_assert_eq!(sniff(&source).map(HistoryFormat::name), Some(format));
    }
    let again = read(format, &bytes);
    prop_assert!(again == *history, "read back differently:\n{}", String::from_utf8_lossy(&bytes));
    prop_assert_eq!(write(format, &again).unwrap(), bytes);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn jsonl_gives_back_every_history(history in history(Facts::WithoutLines)) {
        round_trip("jsonl", &history)?;
    }

    #[test]
    fn text_gives_back_every_history_without_versions_and_statements(
        history in history(Facts::WithoutNotes),
    ) {
        round_trip("text", &history)?;
    }

    #[test]
    fn readers_never_panic_on_changed_bytes(
        history in history(Facts::WithoutNotes),
        format in prop::sample::select(vec!["jsonl", "text"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = write(format, &history).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let source = Source::from_bytes("changed", bytes);
        if let Ok(source) = source
            && let Err(error) = find(format).unwrap().read(&source)
        {
            prop_assert!(error.to_string().starts_with("changed:"), "{}", error);
        }
    }
}

#[test]
fn text_refuses_what_it_has_no_form_for() {
    let refused = |history: &History| match write("text", history) {
        Err(SinkError::Inexpressible { format: "text", what }) => what,
        other => panic!("{other:?}"),
    };
    let from_jsonl = |lines: &str| read("jsonl", lines.as_bytes());
    let history = from_jsonl(r#"{"session":1,"ops":[["w","x",1]],"sql":{"0":"UPDATE"}}"#);
    assert_eq!(refused(&history), "the statements that operations came from");
    let history = from_jsonl(r#"{"session":1,"ops":[["w","x",1]],"versions":{"0":"initial"}}"#);
    assert_eq!(refused(&history), "versions apart from values");
    let history =
        from_jsonl("{\"session\":1,\"id\":7,\"ops\":[]}\n{\"session\":2,\"id\":7,\"ops\":[]}");
    assert_eq!(refused(&history), "two transactions of one name, 7");
    let history = from_jsonl(r#"{"isolario":1,"initial":"marked"}"#);
    assert_eq!(*history.initial(), Initial::Marked);
    assert_eq!(refused(&history), "reads marked as reads of the initial state");
}

#[test]
fn an_empty_history_is_written_and_read_by_both() {
    let empty = Batch::new().build().unwrap();
    for format in ["jsonl", "text"] {
        assert!(read(format, &write(format, &empty).unwrap()) == empty);
        assert!(read(format, b"") == empty);
    }
}
