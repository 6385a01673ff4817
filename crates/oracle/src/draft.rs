//! Small histories as plain data that is easy to write, to print and to take apart.
//!
//! One line is one transaction: its session, its operations, and how it ended unless it committed.
//!
//! ```text
//! initial 0
//! alice: w(x,1) r(y,0) d(z) @10..20
//! bob:   r(x,?) a(l,1) aborted
//! carol: l(l,[1,2]) unknown
//! dave:  i(x,1,ok) i(x,2,no) c(x,1,3,?) c(x,1,4,saw:3)
//! ```
//!
//! `r` reads (`?`: the answer never came), `w` writes, `d` deletes, `a` appends to a list, `l` reads
//! a list, `i` inserts if absent and `c` compares and sets (`ok`: applied, `no`: not, `saw`: not, and
//! what was found instead, `?`: the client does not know), and `@` gives start and finish times, either of which may be missing. The initial state
//! is `nil` unless the first line says otherwise.

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

impl DraftOp {
    /// The key it is on.
    pub fn key(&self) -> &str {
        match self {
            DraftOp::Read(key, _)
            | DraftOp::Write(key, _)
            | DraftOp::Delete(key)
            | DraftOp::Append(key, _)
            | DraftOp::ReadList(key, _)
            | DraftOp::Insert(key, ..)
            | DraftOp::CompareAndSet(key, ..) => key,
        }
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
    Ok(match rule.split_once(' ') {
        Some(("unless-written", value)) => Initial::UnlessWritten(parse_value(value)?),
        None if rule == "unwritten" => Initial::Unwritten,
        None if rule == "none" => Initial::None,
        _ => Initial::Value(parse_value(rule)?),
    })
}

fn parse_txn(line: &str) -> Result<DraftTxn, String> {
    let (session, rest) = line.split_once(':').ok_or("expected a session and a colon")?;
    let mut txn = DraftTxn {
        session: session.trim().to_owned(),
        ops: Vec::new(),
        outcome: Outcome::Committed,
        start: None,
        finish: None,
    };
    for word in rest.split_whitespace() {
        match (word, word.strip_prefix('@')) {
            ("aborted", _) => txn.outcome = Outcome::Aborted,
            ("unknown", _) => txn.outcome = Outcome::Unknown,
            (_, Some(times)) => (txn.start, txn.finish) = parse_times(times)?,
            _ => txn.ops.push(parse_op(word)?),
        }
    }
    Ok(txn)
}

fn parse_times(times: &str) -> Result<(Option<i64>, Option<i64>), String> {
    let time = |text: &str| match text {
        "" => Ok(None),
        _ => text.parse().map(Some).map_err(|_| format!("{text} is not a time")),
    };
    let (start, finish) = times.split_once("..").ok_or("expected times such as @1..2")?;
    Ok((time(start)?, time(finish)?))
}

fn parse_op(word: &str) -> Result<DraftOp, String> {
    let unknown = || format!("{word} is not an operation");
    let (name, arguments) = word.split_once('(').ok_or_else(unknown)?;
    let arguments = arguments.strip_suffix(')').ok_or_else(unknown)?;
    let (key, value) = arguments.split_once(',').unwrap_or((arguments, ""));
    let key = key.to_owned();
    Ok(match (name, value) {
        ("r", "?") => DraftOp::Read(key, None),
        ("l", "?") => DraftOp::ReadList(key, None),
        ("d", "") => DraftOp::Delete(key),
        ("r", value) => DraftOp::Read(key, Some(parse_value(value)?)),
        ("w", value) => DraftOp::Write(key, parse_value(value)?),
        ("a", value) => DraftOp::Append(key, parse_value(value)?),
        ("l", list) => DraftOp::ReadList(key, Some(parse_list(list).ok_or_else(unknown)?)),
        ("i" | "c", rest) => {
            let parts: Vec<&str> = rest.split(',').collect();
            match (name, parts[..].as_ref()) {
                ("i", [value, applied]) => {
                    DraftOp::Insert(key, parse_value(value)?, parse_applied(applied)?)
                }
                ("c", [expected, new, applied]) => {
                    let (expected, new) = (parse_value(expected)?, parse_value(new)?);
                    DraftOp::CompareAndSet(key, expected, new, parse_applied(applied)?)
                }
                _ => return Err(unknown()),
            }
        }
        _ => return Err(unknown()),
    })
}

fn parse_applied(text: &str) -> Result<Applied, String> {
    Ok(match (text, text.strip_prefix("saw:")) {
        ("ok", _) => Applied::Yes,
        ("no", _) => Applied::No,
        ("?", _) => Applied::Unknown,
        (_, Some(value)) => Applied::Saw(parse_value(value)?),
        _ => return Err(format!("{text:?} is not ok, no, ? or saw:VALUE")),
    })
}

fn parse_list(list: &str) -> Option<Vec<Value>> {
    let elements = list.strip_prefix('[')?.strip_suffix(']')?;
    let elements = elements.split(',').filter(|element| !element.is_empty());
    elements.map(|element| parse_value(element).ok()).collect()
}

fn parse_value(text: &str) -> Result<Value, String> {
    match text {
        "nil" => Ok(Value::Nil),
        _ => text.parse().map(Value::Int).map_err(|_| format!("{text:?} is not a value")),
    }
}

/// The text form, which [`Draft::parse`] reads.
impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.initial {
            Initial::Value(Value::Nil) => {}
            Initial::Value(value) => writeln!(f, "initial {value}")?,
            Initial::UnlessWritten(value) => writeln!(f, "initial unless-written {value}")?,
            Initial::Unwritten => writeln!(f, "initial unwritten")?,
            _ => writeln!(f, "initial none")?,
        }
        self.txns.iter().try_for_each(|txn| writeln!(f, "{txn}"))
    }
}

impl fmt::Display for DraftTxn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.session)?;
        self.ops.iter().try_for_each(|op| write!(f, " {op}"))?;
        match self.outcome {
            Outcome::Committed => {}
            Outcome::Aborted => write!(f, " aborted")?,
            Outcome::Unknown => write!(f, " unknown")?,
        }
        let time = |time: Option<i64>| time.map_or_else(String::new, |time| time.to_string());
        match (self.start, self.finish) {
            (None, None) => Ok(()),
            (start, finish) => write!(f, " @{}..{}", time(start), time(finish)),
        }
    }
}

impl fmt::Display for DraftOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DraftOp::Read(key, None) => write!(f, "r({key},?)"),
            DraftOp::Read(key, Some(value)) => write!(f, "r({key},{value})"),
            DraftOp::Write(key, value) => write!(f, "w({key},{value})"),
            DraftOp::Delete(key) => write!(f, "d({key})"),
            DraftOp::Append(key, element) => write!(f, "a({key},{element})"),
            DraftOp::ReadList(key, None) => write!(f, "l({key},?)"),
            DraftOp::ReadList(key, Some(elements)) => {
                let elements: Vec<String> = elements.iter().map(Value::to_string).collect();
                write!(f, "l({key},[{}])", elements.join(","))
            }
            DraftOp::Insert(key, value, applied) => write!(f, "i({key},{value},{applied})"),
            DraftOp::CompareAndSet(key, expected, new, applied) => {
                write!(f, "c({key},{expected},{new},{applied})")
            }
        }
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Applied::Yes => f.write_str("ok"),
            Applied::No => f.write_str("no"),
            Applied::Saw(value) => write!(f, "saw:{value}"),
            Applied::Unknown => f.write_str("?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_as_it_was() {
        let text = "initial unless-written 0\n\
                    alice: w(x,1) r(y,nil) r(z,?) d(x) @10..20\n\
                    bob: a(l,1) l(l,[1,2]) l(l,[]) l(l,?) aborted\n\
                    carol: i(x,1,ok) i(x,2,no) c(x,1,3,?) c(x,1,4,saw:nil)\n\
                    alice: unknown @..-5\n";
        let draft = Draft::parse(text).expect("well formed");
        assert_eq!(draft.to_string(), text);
        let history = draft.history().expect("small");
        assert_eq!((history.session_count(), history.txn_count()), (3, 4));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, message) in [
            ("r(x,1)", "expected a session and a colon"),
            ("a: x(y,1)", "x(y,1) is not an operation"),
            ("a: w(y,one)", "\"one\" is not a value"),
            ("a: l(y,[1)", "l(y,[1) is not an operation"),
            ("a: i(x,1,maybe)", "\"maybe\" is not ok, no, ? or saw:VALUE"),
            ("a: @1", "expected times such as @1..2"),
        ] {
            let error = Draft::parse(&format!("\n{text}")).expect_err(text);
            assert_eq!((error.line, error.message.as_str()), (2, message));
        }
    }
}
