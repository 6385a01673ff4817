//! `check --follow`: a history is checked while it is written.

use std::fs::OpenOptions;
use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::sandbox::Sandbox;

const HEADER: &str = "{\"isolario\": 2, \"initial\": 0}\n";

/// Transactions that each read what the one before wrote.
fn chain(from: u32, to: u32) -> String {
    let line = |n: u32| {
        let (session, next) = (n % 3, n + 1);
        format!(
            "{{\"session\": {session}, \"ops\": [[\"r\", \"x\", {n}], [\"w\", \"x\", {next}]]}}\n"
        )
    };
    (from..to).map(line).collect()
}

/// Overwrites what was overwritten long ago.
const LOST_UPDATE: &str = "{\"session\": 9, \"ops\": [[\"r\", \"x\", 5], [\"w\", \"x\", 99999]]}\n";

#[test]
fn a_history_that_is_fine_is_followed_to_its_end() {
    let sandbox = Sandbox::new().file("h.jsonl", &(HEADER.to_owned() + &chain(0, 20)));
    let follow = ["check", "--follow", "--until-idle", "0s", "--level", "cc,ser", "h.jsonl"];
    insta::assert_snapshot!(sandbox.transcript(&follow));
}

#[test]
fn a_violation_is_told_as_by_any_other_check() {
    let text = HEADER.to_owned() + &chain(0, 20) + LOST_UPDATE;
    let sandbox = Sandbox::new().file("h.jsonl", &text);
    let checked = sandbox.run(&["check", "--level", "ser", "h.jsonl"]);
    let followed = sandbox.run(&["check", "--follow", "--level", "ser", "h.jsonl"]);
    assert_eq!(followed.status.code(), Some(1));
    assert_eq!(followed.stdout, checked.stdout);
    let said = String::from_utf8(followed.stderr).unwrap();
    assert!(said.contains("after 21 transactions, serializable is violated"), "{said}");
}

#[test]
fn a_file_that_grows_is_followed_until_a_violation() {
    let sandbox = Sandbox::new().file("h.jsonl", HEADER);
    let path = sandbox.path("h.jsonl");
    let writer = thread::spawn(move || {
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        for part in 0..10 {
            thread::sleep(Duration::from_millis(60));
            file.write_all(chain(part * 1000, (part + 1) * 1000).as_bytes()).unwrap();
        }
        // In two pieces: a line counts when it is whole.
        let (half, rest) = LOST_UPDATE.split_at(30);
        file.write_all(half.as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(300));
        file.write_all(rest.as_bytes()).unwrap();
    });
    let followed = sandbox.run(&["check", "--follow", "--level", "si", "h.jsonl"]);
    writer.join().unwrap();
    assert_eq!(followed.status.code(), Some(1));
    assert!(String::from_utf8(followed.stdout).unwrap().contains("LostUpdate"));
    let said = String::from_utf8(followed.stderr).unwrap();
    assert!(said.contains("delay from the recording of a transaction to its check"), "{said}");
}

#[test]
fn what_cannot_be_followed_is_refused_with_a_remedy() {
    let lists = HEADER.to_owned() + "{\"session\": 1, \"ops\": [[\"append\", \"x\", 1]]}\n";
    let sandbox = Sandbox::new()
        .file("h.jsonl", &(HEADER.to_owned() + &chain(0, 2)))
        .file("lists.jsonl", &lists)
        .file("h.txt", "initial 0\nsession a\n  T1: w x 1\n");
    let all = [
        sandbox.transcript(&["check", "--follow", "h.jsonl"]),
        sandbox.transcript(&["check", "--follow", "--level", "lin", "h.jsonl"]),
        sandbox.transcript(&["check", "--follow", "--level", "cc", "lists.jsonl"]),
        sandbox.transcript(&["check", "--follow", "--level", "cc", "h.txt"]),
        sandbox.transcript(&["check", "--follow", "--level", "cc", "-"]),
        sandbox.transcript(&["check", "--follow", "--level", "cc", "h.jsonl", "h.txt"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn details_have_the_plan_and_the_attempt_that_decided() {
    let sandbox = Sandbox::new().file("h.jsonl", &(HEADER.to_owned() + &chain(0, 20)));
    let said = sandbox.run(&["-v", "check", "--level", "ser", "h.jsonl"]).stderr;
    let said = String::from_utf8(said).unwrap();
    let plan = "plan for serializable: reads, then versions, then segments, then search";
    assert!(said.contains(plan), "{said}");
    assert!(said.contains("serializable: decided by versions"), "{said}");
}

#[test]
fn a_recording_is_followed_to_its_end() {
    let sandbox = Sandbox::new();
    let strict =
        ["gen", "history", "--level", "sser", "--txns", "500", "--seed", "3", "-o", "h.iso"];
    assert!(sandbox.run(&strict).status.success());
    let followed = sandbox.run(&["check", "--follow", "--level", "cc,sser", "h.iso"]);
    assert_eq!(followed.status.code(), Some(0));
    let said = String::from_utf8(followed.stdout).unwrap();
    assert!(said.contains("strict-serializable holds of all 500 transactions"), "{said}");
}

#[test]
fn a_spilled_history_gets_the_answers_of_a_loaded_one() {
    let sandbox = Sandbox::new();
    for (name, anomaly) in [("good.iso", None), ("bad.iso", Some("lost-update"))] {
        let mut gen_history = vec!["gen", "history", "--txns", "500", "--seed", "3", "-o", name];
        gen_history.extend(anomaly.iter().flat_map(|name| ["--anomaly", name]));
        assert!(sandbox.run(&gen_history).status.success());
        let loaded = sandbox.run(&["check", "--level", "rc,cc,si", name]);
        let spilled = sandbox.run(&["check", "--spill", ".", "--level", "rc,cc,si", name]);
        assert_eq!(spilled.status.code(), loaded.status.code());
        let first_lines = |bytes: &[u8]| -> Vec<String> {
            String::from_utf8(bytes.to_vec()).unwrap().lines().take(5).map(Into::into).collect()
        };
        assert_eq!(first_lines(&spilled.stdout), first_lines(&loaded.stdout));
        let proof = ["check", "--spill", ".", "--level", "rc,cc,si", "--proof", "p", name];
        assert_eq!(sandbox.run(&proof).status.code(), loaded.status.code());
        let verified = sandbox.run(&["verify", name, "p"]);
        let said = String::from_utf8(verified.stdout).unwrap();
        assert!(verified.status.success() && said.contains("the proof is right"), "{said}");
        if anomaly.is_some() {
            // No more than a part of the history is looked at.
            let proof = ["check", "--spill", ".", "--level", "si", "--proof", "q", name];
            assert_eq!(sandbox.run(&proof).status.code(), Some(1));
            let verified = sandbox.run(&["verify", name, "q"]);
            let said = String::from_utf8(verified.stdout).unwrap();
            assert!(verified.status.success() && said.contains("1 anomaly re-checked"), "{said}");
            let other = sandbox.run(&["verify", "good.iso", "q"]);
            let said = String::from_utf8(other.stdout).unwrap();
            assert!(said.contains("the proof is about another history"), "{said}");
        }
        let by_itself = sandbox.run(&["-v", "check", "--memory", "50kB", "--level", "rc", name]);
        let said = String::from_utf8(by_itself.stderr).unwrap();
        assert!(said.contains("read from front to back: loading takes about"), "{said}");
        let fits = sandbox.run(&["-v", "check", "--memory", "1GB", "--level", "rc", name]);
        let said = String::from_utf8(fits.stderr).unwrap();
        assert!(said.contains("loaded: loading takes about"), "{said}");
    }
}

/// The file has one session after the other, so that in little memory it has to be sorted.
#[test]
fn what_a_spilled_proof_says_is_verified_in_bounded_memory() {
    let sandbox = Sandbox::new();
    let history = ["--level", "sser", "--txns", "2000", "--keys", "50", "--seed", "7"];
    let gen_history = [&["gen", "history"], &history[..], &["-o", "h.txt"]].concat();
    assert!(sandbox.run(&gen_history).status.success());
    assert!(sandbox.run(&["convert", "h.txt", "h.iso"]).status.success());
    let levels = "pl-2,rc,ra,cc,prefix,si,strong-si,ser,sser";
    let check = ["check", "--spill", ".", "--level", levels, "--proof", "p", "h.iso"];
    let checked = sandbox.run(&check);
    assert!(checked.status.success(), "{}", String::from_utf8(checked.stderr).unwrap());
    let all = sandbox.run(&["verify", "h.txt", "p"]);
    let expected = String::from_utf8(all.stdout).unwrap();
    assert!(expected.contains("the proof is right"), "{expected}");
    for memory in ["1GB", "500kB"] {
        let pieces = sandbox.run(&["verify", "--memory", memory, "h.iso", "p"]);
        assert_eq!(String::from_utf8(pieces.stdout).unwrap(), expected);
    }
    // Whatever is wrong is said of the same transactions in the same words.
    let proof = sandbox.read("p");
    let lines: Vec<&str> = proof.lines().collect();
    let (first, second) = (lines[2], lines[3]);
    let forged = proof.replacen(&format!("{first}\n{second}"), &format!("{second}\n{first}"), 1);
    std::fs::write(sandbox.path("q"), forged).unwrap();
    let [all, pieces] = ["h.txt", "h.iso"].map(|history| sandbox.run(&["verify", history, "q"]));
    assert_eq!((all.status.code(), pieces.status.code()), (Some(1), Some(1)));
    let said = String::from_utf8(pieces.stdout).unwrap();
    assert!(said.contains("adya-read-committed: satisfied, refused: "), "{said}");
    assert_eq!(said, String::from_utf8(all.stdout).unwrap());
}

#[test]
fn an_order_with_reads_of_long_ago_takes_memory_to_verify() {
    let sandbox = Sandbox::new();
    let shape = ["--workload", "general", "--txns", "2000", "--keys", "50", "--seed", "7"];
    let gen_history =
        [&["gen", "history", "--level", "rc"], &shape[..], &["-o", "stale.iso"]].concat();
    assert!(sandbox.run(&gen_history).status.success());
    let check = ["check", "--spill", ".", "--level", "rc", "--proof", "p", "stale.iso"];
    assert!(sandbox.run(&check).status.success());
    let enough = sandbox.run(&["verify", "--memory", "500kB", "stale.iso", "p"]);
    assert_eq!(enough.status.code(), Some(0), "{}", String::from_utf8(enough.stdout).unwrap());
    let little = sandbox.run(&["verify", "--memory", "1kB", "stale.iso", "p"]);
    let said = String::from_utf8(little.stdout).unwrap();
    assert_eq!(little.status.code(), Some(3), "{said}");
    assert!(said.contains("allow more with --memory"), "{said}");
}

#[test]
fn what_cannot_be_spilled_is_refused_with_a_remedy() {
    let sandbox = Sandbox::new()
        .file("h.jsonl", &(HEADER.to_owned() + &chain(0, 2)))
        .file("h.txt", "initial 0\nsession a\n  T1: w x 1\n");
    let all = [
        sandbox.transcript(&["check", "--spill", ".", "h.jsonl"]),
        sandbox.transcript(&["check", "--spill", ".", "--level", "lin", "h.jsonl"]),
        sandbox.transcript(&["check", "--spill", ".", "--level", "cc", "h.txt"]),
        sandbox.transcript(&["check", "--spill", ".", "--level", "cc", "-"]),
        sandbox.transcript(&["check", "--spill", ".", "--level", "cc", "--follow", "h.jsonl"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

/// The answer names no operation: none is loaded.
#[test]
fn an_undecided_level_of_a_spilled_history_is_reported_in_every_form() {
    let sandbox = Sandbox::new();
    let generate = ["gen", "history", "--workload", "general", "--txns", "100", "--sessions", "20"];
    let generate = [&generate[..], &["--keys", "5", "--seed", "1", "-o", "h.jsonl"]].concat();
    assert_eq!(sandbox.code(&generate), 0);
    let check = ["check", "--timeout", "1ns", "--level", "ser,rc", "h.jsonl"];
    let spills = [&["--spill", "."][..], &["--memory", "1KB"]];
    let reports = ["--report", "r.html", "--dot", "r.dot", "--svg", "r.svg", "--junit", "r.xml"];
    let reports = [&reports[..], &["--bug-report", "r.md"]].concat();
    let forms = [&["--json"][..], &["--output", "junit"], &["--output", "github"], &reports];
    for spill in spills {
        for form in forms {
            let done = sandbox.run(&[&check[..], spill, form].concat());
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(3), "{form:?}: {said}");
        }
    }
}

/// An order of starts and commits in which nothing starts.
#[test]
fn the_proof_of_a_spilled_history_without_a_commit_is_right() {
    let text = HEADER.to_owned()
        + "{\"session\": 0, \"outcome\": \"aborted\", \"start\": 1, \"finish\": 2, \"ops\": [[\"w\", \"x\", 1]]}\n";
    let sandbox = Sandbox::new().file("h.jsonl", &text);
    let levels = "rc,ra,cc,prefix,si,strong-si,ser,sser";
    let check = ["check", "--allow-empty", "--spill", ".", "--level", levels, "--proof", "p"];
    assert_eq!(sandbox.code(&[&check[..], &["h.jsonl"]].concat()), 0);
    assert_eq!(sandbox.code(&["verify", "h.jsonl", "p"]), 0);
}
