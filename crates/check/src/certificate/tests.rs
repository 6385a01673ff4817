//! The nearest changers against all of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isolario_model::{Attempt, ItemView, KeyId, Level, Outcome, Verdict};
use isolario_oracle::random::certificates::certificate_case;

use super::dependencies::PredicateEdge;
use super::levels::Open;
use super::{Certificate, Objects};
use crate::rows::OwnWrites;
use crate::{CheckOptions, Checker};

/// Algorithm 3: an edge for each version that changes what an operation matches.
fn of_all_changers(certificate: &Certificate<'_>) -> Vec<PredicateEdge> {
    let chains = &certificate.chains;
    let mut edges = Vec::new();
    for stated in &certificate.stated {
        let own = OwnWrites::before(certificate.history, stated.txn, stated.op);
        for key in certificate.matches.rows(stated.predicate) {
            if own.of(*key).is_some() {
                continue;
            }
            let (member, versions) = (certificate.observed(stated, *key), chains.of(*key));
            for version in versions.start + 1..versions.end {
                let writer = chains.writer(version);
                let matches = &certificate.matches;
                let changes = matches.is_changed_by(chains, stated.predicate, version).unwrap();
                if changes && writer != stated.txn {
                    let is_anti = version > member;
                    let (from, to) =
                        if is_anti { (stated.txn, writer) } else { (writer, stated.txn) };
                    let returned = None;
                    edges.push(PredicateEdge {
                        from,
                        to,
                        op: stated.op,
                        version,
                        returned,
                        is_anti,
                    });
                }
            }
        }
    }
    edges
}

/// Whether overwrites lead from one version of an object to another one, or they are the same.
fn leads_to(certificate: &Certificate<'_>, first: u32, second: u32, objects: Objects) -> bool {
    let chains = &certificate.chains;
    first <= second
        && chains.written(first).key == chains.written(second).key
        && certificate.is_one_object(first, second, objects)
}

#[test]
fn overwrites_lead_from_the_nearest_changers_to_all_others() {
    let (mut all_edges, mut few_edges) = (0, 0);
    for seed in 0..3_000 {
        let case = certificate_case(seed).unwrap();
        let options = CheckOptions::default()
            .with_version_order(case.orders)
            .with_version_sets(case.sets)
            .with_trusted_version_order(true);
        let Ok(certificate) = Certificate::new(&case.history, &options) else { continue };
        let all = of_all_changers(&certificate);
        let places: Vec<u32> = (0..case.history.txn_count() as u32).collect();
        for level in [Level::Serializable, Level::ParallelSnapshotIsolation] {
            let objects = Objects::at(level);
            let question = certificate.question(level, Open::None);
            let positions = certificate.positions(question, &places);
            let everything = |_| Some((0, u32::MAX));
            let found = certificate.nearest(&positions, question, everything).unwrap();
            let is_by_predicate = |edge: &PredicateEdge| edge.returned.is_none();
            let few: Vec<_> = found.into_iter().filter(is_by_predicate).collect();
            assert!(few.iter().all(|edge| all.contains(edge)), "seed {seed}");
            all_edges += all.len();
            few_edges += few.len();
            for edge in &all {
                // By way of a nearest changer, or of what the reader itself wrote.
                let reader = if edge.is_anti { edge.from } else { edge.to };
                let key = certificate.chains.written(edge.version).key;
                let own = certificate.chains.version(key, reader);
                let of_same = few.iter().filter(|few| {
                    (few.op, few.is_anti) == (edge.op, edge.is_anti)
                        && certificate.chains.written(few.version).key == key
                });
                let mut ways = of_same.map(|few| few.version).chain(own);
                let is_there = ways.any(|way| match edge.is_anti {
                    true => leads_to(&certificate, way, edge.version, objects),
                    false => leads_to(&certificate, edge.version, way, objects),
                });
                assert!(is_there, "seed {seed}: {edge:?} of {few:?}");
            }
        }
    }
    assert!(few_edges < all_edges && all_edges > 1_000, "{few_edges} of {all_edges}");
}

/// Histories of single rows with a known order of versions are decided by the engine that has always
/// decided those. Where no row comes back after a delete, and the certificate settles no outcome, it says
/// what a certificate says.
#[test]
fn single_rows_are_decided_as_any_known_order_of_versions() {
    let levels: Vec<Level> = Level::decided().filter(|level| super::decides(*level)).collect();
    let mut compared = 0;
    for seed in 0..2_000 {
        let case = certificate_case(seed).unwrap();
        let view = ItemView::new(&case.history).unwrap();
        let history = view.history();
        let is_unknown = |txn| history.outcome(txn) == Outcome::Unknown;
        if history.txns().any(is_unknown) {
            continue;
        }
        let options = CheckOptions::default()
            .with_version_order(case.orders)
            .with_trusted_version_order(true);
        let Ok(certificate) = Certificate::new(history, &options) else { continue };
        let keys = (0..history.key_count()).map(KeyId::at);
        if { keys }.any(|key| certificate.chains.has_incarnations(key)) {
            continue;
        }
        let checker = Checker::new(history, options);
        for level in &levels {
            let one = certificate.check(*level).result(*level, Attempt::Certificate).verdict;
            let other = checker.check(*level).verdict;
            let is_open = |verdict: &Verdict| !verdict.is_satisfied() && !verdict.is_violated();
            if !is_open(&one) && !is_open(&other) {
                assert_eq!(one.kind(), other.kind(), "seed {seed}, {level}: {one:?} {other:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}
