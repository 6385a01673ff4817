//! Where a report comes from: what somebody asks who gets it from somebody else.

/// By which program a report was made, when, about which history, and how to verify it.
///
/// What is not known is left out, by every renderer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provenance {
    /// When the history was recorded, or else checked: seconds since 1970.
    pub unix_s: Option<u64>,
    /// The digest of the history, as proofs have it: equal for equal histories in any format.
    pub digest: Option<String>,
    /// The command that verifies the proof; nothing where no proof was written.
    pub verify: Option<String>,
}

impl Provenance {
    /// The version of Isolario.
    pub const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    /// Nothing but the version.
    pub fn new() -> Provenance {
        Provenance::default()
    }

    /// Sets the date.
    #[must_use]
    pub fn with_unix_s(self, unix_s: u64) -> Self {
        Provenance { unix_s: Some(unix_s), ..self }
    }

    /// Sets the digest of the history.
    #[must_use]
    pub fn with_digest(self, digest: impl Into<String>) -> Self {
        Provenance { digest: Some(digest.into()), ..self }
    }

    /// Sets the command that verifies the proof.
    #[must_use]
    pub fn with_verify(self, command: impl Into<String>) -> Self {
        Provenance { verify: Some(command.into()), ..self }
    }

    /// What is known, as a label and what it says: `Isolario`, `Date`, `Digest of the history`,
    /// `Proof`.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("Isolario", Provenance::VERSION.to_owned())];
        facts.extend(self.unix_s.map(|seconds| ("Date", Utc::of(seconds).to_string())));
        facts.extend(self.digest.clone().map(|digest| ("Digest of the history", digest)));
        let proof = match &self.verify {
            Some(command) => format!("verified by `{command}`"),
            None => "none was written; --proof FILE writes one".to_owned(),
        };
        facts.push(("Proof", proof));
        facts
    }
}

/// A word as a shell takes it.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@,=%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A moment of the calendar, in UTC. As text: `2024-03-01 12:34:56 UTC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the parts of a date and a time are what they are called")]
pub struct Utc {
    pub year: u64,
    pub month: u64,
    pub day: u64,
    pub hour: u64,
    pub minute: u64,
    pub second: u64,
}

impl Utc {
    /// The moment so many seconds after the beginning of 1970.
    ///
    /// Years are counted from March, so that the leap day is the last one; 719,468 days lie between
    /// 0000-03-01 and 1970-01-01.
    pub fn of(unix_s: u64) -> Utc {
        let days = unix_s / 86_400 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let second = unix_s % 86_400;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        Utc { year, month, day, hour, minute, second }
    }
}

impl std::fmt::Display for Utc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Utc { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(shell_word("postgres://u@h:5/db"), "postgres://u@h:5/db");
        assert_eq!(shell_word("exec:python3 it's.py"), r"'exec:python3 it'\''s.py'");
        assert_eq!(shell_word("mysql://h/d?a=b&c"), "'mysql://h/d?a=b&c'");
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_827_696, "2000-02-29 12:34:56 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(Utc::of(seconds).to_string(), text);
        }
    }
}
