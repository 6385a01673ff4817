//! Orders of transactions: what a database promises, beside a history, about the order in which they
//! take effect.
//!
//! A JSON object per line, with the names of transactions, earlier ones first: `{"order": ["T1", "T2"]}`.
//! The lines follow each other. Names are spelled as in the JSON lines format of histories.

use isolario_model::{History, Outcome, TxnId, ValueRef};

use crate::error::{Fault, utf8};
use crate::jsonl::value::{prepare, value};
use crate::lines::Lines;
use crate::notation::{Form, Notation, Shape, json};
use crate::txn_names::{Called, TxnNames};
use crate::{Problem, ReadError, Source};

/// What a file says about the transactions of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sequence {
    /// The transactions, earlier ones first.
    pub txns: Vec<TxnId>,
    /// How many names the history does not have.
    pub unknown: u64,
    /// The first of them: its line, and the name.
    pub first_unknown: Option<(u64, String)>,
}

/// Reads an order of transactions.
///
/// Names that the history does not have are counted and left out: they may be of transactions that
/// nobody recorded. It is an error if a transaction has two places, if it aborted, and if several have
/// the same name.
pub fn read(source: &Source, history: &History) -> Result<Sequence, ReadError> {
    let bytes = source.require_file()?;
    let mut reader = Reader::new(history);
    reader.lines(bytes).map_err(|fault| fault.in_text(source, bytes))?;
    Ok(reader.sequence)
}

struct Reader<'h> {
    history: &'h History,
    names: TxnNames<'h>,
    has_place: Vec<bool>,
    sequence: Sequence,
}

impl<'h> Reader<'h> {
    fn new(history: &'h History) -> Self {
        let (names, has_place) = (TxnNames::new(history), vec![false; history.txn_count()]);
        Reader { history, names, has_place, sequence: Sequence::default() }
    }

    fn lines(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let text = utf8(bytes)?;
        let mut form = Form::new(Notation::Json);
        for line in Lines::new(bytes, 1).significant() {
            json::read_only(&text[..line.end], line.start, &mut form)?;
            self.line(line.number, &mut form)?;
        }
        Ok(())
    }

    fn line(&mut self, number: u64, form: &mut Form<'_>) -> Result<(), Fault> {
        let wrong = |form: &Form<'_>| {
            Fault::malformed(form.at(0), "an object with the field `order`", form.render(0))
        };
        if form.shape(0) != Some(Shape::Map) {
            return Err(wrong(form));
        }
        let ([order], others) = form.fields(0, &["order"])?;
        let Some(order) = order.filter(|_| others == 0) else { return Err(wrong(form)) };
        if form.shape(order) != Some(Shape::Vector) {
            return Err(Fault::malformed(form.at(order), "an array of names", form.render(order)));
        }
        let (mut name, end) = (order + 1, form.skip(order));
        while name < end {
            prepare(form, name)?;
            let place = self.place(number, value(form, name));
            place.map_err(|problem| Fault::new(form.at(name), problem))?;
            name = form.skip(name);
        }
        Ok(())
    }

    fn place(&mut self, line: u64, name: ValueRef<'_>) -> Result<(), Problem> {
        let malformed = |expected: &str, what: &str| {
            Err(Problem::malformed(expected, format!("{name}, {what}")))
        };
        match self.names.find(name) {
            Called::Nobody => {
                self.sequence.unknown += 1;
                self.sequence.first_unknown.get_or_insert_with(|| (line, name.to_string()));
                Ok(())
            }
            Called::Several(..) => {
                malformed("the name of one transaction", "which several are called")
            }
            Called::One(txn) if self.history.outcome(txn) == Outcome::Aborted => {
                malformed("a transaction that may have committed", "which aborted")
            }
            Called::One(txn) => {
                if std::mem::replace(&mut self.has_place[txn.index()], true) {
                    return malformed("each transaction once", "which has a place already");
                }
                self.sequence.txns.push(txn);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HistoryFormat;
    use crate::text::Text;

    fn sequence(order: &str) -> Result<Sequence, String> {
        let text = "session a\n  T1: w x 1\n  T2: w x 2\n  T3 aborted: w x 3\n";
        let source = |name: &str, text: &str| Source::from_bytes(name, text.into()).unwrap();
        let history = Text.read(&source("h.txt", text)).unwrap().history;
        read(&source("order", order), &history).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_follow_each_other_and_strangers_are_counted() {
        let read =
            sequence("{\"order\":[\"T2\"]}\n\n{\"order\":[\"T9\",\"T1\",\"T8\"]}\n").unwrap();
        assert_eq!(read.txns, [TxnId(1), TxnId(0)]);
        assert_eq!((read.unknown, read.first_unknown), (2, Some((3, "T9".to_owned()))));
    }

    #[test]
    fn who_has_two_places_or_none_by_right_is_refused() {
        for (order, place) in [
            ("{\"order\":[\"T1\",\"T1\"]}", "order:1:16"),
            ("{\"order\":[\"T3\"]}", "order:1:11"),
            ("{\"order\":\"T1\"}", "order:1:10"),
            ("[\"T1\"]", "order:1:1"),
            ("{\"order\":[],\"more\":1}", "order:1:1"),
        ] {
            let error = sequence(order).unwrap_err();
            assert!(error.starts_with(place), "{error}");
        }
    }
}
