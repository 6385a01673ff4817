//! `isolario explain`: what a level or an anomaly means.

use isolario::report::Json;
use isolario::report::explain::Topic;

use crate::args::OutputForm;
use crate::config::Explain;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;

pub(crate) fn run(
    explain: &Explain,
    output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let human = console.human();
    let out = console.out();
    match (output, explain) {
        (OutputForm::Human, Explain::Everything) => human.explain_all(out)?,
        (OutputForm::Human, Explain::One(topic)) => human.explain(*topic, out)?,
        (OutputForm::Human, Explain::Several { name, topics }) => {
            writeln!(out, "{name} may mean one of these; ask for it by its name here:\n")?;
            human.candidates(topics.iter().copied(), out)?;
        }
        (OutputForm::Json, Explain::Everything) => Json.topics(Topic::all(), out)?,
        (OutputForm::Json, Explain::One(topic)) => Json.explain(*topic, out)?,
        (OutputForm::Json, Explain::Several { topics, .. }) => {
            Json.topics(topics.iter().copied(), out)?;
        }
    }
    Ok(Outcome::Done)
}
