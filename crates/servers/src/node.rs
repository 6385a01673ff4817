//! One running server process.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::Signal;

use crate::ServerError;
use crate::error::Doing;
use crate::kinds::{Durability, Kind, NodePlan, Order, Stop};
use crate::launch::Lifetime;
use crate::ports::Ports;
use crate::process::{children, freeze, signal, signal_tree, wait_for_end};

/// How long a server may take to answer. Galera's nodes copy the state of others first, and the
/// machine may be very busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long a server may take to stop before it is killed.
const STOPPING: Duration = Duration::from_secs(5);

/// How much of a log goes into an error.
const LOG_LINES: usize = 20;

/// A server process; dropping it stops it.
pub(crate) struct Node {
    plan: NodePlan,
    log: PathBuf,
    lifetime: Lifetime,
    stop: Stop,
    child: Option<Child>,
}

/// Starts all nodes of a cluster and waits until they answer.
pub(crate) fn bring_up(
    kind: Kind,
    root: &Path,
    durability: Durability,
    ports: &mut Ports,
    detached: bool,
) -> Result<Vec<Node>, ServerError> {
    let plan = kind.plan(root, durability, ports)?;
    let mut nodes = Vec::with_capacity(plan.nodes.len());
    for plan_of_node in plan.nodes {
        let mut node = Node::new(plan_of_node, kind.stop(), root, detached);
        node.launch()?;
        if plan.order == Order::OneByOne {
            node.wait_until_ready()?;
            node.finish()?;
        }
        nodes.push(node);
    }
    // The nodes that came first may have been busy with those that came later.
    for node in &mut nodes {
        node.wait_until_ready()?;
    }
    if plan.order == Order::Together {
        nodes.iter().try_for_each(Node::finish)?;
    }
    Ok(nodes)
}

impl Node {
    fn new(plan: NodePlan, stop: Stop, root: &Path, detached: bool) -> Self {
        let lifetime = match detached {
            true => Lifetime::Detached,
            false => Lifetime::Ours(stop.at_once_name),
        };
        let log = root.join(format!("{}.log", plan.name));
        Self { plan, log, lifetime, stop, child: None }
    }

    pub(crate) fn url(&self) -> &str {
        &self.plan.url
    }

    pub(crate) fn port(&self) -> u16 {
        self.plan.port
    }

    pub(crate) fn encrypted_port(&self) -> u16 {
        self.plan.encrypted_port
    }

    /// The program it runs.
    pub(crate) fn program(&self) -> String {
        self.plan.launch.program().display().to_string()
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    fn launch(&mut self) -> Result<(), ServerError> {
        self.child = Some(self.plan.launch.start(self.lifetime, &self.log)?);
        Ok(())
    }

    fn wait_until_ready(&mut self) -> Result<(), ServerError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answers = self.plan.ready.holds();
            // Looked at afterwards: if it has ended, it was somebody else who answered.
            if let Some(child) = &mut self.child {
                let ended = child.try_wait().doing(|| format!("watch {}", self.plan.name))?;
                if let Some(status) = ended {
                    return Err(self.not_ready(format!("ended while starting ({status})")));
                }
            }
            if answers {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seconds = PATIENCE.as_secs();
                return Err(self.not_ready(format!("did not answer within {seconds} s")));
            }
            sleep(Duration::from_millis(50));
        }
    }

    fn finish(&self) -> Result<(), ServerError> {
        self.plan.after.iter().try_for_each(crate::launch::Launch::run)
    }

    fn not_ready(&self, what: String) -> ServerError {
        let log = String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned();
        ServerError::NotReady {
            node: self.plan.name.clone(),
            what,
            clash: tells_of_a_clash(&log),
            log: tail(&log),
        }
    }

    /// Stops it in its tracks.
    pub(crate) fn pause(&self) {
        if let Some(pid) = self.pid() {
            freeze(pid, PATIENCE);
        }
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        if let Some(pid) = self.pid() {
            signal_tree(pid, Signal::CONT);
        }
    }

    /// Ends it without any warning, as a power failure would, and all processes it has started: as
    /// long as one of them lives, PostgreSQL does not start again.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        freeze(child.id(), PATIENCE);
        let family = children(child.id());
        signal_tree(child.id(), Signal::KILL);
        child.wait()?;
        match family.into_iter().all(|pid| wait_for_end(pid, PATIENCE)) {
            true => Ok(()),
            false => Err(io::Error::other(format!("{} does not end", self.plan.name))),
        }
    }

    /// Starts a killed server again, with its data and on its port.
    pub(crate) fn restart(&mut self) -> Result<(), ServerError> {
        self.launch()?;
        self.wait_until_ready()
    }

    /// Lets the process go on without us.
    pub(crate) fn leave(mut self) -> Option<u32> {
        self.child.take().map(|child| child.id())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        signal(child.id(), self.stop.at_once);
        // A stopped process takes no signal but SIGKILL.
        signal_tree(child.id(), Signal::CONT);
        if !wait_for_end(child.id(), STOPPING) {
            signal_tree(child.id(), Signal::KILL);
        }
        // It has ended, and nothing is left to be done if the system says otherwise.
        let _ = child.wait();
    }
}

/// Whether somebody else has a port of this server, in its own words or those of Galera's helper.
fn tells_of_a_clash(log: &str) -> bool {
    let log = log.to_lowercase();
    log.contains("address already in use") || log.contains("has been taken by another program")
}

/// The last lines of a log.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default().join("\n")
}
