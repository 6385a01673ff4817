//! What the readers make of entries.

use isolario_model::{Clock, Initial, Value};

use super::*;
use crate::{Position, sniff};

#[test]
fn completions_meet_the_invocations_of_their_process() {
    let history = edn("
        {:type :invoke, :process 0, :f :txn, :value [[:r 1 nil] [:w 1 2]], :time 10, :index 0}
        {:type :invoke, :process 1, :f :txn, :value [[:r 1 nil]], :time 20, :index 1}
        {:type :ok, :process 1, :f :txn, :value [[:r 1 nil]], :time 30, :index 2}
        {:type :ok, :process 0, :f :txn, :value [[:r 1 nil] [:w 1 2]], :time 40, :index 3}");
    assert_eq!(
        lines(&history),
        ["1/2 Committed 20..30 r(1,nil)", "0/3 Committed 10..40 r(1,nil) w(1,2)"]
    );
    assert_eq!(history.clock(), Clock::Nanoseconds);
    assert_eq!(*history.initial(), Initial::Value(Value::Nil));
    let lines: Vec<_> = history.txns().map(|txn| history.line(txn)).collect();
    assert_eq!(lines, [Some(3), Some(2)], "a transaction stands on its invocation's line");
}

#[test]
fn failed_transactions_abort_and_open_ones_are_unknown() {
    let history = edn("
        {:type :invoke, :process 0, :value [[:w 1 1] [:r 2 nil]]}
        {:type :fail, :process 0, :value [[:w 1 1] [:r 2 nil]], :error :ww-conflict}
        {:type :invoke, :process 0, :value [[:w 1 2]]}
        {:type :info, :process 0, :value [[:w 1 2]], :error [:timeout \"3 s\"]}
        {:type :invoke, :process 1, :value [[:w 1 3]]}
        {:type :invoke, :process 1, :value [[:w 1 4]]}");
    assert_eq!(
        lines(&history),
        [
            "0/- Aborted 1..2 w(1,1) r(2,?) !:ww-conflict",
            "0/- Unknown 3..4 w(1,2) ![:timeout \"3 s\"]",
            "1/- Unknown 5..? w(1,3)",
            "1/- Unknown 6..? w(1,4)",
        ]
    );
    assert_eq!(history.clock(), Clock::EventOrder);
}

#[test]
fn a_nil_read_is_unobserved_unless_its_transaction_committed() {
    let history = edn("
        {:type :invoke, :process 0, :value [[:r 1 nil] [:r 2 nil] [:r :l nil] [:append :l 1]]}
        {:type :info, :process 0, :value [[:r 1 7] [:r 2 nil] [:r :l nil] [:append :l 1]]}
        {:type :invoke, :process 1, :value [[:r 1 nil] [:r :l nil] [:r :m nil]]}
        {:type :ok, :process 1, :value [[:r 1 nil] [:r :l nil] [:r :m []]]}");
    assert_eq!(
        lines(&history),
        [
            "0/- Unknown 1..2 r(1,7) r(2,?) r(:l,?) a(:l,1)",
            "1/- Committed 3..4 r(1,nil) r(:l,[]) r(:m,[])",
        ]
    );
}

#[test]
fn an_info_that_repeats_nothing_leaves_the_invocation_standing() {
    let history = edn("
        {:type :invoke, :process 0, :f :txn, :value [[:w 1 1]]}
        {:type :info, :process 0, :f :txn, :value nil, :error :crashed}
        {:type :invoke, :process 1, :f :txn, :value [[:w 1 2]]}
        {:type :fail, :process 1, :f :txn, :value [[:w 1 3]]}");
    assert_eq!(lines(&history), ["0/- Unknown 1..2 w(1,1) !:crashed", "1/- Aborted 3..4 w(1,2)"]);
}

#[test]
fn a_history_of_completions_alone_has_no_times() {
    let history = edn("{:type :ok, :process 3, :value [[:w 1 1]], :index 8}
        {:type :fail, :process 3, :value [[:w 1 2]]}
        {:type :info, :process 4, :value [[:r 1 nil]]}");
    assert_eq!(
        lines(&history),
        ["3/8 Committed ?..? w(1,1)", "3/- Aborted ?..? w(1,2)", "4/- Unknown ?..? r(1,?)"]
    );
}

#[test]
fn a_completion_whose_invocation_was_cut_off_is_kept_and_reported() {
    let loaded = load(
        &ElleEdn,
        "{:type :ok, :process 0, :value [[:w 1 1]]}
         {:type :invoke, :process 0, :value [[:w 1 2]]}
         {:type :ok, :process 0, :value [[:w 1 2]]}",
    );
    assert_eq!(lines(&loaded.history), ["0/- Committed ?..1 w(1,1)", "0/- Committed 2..3 w(1,2)"]);
    assert_eq!(loaded.warnings.len(), 1);
    assert_eq!(loaded.warnings[0].position, Position::Line(1));
}

#[test]
fn without_processes_every_transaction_is_a_session_of_its_own() {
    let text = "\n{:index 0 :type :invoke :value [[:append 1 1]]}
        {:index 1 :type :ok :value [[:append 1 1]]}
        {:index 2 :type :invoke :value [[:r 1 nil]]}
        {:index 3 :type :ok :value [[:r 1 [1]]]}";
    let ParsedHistory { history, warnings, .. } = load(&ElleEdn, text);
    let said = "no operation names its process, so each transaction is a session of its own";
    assert!(warnings[0].message.starts_with(said), "{warnings:?}");
    assert_eq!((warnings.len(), warnings[0].position), (1, Position::Line(2)));
    assert_eq!(lines(&history), ["0/1 Committed 0..1 a(1,1)", "1/3 Committed 2..3 r(1,[1])"]);
    assert_eq!(history.session_count(), 2);
}

#[test]
fn without_processes_interleaved_operations_are_not_guessed_apart() {
    let text = "{:type :invoke :value [[:w 1 1]]}\n{:type :invoke :value [[:w 1 2]]}\n\
                {:type :ok :value [[:w 1 1]]}\n";
    assert_eq!(
        refusal(&ElleEdn, text),
        "h:3:1: expected the completion of the operation on line 2, found another one, \
         without a process that would distinguish them"
    );
    let mixed = "{:type :ok :value [[:w 1 1]]}\n{:type :ok :process 1 :value [[:w 1 2]]}\n";
    assert!(refusal(&ElleEdn, mixed).starts_with("h:2:1: expected no process"));
}

#[test]
fn what_is_not_used_is_counted() {
    let loaded = load(
        &ElleEdn,
        "{:type :info, :f :start, :process :nemesis, :value {\"n1\" #{\"n2\"}}}
         {:type :ok, :process 0, :value [[:w 1 1]], :node \"n1\", :exception {:via [x$y/Z]}}
         {:type :info, :f :stop, :process :nemesis, :value :healed}",
    );
    let counts: Vec<_> = loaded.ignored.iter().map(|i| (i.what, i.count, i.first)).collect();
    assert_eq!(
        counts,
        [
            ("nemesis operations", 2, Position::Line(1)),
            ("other fields of operations", 2, Position::Line(2)),
        ]
    );
    assert_eq!(loaded.history.txn_count(), 1);
}

#[test]
fn records_comments_commas_and_wrapping_are_all_fine() {
    let plain = edn("{:type :ok, :process 0, :value [[:w 1 1]]}");
    for text in [
        "#jepsen.history.Op{:type :ok, :process 0, :value [[:w 1 1]]}",
        "[#jepsen.history.Op {:type :ok,,, :process 0 :value ((:w 1 1))}]",
        "; a comment\n({:type :ok ; here too\n :process 0 #_ #_ :drop [it] :value [[:w 1 1N]]})\n",
    ] {
        assert_eq!(lines(&edn(text)), lines(&plain), "{text}");
    }
}

#[test]
fn keys_and_values_keep_their_types() {
    let history = edn(r#"{:type :ok, :process 0, :value [[:w 1 :a] [:w "1" "a\n\u0041"]
        [:w :x 18446744073709551615] [:w nil true] [:w [1, 2] {:a  1}] [:w 1.5 foo/bar]]}"#);
    let expected = r#"0/- Committed ?..? w(1,:a) w("1","a\nA") w(:x,18446744073709551615) w(nil,true) w([1 2],{:a 1}) w(1.5,foo/bar)"#;
    assert_eq!(lines(&history), [expected]);
}

#[test]
fn a_key_that_is_written_is_a_register_even_if_it_holds_a_sequence() {
    let history = edn("{:type :ok, :process 0, :value [[:w 1 [1 2]] [:r 1 [1 2]] [:r 2 [3]]]}");
    assert_eq!(lines(&history), ["0/- Committed ?..? w(1,[1 2]) r(1,[1 2]) r(2,[3])"]);
    let kinds: Vec<_> = history.op_kinds().iter().map(|kind| format!("{kind:?}")).collect();
    assert_eq!(kinds, ["Write", "Read", "ReadList"]);
}

#[test]
fn a_register_of_single_operations() {
    let history = edn("{:type :invoke, :process 0, :f :read, :value nil}
        {:type :ok, :process 0, :f :read, :value 3}
        {:type :invoke, :process 0, :f :write, :value 4}
        {:type :info, :process 0, :f :write, :value :timed-out}
        {:type :invoke, :process 1, :f :cas, :value [3 5]}
        {:type :ok, :process 1, :f :cas, :value [3 5]}
        {:type :invoke, :process 1, :f :cas, :value [3 6]}
        {:type :fail, :process 1, :f :cas, :value [3 6]}
        {:type :invoke, :process 1, :f :cas, :value [3 7]}
        {:type :fail, :process 1, :f :cas, :value [3 7], :error :no-leader}");
    assert_eq!(
        lines(&history),
        [
            "0/- Committed 1..2 r(:register,3)",
            "0/- Unknown 3..4 w(:register,4) !:timed-out",
            "1/- Committed 5..6 cas(:register,3,5,Some(true))",
            "1/- Committed 7..8 cas(:register,3,6,Some(false))",
            "1/- Aborted 9..10 cas(:register,3,7,None) !:no-leader",
        ]
    );
}

#[test]
fn tuples_name_the_key_of_a_single_operation() {
    for (open, close) in [("[", "]"), ("#jepsen.independent/tuple [", "]")] {
        let text = format!(
            "{{:type :invoke, :process 0, :f :read, :value {open}:x nil{close}}}
             {{:type :ok, :process 0, :f :read, :value {open}:x 1{close}}}
             {{:type :ok, :process 1, :f :cas, :value {open}:y [1 2]{close}}}"
        );
        let expected = ["0/- Committed 1..2 r(:x,1)", "1/- Committed ?..3 cas(:y,1,2,Some(true))"];
        assert_eq!(lines(&edn(&text)), expected, "{text}");
    }
}

#[test]
fn json_reads_as_edn_does() {
    let array = r#"[{"type":"invoke","f":"txn","value":[["append",253,1],["r","x",null]],"process":0},
        {"type":"ok","f":"txn","value":[["append",253,1],["r","x",[1,"é\u00e9\ud83d\ude00"]]],"process":0},
        {"type":"info","f":"start","process":"nemesis","value":null}]"#;
    let loaded = load(&ElleJson, array);
    assert_eq!(lines(&loaded.history), ["0/- Committed 1..2 a(253,1) r(x,[1 \"éé😀\"])"]);
    assert_eq!(loaded.ignored[0].what, "nemesis operations");
    let rows = "{\"type\":\"ok\",\"value\":[[\"w\",1,-2.5e3]]}\n{\"type\":\"ok\",\"value\":[]}\n";
    let history = load(&ElleJson, rows).history;
    assert_eq!(lines(&history), ["0/- Committed ?..? w(1,-2.5e3)", "1/- Committed ?..?"]);
}

#[test]
fn a_log_of_a_register() {
    let loaded = load(
        &JepsenLog,
        "2015-01-01 INFO  jepsen.core - Running test\n\
         INFO  jepsen.util - 0\t:invoke\t:read\tnil\n\
         INFO  jepsen.util - :nemesis\t:info\t:start\t\"Cut off {n1 [n2\n\
         INFO  jepsen.util - 0\t:ok\t:read\tnil\n\
         INFO  jepsen.util - 1  :invoke :cas   [1 2]\n\
         INFO  jepsen.util - 1  :fail   :cas   [1 2]\n\
         INFO  jepsen.util - 2\t:invoke\t:write\t3\n\
         INFO  jepsen.util - 1\t:invoke\t:cas\t[3 4]\n\
         INFO  jepsen.util - 1\t:info\t:cas\t:timed-out\n\
         INFO  jepsen.util - 0\t:invoke\t:read\tnil\n\
         INFO  jepsen.util - 0\t:fail\t:read\t:timed-out\n",
    );
    assert_eq!(
        lines(&loaded.history),
        [
            "0/- Committed 1..2 r(:register,nil)",
            "0/- Aborted 8..9 r(:register,?) !:timed-out",
            "1/- Committed 3..4 cas(:register,1,2,Some(false))",
            "1/- Unknown 6..7 cas(:register,3,4,None) !:timed-out",
            "2/- Unknown 5..? w(:register,3)",
        ]
    );
    assert_eq!(loaded.history.line(TxnId::at(0)), Some(2));
    let ignored: Vec<_> = loaded.ignored.iter().map(|i| (i.what, i.count)).collect();
    assert_eq!(ignored, [("nemesis operations", 1), ("log lines about other things", 1)]);
}

#[test]
fn each_format_knows_its_own() {
    for (text, name) in [
        ("; hi\n{:type :ok, :value [[:w 1 1]]}\n", Some("elle-edn")),
        ("[{:process 0 :type :invoke}", Some("elle-edn")),
        ("[{\"type\":\"ok\",\"value\":[]}]", Some("elle-json")),
        ("{\"type\":\"invoke\"}\n{\"type\"", Some("elle-json")),
        ("INFO  jepsen.util - 0\t:invoke\t:read\tnil\n", Some("jepsen-log")),
        ("{\"type\":\"transaction\"}", None),
        ("{\"value\": [[\"w\", 1, 2, true]]}", None),
        ("r(1,2,3,4)\n", None),
        ("", None),
    ] {
        let source = Source::from_bytes("h", text.as_bytes().to_vec()).unwrap();
        let jepsen: [&dyn HistoryFormat; 3] = [&ElleEdn, &ElleJson, &JepsenLog];
        let found: Vec<_> = jepsen.iter().filter(|f| f.sniff(&source)).map(|f| f.name()).collect();
        assert_eq!(found, name.into_iter().collect::<Vec<_>>(), "{text}");
        if let Some(name) = name {
            assert_eq!(sniff(&source).map(HistoryFormat::name), Some(name));
        }
    }
}
