//! Redis: one node.

use std::path::Path;

use super::{Durability, NodePlan, Plan};
use crate::certificate::Certificate;
use crate::launch::Launch;
use crate::ports::Ports;
use crate::ready::Ready;
use crate::{ACCOUNT, PASSWORD, ServerError, programs};

const PACKAGE: &str = "redis-server";

pub(super) fn plan(
    root: &Path,
    durability: Durability,
    ports: &mut Ports,
) -> Result<Plan, ServerError> {
    let [port, encrypted_port] = ports.take()?;
    let certificate = Certificate::create(root, None)?;
    let launch = Launch::new(programs::find("redis-server", PACKAGE)?, root)
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--daemonize", "no"])
        .args(["--tls-port", &encrypted_port.to_string(), "--tls-auth-clients", "no"])
        .arg("--tls-cert-file")
        .arg(certificate.certificate)
        .arg("--tls-key-file")
        .arg(certificate.key)
        .args(["--save", "", "--appendonly", durability.pick("no", "yes")])
        .args(["--appendfsync", durability.pick("no", "always")])
        .args(["--user", ACCOUNT, "on", &format!(">{PASSWORD}"), "~*", "&*", "+@all"]);
    Ok(Plan::single(NodePlan {
        name: "redis".to_owned(),
        launch: launch.arg("--dir").arg(root),
        ready: Ready::Answer { port, question: "PING\r\n", answer: "+PONG" },
        after: Vec::new(),
        port,
        encrypted_port,
        url: format!("redis://127.0.0.1:{port}"),
    }))
}
