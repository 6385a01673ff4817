//! etcd: one node or several.

use std::path::Path;

use super::{NodePlan, Order, Plan};
use crate::certificate::Certificate;
use crate::launch::Launch;
use crate::ports::Ports;
use crate::ready::Ready;
use crate::{ServerError, programs};

const PACKAGE: &str = "etcd-server";

/// In milliseconds. On a busy machine a leader may be silent for longer than the usual second, and
/// while another one is elected nobody is served.
const PATIENT: [&str; 4] = ["--heartbeat-interval", "200", "--election-timeout", "4000"];

pub(super) fn plan<const NODES: usize>(
    root: &Path,
    ports: &mut Ports,
) -> Result<Plan, ServerError> {
    let program = programs::find("etcd", PACKAGE)?;
    let clients = ports.take::<NODES>()?;
    let secret = ports.take::<NODES>()?;
    let peers = ports.take::<NODES>()?;
    let certificate = Certificate::create(root, None)?;
    let address = |port: u16| format!("http://127.0.0.1:{port}");
    let members: Vec<String> = peers
        .iter()
        .enumerate()
        .map(|(number, &port)| format!("{}={}", name(number), address(port)))
        .collect();

    let ports = clients.into_iter().zip(secret).zip(peers).enumerate();
    let nodes = ports.map(|(number, ((client, encrypted_port), peer))| NodePlan {
        name: name(number),
        launch: Launch::new(program.clone(), root)
            .args(["--name", &name(number), "--logger", "zap", "--log-level", "warn"])
            .args(["--data-dir", &name(number)])
            .args(PATIENT)
            .arg("--listen-client-urls")
            .arg(format!("{},https://127.0.0.1:{encrypted_port}", address(client)))
            .arg("--cert-file")
            .arg(&certificate.certificate)
            .arg("--key-file")
            .arg(&certificate.key)
            .args(["--advertise-client-urls", &address(client)])
            .args(["--listen-peer-urls", &address(peer)])
            .args(["--initial-advertise-peer-urls", &address(peer)])
            .args(["--initial-cluster", &members.join(",")]),
        ready: Ready::Answer {
            port: client,
            question: "GET /health HTTP/1.0\r\n\r\n",
            answer: "\"health\":\"true\"",
        },
        after: Vec::new(),
        port: client,
        encrypted_port,
        url: format!("etcd://127.0.0.1:{client}"),
    });
    Ok(Plan { nodes: nodes.collect(), order: Order::Together })
}

fn name(number: usize) -> String {
    format!("etcd-{}", number + 1)
}
