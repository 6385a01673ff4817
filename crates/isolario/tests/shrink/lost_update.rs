use isolario::{Level, Recorder};

/// Lost update: violates snapshot-isolation.
#[test]
fn lost_update() {
    let recorder = Recorder::with_initial(0);
    let mut a = recorder.session();
    let mut b = recorder.session();
    let mut t1 = a.begin();
    t1.read("x", 0);
    t1.write("x", 1);
    let mut t2 = b.begin();
    t2.read("x", 0);
    t2.write("x", 2);
    t1.commit();
    t2.commit();
    // To test a store, record what it answers, and let `recorder.assert` fail instead.
    let checked = recorder.check(Level::SnapshotIsolation).unwrap();
    assert!(checked.is_violated(), "{checked}");
}
