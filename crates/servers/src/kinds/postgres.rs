//! PostgreSQL, alone or followed by a standby. Everybody from the loopback interface is let in; the
//! account with a password must know it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::{Durability, NodePlan, Order, Plan, Stop};
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
    let server = Server::new(root.join("data"), ports)?;
    server.install(root, durability)?;
    Ok(Plan::single(server.primary()?))
}

/// A primary and a standby, which starts from a copy of it. Commits wait for the standby if their
/// session asks for that (`synchronous_commit`), but none did before there was one.
pub(super) fn plan_with_standby(
    root: &Path,
    durability: Durability,
    ports: &mut Ports,
) -> Result<Plan, ServerError> {
    let primary = Server::new(root.join("data"), ports)?;
    let standby = Server::new(root.join("standby"), ports)?;
    primary.install(root, durability)?;

    let mut first = primary.primary()?;
    first.after.push(
        primary
            .program("pg_basebackup")?
            .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &primary.port.to_string()])
            .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "-D"])
            .arg(&standby.data),
    );
    let mut second = standby.node("postgres-standby")?;
    // The copy has the settings of the primary, its port among them.
    second.launch = second.launch.args(["-c", &format!("port={}", standby.port)]);
    second.after = vec![
        primary
            .client("postgres")?
            .args(["-c", "ALTER SYSTEM SET synchronous_standby_names = '*'"])
            .args(["-c", "SELECT pg_reload_conf()"]),
    ];
    Ok(Plan { nodes: vec![first, second], order: Order::OneByOne })
}

/// Where a server has its files and its port.
struct Server {
    data: PathBuf,
    port: u16,
    user: Option<User>,
}

impl Server {
    fn new(data: PathBuf, ports: &mut Ports) -> Result<Server, ServerError> {
        let [port] = ports.take()?;
        let user = User::unless_unprivileged("postgres", PACKAGE)?;
        make_directory(&data, user)?;
        // The server refuses files that others may look at.
        fs::set_permissions(&data, Permissions::from_mode(0o700))
            .doing(|| format!("close {} to others", data.display()))?;
        Ok(Server { data, port, user })
    }

    fn program(&self, name: &str) -> Result<Launch, ServerError> {
        Ok(Launch::new(programs::find(name, PACKAGE)?, &self.data).user(self.user))
    }

    fn client(&self, database: &str) -> Result<Launch, ServerError> {
        Ok(self
            .program("psql")?
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres"])
            .args(["-p", &self.port.to_string(), "-d", database]))
    }

    /// Makes its files.
    fn install(&self, root: &Path, durability: Durability) -> Result<(), ServerError> {
        self.program("initdb")?
            .args(["--no-locale", "--no-sync", "-A", "trust", "-E", "UTF8", "-U", "postgres", "-D"])
            .arg(&self.data)
            .run()?;
        let certificate = Certificate::create(root, self.user)?;
        configure(&self.data, self.port, durability, &certificate)
    }

    fn node(&self, name: &str) -> Result<NodePlan, ServerError> {
        let port = self.port;
        Ok(NodePlan {
            name: name.to_owned(),
            launch: self.program("postgres")?.arg("-D").arg(&self.data),
            ready: Ready::Program(self.client("postgres")?.args(["-c", "SELECT 1"])),
            after: Vec::new(),
            port,
            encrypted_port: port,
            url: format!("postgres://postgres@127.0.0.1:{port}/isolario"),
        })
    }

    /// The node that has the accounts and the database made.
    fn primary(&self) -> Result<NodePlan, ServerError> {
        let role = format!("CREATE ROLE {ACCOUNT} SUPERUSER LOGIN PASSWORD '{PASSWORD}'");
        let mut node = self.node("postgres")?;
        node.after = vec![
            self.client("postgres")?.args(["-c", &role]),
            self.client("postgres")?.args(["-c", "CREATE DATABASE isolario"]),
        ];
        Ok(node)
    }
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
         host all all 127.0.0.1/32 trust\n\
         host replication all 127.0.0.1/32 trust\n"
    );
    // `initdb` has written both files; its user keeps them.
    let write = |name: &str, text: String| {
        let path = data.join(name);
        fs::write(&path, text).doing(|| format!("write {}", path.display()))
    };
    write("postgresql.auto.conf", settings)?;
    write("pg_hba.conf", access)
}
