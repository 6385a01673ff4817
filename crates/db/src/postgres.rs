//! PostgreSQL.

mod errors;
mod session;

use std::future::Future;
use std::time::Duration;

use isolario_workload::Kind;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::database::{Connection, Database, Layout};
use crate::error::DbError;
use crate::registry::{Driver, Settings};
use crate::remote::{GRACE, OURS, Site, Stage, not_ours};
use crate::tls::{self, Mode};
use crate::url::DbUrl;
use errors::classify;

const ISOLATIONS: &[&str] = &["read-committed", "repeatable-read", "serializable"];

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["postgres", "postgresql"],
    form: "postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE",
    about: "PostgreSQL",
    isolations: ISOLATIONS,
    open,
};

/// Our tables. Every register has its row from the beginning, with nothing in it: a transaction
/// that reads a row which is not there locks a page of the index, and hits others by chance.
const TABLES: [(&str, &str); 2] = [
    ("isolario_register", "(k BIGINT PRIMARY KEY, v BIGINT)"),
    ("isolario_list", "(k BIGINT PRIMARY KEY, e BIGINT[] NOT NULL)"),
];

struct Postgres {
    config: Config,
    site: Site,
}

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let site = Site::of(url, settings, ISOLATIONS, Mode::Prefer)?;
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
    Ok(Box::new(Postgres { config, site }))
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

    /// Connects; a task of the runtime then looks after the bytes.
    async fn client(&self) -> Result<Client, DbError> {
        let failed = |error| classify(&error, Stage::Connect);
        // What ends the task is told to whoever waits for an answer.
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
    fn name(&self) -> &str {
        "postgres"
    }

    fn version(&self) -> Result<String, DbError> {
        let line = self.line()?;
        let row = line.ask(Stage::Connect, line.client.query_one("SHOW server_version", &[]))?;
        let version: String = row.get(0);
        // Debian adds its own version in parentheses.
        Ok(format!("PostgreSQL {}", version.split(' ').next().unwrap_or_default()))
    }

    fn isolation(&self) -> &str {
        self.site.isolation
    }

    fn supports(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Mini | Kind::General | Kind::Append | Kind::Lwt)
    }

    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        let line = self.line()?;
        let mut statements = vec!["BEGIN".to_owned()];
        for (name, columns) in TABLES {
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
            statements.push(format!("CREATE TABLE {name} {columns}"));
            statements.push(format!("COMMENT ON TABLE {name} IS '{OURS}'"));
        }
        let last = i64::from(layout.keys) - 1;
        statements.push(format!(
            "INSERT INTO isolario_register SELECT k, NULL FROM generate_series(0, {last}) k"
        ));
        statements.push("COMMIT".to_owned());
        line.batch(Stage::Connect, &statements.join("; "))
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        let line = self.line()?;
        // A small table would be read as a whole, and under serializable be locked as a whole.
        let settings = format!(
            "SET default_transaction_isolation = '{}'; SET statement_timeout = {}; \
             SET enable_seqscan = off",
            self.site.isolation.replace('-', " "),
            self.site.patience.as_millis(),
        );
        line.batch(Stage::Connect, &settings)?;
        Ok(Box::new(session::Session::new(line)?))
    }
}
