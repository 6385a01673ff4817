//! What is written reads back the same, and what cannot be written is refused.

use isolario_model::{Batch, Clock, Initial, Meta, Outcome, TxnEnd, TxnSink, TxnStart, Value};
use proptest::prelude::*;

use super::*;

/// Sessions in the order of their names, and no lines: what a file's layout may change.
fn normal(history: &History) -> History {
    let mut sessions: Vec<_> = history.sessions().collect();
    sessions.sort_by_key(|session| history.session_name(*session).to_owned());
    let mut batch = Batch::new();
    batch.meta(history.meta()).unwrap();
    for txn in sessions.into_iter().flat_map(|session| history.session_txns(session)) {
        let session = history.session_name(history.session_of(txn));
        batch.begin(&TxnStart { session, id: history.txn_name(txn), line: None }).unwrap();
        for op in history.txn_ops(txn) {
            history.with_op_input(op, |op| batch.op(op)).unwrap();
        }
        batch.end(&history.txn_end(txn)).unwrap();
    }
    batch.build().unwrap()
}

fn assert_round_trip(format: &dyn HistoryFormat, history: &History) {
    let text = written(format, history).unwrap();
    let again = load(format, &text).history;
    assert_eq!(lines(&normal(&again)), lines(&normal(history)), "{text}");
    assert_eq!(normal(&again), normal(history), "{text}");
}

const TIMED: &str =
    "{:type :invoke, :process 0, :value [[:r 1 nil] [:w 1 2] [:r :l nil]], :time 10}
    {:type :invoke, :process 1, :value [[:append :l \"a\"]], :time 11}
    {:type :ok, :process 0, :value [[:r 1 nil] [:w 1 2] [:r :l [\"a\"]]], :time 12}
    {:type :info, :process 1, :value [[:append :l \"a\"]], :time 13, :error :timed-out}
    {:type :invoke, :process 0, :value [[:r 1 nil]], :time 14}
    {:type :fail, :process 0, :value [[:r 1 2]], :time 15, :error \"no leader\"}";

#[test]
fn entries_are_written_in_the_order_of_time() {
    assert_eq!(
        written(&ElleEdn, &edn(TIMED)).unwrap(),
        "{:index 0, :time 10, :type :invoke, :process 0, :f :txn, :value [[:r 1 nil] [:w 1 2] [:r :l nil]]}
{:index 1, :time 11, :type :invoke, :process 1, :f :txn, :value [[:append :l \"a\"]]}
{:index 2, :time 12, :type :ok, :process 0, :f :txn, :value [[:r 1 nil] [:w 1 2] [:r :l [\"a\"]]], :isolario/name nil}
{:index 3, :time 13, :type :info, :process 1, :f :txn, :value [[:append :l \"a\"]], :error :timed-out, :isolario/name nil}
{:index 4, :time 14, :type :invoke, :process 0, :f :txn, :value [[:r 1 nil]]}
{:index 5, :time 15, :type :fail, :process 0, :f :txn, :value [[:r 1 2]], :error \"no leader\", :isolario/name nil}
"
    );
    assert_round_trip(&ElleEdn, &edn(TIMED));
}

#[test]
fn a_history_without_times_is_written_as_completions_alone() {
    let history = load(&ElleJson, r#"{"type":"ok","process":0,"value":[["w","x",1]]}"#).history;
    assert_eq!(
        written(&ElleJson, &history).unwrap(),
        "{\"index\": 0, \"type\": \"ok\", \"process\": 0, \"f\": \"txn\", \
         \"value\": [[\"w\",\"x\",1]], \"isolario/name\": null}\n"
    );
    assert_round_trip(&ElleJson, &history);
}

#[test]
fn a_register_with_compare_and_set_is_written_as_single_operations() {
    let text = "INFO  jepsen.util - 0\t:invoke\t:read\tnil\n\
                INFO  jepsen.util - 1\t:invoke\t:cas\t[nil 2]\n\
                INFO  jepsen.util - 0\t:ok\t:read\tnil\n\
                INFO  jepsen.util - 1\t:fail\t:cas\t[nil 2]\n\
                INFO  jepsen.util - 1\t:invoke\t:cas\t[1 2]\n\
                INFO  jepsen.util - 1\t:fail\t:cas\t[1 2]\tnil\n\
                INFO  jepsen.util - 0\t:invoke\t:write\t3\n\
                INFO  jepsen.util - 2\t:invoke\t:write\t4\n\
                INFO  jepsen.util - 2\t:info\t:write\t4\t:timed-out\n";
    let history = load(&JepsenLog, text).history;
    assert_eq!(written(&JepsenLog, &history).unwrap(), text);
    assert_round_trip(&JepsenLog, &history);
    assert_round_trip(&ElleEdn, &history);
    assert!(written(&ElleEdn, &history).unwrap().contains(":f :cas, :value [nil 2]}"));
}

#[test]
fn several_registers_are_written_as_tuples() {
    let history = edn("{:type :ok, :process 0, :f :cas, :value [:x [1 2]]}
        {:type :fail, :process 0, :f :cas, :value [:y [1 2]]}
        {:type :ok, :process 0, :f :read, :value [:y nil]}");
    assert_round_trip(&ElleEdn, &history);
    let error = written(&JepsenLog, &history).unwrap_err().to_string();
    assert!(error.starts_with("the jepsen-log format cannot express keys"), "{error}");
}

fn one_txn(outcome: Outcome, ops: &[OpInput<'_>]) -> History {
    let mut batch = Batch::new();
    batch.begin(&TxnStart { session: 0i64.into(), id: None, line: None }).unwrap();
    for op in ops {
        batch.op(op).unwrap();
    }
    batch.end(&TxnEnd::new(outcome)).unwrap();
    batch.build().unwrap()
}

#[test]
fn what_cannot_be_expressed_is_refused() {
    let (x, one) = (ValueRef::Text("x"), ValueRef::Int(1));
    let nil_read = Op::Read { key: x, value: Some(ValueRef::Nil) };
    let unseen_list = Op::ReadList { key: x, elements: None };
    for (outcome, op) in [
        (Outcome::Committed, Op::Delete { key: x }),
        (Outcome::Committed, Op::Read { key: x, value: None }),
        (Outcome::Unknown, nil_read),
        (Outcome::Aborted, nil_read),
        (Outcome::Unknown, unseen_list),
        (Outcome::Committed, Op::Write { key: ValueRef::Keyword("a b"), value: one }),
        (Outcome::Committed, Op::Write { key: x, value: ValueRef::Other("[1") }),
        (Outcome::Committed, Op::Read { key: x, value: Some(ValueRef::Other("[1 2]")) }),
    ] {
        for format in [&ElleEdn as &dyn HistoryFormat, &ElleJson, &JepsenLog] {
            let refused = written(format, &one_txn(outcome, &[op]));
            assert!(
                matches!(refused, Err(SinkError::Inexpressible { .. })),
                "{}: {op:?} {refused:?}",
                format.name()
            );
        }
    }
    let both = one_txn(
        Outcome::Committed,
        &[Op::Append { key: x, element: one }, Op::Write { key: x, value: one }],
    );
    let error = written(&ElleEdn, &both).unwrap_err().to_string();
    assert_eq!(error, "the elle-edn format cannot express key x as both register and list");
}

#[test]
fn another_initial_state_is_refused() {
    for initial in [Initial::Value(Value::Int(0)), Initial::None, Initial::Unwritten] {
        let mut writer =
            ElleEdn.writer(crate::OutputTarget::Stream(Box::new(std::io::sink()))).unwrap();
        assert!(writer.meta(&Meta { initial, ..Meta::default() }).is_err());
    }
}

fn value(keywords: bool) -> impl Strategy<Value = Value> {
    let keyword = "[a-z][a-z0-9/.-]{0,4}"
        .prop_map(move |s| if keywords { Value::Keyword(s.into()) } else { Value::Text(s.into()) });
    prop_oneof![
        6 => (-3i64..20).prop_map(Value::Int),
        1 => any::<i64>().prop_map(Value::Int),
        1 => (i64::MAX as u64 + 1..=u64::MAX).prop_map(Value::Uint),
        1 => any::<bool>().prop_map(Value::Bool),
        2 => any::<String>().prop_map(|s| Value::Text(s.into())),
        2 => keyword,
        1 => Just(Value::Other("1.5".into())),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Write(Value, Value),
    Read(Value, Option<Value>),
    Append(Value, Value),
    ReadList(Value, Option<Vec<Value>>),
}

/// Registers and lists have different keys, so that every history can be told apart.
fn step(keywords: bool) -> impl Strategy<Value = Step> {
    let register = || (0i64..4).prop_map(Value::Int);
    let list = || (10i64..13).prop_map(Value::Int);
    prop_oneof![
        (register(), value(keywords)).prop_map(|(k, v)| Step::Write(k, v)),
        (register(), prop::option::of(value(keywords))).prop_map(|(k, v)| Step::Read(k, v)),
        (list(), value(keywords)).prop_map(|(k, v)| Step::Append(k, v)),
        (list(), prop::option::of(prop::collection::vec(value(keywords), 0..4)))
            .prop_map(|(k, v)| Step::ReadList(k, v)),
    ]
}

#[derive(Clone, Debug)]
struct Planned {
    session: i64,
    name: Option<Value>,
    outcome: u8,
    times: (Option<i64>, Option<i64>),
    error: Option<String>,
    steps: Vec<Step>,
}

fn planned(keywords: bool) -> impl Strategy<Value = Planned> {
    let time = || prop::option::of(0i64..50);
    (
        0i64..4,
        prop::option::of(value(keywords)),
        0u8..3,
        (time(), time()),
        prop::option::of(any::<String>()),
        prop::collection::vec(step(keywords), 0..4),
    )
        .prop_map(|(session, name, outcome, times, error, steps)| Planned {
            session,
            name,
            outcome,
            times,
            error,
            steps,
        })
}

fn add(batch: &mut Batch, txn: &Planned, timed: bool) {
    let session = ValueRef::Int(txn.session);
    let id = txn.name.as_ref().map(Value::as_ref);
    batch.begin(&TxnStart { session, id, line: None }).unwrap();
    let outcome = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown][txn.outcome as usize];
    let committed = outcome == Outcome::Committed;
    for step in &txn.steps {
        match step {
            Step::Write(k, v) => batch.op(&Op::Write { key: k.as_ref(), value: v.as_ref() }),
            Step::Append(k, v) => batch.op(&Op::Append { key: k.as_ref(), element: v.as_ref() }),
            Step::Read(k, v) => {
                let nil = committed.then_some(ValueRef::Nil);
                let value = v.as_ref().map_or(nil, |v| Some(v.as_ref()));
                batch.op(&Op::Read { key: k.as_ref(), value })
            }
            Step::ReadList(k, v) => {
                let seen = v.iter().flatten().map(Value::as_ref).collect::<Vec<_>>();
                let elements = (committed || v.is_some()).then_some(&seen[..]);
                batch.op(&Op::ReadList { key: k.as_ref(), elements })
            }
        }
        .unwrap();
    }
    let (start, finish) = if timed { txn.times } else { (None, None) };
    let error = txn.error.as_deref();
    batch.end(&TxnEnd { start, finish, error, ..TxnEnd::new(outcome) }).unwrap();
}

fn history(plan: &[Planned], clock: Clock, timed: bool) -> History {
    let mut batch = Batch::new();
    // Each list is seen once, so that a reader can tell that it is one.
    let seen = (10..13).map(|k| Step::ReadList(Value::Int(k), Some(Vec::new()))).collect();
    let first = Planned {
        session: 0,
        name: None,
        outcome: 0,
        times: (Some(0), Some(0)),
        error: None,
        steps: seen,
    };
    // Without times a reader cannot tell the clock: it is the default one.
    let clock = if timed { clock } else { Clock::Nanoseconds };
    batch.meta(&Meta { clock, ..Meta::default() }).unwrap();
    add(&mut batch, &first, timed);
    plan.iter().for_each(|txn| add(&mut batch, txn, timed));
    batch.build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn transactions_come_back_from_edn(
        plan in prop::collection::vec(planned(true), 0..8),
        order_only: bool,
        timed: bool,
    ) {
        let clock = if order_only { Clock::EventOrder } else { Clock::Nanoseconds };
        assert_round_trip(&ElleEdn, &history(&plan, clock, timed));
    }

    #[test]
    fn transactions_come_back_from_json(
        plan in prop::collection::vec(planned(false), 0..8),
        order_only: bool,
        timed: bool,
    ) {
        let clock = if order_only { Clock::EventOrder } else { Clock::Nanoseconds };
        assert_round_trip(&ElleJson, &history(&plan, clock, timed));
    }

    #[test]
    fn any_text_is_an_error_or_a_history(text in "[\\[\\](){}#:;\"\\\\ ,a-f0-9_.N/-]{0,60}") {
        for format in [&ElleEdn as &dyn HistoryFormat, &ElleJson, &JepsenLog] {
            for prefix in ["", "{:type :ok :value ", "[{\"type\":\"ok\",\"value\":", "jepsen.util - 0 "] {
                let source = Source::from_bytes("h", format!("{prefix}{text}").into_bytes()).unwrap();
                let _ = format.read(&source);
            }
        }
    }
}
