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
            let said = error
                .as_ref()
                .map_or_else(String::new, |error| format!("; the database's last error: {error}"));
            Some(format!("start all hosts with the same --db, --seed and flags{said}"))
        }
        RunError::Server(_) => {
            let hint = "--server takes the command that starts the server of --db in the foreground; \
                        --server-pid takes the file with the process id of a server that already runs";
            Some(hint.to_owned())
        }
        RunError::Embedded { .. } => Some(
            "to kill an embedded store together with its process, use --hunt D --crash".to_owned(),
        ),
        RunError::Disk { .. } => {
            let hint = "this needs an existing directory, /dev/fuse, and root or fusermount3 (package fuse3)";
            Some(hint.to_owned())
        }
        RunError::NoDisk => Some("add --server COMMAND and --disk DIR".to_owned()),
        RunError::NoTables { .. } => {
            let hint = "omit --sql-tables: it needs PostgreSQL, MariaDB, MySQL or SQLite, and the workload \
                        tpcc, rubis or twitter";
            Some(hint.to_owned())
        }
        RunError::NoValueSizes { .. } => {
            Some("omit --value-size: only embedded stores of bytes honour it".to_owned())
        }
        RunError::Unsupported { .. } => Some("choose another workload with --workload".to_owned()),
        RunError::NoAim { .. } => {
            let probes = isolario::probe::shipped();
            let names: Vec<&str> = probes.iter().map(|probe| probe.name.as_str()).collect();
            Some(format!("probes: {}", names.join(", ")))
        }
        RunError::DifferentDatabases { .. } => {
            Some("run against one database at a time".to_owned())
        }
        RunError::Directory { .. } | RunError::NotEmpty { .. } | RunError::Write { .. } => {
            Some("choose another directory with --out DIR".to_owned())
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
                true => ", encrypted as sslmode requires",
                false => "",
            };
            Some(format!(
                "is there a server at that host and port, and does it speak {scheme}{secret}?"
            ))
        }
        Obstacle::Login => Some(format!(
            "give the user and the password in the URL: {form}; percent-encode special characters, as in p%40ss"
        )),
        Obstacle::NoDatabase => Some(format!("create the database, or name another one in the URL: {form}")),
        Obstacle::Certificate => Some(
            "add ?sslrootcert=FILE to the URL to name the certificates to trust, or ?sslmode=require to trust any"
                .to_owned(),
        ),
        Obstacle::Dialect if !url.rest().contains(PLAIN) => {
            let join = if url.rest().contains('?') { '&' } else { '?' };
            Some(format!(
                "is the server PostgreSQL? For others that speak its protocol, add {join}{PLAIN} to the URL"
            ))
        }
        Obstacle::NoSql if url.rest().contains(PLAIN) => Some(format!(
            "if the server is PostgreSQL, omit {PLAIN}; if not, choose a --workload that plain SQL is enough \
             for: mini, general, append, lwt or an application"
        )),
        Obstacle::NoSql => Some(
            "the sql workload needs PostgreSQL, MariaDB, MySQL or SQLite: choose another one with --workload"
                .to_owned(),
        ),
        Obstacle::InUse => Some("wait until that run has ended, or use another database".to_owned()),
        Obstacle::Full => {
            Some("use fewer sessions, each of which has a connection: --sessions N".to_owned())
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
        assert!(plain.starts_with("if the server is PostgreSQL, omit dialect=plain"), "{plain}");
        let other = hint_of("redis://h", Obstacle::NoSql);
        assert!(other.contains("choose another one with --workload"), "{other}");
    }
}
