//! Servers that outlive the command that started them: `scripts/servers`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::error::Doing;
use crate::node::{Node, bring_up};
use crate::ports::{Ports, despite_clashes};
use crate::process::{command_line, is_running, signal, signal_tree, wait_for_end};
use crate::{Durability, Kind, ServerError};

/// How long a server may take to write everything and stop.
const STOPPING: Duration = Duration::from_secs(20);

/// The servers of a developer, each kind in a directory of its own.
pub struct DevServers {
    directory: PathBuf,
}

/// How to find a running node.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    pid: u32,
    /// The program, to tell the server from a later process with the same number.
    program: String,
    url: String,
}

impl DevServers {
    /// The servers below a directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Starts a server from scratch and returns its URLs; one that runs is left as it is.
    pub fn start(&self, kind: Kind, durability: Durability) -> Result<Vec<String>, ServerError> {
        if let Some(urls) = self.urls(kind)? {
            return Ok(urls);
        }
        despite_clashes(|| self.start_anew(kind, durability))
    }

    fn start_anew(&self, kind: Kind, durability: Durability) -> Result<Vec<String>, ServerError> {
        self.stop(kind)?;
        let root = self.root(kind);
        fs::create_dir_all(&root).doing(|| format!("create {}", root.display()))?;
        let root = root.canonicalize().doing(|| format!("find {}", root.display()))?;
        let nodes = bring_up(kind, &root, durability, &mut Ports::default(), true)?;
        let records: Vec<Record> = nodes.iter().filter_map(record).collect();
        // Written before the nodes are let go: without the file nobody would stop them.
        let text = serde_json::to_vec(&records).unwrap_or_default();
        let path = root.join("nodes.json");
        fs::write(&path, text).doing(|| format!("write {}", path.display()))?;
        for node in nodes {
            node.leave();
        }
        Ok(records.into_iter().map(|record| record.url).collect())
    }

    /// The URLs of a server, if all its nodes run.
    pub fn urls(&self, kind: Kind) -> Result<Option<Vec<String>>, ServerError> {
        let records = self.records(kind)?;
        let all = !records.is_empty() && records.iter().all(Record::runs);
        Ok(all.then(|| records.into_iter().map(|record| record.url).collect()))
    }

    /// Stops a server in good order, last node first, and removes its data. False: none ran.
    pub fn stop(&self, kind: Kind) -> Result<bool, ServerError> {
        let mut stopped = false;
        for record in self.records(kind)?.iter().rev().filter(|record| record.runs()) {
            signal(record.pid, kind.stop().orderly);
            signal_tree(record.pid, Signal::CONT);
            if !wait_for_end(record.pid, STOPPING) {
                signal_tree(record.pid, Signal::KILL);
            }
            stopped = true;
        }
        remove(&self.root(kind))?;
        Ok(stopped)
    }

    fn root(&self, kind: Kind) -> PathBuf {
        self.directory.join(kind.name())
    }

    fn records(&self, kind: Kind) -> Result<Vec<Record>, ServerError> {
        let path = self.root(kind).join("nodes.json");
        if !path.exists() {
            return Ok(Vec::new());
        }
        let doing = || format!("read {}", path.display());
        let text = fs::read(&path).doing(doing)?;
        serde_json::from_slice(&text).map_err(std::io::Error::other).doing(doing)
    }
}

impl Record {
    fn runs(&self) -> bool {
        is_running(self.pid)
            && command_line(self.pid).is_some_and(|line| line.contains(&self.program))
    }
}

fn record(node: &Node) -> Option<Record> {
    let pid = node.pid()?;
    Some(Record { pid, program: node.program(), url: node.url().to_owned() })
}

fn remove(root: &Path) -> Result<(), ServerError> {
    if root.exists() {
        fs::remove_dir_all(root).doing(|| format!("remove {}", root.display()))?;
    }
    Ok(())
}
