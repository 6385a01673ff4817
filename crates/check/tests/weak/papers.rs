//! Figures of the papers, by name.

use isolario_model::{AnomalyKind, Level};

use crate::patterns::PATTERNS;
use crate::support::{names, weakest_violated};

/// AWDIT (PLDI 2025), Figure 1a and Section 1.1: t5 reads x in the order t1, t2, t3; t6 sees t4,
/// which comes after t3 in the session, and then reads x from t1.
#[test]
fn awdit_figure_1a_violates_read_committed() {
    let text = "initial none
        session a\n t1: w x 1
        session b\n t2: w x 2
        session c\n t3: w x 3\n t4: w x 4, w z 4
        session d\n t5: r x 1, r x 2, r x 3
        session e\n t6: r z 4, r x 1";
    assert_eq!(weakest_violated(text), ["read-committed", "cut-isolation"]);
    let found = names(text, Level::ReadCommitted);
    assert!(found.contains(&"NonMonoReadCM"), "{found:?}");
}

/// AWDIT, Figure 1b: t7 reads x from t4 although it depends on t6, which depends on t4.
#[test]
fn awdit_figure_1b_violates_causal_alone() {
    let text = "initial none
        session a\n t1: w y 1\n t2: w x 2
        session b\n t4: w x 4\n t5: w z 5
        session c\n t6: r z 5, w x 6\n t6b: w q 6
        session d\n t7: r q 6, r x 4";
    assert_eq!(weakest_violated(text), ["causal"]);
    assert_eq!(names(text, Level::Causal), ["COConflictCM"]);
}

/// AWDIT, Figure 2: the five axioms of read consistency.
#[test]
fn awdit_figure_2_read_consistency() {
    let cases = [
        ("session a\n t: r x 1", "ThinAirRead"),
        ("session a\n t1 aborted: w x 1\nsession b\n t2: r x 1", "AbortedRead"),
        ("session a\n t: r x 1, w x 1", "FutureRead"),
        ("session a\n t1: w x 1\nsession b\n t2: w x 2, r x 1", "NotMyOwnWrite"),
        ("session a\n t1: w x 1, w x 2, r x 1", "NotMyLastWrite"),
        ("session a\n t1: w x 1, w x 2\nsession b\n t2: r x 1", "IntermediateRead"),
    ];
    for (text, name) in cases {
        let text = format!("initial none\n{text}");
        assert_eq!(names(&text, Level::AdyaReadCommitted), [name]);
    }
}

/// AWDIT, Figure 4 and Examples 2.5 to 2.9.
#[test]
fn awdit_figure_4_separates_the_levels() {
    let a = "initial none\nsession a\n t1: w x 1\n t2: w x 2\nsession b\n t3: r x 2, r x 1";
    assert_eq!(weakest_violated(a), ["read-committed", "cut-isolation"]);
    let b = "initial none\nsession a\n t1: w x 1\n t2: w x 2, w y 2\nsession b\n t3: r x 1, r y 2";
    assert_eq!(weakest_violated(b), ["read-atomic"]);
    let c = "initial none\nsession a\n t1: w x 1\nsession b\n t2: r x 1, w x 2
             session c\n t3: r x 2, w y 3\nsession d\n t4: r y 3, r x 1";
    assert_eq!(weakest_violated(c), ["causal"]);
    let d = "initial none\nsession a\n t1: w x 1\nsession b\n t2: r x 1, w x 2
             session c\n t4: r x 1, w x 4";
    assert!(weakest_violated(d).is_empty());
}

/// AWDIT, Section 4.1 and Figure 5: the history of a graph violates every level between read
/// committed and causal exactly if the graph has a triangle.
#[test]
fn awdit_figure_5_a_triangle_violates_read_committed() {
    let triangle = [(1, 2), (2, 3), (1, 3)];
    assert_eq!(weakest_violated(&triangle_history(3, &triangle)), ["read-committed"]);
    let path = [(1, 2), (2, 3), (3, 4)];
    assert!(weakest_violated(&triangle_history(4, &path)).is_empty());
    let with_tail = [(1, 2), (2, 3), (1, 3), (3, 4)];
    assert_eq!(weakest_violated(&triangle_history(4, &with_tail)), ["read-committed"]);
}

/// AWDIT, Section 4.2 and Figure 6: without the keys of pairs, and with all that write in one
/// session and all that read in another, a triangle violates read atomic, and nothing weaker.
#[test]
fn awdit_figure_6_two_sessions_suffice_for_read_atomic() {
    let triangle = [(1, 2), (2, 3), (1, 3)];
    assert_eq!(weakest_violated(&two_session_history(3, &triangle)), ["read-atomic"]);
    let with_tail = [(1, 2), (2, 3), (1, 3), (3, 4)];
    assert_eq!(weakest_violated(&two_session_history(4, &with_tail)), ["read-atomic"]);
    let square = [(1, 2), (2, 3), (3, 4), (1, 4)];
    assert!(names(&two_session_history(4, &square), Level::ReadAtomic).is_empty());
}

/// Node a writes its own key and each neighbour's; it reads each neighbour's own key.
fn two_session_history(nodes: u32, edges: &[(u32, u32)]) -> String {
    let list = |a: u32, item: &dyn Fn(u32) -> String| {
        let items: Vec<String> = neighbours(nodes, edges, a).map(item).collect();
        items.join(", ")
    };
    let mut text = "initial none\nsession writes\n".to_owned();
    for a in 1..=nodes {
        text += &format!(" w{a}: {}, w x{a} {a}\n", list(a, &|b| format!("w x{b} {a}")));
    }
    text += "session reads\n";
    for a in 1..=nodes {
        text += &format!(" r{a}: {}\n", list(a, &|b| format!("r x{b} {b}")));
    }
    text
}

fn neighbours(nodes: u32, edges: &[(u32, u32)], a: u32) -> impl Iterator<Item = u32> {
    (1..=nodes).filter(move |b| edges.contains(&(a, *b)) || edges.contains(&(*b, a)))
}

/// Node a writes its own key and, for each neighbour b, a key for the pair and b's key; it reads
/// each neighbour's pair key and then the neighbour's own key, all in sessions of their own.
fn triangle_history(nodes: u32, edges: &[(u32, u32)]) -> String {
    let neighbours = |a: u32| neighbours(nodes, edges, a);
    let mut text = "initial none\n".to_owned();
    for a in 1..=nodes {
        let mut writes = vec![format!("w x{a} {a}")];
        for b in neighbours(a) {
            writes.push(format!("w x{a}_{b} {a}"));
            writes.push(format!("w x{b} {a}"));
        }
        text += &format!("session w{a}\n w{a}: {}\n", writes.join(", "));
    }
    for a in 1..=nodes {
        // First one key of each neighbour, then every neighbour's own key.
        let mut reads: Vec<String> = neighbours(a).map(|b| format!("r x{b}_{a} {b}")).collect();
        reads.extend(neighbours(a).map(|b| format!("r x{b} {b}")));
        if !reads.is_empty() {
            text += &format!("session r{a}\n r{a}: {}\n", reads.join(", "));
        }
    }
    text
}

/// Plume (OOPSLA 2024), Table 1 and Figure 3: the fourteen patterns, each in a history that has the
/// transactions, reads and writes that the table names, and is found under its letter.
#[test]
fn plume_figure_3_shows_fourteen_patterns() {
    let lettered = PATTERNS.iter().filter_map(|(name, text, levels)| {
        let kind = AnomalyKind::find(name).unwrap();
        Some((kind.names().plume?, *name, *text, levels[0]))
    });
    let mut letters = Vec::new();
    for (letter, name, text, level) in lettered {
        let found = names(&format!("initial none\n{text}"), Level::find(level).unwrap());
        assert!(found.contains(&name), "TAP-{letter}: {found:?}");
        letters.push(letter);
    }
    assert!(letters.into_iter().eq('a'..='n'));
}

/// Plume, Figure 4 and Example 1: fractured reads and a conflict in one history.
#[test]
fn plume_figure_4_has_two_patterns() {
    let text = "initial none
        session a\n t4: w x 4, w y 4
        session b\n t1: r x 4\n t2: w x 2, w y2 2\n t3: r y 4, r x 2, w z 3
        session c\n t5: r z 3, r y2 2, r x 4";
    let found = names(text, Level::Causal);
    assert!(found.contains(&"NonMonoReadCO") || found.contains(&"FracturedReadCO"), "{found:?}");
}
