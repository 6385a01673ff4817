//! `isolario show`: one transaction, key or session of a history.

use isolario::model::History;
use isolario::report::{Json, Subject};

use crate::args::OutputForm;
use crate::config::Show;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::load::load;
use crate::suggest::closest;

/// To compare with more names would take longer than to look oneself.
const MOST_COMPARED: usize = 200_000;

pub(crate) fn run(
    config: &Show,
    output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let name = config.history.display().to_string();
    let history = load(&config.history, config.format, console)?.history;
    let subjects = find(&history, &config.name, &name)?;
    let human = console.human();
    let out = console.out();
    for (at, subject) in subjects.into_iter().enumerate() {
        match output {
            OutputForm::Json => Json.show(&name, &history, subject, out)?,
            OutputForm::Human => {
                if at > 0 {
                    writeln!(out)?;
                }
                human.show(&history, subject, out)?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// What a name means: one thing, or several of one kind, such as transactions that share a name.
fn find(history: &History, typed: &str, file: &str) -> Result<Vec<Subject>, Failure> {
    let found = Subject::find(history, typed);
    let Some(first) = found.first() else {
        let failure = Failure::new(format!("{file} has no transaction, key or session `{typed}`"));
        return Err(failure.with_hint(suggestion(history, typed)));
    };
    if found.iter().any(|other| other.kind_name() != first.kind_name()) {
        let mut meanings: Vec<String> =
            found.iter().map(|subject| format!("`{} {typed}`", subject.kind_name())).collect();
        meanings.dedup();
        return Err(Failure::new(format!("`{typed}` is ambiguous"))
            .with_hint(format!("use one of: {}", meanings.join(", "))));
    }
    Ok(found)
}

fn suggestion(history: &History, typed: &str) -> String {
    let names: Vec<String> =
        Subject::all(history).take(MOST_COMPARED).map(|subject| subject.name(history)).collect();
    match closest(typed, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            "use a name from a report or from the file; `isolario stats` lists the busiest keys"
                .to_owned()
        }
    }
}
