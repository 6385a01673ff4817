//! A history as a test in Rust, in terms of the recorder.

use std::fmt::Write;

use isolario_model::{
    AnomalyKind, History, Level, Op, OpId, Outcome, SessionId, TxnId, Value, ValueRef,
};

/// Writes a test that records the history and finds the level violated.
///
/// The recorder takes times by itself, so the calls come in the order of the recorded times: what
/// was over before something else began still is.
pub(super) fn write(history: &History, level: Level, anomaly: AnomalyKind) -> String {
    let mut test = Test { history, text: String::new() };
    test.line(0, "use isolario::{Level, Recorder};");
    test.line(0, "");
    test.line(0, &format!("/// {}: violates {level}.", anomaly.title()));
    test.line(0, "#[test]");
    test.line(0, &format!("fn {}() {{", snake_case(anomaly.name())));
    test.line(1, &format!("let recorder = {};", recorder(history)));
    for session in history.sessions() {
        test.line(1, &format!("let mut {} = recorder.session();", session_name(session)));
    }
    for event in events(history) {
        test.event(event);
    }
    test.line(
        1,
        "// To test a store, record what it answers, and let `recorder.assert` fail instead.",
    );
    test.line(1, &format!("let checked = recorder.check(Level::{level:?}).unwrap();"));
    test.line(1, "assert!(checked.is_violated(), \"{checked}\");");
    test.line(0, "}");
    test.text
}

#[derive(Clone, Copy)]
enum Event {
    Begin(TxnId),
    End(TxnId),
}

/// When transactions begin and end, in the order of time. At equal times, beginnings come first,
/// since only what ended strictly before precedes; but within a session, one transaction ends before
/// the next begins, whatever the times say.
fn events(history: &History) -> Vec<Event> {
    let mut events = Vec::new();
    for session in history.sessions() {
        let mut now = (i64::MIN, false);
        for txn in history.session_txns(session) {
            let start = history.start(txn).unwrap_or(i64::MIN);
            now = now.max((start, false));
            events.push((now, Event::Begin(txn)));
            // One of unknown outcome has no end that would count.
            let finish = history.finish(txn).filter(|_| history.outcome(txn) != Outcome::Unknown);
            now = now.max((finish.unwrap_or(start), true));
            events.push((now, Event::End(txn)));
        }
    }
    // Stable: what one session does at one time stays in order.
    events.sort_by_key(|(time, _)| *time);
    events.into_iter().map(|(_, event)| event).collect()
}

struct Test<'h> {
    history: &'h History,
    text: String,
}

impl Test<'_> {
    fn line(&mut self, depth: usize, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:width$}{line}", "", width = depth * 4);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Begin(txn) => {
                let (name, session) = (txn_name(txn), session_name(self.history.session_of(txn)));
                self.line(1, &format!("let mut {name} = {session}.begin();"));
                for op in self.history.txn_ops(txn) {
                    if let Some(call) = call(self.history, op) {
                        self.line(1, &format!("{name}.{call};"));
                    }
                }
            }
            Event::End(txn) => {
                let end = match self.history.outcome(txn) {
                    Outcome::Committed => "commit",
                    Outcome::Aborted => "rollback",
                    _ => "unknown",
                };
                self.line(1, &format!("{}.{end}();", txn_name(txn)));
            }
        }
    }
}

/// The call that records an operation; none for one whose answer nobody saw.
fn call(history: &History, op: OpId) -> Option<String> {
    history.with_op_input(op, |op| {
        let call = match op {
            Op::Read { key, value: Some(value) } => {
                format!("read({}, {})", literal(*key), literal(*value))
            }
            Op::Write { key, value } => format!("write({}, {})", literal(*key), literal(*value)),
            Op::Delete { key } => format!("delete({})", literal(*key)),
            Op::Append { key, element } => {
                format!("append({}, {})", literal(*key), literal(*element))
            }
            Op::ReadList { key, elements: Some([]) } => {
                format!("read_list({}, [0; 0])", literal(*key))
            }
            Op::ReadList { key, elements: Some(elements) } => {
                let elements: Vec<_> = elements.iter().map(|element| literal(*element)).collect();
                format!("read_list({}, [{}])", literal(*key), elements.join(", "))
            }
            Op::InsertIfAbsent { key, value, applied: Some(applied), .. } => {
                format!("insert_if_absent({}, {}, {applied})", literal(*key), literal(*value))
            }
            Op::CompareAndSet { key, expected, new, applied: Some(applied), .. } => {
                let [key, expected, new] = [key, expected, new].map(|value| literal(*value));
                format!("compare_and_set({key}, {expected}, {new}, {applied})")
            }
            _ => return None,
        };
        Some(call)
    })
}

fn recorder(history: &History) -> String {
    match history.initial_value() {
        Some(value) if *value != Value::Nil => {
            format!("Recorder::with_initial({})", literal(value.as_ref()))
        }
        _ => "Recorder::new()".to_owned(),
    }
}

/// A value in Rust. What the recorder has no type for becomes its text.
fn literal(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Nil => "None::<i64>".to_owned(),
        ValueRef::Bool(value) => value.to_string(),
        ValueRef::Int(number) => number.to_string(),
        ValueRef::Uint(number) => format!("{number}_u64"),
        ValueRef::Text(text) => format!("{text:?}"),
        other => format!("{:?}", other.to_string()),
    }
}

/// `a`, `b` and so on; numbers once the letters are used up.
fn session_name(session: SessionId) -> String {
    let letter = u8::try_from(session.index()).ok().filter(|index| *index < 26);
    match letter {
        Some(index) => char::from(b'a' + index).to_string(),
        None => format!("session_{}", session.index() + 1),
    }
}

fn txn_name(txn: TxnId) -> String {
    format!("t{}", txn.index() + 1)
}

/// `LostUpdate` as `lost_update`; `CyclicCO` as `cyclic_co`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut before = None;
    for letter in name.chars() {
        if letter.is_uppercase() && before.is_some_and(char::is_lowercase) {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
        before = Some(letter);
    }
    snake
}
