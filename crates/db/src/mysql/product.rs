//! Which of the products that speak the protocol this is.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::errors::classify;
use crate::error::DbError;
use crate::remote::Stage;

#[derive(Clone)]
pub(super) struct Product {
    /// Its name in the table of claims.
    pub(super) name: &'static str,
    /// Name and version for people.
    pub(super) version: String,
    /// Whether updates at repeatable read are refused if the row changed since the snapshot
    /// (MariaDB's `innodb_snapshot_isolation`, on by default from 11.6.2 on).
    pub(super) has_snapshot_isolation: bool,
}

impl Product {
    pub(super) fn ask(conn: &mut Conn) -> Result<Product, DbError> {
        let failed = |error| classify(error, Stage::Connect);
        let full: Option<String> = conn.query_first("SELECT VERSION()").map_err(failed)?;
        let full = full.unwrap_or_default();
        let comment: Option<String> =
            conn.query_first("SELECT @@version_comment").map_err(failed)?;
        let cluster: Option<(String, String)> =
            conn.query_first("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'").map_err(failed)?;
        let is_cluster = cluster.is_some_and(|(_, on)| on == "ON");
        let snapshots: Option<(String, String)> =
            conn.query_first("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'").map_err(failed)?;
        let has_snapshot_isolation = snapshots.is_some_and(|(_, on)| on == "ON");
        let known = Product::known(&full, &comment.unwrap_or_default(), is_cluster);
        Ok(Product { has_snapshot_isolation, ..known })
    }

    /// By what the server calls its version: `10.11.6-MariaDB-0+deb12u1-log`, `8.0.36`,
    /// `8.0.11-TiDB-v7.5.0`; and by its comment: `Percona Server (GPL), Release 28`.
    ///
    /// Those that only speak the protocol have names of their own, so that nobody's claims are taken
    /// for theirs.
    fn known(full: &str, comment: &str, cluster: bool) -> Product {
        let (name, words) = match full {
            _ if full.contains("MariaDB") && cluster => ("galera", "MariaDB Galera"),
            _ if cluster => ("galera", "Percona XtraDB Cluster"),
            _ if full.contains("MariaDB") => ("mariadb", "MariaDB"),
            _ if full.contains("TiDB") => ("tidb", "TiDB"),
            _ if full.contains("OceanBase") => ("oceanbase", "OceanBase"),
            _ if full.contains("Vitess") => ("vitess", "Vitess"),
            _ if comment.contains("Percona") => ("mysql", "Percona Server"),
            _ => ("mysql", "MySQL"),
        };
        // Those who pretend to be a MySQL put their own number after their name.
        let own = ["TiDB-v", "OceanBase-v"].iter().find_map(|mark| full.split_once(mark));
        let number = own.map_or(full, |(_, number)| number).split('-').next().unwrap_or_default();
        Product { name, version: format!("{words} {number}"), has_snapshot_isolation: false }
    }

    /// What a connection to a node of a cluster does before it looks at tables: nodes apply each
    /// other's changes a little later. The transactions of the workload do not wait.
    pub(super) fn catch_up(&self) -> &'static [&'static str] {
        match self.name {
            "galera" => &[
                "SET SESSION wsrep_sync_wait = 1",
                "SELECT 1 FROM DUAL",
                "SET SESSION wsrep_sync_wait = 0",
            ],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_known_by_their_versions() {
        let percona = "Percona Server (GPL), Release 28";
        for (full, comment, cluster, name, version) in [
            ("10.11.6-MariaDB-0+deb12u1-log", "Debian 12", false, "mariadb", "MariaDB 10.11.6"),
            (
                "10.11.6-MariaDB-0+deb12u1-log",
                "Debian 12",
                true,
                "galera",
                "MariaDB Galera 10.11.6",
            ),
            ("8.0.36", "MySQL Community Server - GPL", false, "mysql", "MySQL 8.0.36"),
            ("8.0.36-28", percona, false, "mysql", "Percona Server 8.0.36"),
            ("8.0.36-28.1", percona, true, "galera", "Percona XtraDB Cluster 8.0.36"),
            ("8.0.11-TiDB-v7.5.0", "TiDB Server", false, "tidb", "TiDB 7.5.0"),
            ("5.7.25-OceanBase-v4.2.1.0", "OceanBase", false, "oceanbase", "OceanBase 4.2.1.0"),
        ] {
            let product = Product::known(full, comment, cluster);
            assert_eq!((product.name, product.version.as_str()), (name, version));
        }
    }
}
