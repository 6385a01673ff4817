//! A play in words: who did what when.

use crate::script::{Script, ScriptEvent, ScriptRun, StepResult};
use isolario_report::{Transcript, TranscriptLine};

pub(super) fn of(script: &Script, play: &ScriptRun) -> Transcript {
    let surprises: Vec<usize> = play.surprises(script).collect();
    let mut lines = Vec::new();
    for (at, event) in play.events.iter().enumerate() {
        let next = play.events.get(at + 1);
        let (step, words) = match *event {
            // Its answer, or that it waits, says so, too.
            ScriptEvent::Sent(step)
                if next == Some(&ScriptEvent::Answered(step))
                    || next == Some(&ScriptEvent::Waits(step)) =>
            {
                continue;
            }
            ScriptEvent::Sent(step) => (step, format!("{} …", words(script, step))),
            ScriptEvent::Waits(step) => (step, format!("{} … waits", words(script, step))),
            ScriptEvent::Answered(step) => {
                let is_late = at == 0 || play.events[at - 1] != ScriptEvent::Sent(step);
                let lead = if is_late { "… " } else { "" };
                let came = came(script, step, &play.turns[step], surprises.contains(&step));
                (step, format!("{lead}{}{came}", words(script, step)))
            }
        };
        let is_surprise = matches!(event, ScriptEvent::Answered(step) if surprises.contains(step));
        lines.push(TranscriptLine {
            session: script.steps[step].session,
            text: words,
            is_surprise,
        });
    }
    Transcript { sessions: script.sessions.clone(), lines }
}

fn words(script: &Script, step: usize) -> String {
    script.action_text(&script.steps[step].action)
}

/// What came of a step, and what should have.
fn came(script: &Script, step: usize, turn: &StepResult, is_surprise: bool) -> String {
    let came = match &turn.result {
        Some(Ok(reply)) => reply.to_string(),
        Some(Err(error)) => format!("fails: {error}"),
        None => String::new(),
    };
    let arrow = if came.is_empty() { "" } else { " → " };
    let expected = &script.steps[step].expected;
    match is_surprise && !expected.is_silent() {
        true => format!("{arrow}{came} (as written: {expected})"),
        false => format!("{arrow}{came}"),
    }
}
