//! What the recorder does for each transaction, by itself: without a database, in one thread.

use std::path::Path;

use isolario_bench::{Failure, Job, Kept, Stopwatch};
use isolario_formats::LiveRecorder;
use isolario_model::{Meta, Op, OpInput, Outcome, TxnEnd, TxnStart};
use isolario_workload::{AttemptedTxn, DefaultRun, Generator, Kind, PlannedOp, Planner};

/// Records so many mini-transactions.
pub struct Record {
    pub txns: u64,
}

/// A transaction as the client tells it.
struct Told {
    intended: Vec<OpInput<'static>>,
    done: Vec<OpInput<'static>>,
}

impl Job for Record {
    fn name(&self) -> String {
        self.txns.to_string()
    }

    fn of_name(name: &str) -> Result<Record, Failure> {
        Ok(Record { txns: name.parse()? })
    }

    fn run(&self, file: &Path, stopwatch: &mut Stopwatch) -> Result<Kept, Failure> {
        let planner = Planner::new(&DefaultRun::of(Kind::Mini).workload, 1, 1)?;
        let mut plan = Vec::new();
        // Few enough to stay in the cache, as what a client has just done would.
        let told: Vec<Told> = (0..self.txns.min(256))
            .map(|position| {
                plan.clear();
                planner.plan(AttemptedTxn::first(0, position), &mut plan);
                Told::of(&plan)
            })
            .collect();
        let recorder = LiveRecorder::create(file, &Meta::default())?;
        let mut session = recorder.session();
        stopwatch.restart()?;
        // The times are made up: to read the clock is part of every run, recorded or not.
        for (told, at) in told.iter().cycle().zip(0..self.txns as i64) {
            let at = at * 10_000;
            let start = TxnStart { session: 0_i64.into(), id: None, line: None };
            session.begin(&start, Some(at), &told.intended)?;
            told.done.iter().try_for_each(|op| session.op(op))?;
            let (start, finish) = (Some(at + 1000), Some(at + 9000));
            session.end(&TxnEnd { start, finish, ..TxnEnd::new(Outcome::Committed) })?;
        }
        session.flush()?;
        Ok(Box::new(()))
    }
}

impl Told {
    fn of(plan: &[PlannedOp]) -> Told {
        let done: Vec<OpInput<'static>> = plan
            .iter()
            .map(|op| {
                let key = op.key().map_or(0, |key| key as i64).into();
                match *op {
                    PlannedOp::Write { value, .. } => Op::Write { key, value: value.into() },
                    _ => Op::Read { key, value: Some(1_000_000_i64.into()) },
                }
            })
            .collect();
        let intended = done.iter().filter(|op| matches!(op, Op::Write { .. })).copied().collect();
        Told { intended, done }
    }
}
