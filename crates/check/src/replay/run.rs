//! The replay itself.

use isolario_model::{Evidence, Inapplicable, KeyId, OpId, Point, TxnId};
use rustc_hash::FxHashSet;

use super::agreement::ends_before;
use super::operation::{has_open_effect, is_unobserved_write};
use super::schedule::{ReplaySchedule, commits, point_key, txn_of};
use super::state::ReplayState;
use super::waiting::Waiting;
use super::{Contradictions, TxnPoints};
use crate::CheckOptions;
use crate::rows::written_rows;

/// The largest number of points at one timestamp of which all orders are tried: 720 of them.
const TRIED: usize = 6;

/// Performs all points. Returns them in an order in which they come out right, or if there is none, in one
/// that the database may have meant; nothing if the check was asked to end.
pub(super) fn run(
    schedule: &ReplaySchedule<'_>,
    options: &CheckOptions,
    found: &mut Contradictions,
) -> Result<Option<Vec<Point>>, Inapplicable> {
    let history = schedule.history;
    let exclusive = matches!(schedule.moments, TxnPoints::Two { exclusive_writers: true });
    let mut replay = Replay {
        schedule,
        options,
        state: ReplayState::new(history),
        waiting: Waiting::new(schedule, options.session_order),
        last_commits: vec![None; if exclusive { history.key_count() } else { 0 }],
        starts: vec![0; history.txn_count()],
        without_effect: FxHashSet::default(),
        points: Vec::with_capacity(schedule.point_count()),
        found,
    };
    replay.begin()?;
    for points in schedule.by_timestamp() {
        if options.stop.is_asked() {
            return Ok(None);
        }
        replay.at_one_timestamp(points)?;
    }
    replay.close()?;
    Ok(Some(replay.points))
}

/// A replay between two points.
pub(super) struct Replay<'s, 'h> {
    pub(super) schedule: &'s ReplaySchedule<'h>,
    options: &'s CheckOptions,
    pub(super) state: ReplayState<'h>,
    pub(super) waiting: Waiting,
    /// Per key, the position among the points of the last commit of a writer, and its write. Empty if writers
    /// may overlap.
    last_commits: Vec<Option<(usize, OpId)>>,
    /// Per transaction, the position of its start among the points.
    starts: Vec<usize>,
    /// Transactions that committed at their start, since none of their conditional writes took effect.
    without_effect: FxHashSet<TxnId>,
    /// The points so far, and what is wrong with them.
    pub(super) points: Vec<Point>,
    pub(super) found: &'s mut Contradictions,
}

impl Replay<'_, '_> {
    /// Passes the points of one timestamp, in an order in which they come out right if there is one.
    fn at_one_timestamp(&mut self, at: &[(u32, Point)]) -> Result<(), Inapplicable> {
        if let [(_, only)] = at {
            return self.pass(*only);
        }
        let mut order: Vec<Point> = at.iter().map(|(_, point)| *point).collect();
        order.retain(|point| !self.is_over(*point));
        if order.iter().any(|point| txn_of(*point) != txn_of(order[0])) {
            self.decide_effects(&order)?;
            self.refuse_rivals(&order)?;
            self.arrange(&mut order)?;
            self.waiting.note_tie(&order);
        }
        order.into_iter().try_for_each(|point| self.pass(point))
    }

    /// Performs a point for good, and has waiting transactions follow.
    fn pass(&mut self, point: Point) -> Result<(), Inapplicable> {
        if self.is_over(point) {
            return Ok(());
        }
        self.expect(point)?;
        let mark = self.state.mark();
        let history = self.schedule.history;
        let mut differences = match point {
            Point::Start(txn) => {
                self.starts[txn.index()] = self.points.len();
                Vec::new()
            }
            Point::Commit(txn) => self.rivals(txn),
        };
        self.state.perform(point, self.schedule.moments, &mut differences)?;
        for difference in differences {
            match difference {
                Evidence::Concurrent { first, second, .. }
                    if ![first, second].iter().any(|op| has_open_effect(history, *op)) =>
                {
                    self.found.add(difference);
                }
                _ => self.found.add_result(difference),
            }
        }
        self.points.push(point);
        self.wake(mark, point)?;
        self.state.keep();
        match point {
            // A transaction that wrote nothing leaves nothing behind: all of it happens at its start.
            Point::Start(txn) if self.schedule.has_open_effects(txn) && !self.has_written(txn) => {
                self.pass(Point::Commit(txn))?;
                self.without_effect.insert(txn);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether a point is the commit of a transaction that committed at its start.
    fn is_over(&self, point: Point) -> bool {
        matches!(point, Point::Commit(txn) if self.without_effect.contains(&txn))
    }

    /// Whether a transaction has written anything, as far as the effects of its operations are known.
    fn has_written(&self, txn: TxnId) -> bool {
        let mut ops = self.schedule.history.txn_ops(txn);
        self.written(txn).next().is_some()
            || ops.any(|op| is_unobserved_write(self.schedule.history, op))
    }

    /// Decides the conditional writes of unknown effect of the transactions that start at one timestamp. Fails
    /// if another one that commits at that timestamp may have written such a key.
    fn decide_effects(&mut self, order: &[Point]) -> Result<(), Inapplicable> {
        let ReplaySchedule { history, moments, .. } = *self.schedule;
        let open_start = |point: &Point| match *point {
            Point::Start(txn) if self.schedule.has_open_effects(txn) => Some(txn),
            _ => None,
        };
        let starts: Vec<TxnId> = order.iter().filter_map(open_start).collect();
        for second in &starts {
            let open = history.txn_ops(*second).filter(|op| has_open_effect(history, *op));
            let keys: Vec<KeyId> = open.map(|op| history.op_keys()[op.index()]).collect();
            let writes_one = |txn: &TxnId| self.written(*txn).any(|(key, _)| keys.contains(&key));
            if let Some(first) = commits(order).filter(|txn| txn != second).find(writes_one) {
                return Err(Inapplicable::TiedInPromisedOrder { first, second: *second });
            }
        }
        for txn in starts {
            self.state.perform(Point::Start(txn), moments, &mut Vec::new())?;
        }
        Ok(())
    }

    /// Puts points of one timestamp into the first possible order in which nothing differs, or else into the
    /// first possible order.
    fn arrange(&mut self, order: &mut [Point]) -> Result<(), Inapplicable> {
        if self.may_be(order) && self.is_right(order)? {
            return Ok(());
        }
        let mut as_begun = order.to_vec();
        if self.found.level.shape().real_time {
            as_begun.sort_by_key(|point| self.schedule.history.start(txn_of(*point)));
        }
        let mut usual = as_begun.clone();
        usual.sort_by_key(|point| rank(*point, order));
        for likely in [as_begun, usual] {
            if likely[..] != *order && self.may_be(&likely) && self.is_right(&likely)? {
                order.copy_from_slice(&likely);
                return Ok(());
            }
        }
        let (first, second) = (txn_of(order[0]), txn_of(order[1]));
        let leaves_open = Inapplicable::TiedInPromisedOrder { first, second };
        if order.len() > TRIED {
            return Err(leaves_open);
        }
        let mut first = self.may_be(order).then(|| order.to_vec());
        while next_permutation(order) {
            if self.may_be(order) {
                if self.is_right(order)? {
                    return Ok(());
                }
                first.get_or_insert_with(|| order.to_vec());
            }
        }
        order.copy_from_slice(&first.ok_or(leaves_open)?);
        Ok(())
    }

    /// Whether all results are right if points are in this order. Nothing is left behind.
    fn is_right(&mut self, order: &[Point]) -> Result<bool, Inapplicable> {
        let mark = self.state.mark();
        let mut differences = Vec::new();
        for point in order {
            self.state.perform(*point, self.schedule.moments, &mut differences)?;
        }
        self.state.take_back(mark);
        Ok(differences.is_empty())
    }

    /// Whether a transaction starts before a rival commits, at the same timestamp, and commits later itself:
    /// the conflict is found only then.
    fn will_clash(&self, order: &[Point]) -> bool {
        if self.last_commits.is_empty() {
            return false;
        }
        order.iter().enumerate().any(|(at, point)| {
            let Point::Start(txn) = *point else { return false };
            let is_rival = |other: TxnId| {
                self.written(other).any(|(key, _)| self.written(txn).any(|(k, _)| k == key))
            };
            !order.contains(&Point::Commit(txn)) && commits(&order[at + 1..]).any(is_rival)
        })
    }

    /// Fails if two writers of one key commit at one timestamp: it is unknown which version is the last.
    fn refuse_rivals(&self, order: &[Point]) -> Result<(), Inapplicable> {
        let written = |txn| self.written(txn).map(move |(key, _)| (key, txn));
        let mut writers: Vec<(KeyId, TxnId)> = commits(order).flat_map(written).collect();
        writers.sort_unstable();
        writers.dedup();
        match writers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => {
                Err(Inapplicable::TiedInPromisedOrder { first: pair[0].1, second: pair[1].1 })
            }
            None => Ok(()),
        }
    }

    /// Conflicts of a transaction that commits now with writers of the same keys that committed while it ran.
    fn rivals(&mut self, txn: TxnId) -> Vec<Evidence> {
        let mut rivals = Vec::new();
        if self.last_commits.is_empty() {
            return rivals;
        }
        let written: Vec<_> = self.written(txn).collect();
        for (key, second) in written {
            let here = Some((self.points.len(), second));
            let before = std::mem::replace(&mut self.last_commits[key.index()], here);
            if let Some((commit, first)) = before
                && commit > self.starts[txn.index()]
                && commit < self.points.len()
            {
                rivals.push(Evidence::Concurrent { key, first, second });
            }
        }
        rivals
    }

    /// The keys that a transaction wrote, with the writes; those that it may have written if it has not
    /// started yet.
    fn written(&self, txn: TxnId) -> impl Iterator<Item = (KeyId, OpId)> {
        let history = self.schedule.history;
        let ops = history.txn_ops(txn).filter(|op| self.state.effects.get(op) != Some(&false));
        ops.flat_map(|op| written_rows(history, op)).map(|row| (row.key, row.write))
    }

    /// Whether an order is possible: each transaction starts before it commits, sessions are in order and
    /// finished transactions come before those that started later, where these count, and rivals do not run at
    /// the same time.
    fn may_be(&self, order: &[Point]) -> bool {
        if self.will_clash(order) {
            return false;
        }
        let (history, in_time) = (self.schedule.history, self.found.level.shape().real_time);
        let must_precede = |a: &Point, b: &Point| {
            let (first, second) = (txn_of(*a), txn_of(*b));
            if first == second {
                point_key(a) < point_key(b)
            } else {
                ends_before(history, self.options, in_time, first, second)
            }
        };
        order.iter().enumerate().all(|(at, point)| {
            let mut later = order[at + 1..].iter();
            later.all(|later| !must_precede(later, point))
        })
    }
}

/// The rank of a point at one timestamp in most databases, whose snapshots are as of the last commit: first
/// commits, then transactions that do everything now, and then those that only start.
fn rank(point: Point, at: &[Point]) -> u8 {
    let txn = txn_of(point);
    match (at.contains(&Point::Start(txn)), at.contains(&Point::Commit(txn))) {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => 2,
    }
}

/// The next order of the points, by the order of their numbers; false after the last one.
fn next_permutation(points: &mut [Point]) -> bool {
    let Some(rise) = points.windows(2).rposition(|pair| point_key(&pair[0]) < point_key(&pair[1]))
    else {
        return false;
    };
    let pivot = point_key(&points[rise]);
    if let Some(above) = points.iter().rposition(|point| point_key(point) > pivot) {
        points.swap(rise, above);
    }
    points[rise + 1..].reverse();
    true
}
