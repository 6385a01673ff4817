//! Which of the products that speak the protocol this is.

use mysql::Conn;
use mysql::prelude::Queryable;

use super::errors::classify;
use crate::error::DbError;
use crate::remote::Stage;

pub(super) struct Product {
    /// Its name in the table of claims.
    pub(super) name: &'static str,
    /// Name and version for people.
    pub(super) version: String,
}

impl Product {
    pub(super) fn ask(conn: &mut Conn) -> Result<Product, DbError> {
        let failed = |error| classify(error, Stage::Connect);
        let full: Option<String> = conn.query_first("SELECT VERSION()").map_err(failed)?;
        let full = full.unwrap_or_default();
        let cluster: Option<(String, String)> =
            conn.query_first("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'").map_err(failed)?;
        Ok(Product::known(&full, cluster.is_some_and(|(_, on)| on == "ON")))
    }

    /// By what the server calls its version: `10.11.6-MariaDB-0+deb12u1-log`, `8.0.36`,
    /// `8.0.11-TiDB-v7.5.0`.
    fn known(full: &str, cluster: bool) -> Product {
        let (name, words) = match full {
            _ if cluster => ("galera", "MariaDB Galera"),
            _ if full.contains("MariaDB") => ("mariadb", "MariaDB"),
            _ if full.contains("TiDB") => ("tidb", "TiDB"),
            _ => ("mysql", "MySQL"),
        };
        let number = match full.split_once("TiDB-v") {
            Some((_, number)) => number,
            None => full.split('-').next().unwrap_or_default(),
        };
        Product { name, version: format!("{words} {number}") }
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
        for (full, cluster, name, version) in [
            ("10.11.6-MariaDB-0+deb12u1-log", false, "mariadb", "MariaDB 10.11.6"),
            ("10.11.6-MariaDB-0+deb12u1-log", true, "galera", "MariaDB Galera 10.11.6"),
            ("8.0.36", false, "mysql", "MySQL 8.0.36"),
            ("8.0.11-TiDB-v7.5.0", false, "tidb", "TiDB 7.5.0"),
        ] {
            let product = Product::known(full, cluster);
            assert_eq!((product.name, product.version.as_str()), (name, version));
        }
    }
}
