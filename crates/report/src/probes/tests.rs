//! What a person sees of a table of probes.

use super::*;
use crate::human::Style;

fn table() -> ProbeTable {
    let setting = |isolation: &str, claims: &[Level], in_effect: &[Level]| ProbeSetting {
        isolation: isolation.into(),
        claims: claims.to_vec(),
        claim_source: "says <its> manual".into(),
        in_effect: in_effect.to_vec(),
        moving: None,
    };
    let line = |session: usize, words: &str, is_surprise: bool| TranscriptLine {
        session,
        text: words.into(),
        is_surprise,
    };
    let transcript = Transcript {
        sessions: vec!["T1".into(), "T2".into()],
        lines: vec![
            line(0, "write x 1", false),
            line(1, "write x 2 … waits", false),
            line(0, "commit", false),
            line(
                1,
                "… write x 2 → fails: could not serialize access due to a concurrent update (40001)",
                true,
            ),
        ],
    };
    let result = |outcome: ProbeOutcome, is_forbidden: bool| ProbeResult {
        outcome,
        is_forbidden,
        transcript: transcript.clone(),
        ..ProbeResult::default()
    };
    let aborts = ProbeOutcome::Aborts { code: Some("40001".into()) };
    ProbeTable {
        database: "Acme <SQL> 1.0".into(),
        urls: vec!["acme://host/db".into()],
        settings: vec![
            setting("read-committed", &[Level::ReadCommitted], &[Level::ReadCommitted]),
            setting("serializable", &[Level::Serializable], &[]),
        ],
        probes: vec![
            Probe {
                name: "lost-update".into(),
                title: "P4 lost update".into(),
                about: "Both read & write x.".into(),
                anomaly: Some(AnomalyKind::LostUpdate),
                forbidden_by: vec![Level::ConsistentView],
                results: vec![result(ProbeOutcome::Waits, false), result(aborts, true)],
            },
            Probe {
                name: "write-skew".into(),
                title: "G2-item write skew".into(),
                anomaly: Some(AnomalyKind::WriteSkew),
                results: vec![
                    result(ProbeOutcome::NotRun { why: "interrupted".into() }, false),
                    result(ProbeOutcome::Happens, true),
                ],
                ..Probe::default()
            },
        ],
    }
}

fn written(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_table_for_a_terminal() {
    insta::assert_snapshot!(written(|out| table().write_text(Style::Plain, out)));
}

#[test]
fn sessions_that_move_have_a_table_of_their_own() {
    let mut table = table();
    let moving = MovingSessions { claims: Vec::new(), in_effect: vec![Level::ReadUncommitted] };
    table.settings[0].moving = Some(moving);
    let text = written(|out| table.write_text(Style::Plain, out));
    let last = text.split("\n\n").last().unwrap();
    assert_eq!(
        last,
        "  sessions that move between nodes  claims  no probe rules out\n  \
         read-committed                    -       read-uncommitted\n"
    );
}

#[test]
fn a_transcript_has_a_column_per_session() {
    let transcript = &table().probes[0].results[1].transcript;
    insta::assert_snapshot!(written(|out| transcript.write(Style::Plain, 60, out)));
}

#[test]
fn a_broken_claim_is_said_in_words() {
    let words = table().broken_claims();
    assert_eq!(words, ["G2-item write skew can happen at serializable, which claims serializable"]);
}

#[cfg(feature = "json")]
#[test]
fn the_table_for_programs() {
    let text = written(|out| table().write_json(out));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "isolario.probe/1");
    assert_eq!(json["settings"][0]["claims"][0], "read-committed");
    let cells = &json["probes"][0]["results"];
    assert_eq!((&cells[0]["outcome"], &cells[1]["outcome"]), (&"waits".into(), &"aborts".into()));
    assert_eq!(
        (&cells[1]["code"], &cells[1]["forbidden_by_claim"]),
        (&"40001".into(), &true.into())
    );
    assert_eq!(cells[1]["transcript"][1]["session"], "T2");
    assert_eq!(json["probes"][1]["results"][0]["why"], "interrupted");
}

#[cfg(feature = "html")]
#[test]
fn names_cannot_break_out_of_the_page() {
    let page = written(|out| table().write_html(out));
    assert!(page.contains("Acme &lt;SQL&gt; 1.0") && !page.contains("<SQL>"));
    assert!(page.contains("says &lt;its&gt; manual"));
    assert!(page.contains("class=\"happens broken\""));
    assert!(!page.contains("<script"));
}
