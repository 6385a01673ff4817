//! What to call transactions, keys, values and operations: always by the user's own names.

use std::fmt::Write;

use isolario_model::{History, KeyId, Op, OpId, Predicate, RowView, SessionId, TxnId, ValueId};

use crate::marks::{Mark, Part};
use crate::printable::printable;

/// The longest value a sentence shows in full.
const LONGEST_VALUE: usize = 40;

/// The longest list a sentence shows in full, and what it keeps of a longer one.
const LONGEST_LIST: usize = 12;
const KEPT_AT_START: usize = 3;
const KEPT_AT_END: usize = 6;

/// How many rows of a result are shown whether or not they matter.
const SHOWN_ROWS: usize = 3;

/// Names for the parts of a history, as sentences use them.
#[derive(Clone, Copy, Debug)]
pub struct Names<'h> {
    history: &'h History,
    /// Where names say what they are the names of (see [`crate::marks`]), in which part of a page.
    part: Option<Part>,
    /// The rows that matter, where not all do.
    about: Option<&'h [KeyId]>,
}

impl<'h> Names<'h> {
    /// The names of a history.
    pub fn new(history: &'h History) -> Self {
        Names { history, part: None, about: None }
    }

    /// Names that a page makes links of, wherever they stand in a sentence.
    #[cfg(feature = "html")]
    pub(crate) fn marked(history: &'h History, part: Part) -> Self {
        Names { history, part: Some(part), about: None }
    }

    /// The same, but of a result that has many rows operations show only these, and how many others
    /// there are.
    pub(crate) fn about<'k>(self, keys: &'k [KeyId]) -> Names<'k>
    where
        'h: 'k,
    {
        Names { about: Some(keys), ..self }
    }

    fn mark(&self, mark: impl FnOnce() -> Mark, name: String) -> String {
        match self.part {
            Some(part) => mark().around(&name, part),
            None => name,
        }
    }

    /// The history they are from.
    pub fn history(&self) -> &'h History {
        self.history
    }

    /// A transaction: `T7` where the user's name is a number, the user's name otherwise.
    pub fn txn(&self, txn: TxnId) -> String {
        if txn.is_init() {
            return "the initial state".to_owned();
        }
        let label = self.history.txn_label(txn);
        let name = match label.parse::<i128>() {
            Ok(_) => format!("T{label}"),
            Err(_) => printable(&label).into_owned(),
        };
        self.mark(|| Mark::Txn(txn.0), name)
    }

    /// The transaction of an operation.
    pub fn txn_of(&self, op: OpId) -> String {
        self.txn(self.history.op_txn(op))
    }

    /// The session of a transaction.
    pub fn session(&self, txn: TxnId) -> String {
        self.session_named(self.history.session_of(txn))
    }

    /// A session.
    pub fn session_named(&self, session: SessionId) -> String {
        let name = printable(&self.history.session_name(session).to_string()).into_owned();
        self.mark(|| Mark::Text(name.clone()), name.clone())
    }

    /// A key.
    pub fn key(&self, key: KeyId) -> String {
        let name = shorten(&self.history.key_name(key).to_string());
        self.mark(|| Mark::Key(key.0), name)
    }

    /// A value.
    pub fn value(&self, value: ValueId) -> String {
        let name = shorten(&self.history.value(value).to_string());
        self.mark(|| Mark::Text(self.full_value(value)), name)
    }

    /// A key, however long.
    #[cfg(feature = "html")]
    pub(crate) fn full_key(&self, key: KeyId) -> String {
        printable(&self.history.key_name(key).to_string()).into_owned()
    }

    /// A value, however long.
    pub(crate) fn full_value(&self, value: ValueId) -> String {
        printable(&self.history.value(value).to_string()).into_owned()
    }

    /// The elements of a list; the middle of a long one is left out.
    pub fn list(&self, elements: &[ValueId]) -> String {
        let shown = |part: &[ValueId]| -> Vec<_> { part.iter().map(|v| self.value(*v)).collect() };
        if elements.len() <= LONGEST_LIST {
            return format!("[{}]", shown(elements).join(" "));
        }
        let start = shown(&elements[..KEPT_AT_START]).join(" ");
        let end = shown(&elements[elements.len() - KEPT_AT_END..]).join(" ");
        format!("[{start} … {end}] ({} elements)", elements.len())
    }

    /// A version: the key, and what an operation read there or wrote to it, as in `x=1`.
    pub fn version(&self, op: OpId) -> String {
        match self.history.op(op) {
            Op::Read { key, value: Some(value) }
            | Op::Write { key, value }
            | Op::InsertIfAbsent { key, value, .. }
            | Op::CompareAndSet { key, new: value, .. } => {
                format!("{}={}", self.key(key), self.value(value))
            }
            Op::Read { key, value: None } | Op::ReadList { key, elements: None } => {
                format!("{}=?", self.key(key))
            }
            Op::Delete { key } => format!("{}=nil", self.key(key)),
            Op::Append { key, element } => format!("{}+={}", self.key(key), self.value(element)),
            Op::ReadList { key, elements: Some(elements) } => {
                format!("{}={}", self.key(key), self.list(elements))
            }
            _ => self.op(op),
        }
    }

    /// An operation, in the short form in which transactions are listed.
    pub fn op(&self, op: OpId) -> String {
        match self.history.op(op) {
            Op::Read { .. } | Op::ReadList { .. } => format!("r {}", self.version(op)),
            Op::Write { .. } => format!("w {}", self.version(op)),
            Op::Delete { key } => format!("delete {}", self.key(key)),
            Op::Append { key, element } => {
                format!("append {} {}", self.key(key), self.value(element))
            }
            Op::InsertIfAbsent { applied, seen, .. } => {
                format!("insert {}{}", self.version(op), self.ending(applied, seen))
            }
            Op::CompareAndSet { key, expected, new, applied, seen } => format!(
                "cas {} {}→{}{}",
                self.key(key),
                self.value(expected),
                self.value(new),
                self.ending(applied, seen)
            ),
            Op::PredicateRead { predicate, rows } => {
                format!("select {}{}", self.matching(predicate), self.rows(rows))
            }
            Op::PredicateWrite { predicate, rows } => {
                format!("update {}{}", self.matching(predicate), self.rows(rows))
            }
            Op::Aggregate { function, predicate, result } => {
                let result = result.map_or("?".to_owned(), |value| self.value(value));
                format!("{function} {} = {result}", self.matching(predicate))
            }
            _ => "an operation of an unknown kind".to_owned(),
        }
    }

    /// Which rows a predicate asks for: `where v > 0`, `from t where v > 0`.
    pub(crate) fn matching(&self, predicate: &Predicate) -> String {
        let text = match (predicate.table(), predicate.condition()) {
            (Some(table), Some(condition)) => format!("from {table} where {condition}"),
            _ => format!("where {predicate}"),
        };
        printable(&text).into_owned()
    }

    /// How a conditional write ended.
    fn ending(&self, applied: Option<bool>, seen: Option<ValueId>) -> String {
        match (applied, seen) {
            (Some(true), _) => String::new(),
            (Some(false), None) => " (failed)".to_owned(),
            (Some(false), Some(seen)) => format!(" (failed, found {})", self.value(seen)),
            (None, _) => " (unknown)".to_owned(),
        }
    }

    fn rows(&self, rows: Option<&[RowView]>) -> String {
        let Some(rows) = rows else { return ": ?".to_owned() };
        let matters = |row: &&RowView| match self.about {
            Some(keys) if rows.len() > SHOWN_ROWS => keys.contains(&row.key),
            _ => true,
        };
        let shown: Vec<&RowView> = rows.iter().filter(matters).take(LONGEST_LIST).collect();
        let mut text = String::from(":");
        for row in &shown {
            // Writing to a string does not fail.
            let _ = write!(text, " {}={}", self.key(row.key), self.value(row.value));
        }
        match (rows.len() - shown.len(), shown.len()) {
            (0, 0) => text.push_str(" no rows"),
            (0, _) => {}
            (rest, 0) => {
                let _ = write!(text, " {}", counted(rest as u64, "row"));
            }
            (rest, _) => {
                let _ = write!(text, " … and {}", counted(rest as u64, "other row"));
            }
        }
        text
    }
}

pub(crate) fn shorten(text: &str) -> String {
    printable(&middle_cut(text, LONGEST_VALUE)).into_owned()
}

/// A text of at most so many characters. Of a longer one the middle is left out: long names and
/// values often differ only at their ends.
pub(crate) fn middle_cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let kept_at_end = most * 2 / 5;
    let start: String = text.chars().take(most - kept_at_end).collect();
    let end: String = text.chars().skip(count - kept_at_end).collect();
    format!("{start}…{end}")
}

/// Names in a row, as people say them: `a`, `a and b`, `a, b and c`.
pub(crate) fn listed<T: ToString>(names: &[T]) -> String {
    let names: Vec<String> = names.iter().map(T::to_string).collect();
    match &names[..] {
        [] => String::new(),
        [one] => one.clone(),
        [start @ .., last] => format!("{} and {last}", start.join(", ")),
    }
}

/// A number with its thousands apart: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 session`, `2,000 sessions`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        _ if count == 1 => return format!("1 {noun}"),
        // `key` keeps its y; `anomaly` does not.
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", grouped(count))
}

#[cfg(test)]
mod tests {
    use isolario_model::{Aggregate, Predicate, RowInput, TupleParts, ValueRef};

    use super::*;
    use crate::testing::{History as Builder, int, text};

    #[test]
    fn transactions_are_called_by_the_users_names() {
        let history = Builder::new()
            .named(int(7), &[])
            .named(text("8"), &[])
            .named(text("pay"), &[])
            .named(ValueRef::Keyword("pay"), &[])
            .nameless(&[])
            .build();
        let names = Names::new(&history);
        let called: Vec<_> = history.txns().map(|txn| names.txn(txn)).collect();
        assert_eq!(called, ["T7", "T8", "pay", ":pay", "#4"]);
        assert_eq!(names.txn(TxnId::INIT), "the initial state");
    }

    #[test]
    fn names_do_nothing_to_a_terminal() {
        let history = Builder::new()
            .named(text("pay\u{1b}[2J\nerror: x"), &[])
            .named(ValueRef::Keyword("a\u{202e}b"), &[])
            .build();
        let names = Names::new(&history);
        let called: Vec<_> = history.txns().map(|txn| names.txn(txn)).collect();
        assert_eq!(called, ["pay\\u{1b}[2J\\nerror: x", ":a\\u{202e}b"]);
    }

    #[test]
    fn every_kind_of_operation_has_a_short_form() {
        let (x, rows) = (text("x"), [RowInput::new("x", 1), RowInput::new(2, "a b")]);
        let positive = Predicate::from_sql("v > 0");
        let rich = Predicate::from_sql("FROM accounts WHERE balance > 100");
        let account = TupleParts { table: "accounts", columns: &[("id", int(1))] };
        let held = TupleParts { table: "", columns: &[("balance", int(200))] };
        let accounts = [RowInput::new(&account, &held)];
        let long: Vec<_> = (0..20).map(int).collect();
        let (yes, no) = (Some(true), Some(false));
        let cas = |applied, seen| Op::CompareAndSet {
            key: x,
            expected: int(1),
            new: int(2),
            applied,
            seen,
        };
        let insert = |applied| Op::InsertIfAbsent { key: x, value: int(1), applied, seen: None };
        let history = Builder::new()
            .txn(&[
                Op::Read { key: x, value: Some(int(1)) },
                Op::Read { key: x, value: None },
                Op::Write { key: x, value: ValueRef::Text(&"long ".repeat(20)) },
                Op::Delete { key: x },
                Op::Append { key: x, element: int(3) },
                Op::ReadList { key: x, elements: Some(&[int(1), int(2)]) },
                Op::ReadList { key: x, elements: Some(&long) },
                Op::ReadList { key: x, elements: None },
                insert(yes),
                insert(no),
                cas(yes, None),
                cas(no, Some(int(7))),
                cas(None, None),
                Op::PredicateRead { predicate: &positive, rows: Some(&rows) },
                Op::PredicateRead { predicate: &positive, rows: Some(&[]) },
                Op::PredicateWrite { predicate: &positive, rows: None },
                Op::Aggregate {
                    function: &Aggregate::Count,
                    predicate: &positive,
                    result: Some(int(2)),
                },
                Op::PredicateRead { predicate: &rich, rows: Some(&accounts) },
            ])
            .build();
        let names = Names::new(&history);
        let shown: Vec<_> = (0..history.op_count()).map(|op| names.op(OpId::at(op))).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn counts_and_lists_read_as_people_say_them() {
        assert_eq!(counted(1, "key"), "1 key");
        assert_eq!(counted(2, "key"), "2 keys");
        assert_eq!(counted(0, "anomaly"), "0 anomalies");
        assert_eq!(counted(12_000, "key"), "12,000 keys");
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&names[..1]), "a");
        assert_eq!(listed(&names[..2]), "a and b");
        assert_eq!(listed(&names), "a, b and c");
    }
}
