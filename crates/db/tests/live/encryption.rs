//! Encrypted connections, and whom they trust.

use isolario_db::{ErrorClass, Obstacle};
use isolario_servers::Kind;

use super::contract;
use super::site::{SLOW, patient, refused, start};

#[test]
fn every_server_can_be_talked_to_in_secret() {
    for kind in [Kind::Postgres, Kind::MariaDb, Kind::Galera, Kind::Etcd, Kind::Redis] {
        let servers = start(kind);
        let (plain, secret) = (servers.port().to_string(), servers.encrypted_port().to_string());
        let url = servers.url().replace(&plain, &secret);
        let with = |parameters: &str| patient(&format!("{url}?{parameters}"), "", SLOW);

        contract::operations(&*with("sslmode=require"));
        let trusted =
            format!("sslmode=verify-full&sslrootcert={}", servers.certificate().display());
        contract::operations(&*with(&trusted));

        // No public authority has signed that one.
        let error = refused(&*with("sslmode=verify-full"));
        let distrust = (ErrorClass::Fatal, Some(Obstacle::Certificate));
        assert_eq!((error.class, error.obstacle), distrust, "{kind}: {error}");
        // An encrypted port may be no other than the plain one.
        if plain == secret {
            contract::operations(&*with("sslmode=disable"));
        }
    }
}
