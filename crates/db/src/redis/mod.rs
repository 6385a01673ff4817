//! Redis: transactions by WATCH, MULTI and EXEC; conditional writes by a script.
//!
//! Reads watch their key first, writes wait, and EXEC runs them all at once, unless a watched key
//! has changed. The setting `plain` leaves all that away: GET and SET, as they come.

mod claims;
mod session;
mod wire;

use isolario_model::Level;
use isolario_workload::Kind;

use crate::database::{Connection, Database, Layout, Traits};
use crate::error::{DbError, Obstacle};
use crate::hold::{MarkStore, Marking};
use crate::registry::{Driver, Service, Settings};
use crate::remote::{OURS, Stage};
use crate::site::{Site, not_ours};
use crate::tls::Mode;
use crate::url::{Address, DbUrl};
use session::Session;
use wire::{Reply, Wire};

const PLAIN: &str = "plain";

const ISOLATIONS: &[&str] = &[PLAIN, "watch"];

pub(crate) const DRIVER: Driver = Driver {
    schemes: &["redis"],
    form: "redis://[[USER]:PASSWORD@]HOST[:PORT][/NUMBER]",
    about: "Redis",
    isolations: ISOLATIONS,
    claims: claims::CLAIMS,
    service: Service::Server(wire::PORT),
    open,
};

/// All our keys.
const PATTERN: &str = "isolario:*";
/// The key that says whose they are.
const OWNER: &str = "isolario:owner";

/// Counts what took effect, where that is asked for: nothing comes between it and the rest of a
/// transaction or a script, so that it numbers them in their order.
const COUNTER: &str = "isolario:counter";

/// The key that has the mark of the run.
const MARK: &str = "isolario-run";
/// Replaces the mark, if it is what is expected. No mark is an empty text.
const REPLACE_MARK: &str = "\
    if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end \
    if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end \
    return 1";

struct Redis {
    site: Site,
    /// Whether sessions count.
    evidence: bool,
}

fn open(url: &DbUrl, settings: &Settings) -> Result<Box<dyn Database>, DbError> {
    let site = Site::of(url, settings, ISOLATIONS, Mode::Disable, &[])?;
    Ok(Box::new(Redis { site, evidence: settings.evidence }))
}

impl Redis {
    fn wire(&self) -> Result<Wire, DbError> {
        self.log_in().map_err(|error| self.site.cannot_connect(error))
    }

    fn log_in(&self) -> Result<Wire, DbError> {
        let Address { user, password, path, .. } = &self.site.address;
        let mut wire = Wire::open(&self.site)?;
        if let Some(password) = password {
            match user.as_deref() {
                None | Some("") => wire.one(&["AUTH", password], Stage::Connect)?,
                Some(user) => wire.one(&["AUTH", user, password], Stage::Connect)?,
            };
        }
        if !path.is_empty() {
            let missing = |error: DbError| error.with_obstacle(Obstacle::NoDatabase);
            wire.one(&["SELECT", path], Stage::Connect).map_err(missing)?;
        }
        // A server that still loads its data, or wants a password, says so now.
        wire.one(&["EXISTS", OWNER], Stage::Connect)?;
        Ok(wire)
    }

    /// Removes our keys, all but the mark of ownership: that goes last.
    fn remove_keys(&self, wire: &mut Wire) -> Result<(), DbError> {
        let owner = wire.one(&["GET", OWNER], Stage::Connect)?.text()?;
        let mut cursor = "0".to_owned();
        loop {
            let scan = ["SCAN", &cursor, "MATCH", PATTERN, "COUNT", "1000"];
            let (next, keys) = page(wire.one(&scan, Stage::Connect)?)?;
            if !keys.is_empty() && owner.as_deref() != Some(OURS) {
                return Err(not_ours("keys of the form isolario:*", &self.site.place));
            }
            let ours = keys.iter().map(String::as_str).filter(|key| *key != OWNER);
            let remove: Vec<&str> = std::iter::once("DEL").chain(ours).collect();
            if remove.len() > 1 {
                wire.one(&remove, Stage::Connect)?;
            }
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }
}

/// The server's own name and version. Those that came from Redis, or only speak its protocol, still
/// tell the version of Redis that they stand for.
fn product(info: &str) -> String {
    let own = [
        ("Valkey", "valkey_version:"),
        ("Dragonfly", "dragonfly_version:df-v"),
        ("KeyDB", "keydb_version:"),
        ("Redis", "redis_version:"),
    ];
    let version = |mark: &str| info.lines().find_map(|line| line.strip_prefix(mark));
    let found = own.iter().find_map(|(name, mark)| Some(format!("{name} {}", version(mark)?)));
    found.unwrap_or_else(|| "Redis of unknown version".to_owned())
}

impl Database for Redis {
    fn name(&self) -> &str {
        "redis"
    }

    fn version(&self) -> Result<String, DbError> {
        let info = self.wire()?.one(&["INFO", "server"], Stage::Connect)?.text()?;
        Ok(product(info.as_deref().unwrap_or_default()))
    }

    fn prepare(&self, _: &Layout) -> Result<(), DbError> {
        let mut wire = self.wire()?;
        self.remove_keys(&mut wire)?;
        wire.one(&["SET", OWNER, OURS], Stage::Connect).map(|_| ())
    }

    fn clear(&self) -> Result<(), DbError> {
        let mut wire = self.wire()?;
        self.remove_keys(&mut wire)?;
        wire.one(&["DEL", OWNER], Stage::Connect).map(|_| ())
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        let is_plain = self.site.isolation == PLAIN;
        Ok(Box::new(Session::new(self.wire()?, is_plain, self.evidence)))
    }

    fn traits(&self) -> Traits<'_> {
        let isolation = self.site.isolation;
        Traits { isolation, workloads: &Kind::KEYED, new_keys: true, ..Traits::default() }
    }

    fn marking(&self) -> Marking<'_> {
        Marking::Separate(self)
    }

    /// Transactions and scripts run one after the other, and are counted.
    fn promised(&self, _: Kind) -> Option<Level> {
        let is_counted = self.evidence && self.site.isolation != PLAIN;
        is_counted.then_some(Level::StrictSerializable)
    }

    fn durability(&self) -> Option<String> {
        let mut wire = self.wire().ok()?;
        let mut setting = |name: &str| {
            let answer = wire.one(&["CONFIG", "GET", name], Stage::Connect).ok()?;
            let [_, value] = answer.array().ok()?;
            Some(format!("{name}={}", value.text().ok()??))
        };
        Some([setting("appendonly")?, setting("appendfsync")?].join(", "))
    }
}

impl MarkStore for Redis {
    fn read_mark(&self) -> Result<Option<String>, DbError> {
        self.wire()?.one(&["GET", MARK], Stage::Connect)?.text()
    }

    fn replace_mark(&self, old: Option<&str>, new: Option<&str>) -> Result<bool, DbError> {
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let script = ["EVAL", REPLACE_MARK, "1", MARK, old, new];
        Ok(matches!(self.wire()?.one(&script, Stage::Commit)?, Reply::Integer(1)))
    }
}

/// The answer to SCAN: where to go on, and some keys.
fn page(reply: Reply) -> Result<(String, Vec<String>), DbError> {
    let [cursor, keys] = reply.array::<2>()?;
    let keys = keys.list()?.into_iter().filter_map(|key| key.text().transpose());
    Ok((cursor.text()?.unwrap_or_default(), keys.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_called_by_their_own_names() {
        for (info, name) in [
            ("# Server\r\nredis_version:7.0.15\r\nos:Linux\r\n", "Redis 7.0.15"),
            (
                "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n",
                "Valkey 8.0.1",
            ),
            ("redis_version:7.4.0\r\ndragonfly_version:df-v1.20.1\r\n", "Dragonfly 1.20.1"),
            ("", "Redis of unknown version"),
        ] {
            assert_eq!(product(info), name);
        }
    }
}
