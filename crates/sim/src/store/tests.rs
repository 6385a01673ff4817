use super::*;

fn store(level: Level, sessions: u32) -> (Store, Rng) {
    (Store::new(level, sessions), Rng::new(1))
}

fn begin(store: &mut Store, session: u32, rng: &mut Rng) -> Txn {
    let mut txn = Txn::default();
    store.begin(&mut txn, session, Intent::Update, rng);
    txn
}

/// Commits a write of one key.
fn put(store: &mut Store, session: u32, key: u64, value: i64, rng: &mut Rng) {
    let mut txn = begin(store, session, rng);
    store.write(&mut txn, key, value);
    assert!(store.commit(&mut txn).is_ok());
}

#[test]
fn snapshots_do_not_change_while_others_commit() {
    let (mut store, mut rng) = store(Level::SnapshotIsolation, 2);
    put(&mut store, 0, 7, 1, &mut rng);
    let mut reader = begin(&mut store, 1, &mut rng);
    put(&mut store, 0, 7, 2, &mut rng);
    assert_eq!(store.read(&mut reader, 7, &mut rng), Some(1));
    assert_eq!(store.read(&mut reader, 8, &mut rng), None);
}

#[test]
fn the_first_committer_wins_under_snapshot_isolation_only() {
    for (level, wins) in [(Level::Prefix, true), (Level::SnapshotIsolation, false)] {
        let (mut store, mut rng) = store(level, 2);
        let mut late = begin(&mut store, 1, &mut rng);
        store.write(&mut late, 7, 2);
        put(&mut store, 0, 7, 1, &mut rng);
        assert_eq!(store.commit(&mut late).is_ok(), wins, "{level}");
    }
}

#[test]
fn write_skew_is_refused_under_serializability_only() {
    for (level, allowed) in [(Level::SnapshotIsolation, true), (Level::Serializable, false)] {
        let (mut store, mut rng) = store(level, 2);
        let mut late = begin(&mut store, 1, &mut rng);
        store.read(&mut late, 7, &mut rng);
        store.write(&mut late, 8, 2);
        put(&mut store, 0, 7, 1, &mut rng);
        assert_eq!(store.commit(&mut late).is_ok(), allowed, "{level}");
    }
}

#[test]
fn a_restarted_transaction_commits() {
    let (mut store, mut rng) = store(Level::StrictSerializable, 2);
    let mut late = begin(&mut store, 1, &mut rng);
    assert_eq!(store.read(&mut late, 7, &mut rng), None);
    store.write(&mut late, 7, 2);
    put(&mut store, 0, 7, 1, &mut rng);
    assert_eq!(store.commit(&mut late), Err(Conflict));
    store.restart(&mut late);
    assert_eq!(store.read(&mut late, 7, &mut rng), Some(1));
    store.write(&mut late, 7, 2);
    assert!(store.commit(&mut late).is_ok());
}

#[test]
fn a_session_sees_its_own_writes_from_read_atomic_up() {
    for level in Level::all().filter(|level| level.implies(Level::ReadAtomic)) {
        let (mut store, mut rng) = store(level, 3);
        for value in 1..100 {
            put(&mut store, 1, 7, value, &mut rng);
            let mut reader = Txn::default();
            store.begin(&mut reader, 1, Intent::Read, &mut rng);
            assert_eq!(store.read(&mut reader, 7, &mut rng), Some(value), "{level}");
        }
    }
}

#[test]
fn a_list_read_with_own_appends_is_only_right_if_they_follow_it() {
    for level in Level::all() {
        let (mut store, mut rng) = store(level, 2);
        let mut late = begin(&mut store, 1, &mut rng);
        store.append(&mut late, 7, 2);
        assert_eq!(store.read_list(&mut late, 7, &mut rng), 0);
        let mut first = begin(&mut store, 0, &mut rng);
        store.append(&mut first, 7, 1);
        assert!(store.commit(&mut first).is_ok());
        assert_eq!(store.commit(&mut late), Err(Conflict), "{level}");
    }
}

#[test]
fn old_versions_go_when_nobody_can_read_them() {
    for level in Level::all() {
        let (mut store, mut rng) = store(level, 6);
        for round in 0..20_000 {
            put(&mut store, round % 6, u64::from(round) % 3, round.into(), &mut rng);
        }
        assert!(store.chains.kept() < 1500, "{level}: {}", store.chains.kept());
    }
}

#[test]
fn forgotten_keys_take_no_room() {
    let (mut store, mut rng) = store(Level::Serializable, 1);
    for key in 0..100 {
        put(&mut store, 0, key, 1, &mut rng);
        store.forget_below(key);
    }
    assert_eq!(store.chains.kept(), 1);
    assert_eq!(store.chains.latest(99).map(|version| version.value), Some(1));
}

#[test]
fn levels_with_rules_of_their_own() {
    let own: Vec<_> = Level::all().filter(|level| Store::has_rules_for(*level)).collect();
    assert_eq!(
        own,
        [
            Level::ReadCommitted,
            Level::ReadAtomic,
            Level::Causal,
            Level::Prefix,
            Level::SnapshotIsolation,
            Level::StrongSnapshotIsolation,
            Level::Serializable,
            Level::StrictSerializable,
            Level::Linearizable,
        ]
    );
}
