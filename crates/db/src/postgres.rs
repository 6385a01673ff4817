//! PostgreSQL.

mod capture;
mod errors;
mod session;
mod sql;

use std::future::Future;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use isolario_predicate::Dialect;
use isolario_workload::Kind;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::certificate::Capture;
use crate::database::{Connection, Database, Layout, LockView};
use crate::error::DbError;
use crate::registry::{Driver, Settings};
use crate::remote::{GRACE, OURS, Site, Stage, not_ours};
use crate::sql::SqlConnection;
use crate::table::{TABLE, sql as rows};
use crate::tls::{self, Mode};
use crate::url::{Address, DbUrl};
use errors::classify;
use session::Evidence;

const ISOLATIONS: &[&str] = &["read-committed", "repeatable-read", "serializable"];

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["postgres", "postgresql"],
    form: "postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?synchronous_commit=VALUE]",
    about: "PostgreSQL; with standbys, by the URLs of all nodes",
    isolations: ISOLATIONS,
    open,
};

/// Our tables. Every register has its row from the beginning, with nothing in it: a transaction
/// that reads a row which is not there locks a page of the index, and hits others by chance.
const TABLES: [(&str, &str); 3] = [
    ("isolario_register", "(k BIGINT PRIMARY KEY, v BIGINT)"),
    ("isolario_list", "(k BIGINT PRIMARY KEY, e BIGINT[] NOT NULL)"),
    (TABLE, rows::COLUMNS),
];

/// How long a transaction waits for a lock before the server looks for a deadlock. The server's own
/// second dominates a run over few keys, in which most waits are deadlocks.
const DEADLOCK_TIMEOUT: &str = "SET deadlock_timeout = '10ms'";

/// The parameter of a URL that says what the commits of its sessions wait for.
const SYNCHRONOUS_COMMIT: &str = "synchronous_commit";
const COMMITS_WAIT_FOR: [&str; 5] = ["off", "local", "remote_write", "on", "remote_apply"];

/// How long a standby may take to follow, and how often it is asked.
const CATCHING_UP: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone)]
struct Postgres {
    config: Config,
    site: Site,
    /// What commits wait for; as the server has it, where the URL does not say.
    synchronous_commit: Option<&'static str>,
    /// Whether the server lets us look for deadlocks sooner. Only superusers may, and those to whom
    /// the right was granted.
    is_hurried: OnceLock<bool>,
    product: OnceLock<Product>,
    /// Whether sessions ask for what a version certificate is made of.
    evidence: bool,
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

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let site = Site::of(url, settings, ISOLATIONS, Mode::Prefer, &[SYNCHRONOUS_COMMIT])?;
    let synchronous_commit = synchronous_commit(&site.address)?;
    let address = &site.address;
    let mut config = Config::new();
    config
        .host(&address.host)
        .port(address.port.unwrap_or(5432))
        .user(address.user.as_deref().unwrap_or("postgres"))
        .application_name("isolario")
        .ssl_mode(match site.tls.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::Verify => SslMode::Require,
        });
    if let Some(password) = &address.password {
        config.password(password);
    }
    if !address.path.is_empty() {
        config.dbname(&address.path);
    }
    let (is_hurried, product) = (OnceLock::new(), OnceLock::new());
    let evidence = settings.evidence;
    Ok(Box::new(Postgres { config, site, synchronous_commit, is_hurried, product, evidence }))
}

fn synchronous_commit(address: &Address) -> Result<Option<&'static str>, DbError> {
    let mut parameters = address.parameters.iter();
    let Some((_, wanted)) = parameters.find(|(name, _)| name == SYNCHRONOUS_COMMIT) else {
        return Ok(None);
    };
    let found = COMMITS_WAIT_FOR.into_iter().find(|name| name == wanted);
    found.map(Some).ok_or_else(|| {
        let names = COMMITS_WAIT_FOR.join(", ");
        DbError::fatal(format!("{SYNCHRONOUS_COMMIT} {wanted:?}: expected one of {names}"))
    })
}

/// A connection, and the runtime that moves its bytes while somebody waits for an answer.
struct Line {
    runtime: Runtime,
    client: Client,
    patience: Duration,
}

impl Line {
    /// Waits for an answer; not for ever.
    fn ask<T>(
        &self,
        stage: Stage,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, DbError> {
        let patience = self.patience + GRACE;
        match self.runtime.block_on(async { timeout(patience, answer).await }) {
            Ok(answer) => answer.map_err(|error| classify(&error, stage)),
            Err(_) => Err(stage.no_answer(format!("no answer within {patience:?}"))),
        }
    }

    fn batch(&self, stage: Stage, statements: &str) -> Result<(), DbError> {
        self.ask(stage, self.client.batch_execute(statements))
    }

    /// Asks a question with one answer.
    fn query<T: for<'a> FromSql<'a>>(&self, question: &str) -> Result<T, DbError> {
        self.ask(Stage::Connect, self.client.query_one(question, &[])).map(|row| row.get(0))
    }

    /// Whether the server follows another one. Servers that only speak the protocol may not know the
    /// question; a line that is broken shows at the next one.
    fn is_standby(&self) -> bool {
        self.query("SELECT pg_is_in_recovery()").unwrap_or(false)
    }
}

impl Postgres {
    fn line(&self) -> Result<Line, DbError> {
        let cannot = |error| self.site.cannot_connect(error);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| DbError::fatal(format!("cannot start a runtime: {error}")))?;
        let patience = self.site.patience;
        let connected = runtime.block_on(async { timeout(patience, self.client()).await });
        let client = match connected {
            Ok(client) => client.map_err(cannot)?,
            Err(_) => {
                let silence = format!("no answer within {patience:?}");
                return Err(cannot(Stage::Connect.no_answer(silence)));
            }
        };
        Ok(Line { runtime, client, patience })
    }

    /// What sessions ask for beside the results.
    fn evidence(&self) -> Evidence {
        match (self.evidence, self.site.isolation) {
            (false, _) => Evidence::None,
            (true, "read-committed") => Evidence::Statements,
            (true, _) => Evidence::Transactions,
        }
    }

    /// Looks for deadlocks sooner, where that is permitted. Servers that only speak the protocol may
    /// not know the setting: they keep their own.
    fn hurry(&self, line: &Line) -> Result<(), DbError> {
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

    /// The statements that remove the tables which an earlier run left.
    fn removals(&self, line: &Line) -> Result<Vec<String>, DbError> {
        let mut statements = Vec::new();
        for (name, _) in TABLES {
            let find = "SELECT obj_description(to_regclass($1), 'pg_class') \
                 WHERE to_regclass($1) IS NOT NULL";
            let found = line.ask(Stage::Connect, line.client.query_opt(find, &[&name]))?;
            match found.map(|row| row.get::<_, Option<String>>(0)) {
                Some(Some(comment)) if comment == OURS => {
                    statements.push(format!("DROP TABLE {name}"));
                }
                Some(_) => return Err(not_ours(&format!("a table {name}"), &self.site.place)),
                None => {}
            }
        }
        Ok(statements)
    }

    /// Sets the isolation level and what goes with it; tells whether the server is a standby.
    fn set_up(&self, line: &Line) -> Result<bool, DbError> {
        let is_standby = line.is_standby();
        // A standby refuses serializable transactions.
        let isolation = match self.site.isolation {
            "serializable" if is_standby => "repeatable-read",
            isolation => isolation,
        };
        let mut settings = format!(
            "SET default_transaction_isolation = '{}'; SET statement_timeout = {}",
            isolation.replace('-', " "),
            self.site.patience.as_millis(),
        );
        if let Some(value) = self.synchronous_commit {
            settings += &format!("; SET synchronous_commit = {value}");
        }
        line.batch(Stage::Connect, &settings)?;
        self.hurry(line)?;
        Ok(is_standby)
    }

    /// Connects; a task of the runtime then looks after the bytes.
    async fn client(&self) -> Result<Client, DbError> {
        let failed = |error| classify(&error, Stage::Connect);
        // Whoever waits for an answer learns what ended the task.
        if self.site.tls.mode == Mode::Disable {
            let (client, connection) = self.config.connect(NoTls).await.map_err(failed)?;
            tokio::spawn(async { drop(connection.await) });
            return Ok(client);
        }
        let tls = MakeRustlsConnect::new(tls::client_config(&self.site.tls)?);
        let (client, connection) = self.config.connect(tls).await.map_err(failed)?;
        tokio::spawn(async { drop(connection.await) });
        Ok(client)
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
        let line = self.line()?;
        let product = Product::known(&line.query::<String>("SELECT version()")?);
        Ok(self.product.get_or_init(|| product).version.clone())
    }

    fn isolation(&self) -> &str {
        self.site.isolation
    }

    fn supports(&self, _: Kind) -> bool {
        true
    }

    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        let line = self.line()?;
        let mut statements = vec!["BEGIN".to_owned()];
        statements.extend(self.removals(&line)?);
        for (name, columns) in TABLES {
            statements.push(format!("CREATE TABLE {name} {columns}"));
            statements.push(format!("COMMENT ON TABLE {name} IS '{OURS}'"));
        }
        let last = i64::from(layout.keys) - 1;
        statements.push(format!(
            "INSERT INTO isolario_register SELECT k, NULL FROM generate_series(0, {last}) k"
        ));
        statements.extend(rows::INDEXES.map(str::to_owned));
        statements.push("COMMIT".to_owned());
        line.batch(Stage::Connect, &statements.join("; "))?;
        capture::clear(&line);
        self.hurry(&line)
    }

    fn clear(&self) -> Result<(), DbError> {
        let line = self.line()?;
        line.batch(Stage::Connect, &self.removals(&line)?.join("; "))
    }

    fn is_read_only(&self) -> Result<bool, DbError> {
        Ok(self.line()?.is_standby())
    }

    fn log_position(&self) -> Result<Option<String>, DbError> {
        match self.name() {
            "postgres" => self.line()?.query("SELECT pg_current_wal_lsn()::text").map(Some),
            _ => Ok(None),
        }
    }

    fn capture(&self) -> Result<Box<dyn Capture>, DbError> {
        match self.name() {
            "postgres" => capture::start(self),
            _ => Err(DbError::fatal("the order of versions is read from PostgreSQL's own log")),
        }
    }

    fn follow(&self, position: &str) -> Result<(), DbError> {
        let line = self.line()?;
        let deadline = Instant::now() + self.site.patience.max(CATCHING_UP);
        let question =
            format!("SELECT coalesce(pg_last_wal_replay_lsn() >= '{position}'::pg_lsn, false)");
        while !line.query::<bool>(&question)? {
            if Instant::now() > deadline {
                return Err(DbError::fatal(format!(
                    "{} does not follow the primary: our tables have not arrived there. Does it \
                     stream from the server that was named before it?",
                    self.site.place
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
        let line = self.line()?;
        let is_standby = self.set_up(&line)?;
        // A small table would be read as a whole, and under serializable be locked as a whole.
        line.batch(Stage::Connect, "SET enable_seqscan = off")?;
        Ok(Box::new(session::Session::new(line, is_standby, self.evidence())?))
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(Dialect::Postgres)
    }

    fn connect_sql(&self) -> Result<Box<dyn SqlConnection>, DbError> {
        let line = self.line()?;
        self.set_up(&line)?;
        Ok(Box::new(sql::SqlSession::new(line)?))
    }

    /// Servers that only speak the protocol may not know the question.
    fn lock_view(&self) -> Result<Option<Box<dyn LockView>>, DbError> {
        let mut line = self.line()?;
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
