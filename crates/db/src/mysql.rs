//! MySQL and what speaks its protocol: MariaDB, a node of a Galera cluster, TiDB.

mod capture;
mod errors;
mod locks;
mod mvcc;
mod product;
mod session;
mod sql;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use isolario_model::Level;
use isolario_predicate::Dialect;
use isolario_workload::Kind;
use mysql::prelude::Queryable;
use mysql::{Conn, DriverError, OptsBuilder, SslOpts};

use crate::certificate::Capture;
use crate::claims::{self, Claim};
use crate::database::{Connection, Database, Layout, LockView};
use crate::error::DbError;
use crate::hold::{Marking, table as mark};
use crate::registry::{Driver, Settings};
use crate::remote::{GRACE, OURS, Site, Stage, not_ours};
use crate::sql::SqlConnection;
use crate::table::application::OwnTables;
use crate::table::{TABLE, sql as rows};
use crate::tls::{Mode, Tls};
use crate::url::{Address, DbUrl};
use errors::classify;
use product::Product;
use session::Evidence;

const REPEATABLE_READ: &str = "repeatable-read";
const SNAPSHOT_ISOLATION: &str = "innodb-snapshot-isolation";

const ISOLATIONS: &[&str] =
    &["read-uncommitted", "read-committed", REPEATABLE_READ, SNAPSHOT_ISOLATION, "serializable"];

const PORT: u16 = 3306;
const PORT_OF_TIDB: u16 = 4000;

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["mysql", "mariadb"],
    form: "mysql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?engine=NAME]",
    about: "MySQL, MariaDB, TiDB; a Galera cluster by the URLs of its nodes",
    isolations: ISOLATIONS,
    port: Some(PORT),
    open: |url, settings| open(url, settings, ISOLATIONS, PORT),
};

/// TiDB's own levels: it refuses the others.
const OF_TIDB: &[&str] = &["read-committed", REPEATABLE_READ];

pub(crate) const TIDB: Driver = Driver {
    schemes: &["tidb"],
    form: "tidb://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?status_port=NUMBER]",
    about: "TiDB; a cluster by the URLs of its servers",
    isolations: OF_TIDB,
    port: Some(PORT_OF_TIDB),
    open: |url, settings| open(url, settings, OF_TIDB, PORT_OF_TIDB),
};

/// Our tables. Every register has its row from the beginning, with nothing in it: a transaction
/// that reads a row which is not there locks the gap between two others, and hits them by chance.
const TABLES: [(&str, &str); 3] = [
    ("isolario_register", "(k BIGINT PRIMARY KEY, v BIGINT)"),
    ("isolario_list", "(k BIGINT PRIMARY KEY, e LONGTEXT NOT NULL)"),
    (TABLE, rows::COLUMNS),
];

/// The parameter of a URL that names the storage engine of our tables.
const ENGINE: &str = "engine";

/// The parameter of a URL that says where TiDB has its HTTP API.
const STATUS_PORT: &str = "status_port";

/// How many rows are created at once.
const ROWS_AT_ONCE: u32 = 1000;

/// How long making the tables may be tried, and how long to wait in between.
const PREPARING: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone)]
struct MySql {
    options: OptsBuilder,
    site: Site,
    /// The storage engine of our tables.
    engine: String,
    product: OnceLock<Product>,
    /// Whether sessions ask for what a version certificate is made of.
    evidence: bool,
    /// Where TiDB has its HTTP API.
    status_port: u16,
    /// How many keys the tables were made for.
    keys: Arc<AtomicU32>,
    /// The tables of an application, where rows are not registers.
    own_tables: Option<OwnTables>,
}

fn open(
    url: &DbUrl,
    settings: &Settings,
    isolations: &'static [&'static str],
    port: u16,
) -> Result<Box<dyn Database>, DbError> {
    let mut site = Site::of(url, settings, isolations, Mode::Prefer, &[ENGINE, STATUS_PORT])?;
    if site.address.path.is_empty() {
        return Err(DbError::fatal(format!("{url}: expected a database, as in mysql://host/db")));
    }
    let (engine, status_port) = (engine(&site.address)?, status_port(&site.address)?);
    // The server counts lock time-outs in whole seconds.
    site.patience = site.patience.max(Duration::from_secs(1));
    let (address, patience) = (site.address.clone(), site.patience);
    let options = OptsBuilder::new()
        .ip_or_hostname(Some(address.host))
        .tcp_port(address.port.unwrap_or(port))
        .user(Some(address.user.unwrap_or_else(|| "root".into())))
        .pass(address.password)
        .db_name(Some(address.path))
        // A socket file would lead around whatever stands between us and the port.
        .prefer_socket(false)
        .tcp_connect_timeout(Some(patience))
        .read_timeout(Some(patience + GRACE))
        .write_timeout(Some(patience + GRACE));
    Ok(Box::new(MySql {
        options,
        site,
        engine,
        product: OnceLock::new(),
        evidence: settings.evidence,
        status_port,
        keys: Arc::default(),
        own_tables: settings.tables.map(OwnTables::mysql),
    }))
}

/// The port of TiDB's HTTP API.
fn status_port(address: &Address) -> Result<u16, DbError> {
    let named = address.parameters.iter().find(|(name, _)| name == STATUS_PORT);
    let Some((_, port)) = named else { return Ok(10080) };
    port.parse().map_err(|_| DbError::fatal(format!("{STATUS_PORT} {port:?}: expected a number")))
}

/// The storage engine that a URL asks for. Its name becomes part of a statement.
fn engine(address: &Address) -> Result<String, DbError> {
    let named = address.parameters.iter().find(|(name, _)| name == ENGINE);
    let Some((_, engine)) = named else { return Ok("InnoDB".to_owned()) };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if engine.is_empty() || !engine.chars().all(is_name) {
        let expected = "expected the name of a storage engine, such as InnoDB or RocksDB";
        return Err(DbError::fatal(format!("parameter \"engine\": {expected}")));
    }
    Ok(engine.clone())
}

impl MySql {
    fn line(&self) -> Result<Conn, DbError> {
        let plain = || Conn::new(self.options.clone());
        let encrypted = || Conn::new(self.options.clone().ssl_opts(ssl(&self.site.tls)));
        let conn = match self.site.tls.mode {
            Mode::Disable => plain(),
            Mode::Require | Mode::Verify => encrypted(),
            Mode::Prefer => match encrypted() {
                Err(mysql::Error::DriverError(DriverError::TlsNotSupported)) => plain(),
                done => done,
            },
        };
        conn.map_err(|error| self.site.cannot_connect(classify(error, Stage::Connect)))
    }

    /// What sessions ask for beside the results.
    fn evidence(&self) -> Evidence {
        match (self.evidence, self.name()) {
            (true, "mariadb" | "galera") if capture::tells_snapshots(self.site.isolation) => {
                Evidence::Snapshots
            }
            (true, "tidb") => {
                Evidence::Timestamps { of_starts: self.site.isolation == REPEATABLE_READ }
            }
            _ => Evidence::None,
        }
    }

    /// The product at the other end, which does not change.
    fn product(&self, conn: &mut Conn) -> Result<&Product, DbError> {
        let product = Product::ask(conn)?;
        Ok(self.product.get_or_init(|| product))
    }

    /// Waits until a node of a cluster knows what the others did before.
    fn catch_up(&self, conn: &mut Conn) -> Result<(), DbError> {
        let statements = self.product(conn)?.catch_up();
        batch(conn, statements)
    }

    /// A connection with its isolation level set, which knows what other nodes did before.
    fn conn_at_level(&self) -> Result<Conn, DbError> {
        let mut conn = self.line()?;
        let mut settings = Vec::new();
        if self.site.isolation == SNAPSHOT_ISOLATION {
            settings.push("SET SESSION innodb_snapshot_isolation = ON".to_owned());
        }
        let level = match self.site.isolation {
            SNAPSHOT_ISOLATION => "REPEATABLE READ".to_owned(),
            other => other.to_ascii_uppercase().replace('-', " "),
        };
        settings.push(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        let seconds = self.site.patience.as_secs();
        settings.push(format!("SET SESSION innodb_lock_wait_timeout = {seconds}"));
        batch(&mut conn, &settings)?;
        self.catch_up(&mut conn)?;
        Ok(conn)
    }

    /// Does something with tables, as often as it takes: it meets the transactions that an earlier run
    /// left behind, and in a cluster the changes of other nodes. That passes.
    fn patiently(&self, work: impl Fn(&mut Conn) -> Result<(), DbError>) -> Result<(), DbError> {
        let deadline = Instant::now() + PREPARING.max(self.site.patience);
        loop {
            match work(&mut self.line()?) {
                Err(error) if errors::passes(&error) && Instant::now() < deadline => {
                    std::thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
    }

    /// A connection for the mark of the run, which knows what other nodes did before.
    fn statements(&self) -> Result<sql::SqlSession, DbError> {
        let mut conn = self.line()?;
        self.catch_up(&mut conn)?;
        Ok(sql::SqlSession::new(conn))
    }

    /// The tables of this run: names and columns.
    fn tables(&self) -> Vec<(String, String)> {
        OwnTables::added_to(&TABLES, self.own_tables)
    }

    /// Replaces what an earlier run left by empty tables.
    fn make_tables(&self, conn: &mut Conn, layout: &Layout) -> Result<(), DbError> {
        let mut statements = self.removals(conn)?;
        for (name, columns) in self.tables() {
            let engine = &self.engine;
            statements
                .push(format!("CREATE TABLE {name} {columns} ENGINE={engine} COMMENT='{OURS}'"));
        }
        statements.extend(rows::INDEXES.map(str::to_owned));
        let first_register = self.own_tables.map_or(0, OwnTables::keys) as u32;
        for first in (first_register..layout.keys).step_by(ROWS_AT_ONCE as usize) {
            let keys = first..layout.keys.min(first.saturating_add(ROWS_AT_ONCE));
            let rows: Vec<_> = keys.map(|key| format!("({key}, NULL)")).collect();
            statements.push(format!("INSERT INTO isolario_register VALUES {}", rows.join(", ")));
        }
        batch(conn, &statements)?;
        let mut rows = self.own_tables.into_iter().flat_map(OwnTables::rows);
        rows.try_for_each(|insert| batch(conn, &[insert]))
    }

    /// The statements that remove the tables which an earlier run left.
    fn removals(&self, conn: &mut Conn) -> Result<Vec<String>, DbError> {
        self.catch_up(conn)?;
        let mut statements = Vec::new();
        for (name, _) in self.tables() {
            let find = "SELECT table_comment FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name = ?";
            let found: Option<String> =
                conn.exec_first(find, (&name,)).map_err(|error| classify(error, Stage::Connect))?;
            match found {
                Some(comment) if comment == OURS => statements.push(format!("DROP TABLE {name}")),
                Some(_) => return Err(not_ours(&format!("a table {name}"), &self.site.place)),
                None => {}
            }
        }
        Ok(statements)
    }
}

fn ssl(tls: &Tls) -> SslOpts {
    SslOpts::default()
        .with_danger_accept_invalid_certs(tls.mode != Mode::Verify)
        .with_root_cert_path(tls.roots.clone())
}

/// Runs statements that belong to no transaction of the workload.
fn batch(conn: &mut Conn, statements: &[impl AsRef<str>]) -> Result<(), DbError> {
    statements
        .iter()
        .try_for_each(|statement| conn.query_drop(statement.as_ref()))
        .map_err(|error| classify(error, Stage::Connect))
}

impl Database for MySql {
    /// MariaDB and a Galera cluster make different claims, and only the server knows what it is.
    fn name(&self) -> &str {
        if self.product.get().is_none() {
            // A server that does not answer will be found out about later.
            let _ = self.version();
        }
        self.product.get().map_or("mysql", |product| product.name)
    }

    fn version(&self) -> Result<String, DbError> {
        Ok(self.product(&mut self.line()?)?.version.clone())
    }

    fn durability(&self) -> Option<String> {
        let question = "SELECT CONCAT('innodb_flush_log_at_trx_commit=', \
                        @@innodb_flush_log_at_trx_commit, ', sync_binlog=', @@sync_binlog)";
        self.line().ok()?.query_first(question).ok()?
    }

    fn isolation(&self) -> &str {
        self.site.isolation
    }

    /// A server whose `innodb_snapshot_isolation` is on gives at repeatable read what the setting of that
    /// name gives elsewhere.
    fn claim(&self, kind: Kind, nodes: usize) -> Claim {
        let name = self.name();
        let has_snapshots =
            self.product.get().is_some_and(|product| product.has_snapshot_isolation);
        let isolation = match self.site.isolation {
            REPEATABLE_READ if has_snapshots && name == "mariadb" => SNAPSHOT_ISOLATION,
            other => other,
        };
        claims::look_up(name, isolation, kind, nodes)
    }

    fn supports(&self, _: Kind) -> bool {
        true
    }

    fn takes_new_keys(&self) -> bool {
        true
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
        self.keys.store(layout.keys, Ordering::Relaxed);
        self.patiently(|conn| self.make_tables(conn, layout))
    }

    fn clear(&self) -> Result<(), DbError> {
        self.patiently(|conn| {
            let statements = self.removals(conn)?;
            batch(conn, &statements)
        })
    }

    /// TiDB's plain reads come from the snapshot of the start, even if updates work on the newest rows;
    /// so they do where no update depends on what it finds. With rows, its storage tells more.
    fn promised(&self, kind: Kind) -> Option<Level> {
        let is_snapshot = self.evidence && self.site.isolation == REPEATABLE_READ;
        let is_told = matches!(kind, Kind::Mini | Kind::General);
        (is_snapshot && is_told && self.name() == "tidb").then_some(Level::Prefix)
    }

    fn capture(&self) -> Result<Box<dyn Capture>, DbError> {
        match self.name() {
            "tidb" => mvcc::start(self),
            _ => capture::start(self),
        }
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        let session = session::Session::new(self.conn_at_level()?, self.evidence());
        Ok(Box::new(session.with_tables(self.own_tables)))
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(Dialect::MySql)
    }

    fn connect_sql(&self) -> Result<Box<dyn SqlConnection>, DbError> {
        Ok(Box::new(sql::SqlSession::new(self.conn_at_level()?)))
    }

    fn lock_view(&self) -> Result<Option<Box<dyn LockView>>, DbError> {
        let view = locks::InnoDb::new(self.line()?);
        Ok(view.map(|view| Box::new(view) as Box<dyn LockView>))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_name_the_storage_engine() {
        let engine = |query: &str| {
            let url = DbUrl::parse(&format!("mysql://h/d{query}"))?;
            (DRIVER.open)(&url, &Settings::default())?;
            engine(&url.address()?)
        };
        assert_eq!(engine("").unwrap(), "InnoDB");
        assert_eq!(engine("?sslmode=disable&engine=RocksDB").unwrap(), "RocksDB");
        for wrong in ["?engine=", "?engine=a%20b", "?engine=x;DROP"] {
            assert!(engine(wrong).unwrap_err().message.contains("storage engine"), "{wrong}");
        }
        assert!(engine("?motor=x").unwrap_err().message.contains("engine"));
    }

    #[test]
    fn a_url_may_name_the_port_of_the_http_api() {
        let port = |query: &str| {
            status_port(&DbUrl::parse(&format!("tidb://h/d{query}")).unwrap().address().unwrap())
        };
        assert_eq!(port(""), Ok(10080));
        assert_eq!(port("?status_port=10180"), Ok(10180));
        assert!(port("?status_port=x").unwrap_err().message.contains("expected a number"));
        let url = DbUrl::parse("tidb://h/d").unwrap();
        let serializable =
            Settings { isolation: Some("serializable".to_owned()), ..Settings::default() };
        assert!((TIDB.open)(&url, &serializable).is_err());
    }
}
