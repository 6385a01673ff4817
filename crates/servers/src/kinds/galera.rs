//! A MariaDB Galera cluster of three nodes: the first founds it, the others copy its state.
//!
//! Clients may ask for encryption. The nodes talk to each other without it: copying the state in
//! secret would take yet another program.

use std::path::Path;

use super::mariadb::{Node, encryption};
use super::{Durability, Order, Plan};
use crate::ports::Ports;
use crate::{ServerError, programs};

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

/// On a busy machine a node may be silent for a while. The others should not take it for dead: the
/// cluster would fall apart, and refuse everything until it has found together again.
const PATIENT: &str = "gmcast.peer_timeout=PT30S;evs.suspect_timeout=PT60S;\
     evs.inactive_timeout=PT120S;evs.install_timeout=PT60S;evs.keepalive_period=PT1S";

/// Fails as long as the node is not a synchronised member: a subquery of two rows where one is
/// expected.
const IS_SYNCED: &str = "SELECT 1 FROM DUAL WHERE 1 = (SELECT 1 UNION ALL SELECT 1 FROM \
     information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_LOCAL_STATE' \
     AND VARIABLE_VALUE <> '4')";

pub(super) fn plan(
    root: &Path,
    durability: Durability,
    ports: &mut Ports,
) -> Result<Plan, ServerError> {
    let library = programs::find_library("libgalera_smm.so", &LIBRARY_DIRECTORIES, PACKAGE)?;
    // The state transfer is rsync's work.
    programs::find("rsync", "rsync")?;

    let sql = ports.take::<NODES>()?;
    // For the group, and for two ways to get the state.
    let group = ports.take::<NODES>()?;
    let incremental = ports.take::<NODES>()?;
    let transfer = ports.take::<NODES>()?;
    let encryption = encryption(root)?;
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
                "{encryption}\
                 log_slave_updates=ON\n\
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
                 gcache.size=64M;{PATIENT}\"\n\
                 [sst]\n\
                 ssl_mode=DISABLED\n",
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
