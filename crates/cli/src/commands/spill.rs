//! `check --spill`: levels of a history that is too large to be loaded.

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::path::Path;

use isolario::check::{CheckOptions, Follower, HistoryCounts};
use isolario::follow::proof;
use isolario::follow::spill::{self, Spilled};
use isolario::follow::{FollowError, Settings};
use isolario::model::{Level, Limit, Verdict};
use isolario::report::{HistorySize, grouped};

use crate::commands::follow::{format_of, input_of};
use crate::commands::verify::read_as;
use crate::config::{Check, InputFormat, Spill};
use crate::console::Console;
use crate::failure::Failure;
use crate::outfile::write_whole;

/// A history takes about so many times as much memory as its file has bytes.
const TIMES_IN_MEMORY: [(&str, u64); 2] = [("isolario", 11), ("jsonl", 4)];

/// How much memory is used where nobody says how much.
pub(crate) const USUAL_MEMORY: u64 = 4 << 30;

/// So many transactions are kept at least where memory allows it: one per so many bytes.
const MOST_KEPT: usize = 1 << 17;
const BYTES_PER_KEPT: u64 = 20_000;

/// So many are looked at, at a time: what is kept is looked at again each time. So many bytes are read at a
/// time, to be unpacked on all cores.
const AT_A_TIME: usize = 1 << 20;
const PIECE: usize = 1 << 24;

/// Whether a history is to be read from front to back, and why.
pub(crate) struct Choice {
    pub(crate) spills: bool,
    why: Why,
}

enum Why {
    /// `--spill` asks for it.
    Asked,
    /// To load it takes about so many bytes, and so many may be used.
    Size { takes: u64, most: u64 },
    /// Nobody can tell how much it takes.
    Unknown,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.spills { "read from front to back" } else { "loaded" };
        match self.why {
            Why::Asked => write!(f, "{how}, as --spill asks"),
            Why::Unknown => write!(f, "{how}, since its format cannot be read incrementally"),
            Why::Size { takes, most } => {
                let (takes, most) = (grouped(takes >> 20), grouped(most >> 20));
                write!(f, "{how}: loading takes about {takes} MiB, and --memory allows {most} MiB")
            }
        }
    }
}

/// Chooses whether a history is loaded.
pub(crate) fn choose(spill: &Spill, format: InputFormat, path: &Path) -> Choice {
    let Some(most) = spill.only_above else { return Choice { spills: true, why: Why::Asked } };
    match to_load(format, path) {
        Some(takes) => Choice { spills: takes > most, why: Why::Size { takes, most } },
        None => Choice { spills: false, why: Why::Unknown },
    }
}

/// How many bytes it takes to load a history, about; none if it cannot be read piece by piece anyway.
fn to_load(format: InputFormat, path: &Path) -> Option<u64> {
    let file = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
    let format = format_of(format, path).ok()?;
    let (_, times) = TIMES_IN_MEMORY.iter().find(|(name, _)| *name == format.name())?;
    Some(file.len().saturating_mul(*times))
}

pub(crate) fn decide(
    spill: &Spill,
    config: &Check,
    path: &Path,
    levels: &[Level],
    options: &CheckOptions,
) -> Result<Spilled, Failure> {
    let input = input_of(config.format, path)?;
    let memory = options.memory.unwrap_or(USUAL_MEMORY);
    let mut settings = Settings::default()
        .with_memory(Some(memory))
        .with_at_a_time(AT_A_TIME)
        .with_pieces_of(PIECE)
        .with_orders(config.proof.is_some());
    // Where writes follow no reads, it is a guess which is the last one of those that overlap, until somebody
    // reads it. To keep many costs less than to read the file again.
    settings.tail = ((memory / BYTES_PER_KEPT) as usize).clamp(Follower::USUAL_TAIL, MOST_KEPT);
    spill::decide(input, levels, options, settings, &spill.directory).map_err(|error| {
        let failure = Failure::new(error.to_string());
        match error {
            FollowError::Read(error) => Failure::reading(&error, config.format),
            FollowError::Spill { .. } => failure.with_hint("use another directory: --spill DIR"),
            _ => failure.with_hint("check the history without --spill"),
        }
    })
}

/// Writes the proof of the answers. The file is there as a whole or not at all.
pub(crate) fn write_proof(
    config: &Check,
    path: &Path,
    spilled: &Spilled,
    options: &CheckOptions,
    file: &Path,
) -> Result<(), Failure> {
    let input = input_of(config.format, path)?;
    let name = path.display().to_string();
    write_whole(file, |out| {
        let out = &mut { out };
        proof::write(input, spilled, &read_as(options), &name, out).map_err(io::Error::other)
    })
}

/// Says how it went.
pub(crate) fn tell(name: &str, spilled: &Spilled, console: &mut Console) {
    let Spilled { bytes, returns, restarts, part, results, .. } = spilled;
    console.detail(&format!(
        "{name}: read from front to back; {} bytes were sorted on disk; {returns} times, a part was reread to \
         retain more, {restarts} of them from the beginning",
        grouped(*bytes)
    ));
    if part.txn_count() > 0 {
        console.detail(&format!(
            "{name}: the evidence consists of {} transactions",
            grouped(part.txn_count() as u64)
        ));
    }
    let is_too_large = results.iter().any(|result| match &result.verdict {
        Verdict::Undecided(undecided) => matches!(undecided.limit, Limit::Memory(_)),
        _ => false,
    });
    if is_too_large {
        console.warning(&format!(
            "{name}: too many transactions are out of order for the memory limit; allow more with --memory, or \
             record when transactions start and finish"
        ));
    }
}

/// How large the history is.
pub(crate) fn size(figures: &HistoryCounts) -> HistorySize {
    let [committed, aborted, unknown] = figures.outcomes;
    let mut size = HistorySize::default();
    (size.sessions, size.keys) = (figures.sessions, figures.keys);
    (size.committed, size.aborted, size.unknown) = (committed, aborted, unknown);
    (size.transactions, size.operations) = (committed + aborted + unknown, figures.operations);
    size
}
