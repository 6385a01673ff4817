//! Servers that live as long as a value.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::Doing;
use crate::node::{Node, bring_up};
use crate::ports::{Ports, despite_clashes};
use crate::{Durability, Kind, ServerError, certificate};

/// A running server or cluster in a temporary directory; dropping it stops it.
pub struct Servers {
    // In reverse order of starting, since fields and elements are dropped front to back and the
    // first node of a cluster should stop last. The directory goes after them.
    nodes: Vec<Node>,
    urls: Vec<String>,
    directory: TempDir,
    /// Held for servers that are killed and come back.
    _ports: Ports,
}

impl Servers {
    /// Starts a server and waits until it answers.
    pub fn start(kind: Kind, durability: Durability) -> Result<Self, ServerError> {
        despite_clashes(|| Self::try_start(kind, durability))
    }

    fn try_start(kind: Kind, durability: Durability) -> Result<Self, ServerError> {
        let doing = || "make a temporary directory".to_owned();
        let directory =
            tempfile::Builder::new().prefix("isolario-servers-").tempdir().doing(doing)?;
        // The accounts of servers must be able to reach their data below it.
        set_permissions(directory.path(), Permissions::from_mode(0o755)).doing(doing)?;
        let mut ports = Ports::default();
        let mut nodes = bring_up(kind, directory.path(), durability, &mut ports, false)?;
        let urls = nodes.iter().map(|node| node.url().to_owned()).collect();
        nodes.reverse();
        Ok(Self { nodes, urls, directory, _ports: ports })
    }

    /// The URL of every node.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// The URL of the first node.
    pub fn url(&self) -> &str {
        self.urls.first().map_or("", String::as_str)
    }

    /// The loopback port on which the first node serves its clients.
    pub fn port(&self) -> u16 {
        self.nodes.last().map_or(0, Node::port)
    }

    /// The loopback port on which the first node serves clients that want encryption.
    pub fn encrypted_port(&self) -> u16 {
        self.nodes.last().map_or(0, Node::encrypted_port)
    }

    /// The certificate that it shows to them, as all nodes do.
    pub fn certificate(&self) -> PathBuf {
        self.directory.path().join(certificate::NAME)
    }

    /// Where its files are: what a test changes there is in force after a [restart](Servers::restart).
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The process ids of all nodes that run.
    pub fn pids(&self) -> Vec<u32> {
        self.nodes.iter().rev().filter_map(Node::pid).collect()
    }

    /// Kills every node, with all its processes, by `SIGKILL`.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        self.nodes
            .iter_mut()
            .try_for_each(|node| node.kill().doing(|| "wait for a killed server".to_owned()))
    }

    /// Starts killed servers again, with their data and on their ports. (Not for Galera, whose
    /// nodes have to find out first which of them knows most.)
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.nodes.iter_mut().rev().try_for_each(Node::restart)
    }

    /// Stops every node in its tracks: connections stay open, and nothing answers.
    pub fn pause(&self) {
        self.nodes.iter().for_each(Node::pause);
    }

    /// Lets paused servers go on.
    pub fn resume(&self) {
        self.nodes.iter().for_each(Node::resume);
    }
}
