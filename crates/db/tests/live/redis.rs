//! Redis.

use isolario_db::{Access, Obstacle};
use isolario_servers::Kind;
use isolario_workload::Kind as Workload;

use super::contract;
use super::site::{connect, database, prepare, refused, start};

#[test]
fn redis_keeps_the_contract() {
    let servers = start(Kind::Redis);
    let watched = database(servers.url(), "watch");
    assert!(watched.version().unwrap().starts_with("Redis "));
    contract::operations(&*watched);
    let refusal = contract::lost_update_is_refused(&*watched);
    assert_eq!(refusal.code.as_deref(), Some("WATCH"));
    contract::refusals(&servers);
    let numbered = refused(&*database(&format!("{}/99", servers.url()), ""));
    assert_eq!(numbered.obstacle, Some(Obstacle::NoDatabase), "{numbered}");
    contract::cut(&servers);
    contract::silence(&servers, servers.url());
}

#[test]
fn plain_commands_of_redis_are_no_transactions() {
    let servers = start(Kind::Redis);
    let database = database(servers.url(), "plain");
    prepare(&*database, Workload::Mini, 10);
    let mut pair = [connect(&*database), connect(&*database)];
    for one in &mut pair {
        one.begin(Access::Write).unwrap();
        assert_eq!(one.read(1), Ok(None));
    }
    for (one, value) in pair.iter_mut().zip([5, 6]) {
        one.write(1, value).unwrap();
        one.commit().unwrap();
    }
    pair[0].begin(Access::Read).unwrap();
    assert_eq!(pair[0].read(1), Ok(Some(6)), "the first update is lost");
}
