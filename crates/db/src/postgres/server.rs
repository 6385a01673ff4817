//! A server, and connections to it.

use std::future::Future;
use std::time::Duration;

use isolario_model::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, Config, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Defaults;
use super::errors::classify;
use crate::database::SqlResult;
use crate::error::DbError;
use crate::remote::Stage;
use crate::site::{GRACE, Site};
use crate::tls::{self, Mode};

/// A server that speaks the protocol, whatever else it is.
#[derive(Clone)]
pub(super) struct Server {
    config: Config,
    pub(super) site: Site,
}

impl Server {
    pub(super) fn new(site: Site, defaults: &Defaults) -> Server {
        let address = &site.address;
        let mut config = Config::new();
        config
            .host(&address.host)
            .port(address.port.unwrap_or(defaults.port))
            .user(address.user.as_deref().unwrap_or(defaults.user))
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
        Server { config, site }
    }

    pub(super) fn line(&self) -> Result<Line, DbError> {
        let cannot = |error| self.site.cannot_connect(error);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| DbError::fatal(format!("cannot start a runtime: {error}")))?;
        let patience = self.site.patience;
        let connected = runtime.block_on(async { timeout(patience, self.client()).await });
        let (client, greeting) = match connected {
            Ok(connected) => connected.map_err(cannot)?,
            Err(_) => {
                let silence = format!("no answer within {patience:?}");
                return Err(cannot(Stage::Connect.no_answer(silence)));
            }
        };
        Ok(Line { runtime, client, greeting, patience })
    }

    /// Connects; a task of the runtime then looks after the bytes. Tells the version that the server
    /// gave, too.
    async fn client(&self) -> Result<(Client, Option<String>), DbError> {
        let failed = |error| classify(&error, Stage::Connect);
        let tls = MakeRustlsConnect::new(tls::client_config(&self.site.tls)?);
        let (client, connection) = self.config.connect(tls).await.map_err(failed)?;
        let version = connection.parameter("server_version").map(str::to_owned);
        // Whoever waits for an answer learns what ended the task.
        tokio::spawn(async { drop(connection.await) });
        Ok((client, version))
    }
}

/// A connection, and the runtime that moves its bytes while somebody waits for an answer.
pub(super) struct Line {
    pub(super) runtime: Runtime,
    pub(super) client: Client,
    /// The version that the server gave when it greeted us.
    pub(super) greeting: Option<String>,
    patience: Duration,
}

impl Line {
    /// Waits for an answer; not for ever.
    pub(super) fn ask<T>(
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

    pub(super) fn batch(&self, stage: Stage, statements: &str) -> Result<(), DbError> {
        self.ask(stage, self.client.batch_execute(statements))
    }

    /// Runs a statement whose answer comes as text.
    pub(super) fn simple(&self, stage: Stage, sql: &str) -> Result<SqlResult, DbError> {
        let mut result = SqlResult::default();
        for message in self.ask(stage, self.client.simple_query(sql))? {
            match message {
                SimpleQueryMessage::Row(row) => {
                    let value =
                        |at| row.get(at).map_or(Value::Nil, |text| Value::Text(text.into()));
                    result.rows.push((0..row.len()).map(value).collect());
                }
                SimpleQueryMessage::CommandComplete(changed) => result.changed = changed,
                _ => {}
            }
        }
        Ok(result)
    }

    /// Asks a question with one answer.
    pub(super) fn query<T: for<'a> FromSql<'a>>(&self, question: &str) -> Result<T, DbError> {
        let row = self.ask(Stage::Connect, self.client.query_one(question, &[]))?;
        row.try_get(0).map_err(|error| DbError::fatal(format!("{question}: {error}")))
    }

    /// Refuses servers before a major version, with what needs it.
    pub(super) fn require(&self, major: i64, what: &str) -> Result<(), DbError> {
        let number: i64 = self.query("SELECT current_setting('server_version_num')::BIGINT")?;
        if number >= major * 10_000 {
            return Ok(());
        }
        let version = self.greeting.as_deref().unwrap_or("older");
        Err(DbError::fatal(format!("{what} needs PostgreSQL {major} or later; this is {version}")))
    }

    /// Whether the server follows another one. Servers that only speak the protocol may not know the
    /// question; a line that is broken shows at the next one.
    pub(super) fn is_standby(&self) -> bool {
        self.query("SELECT pg_is_in_recovery()").unwrap_or(false)
    }
}
