//! The database of a run: opened, asked who it is, and made ready.

use std::borrow::Cow;

use isolario_db::{self as db, Claim, Database, DbError, DbUrl, Layout};
use isolario_model::Level;
use isolario_workload::{Schema, Workload};

use super::error::RunError;
use super::faults::Trouble;
use super::host::{Host, prepare_for_all};
use super::settings::Settings;

/// What is claimed where the server ends in between. Who claims snapshots takes them of what is committed
/// by then; a fault is no excuse for an older one. Strict serializability would ask for more than that: the
/// order of transactions that do not meet, which serializable databases need not keep.
pub(super) fn in_real_time(claim: Claim) -> Claim {
    let Claim { mut levels, words } = claim;
    let implies = |wanted: Level| levels.iter().any(|level| level.implies(wanted));
    if implies(Level::SnapshotIsolation) && !implies(Level::StrongSnapshotIsolation) {
        levels.push(Level::StrongSnapshotIsolation);
    }
    Claim { levels, words }
}

/// What a run needs room for.
pub(super) fn layout(settings: &Settings) -> Layout {
    let extra = settings.host.map_or(0, Host::extra_keys);
    let layout = Layout::new(settings.workload.kind, settings.workload.standing_keys() + extra)
        .with_value_size(settings.value_size);
    match settings.to_be_killed {
        Some(run) => layout.with_run(run.wrapping_add(settings.seed)),
        None => layout,
    }
}

/// The settings of a run on this database: it may not take keys that begin absent.
pub(super) fn suited<'s>(settings: &'s Settings, database: &dyn Database) -> Cow<'s, Settings> {
    if database.takes_new_keys() || settings.workload.absent_ratio == 0.0 {
        return Cow::Borrowed(settings);
    }
    let workload = Workload { absent_ratio: 0.0, ..settings.workload.clone() };
    Cow::Owned(settings.clone().with_workload(workload))
}

/// What a run asks of its database. Who is going to be killed asks for commits that survive it.
pub(super) fn asked_of(settings: &Settings) -> db::Settings {
    db::Settings {
        isolation: settings.isolation.clone(),
        statement_timeout: settings.statement_timeout,
        sessions: settings.sessions,
        evidence: settings.whitebox,
        shadow: settings.whitebox && settings.shadow,
        tables: settings.tables(),
        durable: settings.to_be_killed.is_some(),
    }
}

/// The database of a run.
#[non_exhaustive]
pub struct Target {
    /// Its nodes.
    pub nodes: Vec<Box<dyn Database>>,
    /// The product and its version, as the database itself tells.
    pub version: String,
    /// What it claims for the workload.
    pub claim: Claim,
    /// The application whose rows are in SQL tables of their own.
    pub(super) tables: Option<Schema>,
    /// The faults that the run is to have.
    pub(super) trouble: Option<Trouble>,
}

impl Target {
    /// Opens the databases of the settings' URLs and makes room for the workload.
    pub fn open(settings: &Settings) -> Result<Target, RunError> {
        let asked = asked_of(settings);
        let open = |url: &DbUrl| db::open(url, &asked).map_err(RunError::Open);
        let opened = |urls: &[DbUrl]| urls.iter().map(open).collect::<Result<Vec<_>, _>>();
        let Some(faults) = &settings.faults else {
            return Target::of(opened(&settings.urls)?, settings);
        };
        // No server is started for databases that cannot be.
        opened(&settings.urls)?;
        let (trouble, urls) = Trouble::start(faults, &settings.urls)?;
        let nodes = opened(&urls)?;
        for (node, url) in nodes.iter().zip(&settings.urls) {
            let failed = |error| RunError::Database { url: Some(url.clone()), error };
            trouble.wait_for(|| node.version()).map_err(failed)?;
        }
        let target = Target::of(nodes, settings)?;
        let claim = if trouble.is_of_server() { in_real_time(target.claim) } else { target.claim };
        Ok(Target { trouble: Some(trouble), claim, ..target })
    }

    /// Makes room for the workload in a database of one's own, given by its nodes.
    pub fn of(nodes: Vec<Box<dyn Database>>, settings: &Settings) -> Result<Target, RunError> {
        let first = nodes.first().ok_or(RunError::Nothing("databases"))?;
        let at = |node: usize, error: DbError| RunError::Database {
            url: settings.urls.get(node).cloned(),
            error,
        };
        let kind = settings.workload.kind;
        if !first.supports(kind) {
            return Err(RunError::Unsupported { database: first.name().to_owned(), kind });
        }
        if settings.sql_tables && !(first.has_tables() && settings.tables().is_some()) {
            let (database, workload) = (first.name().to_owned(), settings.workload.name());
            return Err(RunError::NoTables { database, workload });
        }
        let layout = layout(&suited(settings, first.as_ref()));
        let prepared = match settings.host.map(Host::number) {
            None => db::prepare(&nodes, &layout),
            Some(1) => prepare_for_all(&nodes, &layout),
            Some(_) => Ok(()),
        };
        prepared.map_err(|(node, error)| at(node, error))?;
        let version = first.version().map_err(|error| at(0, error))?;
        // A node that does not answer would not say what it is.
        for (number, node) in nodes.iter().enumerate().skip(1) {
            node.version().map_err(|error| at(number, error))?;
        }
        let claim = first.claim(kind, nodes.len());
        if let Some(other) = nodes.iter().find(|node| node.name() != first.name()) {
            let (first, other) = (first.name().to_owned(), other.name().to_owned());
            return Err(RunError::DifferentDatabases { first, other });
        }
        Ok(Target { version, claim, nodes, tables: settings.tables(), trouble: None })
    }

    /// The name of its rows in the table of claims.
    pub fn name(&self) -> &str {
        self.nodes.first().map_or("", |node| node.name())
    }

    /// The isolation level in force, by the database's own name.
    pub fn isolation(&self) -> &str {
        self.nodes.first().map_or("", |node| node.isolation())
    }

    /// What the database did differently for the run, in words.
    pub fn remarks(&self) -> Vec<String> {
        let of_database = self.nodes.first().map_or_else(Vec::new, |node| node.remarks());
        of_database.into_iter().chain(self.tables.map(in_tables)).collect()
    }
}

/// That rows are no registers, in words.
fn in_tables(schema: Schema) -> String {
    let names: Vec<&str> = schema.tables().iter().map(|table| table.name).collect();
    let (application, names) = (schema.application(), names.join(", "));
    format!("rows are in SQL tables, called isolario_{application}_…: {names}")
}
