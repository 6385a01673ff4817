//! What went wrong with a run, and what mends it.

use isolario::db::{DbUrl, Obstacle, drivers};
use isolario::run::{MeetingError, RunError};

use crate::failure::Failure;

/// An error for a person.
pub(crate) fn failure(error: &RunError) -> Failure {
    let failure = Failure::new(error.to_string());
    match hint(error) {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

fn hint(error: &RunError) -> Option<String> {
    match error {
        RunError::Database { url: Some(url), error } => remedy(error.obstacle?, url),
        RunError::Meeting(MeetingError::Absent { error, .. }) => {
            let said =
                error.as_ref().map_or_else(String::new, |error| format!("; it last said: {error}"));
            Some(format!("start all hosts with the same --db, --seed and flags{said}"))
        }
        RunError::Server(_) => {
            let hint = "does the command of --server work by itself, and does the server run whose \
                        process --server-pid names?";
            Some(hint.to_owned())
        }
        RunError::Unsupported { .. } => Some("choose another one with --workload".to_owned()),
        RunError::NoAim { .. } => {
            let probes = isolario::probe::shipped();
            let names: Vec<&str> = probes.iter().map(|probe| probe.name.as_str()).collect();
            Some(format!("probes: {}", names.join(", ")))
        }
        RunError::DifferentDatabases { .. } => Some("run against one of them at a time".to_owned()),
        RunError::Directory { .. } | RunError::NotEmpty { .. } | RunError::Write { .. } => {
            Some("choose another place with --out DIR".to_owned())
        }
        _ => None,
    }
}

/// What to do about what stands in the way of a connection.
fn remedy(obstacle: Obstacle, url: &DbUrl) -> Option<String> {
    let form = drivers().find(|driver| driver.schemes.contains(&url.scheme()))?.form;
    match obstacle {
        Obstacle::Unreachable => {
            let scheme = url.scheme();
            let secret = match url.rest().contains("sslmode=") {
                true => ", encrypted as sslmode says",
                false => "",
            };
            Some(format!(
                "is there a server at that host and port, and does it speak {scheme}{secret}?"
            ))
        }
        Obstacle::Login => Some(format!(
            "user and password go into the URL: {form}; percent-encode what is special: p%40ss"
        )),
        Obstacle::NoDatabase => Some(format!("create it, or name another one: {form}")),
        Obstacle::Certificate => Some(
            "?sslrootcert=FILE names the certificates to trust; ?sslmode=require trusts any"
                .to_owned(),
        ),
        Obstacle::Full => {
            Some("every session has a connection: take fewer with --sessions N".to_owned())
        }
        _ => None,
    }
}
