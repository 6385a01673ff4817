//! etcd, over its HTTP gateway: transactions of our own making.
//!
//! etcd has no transactions that stay open, but one atomic step: compare, then change. So reads go
//! to the server one by one and remember the revision of what they saw, writes wait, and the
//! commit is one step: if no key that was read has changed since, change what was written.

mod gateway;
mod session;

use std::time::Duration;

use isolario_workload::Kind;
use serde_json::json;

use crate::database::{Connection, Database, Layout};
use crate::error::DbError;
use crate::registry::{Driver, Settings};
use crate::remote::{OURS, Stage, cannot_connect, not_ours};
use crate::tls::{Mode, Tls};
use crate::url::{Address, DbUrl};
use gateway::{Found, Gateway, text};

/// Reads from one member, as old as they may be; etcd's own word for them is "serializable".
const STALE: &str = "serializable-reads";

const ISOLATIONS: &[&str] = &[STALE, "linearizable-reads"];

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["etcd"],
    form: "etcd://[USER:PASSWORD@]HOST[:PORT]",
    about: "etcd; a cluster by the URLs of its members",
    isolations: ISOLATIONS,
    open,
};

/// All our keys begin like this.
const PREFIX: &str = "isolario/";
/// The first key that does not.
const AFTER_PREFIX: &str = "isolario0";
/// The key that says whose they are.
const OWNER: &str = "isolario/owner";

struct Etcd {
    address: Address,
    tls: Tls,
    place: String,
    isolation: &'static str,
    patience: Duration,
}

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let isolation = settings.isolation_of(ISOLATIONS)?;
    let address = url.address()?;
    let tls = Tls::of(&address, Mode::Disable)?;
    let (place, patience) = (url.to_string(), settings.statement_timeout);
    Ok(Box::new(Etcd { address, tls, place, isolation, patience }))
}

impl Etcd {
    fn gateway(&self) -> Result<Gateway, DbError> {
        Gateway::open(&self.address, &self.tls, self.patience)
            .map_err(|error| cannot_connect(&self.place, error))
    }
}

impl Database for Etcd {
    fn name(&self) -> &str {
        "etcd"
    }

    fn version(&self) -> Result<String, DbError> {
        let version = self.gateway()?.version();
        Ok(format!("etcd {}", version.map_err(|error| cannot_connect(&self.place, error))?))
    }

    fn isolation(&self) -> &str {
        self.isolation
    }

    fn supports(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Mini | Kind::General | Kind::Append | Kind::Lwt)
    }

    fn prepare(&self, _: &Layout) -> Result<(), DbError> {
        let gateway = self.gateway()?;
        let all = json!({"key": text(PREFIX), "range_end": text(AFTER_PREFIX), "limit": 1});
        let theirs: Found = gateway.ask("kv/range", &all, Stage::Connect)?;
        let owner = gateway.read(OWNER, false, Stage::Connect)?;
        if !theirs.kvs.is_empty() && owner.is_none_or(|owner| owner.value != OURS) {
            return Err(not_ours(&format!("keys under {PREFIX}"), &self.place));
        }
        let all = json!({"key": text(PREFIX), "range_end": text(AFTER_PREFIX)});
        gateway.tell("kv/deleterange", &all)?;
        gateway.tell("kv/put", &json!({"key": text(OWNER), "value": text(OURS)}))
    }

    /// A member that has answered a linearizable read knows all that was there before: even its
    /// stale reads will not show what an earlier run left.
    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        let gateway = self.gateway()?;
        gateway
            .read(OWNER, false, Stage::Connect)
            .map_err(|error| cannot_connect(&self.place, error))?;
        Ok(Box::new(session::Session::new(gateway, self.isolation == STALE)))
    }
}
