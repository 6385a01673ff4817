//! The database of a run: opened, asked who it is, and made ready.

use std::borrow::Cow;
use std::sync::Arc;

use isolario_db::{self as db, Claim, Database, DbError, DbUrl, Hold, Layout, SharedNodes};
use isolario_model::Level;
use isolario_workload::{Schema, Workload};

use super::error::RunError;
use super::faults::{Faults, FaultyServer, Trouble};
use super::host::prepare_for_all;
use super::settings::Settings;

/// What is claimed where the server ends in between. Who claims snapshots takes them of what is committed
/// by then; a fault is no excuse for an older one. Strict serializability would ask for more than that: the
/// order of transactions that do not meet, which serializable databases need not keep.
pub(super) fn in_real_time(claim: Claim) -> Claim {
    let Claim { mut levels, source: words } = claim;
    let implies = |wanted: Level| levels.iter().any(|level| level.implies(wanted));
    if implies(Level::SnapshotIsolation) && !implies(Level::StrongSnapshotIsolation) {
        levels.push(Level::StrongSnapshotIsolation);
    }
    Claim { levels, source: words }
}

/// What a run needs room for.
pub(super) fn layout(settings: &Settings) -> Layout {
    let layout = Layout::new(settings.workload.kind, settings.unused_keys().end as u32)
        .with_value_size(settings.value_size);
    match settings.to_be_killed {
        Some(run) => layout.with_run(run.wrapping_add(settings.seed)),
        None => layout,
    }
}

/// The settings of a run on this database: it may not take keys that begin absent, or need some unused keys
/// before these.
pub(super) fn suited<'s>(settings: &'s Settings, database: &dyn Database) -> Cow<'s, Settings> {
    if settings.workload.standing_keys() == settings.workload.keys {
        return Cow::Borrowed(settings);
    }
    if database.traits().new_keys {
        let unused_keys = database.traits().unused_keys;
        return Cow::Owned(Settings { unused_keys, ..settings.clone() });
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

/// Refuses faults of a server for databases that have none, or that another server than the one to be started
/// serves.
fn refuse_others(
    faults: &Faults,
    urls: &[DbUrl],
    nodes: &[Box<dyn Database>],
) -> Result<(), RunError> {
    let Some(fault) = faults.of_server() else { return Ok(()) };
    if let Some(url) = urls.iter().find(|url| db::is_embedded(url)) {
        return Err(RunError::Embedded { fault: fault.name(), url: url.clone() });
    }
    let is_ours = |url: &DbUrl, node: &dyn Database| {
        !db::names_server(url) || node.version().is_err_and(|error| error.code.is_none())
    };
    let is_started = matches!(faults.server, Some(FaultyServer::Started(_)));
    let mut all = urls.iter().zip(nodes);
    match urls.first() {
        Some(url) if is_started && !all.any(|(url, node)| is_ours(url, node.as_ref())) => {
            Err(RunError::Server(format!("another server already answers at {url}")))
        }
        _ => Ok(()),
    }
}

/// Takes the database and makes room for the workload. Of several hosts, the first does.
fn prepared(nodes: &SharedNodes, settings: &Settings) -> Result<Option<Hold>, (usize, DbError)> {
    let settings = &*suited(settings, nodes[0].as_ref());
    let group = settings.host.map(|host| host.group(settings));
    if settings.host.is_some_and(|host| host.number() > 1) {
        return Ok(None);
    }
    let hold = Hold::take(nodes, group)?;
    let room = hold.room(&layout(settings));
    match settings.host {
        None => db::prepare(nodes, &room)?,
        Some(_) => prepare_for_all(nodes, &room)?,
    }
    hold.mark_data(&room);
    Ok(Some(hold))
}

/// The database of a run.
#[non_exhaustive]
pub struct RunTarget {
    /// The hold on the database. Of one of several hosts but the first, there is none before all of them are there.
    pub(super) hold: Option<Hold>,
    /// Its nodes.
    pub nodes: SharedNodes,
    /// The product and its version, as the database itself tells.
    pub version: String,
    /// What it claims for the workload.
    pub claim: Claim,
    /// The application whose rows are in SQL tables of their own.
    pub(super) tables: Option<Schema>,
    /// The faults that the run is to have.
    pub(super) trouble: Option<Trouble>,
}

impl RunTarget {
    /// Opens the databases of the settings' URLs and makes room for the workload.
    pub fn open(settings: &Settings) -> Result<RunTarget, RunError> {
        let asked = asked_of(settings);
        let open = |url: &DbUrl| db::open(url, &asked).map_err(RunError::Open);
        let opened = |urls: &[DbUrl]| urls.iter().map(open).collect::<Result<Vec<_>, _>>();
        let Some(faults) = &settings.faults else {
            return RunTarget::of(opened(&settings.urls)?, settings);
        };
        // No server is started for databases that cannot be, or that are there already.
        refuse_others(faults, &settings.urls, &opened(&settings.urls)?)?;
        let (trouble, urls) = Trouble::start(faults, &settings.urls)?;
        let nodes = opened(&urls)?;
        for (node, url) in nodes.iter().zip(&settings.urls) {
            trouble.wait_for(url, || node.version())?;
        }
        let target = RunTarget::of(nodes, settings)?;
        let claim = if trouble.is_of_server() { in_real_time(target.claim) } else { target.claim };
        Ok(RunTarget { trouble: Some(trouble), claim, ..target })
    }

    /// Makes room for the workload in a database of one's own, given by its nodes.
    pub fn of(nodes: Vec<Box<dyn Database>>, settings: &Settings) -> Result<RunTarget, RunError> {
        let first = nodes.first().ok_or(RunError::Nothing("databases"))?;
        let at = |node: usize, error: DbError| RunError::Database {
            url: settings.urls.get(node).cloned(),
            error,
        };
        let kind = settings.workload.kind;
        if !first.traits().workloads.contains(&kind) {
            return Err(RunError::Unsupported { database: first.name().to_owned(), kind });
        }
        if settings.sql_tables && !(first.traits().tables && settings.tables().is_some()) {
            let (database, workload) = (first.name().to_owned(), settings.workload.name());
            return Err(RunError::NoTables { database, workload });
        }
        if settings.value_size > 0 && !first.traits().value_sizes {
            return Err(RunError::NoValueSizes { database: first.name().to_owned() });
        }
        let nodes = Arc::new(nodes);
        let hold = prepared(&nodes, settings).map_err(|(node, error)| at(node, error))?;
        let first = &nodes[0];
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
        Ok(RunTarget { hold, version, claim, nodes, tables: settings.tables(), trouble: None })
    }

    /// Whether another run uses the database, too, and this one may as well stop.
    pub(super) fn is_lost(&self) -> bool {
        self.hold.as_ref().is_some_and(Hold::is_lost)
    }

    /// Makes sure that no other run used the database meanwhile; see [`Hold::confirm`].
    pub(super) fn confirm(&self, may_have_lost: bool, url: Option<&DbUrl>) -> Result<(), RunError> {
        let confirmed = self.hold.as_ref().map_or(Ok(()), |hold| hold.confirm(may_have_lost));
        confirmed.map_err(|error| RunError::Database { url: url.cloned(), error })
    }

    /// The name of its rows in the table of claims.
    pub fn name(&self) -> &str {
        self.nodes.first().map_or("", |node| node.name())
    }

    /// The isolation level in force, by the database's own name.
    pub fn isolation(&self) -> &str {
        self.nodes.first().map_or("", |node| node.traits().isolation)
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
