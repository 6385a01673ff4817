//! `isolario man`: the manual pages.

use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Args;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;

pub(crate) fn run(dir: Option<&Path>, console: &mut Console) -> Result<Outcome, Failure> {
    for (name, page) in pages()? {
        match dir {
            None => console.out().write_all(&page)?,
            Some(dir) => {
                let path = dir.join(name);
                std::fs::write(&path, page).map_err(|error| {
                    Failure::new(format!("{}: cannot write: {error}", path.display()))
                        .with_hint("--dir takes a directory that is there")
                })?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// The pages of the program and of each command, with the names of their files.
fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut program = Args::command();
    program.build();
    std::iter::once(&program)
        .chain(program.get_subcommands())
        .map(|command| {
            let man = Man::new(command.clone());
            let mut page = Vec::new();
            man.render(&mut page)?;
            Ok((man.get_filename(), page))
        })
        .collect()
}
