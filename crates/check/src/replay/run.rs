//! The replay itself.

use isolario_model::{Evidence, Inapplicable, KeyId, OpId, Outcome, Point, TxnId};
use rustc_hash::FxHashSet;

use super::operation::{has_open_effect, is_unobserved_write};
use super::schedule::{Event, Schedule};
use super::state::State;
use super::waiting::Waiting;
use super::{Found, Moments};
use crate::CheckOptions;
use crate::graph::precedes;
use crate::rows::written_keys;

/// The most events at one moment of which all orders are tried: 720 of them.
const TRIED: usize = 6;

/// Runs all events. Gives them in an order in which they come out right, or in one of those that the
/// database may have meant if none does; nothing if the check was asked to end.
pub(super) fn run(
    schedule: &Schedule<'_>,
    options: &CheckOptions,
    found: &mut Found,
) -> Result<Option<Vec<Event>>, Inapplicable> {
    let mut replay = Replay::new(schedule, options, found.level.shape().real_time);
    replay.waiting.begin(&mut replay.state, &mut replay.events)?;
    for moment in schedule.by_moment() {
        if options.stop.is_asked() {
            return Ok(None);
        }
        replay.moment(moment, found)?;
    }
    replay.waiting.close(&mut replay.state, found)?;
    Ok(Some(replay.events))
}

struct Replay<'s, 'h> {
    schedule: &'s Schedule<'h>,
    session_order: bool,
    /// By how much clocks may differ, where real time counts.
    clock_skew: Option<u64>,
    state: State<'h>,
    waiting: Waiting<'h>,
    /// Per key, where among the events its last writer committed, and which write it was.
    last_commits: Vec<Option<(usize, OpId)>>,
    /// What was there before of these, since the moment began.
    former_commits: Vec<(KeyId, Option<(usize, OpId)>)>,
    /// Per transaction, where among the events it started.
    starts: Vec<usize>,
    /// Transactions that committed at their start, since none of their conditional writes took effect.
    without_effect: FxHashSet<TxnId>,
    /// What has happened so far.
    events: Vec<Event>,
}

impl<'s, 'h> Replay<'s, 'h> {
    fn new(schedule: &'s Schedule<'h>, options: &CheckOptions, real_time: bool) -> Self {
        let history = schedule.history;
        let exclusive = matches!(schedule.moments, Moments::Two { exclusive_writers: true });
        Replay {
            schedule,
            session_order: options.session_order,
            clock_skew: real_time.then_some(options.clock_skew),
            state: State::new(history),
            waiting: Waiting::new(schedule, options.session_order),
            last_commits: vec![None; if exclusive { history.key_count() } else { 0 }],
            former_commits: Vec::new(),
            starts: vec![0; history.txn_count()],
            without_effect: FxHashSet::default(),
            events: Vec::with_capacity(schedule.event_count()),
        }
    }

    /// What happens at one moment, in an order in which it comes out right, if there is one.
    fn moment(&mut self, at: &[(u32, Event)], found: &mut Found) -> Result<(), Inapplicable> {
        if let [(_, only)] = at {
            return self.pass(*only, found);
        }
        let mut order: Vec<Event> = at.iter().map(|(_, event)| *event).collect();
        order.retain(|event| !self.is_over(*event));
        if order.iter().any(|event| event.txn() != order[0].txn()) {
            self.decide_effects(&order)?;
            self.refuse_rivals(&order)?;
            self.arrange(&mut order)?;
            self.waiting.note_tie(&order);
        }
        order.into_iter().try_for_each(|event| self.pass(event, found))
    }

    /// Lets one event happen for good, with what it means for others.
    fn pass(&mut self, event: Event, found: &mut Found) -> Result<(), Inapplicable> {
        if self.is_over(event) {
            return Ok(());
        }
        self.waiting.expect(event, &mut self.state, found)?;
        let mark = self.state.mark();
        let history = self.schedule.history;
        for difference in self.happen(event)? {
            match difference {
                Evidence::Concurrent { first, second, .. }
                    if ![first, second].iter().any(|op| has_open_effect(history, *op)) =>
                {
                    found.add(difference);
                }
                _ => found.add_result(difference),
            }
        }
        self.events.push(event);
        self.waiting.wake(mark, event, &mut self.state, &mut self.events)?;
        self.state.keep();
        self.former_commits.clear();
        match event {
            // A transaction that wrote nothing leaves nothing behind: all of it happens at its start.
            Event(Point::Start(txn))
                if self.schedule.has_open_effects(txn) && !self.has_written(txn) =>
            {
                self.pass(Event(Point::Commit(txn)), found)?;
                self.without_effect.insert(txn);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether an event is the commit of a transaction that committed at its start.
    fn is_over(&self, Event(point): Event) -> bool {
        matches!(point, Point::Commit(txn) if self.without_effect.contains(&txn))
    }

    /// Whether a transaction has written anything, as far as the effects of its operations are known.
    fn has_written(&self, txn: TxnId) -> bool {
        let mut ops = self.schedule.history.txn_ops(txn);
        self.written(txn).next().is_some()
            || ops.any(|op| is_unobserved_write(self.schedule.history, op))
    }

    /// Decides the conditional writes of unknown effect of the transactions that start at one moment. Fails
    /// where another one that commits at that moment may have written such a key.
    fn decide_effects(&mut self, order: &[Event]) -> Result<(), Inapplicable> {
        let history = self.schedule.history;
        for Event(point) in order {
            let Point::Start(txn) = *point else { continue };
            if !self.schedule.has_open_effects(txn) {
                continue;
            }
            let open = history.txn_ops(txn).filter(|op| has_open_effect(history, *op));
            let keys: Vec<KeyId> = open.map(|op| history.op_keys()[op.index()]).collect();
            for Event(point) in order {
                if let Point::Commit(other) = *point
                    && other != txn
                    && self.written(other).any(|(key, _)| keys.contains(&key))
                {
                    return Err(Inapplicable::TiedInPromisedOrder { first: other, second: txn });
                }
            }
        }
        for event in order {
            if matches!(event, Event(Point::Start(txn)) if self.schedule.has_open_effects(*txn)) {
                self.happen(*event)?;
            }
        }
        Ok(())
    }

    /// Puts events of one moment into the first order in which nothing differs, of those that may be;
    /// into the first of these where there is none.
    fn arrange(&mut self, order: &mut [Event]) -> Result<(), Inapplicable> {
        if self.may_be(order) && self.is_right(order)? {
            return Ok(());
        }
        let mut as_begun = order.to_vec();
        if self.clock_skew.is_some() {
            as_begun.sort_by_key(|event| self.schedule.history.start(event.txn()));
        }
        let mut usual = as_begun.clone();
        usual.sort_by_key(|event| class(*event, order));
        for likely in [as_begun, usual] {
            if likely[..] != *order && self.may_be(&likely) && self.is_right(&likely)? {
                order.copy_from_slice(&likely);
                return Ok(());
            }
        }
        let (first, second) = (order[0].txn(), order[1].txn());
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

    /// Whether all results are right if events happen in this order. Nothing is left behind.
    fn is_right(&mut self, order: &[Event]) -> Result<bool, Inapplicable> {
        let (mark, events) = (self.state.mark(), self.events.len());
        let mut is_right = true;
        for event in order {
            // Rivals that the order could part were parted before.
            let is_read = |difference: &Evidence| matches!(difference, Evidence::Unexpected { .. });
            is_right &= !self.happen(*event)?.iter().any(is_read);
            self.events.push(*event);
        }
        self.state.take_back(mark);
        self.events.truncate(events);
        while let Some((key, before)) = self.former_commits.pop() {
            self.last_commits[key.index()] = before;
        }
        Ok(is_right)
    }

    /// Whether one starts before a rival commits, at the same moment, and commits later itself: that
    /// will show only then.
    fn will_clash(&self, order: &[Event]) -> bool {
        if self.last_commits.is_empty() {
            return false;
        }
        order.iter().enumerate().any(|(at, event)| {
            let Event(Point::Start(txn)) = *event else { return false };
            let is_short = order.contains(&Event(Point::Commit(txn)));
            let mut later = order[at + 1..].iter().filter(|_| !is_short);
            later.any(|later| match *later {
                Event(Point::Commit(other)) => {
                    self.written(other).any(|(key, _)| self.written(txn).any(|(k, _)| k == key))
                }
                Event(Point::Start(_)) => false,
            })
        })
    }

    /// Two writers of one key at one moment: who reads later would have to say which one was last.
    fn refuse_rivals(&self, order: &[Event]) -> Result<(), Inapplicable> {
        let mut writers: Vec<(KeyId, TxnId)> = Vec::new();
        for Event(point) in order {
            if let Point::Commit(txn) = *point {
                self.written(txn).for_each(|(key, _)| writers.push((key, txn)));
            }
        }
        writers.sort_unstable();
        writers.dedup();
        match writers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => {
                Err(Inapplicable::TiedInPromisedOrder { first: pair[0].1, second: pair[1].1 })
            }
            None => Ok(()),
        }
    }

    /// Lets one event happen. Tells what does not come out right.
    fn happen(&mut self, Event(point): Event) -> Result<Vec<Evidence>, Inapplicable> {
        let history = self.schedule.history;
        let mut differences = Vec::new();
        match point {
            Point::Start(txn) => {
                self.starts[txn.index()] = self.events.len();
                let mark = self.state.mark();
                for op in history.txn_ops(txn) {
                    differences.extend(self.state.perform(op)?);
                }
                self.state.take_back(mark);
            }
            Point::Commit(txn) if self.schedule.moments == Moments::One => {
                for op in history.txn_ops(txn) {
                    differences.extend(self.state.perform(op)?);
                }
            }
            Point::Commit(txn) => {
                differences.extend(self.rivals(txn));
                history.txn_ops(txn).for_each(|op| self.state.install(op));
            }
        }
        Ok(differences)
    }

    /// The writers of the same keys that committed while a transaction ran.
    fn rivals(&mut self, txn: TxnId) -> Vec<Evidence> {
        let mut rivals = Vec::new();
        if self.last_commits.is_empty() {
            return rivals;
        }
        let written: Vec<_> = self.written(txn).collect();
        for (key, second) in written {
            let here = Some((self.events.len(), second));
            let before = std::mem::replace(&mut self.last_commits[key.index()], here);
            self.former_commits.push((key, before));
            match before {
                Some((commit, first))
                    if commit > self.starts[txn.index()] && commit < self.events.len() =>
                {
                    rivals.push(Evidence::Concurrent { key, first, second });
                }
                _ => {}
            }
        }
        rivals
    }

    /// The keys that a transaction wrote, with the writes; those that it may have written where it has not
    /// started yet.
    fn written(&self, txn: TxnId) -> impl Iterator<Item = (KeyId, OpId)> {
        let history = self.schedule.history;
        let ops = history.txn_ops(txn).filter(|op| self.state.effect(*op) != Some(false));
        ops.flat_map(move |op| written_keys(history, op).map(move |key| (key, op)))
    }

    /// Whether each transaction starts before it commits, those of one session are in its order where
    /// that counts, those that had finished come before those that started later where real time counts, and
    /// rivals do not run at the same time.
    fn may_be(&self, order: &[Event]) -> bool {
        if self.will_clash(order) {
            return false;
        }
        let history = self.schedule.history;
        let must_precede = |a: &Event, b: &Event| {
            let (first, second) = (a.txn(), b.txn());
            let by_session = self.session_order
                && first < second
                && history.session_of(first) == history.session_of(second)
                && history.outcome(first) == Outcome::Committed;
            let by_time = |skew| first != second && precedes(history, skew, first, second);
            by_session
                || self.clock_skew.is_some_and(by_time)
                || first == second && event_key(a) < event_key(b)
        };
        order.iter().enumerate().all(|(at, event)| {
            let mut later = order[at + 1..].iter();
            later.all(|later| !must_precede(later, event))
        })
    }
}

/// Where an event of a moment comes in most databases, whose snapshots are as of the last commit: those
/// that commit, those that do all at this moment, those that start.
fn class(event: Event, moment: &[Event]) -> u8 {
    let txn = event.txn();
    match (moment.contains(&Event(Point::Start(txn))), moment.contains(&Event(Point::Commit(txn))))
    {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => 2,
    }
}

fn event_key(Event(point): &Event) -> (TxnId, u8) {
    match *point {
        Point::Start(txn) => (txn, 0),
        Point::Commit(txn) => (txn, 1),
    }
}

/// The next order of the events, by the order of their numbers; false after the last one.
fn next_permutation(events: &mut [Event]) -> bool {
    let Some(rise) = events.windows(2).rposition(|pair| event_key(&pair[0]) < event_key(&pair[1]))
    else {
        return false;
    };
    let pivot = event_key(&events[rise]);
    if let Some(above) = events.iter().rposition(|event| event_key(event) > pivot) {
        events.swap(rise, above);
    }
    events[rise + 1..].reverse();
    true
}
