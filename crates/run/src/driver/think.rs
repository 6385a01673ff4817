//! Pauses within transactions.

use std::time::{Duration, Instant};

use isolario_workload::Rng;

use super::control::Control;

/// The clients of one run need not pause as those of the next.
const SEED: u64 = 0x7417;

/// A client that takes its time between operations, so that transactions overlap which a fast store
/// would run one after the other.
///
/// Pauses are as long as the whole only now and then: with the same pauses everywhere, all
/// transactions would take equally long, and none would see thousands of others come and go.
pub(super) struct Think<'r> {
    /// The longest pause.
    longest: Duration,
    /// That of the transaction under way.
    limit: u64,
    rng: Rng,
    control: &'r Control,
}

impl<'r> Think<'r> {
    /// A session that thinks up to this long.
    pub(super) fn new(longest: Duration, session: u32, control: &'r Control) -> Think<'r> {
        Think { longest, limit: 0, rng: Rng::derive(SEED, &[u64::from(session)]), control }
    }

    /// Another transaction begins.
    pub(super) fn begin(&mut self) {
        if !self.longest.is_zero() {
            let share = self.rng.below(1 << 20) as f64 / f64::from(1 << 20);
            self.limit = self.longest.mul_f64(share.powi(4)).as_nanos() as u64;
        }
    }

    /// A pause of any length up to the limit; none once the run is stopped.
    pub(super) fn pause(&mut self) {
        if !self.longest.is_zero() {
            let pause = Duration::from_nanos(self.rng.below(self.limit + 1));
            self.control.sleep_until(Instant::now() + pause);
        }
    }
}
