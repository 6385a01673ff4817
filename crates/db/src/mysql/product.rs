//! Which of the products that speak the protocol this is.

use super::client::MyClient;
use crate::error::DbError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProductKind {
    MySql,
    MariaDb,
    Galera,
    TiDb,
    OceanBase,
    Vitess,
}

impl ProductKind {
    /// Its name in the table of claims.
    pub(super) fn name(self) -> &'static str {
        match self {
            ProductKind::MySql => "mysql",
            ProductKind::MariaDb => "mariadb",
            ProductKind::Galera => "galera",
            ProductKind::TiDb => "tidb",
            ProductKind::OceanBase => "oceanbase",
            ProductKind::Vitess => "vitess",
        }
    }
}

/// What the server says that it is.
#[derive(Clone)]
pub(super) struct Product {
    pub(super) kind: ProductKind,
    /// Name and version for people.
    pub(super) version: String,
    /// Whether updates at repeatable read are refused if the row changed since the snapshot
    /// (MariaDB's `innodb_snapshot_isolation`, on by default from 11.6.2 on).
    pub(super) has_snapshot_isolation: bool,
}

impl Product {
    pub(super) fn ask(client: &mut MyClient) -> Result<Product, DbError> {
        let full = client.last("SELECT VERSION()")?;
        let comment = client.last("SELECT @@version_comment")?;
        let is_cluster = client.last("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'")? == "ON";
        let has_snapshot_isolation =
            client.last("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'")? == "ON";
        Ok(Product { has_snapshot_isolation, ..Product::known(&full, &comment, is_cluster) })
    }

    /// By what the server calls its version: `10.11.6-MariaDB-0+deb12u1-log`, `8.0.36`,
    /// `8.0.11-TiDB-v7.5.0`; and by its comment: `Percona Server (GPL), Release 28`.
    ///
    /// Those that only speak the protocol have names of their own, so that nobody's claims are taken
    /// for theirs.
    fn known(full: &str, comment: &str, cluster: bool) -> Product {
        let (kind, words) = match full {
            _ if full.contains("MariaDB") && cluster => (ProductKind::Galera, "MariaDB Galera"),
            _ if cluster => (ProductKind::Galera, "Percona XtraDB Cluster"),
            _ if full.contains("MariaDB") => (ProductKind::MariaDb, "MariaDB"),
            _ if full.contains("TiDB") => (ProductKind::TiDb, "TiDB"),
            _ if full.contains("OceanBase") => (ProductKind::OceanBase, "OceanBase"),
            _ if full.contains("Vitess") => (ProductKind::Vitess, "Vitess"),
            _ if comment.contains("Percona") => (ProductKind::MySql, "Percona Server"),
            _ => (ProductKind::MySql, "MySQL"),
        };
        // Those who pretend to be a MySQL put their own number after their name.
        let own = ["TiDB-v", "OceanBase-v"].iter().find_map(|mark| full.split_once(mark));
        let number = own.map_or(full, |(_, number)| number).split('-').next().unwrap_or_default();
        Product { kind, version: format!("{words} {number}"), has_snapshot_isolation: false }
    }

    /// What a connection to a node of a cluster does before it looks at tables: nodes apply each
    /// other's changes a little later. The transactions of the workload do not wait.
    pub(super) fn catch_up(&self) -> &'static [&'static str] {
        match self.kind {
            ProductKind::Galera => &[
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
        for (full, comment, cluster, kind, version) in [
            (
                "10.11.6-MariaDB-0+deb12u1-log",
                "Debian 12",
                false,
                ProductKind::MariaDb,
                "MariaDB 10.11.6",
            ),
            (
                "10.11.6-MariaDB-0+deb12u1-log",
                "Debian 12",
                true,
                ProductKind::Galera,
                "MariaDB Galera 10.11.6",
            ),
            ("8.0.36", "MySQL Community Server - GPL", false, ProductKind::MySql, "MySQL 8.0.36"),
            ("8.0.36-28", percona, false, ProductKind::MySql, "Percona Server 8.0.36"),
            ("8.0.36-28.1", percona, true, ProductKind::Galera, "Percona XtraDB Cluster 8.0.36"),
            ("8.0.11-TiDB-v7.5.0", "TiDB Server", false, ProductKind::TiDb, "TiDB 7.5.0"),
            (
                "5.7.25-OceanBase-v4.2.1.0",
                "OceanBase",
                false,
                ProductKind::OceanBase,
                "OceanBase 4.2.1.0",
            ),
        ] {
            let product = Product::known(full, comment, cluster);
            assert_eq!((product.kind, product.version.as_str()), (kind, version));
        }
    }
}
