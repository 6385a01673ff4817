//! The database of a run: opened, asked who it is, and made ready.

use isolario::db::{self, Claim, DRIVERS, Database, DbError, DbUrl, Layout, Obstacle};

use super::settings::Run;
use crate::console::Console;
use crate::failure::Failure;

pub(super) struct Target {
    pub(super) nodes: Vec<Box<dyn Database>>,
    pub(super) version: String,
    pub(super) claim: Claim,
}

impl Target {
    pub(super) fn open(run: &Run) -> Result<Target, Failure> {
        let opened = run
            .urls
            .iter()
            .map(|url| db::open(url, &run.settings).map_err(|error| Failure::new(error.message)));
        let nodes: Vec<Box<dyn Database>> = opened.collect::<Result<_, _>>()?;
        let first = nodes.first().ok_or_else(|| Failure::new("there is no database"))?;
        let at = |error: DbError| failed(&run.urls[0], &error);
        let kind = run.workload.kind;
        if !first.supports(kind) {
            let name = first.name();
            return Err(Failure::new(format!("{name} cannot run the {kind} workload"))
                .with_hint("choose another one with --workload"));
        }
        first.prepare(&Layout::new(kind, run.workload.keys)).map_err(at)?;
        let version = first.version().map_err(at)?;
        // A node that does not answer would not say what it is.
        for (node, url) in nodes.iter().zip(&run.urls).skip(1) {
            node.version().map_err(|error| failed(url, &error))?;
        }
        let claim = first.claim(kind, nodes.len());
        if let Some(other) = nodes.iter().find(|node| node.name() != first.name()) {
            let message =
                format!("{} and {} are no nodes of one database", first.name(), other.name());
            return Err(Failure::new(message).with_hint("run against one of them at a time"));
        }
        Ok(Target { version, claim, nodes })
    }

    pub(super) fn name(&self) -> &str {
        self.nodes.first().map_or("", |node| node.name())
    }

    pub(super) fn isolation(&self) -> &str {
        self.nodes.first().map_or("", |node| node.isolation())
    }

    /// Says what is going to be stressed, and what it claims.
    pub(super) fn announce(&self, console: &mut Console) {
        let Target { version, claim, nodes } = self;
        let nodes = match nodes.len() {
            1 => String::new(),
            count => format!(", {count} nodes"),
        };
        let levels: Vec<_> = claim.levels.iter().map(|level| level.name()).collect();
        let claims = match levels.is_empty() {
            true => "claims nothing".to_owned(),
            false => format!("claims {}", levels.join(" and ")),
        };
        console.info(&format!(
            "{version}{nodes}, {}: {claims} ({})",
            self.isolation(),
            claim.words
        ));
    }
}

/// A database that does not do what it was asked for.
pub(super) fn failed(url: &DbUrl, error: &DbError) -> Failure {
    let (place, words) = (url.to_string(), error.to_string());
    let named = words.contains(&place);
    let failure = Failure::new(if named { words } else { format!("{place}: {words}") });
    match error.obstacle.and_then(|obstacle| remedy(obstacle, url)) {
        Some(remedy) => failure.with_hint(remedy),
        None => failure,
    }
}

/// What to do about what stands in the way of a connection.
fn remedy(obstacle: Obstacle, url: &DbUrl) -> Option<String> {
    let form = DRIVERS.iter().find(|driver| driver.schemes.contains(&url.scheme()))?.form;
    match obstacle {
        Obstacle::Unreachable => {
            let scheme = url.scheme();
            let secret = match url.rest().contains("sslmode=") {
                true => ", encrypted as sslmode says",
                false => "",
            };
            Some(format!(
                "is there a server at that host and port, and does it speak {scheme}{secret}?"
            ))
        }
        Obstacle::Login => Some(format!(
            "user and password go into the URL: {form}; percent-encode what is special: p%40ss"
        )),
        Obstacle::NoDatabase => Some(format!("create it, or name another one: {form}")),
        Obstacle::Certificate => Some(
            "?sslrootcert=FILE names the certificates to trust; ?sslmode=require trusts any"
                .to_owned(),
        ),
        Obstacle::Full => {
            Some("every session has a connection: take fewer with --sessions N".to_owned())
        }
        _ => None,
    }
}
