//! MySQL and what speaks its protocol: MariaDB, a node of a Galera cluster, TiDB.

mod binlog;
mod capture;
mod claims;
mod client;
mod errors;
mod locks;
mod mvcc;
mod product;
mod storage;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use isolario_model::Level;
use isolario_predicate::Dialect;
use isolario_workload::{Kind, Schema};
use mysql::{Conn, DriverError, OptsBuilder, SslOpts};

use crate::certificate::Capture;
use crate::claims::{Claim, look_up};
use crate::database::{
    Connection, Database, Layout, LockView, NodeLogs, SqlConnection, SqlDatabase, Traits,
};
use crate::error::DbError;
use crate::hold::Marking;
use crate::registry::{Driver, Service, Settings};
use crate::remote::{OURS, Stage};
use crate::site::{GRACE, Site, not_ours};
use crate::sql::{COLUMNS, Client, Reported, Session, SqlProduct, Statements, Style, make_tables};
use crate::table::TABLE;
use crate::tls::{Mode, Tls};
use crate::url::{Address, DbUrl};
use client::{Evidence, MyClient};
use errors::classify;
use locks::InnoDb;
use product::{Product, ProductKind};

const READ_COMMITTED: &str = "read-committed";
const REPEATABLE_READ: &str = "repeatable-read";
const SNAPSHOT_ISOLATION: &str = "innodb-snapshot-isolation";
const SERIALIZABLE: &str = "serializable";

const ISOLATIONS: &[&str] =
    &["read-uncommitted", READ_COMMITTED, REPEATABLE_READ, SNAPSHOT_ISOLATION, SERIALIZABLE];

const PORT: u16 = 3306;

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["mysql", "mariadb"],
    form: "mysql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?engine=NAME]",
    about: "MySQL, MariaDB, TiDB; a Galera cluster by the URLs of its nodes",
    isolations: ISOLATIONS,
    claims: claims::MYSQL,
    service: Service::Server(PORT),
    open: |url, settings| open(url, settings, &DRIVER, PORT),
};

const PORT_OF_TIDB: u16 = 4000;

/// TiDB refuses the other levels.
pub(crate) const TIDB: Driver = Driver {
    schemes: &["tidb"],
    form: "tidb://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?status_port=NUMBER]",
    about: "TiDB; a cluster by the URLs of its servers",
    isolations: &[READ_COMMITTED, REPEATABLE_READ],
    claims: claims::TIDB,
    service: Service::Server(PORT_OF_TIDB),
    open: |url, settings| open(url, settings, &TIDB, PORT_OF_TIDB),
};

/// Every register has its row from the beginning, with nothing in it: a transaction that reads a row which is not
/// there locks the gap between two others, and hits them by chance.
pub(crate) const STYLE: Style = Style {
    parameter: |_| "?".to_owned(),
    positional: true,
    returning: false,
    integer: "SIGNED",
    reported: Reported::Nothing,
    insert: "INSERT INTO isolario_register VALUES ({1}, {2}) ON DUPLICATE KEY UPDATE v = VALUES(v)",
    delete: "UPDATE isolario_register SET v = NULL WHERE k = {1}",
    compares: true,
    read_list: "SELECT e FROM isolario_list WHERE k = {1}",
    append: &["INSERT INTO isolario_list VALUES ({1}, {2}) \
         ON DUPLICATE KEY UPDATE e = CONCAT(e, ',', VALUES(e))"],
};

/// The parameter of a URL that names the storage engine of our tables.
const ENGINE: &str = "engine";

/// The parameter of a URL that says where TiDB has its HTTP API.
const STATUS_PORT: &str = "status_port";

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
    /// The application whose rows are not registers.
    schema: Option<Schema>,
}

fn open(
    url: &DbUrl,
    settings: &Settings,
    driver: &Driver,
    port: u16,
) -> Result<Box<dyn Database>, DbError> {
    let own = &[ENGINE, STATUS_PORT];
    let mut site = Site::of(url, settings, driver.isolations, Mode::Prefer, own)?;
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
        schema: settings.tables,
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
    fn line(&self) -> Result<MyClient, DbError> {
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
        let failed = |error| self.site.cannot_connect(classify(error, Stage::Connect));
        conn.map(MyClient::new).map_err(failed)
    }

    /// What sessions ask for besides the results.
    fn evidence(&self) -> Evidence {
        match (self.evidence, self.kind()) {
            (true, ProductKind::MariaDb | ProductKind::Galera) if self.has_one_snapshot() => {
                Evidence::Snapshots
            }
            (true, ProductKind::TiDb) => {
                Evidence::Timestamps { of_starts: self.site.isolation == REPEATABLE_READ }
            }
            _ => Evidence::None,
        }
    }

    /// Whether a transaction can be begun with a snapshot whose place in the log is known.
    fn has_one_snapshot(&self) -> bool {
        matches!(self.site.isolation, REPEATABLE_READ | SNAPSHOT_ISOLATION)
    }

    /// The product at the other end, which does not change.
    fn product(&self, client: &mut MyClient) -> Result<&Product, DbError> {
        let product = Product::ask(client)?;
        Ok(self.product.get_or_init(|| product))
    }

    /// What it is, as far as it has said so.
    fn known(&self) -> ProductKind {
        self.product.get().map_or(ProductKind::MySql, |product| product.kind)
    }

    /// MariaDB and a Galera cluster make different claims, and only the server knows what it is.
    fn kind(&self) -> ProductKind {
        if self.product.get().is_none() {
            // A server that does not answer will be found out about later.
            let _ = self.version();
        }
        self.known()
    }

    /// Waits until a node of a cluster knows what the others did before.
    fn catch_up(&self, client: &mut MyClient) -> Result<(), DbError> {
        let statements = self.product(client)?.catch_up();
        client.batch(statements)
    }

    /// A connection with its isolation level set, which knows what other nodes did before.
    fn at_level(&self) -> Result<MyClient, DbError> {
        let mut client = self.line()?;
        let level = match self.site.isolation {
            SNAPSHOT_ISOLATION => {
                client.batch(&["SET SESSION innodb_snapshot_isolation = ON"])?;
                "REPEATABLE READ".to_owned()
            }
            other => other.to_ascii_uppercase().replace('-', " "),
        };
        let seconds = self.site.patience.as_secs();
        client.batch(&[
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"),
            format!("SET SESSION innodb_lock_wait_timeout = {seconds}"),
        ])?;
        self.catch_up(&mut client)?;
        Ok(client)
    }

    /// Does something with tables, as often as it takes: it meets the transactions that an earlier run
    /// left behind, and in a cluster the changes of other nodes. That passes.
    fn patiently(&self, work: impl Fn() -> Result<(), DbError>) -> Result<(), DbError> {
        let deadline = Instant::now() + PREPARING.max(self.site.patience);
        loop {
            match work() {
                Err(error) if errors::passes(&error) && Instant::now() < deadline => {
                    std::thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
    }
}

fn ssl(tls: &Tls) -> SslOpts {
    SslOpts::default()
        .with_danger_accept_invalid_certs(tls.mode != Mode::Verify)
        .with_root_cert_path(tls.roots.clone())
}

impl SqlProduct for MySql {
    type Client = MyClient;

    const TABLES: &'static [(&'static str, &'static str)] = &[
        ("isolario_register", "(k BIGINT PRIMARY KEY, v BIGINT)"),
        ("isolario_list", "(k BIGINT PRIMARY KEY, e LONGTEXT NOT NULL)"),
        (TABLE, COLUMNS),
    ];

    const OWNER: &'static str = "SELECT table_comment FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = '{}'";

    /// It knows what other nodes did before.
    fn client(&self) -> Result<MyClient, DbError> {
        let mut client = self.line()?;
        self.catch_up(&mut client)?;
        Ok(client)
    }

    fn schema(&self) -> Option<Schema> {
        self.schema
    }

    fn create(&self, name: &str, columns: &str) -> Vec<String> {
        let engine = &self.engine;
        vec![format!("CREATE TABLE {name} {columns} ENGINE={engine} COMMENT='{OURS}'")]
    }

    fn not_ours(&self, table: &str) -> DbError {
        not_ours(&format!("a table {table}"), &self.site.place)
    }
}

impl Database for MySql {
    fn name(&self) -> &str {
        self.kind().name()
    }

    fn version(&self) -> Result<String, DbError> {
        Ok(self.product(&mut self.line()?)?.version.clone())
    }

    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        self.keys.store(layout.keys, Ordering::Relaxed);
        self.patiently(|| make_tables(self, Some(layout)))
    }

    fn clear(&self) -> Result<(), DbError> {
        self.patiently(|| make_tables(self, None))
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        let client = self.at_level()?.with(self.evidence());
        Ok(Box::new(Session::new(client, Statements::new(&STYLE, self.schema))))
    }

    fn traits(&self) -> Traits<'_> {
        Traits {
            isolation: self.site.isolation,
            workloads: &Kind::ALL,
            new_keys: true,
            tables: true,
            logs: match self.known() {
                ProductKind::TiDb => NodeLogs::One,
                ProductKind::Galera => NodeLogs::Same,
                _ => NodeLogs::Own,
            },
            ..Traits::default()
        }
    }

    /// A server whose `innodb_snapshot_isolation` is on gives at repeatable read what the setting of that
    /// name gives elsewhere.
    fn claim(&self, kind: Kind, nodes: usize) -> Claim {
        let product = self.kind();
        let has_snapshots =
            self.product.get().is_some_and(|product| product.has_snapshot_isolation);
        let isolation = match self.site.isolation {
            REPEATABLE_READ if has_snapshots && product == ProductKind::MariaDb => {
                SNAPSHOT_ISOLATION
            }
            other => other,
        };
        look_up(product.name(), isolation, kind, nodes)
    }

    fn marking(&self) -> Marking<'_> {
        Marking::Separate(self)
    }

    fn sql(&self) -> Result<&dyn SqlDatabase, DbError> {
        Ok(self)
    }

    /// TiDB's plain reads come from the snapshot of the start, even if updates work on the newest rows;
    /// so they do where no update depends on what it finds. With rows, its storage reports more.
    fn promised(&self, kind: Kind) -> Option<Level> {
        let is_told = self.evidence() == Evidence::Timestamps { of_starts: true };
        (is_told && matches!(kind, Kind::Mini | Kind::General)).then_some(Level::Prefix)
    }

    fn capture(&self) -> Result<Box<dyn Capture>, DbError> {
        match self.kind() {
            ProductKind::TiDb => storage::start(self),
            _ => capture::start(self),
        }
    }

    fn durability(&self) -> Option<String> {
        let question = "SELECT CONCAT('innodb_flush_log_at_trx_commit=', \
                        @@innodb_flush_log_at_trx_commit, ', sync_binlog=', @@sync_binlog)";
        self.line().ok()?.run(question, Stage::Connect).ok()?.first_text()
    }
}

impl SqlDatabase for MySql {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn connect_sql(&self) -> Result<Box<dyn SqlConnection>, DbError> {
        Ok(Box::new(self.at_level()?))
    }

    fn lock_view(&self) -> Result<Option<Box<dyn LockView>>, DbError> {
        let view = InnoDb::new(self.line()?);
        Ok(view.map(|view| Box::new(view) as Box<dyn LockView>))
    }

    fn clock(&self) -> (&'static str, i64) {
        ("SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))", 1)
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
