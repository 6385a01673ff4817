//! Who waits for a lock, as InnoDB's monitor tells.
//!
//! `information_schema.innodb_trx` would be easier to read. But it is a copy that is made anew only if
//! nobody has looked at it for a tenth of a second: whoever asks again and again is never told.

use isolario_model::Value;

use super::client::MyClient;
use crate::database::LockView;
use crate::error::DbError;
use crate::remote::Stage;
use crate::sql::Client;

pub(super) struct InnoDb(MyClient);

impl InnoDb {
    /// Nothing where the server has no such monitor, or does not let us see it.
    pub(super) fn new(client: MyClient) -> Option<InnoDb> {
        let mut view = InnoDb(client);
        view.is_waiting(0).is_ok().then_some(view)
    }
}

impl LockView for InnoDb {
    fn is_waiting(&mut self, connection: u64) -> Result<bool, DbError> {
        let status = self.0.run("SHOW ENGINE INNODB STATUS", Stage::Connect)?;
        match status.rows.first().and_then(|row| row.last()) {
            Some(Value::Text(text)) => Ok(waits(text, connection)),
            _ => Err(DbError::unsupported("monitor of InnoDB")),
        }
    }
}

/// Every transaction has a paragraph. That of one that waits says `LOCK WAIT`, and each names its
/// connection: `MariaDB thread id 7, OS thread handle …`.
fn waits(status: &str, connection: u64) -> bool {
    let name = format!(" thread id {connection},");
    let mut paragraphs = status.split("---TRANSACTION ").skip(1);
    paragraphs.any(|text| text.contains(&name) && text.contains("\nLOCK WAIT "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "\
TRANSACTIONS
------------
Trx id counter 31
LIST OF TRANSACTIONS FOR EACH SESSION:
---TRANSACTION 30, ACTIVE 0 sec starting index read
mysql tables in use 1, locked 1
LOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)
MariaDB thread id 7, OS thread handle 140, query id 41 localhost root Updating
UPDATE isolario_register SET v = 2 WHERE k = 1
------- TRX HAS BEEN WAITING 3541 us FOR THIS LOCK TO BE GRANTED:
---TRANSACTION 29, ACTIVE 1 sec
2 lock struct(s), heap size 1128, 1 row lock(s), undo log entries 1
MariaDB thread id 71, OS thread handle 141, query id 40 localhost root
";

    #[test]
    fn a_transaction_that_waits_is_found_by_its_connection() {
        assert!(waits(STATUS, 7));
        assert!(!waits(STATUS, 71));
        assert!(!waits(STATUS, 1));
        assert!(!waits("", 7));
    }
}
