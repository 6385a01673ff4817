//! Malformed input: an error with its place, never a crash.

use super::super::stream::Syntax;
use super::super::{parse_cut, parse_parts, parts};
use super::*;

const EDN: &str = "; one\n{:type :invoke, :process 0, :f :txn, :value [[:append 5 2] [:r 5 nil]]}\n\
    #jepsen.history.Op{:type :ok, :process 0, :f :txn, :value [[:append 5 2] [:r 5 [1 2]]]}\n\
    #_ {:x #{1}} {:type :info :process :nemesis, :value \"a\\n\\u00e9é\" :f \\newline}\n";

const JSON: &str = "[{\"type\": \"invoke\", \"process\": 0, \"value\": [[\"r\", \"é\", null]]},\n\
    {\"type\": \"ok\", \"process\": 0, \"value\": [[\"r\", \"\\u00e9\", -1.5e3]], \"time\": 7}]\n";

const LOG: &str = "INFO  jepsen.util - 0\t:invoke\t:read\tnil\n\
    INFO  jepsen.util - 0\t:ok\t:read\t3\nINFO  jepsen.util - 1\t:invoke\t:cas\t[1 2]\n";

#[test]
fn errors_say_where_and_what() {
    for (text, expected) in [
        (
            "{:type :ok,\n  :process 0 :f :transfer :value {}}",
            "h:2:17: expected :f :txn or a register operation (read, write, cas); others can \
             be brought as jsonl, which has predicates, too, found :f :transfer",
        ),
        (
            "{:type :ok :process 0 :value [[:r 1]]}",
            "h:1:31: expected an operation [function key value], found [:r 1]",
        ),
        (
            "{:type :ok :process 0 :value [[:rp [:> 1] {1 2}]]}",
            "h:1:32: expected :r, :w, :append or :cas; others can be brought as jsonl, which has \
             predicates, too, found :rp",
        ),
        (
            "{:type :ok :process 0 :value [[:x 1 2]]}",
            "h:1:32: expected :r, :w, :append or :cas; others can be brought as jsonl, which has \
             predicates, too, found :x",
        ),
        ("{:type :done}", "h:1:8: expected :type :invoke, :ok, :fail or :info, found :done"),
        (
            "{:process 0}",
            "h:1:1: expected an operation with :type :invoke, :ok, :fail or :info, found \
             {:process 0}",
        ),
        ("\n[{:type :ok :value []}", "h:2:1: expected a closing ']', found the end of the input"),
        ("{:type :ok :value [}", "h:1:20: expected a value or ']', found '}'"),
        ("{:type :ok :value}", "h:1:18: expected a value for the last key, found '}'"),
        ("{:type :ok :value []} ]", "h:1:23: expected a value, found ']'"),
        ("{:type :ok :time 1.5}", "h:1:18: expected a whole number for :time, found 1.5"),
        ("{:type :ok :type :ok}", "h:1:12: expected each field once, found :type"),
        (
            "{:type :ok :value [[:w 1 \"\\q\"]]}",
            "h:1:28: expected an escape: \\n, \\t, \\\", \\\\ or \\u, found 'q'",
        ),
        ("{:type :ok :value [[:w 1 007]]}", "h:1:26: expected a number, found 007"),
        ("42", "h:1:1: expected an operation: a map, found 42"),
        (
            "{:type :ok :value [[:w 1 2] [:append 1 3]]}",
            "h:1:29: expected operations of one kind on key 1, found both writes and appends",
        ),
        (
            "{:type :ok :value [[:r 1 2] [:append 1 3]]}",
            "h:1:26: expected a list: other operations make key 1 one, found 2",
        ),
        (
            "{:type :ok :f :read :value {0 10}}",
            "h:1:28: expected the value of a register, found {0 10}",
        ),
    ] {
        assert_eq!(refusal(&ElleEdn, text), expected, "{text}");
    }
}

#[test]
fn errors_in_json_and_logs_say_where_too() {
    for (text, expected) in [
        (
            "[{\"type\":\"ok\",\"value\":[]}\n {\"type\":\"ok\"}]",
            "h:2:2: expected ',' or ']', found '{'",
        ),
        ("[{\"type\":\"ok\",\"value\":[1,]}]", "h:1:26: expected a value, found ']'"),
        ("[{\"type\":\"ok\",\"value\":[]},]", "h:1:27: expected a value, found ']'"),
        ("{\"type\":\"ok\" \"value\":[]}", "h:1:14: expected ',' or '}', found '\"'"),
        ("{\"type\":\"ok\",\"value\":[01]}", "h:1:23: expected a value, found 01"),
        (
            "{\"type\":\"ok\",\"f\":\"add\"}",
            "h:1:18: expected \"f\": \"txn\" or a register operation (read, write, cas); \
             others can be brought as jsonl, which has predicates, too, found \"f\": \"add\"",
        ),
        (
            "{\"type\":\"ok\",\"value\":\"\n\"}",
            "h:1:23: expected an escape for a control character, found '\\n'",
        ),
        (
            "{\"a\":\"\\ud800\"}",
            "h:1:7: expected four hexadecimal digits of a character, found \\ud800\"}",
        ),
    ] {
        assert_eq!(refusal(&ElleJson, text), expected, "{text}");
    }
    let log = "INFO  jepsen.util - 0\t:invoke\t:read\tnil\nINFO  jepsen.util - 0\t:o";
    assert_eq!(
        refusal(&JepsenLog, log),
        "h:2:23: expected :type :invoke, :ok, :fail or :info, found :o"
    );
    let log = "INFO  jepsen.util - 0\t:invoke\t:add\t1\n";
    assert!(refusal(&JepsenLog, log).starts_with("h:1:31: expected :f :txn or a register"));
}

#[test]
fn deep_nesting_is_an_error_and_not_a_stack_overflow() {
    for open in ["[", "{", "#{", "(", "#_ ", "#a "] {
        let bomb = open.repeat(1_000_000);
        let error = refusal(&ElleEdn, &format!("{{:type :ok :value {bomb}"));
        assert!(error.contains("nested at most 128 deep"), "{open}: {error}");
    }
    for open in ["[", "{\"a\":"] {
        let error = refusal(&ElleJson, &format!("{{\"value\":{}", open.repeat(1_000_000)));
        assert!(error.contains("nested at most 128 deep"), "{open}: {error}");
    }
}

#[test]
fn elements_may_be_collections_and_many() {
    let elements = "[1] ".repeat(100_000);
    let history = edn(&format!("{{:type :ok :value [[:r 1 [{elements}]]]}}"));
    assert_eq!(history.list_pool(isolario_model::KeyId(0)).len(), 100_000);
}

/// Every beginning, and the input with each byte changed in turn: an error or a history.
#[test]
fn cut_and_changed_input_never_panics() {
    let formats: [(&dyn HistoryFormat, &str); 3] =
        [(&ElleEdn, EDN), (&ElleJson, JSON), (&JepsenLog, LOG)];
    for (format, text) in formats {
        load(format, text);
        let try_all = |bytes: &[u8]| {
            let source = Source::from_bytes("h", bytes.to_vec()).unwrap();
            format.sniff(&source);
            format.read(&source).is_ok()
        };
        for len in 0..text.len() {
            try_all(&text.as_bytes()[..len]);
        }
        for at in 0..text.len() {
            for byte in b"\0 \n\"#:;[]{}()\\-.,0aN\xff" {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = *byte;
                try_all(&bytes);
            }
        }
    }
}

#[test]
fn bytes_that_are_not_text_have_a_place() {
    let source = Source::from_bytes("h", b"{:type :ok}\n;\xff".to_vec()).unwrap();
    let error = ElleEdn.read(&source).unwrap_err().to_string();
    assert_eq!(error, "h:2:2: expected UTF-8 text, found the byte 0xff");
}

#[test]
fn an_empty_file_is_an_empty_history() {
    let formats: [(&dyn HistoryFormat, &str); 5] = [
        (&ElleEdn, ""),
        (&ElleEdn, "[]"),
        (&ElleEdn, "; nothing"),
        (&ElleJson, " []\n"),
        (&JepsenLog, "\n\n"),
    ];
    for (format, text) in formats {
        assert_eq!(load(format, text).history.txn_count(), 0, "{text}");
    }
}

#[test]
fn a_file_read_in_parts_is_the_file_read_in_one_piece() {
    // Strings with lines that look like entries, comments, invocations that nobody answers before
    // the end of their part, at the end of the file or at all, and keys whose reads alone do not say
    // what they are.
    let mut text = String::from("; a history\n");
    for at in 0..200 {
        let (process, key) = (at % 7, at % 5);
        let list: Vec<String> = (0..at / 5).map(|n| (n * 5 + key).to_string()).collect();
        let list = list.join(" ");
        text.push_str(&format!(
            "{{:type :invoke, :process {process}, :value [[:r {key} nil] [:append {key} {at}]]}}\n"
        ));
        let kind = if at % 11 == 0 { ":info" } else { ":ok" };
        if at % 13 != 0 {
            text.push_str(&format!(
                "{{:type {kind}, :process {process}, :error \"no\n{{:type\", \
                 :value [[:r {key} [{list}]] [:append {key} {at}]]}}\n"
            ));
        }
        if at % 50 == 0 {
            text.push_str("#_\n{:type :nonsense}\n");
        }
    }
    let plain = text.replace("\"no\n{:type\"", "\"no\"").replace("#_\n", "#_");
    for (text, can_be_cut) in [(&plain, true), (&text, false)] {
        let whole = parse_cut(text.as_bytes(), Syntax::Edn, usize::MAX / 4).unwrap();
        for len in [10, 100, 1000, 5000] {
            let parts = parts::cut(text, Syntax::Edn, len);
            assert!(parts.len() > 1);
            assert!(!can_be_cut || parse_parts(text, Syntax::Edn, &parts).is_some(), "{len}");
            let cut = parse_cut(text.as_bytes(), Syntax::Edn, len).unwrap();
            assert!(cut.history == whole.history);
            assert_eq!(cut.history.encoded_values(), whole.history.encoded_values());
            assert_eq!(cut.ignored, whole.ignored);
            assert_eq!(cut.warnings, whole.warnings);
        }
    }
}
