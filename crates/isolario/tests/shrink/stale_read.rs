use isolario::{Level, Recorder};

/// Stale read: violates strict-serializable.
#[test]
fn stale_read() {
    let recorder = Recorder::with_initial(0);
    let mut a = recorder.session();
    let mut b = recorder.session();
    let mut t1 = a.begin();
    t1.write("x", 1);
    t1.commit();
    let mut t2 = b.begin();
    t2.read("x", 0);
    t2.commit();
    // To test a store, record what it answers, and let `recorder.assert` fail instead.
    let checked = recorder.check(Level::StrictSerializable).unwrap();
    assert!(checked.is_violated(), "{checked}");
}
