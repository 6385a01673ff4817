//! MariaDB's binary log as `mariadb-binlog --base64-output=DECODE-ROWS -v` prints it: only what says
//! which rows of our table changed.

use crate::certificate::{LoggedCommit, RowChange};
use crate::table::TABLE;

/// The columns of our table, by their numbers from 1.
const ID: &str = "1";
const VERSION: &str = "4";

/// Reads lines one after the other.
#[derive(Default)]
pub(crate) struct Decoder {
    /// How our table is called, with its database.
    table: String,
    /// The number of the file.
    file: u64,
    /// The end of the last event, in bytes of its file.
    position: u64,
    open: Vec<RowChange>,
    row: Option<Row>,
    /// What has committed.
    pub(crate) commits: Vec<LoggedCommit>,
}

/// A row that is being read.
#[derive(Clone, Copy)]
struct Row {
    is_ours: bool,
    /// Whether what follows is how it was, and not how it is.
    is_before: bool,
    before: Image,
    after: Image,
}

#[derive(Clone, Copy, Default)]
struct Image {
    id: Option<i64>,
    version: Option<i64>,
}

impl Decoder {
    /// A reader of the changes of our table in a database, from a place in a file of the log.
    pub(crate) fn new(database: &str, file: &str) -> Decoder {
        let file = file_number(file).unwrap_or_default();
        Decoder { table: format!("`{database}`.`{TABLE}`"), file, ..Decoder::default() }
    }

    /// Takes a line.
    pub(crate) fn take(&mut self, line: &str) {
        match line.strip_prefix("### ") {
            Some(row) => self.take_row(row),
            None => {
                self.close_row();
                self.take_event(line);
            }
        }
    }

    /// How far the log was read.
    pub(crate) fn position(&self) -> u64 {
        place(self.file, self.position)
    }

    fn take_event(&mut self, line: &str) {
        if let Some((_, rest)) =
            line.strip_prefix('#').and_then(|line| line.split_once("end_log_pos "))
        {
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            self.position = number.parse().unwrap_or(self.position);
            if let Some((_, file)) = rest.split_once("\tRotate to ") {
                let name = file.split_whitespace().next().unwrap_or_default();
                self.file = file_number(name).unwrap_or(self.file);
                self.position = 0;
            }
            if rest.contains("\tGTID ") {
                self.open.clear();
            }
        } else if line.starts_with("COMMIT") {
            let changes = std::mem::take(&mut self.open);
            if !changes.is_empty() {
                self.commits.push(LoggedCommit { number: self.position(), at: None, changes });
            }
        } else if line.starts_with("ROLLBACK") {
            self.open.clear();
        }
    }

    fn take_row(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["INSERT", "INTO", table] | ["UPDATE", table] | ["DELETE", "FROM", table] => {
                self.close_row();
                let is_ours = table == self.table;
                let (before, after) = (Image::default(), Image::default());
                self.row = Some(Row { is_ours, is_before: false, before, after });
            }
            [part @ ("WHERE" | "SET")] => {
                self.row.iter_mut().for_each(|row| row.is_before = part == "WHERE");
            }
            [value, ..] => {
                let Some((column, value)) =
                    value.strip_prefix('@').and_then(|it| it.split_once('='))
                else {
                    return;
                };
                let Some(row) = &mut self.row else { return };
                let image = if row.is_before { &mut row.before } else { &mut row.after };
                match column {
                    ID => image.id = value.parse().ok(),
                    VERSION => image.version = value.parse().ok(),
                    _ => {}
                }
            }
            [] => {}
        }
    }

    fn close_row(&mut self) {
        let Some(row) = self.row.take().filter(|row| row.is_ours) else { return };
        if let Some(id) = row.after.id.or(row.before.id) {
            self.open.push(RowChange {
                row: id,
                before: row.before.version,
                after: row.after.version,
            });
        }
    }
}

/// The number in the name of a file of the log: `binlog.000017`.
fn file_number(name: &str) -> Option<u64> {
    name.rsplit_once('.')?.1.parse().ok()
}

fn place(file: u64, position: u64) -> u64 {
    (file << 40) | position
}

/// A place in the log as a number that grows with the log.
pub(crate) fn place_of(file: &str, position: u64) -> Option<u64> {
    Some(place(file_number(file)?, position))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
# at 342
#261116  5:31:44 server id 1  end_log_pos 384 CRC32 0x5b9c7500 \tGTID 0-1-7 trans
/*M!100001 SET @@session.gtid_seq_no=7*//*!*/;
START TRANSACTION
/*!*/;
#Q> COMMIT is no commit in a comment
#261116  5:31:44 server id 1  end_log_pos 712 CRC32 0x7764b4ea \tTable_map: `isolario`.`isolario_row` mapped to number 32
#261116  5:31:44 server id 1  end_log_pos 778 CRC32 0x20f688ce \tWrite_rows: table id 32 flags: STMT_END_F
### INSERT INTO `isolario`.`isolario_row`
### SET
###   @1=561
###   @2=860
###   @3=295
###   @4=55173
###   @5=NULL
### INSERT INTO `isolario`.`isolario_row`
### SET
###   @1=562
###   @4=55173
# Number of rows: 2
### UPDATE `isolario`.`isolario_row`
### WHERE
###   @1=561
###   @4=55173
### SET
###   @1=561
###   @4=55174
### DELETE FROM `isolario`.`isolario_row`
### WHERE
###   @1=561
###   @4=55174
### INSERT INTO `isolario`.`another`
### SET
###   @1=1
#261116  5:31:44 server id 1  end_log_pos 902 CRC32 0x7d294e69 \tXid = 30676
COMMIT/*!*/;
#261116  5:31:44 server id 1  end_log_pos 950 CRC32 0x0 \tRotate to binlog.000003  pos: 4
#261116  5:31:44 server id 1  end_log_pos 400 CRC32 0x5b9c7500 \tGTID 0-1-8 trans
### INSERT INTO `isolario`.`isolario_row`
### SET
###   @1=7
###   @4=9
ROLLBACK /* added by mysqlbinlog */;
";

    #[test]
    fn rows_of_our_table_come_with_their_commit() {
        let mut decoder = Decoder::new("isolario", "binlog.000002");
        SAMPLE.lines().for_each(|line| decoder.take(line));
        let change = |row, before, after| RowChange { row, before, after };
        let changes = vec![
            change(561, None, Some(55173)),
            change(562, None, Some(55173)),
            change(561, Some(55173), Some(55174)),
            change(561, Some(55174), None),
        ];
        let number = place_of("binlog.000002", 902).unwrap();
        assert_eq!(decoder.commits, [LoggedCommit { number, at: None, changes }]);
        assert_eq!(decoder.position(), place_of("binlog.000003", 400).unwrap());
    }
}
