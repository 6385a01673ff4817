//! The figures of the MTC paper.

use isolario_model::Level;

use crate::support::names;

/// An anomaly of Figure 5: its letter, a history of mini-transactions that shows it and else
/// nothing, which of the levels it violates, and what the strong ones call it.
struct Anomaly {
    letter: char,
    history: &'static str,
    violated: [bool; 6],
    name: &'static str,
}

const LEVELS: [Level; 6] = [
    Level::ReadCommitted,
    Level::ReadAtomic,
    Level::Causal,
    Level::SnapshotIsolation,
    Level::Serializable,
    Level::StrictSerializable,
];

const FROM_RC: [bool; 6] = [true, true, true, true, true, true];
const FROM_RA: [bool; 6] = [false, true, true, true, true, true];
const FROM_CC: [bool; 6] = [false, false, true, true, true, true];
const FROM_SI: [bool; 6] = [false, false, false, true, true, true];
const FROM_SER: [bool; 6] = [false, false, false, false, true, true];

/// Everybody runs at the same time, so that real time orders nothing.
const FIGURE_5: [Anomaly; 14] = [
    Anomaly {
        letter: 'a',
        history: "session a\n T1 [0, 9]: r x 7",
        violated: FROM_RC,
        name: "ThinAirRead",
    },
    Anomaly {
        letter: 'b',
        history: "session a\n T1 [0, 9] aborted: r x 0, w x 1\nsession b\n T2 [0, 9]: r x 1",
        violated: FROM_RC,
        name: "AbortedRead",
    },
    Anomaly {
        letter: 'c',
        history: "session a\n T1 [0, 9]: r x 1, w x 1",
        violated: FROM_RC,
        name: "FutureRead",
    },
    Anomaly {
        letter: 'd',
        history: "session a\n T1 [0, 9]: r x 0, w x 1, w x 2, r x 1",
        violated: FROM_RC,
        name: "NotMyLastWrite",
    },
    Anomaly {
        letter: 'e',
        history: "session a\n T1 [0, 9]: r x 0, w x 1, r x 0",
        violated: FROM_RC,
        name: "NotMyOwnWrite",
    },
    Anomaly {
        letter: 'f',
        history: "session a\n T1 [0, 9]: r x 0, w x 1, w x 2\nsession b\n T2 [0, 9]: r x 1",
        violated: FROM_RC,
        name: "IntermediateRead",
    },
    Anomaly {
        letter: 'g',
        history: "session a\n T1 [0, 9]: r x 0, w x 1\nsession b\n T2 [0, 9]: r x 0, r x 1",
        violated: FROM_RA,
        name: "NonRepeatableRead",
    },
    Anomaly {
        letter: 'h',
        history: "session a\n T1 [0, 9]: r x 0, w x 1\n\
                  session b\n T2 [0, 9]: r x 1, w x 2\n T3 [0, 9]: r x 1",
        violated: FROM_RA,
        name: "SessionGuaranteeViolation",
    },
    Anomaly {
        letter: 'i',
        history: "session a\n T1 [0, 9]: r x 0, w x 1\n\
                  session b\n T2 [0, 9]: r x 1, r y 0, w x 2, w y 2\n\
                  session c\n T3 [0, 9]: r y 2, r x 1",
        violated: FROM_RC,
        name: "NonMonoReadCO",
    },
    Anomaly {
        letter: 'j',
        history: "session a\n T1 [0, 9]: r x 0, r y 0, w x 1, w y 1\n\
                  session b\n T2 [0, 9]: r y 0, r x 1",
        violated: FROM_RA,
        name: "FracturedReadCO",
    },
    Anomaly {
        letter: 'k',
        history: "session a\n T1 [0, 9]: r x 0, w x 1\n\
                  session b\n T2 [0, 9]: r x 1, r y 0, w y 2\n\
                  session c\n T3 [0, 9]: r y 2, r x 0",
        violated: FROM_CC,
        name: "COConflictCM",
    },
    Anomaly {
        letter: 'l',
        history: "session a\n T1 [0, 9]: r x 0, w x 1\nsession b\n T2 [0, 9]: r y 0, w y 1\n\
                  session c\n T3 [0, 9]: r x 1, r y 0\nsession d\n T4 [0, 9]: r y 1, r x 0",
        violated: FROM_SI,
        name: "LongFork",
    },
    Anomaly {
        letter: 'm',
        history: "session a\n T1 [0, 9]: r x 0, w x 1\nsession b\n T2 [0, 9]: r x 0, w x 2",
        violated: FROM_SI,
        name: "LostUpdate",
    },
    Anomaly {
        letter: 'n',
        history: "session a\n T1 [0, 9]: r x 0, r y 0, w x 1\n\
                  session b\n T2 [0, 9]: r x 0, r y 0, w y 1",
        violated: FROM_SER,
        name: "WriteSkew",
    },
];

#[test]
fn figure_5_each_anomaly_violates_its_levels_under_its_name() {
    for Anomaly { letter, history, violated, name } in &FIGURE_5 {
        let text = format!("initial 0\n{history}");
        let found = LEVELS.map(|level| !names(&text, level).is_empty());
        assert_eq!(&found, violated, "({letter})");
        for level in &LEVELS[3..] {
            let expected: &[&str] = if names(&text, *level).is_empty() { &[] } else { &[name] };
            assert_eq!(names(&text, *level), expected, "({letter}) at {level}");
        }
    }
}

#[test]
fn figure_3_divergence_refutes_snapshot_isolation_and_not_prefix() {
    let text = "initial 0\nsession a\n T1: r x 0, w x 1\nsession b\n T2: r x 1, w x 2\n\
                session c\n T3: r x 1, w x 3";
    assert_eq!(names(text, Level::Prefix), [""; 0]);
    assert_eq!(names(text, Level::SnapshotIsolation), ["LostUpdate"]);
    assert_eq!(names(text, Level::Serializable), ["LostUpdate"]);
}

#[test]
fn several_divergences_are_all_reported() {
    let text = "initial 0\nsession a\n T1: r x 0, w x 1\nsession b\n T2: r x 0, w x 2\n\
                session c\n T3: r x 0, w x 3\nsession d\n T4: r y 0, w y 1\n\
                session e\n T5: r y 0, w y 2";
    // One per version, however many overwrote it.
    assert_eq!(names(text, Level::SnapshotIsolation), ["LostUpdate"; 2]);
}

#[test]
fn a_lost_update_is_reported_beside_reads_that_disagree() {
    let text = "initial 0\nsession a\n T1: r x 0, w x 1\nsession b\n T2: r x 0, w x 2\n\
                session c\n T3: r y 0, w y 1\nsession d\n T4: r y 0, r y 1";
    assert_eq!(names(text, Level::SnapshotIsolation), ["NonRepeatableRead", "LostUpdate"]);
    assert_eq!(names(text, Level::Prefix), ["NonRepeatableRead"]);
}
