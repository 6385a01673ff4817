//! A MariaDB Galera cluster of three nodes: the first founds it, the others copy its state.
//!
//! Without encryption: its nodes would want to copy their state in secret too, by yet another
//! program.

use std::path::Path;

use super::mariadb::Node;
use super::{Durability, Order, Plan};
use crate::{ServerError, ports, programs};

const PACKAGE: &str = "galera-4";
const NODES: usize = 3;

/// Where Debian and others keep the library, by architecture.
const LIBRARY_DIRECTORIES: [&str; 5] = [
    "/usr/lib",
    "/usr/lib/galera",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64/galera-4",
];

/// Fails as long as the node is not a synchronised member: a subquery of two rows where one is
/// expected.
const IS_SYNCED: &str = "SELECT 1 FROM DUAL WHERE 1 = (SELECT 1 UNION ALL SELECT 1 FROM \
     information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_LOCAL_STATE' \
     AND VARIABLE_VALUE <> '4')";

pub(super) fn plan(root: &Path, durability: Durability) -> Result<Plan, ServerError> {
    let library = programs::find_library("libgalera_smm.so", &LIBRARY_DIRECTORIES, PACKAGE)?;
    // The state transfer is rsync's work.
    programs::find("rsync", "rsync")?;

    let sql = ports::free::<NODES>()?;
    let [group, incremental, transfer] = three_sets()?;
    let members = group.map(|port| format!("127.0.0.1:{port}")).join(",");

    let mut nodes = Vec::with_capacity(NODES);
    for number in 0..NODES {
        let name = format!("galera-{}", number + 1);
        let server_id = u32::try_from(number).unwrap_or(u32::MAX) + 1;
        let node = Node::new(&name, &root.join(&name), sql[number], server_id)?;
        let (group, incremental, transfer) = (group[number], incremental[number], transfer[number]);
        node.configure(
            durability,
            &format!(
                "log_slave_updates=ON\n\
                 innodb_autoinc_lock_mode=2\n\
                 wsrep_on=ON\n\
                 wsrep_provider={library}\n\
                 wsrep_cluster_address=gcomm://{members}\n\
                 wsrep_node_name={name}\n\
                 wsrep_node_address=127.0.0.1:{group}\n\
                 wsrep_sst_method=rsync\n\
                 wsrep_sst_receive_address=127.0.0.1:{transfer}\n\
                 wsrep_gtid_mode=ON\n\
                 wsrep_gtid_domain_id=7\n\
                 wsrep_provider_options=\"gmcast.listen_addr=tcp://127.0.0.1:{group};\
                 ist.recv_addr=127.0.0.1:{incremental};ist.recv_bind=127.0.0.1:{incremental};\
                 gcache.size=64M\"\n",
                library = library.display(),
            ),
        )?;
        let founder = number == 0;
        if founder {
            node.install(&["--wsrep-on=OFF"])?;
        }
        let arguments: &[&str] = if founder { &["--wsrep-new-cluster"] } else { &[] };
        nodes.push(node.plan(arguments, IS_SYNCED, founder)?);
    }
    Ok(Plan { nodes, order: Order::OneByOne })
}

/// The ports a node needs beside the one for clients: for the group, and for two ways to get the
/// state.
fn three_sets() -> Result<[[u16; NODES]; 3], ServerError> {
    let [a, b, c, d, e, f, g, h, i] = ports::free()?;
    Ok([[a, b, c], [d, e, f], [g, h, i]])
}
