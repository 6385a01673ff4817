//! The command that repeats a run.

use std::time::Duration;

use isolario_db::DbUrl;
use isolario_report::shell_word;
use isolario_workload::{Kind, Workload};

use super::faults::{Faults, FaultyServer};
use super::settings::{Ask, Settings};

/// An `isolario run` in the making, ready for a shell.
pub(super) struct CommandLine(String);

impl CommandLine {
    /// The databases first. Passwords are left out: commands end up in reports.
    pub(super) fn new(urls: &[DbUrl]) -> CommandLine {
        let mut line = CommandLine("isolario run".to_owned());
        urls.iter().for_each(|url| line.flag("db", url));
        line
    }

    /// A flag with a value.
    pub(super) fn flag(&mut self, name: &str, value: impl ToString) {
        self.any(name, Some(value));
    }

    /// A flag with a value, if there is one.
    pub(super) fn any(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(word) = value.map(|value| shell_word(&value.to_string())) {
            self.0 += &format!(" --{name} {word}");
        }
    }

    /// A flag without a value.
    pub(super) fn switch(&mut self, name: &str, is_on: bool) {
        if is_on {
            self.0 += &format!(" --{name}");
        }
    }

    /// The levels that the history must satisfy, if they were named.
    pub(super) fn ask(&mut self, ask: &Ask) {
        if let Ask::Levels { levels, named } = ask {
            let all = (levels != named).then_some("all");
            let named = named.iter().map(|level| level.name());
            self.flag("check", all.into_iter().chain(named).collect::<Vec<_>>().join(","));
        }
    }

    /// The whole line, which ends with the seed.
    pub(super) fn seeded(mut self, seed: u64) -> String {
        self.flag("seed", seed);
        self.0
    }
}

/// The exact command that repeats a run of these settings.
pub(super) fn command(settings: &Settings, isolation: &str) -> String {
    let mut line = CommandLine::new(&settings.urls);
    line.flag("isolation", isolation);
    shape(settings, &mut line);
    line.ask(&settings.ask);
    line.any("rate", settings.rate);
    line.any("think", settings.think.filter(|think| !think.is_zero()).map(span));
    line.any("value-size", Some(settings.value_size).filter(|size| *size > 0));
    if let Some(Faults { kinds, server, disk }) = &settings.faults {
        let names: Vec<_> = kinds.iter().map(|fault| fault.name()).collect();
        line.flag("fault", names.join(","));
        match server {
            Some(FaultyServer::Started(command)) => line.flag("server", command),
            Some(FaultyServer::Found(file)) => line.flag("server-pid", file.display()),
            None => {}
        }
        line.any("disk", disk.as_ref().map(|directory| directory.display()));
    }
    line.flag("max-retries", settings.max_retries);
    line.flag("statement-timeout", span(settings.statement_timeout));
    line.switch("sql-tables", settings.sql_tables);
    line.switch("whitebox", settings.whitebox);
    line.switch("shadow", settings.shadow);
    line.switch("stop-on-violation", settings.stop_on_violation);
    line.any("host", settings.host.map(|host| format!("{}/{}", host.number(), host.of())));
    line.seeded(settings.seed)
}

fn shape(settings: &Settings, line: &mut CommandLine) {
    let Workload {
        kind,
        ops,
        keys,
        absent_ratio,
        slow_ratio,
        read_ratio,
        rmw_ratio,
        distribution,
        list_length,
        mix,
        aim,
        ..
    } = &settings.workload;
    line.flag("workload", settings.workload.name());
    line.any("aim", *aim);
    // It may say what no flag can.
    line.any("preset", settings.preset);
    line.flag("sessions", settings.sessions);
    line.any("txns", settings.txns);
    line.any("duration", settings.duration.map(span));
    // An application goes by its scale.
    if settings.workload.application.is_some() {
        return line.flag("scale", settings.workload.scale);
    }
    if matches!(kind, Kind::General | Kind::Append | Kind::Predicate) {
        line.flag("ops", ops);
    }
    if matches!(kind, Kind::Mini | Kind::General) {
        line.flag("absent-ratio", absent_ratio);
    }
    // Whoever aims goes by the number of sessions.
    if aim.is_some() {
        return;
    }
    if matches!(kind, Kind::Mini | Kind::General) {
        line.flag("slow-ratio", slow_ratio);
    }
    line.flag("keys", keys);
    match kind {
        Kind::Predicate => line.flag("mix", mix),
        _ => line.flag("read-ratio", read_ratio),
    }
    if *kind == Kind::General {
        line.flag("rmw-ratio", rmw_ratio);
    }
    if *kind == Kind::Append {
        line.flag("list-length", list_length);
    }
    line.flag("distribution", distribution);
}

/// A duration as people write it, and as the flags take it: `10m`, `90s`, `1500ms`.
pub(super) fn span(duration: Duration) -> String {
    const UNITS: [(u128, &str); 4] =
        [(3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"), (1000, "ms")];
    let us = duration.as_micros();
    match UNITS.iter().find(|(unit, _)| us > 0 && us.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", us / unit),
        None => format!("{us}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_people_write_them() {
        for (ms, expected) in [
            (600_000, "10m"),
            (90_000, "90s"),
            (7_200_000, "2h"),
            (5_000, "5s"),
            (1_500, "1500ms"),
            (0, "0us"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), expected);
        }
        assert_eq!(span(Duration::from_micros(1_500)), "1500us");
    }
}
