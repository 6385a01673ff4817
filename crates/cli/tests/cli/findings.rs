//! What was found: every bug once, every kind named, the same numbers everywhere, and bug reports.

use serde_json::Value;

use crate::sandbox::Sandbox;

/// Kinds to plant that no wrong read hides.
const PLANTED: [&str; 11] = [
    "NonMonoReadCO",
    "FracturedReadCO",
    "COConflictCM",
    "SessionGuaranteeViolation",
    "LongFork",
    "LostUpdate",
    "WriteSkew",
    "ReadSkew",
    "ReadWriteSkew",
    "NonadjacentAntiDependencies",
    "StaleRead",
];

/// Wrong reads, which refute every level before anything is searched.
const WRONG_READS: [&str; 3] = ["ThinAirRead", "AbortedRead", "NonRepeatableRead"];

fn with_planted(kinds: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    let anomalies = kinds.join(",");
    let plant = ["gen", "history", "--anomaly", &anomalies, "--txns", "50", "-o", "h.iso"];
    assert_eq!(sandbox.code(&plant), 0);
    sandbox
}

fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    serde_json::from_str(&sandbox.stdout(args)).unwrap()
}

fn strings<'v>(values: impl IntoIterator<Item = &'v Value>) -> Vec<&'v str> {
    values.into_iter().filter_map(Value::as_str).collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn every_kind_that_is_there_is_named_or_the_level_that_would_find_it_is() {
    for kinds in [PLANTED.to_vec(), [&PLANTED[..], &WRONG_READS].concat()] {
        let sandbox = with_planted(&kinds);
        for level in ["all", "si"] {
            let check = ["check", "--level", level, "--max-anomalies", "100", "h.iso", "--json"];
            let report = json(&sandbox, &check);
            let anomalies: Vec<&Value> =
                array(&report["results"]).iter().flat_map(|r| array(&r["anomalies"])).collect();
            let mut said = strings(anomalies.iter().map(|anomaly| &anomaly["name"]));
            said.extend(anomalies.iter().flat_map(|anomaly| strings(array(&anomaly["aliases"]))));
            let open = array(&report["not_ruled_out"]);
            said.extend(open.iter().flat_map(|open| strings(array(&open["names"]))));
            let text = sandbox.stdout(&["check", "--level", level, "h.iso"]);
            for kind in &kinds {
                assert!(said.contains(kind), "{kind} at {level}: {said:?}");
                let is_told = text.contains(kind) || text.contains("--level all asks them");
                assert!(is_told, "{kind} at {level}: {text}");
            }
        }
    }
}

#[test]
fn the_numbers_are_the_same_in_text_json_junit_and_html() {
    let sandbox = with_planted(&PLANTED);
    let check = ["check", "--level", "all", "--max-anomalies", "2", "h.iso"];
    let report = json(&sandbox, &[&check[..], &["--json"]].concat());
    assert_eq!(sandbox.code(&[&check[..], &["--report", "one.html"]].concat()), 1);
    std::fs::copy(sandbox.path("h.iso"), sandbox.path("again.iso")).unwrap();
    assert_eq!(sandbox.code(&[&check[..], &["again.iso", "--report", "two.html"]].concat()), 1);
    let pages = [sandbox.read("one.html"), sandbox.read("two.html")];
    let text = sandbox.stdout(&check).split_whitespace().collect::<Vec<_>>().join(" ");
    let junit = sandbox.stdout(&[&check[..], &["--output", "junit"]].concat());
    for result in array(&report["results"]).iter().filter(|r| r["verdict"] == "violated") {
        let (level, total) =
            (result["level"].as_str().unwrap(), result["anomalies_total"].as_u64().unwrap());
        let listed = array(&result["anomalies"]).len() as u64;
        assert_eq!(listed, total.min(2), "{level}");
        let at_least = if result["anomalies_exact"] == true { "" } else { "at least " };
        let noun = if total == 1 { "anomaly" } else { "anomalies" };
        let row = format!("{level} violated {at_least}{total} {noun}: ");
        assert!(text.contains(&row), "{row} in {text}");
        let case = junit.split("<testcase ").find(|case| case.contains(&format!("\"{level}\"")));
        let case = case.unwrap();
        let more = case.split("… and ").nth(1).map_or(0, |more| {
            let more = more.trim_start_matches("at least ");
            more.split(' ').next().unwrap().parse().unwrap()
        });
        assert_eq!(listed + more, total, "{level}: {case}");
        for page in &pages {
            let row = page.split("<tr>").find(|row| row.contains(&format!(">{level}</th>")));
            let why = format!("<td>{at_least}{total} {noun}: ");
            assert!(row.is_some_and(|row| row.contains(&why)), "{why} in {row:?}");
        }
    }
    let findings = &report["findings"];
    let total = findings["total"].as_u64().unwrap();
    let groups = array(&findings["groups"]).iter().map(|group| group["count"].as_u64().unwrap());
    assert_eq!(groups.sum::<u64>(), total);
    assert_eq!(findings["shown"], 2);
    assert!(text.contains(&format!("at least {total} anomalies, 2 shown in full.")), "{text}");
    assert!(text.contains(&format!("… {} more anomalies not shown", total - 2)), "{text}");
    let [one, two] = &pages;
    assert!(one.contains(&format!("Anomalies ({total})</a>")));
    assert!(one.contains(&format!("<h3>In short: {} more anomalies", total - 2)));
    // The matrix of several histories has a column per kind, and its rows add up to the total.
    let kinds = array(&findings["groups"]).iter().map(|group| group["name"].as_str().unwrap());
    let kinds: std::collections::BTreeSet<&str> = kinds.collect();
    assert!(kinds.len() >= 8, "some are told under the name of another: {kinds:?}");
    let matrix = two.split("id=\"matrix\"").nth(1).unwrap().split("</section>").next().unwrap();
    for row in matrix.split("<tr>").skip(2) {
        let cells = row.split("<td class=\"violated\">").skip(1);
        let counts: Vec<u64> =
            cells.map(|cell| cell.split('<').next().unwrap().parse().unwrap()).collect();
        assert_eq!((counts.len(), counts.iter().sum()), (kinds.len(), total), "{row}");
    }
}

#[test]
fn a_number_is_exact_where_everything_was_counted() {
    let sandbox = Sandbox::new()
        .file("two.txt", "initial 0\nsession a\n  T1: r x 0, w x 1\nsession b\n  T2: r x 0, w x 2\n")
        .file(
            "three.txt",
            "initial 0\nsession a\n  T1: r x 0, w x 1\nsession b\n  T2: r x 0, w x 2\nsession c\n  \
             T3: r x 0, w x 3\n",
        )
        .file(
            "lists.txt",
            "initial 0\nsession a\n  T1: r x [], append x 1\nsession b\n  T2: r x [], append x 2\nsession c\n  \
             T3: r x [1 2]\n",
        );
    for (history, exact) in [("two.txt", true), ("three.txt", false), ("lists.txt", true)] {
        for level in ["si", "ser"] {
            let report = json(&sandbox, &["check", "--level", level, history, "--json"]);
            let result = &report["results"][0];
            assert_eq!(result["anomalies"][0]["name"], "LostUpdate", "{history} at {level}");
            assert_eq!(result["anomalies_total"], 1, "{history} at {level}");
            assert_eq!(result["anomalies_exact"], exact, "{history} at {level}");
        }
    }
}

#[test]
fn one_bug_has_one_name_at_every_level() {
    let sandbox = with_planted(&["SessionGuaranteeViolation"]);
    let report = json(&sandbox, &["check", "--level", "all", "h.iso", "--json"]);
    assert_eq!(report["findings"]["total"], 1);
    for result in array(&report["results"]).iter().filter(|r| r["verdict"] == "violated") {
        let name = &result["anomalies"][0]["name"];
        assert_eq!(name, "SessionGuaranteeViolation", "{}", result["level"]);
    }
    let text = sandbox.stdout(&["check", "--level", "all", "h.iso"]);
    assert_eq!(text.matches("\nSession guarantee violation: ").count(), 1, "{text}");
}

#[test]
fn a_broken_claim_leaves_a_bug_report_that_can_be_sent_on() {
    let sandbox = Sandbox::new();
    let run = ["run", "--db", "sim:rc?anomaly=thin-air-read", "--txns", "500", "--out", "out"];
    let text = sandbox.stdout(&[&run[..], &["--seed", "7"]].concat());
    assert!(text.contains("Simulated store") && text.contains("broke its claim: thin-air read"));
    assert!(text.contains("bug report  out/bug-report.md"), "{text}");
    let written = sandbox.read("out/bug-report.md");
    // A run directory is a history, and what a check cannot know lies beside it.
    let check =
        ["check", "out", "--level", "rc", "--max-anomalies", "3", "--bug-report", "again.md"];
    assert_eq!(sandbox.code(&check), 1);
    let again = sandbox.read("again.md");
    assert_eq!(again, written);
    let proof = sandbox.read("out/proof");
    let digest = proof.split("sha256:").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    for expected in [
        "| Isolation setting | read-committed |",
        "| Source of the claim | the level that its URL names |",
        "| Seed | 7 |",
        &format!("`sha256:{digest}`"),
        "isolario run --db 'sim:rc?anomaly=thin-air-read'",
        "isolario verify out/history.iso out/proof",
        "### Thin-air read: ",
    ] {
        assert!(written.contains(expected), "{expected} in {written}");
    }
    assert_eq!(sandbox.code(&["verify", "out/history.iso", "out/proof"]), 0);
}

#[test]
fn a_bug_report_on_a_history_lists_what_is_to_be_filled_in() {
    let sandbox = Sandbox::new();
    let check = ["check", "--level", "rc", "cycle.txt", "--bug-report", "bug.md"];
    let with_proof = [&check[..], &["--proof", "cycle.proof"]].concat();
    assert_eq!(sandbox.code(&with_proof), 1);
    let stable = |text: String| {
        let date = |line: &&str| !line.starts_with("| Date |");
        text.lines().filter(date).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(stable(sandbox.read("bug.md")));
    assert_eq!(sandbox.code(&["verify", "cycle.txt", "cycle.proof"]), 0);
}

#[test]
fn standard_output_is_for_the_result() {
    let sandbox = Sandbox::new();
    let shown: Vec<String> = ["--junit", "--report", "--proof", "--bug-report"]
        .map(|flag| sandbox.transcript(&["check", flag, "-", "fine.txt"]))
        .to_vec();
    insta::assert_snapshot!(shown.join("\n"));
    assert!(!sandbox.names().contains(&"-".to_owned()));
}

#[test]
fn a_run_reports_in_the_forms_of_ci() {
    let sandbox = Sandbox::new();
    let run = |db: &str, out: &str, form: &str| {
        sandbox.run(&["run", "--db", db, "--txns", "3000", "--out", out, "--output", form, "-q"])
    };
    let wrong = "sim:rc?anomaly=thin-air-read";
    let output = run(wrong, "a", "junit");
    let xml = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{xml}");
    assert!(xml.starts_with("<?xml ") && xml.ends_with("</testsuites>\n"), "{xml}");
    let suite = "<testsuite name=\"sim read-committed mini\" tests=\"1\" failures=\"1\"";
    assert!(xml.contains(suite), "{xml}");
    assert!(xml.contains("<failure type=\"ThinAirRead\""), "{xml}");
    let output = run(wrong, "b", "github");
    let annotations = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{annotations}");
    assert!(annotations.lines().all(|line| line.starts_with("::")), "{annotations}");
    assert!(annotations.contains("::error "), "{annotations}");
    let output = run("sim:serializable", "c", "junit");
    let xml = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{xml}");
    let suite = "name=\"sim serializable mini\" tests=\"1\" failures=\"0\" errors=\"0\"";
    assert!(xml.contains(suite), "{xml}");
}

#[test]
fn several_runs_are_one_document_of_ci_and_so_is_one_that_fails() {
    let sandbox = Sandbox::new();
    let junit = |args: &[&str]| {
        let xml = sandbox.stdout(&[&["run", "--output", "junit", "-q"], args].concat());
        assert!(xml.starts_with("<?xml ") && xml.ends_with("</testsuites>\n"), "{xml}");
        assert_eq!(xml.matches("<testsuites").count(), 1, "{xml}");
        xml
    };
    let xml = junit(&["--db", "sim:ser", "--txns", "50", "--repeat", "2", "--out", "two"]);
    for suite in ["sim serializable mini", "sim serializable mini (2)"] {
        assert!(xml.contains(&format!("<testsuite name=\"{suite}\"")), "{xml}");
    }
    let xml = junit(&["--db", "sim:no-such-level"]);
    assert!(xml.contains("errors=\"1\"") && xml.contains("no-such-level"), "{xml}");
}
