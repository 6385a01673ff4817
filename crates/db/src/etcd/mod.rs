//! etcd, over its HTTP gateway: transactions of our own making.
//!
//! etcd has no transactions that stay open, but one atomic step: compare, then change. So reads go
//! to the server one by one and remember the revision of what they saw, writes wait, and the
//! commit is one step: if no key that was read has changed since, change what was written.

mod claims;
mod gateway;
mod session;

use isolario_model::Level;
use isolario_workload::Kind;
use serde_json::json;

use crate::database::{Connection, Database, Layout, Traits};
use crate::error::DbError;
use crate::hold::{MarkStore, Marking};
use crate::registry::{Driver, Service, Settings};
use crate::remote::{OURS, Stage};
use crate::site::{Site, not_ours};
use crate::tls::Mode;
use crate::url::DbUrl;
use gateway::{Gateway, entry, has_succeeded, text};

/// Reads from one member, as old as they may be; etcd's own word for them is "serializable".
const STALE: &str = "serializable-reads";

const ISOLATIONS: &[&str] = &[STALE, "linearizable-reads"];

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["etcd"],
    form: "etcd://[USER:PASSWORD@]HOST[:PORT]",
    about: "etcd; a cluster by the URLs of its members",
    isolations: ISOLATIONS,
    claims: claims::CLAIMS,
    service: Service::Server(gateway::PORT),
    open,
};

/// All our keys begin like this.
const PREFIX: &str = "isolario/";
/// The first key that does not.
const AFTER_PREFIX: &str = "isolario0";
/// The key that says whose they are.
const OWNER: &str = "isolario/owner";

/// The key that has the mark of the run.
const MARK: &str = "isolario-run";

struct Etcd(Site);

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let site = Site::of(url, settings, ISOLATIONS, Mode::Disable, &[])?;
    match site.address.path.as_str() {
        "" => Ok(Box::new(Etcd(site))),
        path => Err(DbError::fatal(format!("{url}: etcd has no databases, so omit /{path}"))),
    }
}

impl Etcd {
    /// A way to the server, which has shown that it leads there. A member that has answered a
    /// linearizable read knows all that was there before: even its stale reads will not show what
    /// an earlier run left.
    fn gateway(&self) -> Result<Gateway, DbError> {
        let opened = Gateway::open(&self.0).and_then(|gateway| {
            gateway.read(OWNER, false, Stage::Connect)?;
            Ok(gateway)
        });
        opened.map_err(|error| self.0.cannot_connect(error))
    }

    /// Removes what an earlier run left.
    fn remove_keys(&self, gateway: &Gateway) -> Result<(), DbError> {
        let all = json!({"key": text(PREFIX), "range_end": text(AFTER_PREFIX), "limit": 1});
        let theirs = gateway.ask("kv/range", &all, Stage::Connect)?;
        let owner = entry(&gateway.read(OWNER, false, Stage::Connect)?)?;
        if theirs["kvs"].get(0).is_some() && owner.is_none_or(|(owner, _)| owner != OURS) {
            return Err(not_ours(&format!("keys under {PREFIX}"), &self.0.place));
        }
        let all = json!({"key": text(PREFIX), "range_end": text(AFTER_PREFIX)});
        gateway.tell("kv/deleterange", &all)
    }
}

impl Database for Etcd {
    fn name(&self) -> &str {
        "etcd"
    }

    fn version(&self) -> Result<String, DbError> {
        Ok(format!("etcd {}", self.gateway()?.version()?))
    }

    fn prepare(&self, _: &Layout) -> Result<(), DbError> {
        let gateway = self.gateway()?;
        self.remove_keys(&gateway)?;
        gateway.tell("kv/put", &json!({"key": text(OWNER), "value": text(OURS)}))
    }

    fn clear(&self) -> Result<(), DbError> {
        self.remove_keys(&self.gateway()?)
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(session::Session::new(self.gateway()?, self.0.isolation == STALE)))
    }

    fn traits(&self) -> Traits<'_> {
        let isolation = self.0.isolation;
        Traits { isolation, workloads: &Kind::KEYED, new_keys: true, ..Traits::default() }
    }

    fn marking(&self) -> Marking<'_> {
        Marking::Separate(self)
    }

    /// Revisions number all changes, and every answer has the revision that it is about. Of single
    /// operations, strict serializability is linearizability.
    fn promised(&self, _: Kind) -> Option<Level> {
        (self.0.isolation != STALE).then_some(Level::StrictSerializable)
    }
}

impl MarkStore for Etcd {
    fn read_mark(&self) -> Result<Option<String>, DbError> {
        let found = entry(&self.gateway()?.read(MARK, false, Stage::Connect)?)?;
        Ok(found.map(|(mark, _)| mark))
    }

    fn replace_mark(&self, old: Option<&str>, new: Option<&str>) -> Result<bool, DbError> {
        let key = text(MARK);
        let compare = match old {
            Some(old) => json!({"key": key, "target": "VALUE", "value": text(old)}),
            None => json!({"key": key, "target": "CREATE", "create_revision": 0}),
        };
        let change = match new {
            Some(new) => json!({"request_put": {"key": key, "value": text(new)}}),
            None => json!({"request_delete_range": {"key": key}}),
        };
        let step = json!({"compare": [compare], "success": [change]});
        Ok(has_succeeded(&self.gateway()?.ask("kv/txn", &step, Stage::Commit)?))
    }
}
