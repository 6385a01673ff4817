use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::{thread::sleep, time::Duration};

use isolario::{Level, Recorder};

fn main() {
    let store = AtomicI64::new(0); // put your own store here
    let recorder = Recorder::with_initial(0);
    std::thread::scope(|scope| {
        for client in 1..=4 {
            let (store, mut session) = (&store, recorder.session());
            scope.spawn(move || {
                for n in 0..100 {
                    let mut txn = session.begin(); // before the first statement
                    let value = client * 1000 + n; // never the same one twice
                    sleep(Duration::from_millis(1)); // a fast store needs pauses: transactions must overlap
                    let before = store.swap(value, SeqCst);
                    txn.read("x", before).write("x", value);
                    txn.commit(); // after the store has answered
                }
            });
        }
    });
    recorder.assert(Level::StrictSerializable);
}
