//! `isolario gen history`.

use isolario::check::supported;
use isolario::model::Level;
use isolario::sim::{Kind, Preset, templates};
use serde_json::Value;

use crate::sandbox::Sandbox;

/// `isolario gen history` with these options, to a file.
fn generate(sandbox: &Sandbox, options: &[&str], file: &str) -> i32 {
    sandbox.code(&[&["gen", "history", "-q", "-o", file], options].concat())
}

fn summary(sandbox: &Sandbox, options: &[&str]) -> Value {
    let args = [&["gen", "history", "--json", "--force", "-o", "h.iso"], options].concat();
    serde_json::from_str(&sandbox.stdout(&args)).unwrap()
}

const SMALL: [&str; 6] = ["--txns", "5", "--sessions", "2", "--keys", "3"];

#[test]
fn a_small_history_on_standard_output() {
    let args = [&["gen", "history"], &SMALL[..]].concat();
    insta::assert_snapshot!(Sandbox::new().transcript(&args));
}

#[test]
fn a_planted_anomaly_among_aborted_and_unknown_transactions() {
    let sandbox = Sandbox::new();
    let args = [
        &["gen", "history", "--anomaly", "lost-update", "--level", "si", "-o", "h.txt"][..],
        &["--abort-ratio", "0.3", "--unknown-ratio", "0.3", "--seed", "7"],
        &SMALL,
    ]
    .concat();
    let shown = sandbox.transcript(&args);
    insta::assert_snapshot!(format!("{shown}\n{}", sandbox.read("h.txt")));
}

#[test]
fn the_summary_for_programs() {
    let sandbox = Sandbox::new();
    let args = ["gen", "history", "--json", "--txns", "20", "--seed", "18446744073709551615"];
    let args = [&args[..], &["--anomaly", "TAP-a,WriteSkew", "-o", "h.iso"]].concat();
    insta::assert_snapshot!(sandbox.transcript(&args));
    insta::assert_snapshot!(
        "the_summary_cannot_share_standard_output",
        sandbox.transcript(&["gen", "history", "--json"])
    );
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
    let sandbox = Sandbox::new();
    for kind in Kind::ALL {
        let history = |seed: &str| {
            let args = ["gen", "history", "--workload", kind.name(), "--txns", "50"];
            sandbox.stdout(&[&args[..], &["--seed", seed]].concat())
        };
        assert_eq!(history("1"), history("1"), "{kind}");
        assert_ne!(history("1"), history("2"), "{kind}");
    }
}

#[test]
fn histories_satisfy_the_level_they_were_made_for() {
    let sandbox = Sandbox::new();
    for level in Level::all().filter(|level| *level != Level::Linearizable) {
        for kind in ["general", "append"] {
            let name = format!("{level}-{kind}.iso");
            let options = ["--level", level.name(), "--workload", kind, "--txns", "300"];
            let few_keys = ["--keys", "5", "--abort-ratio", "0.1", "--unknown-ratio", "0.1"];
            assert_eq!(generate(&sandbox, &[options, few_keys].concat(), &name), 0, "{name}");
            // Lists show the order of versions.
            let is_checked = |weaker: &&Level| kind == "append" || !weaker.needs().version_order;
            let implied = supported().iter().filter(|weaker| level.implies(**weaker));
            let implied = implied.filter(is_checked);
            let implied: Vec<_> = implied.map(|level| level.name()).collect();
            if !implied.is_empty() {
                let args = ["check", "-q", "--level", &implied.join(","), &name];
                assert_eq!(sandbox.code(&args), 0, "{name}");
            }
        }
    }
}

#[test]
fn single_operations_can_be_linearizable() {
    let sandbox = Sandbox::new();
    assert_eq!(generate(&sandbox, &["--level", "lin", "--workload", "lwt"], "lwt.iso"), 0);
    let single = ["--level", "lin", "--workload", "general", "--ops", "1"];
    assert_eq!(generate(&sandbox, &single, "single.iso"), 0);
}

#[test]
fn planted_anomalies_are_found_by_name() {
    let sandbox = Sandbox::new();
    for template in templates().iter().filter(|template| template.kind.names().plume.is_some()) {
        let name = template.kind.name();
        let file = format!("{name}.iso");
        assert_eq!(generate(&sandbox, &["--txns", "50", "--anomaly", name], &file), 0, "{name}");
        let level = template.kind.names().forbidden_by[0].name();
        let args = ["check", "--level", level, &file];
        assert_eq!(sandbox.code(&args), 1, "{name}");
        assert!(sandbox.stdout(&args).contains(name), "{name}");
    }
}

#[test]
fn presets_set_what_is_not_given() {
    let sandbox = Sandbox::new();
    for preset in Preset::all() {
        let generated = summary(&sandbox, &["--preset", preset.name, "--txns", "40"]);
        let workload = preset.workload();
        assert_eq!(generated["workload"], workload.kind.name(), "{}", preset.name);
        assert_eq!(generated["size"]["transactions"], 40, "{}", preset.name);
        if !preset.is_of_table() {
            let ops = u64::from(workload.ops);
            assert_eq!(generated["size"]["operations"], 40 * ops, "{}", preset.name);
        }
        assert_eq!(sandbox.code(&["check", "-q", "--level", "ser", "h.iso"]), 0, "{}", preset.name);
    }
    let other = summary(&sandbox, &["--preset", "general-rh", "--txns", "9", "--ops", "3"]);
    assert_eq!(other["size"]["operations"], 27);
    let whole = summary(&sandbox, &["--preset", "blindw-rw"]);
    assert_eq!(whole["size"]["transactions"], 10_000);
}

#[test]
fn the_book_has_every_preset() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/guide/generating.md");
    let page = std::fs::read_to_string(page).unwrap();
    for Preset { name, txns, sessions, description, .. } in Preset::all() {
        let row = format!("| `{name}` | {txns} | {sessions} | {description} |");
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn the_format_follows_the_extension_unless_named() {
    let sandbox = Sandbox::new();
    for (file, options) in [
        ("h.iso", &[][..]),
        ("h.jsonl", &[]),
        ("h.txt", &[]),
        ("h.log", &["--format", "plume"]),
        ("h.edn", &["--workload", "append"]),
        ("h", &["--format", "cobra"]),
    ] {
        let options = [&["--txns", "30"], options].concat();
        assert_eq!(generate(&sandbox, &options, file), 0, "{file}");
        assert_eq!(sandbox.code(&["check", "-q", file]), 0, "{file}");
    }
}

#[test]
fn names_that_are_wrong_get_a_suggestion() {
    let sandbox = Sandbox::new();
    let shown: Vec<_> = [
        ["--level", "serialisable"],
        ["--anomaly", "lost-updaet"],
        ["--anomaly", "phantom"],
        ["--anomaly", "G1b"],
        ["--workload", "minni"],
        ["--workload", "sql"],
        ["--preset", "blindw"],
        ["--distribution", "zipv:0.99"],
        ["--distribution", "zipf"],
        ["--format", "plmue"],
    ]
    .iter()
    .map(|[flag, name]| sandbox.transcript(&["gen", "history", flag, name]))
    .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let sandbox = Sandbox::new();
    let shown: Vec<_> = [
        &["--read-ratio", "1.5"][..],
        &["--sessions", "0"],
        &["--keys", "0"],
        &["--ops", "4"],
        &["--workload", "append", "--duplicate-ratio", "0.1"],
        &["--preset", "king-cobra-rmw", "--read-ratio", "0.75"],
        &["--abort-ratio", "0.75", "--unknown-ratio", "0.5"],
        &["--level", "linearizable"],
        &["-o", "h.dat"],
    ]
    .iter()
    .map(|options| sandbox.transcript(&[&["gen", "history"], *options].concat()))
    .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn an_existing_target_is_kept_unless_forced() {
    let sandbox = Sandbox::new().file("there.txt", "precious");
    insta::assert_snapshot!(sandbox.transcript(&["gen", "history", "-o", "there.txt"]));
    assert_eq!(sandbox.read("there.txt"), "precious");
    assert_eq!(generate(&sandbox, &["--force"], "there.txt"), 0);
    assert_ne!(sandbox.read("there.txt"), "precious");
}

#[test]
fn what_a_format_cannot_express_is_refused_and_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let before = sandbox.names();
    let args = ["gen", "history", "--unknown-ratio", "0.5", "--format", "plume", "-o", "h.log"];
    insta::assert_snapshot!(sandbox.transcript(&args));
    assert_eq!(sandbox.names(), before);
}

/// Ten bytes kept per transaction would show in the formats of lines. The isolario format fills
/// blocks of 2^16 transactions, whose size varies a little.
#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_transactions() {
    const MIB: u64 = 1 << 20;
    let sandbox = Sandbox::new();
    for (format, few, room) in [
        ("isolario", 150_000, 4 * MIB),
        ("jsonl", 20_000, MIB),
        ("text", 20_000, MIB),
        ("plume", 20_000, MIB),
    ] {
        let peak = |txns: u64| {
            let generated = summary(&sandbox, &["--txns", &txns.to_string(), "--format", format]);
            generated["timing"]["peak_rss_bytes"].as_u64().unwrap()
        };
        let (before, after) = (peak(few), peak(few + 200_000));
        assert!(after < before + room, "{format}: {before} and {after} bytes");
    }
}

#[test]
fn the_true_order_of_versions_is_one_that_check_takes() {
    let sandbox = Sandbox::new();
    let workload = ["--workload", "general", "--txns", "300", "--keys", "20", "--unknown-ratio"];
    for (level, ratio) in [("ser", "1"), ("si", "1"), ("si", "0.5")] {
        let orders = ["--version-order-out", "o", "--version-order-ratio", ratio, "--force"];
        let options = [&workload[..], &["0.1", "--level", level], &orders].concat();
        assert_eq!(generate(&sandbox, &options, "h.iso"), 0);
        let trust = ["--version-order", "o", "--trust-version-order", "--proof", "p"];
        let check = [&["check", "--level", level, "h.iso"], &trust[..]].concat();
        let output = sandbox.run(&check);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        // Nothing in the file is unknown to the history.
        assert!(!String::from_utf8(output.stderr).unwrap().contains("does not have"));
        let verify = ["verify", "--version-order", "o", "--trust-version-order", "h.iso", "p"];
        assert_eq!(sandbox.code(&verify), 0);
    }
}

#[test]
fn true_orders_are_lines_of_json_that_are_not_overwritten() {
    let sandbox = Sandbox::new();
    let orders = ["--version-order-out", "v", "--serialization-order-out", "s"];
    let workload = ["--workload", "general", "--ops", "2", "--read-ratio", "0.1"];
    let args = [&workload[..], &SMALL, &orders].concat();
    assert_eq!(generate(&sandbox, &args, "h.txt"), 0);
    let files = [sandbox.read("h.txt"), sandbox.read("v"), sandbox.read("s")];
    let again = [&["gen", "history"], &orders[..]].concat();
    let duplicates = ["--duplicate-ratio", "0.1", "--version-order-out", "w"];
    let refused = [&["gen", "history"], &duplicates[..]].concat();
    let refusals = [sandbox.transcript(&again), sandbox.transcript(&refused)];
    insta::assert_snapshot!([files.join("---\n"), refusals.join("\n")].join("\n"));
}

#[test]
fn a_small_history_of_a_table_with_its_orders() {
    let sandbox = Sandbox::new();
    let args = [
        &["gen", "history", "--workload", "predicate", "--anomaly", "phantom", "-o", "h.jsonl"][..],
        &["--version-order-out", "v", "--serialization-order-out", "s", "--ops", "3"],
        &["--mix", "insert:3,increment:1,range-read:2,range-update:1,delete:1,aggregate:1"],
        &SMALL,
    ]
    .concat();
    let shown = sandbox.transcript(&args);
    let files = ["h.jsonl", "v", "s"].map(|file| sandbox.read(file)).join("---\n");
    insta::assert_snapshot!(format!("{shown}\n{files}"));
}

#[test]
fn flags_that_say_nothing_about_a_table_are_refused_and_the_other_way_round() {
    let sandbox = Sandbox::new();
    let predicate = ["gen", "history", "--workload", "predicate"];
    let mut transcripts = Vec::new();
    for options in [
        ["--read-ratio", "0.5"],
        ["--preset", "general-rh"],
        ["--mix", "reed:1"],
        ["--anomaly", "lost-update"],
        ["--defect", "stale-scam"],
        ["--level", "lin"],
    ] {
        transcripts.push(sandbox.transcript(&[&predicate[..], &options].concat()));
    }
    for options in [["--mix", "read:1"], ["--defect", "stale-scan"], ["--workload", "predicat"]] {
        transcripts.push(sandbox.transcript(&[&["gen", "history"], &options[..]].concat()));
    }
    insta::assert_snapshot!(transcripts.join("\n"));
}

#[test]
fn histories_of_tables_are_written_and_read_alike_in_every_format_that_has_them() {
    let sandbox = Sandbox::new();
    let options = ["--workload", "predicate", "--txns", "300", "--keys", "50", "--abort-ratio"];
    let options = [&options[..], &["0.1", "--unknown-ratio", "0.1"]].concat();
    for file in ["h.iso", "h.jsonl"] {
        assert_eq!(generate(&sandbox, &options, file), 0);
    }
    for (from, to) in [("h.iso", "from-iso.jsonl"), ("h.jsonl", "from-jsonl.jsonl")] {
        assert_eq!(sandbox.code(&["convert", from, to]), 0);
    }
    assert!(sandbox.read("from-iso.jsonl") == sandbox.read("from-jsonl.jsonl"));
}

#[test]
fn the_true_order_of_a_table_is_one_that_check_takes_and_defects_are_found_by_it() {
    let sandbox = Sandbox::new();
    let mix = "insert:15,update:15,read:10,increment:10,range-read:15,range-update:10,delete:2,\
               aggregate:15";
    let table = ["--workload", "predicate", "--txns", "2000", "--keys", "100", "--mix", mix];
    let orders = ["--serialization-order-out", "s", "--force"];
    let check = ["check", "-q", "--level", "ser", "--serialization-order", "s", "h.iso"];
    for (options, code) in [
        (&["--level", "ser", "--abort-ratio", "0.1", "--unknown-ratio", "0.1"][..], 0),
        (&["--level", "rr"], 1),
        (&["--level", "si"], 1),
        (&["--defect", "predicate-lock"], 1),
        (&["--defect", "stale-scan"], 1),
        (&["--defect", "lost-delete"], 1),
    ] {
        let options = [&table[..], &orders, options].concat();
        assert_eq!(generate(&sandbox, &options, "h.iso"), 0);
        assert_eq!(sandbox.code(&check), code, "{options:?}");
    }
}
