//! The run directory: everything that is needed to look at a run again, and to repeat it.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use isolario::model::RunRecord;

use crate::failure::Failure;
use crate::reports::write_whole;

pub(super) struct Directory {
    path: PathBuf,
}

/// Where a run goes if nobody says otherwise.
pub(super) fn usual(seed: u64) -> PathBuf {
    PathBuf::from("isolario-runs").join(format!("{}-{seed}", stamp(unix_seconds())))
}

pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Directory {
    /// Makes the directory. One that holds anything is left alone.
    pub(super) fn create(path: PathBuf) -> Result<Directory, Failure> {
        let name = path.display();
        let failed = |error| {
            Failure::new(format!("cannot make the run directory {name}: {error}"))
                .with_hint("choose another one with --out DIR")
        };
        std::fs::create_dir_all(&path).map_err(failed)?;
        let mut entries = std::fs::read_dir(&path).map_err(failed)?;
        if entries.next().is_some() {
            return Err(Failure::new(format!("the run directory {name} is not empty"))
                .with_hint("choose another one with --out DIR"));
        }
        Ok(Directory { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn history(&self) -> PathBuf {
        self.path.join("history.iso")
    }

    pub(super) fn verdict(&self) -> PathBuf {
        self.path.join("verdict.json")
    }

    pub(super) fn proof(&self) -> PathBuf {
        self.path.join("proof")
    }

    pub(super) fn report(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// Writes what is known of the run.
    pub(super) fn write_record(&self, record: &RunRecord) -> Result<(), Failure> {
        write_whole(&self.path.join("run.json"), |out| {
            serde_json::to_writer_pretty(&mut *out, record)?;
            writeln!(out)
        })
    }

    /// Removes a directory in which nothing happened.
    pub(super) fn discard(self) {
        // Whoever put something else there in the meantime keeps it.
        let _ = std::fs::remove_file(self.history());
        let _ = std::fs::remove_file(self.path.join("run.json"));
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// A moment as `YYYYMMDD-HHMMSS`, in UTC.
fn stamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// The date so many days after 1970-01-01. Years are counted from March, so that the leap day is
/// the last one; 719,468 days lie between 0000-03-01 and 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "19700101-000000"),
            (951_782_399, "20000228-235959"),
            (951_827_696, "20000229-123456"),
            (1_709_251_200, "20240301-000000"),
            (4_107_542_399, "21000228-235959"),
            (4_107_542_400, "21000301-000000"),
        ] {
            assert_eq!(stamp(seconds), text);
        }
    }
}
