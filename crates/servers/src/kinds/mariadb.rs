//! MariaDB: one node, `root` without a password from the loopback interface; the account with a
//! password must know it.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Durability, NodePlan, Plan};
use crate::certificate::Certificate;
use crate::error::Doing;
use crate::launch::Launch;
use crate::ports::Ports;
use crate::ready::Ready;
use crate::user::{User, make_directory};
use crate::{ACCOUNT, PASSWORD, ServerError, programs};

pub(super) const PACKAGE: &str = "mariadb-server";

pub(super) fn plan(
    root: &Path,
    durability: Durability,
    ports: &mut Ports,
) -> Result<Plan, ServerError> {
    let [port] = ports.take()?;
    let node = Node::new("mariadb", root, port, 1)?;
    node.configure(durability, &encryption(root)?)?;
    node.install(&[])?;
    Ok(Plan::single(node.plan(&[], "SELECT 1", true)?))
}

/// The settings for a new certificate; all nodes of a cluster have the same.
pub(super) fn encryption(root: &Path) -> Result<String, ServerError> {
    let files = Certificate::create(root, User::unless_unprivileged("mysql", PACKAGE)?)?;
    Ok(format!("ssl_cert={}\nssl_key={}\n", files.certificate.display(), files.key.display()))
}

/// One server with its own directory and configuration file. Galera's nodes are such servers too.
pub(super) struct Node {
    name: String,
    directory: PathBuf,
    port: u16,
    server_id: u32,
    user: Option<User>,
}

impl Node {
    pub(super) fn new(
        name: &str,
        directory: &Path,
        port: u16,
        server_id: u32,
    ) -> Result<Self, ServerError> {
        let user = User::unless_unprivileged("mysql", PACKAGE)?;
        make_directory(directory, user)?;
        make_directory(&directory.join("data"), user)?;
        // A server that starts removes the temporary tables it finds, those of others too.
        make_directory(&directory.join("tmp"), user)?;
        Ok(Self { name: name.to_owned(), directory: directory.to_owned(), port, server_id, user })
    }

    fn defaults(&self) -> String {
        format!("--defaults-file={}", self.directory.join("my.cnf").display())
    }

    fn program(&self, name: &str) -> Result<Launch, ServerError> {
        let program = programs::find(name, PACKAGE)?;
        Ok(Launch::new(program, &self.directory).user(self.user).arg(self.defaults()))
    }

    /// Writes the configuration file.
    pub(super) fn configure(&self, durability: Durability, extra: &str) -> Result<(), ServerError> {
        let at = |name: &str| self.directory.join(name).display().to_string();
        let settings = format!(
            "[mariadbd]\n\
             datadir={data}\n\
             tmpdir={tmp}\n\
             socket={socket}\n\
             pid-file={pid_file}\n\
             bind-address=127.0.0.1\n\
             port={port}\n\
             skip-name-resolve\n\
             max_connections=200\n\
             server_id={server_id}\n\
             log_bin={binlog}\n\
             binlog_format=ROW\n\
             binlog_row_image=FULL\n\
             innodb_buffer_pool_size=64M\n\
             innodb_log_file_size=32M\n\
             innodb_flush_log_at_trx_commit={flush}\n\
             sync_binlog={flush}\n\
             innodb_lock_wait_timeout=3\n\
             {extra}",
            data = at("data"),
            tmp = at("tmp"),
            socket = at("socket"),
            pid_file = at("pid"),
            binlog = at("data/binlog"),
            port = self.port,
            server_id = self.server_id,
            flush = durability.pick(0, 1),
        );
        let path = self.directory.join("my.cnf");
        fs::write(&path, settings).doing(|| format!("write {}", path.display()))
    }

    /// Installs the system tables.
    pub(super) fn install(&self, arguments: &[&str]) -> Result<(), ServerError> {
        self.program("mariadb-install-db")?
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(arguments)
            .run()
    }

    /// How to start it. It is ready when `question` succeeds; the first node of a cluster then
    /// gets a database and the account with a password.
    pub(super) fn plan(
        &self,
        arguments: &[&str],
        question: &str,
        first: bool,
    ) -> Result<NodePlan, ServerError> {
        let port = self.port;
        let client = |statement: &str| -> Result<Launch, ServerError> {
            Ok(self
                .program("mariadb")?
                .args(["--protocol=TCP", "-h", "127.0.0.1", "-u", "root"])
                .args(["-P", &port.to_string(), "-e", statement]))
        };
        let account = format!(
            "CREATE DATABASE isolario; \
             CREATE USER '{ACCOUNT}'@'%' IDENTIFIED BY '{PASSWORD}'; \
             GRANT ALL ON *.* TO '{ACCOUNT}'@'%'"
        );
        Ok(NodePlan {
            name: self.name.clone(),
            launch: self.program("mariadbd")?.args(arguments),
            ready: Ready::Program(client(question)?),
            after: if first { vec![client(&account)?] } else { Vec::new() },
            port,
            encrypted_port: port,
            url: format!("mysql://root@127.0.0.1:{port}/isolario"),
        })
    }
}
