//! The command that repeats a run.

use std::time::Duration;

use isolario_report::shell_word;
use isolario_workload::{Kind, Workload};

use super::faults::{Faults, FaultyServer};
use super::settings::{Ask, Settings};

/// The exact command, ready for a shell. Passwords are left out: commands end up in reports.
pub(super) fn command(settings: &Settings, isolation: &str) -> String {
    let mut words = vec!["isolario".to_owned(), "run".to_owned()];
    let mut flag =
        |name: &str, value: String| words.extend([format!("--{name}"), shell_word(&value)]);
    for url in &settings.urls {
        flag("db", url.to_string());
    }
    flag("isolation", isolation.to_owned());
    shape(settings, &mut flag);
    if let Ask::Levels { levels, named } = &settings.ask {
        let all = (levels != named).then_some("all");
        let names: Vec<_> = all.into_iter().chain(named.iter().map(|level| level.name())).collect();
        flag("check", names.join(","));
    }
    if let Some(rate) = settings.rate {
        flag("rate", rate.to_string());
    }
    if let Some(think) = settings.think.filter(|think| !think.is_zero()) {
        flag("think", span(think));
    }
    if settings.value_size > 0 {
        flag("value-size", settings.value_size.to_string());
    }
    if let Some(Faults { kinds, server, disk }) = &settings.faults {
        let names: Vec<_> = kinds.iter().map(|fault| fault.name()).collect();
        flag("fault", names.join(","));
        match server {
            Some(FaultyServer::Started(command)) => flag("server", command.clone()),
            Some(FaultyServer::Found(file)) => flag("server-pid", file.display().to_string()),
            None => {}
        }
        if let Some(directory) = disk {
            flag("disk", directory.display().to_string());
        }
    }
    flag("max-retries", settings.max_retries.to_string());
    flag("statement-timeout", span(settings.statement_timeout));
    if settings.sql_tables {
        words.push("--sql-tables".to_owned());
    }
    if settings.whitebox {
        words.push("--whitebox".to_owned());
    }
    if settings.shadow {
        words.push("--shadow".to_owned());
    }
    if settings.stop_on_violation {
        words.push("--stop-on-violation".to_owned());
    }
    if let Some(host) = settings.host {
        words.extend(["--host".to_owned(), format!("{}/{}", host.number(), host.of())]);
    }
    words.extend(["--seed".to_owned(), settings.seed.to_string()]);
    words.join(" ")
}

fn shape(settings: &Settings, flag: &mut impl FnMut(&str, String)) {
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
    flag("workload", settings.workload.name().to_owned());
    if let Some(aim) = aim {
        flag("aim", aim.to_string());
    }
    // It may say what no flag can.
    if let Some(preset) = settings.preset {
        flag("preset", preset.to_owned());
    }
    flag("sessions", settings.sessions.to_string());
    if let Some(txns) = settings.txns {
        flag("txns", txns.to_string());
    }
    if let Some(duration) = settings.duration {
        flag("duration", span(duration));
    }
    // An application goes by its scale.
    if settings.workload.application.is_some() {
        return flag("scale", settings.workload.scale.to_string());
    }
    if matches!(kind, Kind::General | Kind::Append | Kind::Predicate) {
        flag("ops", ops.to_string());
    }
    if matches!(kind, Kind::Mini | Kind::General) {
        flag("absent-ratio", absent_ratio.to_string());
    }
    // Whoever aims goes by the number of sessions.
    if aim.is_some() {
        return;
    }
    if matches!(kind, Kind::Mini | Kind::General) {
        flag("slow-ratio", slow_ratio.to_string());
    }
    flag("keys", keys.to_string());
    match kind {
        Kind::Predicate => flag("mix", mix.to_string()),
        _ => flag("read-ratio", read_ratio.to_string()),
    }
    if *kind == Kind::General {
        flag("rmw-ratio", rmw_ratio.to_string());
    }
    if *kind == Kind::Append {
        flag("list-length", list_length.to_string());
    }
    flag("distribution", distribution.to_string());
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
