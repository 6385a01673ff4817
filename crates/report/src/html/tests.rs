//! The page as text; what it does is tested in a browser.

use isolario_model::{
    Anomaly, AnomalyKind, Attempt, Evidence, Findings, History, Level, LevelResult, OpId,
    RunVerdict, Verdict, VerdictKind, WhiteboxRecord,
};

use super::*;
use crate::finding::Finding;
use crate::testing::{History as Builder, r, text};

fn page(report: &Report<'_>, run: Option<&RunRecord>) -> String {
    let mut out = Vec::new();
    write(report, run, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn bad_reads(kinds: &[AnomalyKind]) -> Vec<LevelResult> {
    let anomaly = |(at, kind): (usize, &AnomalyKind)| {
        Anomaly::new(*kind, Evidence::Read { read: OpId::at(at), saw: None, instead: None })
    };
    let anomalies: Vec<Anomaly> = kinds.iter().enumerate().map(anomaly).collect();
    let findings = Findings::new(anomalies, true);
    let verdict = Verdict::Violated(findings);
    vec![LevelResult { level: Level::ReadCommitted, decided_by: Attempt::Rule, verdict }]
}

fn reads(count: i64) -> History {
    let ops: Vec<_> = (0..count).map(|value| r("x", value)).collect();
    Builder::new().txn(&ops).build()
}

#[test]
fn names_and_values_never_become_markup() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'";
    let history = Builder::new().named(text(evil), &[r(evil, 1)]).build();
    let results = bad_reads(&[AnomalyKind::ThinAirRead]);
    let run =
        RunRecord { replay: evil.to_owned(), isolation: evil.to_owned(), ..RunRecord::default() };
    let page = page(&Report::new(evil, &history, &results), Some(&run));
    assert!(!page.contains("<script>alert") && !page.contains("<img"), "{page}");
    // One script of our own; the others are data.
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
    assert_eq!(page.matches("<script type=\"module\">").count(), 1);
}

#[test]
fn a_report_without_answers_says_so() {
    let history = Builder::new().build();
    let page = page(&Report::new("h", &history, &[]), None);
    assert!(page.contains("No level was decided.") && page.contains("<p>None.</p>"));
}

#[test]
fn answers_by_the_database_s_own_word_stand_beside_the_others() {
    let history = Builder::new().build();
    let answer = |verdict, anomalies: &[AnomalyKind]| {
        vec![RunVerdict { level: Level::Serializable, verdict, anomalies: anomalies.to_vec() }]
    };
    let own = WhiteboxRecord {
        by_versions: answer(VerdictKind::Violated, &[AnomalyKind::WriteSkew]),
        versions: Some(12),
        predicates: 7,
        version_sets: 6,
        settled: 1,
        ..WhiteboxRecord::default()
    };
    let run = |whitebox| RunRecord {
        verdicts: answer(VerdictKind::Satisfied, &[]),
        whitebox: Some(whitebox),
        ..RunRecord::default()
    };
    let told = page(&Report::new("h", &history, &[]), Some(&run(own.clone())));
    for part in [
        "By what clients saw</th>\n<th scope=\"col\">By the order of versions in its log</th>\n</tr>",
        "</span> satisfied</td>\n<td class=\"violated\">",
        "violated: WriteSkew</td>",
        "The log has 12 versions of rows, and tells which versions 6 of 7 operations by predicate met. \
         It shows that 1 transaction of unknown outcome committed.",
        "in <code>version-order.html</code>, with proofs",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let own = WhiteboxRecord { not_as_promised: vec![Level::Serializable], ..own };
    let told = page(&Report::new("h", &history, &[]), Some(&run(own.clone())));
    let words = "serializable: satisfied, but not by the order that the database promises.";
    assert!(told.contains(words));
    let own = WhiteboxRecord { failure: Some("<wal_level>".to_owned()), ..own };
    let told = page(&Report::new("h", &history, &[]), Some(&run(own)));
    assert!(told.contains("No answer rests on it: &lt;wal_level&gt;."), "{told}");
}

#[test]
fn many_of_one_kind_do_not_hide_the_others() {
    use AnomalyKind::{AbortedRead, FutureRead, ThinAirRead};
    let (history, results) =
        (reads(5), bad_reads(&[ThinAirRead, ThinAirRead, ThinAirRead, AbortedRead, FutureRead]));
    let report = Report::new("h", &history, &results).with_max_anomalies(3);
    let chosen = Chosen::of(&report);
    let kinds = |of: &[Finding<'_>]| of.iter().map(Finding::kind).collect::<Vec<_>>();
    assert_eq!(kinds(chosen.full()), [ThinAirRead, AbortedRead, FutureRead]);
    let page = page(&report, None);
    assert_eq!(page.matches("<article ").count(), 3);
    assert!(page.contains("In short: 2 more anomalies"));
}
