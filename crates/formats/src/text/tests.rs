//! The reader's details; round trips and golden files are integration tests.

use isolario_model::{Clock, History, Initial, Meta, Outcome, Stamp, TupleParts, Value, ValueRef};

use super::Text;
use crate::{HistoryFormat, Source};

fn source(text: &str) -> Source {
    Source::from_bytes("h.txt", text.into()).unwrap()
}

fn history(text: &str) -> History {
    Text.read(&source(text)).unwrap_or_else(|error| panic!("{error}\n{text}")).history
}

fn error(text: &str) -> String {
    match Text.read(&source(text)) {
        Ok(_) => panic!("read without an error: {text}"),
        Err(error) => error.to_string(),
    }
}

fn kinds(history: &History) -> Vec<String> {
    history.op_kinds().iter().map(|kind| format!("{kind:?}")).collect()
}

#[test]
fn sessions_may_be_interleaved_and_lines_are_kept() {
    let history = history(
        "session alice # first\n T1: r x 0\nsession bob\n T2: w x 1\n\nsession alice\n T3:\n",
    );
    let lines: Vec<_> = history.txns().map(|txn| history.line(txn)).collect();
    assert_eq!(lines, [Some(2), Some(7), Some(4)]);
    assert_eq!((history.session_count(), history.op_count()), (2, 2));
    assert_eq!(*history.meta(), Meta::default());
}

#[test]
fn every_operation_has_a_form() {
    let history = history(
        "session 1\n _: r x 1, r x ?, r l [1 2], r l [1, 2], r l [], r l [?], w x -1, delete x, \
         append l 3,\n  # operations go on after a comma\n\n  insert x 1 ok, insert x 1 failed saw nil, insert x 1 ?, \
         cas x 1 -> 2 ok, cas x 1->2 failed saw 7, select \"v > 3\" {k1: 5, k2: :six}, select \"\" ?, \
         update \"v > 3\" {}, aggregate \"count(*)\" \"v > 3\" 2, aggregate \"count(*)\" \"v\" ?\n",
    );
    let expected = "Read ReadUnobserved ReadList ReadList ReadList ReadListUnobserved Write Delete \
                    Append InsertIfAbsent InsertIfAbsent InsertIfAbsent CompareAndSet CompareAndSet \
                    PredicateRead PredicateRead PredicateWrite Aggregate Aggregate";
    assert_eq!(
        kinds(&history).join(" "),
        expected.split_whitespace().collect::<Vec<_>>().join(" ")
    );
}

#[test]
fn rows_are_written_as_people_write_them() {
    let history = history(
        "session 1\n _: w accounts(id=1) (owner=\"Ada L\", balance=20.50),\n\
         select from accounts where balance > 10 -> {accounts(id=1): (balance=20) @7/2,\n\
         accounts(id=2): nil}, select where balance > 10 -> ?, select \"balance\" > 10 -> {},\n\
         update from accounts where owner = 'a -> b' -> {\"a b\"(\"c d\"=:k,\n e=nil): ()},\n\
         aggregate count(*) from accounts where true -> 2, aggregate sum((balance)) where x = 1 -> ?",
    );
    let expected =
        "Write PredicateRead PredicateRead PredicateRead PredicateWrite Aggregate Aggregate";
    assert_eq!(kinds(&history).join(" "), expected);
    let shown: Vec<String> = history.predicates().map(ToString::to_string).collect();
    assert!(shown.contains(&"FROM accounts WHERE balance > 10".to_owned()), "{shown:?}");
    let key = TupleParts { table: "accounts", columns: &[("id", ValueRef::Int(1))] };
    assert!(history.find_key((&key).into()).is_some());
}

#[test]
fn every_fact_of_a_transaction_has_a_form() {
    let history = history(
        "session 1\n T1 unknown [10, ?] db [3, 5.1] snapshot \"s\" error \"e\": r x 1\n 7 [?, -2]:",
    );
    let txns: Vec<_> = history.txns().collect();
    let end = history.txn_end(txns[0]);
    assert_eq!((end.outcome, end.start, end.finish), (Outcome::Unknown, Some(10), None));
    assert_eq!(end.db_start, Some(Stamp { physical: 3, logical: 0 }));
    assert_eq!(end.db_commit, Some(Stamp { physical: 5, logical: 1 }));
    assert_eq!((end.snapshot, end.error), (Some("s"), Some("e")));
    assert_eq!(history.txn_name(txns[1]), Some(ValueRef::Int(7)));
    assert_eq!(history.finish(txns[1]), Some(-2));
}

#[test]
fn words_mean_something_only_in_their_place() {
    let history =
        history("session session\n aborted aborted: r r r, w ok ok\n \"session\": r x nil");
    let txns: Vec<_> = history.txns().collect();
    assert_eq!(history.txn_name(txns[0]), Some(ValueRef::Text("aborted")));
    assert_eq!(history.outcome(txns[0]), Outcome::Aborted);
    assert_eq!(history.txn_name(txns[1]), Some(ValueRef::Text("session")));
}

#[test]
fn the_header_states_the_initial_value_and_the_clock() {
    let cases = [
        ("0", Initial::Value(Value::Int(0))),
        ("nil", Initial::Value(Value::Nil)),
        ("\"none\"", Initial::Value(Value::Text("none".into()))),
        ("0 unless written", Initial::UnlessWritten(Value::Int(0))),
        ("unwritten", Initial::Unwritten),
        ("none", Initial::None),
    ];
    for (text, initial) in cases {
        let meta = Meta { initial, clock: Clock::EventOrder };
        assert_eq!(*history(&format!("\nclock order\n\ninitial {text}\n")).meta(), meta);
    }
}

#[test]
fn the_form_of_awdit_has_no_initial_state_and_numbers_its_sessions() {
    let history = history("\nw 0 1\nw 1 1\n-----\nr 0 1 # a comment\n=====\nr 1 1");
    assert_eq!(*history.initial(), Initial::None);
    assert_eq!((history.session_count(), history.txn_count(), history.op_count()), (2, 3, 4));
    let lines: Vec<_> = history.txns().map(|txn| history.line(txn)).collect();
    assert_eq!(lines, [Some(2), Some(5), Some(7)]);
}

#[test]
fn mistakes_are_named_with_their_place() {
    let cases = [
        (
            "session a\n T1: read x 0",
            "h.txt:2:6: expected an operation (r, w, delete, append, insert, cas, select, update, aggregate), found `read` (did you mean `r`?)",
        ),
        (
            "session a\n T1 abort: r x 0",
            "h.txt:2:5: expected `:`, an outcome, [start, finish], `db`, `snapshot` or `error`, once, found `abort` (did you mean `aborted`?)",
        ),
        (
            "session a\n T1: r x 0 w x 1",
            "h.txt:2:12: expected `,` or the end of the line, found `w`",
        ),
        (
            "session a\n T1: r x 0,\nsession b",
            "h.txt:3:1: expected an operation (r, w, delete, append, insert, cas, select, update, aggregate), found `session`",
        ),
        ("session a\n T1: r x", "h.txt:2:9: expected a value, found the end of the file"),
        (
            "session a\n T1: r x 1.5.2",
            "h.txt:2:10: expected a whole number of 64 bits, a decimal, or the value in \"quotes\", found `1.5.2`",
        ),
        ("session a\n T1: cas x 1 2 ok", "h.txt:2:14: expected `->` and the new value, found `2`"),
        (
            "session a\n T1: insert x 1 okay",
            "h.txt:2:17: expected `ok`, `failed` or `?`, found `okay` (did you mean `ok`?)",
        ),
        (
            "session a\n T1: select v {}",
            "h.txt:2:13: expected a predicate, `->` and what came back, on one line, found v {}",
        ),
        (
            "session a\n T1: select v >> 3 -> {}",
            "h.txt:2:13: expected a predicate such as from accounts where balance > 10, or in \"quotes\", found ",
        ),
        (
            "session a\n T1: aggregate most(v) -> 1",
            "h.txt:2:16: expected a function such as count(*) or sum(balance), found ",
        ),
        (
            "session a\n T1: w t(id=(a=1)) 1",
            "h.txt:2:13: expected a value that is no row itself, found `(`",
        ),
        ("session a\n T1: w t(id 1) 1", "h.txt:2:13: expected `=`, found `1`"),
        (
            "session a\n T1: select v > 3 -> {x: 1 @last}",
            "h.txt:2:29: expected a version: `initial`, `transaction/write` or `write=value`, found `last`",
        ),
        (
            "session a\n T1: r x \"a\n",
            "h.txt:2:10: expected a closing \" on the same line, found none",
        ),
        ("T1: r x 0", "h.txt:1:1: expected `session` and its name, found `T1`"),
        (
            "session a\n T1:\n T1:",
            "h.txt:3:2: expected a name of its own, or `_`, found `T1`, as on line 2",
        ),
        (
            "initial 0\ninitial 1",
            "h.txt:2:1: expected `initial` and `clock` before the first session, once, found `initial`",
        ),
        (
            "initial unwriten",
            "h.txt:1:9: expected a value (texts in \"quotes\"), `unwritten` or `none`, found `unwriten` (did you mean `unwritten`?)",
        ),
        ("session a b", "h.txt:1:11: expected the end of the line, found `b`"),
        ("session a\n T1 [1 2]: r x 0", "h.txt:2:8: expected `,`, found `2`"),
        (
            "w 0 1\nx 1 2",
            "h.txt:2:1: expected `r`, `w`, a line of dashes or of equals signs, found x",
        ),
        ("w 0 1\n r 1", "h.txt:2:5: expected a value, a whole number, found the end of the line"),
        (
            "w 0 1\n-----\n-----\n",
            "h.txt:3:1: expected an operation: `r key value` or `w key value`, found a line of dashes",
        ),
        (
            "w 0 1\n=====\n",
            "h.txt:3:1: expected an operation: `r key value` or `w key value`, found the end of the file",
        ),
    ];
    for (text, message) in cases {
        let found = error(text);
        let is_open = message.ends_with("found ");
        assert!(found == message || (is_open && found.starts_with(message)), "{found}\n{message}");
    }
    let bytes = Source::from_bytes("h.txt", b"session a\n \xff".to_vec()).unwrap();
    let message = Text.read(&bytes).unwrap_err().to_string();
    assert_eq!(message, "h.txt:2:2: expected UTF-8 text, found the byte 0xff");
}

#[test]
fn prose_is_not_claimed_and_histories_are() {
    let claims = |text: &str| Text.sniff(&source(text));
    for text in [
        "# comment\n\ninitial 0\n",
        "session alice\n\n  T1 aborted [1, 2]: w x 1, oops",
        "w 0 1\n-----\nr 0 1",
        "\u{feff}clock order\r\nsession 1\r\n",
    ] {
        assert!(claims(text), "{text}");
    }
    for text in [
        "",
        "# only a comment",
        "Dear reader, this is no history.",
        "session notes\n\nToday: we talked",
        "initial thoughts on the matter",
        "w is for write",
        "r(1,2,3,4)\n",
        "{\"session\":1,\"ops\":[]}",
        "{:type :ok, :process 0, :f :txn, :value [[:w 3 1]]}",
    ] {
        assert!(!claims(text), "{text}");
    }
}
