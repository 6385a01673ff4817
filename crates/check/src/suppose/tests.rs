use std::collections::BTreeSet;

use isolario_model::{Reason, Witness};
use isolario_oracle::random::Rng;

use super::*;

const CANDIDATES: u32 = 3;

/// Points of three candidates each, and candidates that exclude each other.
#[derive(Clone)]
struct Puzzle {
    /// Per point, the transaction of unknown outcome that it is of.
    conditions: Vec<Option<TxnId>>,
    /// Per point and candidate, the writer of unknown outcome.
    writers: Vec<[Option<TxnId>; CANDIDATES as usize]>,
    excluded: Vec<Vec<(u32, u32)>>,
}

impl Puzzle {
    fn random(rng: &mut Rng) -> Puzzle {
        let points = rng.between(1, 4);
        let share = [0, 30, 60][rng.below(3)];
        let unknown = |rng: &mut Rng| rng.percent(share).then(|| TxnId(rng.below(3) as u32));
        let candidate = |rng: &mut Rng| (rng.below(points) as u32, rng.below(3) as u32);
        let excluded = (0..rng.below(30)).map(|_| {
            let mut together: Vec<_> = (0..rng.between(1, 3)).map(|_| candidate(rng)).collect();
            together.sort_unstable();
            together.dedup();
            together
        });
        let excluded = excluded.collect();
        Puzzle {
            conditions: (0..points).map(|_| unknown(rng)).collect(),
            writers: (0..points).map(|_| [(); 3].map(|()| unknown(rng))).collect(),
            excluded,
        }
    }

    /// The candidates of the points that count.
    fn counting(&self, candidates: &[u32]) -> Vec<(u32, u32)> {
        let mut committed = BTreeSet::new();
        loop {
            let counts =
                |point: &usize| self.conditions[*point].is_none_or(|txn| committed.contains(&txn));
            let points: Vec<usize> = (0..candidates.len()).filter(counts).collect();
            let seen = points.iter().filter_map(|at| self.writers[*at][candidates[*at] as usize]);
            let seen: BTreeSet<TxnId> = seen.collect();
            if seen.is_subset(&committed) {
                return points.into_iter().map(|at| (at as u32, candidates[at])).collect();
            }
            committed.extend(seen);
        }
    }

    fn is_excluded(&self, counting: &[(u32, u32)], number: usize) -> bool {
        self.excluded[number].iter().all(|together| counting.contains(together))
    }

    /// Whether some candidates are excluded by none of these.
    fn is_open(&self, excluded: &[usize]) -> bool {
        let points = self.conditions.len() as u32;
        (0..CANDIDATES.pow(points)).any(|number| {
            let candidate = |point| number / CANDIDATES.pow(point) % CANDIDATES;
            let counting = self.counting(&(0..points).map(candidate).collect::<Vec<_>>());
            !excluded.iter().any(|number| self.is_excluded(&counting, *number))
        })
    }
}

impl Question for Puzzle {
    type Point = u32;

    fn decide(&mut self, supposed: &Supposed<u32>) -> Round<u32> {
        let points = self.conditions.len() as u32;
        let candidate = |point| supposed.get(&point).copied().unwrap_or(1);
        let counting = self.counting(&(0..points).map(candidate).collect::<Vec<_>>());
        let excluded = (0..self.excluded.len()).filter(|at| self.is_excluded(&counting, *at));
        let cycle = |number: usize| {
            let txn = TxnId(number as u32);
            vec![Edge { from: txn, to: txn, reason: Reason::Session }]
        };
        let excluded: Vec<_> = excluded
            .map(|at| Excluded { rests_on: self.excluded[at].clone(), cycle: cycle(at) })
            .collect();
        if excluded.is_empty() {
            return ControlFlow::Break(Conclusion::Holds(Witness::CommitOrder(Vec::new())));
        }
        // One after the other, as a search finds them.
        ControlFlow::Continue(excluded.into_iter().take(1).collect())
    }

    fn by_preference(&self, _point: u32) -> Vec<u32> {
        vec![1, 0, 2]
    }

    fn condition(&self, point: u32) -> Option<TxnId> {
        self.conditions[point as usize]
    }

    fn writer(&self, point: u32, candidate: u32) -> Option<TxnId> {
        self.writers[point as usize][candidate as usize]
    }

    fn points_of(&self, writer: TxnId) -> Vec<u32> {
        let may = |point: &u32| self.writers[*point as usize].contains(&Some(writer));
        (0..self.conditions.len() as u32).filter(may).collect()
    }
}

#[test]
fn the_loop_agrees_with_brute_force_and_every_case_is_needed() {
    let mut counts = [0, 0];
    for seed in 0..3_000 {
        let puzzle = Puzzle::random(&mut Rng::new(seed));
        let all: Vec<usize> = (0..puzzle.excluded.len()).collect();
        let conclusion = decide(puzzle.clone(), &CheckOptions::default(), Instant::now());
        assert_eq!(conclusion.holds(), puzzle.is_open(&all), "{seed}");
        counts[usize::from(conclusion.holds())] += 1;
        let Conclusion::Refuted(findings) = conclusion else { continue };
        let Evidence::Cases { cycles } = &findings.anomalies[0].evidence else {
            panic!("{seed}: not by cases");
        };
        let few: Vec<usize> = cycles.iter().map(|cycle| cycle[0].from.index()).collect();
        assert!(!puzzle.is_open(&few), "{seed}");
        if puzzle.conditions.iter().any(Option::is_some) {
            // Whether a transaction committed may follow from other points than those that the contradiction took.
            continue;
        }
        for at in 0..few.len() {
            let fewer = [&few[..at], &few[at + 1..]].concat();
            assert!(puzzle.is_open(&fewer), "{seed}: {few:?}");
        }
    }
    assert!(counts.iter().all(|count| *count > 300), "{counts:?}");
}

#[test]
fn what_is_not_excluded_is_the_preferred_candidate() {
    let mut puzzle = Puzzle {
        conditions: vec![None; 3],
        writers: vec![[None; 3]; 3],
        excluded: vec![vec![(0, 1), (1, 1)]],
    };
    let ControlFlow::Continue(excluded) = puzzle.decide(&Supposed::new()) else {
        panic!("the first candidates exclude each other");
    };
    let mut suppositions = Suppositions::new(puzzle);
    excluded.into_iter().for_each(|excluded| suppositions.exclude(excluded));
    assert_eq!(suppositions.reconsider(&|| false), Ok(()));
    // The third point is no choice.
    assert_eq!(suppositions.supposed, Supposed::from([(0, 1), (1, 0)]));
}

#[test]
fn a_point_of_a_transaction_that_did_not_commit_has_no_candidate() {
    let unknown = Some(TxnId(7));
    let puzzle = Puzzle {
        conditions: vec![None, unknown],
        writers: vec![[None, unknown, None], [None; 3]],
        excluded: vec![vec![(1, 0)], vec![(1, 1)], vec![(1, 2)]],
    };
    let mut suppositions = Suppositions::new(puzzle.clone());
    for rests_on in puzzle.excluded {
        suppositions.exclude(Excluded { rests_on, cycle: Vec::new() });
        assert_eq!(suppositions.reconsider(&|| false), Ok(()));
    }
    // Whatever the second point has is excluded, so its transaction did not commit, and the first one has not
    // returned what it wrote.
    assert_eq!(suppositions.supposed.get(&0), Some(&0));
}
