//! From what snapshots show to the order in which commits became visible.
//!
//! In PostgreSQL a commit is in the log before others see it, and two may become visible in another
//! order than the log has: a snapshot is not always a beginning of the log. But snapshots are taken one
//! at a time from one list of transactions in progress, so that of any two, one shows all that the
//! other shows. This chain gives an order of commits of which every snapshot is a beginning; where it
//! leaves two open, the log decides. Whether the snapshots of a run do form a chain is checked, not
//! believed.
//!
//! A transaction is never in its own list of those in progress, once it has a number. So a snapshot
//! comes with the number of its owner.

use std::collections::BTreeMap;

use super::{LoggedCommit, SnapshotNaming};

/// A snapshot in the database's words, and the number of the transaction that has it.
pub(super) type Words<'s> = (&'s str, Option<u64>);

/// The order in which commits became visible, and how far each snapshot goes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Visibility {
    /// Per commit of the log, its place, from 1.
    pub(super) places: Vec<u64>,
    /// Per snapshot, how many commits it shows.
    shown: BTreeMap<(String, Option<u64>), u64>,
}

/// Why there is no such order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Disorder {
    /// Words that no snapshot is described by.
    Words(String),
    /// Two snapshots each of which shows what the other does not.
    Contradiction(String, String),
}

impl Visibility {
    pub(super) fn new<'s>(
        commits: &[LoggedCommit],
        rule: SnapshotNaming,
        snapshots: impl Iterator<Item = Words<'s>>,
    ) -> Result<Visibility, Disorder> {
        match rule {
            SnapshotNaming::None | SnapshotNaming::Starts | SnapshotNaming::Commits => {
                Ok(Visibility { places: in_order(commits), ..Visibility::default() })
            }
            SnapshotNaming::Positions => by_position(commits, snapshots),
            SnapshotNaming::InProgress => by_chain(commits, snapshots),
        }
    }

    /// How many commits a snapshot shows.
    pub(super) fn shown(&self, (words, owner): Words<'_>) -> Option<u64> {
        self.shown.get(&(words.to_owned(), owner)).copied()
    }
}

fn in_order(commits: &[LoggedCommit]) -> Vec<u64> {
    (1..=commits.len() as u64).collect()
}

/// The log is the order, and a snapshot is a place in it.
fn by_position<'s>(
    commits: &[LoggedCommit],
    snapshots: impl Iterator<Item = Words<'s>>,
) -> Result<Visibility, Disorder> {
    let mut shown = BTreeMap::new();
    for (words, owner) in snapshots {
        let position: u64 = words.parse().map_err(|_| Disorder::Words(words.to_owned()))?;
        let before = commits.partition_point(|commit| commit.number <= position);
        shown.insert((words.to_owned(), owner), before as u64);
    }
    Ok(Visibility { places: in_order(commits), shown })
}

/// A snapshot as PostgreSQL prints it.
struct InProgress<'s> {
    words: &'s str,
    owner: Option<u64>,
    xmin: u64,
    xmax: u64,
    list: Vec<u64>,
}

impl<'s> InProgress<'s> {
    fn parse((words, owner): Words<'s>) -> Option<InProgress<'s>> {
        let mut parts = words.splitn(3, ':');
        let mut number = || parts.next()?.parse().ok();
        let (xmin, xmax): (u64, u64) = (number()?, number()?);
        let list = parts.next()?.split(',').filter(|part| !part.is_empty());
        let mut list: Vec<u64> = list.map(str::parse).collect::<Result<_, _>>().ok()?;
        list.extend(owner);
        list.sort_unstable();
        // What its owner does is not committed, even if nobody else is still at work.
        let xmin = owner.map_or(xmin, |owner| xmin.min(owner));
        Some(InProgress { words, owner, xmin, xmax, list })
    }

    fn shows(&self, number: u64) -> bool {
        number < self.xmin || (number < self.xmax && self.list.binary_search(&number).is_err())
    }
}

/// Commits by their numbers: those from some number on are few for every snapshot.
struct ByNumber {
    /// The number of a commit, and its place in the log.
    commits: Vec<(u64, usize)>,
}

impl ByNumber {
    fn below(&self, number: u64) -> usize {
        self.commits.partition_point(|(other, _)| *other < number)
    }

    fn count(&self, snapshot: &InProgress<'_>) -> u64 {
        let (sure, end) = (self.below(snapshot.xmin), self.below(snapshot.xmax));
        let doubtful = &self.commits[sure..end.max(sure)];
        sure as u64 + doubtful.iter().filter(|(number, _)| snapshot.shows(*number)).count() as u64
    }
}

fn by_chain<'s>(
    commits: &[LoggedCommit],
    snapshots: impl Iterator<Item = Words<'s>>,
) -> Result<Visibility, Disorder> {
    let mut distinct: Vec<Words<'_>> = snapshots.collect();
    distinct.sort_unstable();
    distinct.dedup();
    let parse =
        |words: Words<'s>| InProgress::parse(words).ok_or(Disorder::Words(words.0.to_owned()));
    let snapshots: Vec<InProgress<'_>> =
        distinct.into_iter().map(parse).collect::<Result<_, _>>()?;
    let mut by_number = ByNumber {
        commits: commits.iter().enumerate().map(|(at, commit)| (commit.number, at)).collect(),
    };
    by_number.commits.sort_unstable();
    let mut chain: Vec<(u64, &InProgress<'_>)> =
        snapshots.iter().map(|snapshot| (by_number.count(snapshot), snapshot)).collect();
    chain.sort_by_key(|(count, _)| *count);

    let mut places = vec![0; commits.len()];
    let (mut placed, mut first_open) = (0, 0);
    let mut before: Option<&InProgress<'_>> = None;
    let mut shown = BTreeMap::new();
    for (count, snapshot) in chain {
        let end = by_number.below(snapshot.xmax);
        let open = by_number.commits[first_open..end.max(first_open)].iter();
        let mut new: Vec<usize> = open
            .filter(|(number, at)| places[*at] == 0 && snapshot.shows(*number))
            .map(|(_, at)| *at)
            .collect();
        // It shows as many as it should only if it shows all that were shown before.
        if placed + new.len() as u64 != count {
            let other = before.map_or("", |before| before.words);
            return Err(Disorder::Contradiction(other.to_owned(), snapshot.words.to_owned()));
        }
        new.sort_unstable();
        for at in new {
            placed += 1;
            places[at] = placed;
        }
        while by_number.commits.get(first_open).is_some_and(|(_, at)| places[*at] > 0) {
            first_open += 1;
        }
        shown.insert((snapshot.words.to_owned(), snapshot.owner), count);
        before = Some(snapshot);
    }
    for place in places.iter_mut().filter(|place| **place == 0) {
        placed += 1;
        *place = placed;
    }
    Ok(Visibility { places, shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commits(numbers: &[u64]) -> Vec<LoggedCommit> {
        numbers
            .iter()
            .map(|number| LoggedCommit { number: *number, ..LoggedCommit::default() })
            .collect()
    }

    fn chain(numbers: &[u64], snapshots: &[&str]) -> Result<Visibility, Disorder> {
        let snapshots = snapshots.iter().map(|words| (*words, None));
        Visibility::new(&commits(numbers), SnapshotNaming::InProgress, snapshots)
    }

    #[test]
    fn a_snapshot_need_not_be_a_beginning_of_the_log() {
        // 7 is in the log before 5, and is still not to be seen when 5 is.
        let found = chain(&[7, 5, 9], &["7:8:7", "5:5:", "10:10:"]).unwrap();
        assert_eq!(found.places, [2, 1, 3]);
        let shown = ["10:10:", "5:5:", "7:8:7", "6:6:"].map(|words| found.shown((words, None)));
        assert_eq!(shown, [Some(3), Some(0), Some(1), None]);
    }

    #[test]
    fn nobody_has_committed_before_its_own_snapshot() {
        // 5 and 7 each look while both are at work, and neither is in its own list.
        let commits = commits(&[5, 7]);
        let snapshots = [("7:8:7", Some(5)), ("5:8:5", Some(7))];
        let found =
            Visibility::new(&commits, SnapshotNaming::InProgress, snapshots.into_iter()).unwrap();
        assert_eq!(snapshots.map(|words| found.shown(words)), [Some(0), Some(0)]);
        let alone = [("6:6:", Some(5))];
        let found =
            Visibility::new(&commits, SnapshotNaming::InProgress, alone.into_iter()).unwrap();
        assert_eq!(found.shown(alone[0]), Some(0));
    }

    #[test]
    fn where_snapshots_leave_it_open_the_log_decides() {
        assert_eq!(chain(&[9, 5, 7], &["5:5:"]).unwrap().places, [1, 2, 3]);
    }

    #[test]
    fn snapshots_that_contradict_each_other_are_found() {
        // One shows 5 and not 7, the other 7 and not 5.
        let found = chain(&[5, 7], &["7:8:7", "5:8:5"]);
        assert!(matches!(found, Err(Disorder::Contradiction(..))), "{found:?}");
        assert_eq!(chain(&[5], &["five"]), Err(Disorder::Words("five".to_owned())));
    }

    #[test]
    fn positions_show_what_came_before() {
        let commits = commits(&[10, 20, 30]);
        let places = ["5", "20", "99"].map(|place| (place, None));
        let found =
            Visibility::new(&commits, SnapshotNaming::Positions, places.into_iter()).unwrap();
        assert_eq!(places.map(|place| found.shown(place)), [Some(0), Some(2), Some(3)]);
    }
}
