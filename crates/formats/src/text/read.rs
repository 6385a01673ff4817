//! A whole text to a history, on all cores.
//!
//! A transaction may go on over several lines, and a session holds for all lines below it: only
//! what comes before a chunk tells what its first line means. So that is guessed. The guess is that
//! a transaction or a session begins there, in the session of the last line above that looks like
//! the beginning of one. Whether it was right is known once the chunk before has been read, and a
//! chunk with a wrong guess is then read again.

use isolario_model::{Batch, BatchEntries, History, TxnSink, Value, ValueRef};
use memchr::memmem;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::parser::Parser;
use crate::lines::{self, Chunk};
use crate::source::Meter;

/// Reads a text in chunks of about `size` bytes, which do not show in the result. Gives up on any
/// mistake: reading from the first line to the last finds out which one comes first.
pub(super) fn history(text: &str, size: usize, meter: &Meter) -> Option<History> {
    let guesses = guesses(text, size);
    let ends = guesses.iter().skip(1).map(|guess| guess.at).chain([usize::MAX]);
    let ends: Vec<usize> = ends.take(guesses.len()).collect();
    let read = |(guess, end): (Place, &usize)| {
        let from = guess.at;
        let stretch = stretch(text, guess, *end);
        meter.add((*end).min(text.len()) - from);
        stretch
    };
    let read: Vec<Option<Stretch>> = guesses.into_par_iter().zip(&ends).map(read).collect();
    let mut batches = Vec::with_capacity(read.len());
    let mut place: Option<Place> = None;
    for (guessed, end) in read.into_iter().zip(ends) {
        let right = match place {
            Some(place) => guessed
                .filter(|stretch| stretch.from == place)
                .or_else(|| stretch(text, place, end))?,
            None => guessed?,
        };
        batches.push(right.batch);
        place = Some(right.to);
    }
    let history = History::from_batches(batches, BatchEntries::Whole).ok()?;
    has_distinct_names(&history).then_some(history)
}

/// A place between transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    at: usize,
    line: u64,
    /// The session that holds there.
    session: Option<Value>,
}

/// What stands between two places.
struct Stretch {
    from: Place,
    batch: Batch,
    to: Place,
}

/// Reads what begins in front of `end`, which may go on behind it.
fn stretch(text: &str, from: Place, end: usize) -> Option<Stretch> {
    let mut parser = Parser::from(text, from.at, from.line).ok()?;
    let mut batch = Batch::new();
    let mut session = from.session;
    if from.at == 0 {
        batch.meta(&parser.header().ok()?).ok()?;
    }
    parser.skip_line_ends().ok()?;
    let from = parser.place(&session);
    parser.statements(end, &mut session, None, &mut batch).ok()?;
    Some(Stretch { from, batch, to: parser.place(&session) })
}

impl Parser<'_> {
    fn place(&self, session: &Option<Value>) -> Place {
        Place { at: self.at(), line: self.line(), session: session.clone() }
    }
}

/// Where the chunks begin; one place at least.
fn guesses(text: &str, size: usize) -> Vec<Place> {
    let mut chunks = lines::cut(text.as_bytes(), size);
    if chunks.is_empty() {
        chunks.push(Chunk { bytes: &[], start: 0, first_line: 1, lines: 0 });
    }
    let last_sessions: Vec<Option<Value>> = chunks
        .par_iter()
        .map(|chunk| last_session(text, chunk.start, chunk.start + chunk.bytes.len()))
        .collect();
    let mut session = None;
    let place = |(chunk, last): (Chunk<'_>, Option<Value>)| {
        let held = session.clone();
        session = last.or(session.take());
        Place { at: chunk.start, line: chunk.first_line, session: held }
    };
    chunks.into_iter().zip(last_sessions).map(place).collect()
}

/// The session of the last line in these bytes that looks like the beginning of one.
fn last_session(text: &str, start: usize, end: usize) -> Option<Value> {
    let mut end = end;
    while let Some(found) = memmem::rfind(&text.as_bytes()[start..end], b"session") {
        let line = text[..start + found].rfind('\n').map_or(0, |newline| newline + 1);
        let named = Parser::from(text, line, 1).ok().filter(|parser| parser.at_word("session"));
        if let Some(Ok(name)) = named.map(|mut parser| parser.session()) {
            return Some(name);
        }
        end = start + found;
    }
    None
}

fn has_distinct_names(history: &History) -> bool {
    let (mut numbers, mut others) = (Vec::new(), FxHashSet::default());
    for name in history.txns().filter_map(|txn| history.txn_name(txn)) {
        match name {
            ValueRef::Int(number) => numbers.push(number),
            other if others.insert(other) => {}
            _ => return false,
        }
    }
    // Sorting goes through memory in order, as hashing would not.
    numbers.par_sort_unstable();
    numbers.windows(2).all(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{in_one_go, parse};
    use super::*;

    /// Lines that mean different things depending on what stands before them, and mistakes.
    const LINES: &[&str] = &[
        "session a\n",
        "  session \"b \\u{63}\" # once\n",
        "session 3\r\n",
        "# session z\n",
        "\n",
        " _: r x 1, w x 2\n",
        " _ [1, ?]: w session 7,\n",
        "   append l 5,\n",
        "   w y \"é\"\n",
        " _: r l [1,\n",
        "session\n",
        "  2 session :k]\n",
        " _: select \"v\" {a: 1,\n",
        "   b: 2}\n",
        " session unknown: delete x\n",
    ];
    const MISTAKES: &[&str] =
        &["initial 0\n", " _: r x\n", " T: r \"x\n", "é ;\n", "session a b\n"];

    fn texts() -> impl Strategy<Value = String> {
        let good = prop::sample::select(LINES).prop_map(str::to_owned);
        let named = (0..40u8).prop_map(|name| format!(" {name} aborted: w x {name}\n"));
        let bad = prop::sample::select(MISTAKES).prop_map(str::to_owned);
        let line = prop_oneof![20 => good, 4 => named, 1 => bad];
        prop::collection::vec(line, 0..25)
            .prop_map(|lines| format!("session s\n{}", lines.concat()))
    }

    fn lines(history: &History) -> Vec<Option<u64>> {
        history.txns().map(|txn| history.line(txn)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn chunks_do_not_show(text in texts(), size in 1..200usize) {
            let chunked = history(&text, size, &Meter::default());
            match in_one_go(&text, parse::parse) {
                Err(_) => prop_assert!(chunked.is_none()),
                Ok(whole) => {
                    let chunked = chunked.unwrap();
                    prop_assert_eq!(&chunked, &whole);
                    prop_assert_eq!(lines(&chunked), lines(&whole));
                    prop_assert_eq!(chunked.op_keys(), whole.op_keys());
                    prop_assert_eq!(chunked.encoded_values(), whole.encoded_values());
                }
            }
        }
    }

    #[test]
    fn a_wrong_guess_is_made_good() {
        let text = "session a\n _: r l [1,\n session\n b\n ], w x 1\n _: r x 1\n";
        for size in 1..text.len() {
            assert_eq!(
                history(text, size, &Meter::default()),
                in_one_go(text, parse::parse).ok(),
                "{size}"
            );
        }
    }

    #[test]
    fn a_name_in_two_chunks_is_noticed() {
        for name in ["7", "T7", "\"7\""] {
            let text = format!("session a\n {name}: w x 1\n 8: w x 2\n {name}: w x 3\n");
            assert!(
                (1..80).all(|size| history(&text, size, &Meter::default()).is_none()),
                "{name}"
            );
        }
    }
}
