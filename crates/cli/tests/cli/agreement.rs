//! One meaning in every form: for a claim that was kept, one that was broken, lost commits, and all levels,
//! text, JSON, JUnit, GitHub, Markdown, HTML and the exit code tell the same verdict, the same first
//! finding and the same counts; through `run`, through `check` of a history and of a run directory.

use std::net::TcpListener;

use isolario::model::AnomalyKind;
use serde_json::Value;

use crate::sandbox::Sandbox;

/// What a report tells.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    is_violated: bool,
    /// The first finding, by name.
    first: Option<String>,
    total: u64,
}

/// How a history is reported: the command without its output flags, and what its outputs are expected to
/// tell.
struct Reported<'s> {
    sandbox: &'s Sandbox,
    command: Vec<&'s str>,
    expected: Told,
}

impl Reported<'_> {
    fn output(&self, more: &[&str]) -> String {
        let output = self.sandbox.run(&[&self.command[..], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let code = output.status.code().unwrap();
        assert_eq!(
            code,
            i32::from(self.expected.is_violated),
            "{:?} {more:?}: {text}",
            self.command
        );
        text
    }

    /// Compares all forms of a `check`.
    fn assert_alike(&self) {
        assert_eq!(of_json(&self.output(&["--json"])), self.expected, "{:?}", self.command);
        self.assert_ci(&self.output(&["--output", "junit"]), &self.output(&["--output", "github"]));
        assert_eq!(first_of_text(&self.output(&[])), self.expected.first, "{:?}", self.command);
        self.output(&["--report", "r.html", "--bug-report", "b.md", "-q"]);
        self.assert_documents(&self.sandbox.read("r.html"), &self.sandbox.read("b.md"));
    }

    fn assert_ci(&self, junit: &str, github: &str) {
        let Told { is_violated, first, total } = &self.expected;
        let failed = !junit.contains("failures=\"0\"") || !junit.contains("errors=\"0\"");
        assert_eq!(failed, *is_violated, "{junit}");
        let kind = between(junit, "<failure type=\"", "\"");
        assert_eq!(kind, first.as_deref().filter(|_| *is_violated), "{junit}");
        assert_eq!(github.contains("::error"), *is_violated, "{github}");
        let named = between(github, "title=", "::").and_then(|title| between(title, "(", ")"));
        assert_eq!(named, first.as_deref(), "{github}");
        // At most ten are shown, and the rest is counted.
        let is_finding = |line: &&str| line.contains(" (") && !line.contains("title=Isolario");
        let shown = github.lines().filter(is_finding).count() as u64;
        let hidden = between(github, "title=Isolario::", " more anomal").map_or(0, number);
        assert_eq!(shown + hidden, *total, "{github}");
    }

    fn assert_documents(&self, html: &str, markdown: &str) {
        let Told { is_violated, first, total } = &self.expected;
        let class = between(html, "<h1 class=\"", "\"").unwrap();
        assert_eq!(class == "violated", *is_violated, "{class}");
        let banner = between(html, "<p class=\"verdict ", "\"").unwrap();
        assert_eq!(banner == "violated", *is_violated, "{banner}");
        let link = between(html, "<a href=\"#anomalies\">Anomalies (", ")").unwrap();
        assert_eq!(number(link), *total);
        let article = html.split("<article class=\"anomaly\"").nth(1);
        let kind = article.and_then(|article| between(article, "data-kind=\"", "\""));
        assert_eq!(kind, first.as_deref());
        let count = between(markdown, "There are ", " anomal");
        let count = count.or_else(|| between(markdown, "There is ", " anomal")).unwrap();
        assert_eq!(number(count.trim_start_matches("at least ")), *total, "{markdown}");
        let card = markdown.lines().filter_map(|line| line.strip_prefix("### "));
        let mut cards = card.filter(|title| AnomalyKind::find(kind_of(title)).is_some());
        assert_eq!(cards.next().map(kind_of), first.as_deref(), "{markdown}");
    }
}

/// `Lost update (LostUpdate): …` is about a `LostUpdate`; titles have no name of their own, the line
/// below has it. So this maps a title to its kind.
fn kind_of(title: &str) -> &str {
    let title = title.split(" on ").next().unwrap_or(title);
    let all = AnomalyKind::all().chain([AnomalyKind::LostCommit]);
    let mut kinds: Vec<AnomalyKind> = all.filter(|kind| title.starts_with(kind.title())).collect();
    kinds.sort_by_key(|kind| kind.title().len());
    kinds.last().map_or("", |kind| kind.name())
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.split_once(before)?.1.split_once(after).map(|(found, _)| found)
}

fn number(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap()
}

/// What the JSON of a verdict tells: by the claim where that is the question, else by its levels.
fn of_json(text: &str) -> Told {
    let json: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let is =
        |results: &Value| results.as_array().unwrap().iter().any(|r| r["verdict"] == "violated");
    let is_violated = match json["claim"]["judgement"].as_str() {
        Some(judgement) => judgement == "violated",
        None => is(&json["results"]) || json["lost_commits"]["total"].as_u64() > Some(0),
    };
    let findings = &json["findings"];
    let first = findings["groups"][0]["name"].as_str().map(str::to_owned);
    Told { is_violated, first, total: findings["total"].as_u64().unwrap() }
}

/// The names of a finding stand below its title.
fn first_of_text(text: &str) -> Option<String> {
    let is_name = |name: &&str| AnomalyKind::find(name).is_some();
    let names = text.lines().filter_map(|line| line.strip_prefix("  ")?.split([',', ';']).next());
    names.filter(is_name).find(|name| !name.is_empty()).map(str::to_owned)
}

fn told(is_violated: bool, first: Option<&str>, total: u64) -> Told {
    Told { is_violated, first: first.map(str::to_owned), total }
}

/// Two transactions overwrite what both have read; the third one came before.
const LOST_UPDATE: &str = "\
initial nil
session 0
  _ [1000000, 4000000]: r 3 nil, w 3 11
session 1
  _ [21000000, 26000000]: r 3 11, w 3 12
session 2
  _ [22000000, 27500000]: r 3 11, w 3 14
";

/// The server was down from 10 to 20 ms. What the first transaction wrote is gone after that.
const LOST_COMMITS: &str = "\
initial nil
session 0
  _ [1000000, 2000000]: r 3 nil, w 3 11
session 1
  _ [3000000, 4000000]: r 3 11, w 3 12
session 2
  _ [21000000, 22000000]: r 3 nil
";

/// The directory of a run, recorded by hand.
fn run_directory(sandbox: Sandbox, name: &str, history: &str, more: &str) -> Sandbox {
    let record = format!(
        r#"{{"schema": "isolario.run/1", "database": "postgres", "database_version": "PostgreSQL 15.4",
        "isolation": "default", "workload": {{"kind": "mini"}}, "counts": {{"committed": 3}}, {more}}}"#
    );
    std::fs::create_dir(sandbox.path(name)).unwrap();
    sandbox.file(&format!("{name}/run.json"), &record).file(&format!("{name}/history.iso"), history)
}

#[test]
fn a_run_directory_says_in_every_form_what_the_run_said() {
    let rc = r#""claim": ["read-committed"]"#;
    let down = format!(r#"{rc}, "outages": [[10000000, 20000000]], "durability": "fsync=off""#);
    let all = format!(r#"{rc}, "asked_all": true"#);
    let si = r#""claim": ["snapshot-isolation"]"#;
    let si_all = format!(r#"{si}, "asked_all": true"#);
    let ser = r#""claim": ["read-committed"], "asked": ["snapshot-isolation"]"#;
    for (name, history, record, expected) in [
        ("kept", LOST_UPDATE, rc, told(false, None, 0)),
        ("kept-all", LOST_UPDATE, &all, told(false, Some("LostUpdate"), 1)),
        ("broken", LOST_UPDATE, si, told(true, Some("LostUpdate"), 1)),
        ("broken-all", LOST_UPDATE, &si_all, told(true, Some("LostUpdate"), 1)),
        ("asked", LOST_UPDATE, ser, told(true, Some("LostUpdate"), 1)),
        ("lost", LOST_COMMITS, &down, told(true, Some("LostCommit"), 2)),
    ] {
        let sandbox = run_directory(Sandbox::new(), name, history, record);
        Reported { sandbox: &sandbox, command: vec!["check", name], expected }.assert_alike();
    }
    // The same histories outside, where the level is named.
    let sandbox = Sandbox::new().file("h.txt", LOST_UPDATE);
    for (level, expected) in [
        ("rc", told(false, None, 0)),
        ("si", told(true, Some("LostUpdate"), 1)),
        ("all", told(true, Some("LostUpdate"), 1)),
    ] {
        let command = vec!["check", "--level", level, "h.txt"];
        Reported { sandbox: &sandbox, command, expected }.assert_alike();
    }
}

/// Compares what a run says, in one form, with what it left in its directory.
fn run_as(sandbox: &Sandbox, out: &str, form: &str, run: &[&str]) -> Told {
    let output = sandbox.run(&[run, &["--output", form, "--out", out]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let code = output.status.code().unwrap();
    assert!(code < 2, "{run:?}: {text} {}", String::from_utf8_lossy(&output.stderr));
    let told = of_json(&sandbox.read(&format!("{out}/verdict.json")));
    assert_eq!(code == 1, told.is_violated, "{run:?}: {text}");
    let command = vec!["check", out];
    let reported = Reported { sandbox, command, expected: told.clone() };
    match form {
        "junit" => assert_eq!(!text.contains("failures=\"0\""), told.is_violated, "{text}"),
        "github" => assert_eq!(text.contains("::error"), told.is_violated, "{text}"),
        "json" => {
            let run: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(run["judgement"] == "violated", told.is_violated, "{text}");
            assert_eq!(run["findings"]["total"], told.total, "{text}");
        }
        _ => {
            assert_eq!(first_of_text(&text), told.first, "{text}");
            let last = text.lines().last().unwrap();
            let accuses = [" broke its promise", " lost ", " did not give"];
            let accuses = accuses.iter().any(|words| last.contains(words));
            assert_eq!(accuses, told.is_violated, "{last}");
        }
    }
    let html = sandbox.read(&format!("{out}/report.html"));
    let class = between(&html, "<h1 class=\"", "\"").unwrap();
    assert_eq!(class == "violated", told.is_violated, "{class}");
    assert_eq!(sandbox.path(&format!("{out}/bug-report.md")).exists(), told.is_violated);
    reported.assert_alike();
    told
}

const FORMS: [&str; 4] = ["human", "json", "junit", "github"];

/// A run of a store that keeps, or breaks, what it claims.
fn assert_run(url: &str, more: &[&str], is_right: impl Fn(&Told) -> bool) {
    let sandbox = Sandbox::new();
    for form in FORMS {
        // Threads take turns as they like, so that it may take more than one run.
        let told = (1..=20).map(|seed: u32| {
            let (out, seed, txns) =
                (format!("{form}-{seed}"), seed.to_string(), (600 * seed).to_string());
            let run = ["run", "--db", url, "--keys", "3", "--txns", &txns, "--seed", &seed];
            run_as(&sandbox, &out, form, &[&run[..], more].concat())
        });
        assert!({ told }.any(|told| is_right(&told)), "{url} {more:?} {form}");
    }
}

#[test]
fn a_run_that_keeps_its_claim_is_right_in_every_form() {
    assert_run("sim:ser", &[], |told| !told.is_violated && told.total == 0);
}

#[test]
fn a_run_that_breaks_its_claim_is_wrong_in_every_form() {
    assert_run("sim:ser?anomaly=LostUpdate", &[], |told| told.is_violated && told.total > 0);
}

#[test]
fn a_run_follows_its_claim_where_all_levels_are_decided() {
    assert_run("sim:rc", &["--check", "all"], |told| !told.is_violated && told.total > 0);
}

#[test]
fn lost_commits_are_the_first_finding_in_every_form() {
    let sandbox = Sandbox::new();
    for form in FORMS {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::fs::create_dir(sandbox.path(&format!("data-{form}"))).unwrap();
        let server = format!(
            "redis-server --bind 127.0.0.1 --port {port} --dir data-{form} --save '' --appendonly no"
        );
        let url = format!("redis://127.0.0.1:{port}");
        let base = ["run", "--db", &url, "--check", "read-committed", "--fault", "kill"];
        let shape = ["--server", &server, "--txns", "500", "--sessions", "4", "--keys", "10"];
        let told = run_as(&sandbox, form, form, &[&base[..], &shape].concat());
        assert_eq!(told.first.as_deref(), Some("LostCommit"));
        assert!(told.is_violated && told.total > 0);
        let json: Value =
            serde_json::from_str(&sandbox.read(&format!("{form}/verdict.json"))).unwrap();
        assert_eq!(json["lost_commits"]["durability"], "appendonly=no, appendfsync=everysec");
    }
}

/// Some transactions show several patterns: the table over all histories counts each of them.
#[test]
fn a_table_of_several_histories_counts_what_occurs() {
    let mut sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("all")).unwrap();
    for seed in 1..=20 {
        let (seed, file) = (seed.to_string(), format!("all/{seed}.txt"));
        let shape =
            ["--txns", "30", "--sessions", "4", "--keys", "6", "--seed", &seed, "-o", &file];
        let history = ["gen", "history", "--workload", "general", "--level", "rc", "-q"];
        assert_eq!(sandbox.code(&[&history[..], &shape].concat()), 0);
    }
    sandbox = sandbox.file("all/fine.txt", crate::sandbox::FINE);
    let text = sandbox.stdout(&["check", "--pattern", "all", "--json", "all"]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, histories) = lines.split_last().unwrap();
    let of_history = |history: &Value| history["patterns"].as_array().unwrap().clone();
    let occurs = |name: &Value| {
        let occurs = |of: &&Value| {
            of_history(of).iter().any(|one| one["name"] == *name && one["occurs"] == true)
        };
        histories.iter().filter(occurs).count() as u64
    };
    let mut several = 0;
    for anomaly in summary["anomalies"].as_array().unwrap() {
        assert_eq!(anomaly["histories"], occurs(&anomaly["name"]), "{anomaly}");
        several += u64::from(occurs(&anomaly["name"]) > 10);
    }
    assert!(several >= 3, "{summary}");
}
