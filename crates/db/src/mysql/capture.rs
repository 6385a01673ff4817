//! Capture from MariaDB's binary log, by the program that comes with it.
//!
//! Nothing is made for it, so that nothing can be left behind. The program is asked for what was
//! written between two places of the log, once the clients have gone.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::process::{Command, Stdio};

use isolario_model::{Level, Value};

use super::binlog::{Decoder, place_of};
use super::client::MyClient;
use super::product::ProductKind;
use super::{MySql, PORT, SERIALIZABLE};
use crate::certificate::{Capture, CommitLog, SnapshotNaming};
use crate::error::DbError;
use crate::remote::Stage;
use crate::site::Site;
use crate::sql::{Client, SqlProduct};
use crate::tls::Mode;

const PROGRAM: &str = "mariadb-binlog";

/// ER_SPECIFIC_ACCESS_DENIED_ERROR.
const NO_RIGHT: &str = "1227";

/// A part of the log that has a beginning.
pub(super) struct Binlog {
    mysql: MySql,
    file: String,
    position: u64,
}

/// Begins a capture, or says which setting is in the way.
pub(super) fn start(mysql: &MySql) -> Result<Box<dyn Capture>, DbError> {
    let mut client = mysql.line()?;
    let product = mysql.product(&mut client)?;
    if !matches!(product.kind, ProductKind::MariaDb | ProductKind::Galera) {
        return Err(DbError::fatal(format!(
            "the order of versions is read from MariaDB's binary log, and this is {}",
            product.version
        )));
    }
    let is_on = client.last("SELECT @@log_bin")? == "1";
    let [format, image] =
        [client.last("SELECT @@binlog_format")?, client.last("SELECT @@binlog_row_image")?];
    if !is_on {
        return Err(DbError::fatal("the binary log is off: start the server with log_bin"));
    }
    if format != "ROW" {
        return Err(DbError::fatal(format!(
            "binlog_format is {format}: set binlog_format = ROW, so that the log has rows"
        )));
    }
    if image != "FULL" {
        return Err(DbError::fatal(format!(
            "binlog_row_image is {image}: set binlog_row_image = FULL, so that rows have all columns"
        )));
    }
    if product.kind == ProductKind::Galera && client.last("SELECT @@log_slave_updates")? != "1" {
        return Err(DbError::fatal(
            "log_slave_updates is off: set it, so that the log has what other nodes wrote",
        ));
    }
    let (file, position) = place(&mut client)?;
    let log = Binlog { mysql: mysql.clone(), file, position };
    log.is_readable()?;
    Ok(Box::new(log))
}

/// Where the log ends now.
fn place(client: &mut MyClient) -> Result<(String, u64), DbError> {
    let status = client.run("SHOW MASTER STATUS", Stage::Connect);
    let status = status.map_err(|error| match error.code.as_deref() {
        Some(NO_RIGHT) => no_right("BINLOG MONITOR"),
        _ => error,
    })?;
    match status.rows.first().map(Vec::as_slice) {
        Some([Value::Text(file), Value::Int(position), ..]) => {
            Ok((file.to_string(), *position as u64))
        }
        _ => Err(DbError::fatal("the binary log is off: start the server with log_bin")),
    }
}

fn no_right(right: &str) -> DbError {
    DbError::fatal(format!(
        "the user has no right to read the log: GRANT {right} ON *.* TO …, or name another user"
    ))
}

/// The program, connected as we are. The password is not for others to see.
fn command(site: &Site) -> Command {
    let address = &site.address;
    let mut command = Command::new(PROGRAM);
    command
        .args(["--no-defaults", "--read-from-remote-server", "--protocol=TCP"])
        .args(["--base64-output=DECODE-ROWS", "-v"])
        .arg(format!("--host={}", address.host))
        .arg(format!("--port={}", address.port.unwrap_or(PORT)))
        .arg(format!("--user={}", address.user.as_deref().unwrap_or("root")));
    if let Some(password) = &address.password {
        command.env("MYSQL_PWD", password);
    }
    match site.tls.mode {
        Mode::Disable | Mode::Prefer => command.arg("--skip-ssl"),
        Mode::Require => command.arg("--ssl"),
        Mode::Verify => command.args(["--ssl", "--ssl-verify-server-cert"]),
    };
    if let (Mode::Verify, Some(roots)) = (site.tls.mode, &site.tls.roots) {
        command.arg(format!("--ssl-ca={}", roots.display()));
    }
    command
}

impl Capture for Binlog {
    /// Over a connection of its own: a server that was restarted still has its log.
    fn stop(self: Box<Self>) -> Result<CommitLog, DbError> {
        let end = self.mysql.client().and_then(|mut client| place(&mut client));
        let (file, position) = end.map_err(|error| {
            DbError::fatal(format!("cannot find the end of the binary log: {}", error.message))
        })?;
        let mut decoder = Decoder::new(&self.mysql.site.address.path, &self.file);
        self.read(&["--to-last-log"], |line| decoder.take(line))?;
        if place_of(&file, position).is_none_or(|end| decoder.position() < end) {
            return Err(DbError::fatal(format!(
                "{PROGRAM} did not read the binary log up to its end, {position} of {file}"
            )));
        }
        Ok(CommitLog {
            commits: decoder.commits,
            snapshots: SnapshotNaming::Positions,
            // They find the newest rows.
            writes_see_snapshots: false,
            // Locks are held to the end: the order of commits is one in which all take effect.
            promised: (self.mysql.site.isolation == SERIALIZABLE).then_some(Level::Serializable),
        })
    }
}

impl Binlog {
    /// Reads nothing of the log, as it will be read at the end: what is in the way is found now.
    fn is_readable(&self) -> Result<(), DbError> {
        self.read(&[&format!("--stop-position={}", self.position)], |_| {})
    }

    /// Reads the log from where it began.
    fn read(&self, arguments: &[&str], mut take: impl FnMut(&str)) -> Result<(), DbError> {
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => DbError::fatal(format!(
                "{PROGRAM}, which reads the binary log, is not installed: it is one of MariaDB's client programs"
            )),
            _ => DbError::fatal(format!("{PROGRAM}: {error}")),
        };
        let mut child = command(&self.mysql.site)
            .args(arguments)
            .arg(format!("--start-position={}", self.position))
            .arg(&self.file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        if let Some(out) = child.stdout.take() {
            let mut lines = BufReader::with_capacity(1 << 16, out);
            let mut line = Vec::new();
            // Statements in comments may hold any bytes.
            while lines.read_until(b'\n', &mut line).map_err(failed)? > 0 {
                take(String::from_utf8_lossy(&line).trim_end());
                line.clear();
            }
        }
        let mut words = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            let _ = stderr.read_to_string(&mut words);
        }
        match child.wait().map_err(failed)?.success() {
            true => Ok(()),
            false => Err(self.failure(&words)),
        }
    }

    /// What the program's last words mean.
    fn failure(&self, words: &str) -> DbError {
        let is_said = |part: &str| words.contains(part);
        match () {
            () if is_said("Could not find first log file") => DbError::fatal(format!(
                "{} was purged during the run: raise expire_logs_days",
                self.file
            )),
            () if is_said("REPLICATION SLAVE") => no_right("REPLICATION SLAVE"),
            () => DbError::fatal(format!("{PROGRAM}: {}", words.trim())),
        }
    }
}
