//! Stoolap at snapshot isolation: four threads add one to a counter, each in a transaction that reads it and writes it.
//! In the end it is less than the number of transactions that committed. Isolario has no part in it.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use std::thread;

use stoolap::{Database, Error, IsolationLevel};

fn main() -> Result<(), Error> {
    let database = Database::open_in_memory()?;
    database.execute("CREATE TABLE counters (id INTEGER PRIMARY KEY, n INTEGER)", ())?;
    database.execute("INSERT INTO counters VALUES (1, 0)", ())?;
    let committed: usize = thread::scope(|scope| {
        let add = || (0..5000).filter(|_| add_one(&database).is_ok()).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(add)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    let n: i64 = database.query_one("SELECT n FROM counters WHERE id = 1", ())?;
    println!("{committed} transactions added one; the counter is {n}");
    Ok(())
}

fn add_one(database: &Database) -> Result<(), Error> {
    let mut transaction = database.begin_with_isolation(IsolationLevel::SnapshotIsolation)?;
    let n: i64 = transaction.query_one("SELECT n FROM counters WHERE id = 1", ())?;
    transaction.execute("UPDATE counters SET n = $1 WHERE id = 1", (n + 1,))?;
    transaction.commit()
}
