//! What can go wrong with a server.

use std::io;
use std::path::PathBuf;

/// Why a server could not be started, found or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A program is not installed.
    #[error("{program} is not installed: apt-get install {package}")]
    Missing {
        /// The program that was looked for.
        program: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A server as root needs an account without privileges, which its package creates.
    #[error("there is no user {name} on this machine: apt-get install {package}")]
    NoUser {
        /// The account.
        name: &'static str,
        /// The Debian package that creates it.
        package: &'static str,
    },
    /// A file or a process could not be handled.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was attempted.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A command that prepares a server failed.
    #[error("{program} failed:\n{output}")]
    Command {
        /// The program.
        program: PathBuf,
        /// What it printed.
        output: String,
    },
    /// A server ended while it was starting, or never answered.
    #[error("{node} {what}; the end of its log:\n{log}")]
    NotReady {
        /// The node.
        node: String,
        /// What happened instead.
        what: String,
        /// The last lines of its log.
        log: String,
        /// Whether it says there that one of its ports is taken.
        clash: bool,
    },
}

impl ServerError {
    /// Another process was quicker to take a port: worth another attempt, with other ports.
    pub(crate) fn is_port_clash(&self) -> bool {
        matches!(self, Self::NotReady { clash: true, .. })
    }
}

/// Names what was being done when the system refused.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, ServerError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, ServerError> {
        self.map_err(|source| ServerError::Io { doing: what(), source })
    }
}
