//! `isolario stats`: the figures of a history.

use isolario::model::Stats as Figures;
use isolario::report::{Json, StatsReport};

use crate::args::OutputForm;
use crate::config::Stats;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::load::{load, report_remarks};

pub(crate) fn run(
    config: &Stats,
    output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let name = config.history.display().to_string();
    let history = load(&config.history, config.format, console)?.history;
    let remarks = history.validate();
    if let Some(contradiction) = report_remarks(&name, &history, &remarks, console) {
        // Figures can be taken all the same.
        console.warning(&contradiction.message);
    }
    let figures = Figures::of(&history);
    let report = StatsReport::new(&name, &history, &figures, &remarks);
    match output {
        OutputForm::Human => console.human().stats(&report, console.out())?,
        OutputForm::Json => Json.stats(&report, console.out())?,
    }
    Ok(Outcome::Done)
}
