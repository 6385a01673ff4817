//! PostgreSQL and what speaks its protocol: CockroachDB, YugabyteDB.

mod capture;
pub(crate) mod changefeed;
mod claims;
mod client;
mod errors;
mod feed;
mod pgoutput;
mod plain;
mod server;
mod shadow;

use std::ops::Range;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use isolario_model::Level;
use isolario_predicate::Dialect;
use isolario_workload::{Kind, Schema};

use crate::certificate::Capture;
use crate::claims::ClaimRow;
use crate::database::{
    Connection, Database, Layout, LockView, NodeLogs, Replication, SqlConnection, SqlDatabase,
    Traits,
};
use crate::error::DbError;
use crate::hold::Marking;
use crate::registry::{Driver, Service, Settings};
use crate::remote::{OURS, Stage};
use crate::site::{Site, not_ours};
use crate::sql::{COLUMNS, Reported, Session, SqlProduct, Statements, Style, make_tables};
use crate::table::TABLE;
use crate::tls::Mode;
use crate::url::{Address, DbUrl};
use client::{Evidence, PgClient};
use plain::Plain;
use server::{Line, Server};
use shadow::Shadow;

const READ_COMMITTED: &str = "read-committed";
const REPEATABLE_READ: &str = "repeatable-read";
const SERIALIZABLE: &str = "serializable";

pub(crate) const DRIVER: Driver = driver(
    &["postgres", "postgresql"],
    "postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?synchronous_commit=VALUE|dialect=plain]",
    "PostgreSQL; with standbys, by the URLs of all nodes",
    &POSTGRES,
    claims::POSTGRES,
    |url, settings| open(url, settings, &POSTGRES),
);

/// A serializable transaction locks the pages of the index that it reads. On one page with all other
/// keys, every insert would conflict with every read. There are enough unused keys for several pages, of which each
/// has room for 407 keys of 8 bytes.
const POSTGRES: Defaults = Defaults {
    isolations: &[READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE],
    port: 5432,
    user: "postgres",
    unused_keys: 1000,
};

pub(crate) const COCKROACH: Driver = driver(
    &["cockroach", "cockroachdb"],
    "cockroach://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE",
    "CockroachDB; a cluster by the URLs of its nodes",
    &COCKROACHDB,
    claims::COCKROACH,
    |url, settings| open(url, settings, &COCKROACHDB),
);

/// CockroachDB's name for what it takes other levels for is not one of them.
const COCKROACHDB: Defaults = Defaults {
    isolations: &[READ_COMMITTED, SERIALIZABLE],
    port: 26257,
    user: "root",
    unused_keys: 0,
};

const fn driver(
    schemes: &'static [&'static str],
    form: &'static str,
    about: &'static str,
    defaults: &Defaults,
    claims: &'static [ClaimRow],
    open: crate::registry::OpenFn,
) -> Driver {
    let service = Service::Server(defaults.port);
    Driver { schemes, form, about, isolations: defaults.isolations, claims, service, open }
}

/// What the URLs of a product leave out.
struct Defaults {
    isolations: &'static [&'static str],
    port: u16,
    user: &'static str,
    /// See [`Traits::unused_keys`].
    unused_keys: u32,
}

/// Every register has its row from the beginning, with nothing in it: a transaction that reads a row which is not
/// there locks a page of the index, and hits others by chance.
pub(crate) const STYLE: Style = Style {
    parameter: |number| format!("${number}"),
    positional: false,
    returning: true,
    integer: "BIGINT",
    reported: Reported::Nothing,
    insert: "INSERT INTO isolario_register VALUES ({1}, {2}) \
         ON CONFLICT (k) DO UPDATE SET v = excluded.v",
    delete: "UPDATE isolario_register SET v = NULL WHERE k = {1}",
    compares: true,
    read_list: "SELECT e FROM isolario_list WHERE k = {1}",
    append: &["INSERT INTO isolario_list AS l VALUES ({1}, ARRAY[{2}::BIGINT]) \
         ON CONFLICT (k) DO UPDATE SET e = l.e || {2}::BIGINT"],
};

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
    unused_keys: u32,
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
    /// The application whose rows are not registers.
    schema: Option<Schema>,
}

/// Which of the products that speak the protocol this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProductKind {
    Postgres,
    Cockroach,
    Yugabyte,
}

/// What the server says that it is.
#[derive(Clone)]
struct Product {
    kind: ProductKind,
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
        let (kind, words, number) = match full.split_once("-YB-") {
            Some((_, rest)) => {
                (ProductKind::Yugabyte, "YugabyteDB", rest.split(' ').next().unwrap_or(rest))
            }
            None if full.starts_with("CockroachDB") => {
                let number = full.split(' ').find_map(|word| word.strip_prefix('v'));
                (ProductKind::Cockroach, "CockroachDB", number.unwrap_or_default())
            }
            None => (ProductKind::Postgres, "PostgreSQL", word(1)),
        };
        Product { kind, version: format!("{words} {number}") }
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
            unused_keys: defaults.unused_keys,
            synchronous_commit,
            is_hurried: OnceLock::new(),
            product: OnceLock::new(),
            evidence: settings.evidence,
            shadow: settings.shadow,
            schema: settings.tables,
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
    fn isolation(&self) -> &'static str {
        self.server.site.isolation
    }

    /// What it is, as far as it has said so.
    fn known(&self) -> ProductKind {
        self.product.get().map_or(ProductKind::Postgres, |product| product.kind)
    }

    /// Only the server knows what it is.
    fn kind(&self) -> ProductKind {
        if self.product.get().is_none() {
            // A server that does not answer will be found out about later.
            let _ = self.version();
        }
        self.known()
    }

    /// What sessions ask for besides the results.
    fn evidence(&self) -> Evidence {
        let isolation = self.isolation();
        match (self.evidence, self.kind()) {
            (false, _) => Evidence::None,
            (true, ProductKind::Cockroach) => {
                Evidence::Commits { are_told: isolation == SERIALIZABLE }
            }
            _ if isolation == READ_COMMITTED => Evidence::Statements,
            _ => Evidence::Transactions,
        }
    }

    /// Looks for deadlocks sooner, where that is permitted. Servers that only speak the protocol may
    /// not know the setting: they keep their own.
    fn hurry(&self, line: &Line) -> Result<(), DbError> {
        if self.kind() == ProductKind::Cockroach {
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

    /// A connection at the isolation level that was asked for.
    fn at_level(&self) -> Result<PgClient, DbError> {
        let line = self.server.line()?;
        let is_standby = line.is_standby();
        // A standby refuses serializable transactions.
        let isolation = match self.isolation() {
            SERIALIZABLE if is_standby => REPEATABLE_READ,
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
        self.hurry(&line)?;
        Ok(PgClient::new(line).on_standby(is_standby))
    }
}

impl SqlProduct for Postgres {
    type Client = PgClient;

    const TABLES: &'static [(&'static str, &'static str)] = &[
        ("isolario_register", "(k BIGINT PRIMARY KEY, v BIGINT)"),
        ("isolario_list", "(k BIGINT PRIMARY KEY, e BIGINT[] NOT NULL)"),
        (TABLE, COLUMNS),
    ];

    /// A table without a comment is not ours.
    const OWNER: &'static str = "SELECT coalesce(obj_description(to_regclass('{}'), 'pg_class'), '') \
         WHERE to_regclass('{}') IS NOT NULL";

    fn client(&self) -> Result<PgClient, DbError> {
        Ok(PgClient::new(self.server.line()?))
    }

    fn schema(&self) -> Option<Schema> {
        self.schema
    }

    fn create(&self, name: &str, columns: &str) -> Vec<String> {
        let create = format!("CREATE TABLE {name} {columns}");
        vec![create, format!("COMMENT ON TABLE {name} IS '{OURS}'")]
    }

    fn not_ours(&self, table: &str) -> DbError {
        not_ours(&format!("a table {table}"), &self.server.site.place)
    }

    /// CockroachDB advises against schema changes inside of transactions ("Online Schema Changes").
    fn is_transactional(&self) -> bool {
        self.kind() != ProductKind::Cockroach
    }

    fn fill(&self, registers: Range<u32>) -> Vec<String> {
        let (first, last) = (registers.start, i64::from(registers.end) - 1);
        vec![format!(
            "INSERT INTO isolario_register SELECT k, NULL FROM generate_series({first}, {last}) k"
        )]
    }
}

impl Database for Postgres {
    fn name(&self) -> &str {
        match self.kind() {
            ProductKind::Postgres => "postgres",
            ProductKind::Cockroach => "cockroach",
            ProductKind::Yugabyte => "yugabyte",
        }
    }

    fn version(&self) -> Result<String, DbError> {
        let line = self.server.line()?;
        let product = Product::known(&line.query::<String>("SELECT version()")?);
        Ok(self.product.get_or_init(|| product).version.clone())
    }

    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        make_tables(self, Some(layout))?;
        if self.kind() == ProductKind::Cockroach {
            return Ok(());
        }
        let line = self.server.line()?;
        capture::clear(&line);
        self.hurry(&line)
    }

    fn clear(&self) -> Result<(), DbError> {
        make_tables(self, None)
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        let client = self.at_level()?;
        if self.kind() != ProductKind::Cockroach {
            // A small table would be read as a whole, and under serializable be locked as a whole.
            client.line.batch(Stage::Connect, "SET enable_seqscan = off")?;
        }
        let shadow = match self.shadow && self.traits().shadows {
            true => Some(Shadow::new(self.server.line()?)?),
            false => None,
        };
        let evidence = self.evidence();
        let style = Style { reported: evidence.reported(), ..STYLE };
        let statements = Statements::new(&style, self.schema);
        let mut client = client.with(evidence, shadow);
        client.prepare(statements.on_keys())?;
        Ok(Box::new(Session::new(client, statements)))
    }

    /// At read committed, every statement has a snapshot of its own.
    fn traits(&self) -> Traits<'_> {
        let isolation = self.isolation();
        let kind = self.known();
        Traits {
            isolation,
            workloads: &Kind::ALL,
            new_keys: true,
            unused_keys: self.unused_keys,
            tables: true,
            shadows: kind == ProductKind::Postgres && isolation != READ_COMMITTED,
            logs: if kind == ProductKind::Cockroach { NodeLogs::One } else { NodeLogs::Own },
            ..Traits::default()
        }
    }

    fn marking(&self) -> Marking<'_> {
        Marking::Separate(self)
    }

    fn sql(&self) -> Result<&dyn SqlDatabase, DbError> {
        Ok(self)
    }

    fn replication(&self) -> Option<&dyn Replication> {
        Some(self)
    }

    /// CockroachDB's transactions take effect at their commit timestamps. With rows, its log reports more.
    fn promised(&self, kind: Kind) -> Option<Level> {
        let is_told = self.evidence() == Evidence::Commits { are_told: true };
        let is_asked = matches!(kind, Kind::Mini | Kind::General | Kind::Append);
        (is_told && is_asked).then_some(Level::Serializable)
    }

    fn capture(&self) -> Result<Box<dyn Capture>, DbError> {
        match self.kind() {
            ProductKind::Postgres => capture::start(self),
            ProductKind::Cockroach => feed::start(self),
            ProductKind::Yugabyte => Err(DbError::fatal(
                "the order of versions can only be read from the logs of PostgreSQL and CockroachDB",
            )),
        }
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

    fn durability(&self) -> Option<String> {
        let setting = |name: &str| format!("'{name}=' || current_setting('{name}')");
        let question =
            format!("SELECT {} || ', ' || {}", setting("fsync"), setting("synchronous_commit"));
        self.server.line().ok()?.query(&question).ok()
    }
}

impl SqlDatabase for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn connect_sql(&self) -> Result<Box<dyn SqlConnection>, DbError> {
        Ok(Box::new(self.at_level()?))
    }

    /// Servers that only speak the protocol may not know the question.
    fn lock_view(&self) -> Result<Option<Box<dyn LockView>>, DbError> {
        let mut line = self.server.line()?;
        Ok(match line.is_waiting(0) {
            Ok(_) => Some(Box::new(line)),
            Err(_) => None,
        })
    }

    fn clock(&self) -> (&'static str, i64) {
        ("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)", 1)
    }
}

impl Replication for Postgres {
    fn is_read_only(&self) -> Result<bool, DbError> {
        Ok(self.server.line()?.is_standby())
    }

    fn log_position(&self) -> Result<Option<String>, DbError> {
        if self.kind() != ProductKind::Postgres {
            return Ok(None);
        }
        let line = self.server.line()?;
        line.require(10, "to follow a primary to its standbys")?;
        line.query("SELECT pg_current_wal_lsn()::text").map(Some)
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
        for (full, kind, version) in [
            (
                "PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64",
                ProductKind::Postgres,
                "PostgreSQL 15.14",
            ),
            ("PostgreSQL 17beta1 on aarch64", ProductKind::Postgres, "PostgreSQL 17beta1"),
            (
                "CockroachDB CCL v23.1.11 (x86_64-linux)",
                ProductKind::Cockroach,
                "CockroachDB 23.1.11",
            ),
            (
                "PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64",
                ProductKind::Yugabyte,
                "YugabyteDB 2.18.0.0-b0",
            ),
        ] {
            let product = Product::known(full);
            assert_eq!((product.kind, product.version.as_str()), (kind, version));
        }
    }
}
