//! `isolario completions` and `isolario man`: what a package of the program has beside it.

use std::io;
use std::path::Path;

use clap_complete::Shell;
use clap_mangen::Man;

use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::outfile::write_whole;

pub(crate) fn completions(shell: Shell, console: &mut Console) -> Result<Outcome, Failure> {
    clap_complete::generate(shell, &mut crate::command(), "isolario", &mut console.out());
    Ok(Outcome::Done)
}

pub(crate) fn manual(dir: Option<&Path>, console: &mut Console) -> Result<Outcome, Failure> {
    match dir {
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(|error| {
                Failure::new(format!("cannot write the manual pages to {}: {error}", dir.display()))
                    .with_hint("--dir takes a directory")
            })?;
            for (name, page) in pages()? {
                write_whole(&dir.join(name), |out| out.write_all(&page))?;
            }
        }
        None => pages()?.iter().try_for_each(|(_, page)| console.out().write_all(page))?,
    }
    Ok(Outcome::Done)
}

/// The pages of the program and of each command, with the names of their files.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut program = crate::command();
    program.build();
    let mut pages = Vec::new();
    let mut waiting = vec![&program];
    while let Some(command) = waiting.pop() {
        let man = Man::new(command.clone());
        let mut page = Vec::new();
        man.render(&mut page)?;
        pages.push((man.get_filename(), page));
        let first = waiting.len();
        waiting.extend(command.get_subcommands());
        waiting[first..].reverse();
    }
    Ok(pages)
}
