//! A cluster of MariaDB and Galera that loses transactions which it said it had committed.
//!
//! Each session inserts a number of its own, updates one of a few rows, and prepares a statement before it
//! commits. Where the transaction is aborted for another node's while that statement is prepared, neither
//! the preparation nor the commit fails, and the number is on no node.
//!
//! Takes the URLs of the nodes, and `text` to ask the same question without preparing it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that shows one thing")]

use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Error};

const SESSIONS: u64 = 6;
const TRANSACTIONS: u64 = 200;

fn main() -> Result<(), Error> {
    let (text, nodes): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|word| word == "text");
    let mut conn = Conn::new(nodes[0].as_str())?;
    for statement in [
        "CREATE OR REPLACE TABLE lost_row (k BIGINT PRIMARY KEY, v BIGINT)",
        "CREATE OR REPLACE TABLE lost_number (n BIGINT PRIMARY KEY)",
        "INSERT INTO lost_row SELECT seq, 0 FROM seq_0_to_19",
    ] {
        conn.query_drop(statement)?;
    }
    thread::sleep(Duration::from_secs(1));
    let sessions = (0..SESSIONS).map(|session| {
        let (node, is_text) = (nodes[session as usize % nodes.len()].clone(), !text.is_empty());
        thread::spawn(move || told_committed(&node, session, is_text))
    });
    let sessions: Vec<_> = sessions.collect();
    let told: Vec<u64> = sessions.into_iter().flat_map(|it| it.join().unwrap().unwrap()).collect();
    conn.query_drop("SET SESSION wsrep_sync_wait = 1")?;
    let there: Vec<u64> = conn.query("SELECT n FROM lost_number")?;
    let lost = told.iter().filter(|number| !there.contains(number)).count();
    println!(
        "{} transactions were told that they had committed; {lost} of them are lost",
        told.len()
    );
    conn.query_drop("DROP TABLE lost_row, lost_number")
}

/// The numbers whose transactions were told that they had committed.
fn told_committed(node: &str, session: u64, is_text: bool) -> Result<Vec<u64>, Error> {
    let mut conn = Conn::new(node)?;
    conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")?;
    let mut told = Vec::new();
    for number in (0..TRANSACTIONS).map(|n| session * TRANSACTIONS + n) {
        match transaction(&mut conn, number, is_text) {
            Ok(()) => told.push(number),
            Err(Error::MySqlError(_)) => conn.query_drop("ROLLBACK")?,
            Err(broken) => return Err(broken),
        }
    }
    Ok(told)
}

fn transaction(conn: &mut Conn, number: u64, is_text: bool) -> Result<(), Error> {
    conn.query_drop("START TRANSACTION")?;
    conn.query_drop(format!("INSERT INTO lost_number VALUES ({number})"))?;
    conn.query_drop(format!("UPDATE lost_row SET v = {number} WHERE k = {}", number * 7 % 20))?;
    let question = format!("SELECT v FROM lost_row WHERE k = {}", number * 3 % 20);
    match is_text {
        true => drop(conn.query::<u64, _>(question)?),
        false => drop(conn.prep(question)?),
    }
    conn.query_drop("COMMIT")
}
