//! Where rounds take place: the database, and a namespace of the run's own in it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isolario_db::{
    self as db, Claim, DRIVERS, Database, DbError, Hold, LockView, Obstacle, SqlConnection,
    SqlDatabase,
};
use isolario_model::Value;
use isolario_sql::{Aux, Product, Schema, SnapshotScope};
use isolario_workload::Kind;

use super::client::Companion;
use super::settings::Settings;
use crate::run::RunError;

/// A database that rounds are run on.
pub(super) struct Site<'s> {
    settings: &'s Settings,
    /// What it is.
    pub(super) product: Product,
    /// The product and its version, as the database tells.
    pub(super) version: String,
    /// The name of its rows in the table of claims.
    pub(super) name: String,
    /// The isolation levels that rounds may take.
    pub(super) isolations: Vec<String>,
    /// The hold on the database.
    hold: Hold,
    /// What the schemas or databases that everything of the run is in are called.
    namespace: String,
    /// The numbers of the namespaces that are in use.
    in_use: Mutex<BTreeSet<u32>>,
    /// The schema of the last round, where it is to stay, and its namespace, which stays in use.
    kept: Mutex<Option<(u32, Schema)>>,
}

/// The database at one isolation level, and a namespace in it that belongs to this stage alone. When the stage is
/// dropped, the schema in the namespace is dropped, unless it is to stay, and the namespace can be used again.
pub(super) struct Stage<'s> {
    site: &'s Site<'s>,
    namespace: u32,
    nodes: Vec<Box<dyn Database>>,
    /// The connection that makes schemas, once there is one.
    maker: Mutex<Option<Box<dyn SqlConnection>>>,
    /// The schema in the namespace.
    made: Mutex<Option<Schema>>,
}

impl<'s> Site<'s> {
    /// Opens the database, and asks what it is.
    pub(super) fn open(settings: &'s Settings) -> Result<Site<'s>, RunError> {
        let url = settings.urls.first().ok_or(RunError::Nothing("databases"))?;
        let at = |error| RunError::Database { url: Some(url.clone()), error };
        let options = db::Settings {
            isolation: settings.isolation.clone(),
            statement_timeout: settings.statement_timeout,
            ..db::Settings::default()
        };
        let database = db::open(url, &options).map_err(RunError::Open)?;
        let version = database.version().map_err(at)?;
        let name = database.name().to_owned();
        let no_sql = || DbError::unsupported("SQL").with_obstacle(Obstacle::NoSql);
        let product = Product::named(&name).ok_or_else(|| at(no_sql()))?;
        let driver = DRIVERS.iter().find(|driver| driver.schemes.contains(&url.scheme()));
        let known = driver.map_or(&[][..], |driver| driver.isolations);
        let isolations = match &settings.isolation {
            Some(_) => vec![database.traits().isolation.to_owned()],
            None => known.iter().map(|name| (*name).to_owned()).collect(),
        };
        let namespace = format!("isolario_sql_{:x}", settings.seed ^ (settings.seed >> 32));
        let hold = Hold::take(&Arc::new(vec![database]), None).map_err(|(_, error)| at(error))?;
        let (in_use, kept) = (Mutex::default(), Mutex::default());
        let mut site =
            Site { settings, hold, product, version, name, isolations, namespace, in_use, kept };
        site.isolations = site.available().map_err(at)?;
        Ok(site)
    }

    /// Makes sure that no other run used the database meanwhile; see [`Hold::confirm`].
    pub(super) fn confirm(&self) -> Result<(), RunError> {
        let url = self.settings.urls.first().cloned();
        self.hold.confirm(true).map_err(|error| RunError::Database { url, error })
    }

    /// The isolation levels that this server has: not every version has all of its product's.
    fn available(&self) -> Result<Vec<String>, DbError> {
        let mut available = Vec::new();
        let mut last = None;
        for isolation in &self.isolations {
            match self
                .at(isolation)
                .and_then(|stage| stage.nodes[0].sql()?.connect_sql().map(|_| ()))
            {
                Ok(()) => available.push(isolation.clone()),
                Err(error) => last = Some(error),
            }
        }
        match (available.is_empty(), last) {
            (true, Some(error)) => Err(error),
            (true, None) => Err(DbError::unsupported("isolation levels")),
            _ => Ok(available),
        }
    }

    /// The database at an isolation level, and the first namespace that is not in use.
    pub(super) fn at(&'s self, isolation: &str) -> Result<Stage<'s>, DbError> {
        let options = db::Settings {
            isolation: Some(isolation.to_owned()),
            statement_timeout: self.settings.statement_timeout,
            ..db::Settings::default()
        };
        let nodes: Result<Vec<_>, _> =
            self.settings.urls.iter().map(|url| db::open(url, &options)).collect();
        let nodes = nodes?;
        let mut in_use = locked(&self.in_use);
        let namespace = (0..).find(|number| !in_use.contains(number)).unwrap_or(u32::MAX);
        in_use.insert(namespace);
        let (maker, made) = (Mutex::default(), Mutex::default());
        Ok(Stage { site: self, namespace, nodes, maker, made })
    }

    /// Whether rounds at an isolation level are compared with their transactions one after the other:
    /// where they are promised to be like that, in real time.
    pub(super) fn is_compared(&self, isolation: &str) -> bool {
        isolation == "serializable" && self.product.is_alone && self.settings.urls.len() == 1
    }

    /// How sessions at an isolation level tell which versions their queries meet, if they can and are to.
    ///
    /// Where all queries of a transaction come from one snapshot, a read of all tables before a query meets the same.
    pub(super) fn companion(&self, isolation: &str) -> Option<Companion> {
        match self.product.snapshots(isolation) {
            _ if !self.settings.predicates => None,
            Some(SnapshotScope::Statement) => Some(Companion::InStatement),
            Some(SnapshotScope::Transaction) => Some(Companion::BeforeStatement),
            None => None,
        }
    }

    /// Whether statements are instrumented.
    pub(super) fn is_instrumented(&self) -> bool {
        self.settings.instrumented
    }

    /// Whether there are no namespaces.
    pub(super) fn is_sqlite(&self) -> bool {
        !self.product.has_namespaces()
    }
}

impl Stage<'_> {
    /// The isolation level, by the database's own name.
    pub(super) fn isolation(&self) -> &str {
        self.nodes[0].traits().isolation
    }

    /// The name of its namespace.
    fn name(&self) -> String {
        match self.namespace {
            0 => self.site.namespace.clone(),
            number => format!("{}_{number}", self.site.namespace),
        }
    }

    /// See [`Site::companion`].
    pub(super) fn companion(&self) -> Option<Companion> {
        self.site.companion(self.isolation())
    }

    /// What the database claims. A row with its writers is a list, so the claim for lists counts.
    pub(super) fn claim(&self) -> Claim {
        self.nodes[0].claim(Kind::Append, self.nodes.len())
    }

    /// Takes the place of the last round, whose schema was kept until now.
    pub(super) fn adopt_kept(&mut self) {
        let Some((namespace, schema)) = locked(&self.site.kept).take() else { return };
        let own = std::mem::replace(&mut self.namespace, namespace);
        locked(&self.site.in_use).remove(&own);
        *locked(&self.made) = Some(schema);
    }

    /// Makes a schema, in place of an earlier one.
    pub(super) fn make(&self, schema: &Schema, aux: Option<&Aux>) -> Result<(), DbError> {
        let product = &self.site.product;
        if self.site.is_sqlite() {
            self.clear()?;
            refuse_strangers(&mut *self.nodes[0].sql()?.connect_sql()?, schema)?;
        }
        *locked(&self.made) = Some(schema.clone());
        let namespace = &self.name();
        let statements = product.make_namespace(namespace).into_iter();
        let statements = statements.chain(product.enter_namespace(namespace));
        self.send(statements.chain(schema.create(product, aux)))
    }

    /// Drops the schema, and with it its namespace in the database.
    pub(super) fn clear(&self) -> Result<(), DbError> {
        let Some(schema) = locked(&self.made).take() else { return Ok(()) };
        match self.site.is_sqlite() {
            true => self.send(schema.drop().into_iter()),
            false => self.send(self.site.product.drop_namespace(&self.name()).into_iter()),
        }
    }

    /// Sends statements of our own over the connection that makes schemas. After an error, the next ones
    /// get another connection.
    fn send(&self, statements: impl Iterator<Item = String>) -> Result<(), DbError> {
        let mut maker = locked(&self.maker);
        let mut connection = match maker.take() {
            Some(connection) => connection,
            None => self.nodes[0].sql()?.connect_sql()?,
        };
        for sql in statements {
            connection.statement(&sql, true).map_err(|error| at_statement(error, &sql))?;
        }
        *maker = Some(connection);
        Ok(())
    }

    /// A connection for a session, which sees the namespace. Sessions go round the nodes.
    pub(super) fn connect(&self, session: u32) -> Result<Box<dyn SqlConnection>, DbError> {
        let mut connection =
            self.nodes[session as usize % self.nodes.len()].sql()?.connect_sql()?;
        for sql in self.site.product.enter_namespace(&self.name()) {
            connection.statement(&sql, true).map_err(|error| at_statement(error, &sql))?;
        }
        Ok(connection)
    }

    /// Who waits for whom, on each node that tells.
    pub(super) fn lock_views(&self) -> Result<Vec<Option<Box<dyn LockView>>>, DbError> {
        self.nodes.iter().map(|node| node.sql().map_or(Ok(None), SqlDatabase::lock_view)).collect()
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if self.site.settings.keep
            && let Some(schema) = locked(&self.made).take()
        {
            *locked(&self.site.kept) = Some((self.namespace, schema));
            return;
        }
        // Where an error of it matters, it was cleared before.
        let _ = self.clear();
        locked(&self.site.in_use).remove(&self.namespace);
    }
}

/// What is behind a lock, whatever became of the thread that held it before.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// SQLite has no namespaces: nobody's tables of the same names are touched.
fn refuse_strangers(connection: &mut dyn SqlConnection, schema: &Schema) -> Result<(), DbError> {
    let tables = schema.tables.iter().map(|table| &table.name);
    let names: Vec<String> = tables
        .chain(schema.views.iter().map(|view| &view.name))
        .map(|name| format!("'{name}'"))
        .collect();
    let sql = format!("SELECT name FROM sqlite_master WHERE name IN ({})", names.join(", "));
    match connection.statement(&sql, false)?.rows.first().and_then(|row| row.first()) {
        Some(Value::Text(name)) => Err(DbError::fatal(format!(
            "there is a table {name} already: rename it, or choose another file"
        ))),
        _ => Ok(()),
    }
}

/// An error of a statement of our own, with the statement.
fn at_statement(mut error: DbError, sql: &str) -> DbError {
    error.message = format!("{}, after: {sql}", error.message);
    error
}
