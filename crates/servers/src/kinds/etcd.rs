//! etcd: one node or several.

use std::path::Path;

use super::{NodePlan, Order, Plan};
use crate::launch::Launch;
use crate::ready::Ready;
use crate::{ServerError, ports, programs};

const PACKAGE: &str = "etcd-server";

pub(super) fn plan<const NODES: usize>(root: &Path) -> Result<Plan, ServerError> {
    let program = programs::find("etcd", PACKAGE)?;
    let clients = ports::free::<NODES>()?;
    let peers = ports::free::<NODES>()?;
    let address = |port: u16| format!("http://127.0.0.1:{port}");
    let members: Vec<String> = peers
        .iter()
        .enumerate()
        .map(|(number, &port)| format!("{}={}", name(number), address(port)))
        .collect();

    let nodes = clients.iter().zip(peers).enumerate().map(|(number, (&client, peer))| NodePlan {
        name: name(number),
        launch: Launch::new(program.clone(), root)
            .args(["--name", &name(number), "--logger", "zap", "--log-level", "warn"])
            .args(["--data-dir", &name(number)])
            .args(["--listen-client-urls", &address(client)])
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
        url: format!("etcd://127.0.0.1:{client}"),
    });
    Ok(Plan { nodes: nodes.collect(), order: Order::Together })
}

fn name(number: usize) -> String {
    format!("etcd-{}", number + 1)
}
