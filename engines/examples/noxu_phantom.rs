//! Noxu DB at serializable: a transaction finds a record that was not there when it looked before, and two
//! transactions that both found none both insert it. Isolario has no part in it.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use noxu::{DatabaseConfig, Environment, EnvironmentConfig, TransactionConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let config = EnvironmentConfig::new(folder.path().into());
    let environment = Environment::open(config.with_allow_create(true).with_transactional(true))?;
    let config = DatabaseConfig::new().with_allow_create(true).with_transactional(true);
    let database = environment.open_database(None, "records", &config)?;

    let serializable = TransactionConfig::new().with_serializable_isolation(true);
    let first = environment.begin_transaction(Some(&serializable))?;
    let second = environment.begin_transaction(Some(&serializable))?;
    println!("the first looks for k:  {:?}", database.get_in(&first, b"k")?);
    println!("the second looks for k: {:?}", database.get_in(&second, b"k")?);
    database.put_in(&second, b"k", b"second")?;
    second.commit()?;
    println!("the second inserts k, and commits");
    println!("the first looks for k:  {:?}", database.get_in(&first, b"k")?);
    database.put_in(&first, b"k", b"first")?;
    first.commit()?;
    println!("the first inserts k, and commits");
    Ok(())
}
