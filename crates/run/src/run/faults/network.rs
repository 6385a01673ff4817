//! The network between clients and nodes, which parts them for a while.
//!
//! Every node has a proxy on the loopback interface, and clients know no other way to it. How nodes reach each
//! other is their own business: they are never parted from each other.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use isolario_db::{DbUrl, host_and_port};

use super::super::error::RunError;
use crate::proxy::{Proxy, Traffic};

/// Proxies in front of all nodes.
pub(super) struct Network {
    proxies: Vec<Proxy>,
}

/// In which way clients are parted from a node. Which requests arrive, and which answers, makes the difference
/// for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parting {
    /// Connections are cut, and none can be opened.
    Cut,
    /// Nothing passes, and then everything does: the network was slow.
    Silence,
    /// Requests arrive, and are answered; but before the answers are delivered, connections are cut.
    NoAnswers,
}

const PARTINGS: [Parting; 3] = [Parting::Cut, Parting::Silence, Parting::NoAnswers];

impl Network {
    /// A network in front of these nodes, and the URLs by which clients reach them.
    pub(super) fn before(nodes: &[DbUrl]) -> Result<(Network, Vec<DbUrl>), RunError> {
        let in_front = |url: &DbUrl| {
            let place = host_and_port(url).map_err(RunError::Open)?;
            let failed = |error: io::Error| RunError::Proxy { url: url.clone(), error };
            Proxy::to(place).map_err(failed)
        };
        let proxies = nodes.iter().map(in_front).collect::<Result<Vec<_>, _>>()?;
        let urls = nodes.iter().zip(&proxies).map(|(url, proxy)| url.through(proxy.port()));
        let urls = urls.collect();
        Ok((Network { proxies }, urls))
    }

    /// Parts clients from one node, for the n-th time, and returns whether that hindered any of them.
    pub(super) fn part(&self, count: usize, length: Duration) -> bool {
        let Some((node, parting)) = turn(count, self.proxies.len()) else { return false };
        let proxy = &self.proxies[node];
        let before = proxy.hindered();
        match parting {
            Parting::Cut => {
                proxy.set(Traffic::Refused);
                proxy.cut();
                sleep(length);
            }
            Parting::Silence => {
                proxy.set(Traffic::Held);
                sleep(length);
            }
            Parting::NoAnswers => {
                proxy.set(Traffic::AnswersHeld);
                sleep(length);
                proxy.cut();
            }
        }
        proxy.set(Traffic::Free);
        proxy.hindered() > before
    }
}

/// Nodes take turns, and each of them is parted in another way the next time.
fn turn(count: usize, nodes: usize) -> Option<(usize, Parting)> {
    let round = count.checked_div(nodes)?;
    let first = if nodes.is_multiple_of(PARTINGS.len()) { count + round } else { count };
    Some((count % nodes, PARTINGS[first % PARTINGS.len()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_is_parted_in_every_way() {
        for nodes in 1..=7 {
            let turns: Vec<_> = (0..3 * nodes).filter_map(|count| turn(count, nodes)).collect();
            for node in 0..nodes {
                for parting in PARTINGS {
                    assert!(turns.contains(&(node, parting)), "{nodes} nodes: {node} {parting:?}");
                }
            }
        }
    }

    #[test]
    fn only_servers_can_be_parted_from() {
        let urls = [DbUrl::parse("sqlite:").unwrap()];
        let refused = Network::before(&urls).err().unwrap();
        assert!(matches!(refused, RunError::Open(_)), "{refused}");
    }
}
