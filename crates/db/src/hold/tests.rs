//! Holds on stores in memory, one with a place for the mark and one without.

use std::collections::BTreeMap;

use isolario_workload::Kind;

use super::*;
use crate::database::{Access, Connection, Receipt, RegisterValue};

/// A store that runs share.
#[derive(Clone, Default)]
struct Store {
    mark: Arc<Mutex<Option<String>>>,
    registers: Arc<Mutex<BTreeMap<u64, i64>>>,
    is_apart: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl Store {
    fn apart() -> Store {
        Store { is_apart: true, ..Store::default() }
    }

    fn nodes(&self) -> SharedNodes {
        Arc::new(vec![Box::new(self.clone())])
    }

    fn take(&self) -> Result<Hold, DbError> {
        Hold::take(&self.nodes(), None).map_err(|(_, error)| error)
    }

    /// Takes it, prepares it and marks its data, as a run does.
    fn prepared(&self) -> Hold {
        let hold = self.take().unwrap();
        let room = hold.room(&Layout::new(Kind::Mini, 5));
        self.prepare(&room).unwrap();
        hold.mark_data(&room);
        hold
    }
}

impl Database for Store {
    fn name(&self) -> &str {
        "store"
    }

    fn version(&self) -> Result<String, DbError> {
        Ok("Store 1".to_owned())
    }

    fn marking(&self) -> Marking<'_> {
        if self.is_apart { Marking::Separate(self) } else { Marking::InData }
    }

    fn clear(&self) -> Result<(), DbError> {
        Ok(())
    }

    fn prepare(&self, _: &Layout) -> Result<(), DbError> {
        locked(&self.registers).clear();
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(self.clone()))
    }
}

impl MarkStore for Store {
    fn read_mark(&self) -> Result<Option<String>, DbError> {
        Ok(locked(&self.mark).clone())
    }

    fn replace_mark(&self, old: Option<&str>, new: Option<&str>) -> Result<bool, DbError> {
        let mut mark = locked(&self.mark);
        let is_expected = mark.as_deref() == old;
        if is_expected {
            *mark = new.map(str::to_owned);
        }
        Ok(is_expected)
    }
}

impl Connection for Store {
    fn begin(&mut self, _: Access) -> Result<(), DbError> {
        Ok(())
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        Ok(locked(&self.registers).get(&key).copied())
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        locked(&self.registers).insert(key, value);
        Ok(())
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        Ok(Receipt::default())
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        Ok(())
    }
}

fn is_in_use<T>(result: Result<T, DbError>) -> bool {
    result.is_err_and(|error| error.obstacle == Some(Obstacle::InUse))
}

#[test]
fn marks_are_read_as_they_were_written() {
    for group in [None, Some(0x1f)] {
        let mark = Mark::of_this_process(Id::new(), group).renewed();
        assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
    }
    for text in ["", "made by isolario", "made by isolario: run x, beat 1, process 1.1 on ?"] {
        assert_eq!(Mark::parse(text), None, "{text:?}");
    }
}

/// The second of two runs is refused while the first one goes on, and not afterwards.
#[test]
fn one_run_at_a_time() {
    let store = Store::apart();
    let first = store.take().unwrap();
    assert!(is_in_use(store.take()));
    first.confirm(false).unwrap();
    drop(first);
    assert_eq!(*locked(&store.mark), None);
    store.take().unwrap().confirm(false).unwrap();
}

#[test]
fn of_two_that_begin_together_one_is_refused() {
    for _ in 0..3 {
        let store = Store::apart();
        let both: Vec<_> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..2).map(|_| scope.spawn(|| store.take())).collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).collect()
        });
        assert_eq!(both.iter().filter(|taken| taken.is_ok()).count(), 1);
    }
}

/// A run that was killed is dead as soon as its process has ended; one of another machine, when its mark has not
/// changed for long.
#[test]
fn the_mark_of_a_dead_run_is_replaced() {
    let store = Store::apart();
    let left = Mark::of_this_process(Id::new(), None);
    left.id.retire();
    *locked(&store.mark) = Some(left.to_string());
    store.take().unwrap().confirm(false).unwrap();

    let text = left.to_string();
    let (before, _) = text.split_once(" on ").unwrap();
    let elsewhere = Mark::parse(&format!("{before} on another")).unwrap();
    let mut others = ObservedMarks::default();
    assert_eq!(others.observe(&elsewhere), Life::Unknown);
    assert_eq!(others.observe(&elsewhere), Life::Unknown);
    let long_ago = Instant::now().checked_sub(LEASE + BEAT).unwrap();
    others.seen = Some((elsewhere.clone(), long_ago));
    assert_eq!(others.observe(&elsewhere), Life::Dead);
    assert_eq!(others.observe(&elsewhere.renewed()), Life::Alive);
}

/// A run whose mark was replaced or removed meanwhile does not trust what it saw, and leaves the mark of the
/// other one alone.
#[test]
fn a_mark_that_is_not_ours_is_noticed() {
    let store = Store::apart();
    let hold = store.take().unwrap();
    let other = Mark::of_this_process(Id::new(), None).to_string();
    *locked(&store.mark) = Some(other.clone());
    assert!(is_in_use(hold.confirm(true)));
    assert!(hold.is_lost());
    drop(hold);
    assert_eq!(*locked(&store.mark), Some(other));

    let store = Store::apart();
    let hold = store.take().unwrap();
    *locked(&store.mark) = None;
    assert!(is_in_use(hold.confirm(false)));
    let hold = {
        drop(hold);
        store.take().unwrap()
    };
    *locked(&store.mark) = None;
    hold.confirm(true).unwrap();
    assert!(locked(&store.mark).is_some(), "a server that lost it has it again");
}

#[test]
fn what_is_no_mark_is_left_alone() {
    let store = Store::apart();
    *locked(&store.mark) = Some("mine".to_owned());
    let error = store.take().err().unwrap();
    assert!(error.message.contains("\"mine\""), "{error}");
    assert_eq!(locked(&store.mark).as_deref(), Some("mine"));
}

/// Hosts of one run are not strangers; those of another run are.
#[test]
fn hosts_join_the_run_of_their_group() {
    let store = Store::apart();
    let join = |group, others: &mut ObservedMarks| Hold::join(&store.nodes(), group, others);
    let mut others = ObservedMarks::default();
    assert!(join(7, &mut others).unwrap().is_none(), "the first host is not there");
    let first = Hold::take(&store.nodes(), Some(7)).map_err(|(_, error)| error).unwrap();
    let second = join(7, &mut others).unwrap().unwrap();
    assert!(join(8, &mut others).unwrap().is_none());
    second.confirm(false).unwrap();
    first.confirm(false).unwrap();
    second.confirm(false).unwrap();
    let stranger = join(8, &mut others).map_err(|(_, error)| error);
    assert!(is_in_use(stranger), "its mark has changed");
    drop(second);
    assert!(locked(&store.mark).is_some(), "the first host is still there");
}

/// Where nothing keeps a second run out, both of them notice.
#[test]
fn both_notice_where_the_mark_is_among_the_data() {
    let store = Store::default();
    let first = store.prepared();
    first.confirm(false).unwrap();
    let second = store.prepared();
    assert!(is_in_use(first.confirm(false)));
    assert!(is_in_use(second.confirm(false)));
    drop((first, second));
    store.prepared().confirm(false).unwrap();
}
