//! A database of your own, stressed like any other: a few dozen lines tell how to talk to it.
//!
//! This one keeps its registers in memory. It claims to be serializable, but a transaction reads
//! what is committed and writes when it commits, without a look at what happened in between: two
//! clients that read the same value both overwrite it. A run finds that.
//!
//! `cargo run --example database_of_your_own --features run`

#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use isolario::db::{
    Access, Claim, Connection, Database, DbError, Layout, Receipt, RegisterValue, Traits,
};
use isolario::model::Level;
use isolario::run::{Handle, RunOutcome, Settings, run_against};
use isolario::workload::{Kind, Workload};

#[derive(Clone, Default)]
struct Store {
    registers: Arc<Mutex<HashMap<u64, i64>>>,
}

/// One client's transaction: what it is going to write.
struct Client {
    store: Store,
    writes: Vec<(u64, i64)>,
}

impl Store {
    fn with<R>(&self, act: impl FnOnce(&mut HashMap<u64, i64>) -> R) -> R {
        act(&mut self.registers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Database for Store {
    fn name(&self) -> &str {
        "careless"
    }

    fn version(&self) -> Result<String, DbError> {
        Ok("Careless 1.0".to_owned())
    }

    fn traits(&self) -> Traits<'_> {
        Traits { isolation: "serializable", ..Traits::default() }
    }

    fn claim(&self, _: Kind, _: usize) -> Claim {
        Claim { levels: vec![Level::Serializable], source: "so its page says".to_owned() }
    }

    fn prepare(&self, _: &Layout) -> Result<(), DbError> {
        self.with(HashMap::clear);
        Ok(())
    }

    fn clear(&self) -> Result<(), DbError> {
        self.with(HashMap::clear);
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        Ok(Box::new(Client { store: self.clone(), writes: Vec::new() }))
    }
}

impl Connection for Client {
    fn begin(&mut self, _: Access) -> Result<(), DbError> {
        self.writes.clear();
        Ok(())
    }

    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        thread::yield_now(); // as a network would
        let own = self.writes.iter().rev().find(|(written, _)| *written == key);
        Ok(own.map(|(_, value)| *value).or_else(|| self.store.with(|all| all.get(&key).copied())))
    }

    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        thread::yield_now();
        self.writes.push((key, value));
        Ok(())
    }

    fn commit(&mut self) -> Result<Receipt, DbError> {
        let writes = self.writes.drain(..);
        self.store.with(|all| all.extend(writes));
        Ok(Receipt::default())
    }

    fn rollback(&mut self) -> Result<(), DbError> {
        self.writes.clear();
        Ok(())
    }
}

/// Stresses the store; the run's files go into a directory.
pub fn stress(out: &Path) -> Result<RunOutcome, Box<dyn Error>> {
    let mut settings = Settings::new(Kind::Mini).with_txns(5000).with_out(out);
    settings.workload = Workload { keys: 3, ..settings.workload };
    Ok(run_against(&settings, vec![Box::new(Store::default())], &Handle::new(), &mut ())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::args().nth(1).ok_or("usage: database_of_your_own DIRECTORY")?;
    let outcome = stress(Path::new(&out))?;
    println!("{}.", outcome.promise());
    println!("Open {}/report.html to see why.", outcome.directory.display());
    Ok(())
}
