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
            let hint = "--server is the command that starts the server of --db and stays in the foreground; \
                        --server-pid names the process of one that runs already";
            Some(hint.to_owned())
        }
        RunError::Embedded { .. } => Some(
            "an embedded store is killed together with its process: --hunt D --crash".to_owned(),
        ),
        RunError::Disk { .. } => {
            let hint = "it takes a directory that is there, /dev/fuse, and root or fusermount3 (Debian's fuse3)";
            Some(hint.to_owned())
        }
        RunError::NoDisk => Some("use --server and --disk".to_owned()),
        RunError::NoTables { .. } => {
            let hint = "leave --sql-tables out; PostgreSQL, MariaDB, MySQL and SQLite keep them for tpcc, rubis \
                        and twitter";
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

/// What URLs have for servers that only speak PostgreSQL's protocol.
const PLAIN: &str = "dialect=plain";

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
        Obstacle::Dialect if !url.rest().contains(PLAIN) => {
            let join = if url.rest().contains('?') { '&' } else { '?' };
            Some(format!(
                "is the server PostgreSQL? For others that speak its protocol, add {join}{PLAIN} to the URL"
            ))
        }
        Obstacle::NoSql if url.rest().contains(PLAIN) => Some(format!(
            "leave {PLAIN} out, if the server is PostgreSQL; if it is not, mini, general, append, lwt and the \
             applications need no more than plain SQL: choose with --workload"
        )),
        Obstacle::NoSql => Some(
            "the sql workload is for PostgreSQL, MariaDB, MySQL and SQLite: choose another one with --workload"
                .to_owned(),
        ),
        Obstacle::InUse => Some("wait until it is over, or name another database".to_owned()),
        Obstacle::Full => {
            Some("every session has a connection: take fewer with --sessions N".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use isolario::db::DbError;

    use super::*;

    fn hint_of(url: &str, obstacle: Obstacle) -> String {
        let error = DbError::fatal("no").with_obstacle(obstacle);
        let url = Some(DbUrl::parse(url).unwrap());
        hint(&RunError::Database { url, error }).unwrap_or_default()
    }

    #[test]
    fn a_server_that_does_not_understand_is_offered_plain_sql() {
        for (url, part) in [
            ("postgres://h/d", "add ?dialect=plain to the URL"),
            ("postgres://h/d?sslmode=disable", "add &dialect=plain to the URL"),
        ] {
            let hint = hint_of(url, Obstacle::Dialect);
            assert!(hint.ends_with(part), "{hint}");
        }
        assert_eq!(hint_of("postgres://h/d?dialect=plain", Obstacle::Dialect), "");
    }

    #[test]
    fn a_database_without_sql_is_told_what_else_there_is() {
        let plain = hint_of("postgres://h/d?dialect=plain", Obstacle::NoSql);
        assert!(
            plain.starts_with("leave dialect=plain out, if the server is PostgreSQL"),
            "{plain}"
        );
        let other = hint_of("redis://h", Obstacle::NoSql);
        assert!(other.contains("choose another one with --workload"), "{other}");
    }
}
