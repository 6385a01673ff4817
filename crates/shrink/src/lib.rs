//! The smallest part of a history that still shows an anomaly.
//!
//! A counterexample of four transactions is worth more than one of four among a hundred thousand.
//! [`shrink`] leaves out transactions, then operations, as long as the history goes on violating a
//! level by the same kind of anomaly. What is left is minimal: nothing more can go, unless the time
//! was up first.
//!
//! ```
//! use isolario::Recorder;
//! use isolario::shrink::{Settings, shrink};
//!
//! let recorder = Recorder::with_initial(0);
//! let mut sessions = [recorder.session(), recorder.session(), recorder.session()];
//! // Two clients increment what they have both read; a third one does something else.
//! for (session, value) in sessions.iter_mut().zip([1, 2]) {
//!     let mut txn = session.begin();
//!     txn.read("x", 0).write("x", value);
//!     txn.commit();
//! }
//! let mut txn = sessions[2].begin();
//! txn.read("y", 0).write("y", 3);
//! txn.commit();
//!
//! let shrunk = shrink(&recorder.history()?, &Settings::default())?;
//! assert_eq!(shrunk.history.txn_count(), 2);
//! assert!(shrunk.is_minimal);
//! println!("{}", shrunk.as_rust_test());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A part never looks worse than the whole: see [`HistoryPart`].

mod rust_test;

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use isolario_check::{CheckOptions, Checker};
use isolario_model::{
    Anomaly, AnomalyKind, History, HistoryPart, Level, LevelResult, OpId, SinkError, TxnId, Verdict,
};
use isolario_report::{KeyVersions, Report, involved};

/// How many steps back along what was read it takes to explain an anomaly, at most.
const ROUNDS: usize = 4;

/// What to look for, and how long.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The level that stays violated; the weakest that is, if none is named.
    pub level: Option<Level>,
    /// The anomaly that stays; the smallest that violates the level, if none is named.
    pub anomaly: Option<AnomalyKind>,
    /// How long it may take; as long as it takes, without a limit.
    pub timeout: Option<Duration>,
    /// How histories are checked.
    pub options: CheckOptions,
}

impl Settings {
    /// With a level that stays violated.
    #[must_use]
    pub fn with_level(self, level: Level) -> Settings {
        Settings { level: Some(level), ..self }
    }

    /// With an anomaly that stays.
    #[must_use]
    pub fn with_anomaly(self, anomaly: AnomalyKind) -> Settings {
        Settings { anomaly: Some(anomaly), ..self }
    }

    /// With the first finding of a report as what stays: that which the report is headed by. Nothing
    /// changes where the report has none.
    #[must_use]
    pub fn with_first_of(self, report: &Report<'_>) -> Settings {
        match report.first_at_a_level() {
            Some((level, kind)) => self.with_level(level).with_anomaly(kind),
            None => self,
        }
    }

    /// With a limit on the time it may take.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Settings {
        Settings { timeout: Some(timeout), ..self }
    }

    /// With options for the checks.
    #[must_use]
    pub fn with_options(self, options: CheckOptions) -> Settings {
        Settings { options, ..self }
    }
}

/// What is left of a history.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shrunk {
    /// The part.
    pub history: History,
    /// The anomaly that it shows.
    pub anomaly: AnomalyKind,
    /// The level that it violates, with its evidence.
    pub result: LevelResult,
    /// Whether nothing more can go: without any of its transactions or operations, the rest does not
    /// show the anomaly. Otherwise, the time was up.
    pub is_minimal: bool,
}

impl Shrunk {
    /// The history as a test in Rust, which records it and asserts the level.
    pub fn as_rust_test(&self) -> String {
        rust_test::write(&self.history, self.result.level, self.anomaly)
    }

    /// The history in the text language, without the statements that operations came from.
    #[cfg(feature = "formats")]
    pub fn as_text(&self) -> Result<String, SinkError> {
        isolario_formats::as_text(&self.history)
    }
}

/// What is left of a history, and its text: what reports show.
#[cfg(all(feature = "formats", feature = "html"))]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShrunkHistory {
    /// What is left.
    pub shrunk: Shrunk,
    /// The same in the text language.
    pub text: String,
}

#[cfg(all(feature = "formats", feature = "html"))]
impl ShrunkHistory {
    /// Looks for it, with answers that are known already. Nothing where nothing is violated, where
    /// nothing could go in the time that there was, or where the text language has no words for it: then
    /// reports show the whole alone.
    pub fn find(history: &History, known: &[LevelResult], settings: &Settings) -> Option<Self> {
        if !known.iter().any(|result| result.verdict.is_violated()) {
            return None;
        }
        let shrunk = shrink_known(history, known, settings).ok()?;
        let is_whole = shrunk.history.op_count() == history.op_count() && !shrunk.is_minimal;
        let text = shrunk.as_text().ok().filter(|_| !is_whole)?;
        Some(ShrunkHistory { shrunk, text })
    }

    /// As reports show it.
    pub fn excerpt(&self) -> isolario_report::Excerpt<'_> {
        let Shrunk { history, anomaly, result, is_minimal } = &self.shrunk;
        isolario_report::Excerpt::new(history, result, *anomaly, &self.text)
            .with_minimal(*is_minimal)
    }
}

/// Why there is nothing to shrink.
#[derive(Debug)]
#[non_exhaustive]
pub enum ShrinkError {
    /// No level is violated, or not the one that was named.
    NotViolated {
        /// The answers: that of the named level, or of all that apply.
        results: Vec<LevelResult>,
    },
    /// The level is violated, but not by this anomaly.
    OtherAnomalies {
        /// The level, with what was found.
        result: LevelResult,
    },
    /// An order is stated of the whole history, as part of what is asked: nobody knows what it says of
    /// a part.
    StatedOrder,
    /// A part could not be put together.
    Sink(SinkError),
}

impl fmt::Display for ShrinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShrinkError::NotViolated { results } => match results.as_slice() {
                [one] => write!(f, "{} is {}", one.level, one.verdict),
                _ => f.write_str("no level is violated"),
            },
            ShrinkError::OtherAnomalies { result } => {
                write!(f, "{} is violated, but not by this anomaly", result.level)
            }
            ShrinkError::StatedOrder => {
                f.write_str("an order stated for the whole history does not apply to a part of it")
            }
            ShrinkError::Sink(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ShrinkError {}

impl From<SinkError> for ShrinkError {
    fn from(error: SinkError) -> ShrinkError {
        ShrinkError::Sink(error)
    }
}

/// Looks for the smallest part of a history that violates a level in the same way.
pub fn shrink(history: &History, settings: &Settings) -> Result<Shrunk, ShrinkError> {
    shrink_known(history, &[], settings)
}

/// As [`shrink`], with answers that are known already: levels among them are not decided again.
pub fn shrink_known(
    history: &History,
    known: &[LevelResult],
    settings: &Settings,
) -> Result<Shrunk, ShrinkError> {
    let (result, anomaly) = find(history, known, settings)?;
    let mut options = settings.options.clone();
    let is_stated = !options.version_order.is_empty() || !options.version_sets.is_empty();
    if options.trust_version_order && is_stated || options.promised_order.is_some() {
        return Err(ShrinkError::StatedOrder);
    }
    // Hints change no answer, and their numbers are those of the whole.
    options.version_order.clear();
    options.version_sets.clear();
    let mut shrinker = Shrinker {
        level: result.level,
        kind: anomaly.kind,
        options,
        deadline: settings.timeout.map(|timeout| Instant::now() + timeout),
    };
    let (mut history, mut result) = shrinker.begin(history, result, &anomaly)?;
    while !shrinker.is_late() {
        let before = history.op_count();
        shrinker.leave_out_txns(&mut history, &mut result)?;
        shrinker.leave_out_ops(&mut history, &mut result)?;
        if history.op_count() == before {
            break;
        }
    }
    let is_minimal = !shrinker.is_late();
    Ok(Shrunk { history, anomaly: shrinker.kind, result, is_minimal })
}

/// The level that is violated, and by what.
fn find(
    history: &History,
    known: &[LevelResult],
    settings: &Settings,
) -> Result<(LevelResult, std::sync::Arc<Anomaly>), ShrinkError> {
    let checker = Checker::new(history, settings.options.clone());
    let wanted = |anomaly: &Anomaly| settings.anomaly.is_none_or(|kind| kind == anomaly.kind);
    let levels: Vec<Level> = match settings.level {
        Some(level) => vec![level],
        None if known.iter().any(|result| result.verdict.is_violated()) => {
            known.iter().map(|result| result.level).collect()
        }
        None => Level::decided().collect(),
    };
    let decide = |level: Level| match known.iter().find(|result| result.level == level) {
        Some(result) => result.clone(),
        None => checker.check(level),
    };
    let mut others = Vec::new();
    for level in levels {
        let result = decide(level);
        let fitting = result.verdict.anomalies().iter().filter(|anomaly| wanted(anomaly));
        if let Some(smallest) = fitting.min_by_key(|anomaly| involved(history, anomaly).len()) {
            let smallest = std::sync::Arc::clone(smallest);
            return Ok((result, smallest));
        }
        others.push(result);
    }
    match others.iter().position(|result| result.verdict.is_violated()) {
        Some(at) => Err(ShrinkError::OtherAnomalies { result: others.swap_remove(at) }),
        None => Err(ShrinkError::NotViolated { results: others }),
    }
}

/// What has to stay, and until when.
struct Shrinker {
    level: Level,
    kind: AnomalyKind,
    options: CheckOptions,
    deadline: Option<Instant>,
}

impl Shrinker {
    fn is_late(&self) -> bool {
        self.options.stop.is_asked()
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The part, if it still violates the level in the same way.
    fn try_part(
        &self,
        history: &History,
        part: HistoryPart,
    ) -> Result<Option<(History, LevelResult)>, ShrinkError> {
        let smaller = part.build(history)?;
        let mut options = self.options.clone();
        if let Some(deadline) = self.deadline {
            options = options.with_timeout(deadline.saturating_duration_since(Instant::now()));
        }
        let result = Checker::new(&smaller, options).check(self.level);
        let is_same = match &result.verdict {
            Verdict::Violated(findings) => {
                findings.anomalies.iter().any(|anomaly| anomaly.kind == self.kind)
            }
            _ => false,
        };
        Ok(is_same.then_some((smaller, result)))
    }

    /// What the anomaly is about is nearly always enough by itself. Where it is not, those whose writes
    /// were read are missing as a rule, and sometimes those whose writes these read; and where that is
    /// not it either, everything stays for now.
    fn begin(
        &mut self,
        history: &History,
        result: LevelResult,
        anomaly: &Anomaly,
    ) -> Result<(History, LevelResult), ShrinkError> {
        let mut about: BTreeSet<TxnId> =
            involved(history, anomaly).iter().map(|found| found.txn).collect();
        for _ in 0..ROUNDS {
            let part = HistoryPart::of_txns(history, about.iter().copied());
            if let Some(smaller) = self.try_part(history, part)? {
                return Ok(smaller);
            }
            let before = about.len();
            let reads = about.iter().flat_map(|txn| history.txn_ops(*txn));
            about.extend(KeyVersions::seen_by(history, reads).writers());
            if about.len() == before || about.len() > history.txn_count() / 2 || self.is_late() {
                break;
            }
        }
        Ok((history.clone(), result))
    }

    /// Leaves out transactions: many at a time first, and one by one in the end.
    fn leave_out_txns(
        &self,
        history: &mut History,
        result: &mut LevelResult,
    ) -> Result<(), ShrinkError> {
        let mut size = history.txn_count().div_ceil(2);
        while size > 0 {
            let mut first = 0;
            while first < history.txn_count() && !self.is_late() {
                let last = history.txn_count().min(first + size);
                let mut part = HistoryPart::whole(history);
                (first..last).for_each(|txn| part.remove_txn(history, TxnId::at(txn)));
                match self.try_part(history, part)? {
                    // Others have moved up; some before them may have gone as well.
                    Some((smaller, violated)) => (*history, *result) = (smaller, violated),
                    None => first = last,
                }
            }
            size /= 2;
        }
        Ok(())
    }

    fn leave_out_ops(
        &self,
        history: &mut History,
        result: &mut LevelResult,
    ) -> Result<(), ShrinkError> {
        let mut op = 0;
        while op < history.op_count() && !self.is_late() {
            let mut part = HistoryPart::whole(history);
            part.remove_op(OpId::at(op));
            match self.try_part(history, part)? {
                Some((smaller, violated)) => (*history, *result) = (smaller, violated),
                None => op += 1,
            }
        }
        Ok(())
    }
}
