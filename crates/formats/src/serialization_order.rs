//! Orders of transactions: what a database promises, beside a history, about the order in which they
//! take effect.
//!
//! A JSON object per line, with the names of transactions, earlier ones first: `{"order": ["T1", "T2"]}`.
//! The lines follow each other. Names are spelled as in the JSON lines format of histories.

use isolario_model::{History, Outcome, TxnId, ValueRef};

use crate::error::{Fault, utf8};
use crate::jsonl::value::{prepare, value};
use crate::lines::{self, Chunk, Lines};
use crate::notation::{Form, Notation, Shape, json};
use crate::txn_names::{Called, TxnNames};
use crate::{Problem, ReadError, Source};

/// What a file says about the transactions of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SerializationSequence {
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
pub fn read(source: &Source, history: &History) -> Result<SerializationSequence, ReadError> {
    let bytes = source.require_file()?;
    read_bytes(bytes, history, lines::good_chunk_size(bytes))
        .map_err(|fault| fault.in_text(source, bytes))
}

/// Reads a whole file, in chunks of about `chunk_size` bytes, which do not show in the result.
fn read_bytes(
    bytes: &[u8],
    history: &History,
    chunk_size: usize,
) -> Result<SerializationSequence, Fault> {
    let (text, names) = (utf8(bytes)?, TxnNames::new(history));
    let parse = |chunk| Ok(Part::read(text, chunk, history, &names));
    let parts: Vec<Part> = lines::parse_chunks::<_, Fault>(bytes, chunk_size, parse)?;
    let mut sequence = SerializationSequence::default();
    let mut has_place = vec![false; history.txn_count()];
    for part in parts {
        for (txn, at) in part.txns {
            if std::mem::replace(&mut has_place[txn.index()], true) {
                let name = history.txn_name(txn).unwrap_or(ValueRef::Nil);
                let found = format!("{name} again");
                return Err(Fault::new(at, Problem::malformed("each transaction once", found)));
            }
            sequence.txns.push(txn);
        }
        part.fault.map_or(Ok(()), Err)?;
        sequence.unknown += part.unknown;
        sequence.first_unknown = sequence.first_unknown.take().or(part.first_unknown);
    }
    Ok(sequence)
}

/// What some lines say, up to the first fault of theirs. Whether somebody has two places, only all
/// lines tell.
#[derive(Default)]
struct Part {
    /// Each with the place of its name in the file.
    txns: Vec<(TxnId, usize)>,
    unknown: u64,
    first_unknown: Option<(u64, String)>,
    fault: Option<Fault>,
}

impl Part {
    fn read(text: &str, chunk: Chunk<'_>, history: &History, names: &TxnNames<'_>) -> Part {
        let mut part = Part::default();
        part.fault = part.lines(text, chunk, history, names).err();
        part
    }

    fn lines(
        &mut self,
        text: &str,
        chunk: Chunk<'_>,
        history: &History,
        names: &TxnNames<'_>,
    ) -> Result<(), Fault> {
        let mut form = Form::new(Notation::Json);
        for line in Lines::new(chunk.bytes, chunk.first_line).significant() {
            let (start, end) = (chunk.start + line.start, chunk.start + line.end);
            json::read_only(&text[..end], start, &mut form)?;
            let order = order_of(&form)?;
            let (mut name, end) = (order + 1, form.skip(order));
            while name < end {
                prepare(&mut form, name)?;
                let (at, value) = (form.at(name), value(&form, name));
                match placed(value, history, names).map_err(|problem| Fault::new(at, problem))? {
                    Some(txn) => self.txns.push((txn, at)),
                    None => {
                        self.unknown += 1;
                        self.first_unknown.get_or_insert_with(|| (line.number, value.to_string()));
                    }
                }
                name = form.skip(name);
            }
        }
        Ok(())
    }
}

/// The list of names of a line.
fn order_of(form: &Form<'_>) -> Result<usize, Fault> {
    let wrong = || Fault::malformed(form.at(0), "an object with the field `order`", form.render(0));
    if form.shape(0) != Some(Shape::Map) {
        return Err(wrong());
    }
    let ([order], others) = form.fields(0, &["order"])?;
    let Some(order) = order.filter(|_| others == 0) else { return Err(wrong()) };
    if form.shape(order) != Some(Shape::Vector) {
        return Err(Fault::malformed(form.at(order), "an array of names", form.render(order)));
    }
    Ok(order)
}

/// Who has a name, if anybody does, and may have a place.
fn placed(
    name: ValueRef<'_>,
    history: &History,
    names: &TxnNames<'_>,
) -> Result<Option<TxnId>, Problem> {
    let malformed =
        |expected: &str, what: &str| Err(Problem::malformed(expected, format!("{name}, {what}")));
    match names.find(name) {
        Called::Nobody => Ok(None),
        Called::Several(..) => malformed("the name of one transaction", "which several are called"),
        Called::One(txn) if history.outcome(txn) == Outcome::Aborted => {
            malformed("a transaction that may have committed", "which aborted")
        }
        Called::One(txn) => Ok(Some(txn)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HistoryFormat;
    use crate::text::Text;

    fn source(name: &str, text: &str) -> Source {
        Source::from_bytes(name, text.into()).unwrap()
    }

    fn history() -> History {
        let text = "session a\n  T1: w x 1\n  T2: w x 2\n  T3 aborted: w x 3\n";
        Text.read(&source("h.txt", text)).unwrap().history
    }

    fn sequence(order: &str) -> Result<SerializationSequence, String> {
        read(&source("order", order), &history()).map_err(|error| error.to_string())
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

    #[test]
    fn chunks_do_not_show_neither_in_what_is_read_nor_in_what_is_wrong_first() {
        let lines = ["[\"T2\"]", "[]", "[\"T9\",\"T1\"]", "[\"T8\"]"];
        let file: String = lines.map(|names| format!("{{\"order\":{names}}}\n")).concat();
        let twice = file.replace("T9", "T2") + "[]\n";
        let aborted = file.replace("T9", "T3") + "{\"order\":[\"T1\"]}\n";
        let all = read_bytes(file.as_bytes(), &history(), usize::MAX).unwrap();
        for size in [1, 20, 30] {
            assert_eq!(read_bytes(file.as_bytes(), &history(), size).unwrap(), all);
            for (wrong, at) in [(&twice, "T2\",\"T1"), (&aborted, "T3")] {
                let fault = read_bytes(wrong.as_bytes(), &history(), size).unwrap_err();
                assert_eq!(fault.at + 1, wrong.find(at).unwrap(), "{wrong}");
            }
        }
    }
}
