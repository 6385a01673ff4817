//! The history that is loaded: a serial execution, the same in every run.

use isolario_model::{
    Initial, Meta, Op, Outcome, SinkError, TxnEnd, TxnSink, TxnStart, Value, ValueRef,
};

pub const SESSIONS: u64 = 50;
pub const KEYS: u64 = 10_000;
pub const OPS_PER_TXN: u64 = 8;

/// splitmix64: small, seeded, and good enough to scatter keys.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % limit
    }
}

/// Tells a sink of transactions that ran one after the other in random sessions: half reads of
/// what is there, half writes of values never used before.
pub fn synthesise(txns: u64, sink: &mut dyn TxnSink) -> Result<(), SinkError> {
    let mut random = Random(1);
    let mut store = vec![0u64; KEYS as usize];
    let mut last_value = 0u64;
    sink.meta(&Meta { initial: Initial::UnlessWritten(Value::Int(0)), ..Meta::default() })?;
    for txn in 0..txns {
        let session = ValueRef::from(random.below(SESSIONS));
        sink.begin(&TxnStart { session, id: Some(txn.into()), line: None })?;
        for _ in 0..OPS_PER_TXN {
            let key = random.below(KEYS);
            let held = &mut store[key as usize];
            if random.below(2) == 0 {
                sink.op(&Op::Read { key: key.into(), value: Some((*held).into()) })?;
            } else {
                last_value += 1;
                *held = last_value;
                sink.op(&Op::Write { key: key.into(), value: last_value.into() })?;
            }
        }
        sink.end(&TxnEnd::new(Outcome::Committed))?;
    }
    Ok(())
}
