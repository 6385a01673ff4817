//! Noxu DB at read committed: transactions that commit have read what others wrote and took back. Sixteen threads
//! read and write three records of 10,000 bytes. Isolario has no part in it.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use std::collections::HashSet;
use std::error::Error;
use std::thread;

use noxu::{
    Database, DatabaseConfig, Environment, EnvironmentConfig, NoxuError, TransactionConfig,
};

/// A thread that reads and writes. Each value is written once.
#[derive(Default)]
struct Client {
    values: u64,
    /// By transactions that committed.
    read: HashSet<u64>,
    /// By transactions that aborted.
    taken_back: HashSet<u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let config = EnvironmentConfig::new(folder.path().into());
    let environment = Environment::open(config.with_allow_create(true).with_transactional(true))?;
    let config = DatabaseConfig::new().with_allow_create(true).with_transactional(true);
    let database = environment.open_database(None, "records", &config)?;
    let mut all = Client::default();
    thread::scope(|scope| {
        let (environment, database) = (&environment, &database);
        let start = |id| scope.spawn(move || Client::new(id).work(environment, database));
        let threads: Vec<_> = (0..16).map(start).collect();
        for client in threads.into_iter().filter_map(|thread| thread.join().ok()?.ok()) {
            all.read.extend(client.read);
            all.taken_back.extend(client.taken_back);
        }
    });
    println!(
        "{} values were read by transactions that committed; {} of them were never committed",
        all.read.len(),
        all.read.intersection(&all.taken_back).count()
    );
    Ok(())
}

impl Client {
    fn new(id: u64) -> Client {
        Client { values: id << 32, ..Client::default() }
    }

    fn work(mut self, environment: &Environment, database: &Database) -> Result<Client, NoxuError> {
        let config = TransactionConfig::new().with_read_committed(true).with_lock_timeout_ms(100);
        let mut random = fastrand::Rng::with_seed(self.values);
        for _ in 0..400 {
            let transaction = environment.begin_transaction(Some(&config))?;
            let (mut read, mut written) = (Vec::new(), Vec::new());
            let done = (0..4).try_for_each(|_| {
                let key = [random.u8(0..3)];
                match random.u8(0..5) {
                    0 => {
                        self.values += 1;
                        written.push(self.values);
                        let mut value = vec![0; 10_000];
                        value[..8].copy_from_slice(&self.values.to_be_bytes());
                        database.put_in(&transaction, key, value)
                    }
                    _ => {
                        let value = database.get_in(&transaction, key)?;
                        read.extend(
                            value.and_then(|value| Some(u64::from_be_bytes(*value.first_chunk()?))),
                        );
                        Ok(())
                    }
                }
            });
            match done {
                Ok(()) => {
                    transaction.commit()?;
                    self.read.extend(read.into_iter().filter(|value| !written.contains(value)));
                }
                Err(_) => {
                    transaction.abort()?;
                    self.taken_back.extend(written);
                }
            }
        }
        Ok(self)
    }
}
