//! One run at a time: the mark of the run that uses a database.
//!
//! A run takes a database before it makes its tables, by writing its [`Mark`] there in one atomic step, and counts
//! up a number in the mark every second. A command that finds the mark of another run does not touch the
//! database while that number changes, or while the process that is named in the mark lives. When a run is
//! over, its mark is removed. A run that was killed leaves its mark, which the next run replaces: immediately, if the
//! process was one of the same machine; otherwise once the number has not changed for [`LEASE`].
//!
//! Before a run trusts what it recorded, it [confirms](Hold::confirm) that the mark is still its own. A run that was
//! suspended for longer than the lease may have lost the database to another one.
//!
//! Where the mark is, a database says by its [`Marking`]. Servers and files have a place of their own for it. A
//! driver or a database of your own keeps it among the data of the run, by ordinary operations, and without any
//! code: nothing keeps a second run out there, but both notice and neither of them gives a verdict.

mod data;
mod mark;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::database::{Database, Layout, first_and_followers};
use crate::error::{DbError, ErrorClass, Obstacle};
use crate::locked::locked;
use data::DataMark;
use mark::{Id, Mark};

/// The nodes of a database, which a run and its hold share.
pub type SharedNodes = Arc<Vec<Box<dyn Database>>>;

/// How runs that use one database at the same time notice each other.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Marking<'d> {
    /// The database has a place for the mark that no run replaces by preparing.
    Separate(&'d dyn MarkStore),
    /// The mark is a register or a list of the run, next to those of the workload.
    InData,
    /// Runs share nothing: each has its own keys, or its own database.
    NotNeeded,
}

/// A place for the mark of the run that uses a database.
pub trait MarkStore {
    /// Reads the mark.
    fn read_mark(&self) -> Result<Option<String>, DbError>;

    /// Replaces the mark in one atomic step, if it is what is expected, and returns whether it did.
    fn replace_mark(&self, old: Option<&str>, new: Option<&str>) -> Result<bool, DbError>;
}

/// How often the mark is renewed.
const BEAT: Duration = Duration::from_secs(1);
/// How often the mark is checked where it is among the data.
const DATA_BEAT: Duration = Duration::from_millis(250);
/// A mark that is not renewed for this long belongs to a run that is dead.
pub const LEASE: Duration = Duration::from_secs(10);
/// How often a mark is polled that belongs to another run.
const POLL: Duration = Duration::from_millis(200);
/// How long taking the mark is tried against errors that pass.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where the mark is among the data, another run has noticed ours after this long.
const SETTLING: Duration = Duration::from_secs(1);

/// The hold of a run on a database. The mark is renewed until the value is dropped, and then removed.
pub struct Hold {
    shared: Arc<Shared>,
    beats: Option<JoinHandle<()>>,
}

struct Shared {
    id: Id,
    /// Where the mark is.
    location: MarkLocation,
    state: Mutex<State>,
    /// Whether another run's mark was found in place of ours.
    is_lost: AtomicBool,
    /// Ends the thread that renews the mark.
    over: Condvar,
}

enum MarkLocation {
    /// Nowhere.
    None,
    /// In a place of its own.
    Separate(Keeper),
    /// Among the data.
    Data(SharedNodes),
}

/// A node that keeps the mark.
struct Keeper {
    nodes: SharedNodes,
    node: usize,
    /// Whether this run wrote the mark, or joined one that did.
    is_ours: bool,
}

/// The place for the mark of a node.
fn store(node: &dyn Database) -> Result<&dyn MarkStore, DbError> {
    match node.marking() {
        Marking::Separate(store) => Ok(store),
        _ => Err(DbError::unsupported("mark that a run uses it")),
    }
}

impl Keeper {
    fn store(&self) -> Result<&dyn MarkStore, DbError> {
        store(self.nodes[self.node].as_ref())
    }
}

#[derive(Default)]
struct State {
    /// The mark as it was last written.
    mark: Option<Mark>,
    /// The mark among the data, once it was written.
    data: Option<DataMark>,
    /// Another run's mark was found in place of ours.
    strange: Option<String>,
    /// Our mark was found to be gone.
    has_vanished: bool,
    is_over: bool,
}

impl Hold {
    /// Takes a database for a run, before anything is prepared there. The parts of a run on several hosts are known
    /// by their group.
    ///
    /// An error with [`Obstacle::InUse`] says that another run uses it; errors come with the node, by its position.
    pub fn take(nodes: &SharedNodes, group: Option<u64>) -> Result<Hold, (usize, DbError)> {
        let id = Id::new();
        match nodes.first().map_or(Marking::NotNeeded, |node| node.marking()) {
            Marking::NotNeeded => Ok(Hold::start(id, MarkLocation::None, State::default())),
            Marking::InData => {
                Ok(Hold::start(id, MarkLocation::Data(Arc::clone(nodes)), State::default()))
            }
            Marking::Separate(_) => {
                let node = first_and_followers(nodes)?.0;
                let mark = Mark::of_this_process(id, group);
                let taken = store(nodes[node].as_ref()).and_then(|store| take(store, &mark));
                taken.map_err(|error| (node, error))?;
                let keeper = Keeper { nodes: Arc::clone(nodes), node, is_ours: true };
                let state = State { mark: Some(mark), ..State::default() };
                Ok(Hold::start(id, MarkLocation::Separate(keeper), state))
            }
        }
    }

    /// Joins the run of a group that another host has taken the database for; nothing while it has not.
    pub fn join(
        nodes: &SharedNodes,
        group: u64,
        others: &mut ObservedMarks,
    ) -> Result<Option<Hold>, (usize, DbError)> {
        let marking = nodes.first().map(|node| node.marking());
        if !matches!(marking, Some(Marking::Separate(_))) {
            return Ok(Some(Hold::start(Id::new(), MarkLocation::None, State::default())));
        }
        let node = first_and_followers(nodes)?.0;
        let at = |error| (node, error);
        let read = store(nodes[node].as_ref()).and_then(read);
        let Some(mark) = read.map_err(at)? else { return Ok(None) };
        if mark.group != Some(group) {
            return match others.observe(&mark) {
                Life::Alive => Err(at(in_use(&mark.to_string()))),
                _ => Ok(None),
            };
        }
        let keeper = Keeper { nodes: Arc::clone(nodes), node, is_ours: false };
        let state = State { mark: Some(mark.clone()), ..State::default() };
        Ok(Some(Hold::start(mark.id, MarkLocation::Separate(keeper), state)))
    }

    fn start(id: Id, place: MarkLocation, state: State) -> Hold {
        let is_needed = !matches!(place, MarkLocation::None);
        let (state, over) = (Mutex::new(state), Condvar::new());
        let shared =
            Arc::new(Shared { id, location: place, state, is_lost: AtomicBool::new(false), over });
        let beats = is_needed.then(|| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.renew())
        });
        Hold { shared, beats }
    }

    /// The layout with room for the mark, where it is among the data.
    pub fn room(&self, layout: &Layout) -> Layout {
        match self.shared.location {
            MarkLocation::Data(_) => Layout { keys: layout.keys + 1, ..*layout },
            _ => *layout,
        }
    }

    /// Writes the mark into data that was just prepared by a [layout with room](Hold::room) for it.
    pub fn mark_data(&self, room: &Layout) {
        if let MarkLocation::Data(nodes) = &self.shared.location {
            let data = DataMark::write(nodes[0].as_ref(), room, self.shared.id);
            self.shared.state().data = data;
        }
    }

    /// Whether another run's mark was found in place of ours. The run may as well stop.
    pub fn is_lost(&self) -> bool {
        self.shared.is_lost.load(Ordering::Relaxed)
    }

    /// Makes sure that no other run used the database meanwhile. Where the server may have lost data, a mark that is
    /// gone proves nothing. A database that cannot be reached is not proof of another run either.
    pub fn confirm(&self, may_have_lost: bool) -> Result<(), DbError> {
        let settled = self.shared.state().data.as_ref().map(|data| data.written() + SETTLING);
        if let Some(left) = settled.and_then(|at| at.checked_duration_since(Instant::now())) {
            std::thread::sleep(left);
        }
        self.shared.beat();
        let state = self.shared.state();
        match &state.strange {
            Some(mark) => Err(in_use(mark)),
            None if state.has_vanished && !may_have_lost => Err(DbError::fatal(
                "the mark of this run is gone from the database: another run used it, or its tables or keys were \
                 removed",
            )
            .with_obstacle(Obstacle::InUse)),
            None => Ok(()),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.over.notify_all();
        if let Some(beats) = self.beats.take() {
            let _ = beats.join();
        }
        self.shared.release();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Renews the mark until the hold is dropped or lost.
    fn renew(&self) {
        let interval =
            if matches!(self.location, MarkLocation::Data(_)) { DATA_BEAT } else { BEAT };
        loop {
            let state = self.state();
            let wait = self.over.wait_timeout_while(state, interval, |state| !state.is_over);
            let (state, _) = wait.unwrap_or_else(PoisonError::into_inner);
            if state.is_over || state.strange.is_some() {
                return;
            }
            drop(state);
            self.beat();
        }
    }

    /// Checks the mark, and counts it up if it is ours. What a server that does not answer has, the next beat
    /// will show.
    fn beat(&self) {
        let mut state = self.state();
        if state.strange.is_some() {
            return;
        }
        match &self.location {
            MarkLocation::None => {}
            MarkLocation::Separate(keeper) => _ = beat_apart(keeper, &mut state),
            MarkLocation::Data(nodes) => {
                let State { data, strange, .. } = &mut *state;
                if let Some(data) = data {
                    *strange = data.dispute(nodes[0].as_ref());
                }
            }
        }
        self.is_lost.store(state.strange.is_some(), Ordering::Relaxed);
    }

    /// Removes the mark, if it is still ours.
    fn release(&self) {
        let state = self.state();
        match &self.location {
            MarkLocation::Separate(keeper) if !keeper.is_ours => return,
            MarkLocation::Separate(keeper) => {
                if let (Some(mark), None, Ok(store)) = (&state.mark, &state.strange, keeper.store())
                {
                    let _ = store.replace_mark(Some(&mark.to_string()), None);
                }
            }
            _ => {}
        }
        self.id.retire();
    }
}

fn beat_apart(keeper: &Keeper, state: &mut State) -> Result<(), DbError> {
    let State { mark: Some(mark), strange, has_vanished, .. } = state else { return Ok(()) };
    let store = keeper.store()?;
    let next = mark.renewed();
    if keeper.is_ours && store.replace_mark(Some(&mark.to_string()), Some(&next.to_string()))? {
        *mark = next;
        return Ok(());
    }
    match store.read_mark()? {
        None => {
            *has_vanished = true;
            if keeper.is_ours {
                store.replace_mark(None, Some(&mark.to_string()))?;
            }
        }
        Some(found) => match Mark::parse(&found) {
            // The answer to an earlier beat was lost, or this is not the part of the run that renews it.
            Some(found) if found.id == mark.id => *mark = found,
            _ => *strange = Some(found),
        },
    }
    Ok(())
}

/// Writes a mark as soon as no other run has the database.
fn take(store: &dyn MarkStore, mark: &Mark) -> Result<(), DbError> {
    let mut others = ObservedMarks::default();
    let deadline = Instant::now() + PATIENCE;
    loop {
        match try_to_take(store, mark, &mut others) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => {
                let passes = error.class != ErrorClass::Fatal && error.obstacle.is_none();
                if !passes || Instant::now() > deadline {
                    return Err(error);
                }
                others = ObservedMarks::default();
            }
        }
        std::thread::sleep(POLL);
    }
}

fn try_to_take(
    store: &dyn MarkStore,
    mark: &Mark,
    others: &mut ObservedMarks,
) -> Result<bool, DbError> {
    let new = mark.to_string();
    let Some(found) = read(store)? else {
        return store.replace_mark(None, Some(&new));
    };
    match others.observe(&found) {
        // The answer to an earlier attempt was lost.
        _ if found.id == mark.id => Ok(true),
        Life::Alive => Err(in_use(&found.to_string())),
        Life::Dead => store.replace_mark(Some(&found.to_string()), Some(&new)),
        Life::Unknown => Ok(false),
    }
}

/// The mark that a database has. What is there instead of one is not ours.
fn read(store: &dyn MarkStore) -> Result<Option<Mark>, DbError> {
    let Some(text) = store.read_mark()? else { return Ok(None) };
    match Mark::parse(&text) {
        Some(mark) => Ok(Some(mark)),
        None => Err(DbError::fatal(format!(
            "the database has {text:?} where Isolario marks it as in use by a run: remove that, or choose \
             another database"
        ))),
    }
}

fn in_use(mark: &str) -> DbError {
    let run = Mark::parse(mark).map_or_else(|| mark.to_owned(), |mark| mark.in_words());
    DbError::fatal(format!("another run uses this database: {run}")).with_obstacle(Obstacle::InUse)
}

/// What is known of the run that a mark belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    Dead,
    Unknown,
}

/// Marks of other runs as they were observed, to find out whether these runs are alive.
#[derive(Debug, Default)]
pub struct ObservedMarks {
    /// The last mark, and since when it has not changed.
    seen: Option<(Mark, Instant)>,
}

impl ObservedMarks {
    fn observe(&mut self, mark: &Mark) -> Life {
        if mark.is_of_dead_process() {
            return Life::Dead;
        }
        match &self.seen {
            Some((seen, _)) if seen.id == mark.id && seen.beat != mark.beat => Life::Alive,
            Some((seen, since)) if seen == mark && since.elapsed() > LEASE => Life::Dead,
            Some((seen, _)) if seen == mark => Life::Unknown,
            _ => {
                self.seen = Some((mark.clone(), Instant::now()));
                Life::Unknown
            }
        }
    }
}

#[cfg(test)]
mod tests;
