//! Plans and windows say what the checkers say of the whole history, and show it by parts of it.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::{Path, PathBuf};

use isolario_check::{CheckOptions, Checker};
use isolario_cluster::{Answer, Conclusion, Error, Finding, Reason, Settings, check, write_table};
use isolario_model::{Batch, History, Level};
use isolario_oracle::random::Case;
use isolario_oracle::{history, volume};
use isolario_sim::{Config, Kind, Plant, Workload, generate, templates};
use isolario_verify::verify;

const LEVELS: [Level; 7] = [
    Level::ReadCommitted,
    Level::ReadAtomic,
    Level::Causal,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::Serializable,
    Level::StrictSerializable,
];

/// What plans say of a history; nothing if there is no table of it.
fn ask(history: &History, parts: usize, settings: &Settings) -> Option<Vec<Answer>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("h.parquet");
    match write_table(history, &path, parts) {
        Ok(_) => Some(check(&path, &LEVELS, settings).unwrap()),
        Err(Error::NoPlace { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Whatever is said is right; says how many levels were decided.
fn compare(history: &History, answers: &[Answer], what: &dyn std::fmt::Debug) -> usize {
    let checker = Checker::new(history, CheckOptions::default());
    let mut decided = 0;
    for answer in answers {
        let expected = checker.check(answer.level).verdict;
        let context = || {
            format!(
                "{what:?}, {}: {expected:?}\n{}",
                answer.level,
                isolario_formats::as_text(history).unwrap()
            )
        };
        match &answer.conclusion {
            Conclusion::Satisfied => assert!(expected.is_satisfied(), "{}", context()),
            Conclusion::Violated(findings) => {
                assert!(expected.is_violated(), "{}", context());
                for finding in findings {
                    let verdict = verify(
                        &finding.history,
                        &finding.result,
                        &isolario_verify::VerifyOptions::default(),
                    );
                    assert!(verdict.is_ok(), "{}", context());
                }
            }
            Conclusion::Undecided(reason) => {
                let weak = matches!(answer.level, Level::ReadCommitted | Level::ReadAtomic);
                let open = matches!(reason, Reason::Ambiguous(_) | Reason::SeveralInitial(_));
                assert!(!weak || open, "{reason:?} {}", context());
                continue;
            }
            _ => panic!("{answer:?}"),
        }
        decided += 1;
    }
    decided
}

#[test]
fn random_histories_have_the_verdicts_of_the_checkers() {
    let (mut decided, mut asked) = (0, 0);
    for case in Case::first(volume().min(20_000) / 250) {
        for draft in [case.draft(), case.read_modify_write_draft()] {
            let history = draft.history().unwrap();
            let Some(answers) = ask(&history, 1, &Settings::default()) else { continue };
            decided += compare(&history, &answers, &case);
            asked += answers.len();
        }
    }
    assert!(decided * 2 > asked, "{decided} of {asked}");
}

fn simulated(level: Level, unknown_ratio: f64, anomalies: Vec<Plant>) -> History {
    let config = Config {
        level,
        workload: Workload { kind: Kind::Mini, keys: 20, ..Workload::default() },
        txns: 300,
        sessions: 6,
        unknown_ratio,
        abort_ratio: 0.05,
        anomalies,
        seed: 3,
        ..Config::default()
    };
    let mut batch = Batch::new();
    generate(&config, &mut batch).unwrap();
    batch.build().unwrap()
}

#[test]
fn planted_anomalies_are_found_across_the_borders_of_windows() {
    for template in templates() {
        let plant = Plant { kind: template.kind, at: 0.5 };
        let history = simulated(Level::StrictSerializable, 0.05, vec![plant]);
        let Some(answers) = ask(&history, 1, &Settings::default()) else { continue };
        compare(&history, &answers, &template.kind);
    }
}

#[test]
fn weaker_stores_are_told_from_stronger_ones() {
    for level in [Level::ReadCommitted, Level::ReadAtomic, Level::SnapshotIsolation] {
        let history = simulated(level, 0.0, Vec::new());
        let answers = ask(&history, 1, &Settings::default()).unwrap();
        assert!(compare(&history, &answers, &level) >= 6, "{level}");
    }
}

/// The answers are the same, and so is what shows them.
fn assert_same(ones: &[Answer], others: &[Answer], what: &dyn std::fmt::Debug) {
    let said = |answer: &Answer| match &answer.conclusion {
        Conclusion::Violated(findings) => {
            let text = |finding: &Finding| {
                let anomalies = finding.result.verdict.anomalies();
                let kinds = anomalies.iter().map(|anomaly| anomaly.kind).collect::<Vec<_>>();
                format!("{kinds:?}\n{}", isolario_formats::as_text(&finding.history).unwrap())
            };
            // Who is asked about which part decides their order.
            let mut texts: Vec<String> = findings.iter().map(text).collect();
            texts.sort_unstable();
            texts
        }
        other => vec![format!("{other:?}")],
    };
    for (one, other) in ones.iter().zip(others) {
        assert_eq!(said(one), said(other), "{what:?}, {}", one.level);
        assert_eq!((one.windows, one.largest), (other.windows, other.largest), "{}", one.level);
    }
}

fn two_workers() -> Settings {
    let program = Some(PathBuf::from(env!("CARGO_BIN_EXE_isolario-cluster")));
    Settings { workers: 2, program, ..Settings::default() }
}

#[test]
fn workers_say_the_same() {
    let settings = two_workers();
    for level in [Level::ReadCommitted, Level::StrictSerializable] {
        let history = simulated(level, 0.1, Vec::new());
        let alone = ask(&history, 3, &Settings::default()).unwrap();
        let answers = ask(&history, 3, &settings).unwrap();
        compare(&history, &answers, &level);
        assert_same(&alone, &answers, &level);
    }
}

#[test]
fn without_times_everything_is_one_window() {
    let text = "a: r x nil, w x 1\n b: r x 1, w x 2\n a: r x 2";
    let history = history(text);
    let answers = ask(&history, 1, &Settings::default()).unwrap();
    assert_eq!(compare(&history, &answers, &text), 5);
    assert_eq!((answers[5].windows, answers[5].largest), (1, 3));
    assert!(matches!(answers[6].conclusion, Conclusion::Undecided(Reason::NoTimes)));
}

#[test]
fn a_little_memory_is_enough() {
    let history = simulated(Level::Serializable, 0.0, Vec::new());
    let settings = Settings { memory: Some(32 << 20), partitions: Some(2), ..Settings::default() };
    let answers = ask(&history, 1, &settings).unwrap();
    assert_eq!(compare(&history, &answers, &"memory"), 7);
}

fn parts(directory: &Path) -> Vec<PathBuf> {
    (0..3).map(|part| directory.join(format!("h/part-{part:04}.parquet"))).collect()
}

#[test]
fn bad_input_in_one_part_names_that_part() {
    let history = simulated(Level::Serializable, 0.0, Vec::new());
    let directory = tempfile::tempdir().unwrap();
    let (h, parts) = (directory.path().join("h"), parts(directory.path()));
    let said = || check(&h, &[Level::ReadCommitted], &Settings::default()).unwrap_err().to_string();

    write_table(&history, &h, 3).unwrap();
    let bytes = std::fs::read(&parts[1]).unwrap();
    std::fs::write(&parts[1], &bytes[..bytes.len() / 2]).unwrap();
    assert!(said().contains("part-0001.parquet"), "{}", said());

    // The bytes of the columns come first, after four that say what the file is.
    let mut spoilt = bytes.clone();
    spoilt[4..bytes.len() / 2].fill(0xff);
    std::fs::write(&parts[1], &spoilt).unwrap();
    assert!(said().contains("part-0001.parquet"), "{}", said());
    let said_by_workers = check(&h, &[Level::ReadCommitted], &two_workers()).unwrap_err();
    assert!(said_by_workers.to_string().contains("part-0001.parquet"), "{said_by_workers}");

    std::fs::remove_file(&parts[1]).unwrap();
    assert!(said().ends_with("2 of 3 parts are here"), "{}", said());

    let other = directory.path().join("other");
    write_table(&simulated(Level::Serializable, 0.5, vec![]).clone(), &other, 1).unwrap();
    std::fs::rename(&other, &parts[1]).unwrap();
    assert!(
        said().contains("part-0001.parquet: it is not a part of the same history"),
        "{}",
        said()
    );
}
