use isolario::{Level, Recorder};

/// Long fork: violates prefix.
#[test]
fn long_fork() {
    let recorder = Recorder::with_initial(0);
    let mut a = recorder.session();
    let mut b = recorder.session();
    let mut c = recorder.session();
    let mut d = recorder.session();
    let mut t1 = a.begin();
    t1.write("x", 1);
    let mut t2 = b.begin();
    t2.write("y", 2);
    let mut t3 = c.begin();
    t3.read("x", 1);
    t3.read("y", 0);
    let mut t4 = d.begin();
    t4.read("y", 2);
    t4.read("x", 0);
    t1.commit();
    t2.commit();
    t3.commit();
    t4.commit();
    // To test a store, record what it answers, and let `recorder.assert` fail instead.
    let checked = recorder.check(Level::Prefix).unwrap();
    assert!(checked.is_violated(), "{checked}");
}
