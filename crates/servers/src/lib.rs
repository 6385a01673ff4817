//! Real database servers, for tests and for developers.
//!
//! [`Servers::start`] starts a server (or a cluster of them) in a temporary directory, on free
//! loopback ports, and returns once it answers. Dropping the value stops it and removes the
//! directory. If the process dies before that, the servers die with it.
//!
//! ```no_run
//! use isolario_servers::{Durability, Kind, Servers};
//!
//! let servers = Servers::start(Kind::Postgres, Durability::Fast)?;
//! println!("{}", servers.urls()[0]); // postgres://postgres@127.0.0.1:34567/isolario
//! # Ok::<(), isolario_servers::ServerError>(())
//! ```
//!
//! A test makes trouble through the same value: [`Servers::kill`], [`Servers::pause`] and
//! [`Servers::restart`].
//!
//! `scripts/servers` is the same code for use by hand: its servers outlive the command, and a file
//! in their directory says how to find and stop them.

mod certificate;
mod dev_servers;
mod error;
mod kinds;
mod launch;
mod node;
mod ports;
mod process;
mod programs;
mod ready;
mod servers;
mod user;

pub use dev_servers::DevServers;
pub use error::ServerError;
pub use kinds::{Durability, Kind};
pub use servers::Servers;

/// The account that has a password, where a server has accounts. Everyone else on the loopback
/// interface gets in without.
pub const ACCOUNT: &str = "isolario";

/// The password of [`ACCOUNT`].
pub const PASSWORD: &str = "rialto";
