//! `isolario check`.

use std::process::Stdio;

use serde_json::Value;

use crate::sandbox::{CYCLE, Sandbox, transcript};

#[test]
fn a_satisfied_history_exits_with_0() {
    insta::assert_snapshot!(Sandbox::new().transcript(&["check", "fine.txt"]));
}

#[test]
fn a_violation_exits_with_1_and_is_explained() {
    insta::assert_snapshot!(Sandbox::new().transcript(&["check", "cycle.txt"]));
}

#[test]
fn named_levels_are_decided_alone() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.transcript(&["check", "--level", "pl-2,rc", "fine.txt"]));
    assert_eq!(sandbox.code(&["check", "--level", "all", "fine.txt"]), 0);
    assert_eq!(sandbox.code(&["check", "--level", "all", "cycle.txt"]), 1);
}

#[test]
fn a_named_level_that_does_not_apply_is_an_error_and_others_are_not() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.transcript(&["check", "--level", "rc", "ambiguous.txt"]));
    assert_eq!(sandbox.code(&["check", "--level", "all", "ambiguous.txt"]), 0);
    insta::assert_snapshot!("no_level_applies", sandbox.transcript(&["check", "ambiguous.txt"]));
}

#[test]
fn a_named_level_that_does_not_apply_is_violated_where_one_that_it_implies_is() {
    let lost = "session a\n T1: append x 1\n T2: append x 2\nsession b\n T3: r x [2]\n";
    let kept = lost.replace("[2]", "[1 2]");
    let sandbox = Sandbox::new().file("lost.txt", lost).file("kept.txt", &kept);
    // There are no times.
    assert_eq!(sandbox.code(&["check", "--level", "sser", "lost.txt"]), 1);
    assert_eq!(sandbox.code(&["check", "--level", "sser", "kept.txt"]), 2);
}

#[test]
fn a_level_that_is_not_built_is_refused_by_name() {
    let args = ["check", "--level", "linearizable", "fine.txt"];
    insta::assert_snapshot!(Sandbox::new().transcript(&args));
}

#[test]
fn misspelt_levels_and_formats_get_a_suggestion() {
    let sandbox = Sandbox::new();
    let shown: Vec<_> = [
        ["check", "--level", "read-comitted", "fine.txt"],
        ["check", "--level", "linearisable", "fine.txt"],
        ["check", "--level", "something-else", "fine.txt"],
        ["check", "--format", "jsnol", "fine.txt"],
        ["check", "--format", "something-else", "fine.txt"],
    ]
    .iter()
    .map(|args| sandbox.transcript(args))
    .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn histories_in_folders_within_folders_are_checked() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("all/first/second")).unwrap();
    let sandbox = sandbox
        .file("all/one.txt", crate::sandbox::FINE)
        .file("all/first/second/two.txt", crate::sandbox::FINE);
    let text = sandbox.stdout(&["check", "--level", "ser", "--json", "all"]);
    for name in ["all/one.txt", "all/first/second/two.txt"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn bad_files_do_not_stop_the_others() {
    let sandbox = Sandbox::new()
        .file("malformed.txt", "session alice\n  T1: r x 0, frobnicate x\n")
        .file("picture.bin", "\u{1}\u{2}\u{3}");
    let args = ["check", "malformed.txt", "cycle.txt", "missing.txt", "picture.bin", "fine.txt"];
    insta::assert_snapshot!(sandbox.transcript(&args));
}

#[test]
fn what_is_no_history_gets_advice() {
    let sandbox = Sandbox::new().file("empty.txt", "");
    for directory in ["nothing", "notes", "parts"] {
        std::fs::create_dir(sandbox.path(directory)).unwrap();
    }
    let sandbox = sandbox.file("notes/todo", "buy milk");
    let sandbox = sandbox.file("h.parquet", "PAR1").file("parts/part-0000.parquet", "PAR1");
    let shown: Vec<_> = [
        ["check", "empty.txt", "nothing", "notes", "h.parquet", "parts"].as_slice(),
        &["check", "--format", "jsonl", "fine.txt"],
    ]
    .iter()
    .map(|args| sandbox.transcript(args))
    .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn json_is_one_object_per_history_with_errors_among_them() {
    let sandbox = Sandbox::new();
    let args = ["check", "--json", "cycle.txt", "missing.txt", "fine.txt", "ambiguous.txt"];
    let stdout = sandbox.stdout(&args);
    let objects: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 5);
    assert_eq!(objects[4]["schema"], "isolario.summary/1");
    assert_eq!((&objects[4]["checked"], &objects[4]["failed"]), (&3.into(), &1.into()));
    assert_eq!(objects[4]["anomalies"][0]["name"], "ThinAirRead");
    for (object, name) in objects.iter().zip(&args[2..]) {
        assert_eq!(object["schema"], "isolario.verdict/2");
        assert_eq!(object["history"], *name);
    }
    assert!(objects[1]["error"].as_str().unwrap().starts_with("missing.txt: "));
    assert!(objects[0]["timing"]["load_ms"].as_f64().unwrap() > 0.0);
    let results = objects[0]["results"].as_array().unwrap();
    let cycle = results.iter().find(|result| result["level"] == "adya-read-committed").unwrap();
    assert_eq!(cycle["verdict"], "violated");
    assert_eq!(cycle["anomalies_total"], 2);
    assert_eq!(cycle["anomalies"][1]["edges"].as_array().unwrap().len(), 2);
    assert_eq!(objects[3]["results"][0]["verdict"], "not-applicable");
    assert!(objects[3]["results"][0]["reason"].is_string());
    insta::assert_snapshot!(sandbox.transcript(&["check", "--output", "json", "fine.txt"]));
}

#[test]
fn anomalies_beyond_the_limit_are_counted_only() {
    let args = ["check", "--level", "rc", "--max-anomalies", "1", "cycle.txt"];
    insta::assert_snapshot!(Sandbox::new().transcript(&args));
}

#[test]
fn of_stronger_levels_only_the_names_are_given_unless_asked_for() {
    let sandbox = Sandbox::new().file(
        "shop.txt",
        "session shop\n  T1: w price 10, w stock 5\n  T2: w price 20, w stock 4\n\
         session customer\n  T3: r stock 4, r price 10\n",
    );
    insta::assert_snapshot!(sandbox.transcript(&["check", "shop.txt"]));
    let all = sandbox.stdout(&["check", "--level", "all", "shop.txt"]);
    let names =
        "\n  NonMonoReadCO, TAP-h (Plume), G-single-item-process (Elle), FracturedReadCM,\n";
    assert_eq!(all.matches(names).count(), 1, "{all}");
}

#[test]
fn what_comes_before_the_initial_state() {
    let sandbox = Sandbox::new().file(
        "skew.txt",
        "initial 0\nsession bank\n  T1: w alice 1, w bob 1\n\
         session auditor\n  T2: r alice 0, r bob 1\n",
    );
    insta::assert_snapshot!(sandbox.transcript(&["check", "skew.txt"]));
}

#[test]
fn patterns_instead_of_levels() {
    let sandbox = Sandbox::new();
    let args = ["check", "--pattern", "TAP-g,g1a", "cycle.txt"];
    insta::assert_snapshot!(sandbox.transcript(&args));
    assert_eq!(sandbox.code(&["check", "--pattern", "AbortedRead", "cycle.txt"]), 0);
    assert_eq!(sandbox.code(&["check", "--pattern", "all", "fine.txt"]), 0);
    assert_eq!(sandbox.code(&["check", "--pattern", "tap-k", "ambiguous.txt"]), 2);
    assert_eq!(sandbox.code(&["check", "--pattern", "all", "lists.txt"]), 0);
    assert_eq!(sandbox.code(&["check", "--pattern", "tap-k", "--level", "rc", "fine.txt"]), 2);
    let json = sandbox.stdout(&["check", "--json", "--pattern", "TAP-g,TAP-b", "cycle.txt"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["patterns"][0]["name"], "AbortedRead");
    assert_eq!(json["patterns"][0]["occurs"], false);
    assert_eq!(json["patterns"][1]["occurs"], true);
    assert_eq!(json["patterns"][1]["anomalies"][0]["pattern"], "TAP-g");
}

#[test]
fn patterns_that_cannot_be_looked_for_are_refused() {
    let sandbox = Sandbox::new();
    let shown: Vec<_> = ["lost-update", "G1b", "rc", "abortedraed"]
        .iter()
        .map(|name| sandbox.transcript(&["check", "--pattern", name, "fine.txt"]))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn several_histories_end_in_a_table_of_anomalies() {
    let sandbox = Sandbox::new().file("again.txt", CYCLE).file("thin.txt", "session a\n T1: r x 1");
    let args = ["check", "--max-anomalies", "0", "cycle.txt", "again.txt", "thin.txt", "fine.txt"];
    insta::assert_snapshot!(sandbox.transcript(&args));
    let fine = sandbox.stdout(&["check", "fine.txt", "fine.txt"]);
    assert!(!fine.contains("In all"), "{fine}");
}

#[test]
fn without_session_order_sessions_prove_nothing() {
    let sandbox =
        Sandbox::new().file("session.txt", "initial 0\nsession alice\n  T1: r x 1\n  T2: w x 1\n");
    assert_eq!(sandbox.code(&["check", "session.txt"]), 1);
    assert_eq!(sandbox.code(&["check", "--no-session-order", "session.txt"]), 0);
}

#[test]
fn standard_input_is_a_history_called_dash() {
    let sandbox = Sandbox::new();
    let args = ["check", "--level", "pl-2", "-"];
    let output = sandbox.run_with_input(&args, CYCLE);
    insta::assert_snapshot!(transcript(&args, &output));
}

#[test]
fn colour_follows_the_flag_and_no_color() {
    let sandbox = Sandbox::new();
    let coloured = |args: &[&str]| sandbox.stdout(args).contains('\u{1b}');
    assert!(!coloured(&["check", "cycle.txt"]), "a pipe is no terminal");
    assert!(coloured(&["check", "--color", "always", "cycle.txt"]));
    assert!(!coloured(&["check", "--color", "never", "cycle.txt"]));
    let mut forced = sandbox.command(&["check", "cycle.txt"]);
    let forced = forced.env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(forced.stdout.contains(&0x1b));
    let mut plain = sandbox.command(&["check", "cycle.txt"]);
    let plain = plain.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert!(!plain.stdout.contains(&0x1b));
}

#[test]
fn a_closed_pipe_is_no_error_and_the_verdict_still_counts() {
    let sandbox = Sandbox::new();
    for (history, code) in [("cycle.txt", 1), ("fine.txt", 0)] {
        let mut command = sandbox.command(&["check", history]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{history}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    }
}

#[test]
fn warnings_are_said_unless_quiet_and_what_was_ignored_when_asked() {
    let sandbox = Sandbox::new().file(
        "h.edn",
        "{:process :nemesis, :type :info, :f :start, :value nil}\n\
         {:process 0, :type :invoke, :f :txn, :value [[:w :x 1]]}\n\
         {:process 0, :type :ok, :f :txn, :value [[:w :x 1]]}\n\
         {:process 1, :type :invoke, :f :txn, :value [[:w :x 1]]}\n\
         {:process 1, :type :ok, :f :txn, :value [[:w :x 1]]}\n",
    );
    let plain = sandbox.transcript(&["check", "--level", "rc", "h.edn"]);
    let quiet = sandbox.transcript(&["check", "-q", "--level", "rc", "h.edn"]);
    insta::assert_snapshot!(format!("{plain}\n{quiet}"));
    let verbose = sandbox.run(&["check", "-v", "--level", "rc", "h.edn"]);
    let (stdout, stderr) =
        (String::from_utf8(verbose.stdout).unwrap(), String::from_utf8(verbose.stderr).unwrap());
    assert!(stdout.contains("loaded in"), "{stdout}");
    assert!(stderr.contains("note: h.edn: ignored 1 "), "{stderr}");
}

#[test]
fn the_result_is_the_same_for_any_number_of_threads() {
    let sandbox = Sandbox::new();
    let one = sandbox.stdout(&["check", "--threads", "1", "cycle.txt"]);
    assert_eq!(one, sandbox.stdout(&["check", "--threads", "7", "cycle.txt"]));
}

/// Both clocks may be off, in opposite directions: a gap of twice the skew proves nothing.
#[test]
fn each_clock_may_be_off() {
    let sandbox = Sandbox::new().file(
        "stale.txt",
        "initial 0\nsession a\n  T1 [1000, 2000]: w x 1\nsession b\n  T2 [3000, 4000]: r x 0\n",
    );
    let code = |skew: &[&str]| {
        sandbox.code(&[&["check", "-q", "--level", "sser", "stale.txt"], skew].concat())
    };
    assert_eq!(code(&[]), 1);
    assert_eq!(code(&["--clock-skew", "499ns"]), 1);
    assert_eq!(code(&["--clock-skew", "500ns"]), 0);
    assert_eq!(code(&["--clock-skew", "0s"]), 1);
    assert_eq!(code(&["--clock-skew", "much"]), 2);
    // Five of what decides whether this read was stale.
    insta::assert_snapshot!(sandbox.transcript(&["check", "--clock-skew", "5", "stale.txt"]));
}

/// Every level holds of a history that shows nothing, and a test must not pass by that.
#[test]
fn nothing_to_check_is_an_error_unless_allowed() {
    let sandbox = Sandbox::new()
        .file("none.txt", "initial 0\nsession alice\n")
        .file("aborted.txt", "session alice\n  T1 aborted: w x 1\n  T2 unknown: w x 2\n")
        .file("unobserved.txt", "session alice\n  T1: r x ?\n");
    let histories = ["none.txt", "aborted.txt", "unobserved.txt"];
    insta::assert_snapshot!(sandbox.transcript(&[&["check"], &histories[..]].concat()));
    for history in histories {
        for more in [&["--level", "ser"][..], &["--pattern", "all"], &["--level", "all"], &[]] {
            let args = [&["check", "-q", history], more].concat();
            assert_eq!(sandbox.code(&args), 2, "{args:?}");
            let allowed = [&args[..], &["--allow-empty"]].concat();
            assert_eq!(sandbox.code(&allowed), 0, "{allowed:?}");
        }
    }
    let json: Value =
        serde_json::from_str(&sandbox.stdout(&["check", "--json", "none.txt"])).unwrap();
    assert!(json["error"].as_str().unwrap().contains("nothing to check"), "{json}");
}

#[test]
fn the_level_that_the_exit_code_follows_is_said() {
    let sandbox = Sandbox::new();
    let follows = "The exit code follows adya-read-committed";
    assert!(sandbox.stdout(&["check", "cycle.txt"]).contains(follows));
    assert!(!sandbox.stdout(&["check", "--level", "rc", "cycle.txt"]).contains("exit code"));
    let json: Value =
        serde_json::from_str(&sandbox.stdout(&["check", "--json", "fine.txt"])).unwrap();
    assert_eq!(json["exit_code_follows"], "adya-read-committed");
    let github = sandbox.stdout(&["check", "--output", "github", "fine.txt"]);
    assert!(github.contains("the step follows adya-read-committed"), "{github}");
}

#[test]
fn what_is_not_recognised_is_read_by_its_name_or_gets_the_list_of_formats() {
    let sandbox = Sandbox::new()
        .file("typo.txt", "sesion alice\n  T1: w x 1\n")
        .file("h.jsonl", "not json\n")
        .file("h.log", "nothing known\n");
    std::fs::write(sandbox.path("h.txt.xz"), b"\xfd7zXZ\0...").unwrap();
    std::fs::write(sandbox.path("h.bz2"), b"BZh91AY...").unwrap();
    let args = ["check", "typo.txt", "h.jsonl", "h.log", "h.txt.xz", "h.bz2"];
    insta::assert_snapshot!(sandbox.transcript(&args));
}
