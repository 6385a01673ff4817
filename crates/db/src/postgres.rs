//! PostgreSQL and what speaks its protocol: CockroachDB, YugabyteDB.

mod capture;
mod changefeed;
mod errors;
mod line;
mod plain;
mod session;
mod shadow;
mod sql;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use isolario_model::Level;
use isolario_predicate::Dialect;
use isolario_workload::Kind;

use crate::certificate::Capture;
use crate::database::{Connection, Database, Layout, LockView};
use crate::error::DbError;
use crate::hold::{Marking, table as mark};
use crate::registry::{Driver, Settings};
use crate::remote::{OURS, Site, Stage, not_ours};
use crate::sql::SqlConnection;
use crate::table::application::OwnTables;
use crate::table::{TABLE, sql as rows};
use crate::tls::Mode;
use crate::url::{Address, DbUrl};
use line::{Line, Server};
use plain::Plain;
use session::Evidence;
use shadow::Shadow;

const ISOLATIONS: &[&str] = &["read-committed", "repeatable-read", "serializable"];

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["postgres", "postgresql"],
    form: "postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?synchronous_commit=VALUE|dialect=plain]",
    about: "PostgreSQL; with standbys, by the URLs of all nodes",
    isolations: ISOLATIONS,
    port: Some(POSTGRES.port),
    open: |url, settings| open(url, settings, &POSTGRES),
};

const POSTGRES: Defaults = Defaults { isolations: ISOLATIONS, port: 5432, user: "postgres" };

/// CockroachDB's. Its name for what it takes other levels for is not one of them.
const OF_COCKROACH: &[&str] = &["read-committed", SERIALIZABLE];

pub(crate) const COCKROACH: Driver = Driver {
    schemes: &["cockroach", "cockroachdb"],
    form: "cockroach://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE",
    about: "CockroachDB; a cluster by the URLs of its nodes",
    isolations: OF_COCKROACH,
    port: Some(COCKROACHDB.port),
    open: |url, settings| open(url, settings, &COCKROACHDB),
};

const COCKROACHDB: Defaults = Defaults { isolations: OF_COCKROACH, port: 26257, user: "root" };

const SERIALIZABLE: &str = "serializable";

/// What the URLs of a product leave out.
struct Defaults {
    isolations: &'static [&'static str],
    port: u16,
    user: &'static str,
}

/// Our tables. Every register has its row from the beginning, with nothing in it: a transaction
/// that reads a row which is not there locks a page of the index, and hits others by chance.
const TABLES: [(&str, &str); 3] = [
    ("isolario_register", "(k BIGINT PRIMARY KEY, v BIGINT)"),
    ("isolario_list", "(k BIGINT PRIMARY KEY, e BIGINT[] NOT NULL)"),
    (TABLE, rows::COLUMNS),
];

/// Enough for several pages of the index, of which each has room for 407 keys of 8 bytes.
const UNUSED_KEYS: u32 = 1000;

/// How long a transaction waits for a lock before the server looks for a deadlock. The server's own
/// second dominates a run over few keys, in which most waits are deadlocks.
const DEADLOCK_TIMEOUT: &str = "SET deadlock_timeout = '10ms'";

/// The parameter of a URL that says what the commits of its sessions wait for.
const SYNCHRONOUS_COMMIT: &str = "synchronous_commit";
const COMMITS_WAIT_FOR: [&str; 5] = ["off", "local", "remote_write", "on", "remote_apply"];

/// The parameter of a URL that says which SQL the server understands.
const DIALECT: &str = "dialect";
const PLAIN: &str = "plain";

/// How long a standby may take to follow, and how often it is asked.
const CATCHING_UP: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone)]
struct Postgres {
    server: Server,
    /// What commits wait for; as the server has it, where the URL does not say.
    synchronous_commit: Option<&'static str>,
    /// Whether the server lets us look for deadlocks sooner. Only superusers may, and those to whom
    /// the right was granted.
    is_hurried: OnceLock<bool>,
    product: OnceLock<Product>,
    /// Whether sessions ask for what a version certificate is made of.
    evidence: bool,
    /// Whether they have a second transaction look at every snapshot.
    shadow: bool,
    /// The tables of an application, where rows are not registers.
    own_tables: Option<OwnTables>,
}

/// Which of the products that speak the protocol this is.
#[derive(Clone)]
struct Product {
    /// Its name in the table of claims.
    name: &'static str,
    /// Name and version for people.
    version: String,
}

impl Product {
    /// By what the server says of itself: `PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64…`,
    /// `CockroachDB CCL v23.1.11 (…)`, `PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64…`. Those that only
    /// speak the protocol have names of their own, so that PostgreSQL's claims are not taken for
    /// theirs.
    fn known(full: &str) -> Product {
        let word = |at: usize| full.split(' ').nth(at).unwrap_or_default();
        let (name, words, number) = match full.split_once("-YB-") {
            Some((_, rest)) => ("yugabyte", "YugabyteDB", rest.split(' ').next().unwrap_or(rest)),
            None if full.starts_with("CockroachDB") => {
                let number = full.split(' ').find_map(|word| word.strip_prefix('v'));
                ("cockroach", "CockroachDB", number.unwrap_or_default())
            }
            None => ("postgres", "PostgreSQL", word(1)),
        };
        Product { name, version: format!("{words} {number}") }
    }
}

fn open(
    url: &DbUrl,
    settings: &Settings,
    defaults: &Defaults,
) -> Result<Box<dyn Database>, DbError> {
    let is_plain = is_plain(&url.address()?)?;
    let isolations = if is_plain { plain::ISOLATIONS } else { defaults.isolations };
    let own = &[SYNCHRONOUS_COMMIT, DIALECT];
    let site = Site::of(url, settings, isolations, Mode::Prefer, own)?;
    let synchronous_commit = synchronous_commit(&site.address)?;
    let server = Server::new(site, defaults);
    if !is_plain {
        return Ok(Box::new(Postgres {
            server,
            synchronous_commit,
            is_hurried: OnceLock::new(),
            product: OnceLock::new(),
            evidence: settings.evidence,
            shadow: settings.shadow,
            own_tables: settings.tables.map(OwnTables::postgres),
        }));
    }
    match synchronous_commit {
        None => Ok(Box::new(Plain::new(server))),
        Some(_) => Err(DbError::fatal(format!(
            "{SYNCHRONOUS_COMMIT} is a setting of PostgreSQL, and {DIALECT}={PLAIN} is for servers \
             that are not: leave one of them out"
        ))),
    }
}

fn parameter<'a>(address: &'a Address, wanted: &str) -> Option<&'a str> {
    let mut parameters = address.parameters.iter();
    parameters.find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
}

/// Whether to keep to the SQL that every server understands.
fn is_plain(address: &Address) -> Result<bool, DbError> {
    match parameter(address, DIALECT) {
        None => Ok(false),
        Some(PLAIN) => Ok(true),
        Some(other) => Err(DbError::fatal(format!(
            "{DIALECT} {other:?}: expected {PLAIN}; for PostgreSQL itself, leave it out"
        ))),
    }
}

fn synchronous_commit(address: &Address) -> Result<Option<&'static str>, DbError> {
    let Some(wanted) = parameter(address, SYNCHRONOUS_COMMIT) else { return Ok(None) };
    let found = COMMITS_WAIT_FOR.into_iter().find(|name| *name == wanted);
    found.map(Some).ok_or_else(|| {
        let names = COMMITS_WAIT_FOR.join(", ");
        DbError::fatal(format!("{SYNCHRONOUS_COMMIT} {wanted:?}: expected one of {names}"))
    })
}

impl Postgres {
    /// What sessions ask for beside the results.
    fn evidence(&self) -> Evidence {
        match (self.evidence, self.server.site.isolation) {
            (false, _) => Evidence::None,
            (true, isolation) if self.is_cockroach() => {
                Evidence::Commits { are_told: isolation == SERIALIZABLE }
            }
            (true, "read-committed") => Evidence::Statements,
            (true, _) => Evidence::Transactions,
        }
    }

    fn is_cockroach(&self) -> bool {
        self.name() == "cockroach"
    }

    /// Looks for deadlocks sooner, where that is permitted. Servers that only speak the protocol may
    /// not know the setting: they keep their own.
    fn hurry(&self, line: &Line) -> Result<(), DbError> {
        if self.is_cockroach() {
            return Ok(());
        }
        let set = || line.batch(Stage::Connect, DEADLOCK_TIMEOUT);
        match self.is_hurried.get() {
            Some(true) => set(),
            Some(false) => Ok(()),
            None => {
                let _ = self.is_hurried.set(set().is_ok());
                Ok(())
            }
        }
    }

    /// A connection for the mark of the run, at the server's own isolation level.
    fn statements(&self) -> Result<sql::SqlSession, DbError> {
        sql::SqlSession::new(self.server.line()?)
    }

    /// The tables of this run: names and columns.
    fn tables(&self) -> Vec<(String, String)> {
        OwnTables::added_to(&TABLES, self.own_tables)
    }

    /// The statements that remove the tables which an earlier run left.
    fn removals(&self, line: &Line) -> Result<Vec<String>, DbError> {
        let mut statements = Vec::new();
        for (name, _) in self.tables() {
            let find = "SELECT obj_description(to_regclass($1), 'pg_class') \
                 WHERE to_regclass($1) IS NOT NULL";
            let found = line.ask(Stage::Connect, line.client.query_opt(find, &[&name]))?;
            match found.map(|row| row.get::<_, Option<String>>(0)) {
                Some(Some(comment)) if comment == OURS => {
                    statements.push(format!("DROP TABLE {name}"));
                }
                Some(_) => {
                    return Err(not_ours(&format!("a table {name}"), &self.server.site.place));
                }
                None => {}
            }
        }
        Ok(statements)
    }

    /// Sets the isolation level and what goes with it; tells whether the server is a standby.
    fn set_up(&self, line: &Line) -> Result<bool, DbError> {
        let is_standby = line.is_standby();
        // A standby refuses serializable transactions.
        let isolation = match self.server.site.isolation {
            SERIALIZABLE if is_standby => "repeatable-read",
            isolation => isolation,
        };
        let mut settings = format!(
            "SET default_transaction_isolation = '{}'; SET statement_timeout = {}",
            isolation.replace('-', " "),
            self.server.site.patience.as_millis(),
        );
        if let Some(value) = self.synchronous_commit {
            settings += &format!("; SET synchronous_commit = {value}");
        }
        line.batch(Stage::Connect, &settings)?;
        self.hurry(line)?;
        Ok(is_standby)
    }
}

impl Database for Postgres {
    /// Only the server knows what it is.
    fn name(&self) -> &str {
        if self.product.get().is_none() {
            // A server that does not answer will be found out about later.
            let _ = self.version();
        }
        self.product.get().map_or("postgres", |product| product.name)
    }

    fn version(&self) -> Result<String, DbError> {
        let line = self.server.line()?;
        let product = Product::known(&line.query::<String>("SELECT version()")?);
        Ok(self.product.get_or_init(|| product).version.clone())
    }

    fn durability(&self) -> Option<String> {
        let setting = |name: &str| format!("'{name}=' || current_setting('{name}')");
        let question =
            format!("SELECT {} || ', ' || {}", setting("fsync"), setting("synchronous_commit"));
        self.server.line().ok()?.query(&question).ok()
    }

    fn isolation(&self) -> &str {
        self.server.site.isolation
    }

    fn supports(&self, _: Kind) -> bool {
        true
    }

    fn takes_new_keys(&self) -> bool {
        true
    }

    /// A serializable transaction locks the pages of the index that it reads. On one page with all other
    /// keys, every insert would conflict with every read.
    fn unused_keys(&self) -> u32 {
        if self.name() == "postgres" { UNUSED_KEYS } else { 0 }
    }

    fn has_tables(&self) -> bool {
        true
    }

    fn marking(&self) -> Marking {
        Marking::Separate
    }

    fn read_mark(&self) -> Result<Option<String>, DbError> {
        mark::read(&mut self.statements()?)
    }

    fn replace_mark(&self, old: Option<&str>, new: Option<&str>) -> Result<bool, DbError> {
        mark::replace(&mut self.statements()?, old, new)
    }

    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        let line = self.server.line()?;
        let mut statements = self.removals(&line)?;
        for (name, columns) in self.tables() {
            statements.push(format!("CREATE TABLE {name} {columns}"));
            statements.push(format!("COMMENT ON TABLE {name} IS '{OURS}'"));
        }
        let first = self.own_tables.map_or(0, OwnTables::keys);
        let last = i64::from(layout.keys) - 1;
        statements.push(format!(
            "INSERT INTO isolario_register SELECT k, NULL FROM generate_series({first}, {last}) k"
        ));
        statements.extend(rows::INDEXES.map(str::to_owned));
        let insert_rows = || {
            let mut rows = self.own_tables.into_iter().flat_map(OwnTables::rows);
            rows.try_for_each(|statement| line.batch(Stage::Connect, &statement))
        };
        if self.is_cockroach() {
            // It advises against schema changes inside of transactions ("Online Schema Changes").
            statements.iter().try_for_each(|statement| line.batch(Stage::Connect, statement))?;
            return insert_rows();
        }
        line.batch(Stage::Connect, &format!("BEGIN; {}; COMMIT", statements.join("; ")))?;
        insert_rows()?;
        capture::clear(&line);
        self.hurry(&line)
    }

    fn clear(&self) -> Result<(), DbError> {
        let line = self.server.line()?;
        line.batch(Stage::Connect, &self.removals(&line)?.join("; "))
    }

    fn is_read_only(&self) -> Result<bool, DbError> {
        Ok(self.server.line()?.is_standby())
    }

    fn log_position(&self) -> Result<Option<String>, DbError> {
        match self.name() {
            "postgres" => {
                let line = self.server.line()?;
                line.require(10, "to follow a primary to its standbys")?;
                line.query("SELECT pg_current_wal_lsn()::text").map(Some)
            }
            _ => Ok(None),
        }
    }

    /// CockroachDB's transactions take effect at their commit timestamps. With rows, its log tells more.
    fn promised(&self, kind: Kind) -> Option<Level> {
        let tells =
            self.evidence && self.server.site.isolation == SERIALIZABLE && self.is_cockroach();
        let is_told = matches!(kind, Kind::Mini | Kind::General | Kind::Append);
        (tells && is_told).then_some(Level::Serializable)
    }

    fn capture(&self) -> Result<Box<dyn Capture>, DbError> {
        match self.name() {
            "postgres" => capture::start(self),
            "cockroach" => changefeed::start(self),
            _ => Err(DbError::fatal(
                "the order of versions can only be read from the logs of PostgreSQL and CockroachDB",
            )),
        }
    }

    /// At read committed, every statement has a snapshot of its own.
    fn has_shadows(&self) -> bool {
        self.name() == "postgres" && self.server.site.isolation != "read-committed"
    }

    fn follow(&self, position: &str) -> Result<(), DbError> {
        let line = self.server.line()?;
        let deadline = Instant::now() + self.server.site.patience.max(CATCHING_UP);
        let question =
            format!("SELECT coalesce(pg_last_wal_replay_lsn() >= '{position}'::pg_lsn, false)");
        while !line.query::<bool>(&question)? {
            if Instant::now() > deadline {
                return Err(DbError::fatal(format!(
                    "{} does not follow the primary: our tables have not arrived there. Does it \
                     stream from the server that was named before it?",
                    self.server.site.place
                )));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn remarks(&self) -> Vec<String> {
        match self.is_hurried.get() {
            Some(true) => vec![
                "deadlock_timeout is 10 ms for this run, so that deadlocks cost little".to_owned(),
            ],
            Some(false) => vec![
                "deadlock_timeout stays as it is: only a superuser may lower it, and runs over few \
                 keys wait that long for every deadlock"
                    .to_owned(),
            ],
            None => Vec::new(),
        }
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        let line = self.server.line()?;
        let is_standby = self.set_up(&line)?;
        if !self.is_cockroach() {
            // A small table would be read as a whole, and under serializable be locked as a whole.
            line.batch(Stage::Connect, "SET enable_seqscan = off")?;
        }
        let shadow = match self.shadow && self.has_shadows() {
            true => Some(Shadow::new(self.server.line()?)?),
            false => None,
        };
        let session = session::Session::new(line, is_standby, self.evidence(), shadow)?;
        Ok(Box::new(session.with_tables(self.own_tables)))
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(Dialect::Postgres)
    }

    fn connect_sql(&self) -> Result<Box<dyn SqlConnection>, DbError> {
        let line = self.server.line()?;
        self.set_up(&line)?;
        Ok(Box::new(sql::SqlSession::new(line)?))
    }

    /// Servers that only speak the protocol may not know the question.
    fn lock_view(&self) -> Result<Option<Box<dyn LockView>>, DbError> {
        let mut line = self.server.line()?;
        Ok(match line.is_waiting(0) {
            Ok(_) => Some(Box::new(line)),
            Err(_) => None,
        })
    }
}

impl LockView for Line {
    fn is_waiting(&mut self, connection: u64) -> Result<bool, DbError> {
        self.query(&format!("SELECT cardinality(pg_blocking_pids({connection})) > 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_what_commits_wait_for() {
        let setting = |parameters: &str| {
            let url = DbUrl::parse(&format!("postgres://host/db{parameters}")).unwrap();
            synchronous_commit(&url.address().unwrap())
        };
        assert_eq!(setting(""), Ok(None));
        assert_eq!(setting("?synchronous_commit=remote_apply"), Ok(Some("remote_apply")));
        let message = setting("?synchronous_commit=maybe").unwrap_err().message;
        assert!(message.ends_with("expected one of off, local, remote_write, on, remote_apply"));
    }

    #[test]
    fn a_url_says_which_sql_the_server_understands() {
        let opened = |parameters: &str| {
            let url = DbUrl::parse(&format!("postgres://host/db?{parameters}")).unwrap();
            let opened = open(&url, &Settings::default(), &POSTGRES);
            opened.map(|_| ()).map_err(|error| error.message)
        };
        assert_eq!(opened("dialect=plain"), Ok(()));
        let message = opened("dialect=fancy").unwrap_err();
        let expected = "dialect \"fancy\": expected plain; for PostgreSQL itself, leave it out";
        assert_eq!(message, expected);
        let message = opened("dialect=plain&synchronous_commit=off").unwrap_err();
        assert!(message.ends_with("leave one of them out"), "{message}");
    }

    #[test]
    fn products_are_known_by_what_they_say() {
        for (full, name, version) in [
            ("PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64", "postgres", "PostgreSQL 15.14"),
            ("PostgreSQL 17beta1 on aarch64", "postgres", "PostgreSQL 17beta1"),
            ("CockroachDB CCL v23.1.11 (x86_64-linux)", "cockroach", "CockroachDB 23.1.11"),
            ("PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64", "yugabyte", "YugabyteDB 2.18.0.0-b0"),
        ] {
            let product = Product::known(full);
            assert_eq!((product.name, product.version.as_str()), (name, version));
        }
    }
}
