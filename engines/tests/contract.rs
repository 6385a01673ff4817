//! What every store has to do, whatever it promises. Whether it keeps its promise is measured, not
//! tested: see `scripts/atlas`.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use isolario::db::{Access, Connection, Database, DbUrl, Driver, Layout, Settings};
use isolario::run::{self, Handle, Judgement};
use isolario::workload::Kind;
use isolario_engines::DRIVERS;

/// Every store at every setting.
fn each(mut test: impl FnMut(&Driver, &str)) {
    for driver in DRIVERS {
        for isolation in driver.isolations {
            test(driver, isolation);
        }
    }
}

fn open(driver: &Driver, isolation: &str) -> Box<dyn Database> {
    let url = DbUrl::parse(&format!("{}:", driver.schemes[0])).unwrap();
    let settings = Settings { isolation: Some(isolation.to_owned()), ..Settings::default() };
    let database = (driver.open)(&url, &settings).unwrap();
    database.prepare(&Layout::new(Kind::Mini, 10).with_value_size(100)).unwrap();
    database
}

fn committed(client: &mut dyn Connection, key: u64) -> Option<i64> {
    client.begin(Access::Read).unwrap();
    let held = client.read(key).unwrap();
    client.commit().unwrap();
    held
}

#[test]
fn what_is_committed_is_there_and_what_is_given_up_is_not() {
    each(|driver, isolation| {
        let database = open(driver, isolation);
        let mut client = database.connect().unwrap();
        let client = client.as_mut();
        assert_eq!(committed(client, 1), None, "{}", database.name());
        client.begin(Access::Write).unwrap();
        client.write(1, 5).unwrap();
        assert_eq!(client.read(1), Ok(Some(5)), "its own write");
        client.commit().unwrap();
        client.begin(Access::Write).unwrap();
        client.write(1, 6).unwrap();
        client.rollback().unwrap();
        assert_eq!(committed(client, 1), Some(5), "{}", database.name());
        client.begin(Access::Write).unwrap();
        client.delete(1).unwrap();
        client.commit().unwrap();
        assert_eq!(committed(client, 1), None, "{}", database.name());
    });
}

#[test]
fn every_store_says_what_it_is_and_claims_something() {
    isolario::db::register(DRIVERS);
    each(|driver, isolation| {
        let database = open(driver, isolation);
        let version = database.version().unwrap();
        assert!(version.ends_with(|last: char| last.is_ascii_digit()), "{version}");
        assert!(!database.claim(Kind::Mini, 1).levels.is_empty(), "{version} {isolation}");
    });
}

/// A single session meets nobody, so whatever a store promises, it keeps.
#[test]
fn alone_a_session_sees_what_it_wrote() {
    isolario::db::register(DRIVERS);
    let directory = tempfile::tempdir().unwrap();
    each(|driver, isolation| {
        let scheme = driver.schemes[0];
        for kind in Kind::KEYED {
            let out = directory.path().join(format!("{scheme}-{isolation}-{kind}"));
            let settings = run::Settings::new(kind)
                .with_url(&format!("{scheme}:"))
                .unwrap()
                .with_isolation(isolation)
                .with_sessions(1)
                .with_txns(100)
                .with_out(out);
            let outcome = run::run(&settings, &Handle::new(), &mut ()).unwrap();
            assert_ne!(outcome.judgement(), Judgement::Violated, "{scheme} {isolation} {kind}");
            assert_eq!(outcome.record.counts.committed, 100, "{scheme} {isolation} {kind}");
        }
    });
}
