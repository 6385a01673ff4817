//! `isolario convert`: from one format to another.

use crate::config::Convert;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::load::load;

pub(crate) fn run(config: &Convert, console: &mut Console) -> Result<Outcome, Failure> {
    let to = &config.to;
    to.refuse_existing()?;
    let history = load(&config.from, config.from_format, console)?.history;
    let written = to.write(|sink| history.replay(sink))?;
    if written.is_some() && !to.is_stdout() {
        let (count, name, format) = (history.txn_count(), to.path.display(), to.format.name());
        let txns = if count == 1 { "transaction" } else { "transactions" };
        console.info(&format!("wrote {count} {txns} to {name} ({format})"));
    }
    Ok(Outcome::Done)
}
