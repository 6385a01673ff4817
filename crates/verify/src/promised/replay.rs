//! What does not come out right if the transactions run in the promised order.

use isolario_model::{Outcome, Point, TxnId};

use super::Promise;
use super::table::{Difference, Table};
use crate::Refusal;

/// The most points at one moment of which all orders are tried.
const TRIED: usize = 6;

pub(super) struct Replay<'p, 'h> {
    promise: &'p Promise<'h>,
    pub(super) table: Table<'h>,
    /// Those without a place that wait for one, session by session.
    waiting: Vec<Vec<TxnId>>,
    /// Those that have committed, or have been given up.
    done: Vec<bool>,
    pub(super) differences: Vec<Difference>,
}

impl<'p, 'h> Replay<'p, 'h> {
    pub(super) fn run(promise: &'p Promise<'h>) -> Result<Self, Refusal> {
        let history = promise.history;
        let mut replay = Replay {
            promise,
            table: Table::new(history),
            waiting: Vec::new(),
            done: vec![false; history.txn_count()],
            differences: Vec::new(),
        };
        replay.wait();
        replay.admit();
        let mut points: Vec<(u32, Point)> = Vec::new();
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            let starts = [Point::Start(txn)].into_iter().filter(|_| promise.has_starts);
            for point in starts.chain([Point::Commit(txn)]) {
                let moment = promise.moment(point, &replay.table);
                points.extend(moment.map(|moment| (moment, point)));
            }
        }
        points.sort_by_key(|(moment, point)| (*moment, rank(*point)));
        for at in points.chunk_by(|a, b| a.0 == b.0) {
            replay.moment(at.iter().map(|(_, point)| *point).collect())?;
        }
        replay.give_up(|_| true);
        Ok(replay)
    }

    fn moment(&mut self, points: Vec<Point>) -> Result<(), Refusal> {
        let is_tied = points.iter().any(|point| txn_of(*point) != txn_of(points[0]));
        let points = if is_tied { self.arranged(points)? } else { points };
        for point in points {
            let (promise, next) = (self.promise, txn_of(point));
            self.give_up(|txn| promise.follows_in_session(txn, next));
            self.differences.extend(self.promise.happen(point, &mut self.table));
            // A transaction that wrote nothing leaves nothing behind: all of it happens at its start.
            if matches!(point, Point::Commit(_)) || !promise.may_write(next, &self.table) {
                self.done[next.index()] = true;
            }
            self.admit();
        }
        Ok(())
    }

    /// The first order of points at one moment in which all comes out right, of those that may be;
    /// the first one at all where there is none.
    fn arranged(&mut self, points: Vec<Point>) -> Result<Vec<Point>, Refusal> {
        if points.len() > TRIED {
            return Err(Refusal::Unsupported("this many transactions at one point in time"));
        }
        // None of the points of one moment changes what conditional writes of the others find.
        for point in points.iter().filter(|point| matches!(point, Point::Start(_))) {
            self.promise.happen(*point, &mut self.table);
        }
        let mut orders = Vec::new();
        permute(&points, &mut Vec::new(), &mut orders);
        orders.retain(|order| self.may_be(order));
        let right = orders.iter().position(|order| {
            let mark = self.table.mark();
            let mut wrong = Vec::new();
            for point in order {
                wrong.extend(self.promise.happen(*point, &mut self.table));
            }
            self.table.take_back(mark);
            wrong.is_empty()
        });
        Ok(orders.get(right.unwrap_or(0)).cloned().unwrap_or(points))
    }

    /// Whether the points of one moment may come in this order: transactions start before they
    /// commit, sessions and real time keep their order, and rivals do not run at the same time.
    fn may_be(&self, order: &[Point]) -> bool {
        let promise = self.promise;
        let is_before = |at: usize, point: Point| order[..at].contains(&point);
        order.iter().enumerate().all(|(at, point)| {
            order[at + 1..].iter().all(|later| {
                let (a, b) = (txn_of(*point), txn_of(*later));
                let is_late = a != b && promise.must_precede(b, a);
                let inverted = a == b && rank(*later) < rank(*point);
                let are_rivals = promise.level.shape().exclusive_writers
                    && a != b
                    && matches!((point, later), (Point::Start(_), Point::Commit(_)))
                    && !order.contains(&Point::Commit(a))
                    && !is_before(at, Point::Commit(a))
                    && promise.written(a, &self.table).iter().any(|one| {
                        promise.written(b, &self.table).iter().any(|two| one.0 == two.0)
                    });
                !is_late && !inverted && !are_rivals
            })
        })
    }

    /// Puts those without a place into their queues.
    fn wait(&mut self) {
        let promise = self.promise;
        let has_no_place = |txn: &TxnId| {
            promise.history.outcome(*txn) == Outcome::Committed && promise.place(*txn).is_none()
        };
        for session in promise.history.sessions() {
            let txns = promise.history.session_txns(session).filter(has_no_place);
            match promise.options.session_order {
                true => self.waiting.push(txns.collect()),
                false => self.waiting.extend(txns.map(|txn| vec![txn])),
            }
        }
        self.waiting.retain(|queue| !queue.is_empty());
    }

    /// Lets those go who fit now, and whose turn it is.
    fn admit(&mut self) {
        let mut queues = std::mem::take(&mut self.waiting);
        for queue in &mut queues {
            while let Some(txn) = queue.first().copied()
                && self.is_ready(txn)
                && self.runs(txn).is_none()
            {
                self.done[txn.index()] = true;
                queue.remove(0);
            }
        }
        queues.retain(|queue| !queue.is_empty());
        self.waiting = queues;
    }

    /// Whether all that come before it in its session have committed.
    fn is_ready(&self, txn: TxnId) -> bool {
        let history = self.promise.history;
        let mut session = history.session_txns(history.session_of(txn));
        session
            .all(|first| !self.promise.follows_in_session(first, txn) || self.done[first.index()])
    }

    /// What comes out wrong first if a transaction runs now.
    fn runs(&mut self, txn: TxnId) -> Option<Difference> {
        let mark = self.table.mark();
        let wrong = self.promise.history.txn_ops(txn).find_map(|op| {
            let difference = self.table.difference(op);
            self.table.write(op);
            difference
        });
        self.table.take_back(mark);
        wrong
    }

    /// Those that should have fitted by now never did.
    fn give_up(&mut self, is_late: impl Fn(TxnId) -> bool) {
        let mut queues = std::mem::take(&mut self.waiting);
        for queue in &mut queues {
            while let Some(txn) = queue.first().copied()
                && is_late(txn)
            {
                let wrong = self.runs(txn);
                self.differences.extend(wrong);
                self.done[txn.index()] = true;
                queue.remove(0);
            }
        }
        queues.retain(|queue| !queue.is_empty());
        self.waiting = queues;
    }
}

fn txn_of(point: Point) -> TxnId {
    match point {
        Point::Start(txn) | Point::Commit(txn) => txn,
    }
}

fn rank(point: Point) -> (TxnId, u8) {
    (txn_of(point), u8::from(matches!(point, Point::Commit(_))))
}

/// All orders of points, those that begin with earlier ones first.
fn permute(left: &[Point], begun: &mut Vec<Point>, orders: &mut Vec<Vec<Point>>) {
    if left.is_empty() {
        orders.push(begun.clone());
    }
    for (at, point) in left.iter().enumerate() {
        let others: Vec<Point> = left[..at].iter().chain(&left[at + 1..]).copied().collect();
        begun.push(*point);
        permute(&others, begun, orders);
        begun.pop();
    }
}
