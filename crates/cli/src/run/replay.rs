//! The command that repeats a run.

use std::time::Duration;

use isolario::workload::{Kind, Workload};

use super::settings::Run;

/// The exact command, ready for a shell. Passwords are left out: commands end up in reports.
pub(super) fn command(run: &Run, isolation: &str, seed: u64) -> String {
    let mut words = vec!["isolario".to_owned(), "run".to_owned()];
    let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), quoted(&value)]);
    for url in &run.urls {
        flag("db", url.to_string());
    }
    flag("isolation", isolation.to_owned());
    shape(run, &mut flag);
    if !run.check_names.is_empty() {
        flag("check", run.check_names.join(","));
    }
    if let Some(rate) = run.drive.rate {
        flag("rate", rate.to_string());
    }
    flag("max-retries", run.drive.max_retries.to_string());
    flag("statement-timeout", span(run.drive.statement_timeout));
    if run.drive.stop_on_violation {
        words.push("--stop-on-violation".to_owned());
    }
    words.extend(["--seed".to_owned(), seed.to_string()]);
    words.join(" ")
}

fn shape(run: &Run, flag: &mut impl FnMut(&str, String)) {
    let Workload { kind, ops, keys, read_ratio, rmw_ratio, distribution, list_length, .. } =
        &run.workload;
    flag("workload", kind.to_string());
    // It may say what no flag can.
    if let Some(preset) = run.preset {
        flag("preset", preset.to_owned());
    }
    flag("sessions", run.sessions.to_string());
    if let Some(txns) = run.txns {
        flag("txns", txns.to_string());
    }
    if let Some(duration) = run.duration {
        flag("duration", span(duration));
    }
    if matches!(kind, Kind::General | Kind::Append) {
        flag("ops", ops.to_string());
    }
    flag("keys", keys.to_string());
    flag("read-ratio", read_ratio.to_string());
    if *kind == Kind::General {
        flag("rmw-ratio", rmw_ratio.to_string());
    }
    if *kind == Kind::Append {
        flag("list-length", list_length.to_string());
    }
    flag("distribution", distribution.to_string());
}

/// A duration as the flags take it.
fn span(duration: Duration) -> String {
    match duration.as_millis() {
        whole if whole.is_multiple_of(1000) => format!("{}s", whole / 1000),
        ms => format!("{ms}ms"),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@,=%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("postgres://u@h:5/db"), "postgres://u@h:5/db");
        assert_eq!(quoted("exec:python3 it's.py"), r"'exec:python3 it'\''s.py'");
        assert_eq!(quoted("mysql://h/d?a=b&c"), "'mysql://h/d?a=b&c'");
    }
}
