//! The mark of a run: which run, and how to tell whether it is alive.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{LazyLock, Mutex};

use crate::locked::locked;

/// What every mark begins with.
const OURS: &str = "made by isolario: ";

/// The holds of this process. A mark of this process that is none of them is left over.
static LIVE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// The number of a run. The operating system's random numbers make it unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(pub(super) u64);

impl Id {
    pub(super) fn new() -> Id {
        let id = RandomState::new().build_hasher().finish();
        locked(&LIVE).insert(id);
        Id(id)
    }

    /// The run of this number is over.
    pub(super) fn retire(self) {
        locked(&LIVE).remove(&self.0);
    }

    fn is_live(self) -> bool {
        locked(&LIVE).contains(&self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The mark of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) id: Id,
    /// Counted up as long as the run lives.
    pub(super) beat: u64,
    process: Process,
    /// Which run on several hosts it is, if it is one.
    pub(super) group: Option<u64>,
}

impl Mark {
    /// The first mark of a run of this process.
    pub(super) fn of_this_process(id: Id, group: Option<u64>) -> Mark {
        Mark { id, beat: 0, process: THIS.clone(), group }
    }

    /// The next mark of the same run.
    pub(super) fn renewed(&self) -> Mark {
        Mark { beat: self.beat + 1, ..self.clone() }
    }

    /// Reads a mark that was [written](fmt::Display).
    pub(super) fn parse(text: &str) -> Option<Mark> {
        let mut words = text.strip_prefix(OURS)?.split(' ');
        let mut after = |name: &str| {
            let word = words.next().filter(|word| *word == name).and_then(|_| words.next());
            word.map(|word| word.trim_end_matches(',').to_owned())
        };
        let id = Id(u64::from_str_radix(&after("run")?, 16).ok()?);
        let beat = after("beat")?.parse().ok()?;
        let (process, machine) = (after("process")?, after("on")?);
        let (pid, started) = process.split_once('.')?;
        let process = Process {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
            machine: Some(machine).filter(|machine| machine != UNKNOWN),
        };
        let group = match after("hosts") {
            Some(group) => Some(u64::from_str_radix(&group, 16).ok()?),
            None => None,
        };
        Some(Mark { id, beat, process, group })
    }

    /// Whether its process is known to have ended. What processes other machines have, nobody here knows.
    pub(super) fn is_of_dead_process(&self) -> bool {
        let Process { pid, machine, .. } = &self.process;
        if machine.is_none() || *machine != THIS.machine {
            return false;
        }
        if self.process == *THIS {
            return !self.id.is_live();
        }
        started(*pid).is_none_or(|started| started != self.process.started)
    }

    /// The run, for a message.
    pub(super) fn in_words(&self) -> String {
        let Process { pid, machine, .. } = &self.process;
        let place = match machine {
            Some(_) if *machine == THIS.machine => "this machine",
            _ => "another machine",
        };
        format!("run {}, process {pid} of {place}", self.id)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mark { id, beat, process: Process { pid, started, machine }, group } = self;
        let machine = machine.as_deref().unwrap_or(UNKNOWN);
        write!(f, "{OURS}run {id}, beat {beat}, process {pid}.{started} on {machine}")?;
        match group {
            Some(group) => write!(f, ", hosts {group:x}"),
            None => Ok(()),
        }
    }
}

const UNKNOWN: &str = "?";

/// A process, told apart from all others that had its number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    /// When it started, by the clock of its kernel.
    started: u64,
    /// The kernel and the namespace in which its number means something, where that is known.
    machine: Option<String>,
}

/// This process.
static THIS: LazyLock<Process> = LazyLock::new(|| {
    let pid = std::process::id();
    Process { pid, started: started(pid).unwrap_or(0), machine: machine() }
});

/// Linux's number of its boot, and that of the namespace of process numbers.
fn machine() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let digits = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    Some(format!("{}.{}", digits(&boot), digits(namespace.to_str()?)))
}

/// When a process started, if there is one that has not ended: `PID (NAME) STATE PARENT …`, where NAME may hold
/// anything.
fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}
