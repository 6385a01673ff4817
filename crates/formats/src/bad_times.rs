//! Transactions of a file that finish before they start.

use std::fmt;

use isolario_model::{Batch, BatchEntries, History, SinkError, TxnId};

use crate::{ParsedHistory, Position, Problem, ReadError, Source};

/// Transactions that finish before they start, by the times in their file.
///
/// Such a file is refused, unless its reader asks for both times of these transactions to be left out:
/// [`Source::leaving_out_contradictory_times`], [`Stream::leaving_out_contradictory_times`](crate::Stream::leaving_out_contradictory_times).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContradictoryTimesError {
    /// The first of them, and its times, in words.
    first: String,
    count: u64,
    /// The lines at which they begin, as far as known, in order.
    lines: Vec<u64>,
}

/// Number of lines that an error names.
const LINES: usize = 10;

impl ContradictoryTimesError {
    /// Those of a history.
    pub fn of(history: &History) -> Option<ContradictoryTimesError> {
        ContradictoryTimesError::called(history, |txn| history.txn_label(txn))
    }

    /// Those of a piece of a file.
    pub(crate) fn of_piece(piece: &[Batch]) -> Result<Option<ContradictoryTimesError>, SinkError> {
        if !piece.iter().any(Batch::has_contradictory_times) {
            return Ok(None);
        }
        let history = History::from_batches(piece.to_vec(), BatchEntries::Whole)?;
        // Without a name, a transaction is called by its position, which a piece does not tell.
        Ok(ContradictoryTimesError::called(&history, |txn| match history.txn_name(txn) {
            Some(_) => history.txn_label(txn),
            None => format!("of session {}", history.session_name(history.session_of(txn))),
        }))
    }

    fn called(
        history: &History,
        label: impl Fn(TxnId) -> String,
    ) -> Option<ContradictoryTimesError> {
        let bad = history.contradictory_times();
        let first = bad.iter().min_by_key(|bad| history.line(bad.txn).unwrap_or(u64::MAX))?;
        let mut lines: Vec<u64> = bad.iter().filter_map(|bad| history.line(bad.txn)).collect();
        lines.sort_unstable();
        let (start, finish) = (first.start, first.finish);
        Some(ContradictoryTimesError {
            first: format!(
                "transaction {} finishes at {finish}, before its start at {start}",
                label(first.txn)
            ),
            count: bad.len() as u64,
            lines,
        })
    }

    /// Adds those of the next piece of the file.
    #[must_use]
    pub fn and(mut self, next: ContradictoryTimesError) -> ContradictoryTimesError {
        self.count += next.count;
        self.lines.extend(next.lines);
        self
    }

    /// Number of transactions.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The line of the first one, or the file as a whole.
    pub fn position(&self) -> Position {
        self.lines.first().map_or(Position::Whole, |line| Position::Line(*line))
    }

    /// In words, with at most so many lines.
    pub fn describe(&self, most: usize) -> String {
        let ContradictoryTimesError { first, count, lines } = self;
        if *count < 2 {
            return first.clone();
        }
        let named: Vec<String> = lines.iter().take(most).map(u64::to_string).collect();
        let lines = match (&named[..], lines.len().saturating_sub(most)) {
            ([], _) => String::new(),
            ([named @ .., last], 0) if !named.is_empty() => {
                format!(": lines {} and {last}", named.join(", "))
            }
            (named, 0) => format!(": line {}", named.join(", ")),
            (named, more) => format!(": lines {} and {more} more", named.join(", ")),
        };
        format!("{first} (the first of {count}{lines})")
    }

    /// Refuses a file that has them, unless they are to be left out.
    pub(crate) fn refuse(
        found: Option<ContradictoryTimesError>,
        file: &str,
        left_out: bool,
    ) -> Result<(), ReadError> {
        match found {
            Some(found) if !left_out => Err(ReadError {
                file: file.to_owned(),
                position: found.position(),
                problem: Problem::ContradictoryTimes(found),
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ContradictoryTimesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(LINES))
    }
}

impl ParsedHistory {
    /// The history, unless it has transactions that finish before they start and the source is not to leave
    /// out their times.
    pub(crate) fn with_sound_times(self, source: &Source) -> Result<ParsedHistory, ReadError> {
        ContradictoryTimesError::refuse(
            ContradictoryTimesError::of(&self.history),
            source.name(),
            source.leaves_out_contradictory_times,
        )?;
        Ok(self)
    }
}
