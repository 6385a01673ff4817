//! The join that always works: by hashing, partition by partition.

use std::sync::atomic::{AtomicU32, Ordering};

use isolario_model::History;
use rayon::prelude::*;

use super::ASIDE;
use super::join::{Found, Resolver};
use super::partition::{self, PARTITIONS, Share};
use super::record::Versions;

/// Joins the reads and writes of a whole history.
pub(super) fn join(history: &History) -> (Vec<u32>, Found) {
    // Each read is settled by one task; which one, the borrow checker cannot know. Relaxed stores
    // cost no more than plain ones.
    let sources: Vec<AtomicU32> =
        (0..history.op_count()).into_par_iter().map(|_| AtomicU32::new(ASIDE)).collect();
    let dealt = partition::deal(history, &sources);
    let join = |index: usize| {
        let shares: Vec<&Share> = dealt.iter().map(|dealt| &dealt.shares[index]).collect();
        join_partition(history, &shares, &sources)
    };
    let mut found: Vec<Found> = (0..PARTITIONS).into_par_iter().map(join).collect();
    found.extend(dealt.into_iter().map(|dealt| Found { own: dealt.suspects, ..Found::default() }));
    let sources = sources.into_iter().map(AtomicU32::into_inner).collect();
    (sources, Found::concat(&found))
}

fn join_partition(history: &History, shares: &[&Share], sources: &[AtomicU32]) -> Found {
    let writes = shares.iter().map(|share| share.writes.len()).sum();
    let mut versions = Versions::with_capacity(writes);
    shares.iter().flat_map(|share| &share.writes).for_each(|write| versions.insert(*write));
    let mut resolver = Resolver::new(history);
    for read in shares.iter().flat_map(|share| &share.reads) {
        let source = resolver.resolve(*read, versions.find(*read));
        sources[read.id as usize].store(source, Ordering::Relaxed);
    }
    resolver.found
}
