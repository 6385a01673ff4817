//! Small histories as plain data that is easy to write, to print and to take apart.
//!
//! The language is that of the `text` format, but for sessions: one line is one transaction, which
//! begins with the name of its session instead of its own.
//!
//! ```text
//! initial 0
//! alice [10, 20]: w x 1, r y 0, delete z
//! bob aborted:    r x ?, append l 1
//! carol unknown:  r l [1 2], r l [?]
//! dave:           insert x 1 ok, insert x 2 failed, cas x 1 -> 3 ?, cas x 1 -> 4 failed saw 3
//! ```
//!
//! Values are whole numbers and `nil`. The initial state is `nil` unless a line says otherwise.

use std::fmt;

use isolario_model::{
    Batch, Clock, History, Initial, Meta, Op, OpInput, Outcome, SinkError, TxnEnd, TxnSink,
    TxnStart, Value, ValueRef,
};

/// A small history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// What registers hold at first.
    pub initial: Initial,
    /// The transactions, those of a session in session order.
    pub txns: Vec<DraftTxn>,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftTxn {
    /// The name of its session.
    pub session: String,
    /// Its operations.
    pub ops: Vec<DraftOp>,
    /// How it ended.
    pub outcome: Outcome,
    /// When it started.
    pub start: Option<i64>,
    /// When it finished.
    pub finish: Option<i64>,
}

/// An operation. The first field is the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftOp {
    /// A read, and what came back.
    Read(String, Option<Value>),
    /// A write.
    Write(String, Value),
    /// A delete.
    Delete(String),
    /// An append to a list.
    Append(String, Value),
    /// A read of a list, and what came back.
    ReadList(String, Option<Vec<Value>>),
    /// An insert if absent.
    Insert(String, Value, Applied),
    /// A compare-and-set: what it expects, and what it writes.
    CompareAndSet(String, Value, Value, Applied),
}

/// Whether a conditional write took effect, as far as the client knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It did.
    Yes,
    /// It did not.
    No,
    /// It did not, and this was there.
    Saw(Value),
    /// The client cannot tell.
    Unknown,
}

/// The key of an operation, borrowed as the operation is.
macro_rules! key_of {
    ($op:expr) => {
        match $op {
            DraftOp::Read(key, _)
            | DraftOp::Write(key, _)
            | DraftOp::Delete(key)
            | DraftOp::Append(key, _)
            | DraftOp::ReadList(key, _)
            | DraftOp::Insert(key, ..)
            | DraftOp::CompareAndSet(key, ..) => key,
        }
    };
}

impl DraftOp {
    /// The key it is on.
    pub fn key(&self) -> &str {
        key_of!(self)
    }

    /// The key it is on, to be changed.
    pub fn key_mut(&mut self) -> &mut String {
        key_of!(self)
    }
}

/// A line that is not a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

impl Default for Draft {
    fn default() -> Self {
        Draft { initial: Initial::Value(Value::Nil), txns: Vec::new() }
    }
}

/// The history that a text describes, for tests that know it to be well formed.
///
/// # Panics
///
/// If it is not: the test is wrong.
#[expect(clippy::panic, reason = "for tests, which fail by panicking")]
pub fn history(text: &str) -> History {
    let draft = Draft::parse(text).unwrap_or_else(|error| panic!("{error}"));
    draft.history().unwrap_or_else(|error| panic!("{error}"))
}

/// Building.
impl Draft {
    /// The history that it describes.
    pub fn history(&self) -> Result<History, SinkError> {
        let mut batch = Batch::new();
        batch.meta(&Meta { initial: self.initial.clone(), clock: Clock::Nanoseconds })?;
        for txn in &self.txns {
            let session = ValueRef::Text(&txn.session);
            batch.begin(&TxnStart { session, id: None, line: None })?;
            txn.ops.iter().try_for_each(|op| op.with_input(|input| batch.op(input)))?;
            let (start, finish) = (txn.start, txn.finish);
            batch.end(&TxnEnd { start, finish, ..TxnEnd::new(txn.outcome) })?;
        }
        batch.build()
    }
}

impl DraftOp {
    fn with_input<R>(&self, take: impl FnOnce(&OpInput<'_>) -> R) -> R {
        let text = |key| ValueRef::Text(key);
        match self {
            DraftOp::Read(key, value) => {
                take(&Op::Read { key: text(key), value: value.as_ref().map(Value::as_ref) })
            }
            DraftOp::Write(key, value) => {
                take(&Op::Write { key: text(key), value: value.as_ref() })
            }
            DraftOp::Delete(key) => take(&Op::Delete { key: text(key) }),
            DraftOp::Append(key, element) => {
                take(&Op::Append { key: text(key), element: element.as_ref() })
            }
            DraftOp::ReadList(key, elements) => {
                let elements: Option<Vec<ValueRef<'_>>> =
                    elements.as_ref().map(|all| all.iter().map(Value::as_ref).collect());
                take(&Op::ReadList { key: text(key), elements: elements.as_deref() })
            }
            DraftOp::Insert(key, value, applied) => take(&Op::InsertIfAbsent {
                key: text(key),
                value: value.as_ref(),
                applied: applied.known(),
                seen: applied.seen(),
            }),
            DraftOp::CompareAndSet(key, expected, new, applied) => take(&Op::CompareAndSet {
                key: text(key),
                expected: expected.as_ref(),
                new: new.as_ref(),
                applied: applied.known(),
                seen: applied.seen(),
            }),
        }
    }
}

impl Applied {
    fn known(&self) -> Option<bool> {
        match self {
            Applied::Yes => Some(true),
            Applied::No | Applied::Saw(_) => Some(false),
            Applied::Unknown => None,
        }
    }

    fn seen(&self) -> Option<ValueRef<'_>> {
        match self {
            Applied::Saw(value) => Some(value.as_ref()),
            _ => None,
        }
    }
}

/// Reading.
impl Draft {
    /// The same history with the earlier half of its times at the beginning of the clock and the later half
    /// at its end, where arithmetic on 64 bits overflows.
    #[must_use]
    pub fn at_both_ends(mut self) -> Draft {
        let times = self.txns.iter().flat_map(|txn| txn.start.into_iter().chain(txn.finish));
        let mut known: Vec<i64> = times.collect();
        known.sort_unstable();
        let (Some(first), Some(last)) = (known.first(), known.last()) else { return self };
        let (first, middle, last) = (*first, known[known.len() / 2], *last);
        let moved = |time: i64| match time < middle {
            true => i64::MIN + (time - first),
            false => i64::MAX - (last - time),
        };
        for txn in &mut self.txns {
            txn.start = txn.start.map(moved);
            txn.finish = txn.finish.map(moved);
        }
        self
    }

    /// A history of lists as one of registers, which hold the last element.
    #[must_use]
    pub fn last_elements(&self) -> Draft {
        let none = Value::Text("-".into());
        let mut registers = self.clone();
        for op in registers.txns.iter_mut().flat_map(|txn| &mut txn.ops) {
            *op = match op.clone() {
                DraftOp::Append(key, element) => DraftOp::Write(key, element),
                DraftOp::ReadList(key, shown) => {
                    let last = |list: Vec<Value>| list.last().unwrap_or(&none).clone();
                    DraftOp::Read(key, shown.map(last))
                }
                other => other,
            };
        }
        registers.initial = Initial::Value(none);
        registers
    }

    /// Reads the text form. Blank lines and lines that begin with `#` do not count.
    pub fn parse(text: &str) -> Result<Draft, ParseError> {
        let mut draft = Draft::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            draft.parse_line(line).map_err(|message| ParseError { line: index + 1, message })?;
        }
        Ok(draft)
    }

    fn parse_line(&mut self, line: &str) -> Result<(), String> {
        match line.strip_prefix("initial ") {
            Some(rule) => self.initial = parse_initial(rule.trim())?,
            None => self.txns.push(parse_txn(line)?),
        }
        Ok(())
    }
}

fn parse_initial(rule: &str) -> Result<Initial, String> {
    Ok(match rule.strip_suffix(" unless written") {
        Some(value) => Initial::UnlessWritten(parse_value(value)?),
        None if rule == "unwritten" => Initial::Unwritten,
        None if rule == "none" => Initial::None,
        None => Initial::Value(parse_value(rule)?),
    })
}

fn parse_txn(line: &str) -> Result<DraftTxn, String> {
    let (head, ops) = line.split_once(':').ok_or("expected a session and a colon")?;
    let (head, times) = match head.split_once('[') {
        Some((head, times)) => (head, parse_times(times)?),
        None => (head, (None, None)),
    };
    let (session, outcome) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
    let outcome = match outcome.trim() {
        "" => Outcome::Committed,
        "aborted" => Outcome::Aborted,
        "unknown" => Outcome::Unknown,
        other => return Err(format!("{other:?} is not an outcome")),
    };
    let ops = ops.split(',').map(str::trim).filter(|op| !op.is_empty());
    let ops = ops.map(parse_op).collect::<Result<_, _>>()?;
    Ok(DraftTxn { session: session.to_owned(), ops, outcome, start: times.0, finish: times.1 })
}

/// What follows the bracket.
fn parse_times(times: &str) -> Result<(Option<i64>, Option<i64>), String> {
    let expected = || "expected times such as [1, 2]".to_owned();
    let time = |text: &str| match text.trim() {
        "?" => Ok(None),
        text => text.parse().map(Some).map_err(|_| expected()),
    };
    let times = times.trim_end().strip_suffix(']').ok_or_else(expected)?;
    let (start, finish) = times.split_once(',').ok_or_else(expected)?;
    Ok((time(start)?, time(finish)?))
}

fn parse_op(op: &str) -> Result<DraftOp, String> {
    let unknown = || format!("{op:?} is not an operation");
    let words: Vec<&str> = op.split_whitespace().collect();
    let [name, key, rest @ ..] = words.as_slice() else { return Err(unknown()) };
    let key = (*key).to_owned();
    Ok(match (*name, rest) {
        ("r", ["?"]) => DraftOp::Read(key, None),
        ("r", ["[?]"]) => DraftOp::ReadList(key, None),
        ("r", [first, ..]) if first.starts_with('[') => {
            DraftOp::ReadList(key, Some(parse_list(&rest.join(" ")).ok_or_else(unknown)?))
        }
        ("r", [value]) => DraftOp::Read(key, Some(parse_value(value)?)),
        ("w", [value]) => DraftOp::Write(key, parse_value(value)?),
        ("delete", []) => DraftOp::Delete(key),
        ("append", [element]) => DraftOp::Append(key, parse_value(element)?),
        ("insert", [value, ending @ ..]) => {
            DraftOp::Insert(key, parse_value(value)?, parse_applied(ending)?)
        }
        ("cas", [expected, "->", new, ending @ ..]) => {
            let (expected, new) = (parse_value(expected)?, parse_value(new)?);
            DraftOp::CompareAndSet(key, expected, new, parse_applied(ending)?)
        }
        _ => return Err(unknown()),
    })
}

fn parse_applied(ending: &[&str]) -> Result<Applied, String> {
    Ok(match ending {
        ["ok"] => Applied::Yes,
        ["failed"] => Applied::No,
        ["failed", "saw", value] => Applied::Saw(parse_value(value)?),
        ["?"] => Applied::Unknown,
        _ => {
            return Err(format!("{:?} is not ok, failed, failed saw VALUE or ?", ending.join(" ")));
        }
    })
}

fn parse_list(list: &str) -> Option<Vec<Value>> {
    let elements = list.strip_prefix('[')?.strip_suffix(']')?.split_whitespace();
    elements.map(|element| parse_value(element).ok()).collect()
}

fn parse_value(text: &str) -> Result<Value, String> {
    match text.trim() {
        "nil" => Ok(Value::Nil),
        text => text.parse().map(Value::Int).map_err(|_| format!("{text:?} is not a value")),
    }
}

/// The text form, which [`Draft::parse`] reads.
impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.initial {
            Initial::Value(Value::Nil) => {}
            Initial::Value(value) => writeln!(f, "initial {value}")?,
            Initial::UnlessWritten(value) => writeln!(f, "initial {value} unless written")?,
            Initial::Unwritten => writeln!(f, "initial unwritten")?,
            _ => writeln!(f, "initial none")?,
        }
        self.txns.iter().try_for_each(|txn| writeln!(f, "{txn}"))
    }
}

impl fmt::Display for DraftTxn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.session)?;
        match self.outcome {
            Outcome::Committed => {}
            Outcome::Aborted => write!(f, " aborted")?,
            Outcome::Unknown => write!(f, " unknown")?,
        }
        if self.start.is_some() || self.finish.is_some() {
            let time = |time: Option<i64>| time.map_or_else(|| "?".to_owned(), |t| t.to_string());
            write!(f, " [{}, {}]", time(self.start), time(self.finish))?;
        }
        let mut separator = ":";
        for op in &self.ops {
            write!(f, "{separator} {op}")?;
            separator = ",";
        }
        if self.ops.is_empty() { write!(f, ":") } else { Ok(()) }
    }
}

impl fmt::Display for DraftOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DraftOp::Read(key, None) => write!(f, "r {key} ?"),
            DraftOp::Read(key, Some(value)) => write!(f, "r {key} {value}"),
            DraftOp::Write(key, value) => write!(f, "w {key} {value}"),
            DraftOp::Delete(key) => write!(f, "delete {key}"),
            DraftOp::Append(key, element) => write!(f, "append {key} {element}"),
            DraftOp::ReadList(key, None) => write!(f, "r {key} [?]"),
            DraftOp::ReadList(key, Some(elements)) => {
                let elements: Vec<String> = elements.iter().map(Value::to_string).collect();
                write!(f, "r {key} [{}]", elements.join(" "))
            }
            DraftOp::Insert(key, value, applied) => write!(f, "insert {key} {value} {applied}"),
            DraftOp::CompareAndSet(key, expected, new, applied) => {
                write!(f, "cas {key} {expected} -> {new} {applied}")
            }
        }
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Applied::Yes => f.write_str("ok"),
            Applied::No => f.write_str("failed"),
            Applied::Saw(value) => write!(f, "failed saw {value}"),
            Applied::Unknown => f.write_str("?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_as_it_was() {
        let text = "initial 0 unless written\n\
                    alice [10, 20]: w x 1, r y nil, r z ?, delete x\n\
                    bob aborted: append l 1, r l [1 2], r l [], r l [?]\n\
                    carol: insert x 1 ok, insert x 2 failed, cas x 1 -> 3 ?, \
                    cas x 1 -> 4 failed saw nil\n\
                    alice unknown [?, -5]:\n";
        let draft = Draft::parse(text).expect("well formed");
        assert_eq!(draft.to_string(), text);
        let history = draft.history().expect("small");
        assert_eq!((history.session_count(), history.txn_count()), (3, 4));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, message) in [
            ("r x 1", "expected a session and a colon"),
            ("a lost: r x 1", "\"lost\" is not an outcome"),
            ("a: x y 1", "\"x y 1\" is not an operation"),
            ("a: w y one", "\"one\" is not a value"),
            ("a: r y [1", "\"r y [1\" is not an operation"),
            ("a: insert x 1 maybe", "\"maybe\" is not ok, failed, failed saw VALUE or ?"),
            ("a [1]: w x 1", "expected times such as [1, 2]"),
        ] {
            let error = Draft::parse(&format!("\n{text}")).expect_err(text);
            assert_eq!((error.line, error.message.as_str()), (2, message));
        }
    }
}
