//! The simulated store as a database: for demonstrations, and to know the truth beforehand.
//!
//! `sim:LEVEL` gives at least that level. With `?anomaly=NAME` it still claims the level, and breaks
//! the promise in that way: see [`Defect`].

mod defect;
mod session;

use std::sync::{Arc, Mutex};

use isolario_model::{AnomalyKind, Level};
use isolario_sim::{Store, TableStore};
use isolario_workload::Kind;

use crate::claims::Claim;
use crate::database::{Connection, Database, Layout, Traits};
use crate::error::DbError;
use crate::hold::Marking;
use crate::locked::locked;
use crate::registry::{Driver, Service, Settings};
use crate::url::DbUrl;
use defect::{Defect, Leftovers};
use session::Session;

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["sim"],
    form: "sim:LEVEL[?anomaly=NAME]",
    about: "the simulated store, which gives a level, or claims it and shows an anomaly",
    isolations: &[],
    claims: &[],
    service: Service::Embedded,
    open,
};

struct Sim {
    claimed: Level,
    given: Level,
    defect: Option<Defect>,
    sessions: u32,
    shared: Arc<Mutex<State>>,
}

/// What all connections share.
struct State {
    store: Store,
    /// The store with a table, which knows nothing of the other one.
    table: TableStore,
    leftovers: Leftovers,
    /// Session numbers that no connection has.
    free: Vec<u32>,
}

impl State {
    fn new(given: Level, sessions: u32) -> State {
        State {
            store: Store::new(given, sessions),
            table: TableStore::new(given, sessions, None),
            leftovers: Leftovers::default(),
            free: (0..sessions).rev().collect(),
        }
    }
}

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let (name, parameters) = url.path_and_parameters()?;
    let claimed = find_level(name)?;
    if let Some(other) = settings.isolation.as_deref()
        && Level::find(other) != Some(claimed)
    {
        let message = format!("{url} sets the level {claimed}, but --isolation asks for {other}");
        return Err(DbError::fatal(message));
    }
    let mut anomaly = None;
    for (name, value) in parameters {
        match name.as_str() {
            "anomaly" => anomaly = Some(find_anomaly(&value)?),
            _ => return Err(DbError::fatal(format!("{url}: expected anomaly=NAME, found {name}"))),
        }
    }
    let (given, defect) = match anomaly {
        Some(anomaly) => Defect::of(anomaly, claimed)?,
        None => (claimed, None),
    };
    let sessions = settings.sessions;
    let shared = Arc::new(Mutex::new(State::new(given, sessions)));
    Ok(Box::new(Sim { claimed, given, defect, sessions, shared }))
}

fn find_level(name: &str) -> Result<Level, DbError> {
    Level::find(name).ok_or_else(|| {
        let names: Vec<_> = Level::all().map(Level::name).collect();
        DbError::fatal(format!("there is no level {name:?}: expected {}", names.join(", ")))
    })
}

fn find_anomaly(name: &str) -> Result<AnomalyKind, DbError> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['-', '_'], "");
    let wanted = plain(name);
    AnomalyKind::all()
        .find(|kind| plain(kind.name()) == wanted)
        .ok_or_else(|| DbError::fatal(format!("there is no anomaly {name:?}")))
}

impl Database for Sim {
    fn name(&self) -> &str {
        "sim"
    }

    /// Whoever opens it has a store of its own.
    fn marking(&self) -> Marking<'_> {
        Marking::NotNeeded
    }

    fn version(&self) -> Result<String, DbError> {
        Ok(format!("Simulated store {}", env!("CARGO_PKG_VERSION")))
    }

    fn traits(&self) -> Traits<'_> {
        let isolation = self.claimed.name();
        Traits { isolation, workloads: &Kind::ALL, new_keys: true, ..Traits::default() }
    }

    fn claim(&self, kind: Kind, _: usize) -> Claim {
        let level = match (self.claimed, kind) {
            (Level::StrictSerializable, Kind::Lwt) => Level::Linearizable,
            (Level::Linearizable, kind) if kind != Kind::Lwt => Level::StrictSerializable,
            (level, _) => level,
        };
        Claim { levels: vec![level], source: "the level that its URL names".to_owned() }
    }

    /// It keeps the order of its commits at the levels that are about an order.
    fn promised(&self, _: Kind) -> Option<Level> {
        match self.claimed {
            Level::Serializable | Level::StrictSerializable => Some(Level::Serializable),
            Level::SnapshotIsolation | Level::StrongSnapshotIsolation => {
                Some(Level::SnapshotIsolation)
            }
            _ => None,
        }
    }

    /// The defects of reads are those of registers.
    fn prepare(&self, layout: &Layout) -> Result<(), DbError> {
        if let (Kind::Predicate, Some(_)) = (layout.kind, self.defect) {
            return Err(DbError::fatal(
                "the simulated store cannot show this anomaly in a table: try LostUpdate or WriteSkew",
            ));
        }
        *locked(&self.shared) = State::new(self.given, self.sessions);
        Ok(())
    }

    fn clear(&self) -> Result<(), DbError> {
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        let number = locked(&self.shared).free.pop().ok_or_else(|| {
            DbError::fatal(format!("the simulated store is limited to {} sessions", self.sessions))
        })?;
        Ok(Box::new(Session::new(Arc::clone(&self.shared), number, self.defect)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Access;

    fn opened(text: &str) -> Result<Box<dyn Database>, DbError> {
        open(&DbUrl::parse(text).unwrap(), &Settings { sessions: 2, ..Settings::default() })
    }

    #[test]
    fn transactions_conflict_as_the_level_says() {
        let database = opened("sim:ser").unwrap();
        let mut one = database.connect().unwrap();
        let mut two = database.connect().unwrap();
        assert!(database.connect().is_err(), "two sessions, two connections");
        for connection in [&mut one, &mut two] {
            connection.begin(Access::Write).unwrap();
            assert_eq!(connection.read(1), Ok(None));
        }
        one.write(1, 5).unwrap();
        two.write(1, 6).unwrap();
        one.commit().unwrap();
        let error = two.commit().unwrap_err();
        assert_eq!(error.class, crate::ErrorClass::Retryable);
        two.rollback().unwrap();
        two.begin(Access::Write).unwrap();
        assert_eq!(two.read(1), Ok(Some(5)));
        drop(one);
        assert!(database.connect().is_ok(), "who leaves makes room");
    }

    #[test]
    fn lists_show_own_appends_last() {
        let database = opened("sim:sser").unwrap();
        let mut connection = database.connect().unwrap();
        for (element, expected) in [(7, vec![7]), (8, vec![7, 8])] {
            connection.begin(Access::Write).unwrap();
            connection.append(1, element).unwrap();
            let mut elements = Vec::new();
            connection.read_list(1, &mut elements).unwrap();
            assert_eq!(elements, expected);
            connection.commit().unwrap();
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let message = |text: &str| opened(text).err().unwrap().message;
        assert!(message("sim:chaos").starts_with("there is no level \"chaos\": expected read-"));
        assert_eq!(message("sim:si?anomaly=chaos"), "there is no anomaly \"chaos\"");
        assert_eq!(
            message("sim:si?level=ser"),
            "sim:si?level=ser: expected anomaly=NAME, found level"
        );
        assert_eq!(
            message("sim:si?anomaly=write-skew"),
            "snapshot-isolation does not forbid WriteSkew: choose a stronger level"
        );
        assert!(message("sim:ser?anomaly=phantom").starts_with("the simulated store cannot show"));
    }
}
