//! Random small histories of a table, executed by a small model of PostgreSQL's repeatable read.
//!
//! A row is a sequence of versions, each with the transaction that made it and the one that ended it. A
//! transaction sees the versions of its snapshot and its own. It may change a version that no other
//! transaction has changed since the snapshot (the first updater wins), waits for one that is changing it, and
//! may insert a key whose last version a concurrent transaction has deleted. If its snapshot shows that
//! version, it sees two rows of one key from then on. A read by key that finds two rows is one by a predicate.
//!
//! Whatever the model records satisfies strong snapshot isolation, with and without its certificate. Half of
//! the histories are changed here and there afterwards.

use isolario_model::{Outcome, Predicate, SinkError, Value};
use isolario_predicate::{Comparison, Expr, ExprError, Literal};

use super::Rng;
use super::certificates::{self, CertificateCase};
use super::tables::{Asked, Done, Draft, is_match, numbered, predicate, record};

/// A history with its certificate.
#[derive(Debug)]
pub struct PostgresCase {
    /// What the model recorded and states, or something similar.
    pub stated: CertificateCase,
    /// Whether it is what the model recorded.
    pub is_true: bool,
}

/// The keys of the table are 1 and 2.
const KEYS: usize = 2;

struct Version {
    key: i64,
    value: Value,
    made_by: usize,
    ended_by: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Running,
    Committed,
    Aborted,
}

/// Why a statement does nothing.
enum Obstacle {
    /// Another transaction has to end first.
    Wait,
    /// The transaction has to be aborted.
    Fail,
}

struct Model<'r> {
    rng: &'r mut Rng,
    /// The transactions whose statements are the first to run, the last one first.
    script: Vec<usize>,
    drafts: Vec<Draft>,
    states: Vec<State>,
    done: Vec<Vec<Done>>,
    versions: Vec<Version>,
    now: u64,
    /// How many values have been written: each has its number.
    written: i64,
}

/// The history of a seed.
pub fn postgres_case(seed: u64) -> Result<PostgresCase, SinkError> {
    let mut rng = Rng::new(seed);
    let mut drafts: Vec<Draft> = (0..rng.between(2, 5)).map(|at| draft(&mut rng, at)).collect();
    let script = match rng.percent(70) {
        true => two_rows(&mut drafts, &mut rng),
        false => Vec::new(),
    };
    let mut model = Model {
        script,
        states: vec![State::Before; drafts.len()],
        done: drafts.iter().map(|_| Vec::new()).collect(),
        rng: &mut rng,
        drafts,
        versions: Vec::new(),
        now: 0,
        written: 0,
    };
    model.run();
    let Model { drafts, mut done, versions, .. } = model;
    let is_true = rng.percent(50);
    if !is_true {
        (0..rng.between(1, 2)).for_each(|_| change(&mut done, &versions, &mut rng));
    }
    let history = record(&drafts, &done)?;
    let stated = certificates::state(&mut rng, history, &drafts, &done, !is_true);
    Ok(PostgresCase { stated, is_true })
}

fn draft(rng: &mut Rng, at: usize) -> Draft {
    Draft {
        session: if rng.percent(75) { at } else { rng.below(2) },
        outcome: match rng.below(16) {
            0 => Outcome::Aborted,
            1 => Outcome::Unknown,
            _ => Outcome::Committed,
        },
        ops: (0..rng.between(1, 5)).filter_map(|_| asked(rng).ok()).collect(),
        start: 0,
        commit: 0,
        has_place: true,
        times: (0, 5),
    }
}

fn asked(rng: &mut Rng) -> Result<Asked, ExprError> {
    let key = rng.between(1, KEYS) as i64;
    Ok(match rng.below(20) {
        0..=5 => Asked::Write(key, rng.below(4) as i64),
        6 | 7 => Asked::Delete(key),
        8 => Asked::Update(by_key(key)?, None),
        9..=11 => Asked::Update(predicate(rng)?, None),
        12 => Asked::Update(predicate(rng)?, Some(rng.below(4) as i64)),
        13..=15 => Asked::Read(key),
        _ => Asked::Select(predicate(rng)?),
    })
}

/// Makes three of the transactions the ones that show two rows of one key: the first inserts the row, the second
/// takes its snapshot, the third deletes the row, and the second goes on with an insert of its own. Returns
/// whose statements come first.
fn two_rows(drafts: &mut Vec<Draft>, rng: &mut Rng) -> Vec<usize> {
    while drafts.len() < 3 {
        drafts.push(draft(rng, drafts.len()));
    }
    let begins = Asked::Read(rng.between(1, KEYS) as i64);
    let writes = |rng: &mut Rng| Asked::Write(1, rng.below(4) as i64);
    drafts[0].ops = vec![writes(rng)];
    let goes_on = [begins, writes(rng)].into_iter();
    drafts[1].ops = goes_on.chain((0..rng.between(1, 4)).filter_map(|_| asked(rng).ok())).collect();
    drafts[2].ops = vec![Asked::Delete(1)];
    for (at, draft) in drafts.iter_mut().take(3).enumerate() {
        draft.session = 10 + at;
        if rng.percent(90) {
            draft.outcome = Outcome::Committed;
        }
    }
    vec![2, 2, 1, 0, 0]
}

/// `FROM t WHERE id = 1`.
fn by_key(key: i64) -> Result<Predicate, ExprError> {
    let is_key = Expr::column("id").compare(Comparison::Equal, Expr::literal(Literal::Int(key)))?;
    Predicate::rows("t", is_key)
}

impl Model<'_> {
    /// Runs statement after statement until all transactions have ended.
    fn run(&mut self) {
        while let Some(at) = self.script.pop() {
            self.step(at);
        }
        loop {
            let all = 0..self.drafts.len();
            let mut ready: Vec<usize> = all.filter(|at| self.may_run(*at)).collect();
            let running = ready.iter().copied().find(|at| self.states[*at] == State::Running);
            let mut has_run = false;
            while !ready.is_empty() && !has_run {
                let at = ready.swap_remove(self.rng.below(ready.len()));
                has_run = self.step(at);
            }
            match running {
                // They wait for each other.
                Some(at) if !has_run => self.end(at, State::Aborted),
                None if !has_run => return,
                _ => {}
            }
        }
    }

    fn may_run(&self, at: usize) -> bool {
        let has_ended = |at: usize| matches!(self.states[at], State::Committed | State::Aborted);
        let session = self.drafts[at].session;
        let mut before = (0..at).filter(|other| self.drafts[*other].session == session);
        !has_ended(at) && before.all(has_ended)
    }

    /// Runs the next statement of a transaction, or ends it. False if it has to wait.
    fn step(&mut self, at: usize) -> bool {
        self.now += 1;
        if self.states[at] == State::Before {
            self.states[at] = State::Running;
            self.drafts[at].start = self.now;
            self.drafts[at].times.0 = self.now as i64 * 10;
        }
        let Some(asked) = self.drafts[at].ops.get(self.done[at].len()).cloned() else {
            let commits = match self.drafts[at].outcome {
                Outcome::Committed => true,
                Outcome::Aborted => false,
                Outcome::Unknown => self.rng.percent(70),
            };
            self.end(at, if commits { State::Committed } else { State::Aborted });
            return true;
        };
        match self.perform(at, asked) {
            Ok(done) => self.done[at].push(done),
            Err(Obstacle::Fail) => self.end(at, State::Aborted),
            Err(Obstacle::Wait) => return false,
        }
        true
    }

    fn end(&mut self, at: usize, state: State) {
        self.now += 1;
        self.states[at] = state;
        let draft = &mut self.drafts[at];
        draft.commit = self.now;
        draft.times.1 = self.now as i64 * 10 + 5;
        if state == State::Aborted {
            draft.has_place = false;
            draft.outcome = match draft.outcome {
                Outcome::Committed => Outcome::Aborted,
                outcome => outcome,
            };
            self.versions.retain(|version| version.made_by != at);
            let ended = self.versions.iter_mut().filter(|version| version.ended_by == Some(at));
            ended.for_each(|version| version.ended_by = None);
        }
    }

    fn is_in_snapshot(&self, of: usize, other: usize) -> bool {
        self.states[other] == State::Committed && self.drafts[other].commit < self.drafts[of].start
    }

    /// The versions that a transaction sees.
    fn visible(&self, txn: usize, shows: impl Fn(&Version) -> bool) -> Vec<usize> {
        let counts = |other: usize| other == txn || self.is_in_snapshot(txn, other);
        let is_visible =
            |v: &Version| counts(v.made_by) && !v.ended_by.is_some_and(counts) && shows(v);
        (0..self.versions.len()).filter(|at| is_visible(&self.versions[*at])).collect()
    }

    fn rows(&self, versions: &[usize]) -> Vec<(i64, Value)> {
        let row = |at: &usize| (self.versions[*at].key, self.versions[*at].value.clone());
        versions.iter().map(row).collect()
    }

    fn perform(&mut self, txn: usize, asked: Asked) -> Result<Done, Obstacle> {
        let mut done = Done::new(asked, Vec::new(), Value::Nil);
        match &done.asked {
            Asked::Read(key) => {
                let key = *key;
                let found = self.visible(txn, |version| version.key == key);
                match (&found[..], by_key(key)) {
                    ([_, _, ..], Ok(predicate)) => {
                        done.rows = self.rows(&found);
                        done.asked = Asked::Select(predicate);
                    }
                    ([one, ..], _) => done.result = self.versions[*one].value.clone(),
                    ([], _) => {}
                }
            }
            Asked::Select(predicate) => {
                let found = self.visible(txn, |v| is_match(predicate, v.key, &v.value));
                done.rows = self.rows(&found);
            }
            Asked::Write(key, v) => {
                let (key, v) = (*key, *v);
                if let Some(replaced) = self.in_the_way(txn, key)? {
                    self.versions[replaced].ended_by = Some(txn);
                }
                done.result = self.insert(txn, key, v);
            }
            Asked::Delete(key) => {
                let key = *key;
                let found = self.visible(txn, |version| version.key == key);
                self.replace(txn, &found)?;
                // A delete that finds nothing is a read.
                if found.is_empty() {
                    done.asked = Asked::Read(key);
                }
            }
            Asked::Update(predicate, v) => {
                let v = *v;
                let found = self.visible(txn, |v| is_match(predicate, v.key, &v.value));
                self.replace(txn, &found)?;
                for (key, _) in self.rows(&found) {
                    let value = v.map_or(Value::Nil, |v| self.insert(txn, key, v));
                    done.rows.push((key, value));
                }
            }
            // The generator asks for neither.
            Asked::Aggregate(..) | Asked::Swap(..) => {}
        }
        Ok(done)
    }

    /// The version of a key that an insert has to replace.
    fn in_the_way(&self, txn: usize, key: i64) -> Result<Option<usize>, Obstacle> {
        for (at, version) in self.versions.iter().enumerate().filter(|(_, v)| v.key == key) {
            let is_open = |other: usize| other != txn && self.states[other] == State::Running;
            match version.ended_by {
                _ if is_open(version.made_by) => return Err(Obstacle::Wait),
                Some(other) if is_open(other) => return Err(Obstacle::Wait),
                Some(_) => {}
                None if version.made_by == txn => return Ok(Some(at)),
                None if self.is_in_snapshot(txn, version.made_by) => return Ok(Some(at)),
                None => return Err(Obstacle::Fail),
            }
        }
        Ok(None)
    }

    /// Ends versions that a transaction sees, unless another one has, or is about to.
    fn replace(&mut self, txn: usize, versions: &[usize]) -> Result<(), Obstacle> {
        for at in versions {
            if let Some(other) = self.versions[*at].ended_by {
                return Err(match self.states[other] {
                    State::Running => Obstacle::Wait,
                    _ => Obstacle::Fail,
                });
            }
        }
        versions.iter().for_each(|at| self.versions[*at].ended_by = Some(txn));
        Ok(())
    }

    fn insert(&mut self, txn: usize, key: i64, v: i64) -> Value {
        self.written += 1;
        // Now and then two versions look alike.
        let value = numbered(v, if self.rng.percent(92) { self.written } else { 1 });
        let version = Version { key, value: value.clone(), made_by: txn, ended_by: None };
        self.versions.push(version);
        value
    }
}

/// Changes something about what was recorded.
fn change(recorded: &mut [Vec<Done>], versions: &[Version], rng: &mut Rng) {
    let txn = rng.below(recorded.len());
    let ops = &mut recorded[txn];
    if ops.is_empty() {
        return;
    }
    let at = rng.below(ops.len());
    let of_key = |rng: &mut Rng, key: Option<i64>| {
        let of_key: Vec<&Version> =
            versions.iter().filter(|version| key.is_none_or(|key| key == version.key)).collect();
        let chosen = of_key.get(rng.below(of_key.len() + 1));
        chosen.map(|version| (version.key, version.value.clone()))
    };
    match (&ops[at].asked, rng.below(4)) {
        (_, 0) if at > 0 => ops.swap(at - 1, at),
        (Asked::Select(_), 1) if !ops[at].rows.is_empty() => {
            let row = rng.below(ops[at].rows.len());
            ops[at].rows.remove(row);
        }
        (Asked::Select(_), _) => ops[at].rows.extend(of_key(rng, None)),
        (Asked::Read(key), _) => {
            ops[at].result = of_key(rng, Some(*key)).map_or(Value::Nil, |(_, value)| value);
        }
        (Asked::Update(_, None), 1) if let [(key, _)] = ops[at].rows[..] => {
            ops[at] = Done::new(Asked::Delete(key), Vec::new(), Value::Nil);
        }
        (Asked::Delete(key), _) => {
            if let Ok(predicate) = by_key(*key) {
                let rows = vec![(*key, Value::Nil)];
                ops[at] = Done::new(Asked::Update(predicate, None), rows, Value::Nil);
            }
        }
        _ => {
            ops.remove(at);
        }
    }
}
