//! PostgreSQL: one node, everybody from the loopback interface is let in; the account with a
//! password must know it.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use super::{Durability, NodePlan, Plan, Stop};
use crate::certificate::Certificate;
use crate::error::Doing;
use crate::launch::Launch;
use crate::ports::Ports;
use crate::ready::Ready;
use crate::user::{User, make_directory};
use crate::{ACCOUNT, PASSWORD, ServerError, programs};

const PACKAGE: &str = "postgresql-15";

/// Immediate shutdown, since `SIGKILL` would leave a shared memory segment behind.
pub(super) const STOP: Stop =
    Stop { orderly: Signal::INT, at_once: Signal::QUIT, at_once_name: "QUIT" };

pub(super) fn plan(
    root: &Path,
    durability: Durability,
    ports: &mut Ports,
) -> Result<Plan, ServerError> {
    let [port] = ports.take()?;
    let user = User::unless_unprivileged("postgres", PACKAGE)?;
    let data = root.join("data");
    make_directory(&data, user)?;
    let program = |name| Ok(Launch::new(programs::find(name, PACKAGE)?, &data).user(user));

    program("initdb")?
        .args(["--no-locale", "--no-sync", "-A", "trust", "-E", "UTF8", "-U", "postgres", "-D"])
        .arg(&data)
        .run()?;
    let certificate = Certificate::create(root, user)?;
    configure(&data, port, durability, &certificate)?;

    let client = |database: &str| -> Result<Launch, ServerError> {
        Ok(program("psql")?
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres"])
            .args(["-p", &port.to_string(), "-d", database]))
    };
    let role = format!("CREATE ROLE {ACCOUNT} SUPERUSER LOGIN PASSWORD '{PASSWORD}'");
    Ok(Plan::single(NodePlan {
        name: "postgres".to_owned(),
        launch: program("postgres")?.arg("-D").arg(&data),
        ready: Ready::Program(client("postgres")?.args(["-c", "SELECT 1"])),
        after: vec![
            client("postgres")?.args(["-c", &role]),
            client("postgres")?.args(["-c", "CREATE DATABASE isolario"]),
        ],
        port,
        encrypted_port: port,
        url: format!("postgres://postgres@127.0.0.1:{port}/isolario"),
    }))
}

fn configure(
    data: &Path,
    port: u16,
    durability: Durability,
    certificate: &Certificate,
) -> Result<(), ServerError> {
    let sync = durability.pick("off", "on");
    let settings = format!(
        "listen_addresses = '127.0.0.1'\n\
         port = {port}\n\
         unix_socket_directories = ''\n\
         max_connections = 200\n\
         wal_level = logical\n\
         track_commit_timestamp = on\n\
         fsync = {sync}\n\
         synchronous_commit = {sync}\n\
         full_page_writes = {sync}\n\
         ssl = on\n\
         ssl_cert_file = '{certificate}'\n\
         ssl_key_file = '{key}'\n",
        certificate = certificate.certificate.display(),
        key = certificate.key.display(),
    );
    let access = format!(
        "host all {ACCOUNT} 127.0.0.1/32 scram-sha-256\n\
         host all all 127.0.0.1/32 trust\n"
    );
    // `initdb` has written both files; its user keeps them.
    let write = |name: &str, text: String| {
        let path = data.join(name);
        fs::write(&path, text).doing(|| format!("write {}", path.display()))
    };
    write("postgresql.auto.conf", settings)?;
    write("pg_hba.conf", access)
}
