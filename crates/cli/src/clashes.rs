//! Whether the files of a command are all different: asked before anything is read.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::outfile::{Place, refuse_impossible};

/// The files of a command.
#[derive(Default)]
pub(crate) struct Files<'a> {
    inputs: Vec<&'a Path>,
    outputs: Vec<(&'static str, &'a Path)>,
}

impl<'a> Files<'a> {
    pub(crate) fn reading(inputs: impl IntoIterator<Item = &'a Path>) -> Files<'a> {
        Files { inputs: inputs.into_iter().collect(), outputs: Vec::new() }
    }

    /// Adds an output, if there is one, by the flag that names it.
    #[must_use]
    pub(crate) fn writing(mut self, flag: &'static str, output: Option<&'a PathBuf>) -> Files<'a> {
        self.outputs.extend(output.map(|path| (flag, path.as_path())));
        self
    }

    /// Refuses outputs that cannot be written, that are an input or another output by any name, or
    /// that lie in a directory that is read.
    pub(crate) fn refuse_clashes(&self) -> Result<(), Failure> {
        let inputs: Vec<(&Path, Identity)> = self
            .inputs
            .iter()
            .filter_map(|path| Some((*path, Identity::of_input(path)?)))
            .collect();
        let mut outputs: Vec<(String, Identity)> = standard_streams();
        for (name, stream) in &outputs {
            if let Some((input, _)) = inputs.iter().find(|(_, identity)| identity == stream) {
                let message = format!("{name} goes to {}, which is an input", input.display());
                return Err(Failure::new(message).with_hint("redirect it to another file"));
            }
        }
        for (flag, path) in &self.outputs {
            refuse_dash(flag, path)?;
            refuse_impossible(path)?;
            let Ok(place) = Place::of(path) else { continue };
            let name = format!("{flag} {}", path.display());
            if let Some(directory) = inputs.iter().find(|(input, _)| holds(input, &place)) {
                return Err(inside(&name, directory.0));
            }
            let Some(identity) = Identity::of_output(&place) else { continue };
            if let Some((input, _)) = inputs.iter().find(|(_, input)| *input == identity) {
                let message =
                    format!("{name} is the same file as {}, which is an input", input.display());
                return Err(Failure::new(message).with_hint("choose another name for the output"));
            }
            if let Some((other, _)) = outputs.iter().find(|(_, other)| *other == identity) {
                let message = format!("{other} and {name} go to the same file");
                return Err(Failure::new(message).with_hint("give each of them a file of its own"));
            }
            outputs.push((name, identity));
        }
        Ok(())
    }
}

/// Elsewhere, `-` is standard output. There, the result is already: a report in its midst would be
/// neither.
fn refuse_dash(flag: &str, path: &Path) -> Result<(), Failure> {
    if path.as_os_str() != "-" {
        return Ok(());
    }
    let hint = match flag {
        "--junit" => "use --output junit for standard output; ./- is a file with the name -",
        _ => {
            "name a file: /dev/stdout is standard output after the result, and ./- a file with the name -"
        }
    };
    Err(Failure::new(format!("{flag} takes a file, since standard output is for the result"))
        .with_hint(hint))
}

fn inside(name: &str, directory: &Path) -> Failure {
    let directory = directory.display();
    Failure::new(format!(
        "{name} is in {directory}, and every file in that directory is read as history"
    ))
    .with_hint("choose a file in another directory")
}

/// Whether a directory that is read holds the place of an output.
fn holds(input: &Path, place: &Place) -> bool {
    let Place::File { target, .. } = place else { return false };
    input.is_dir() && input.canonicalize().is_ok_and(|input| target.starts_with(input))
}

/// What makes two names the same file.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// A file that is there, whatever it is called.
    #[cfg(unix)]
    There { device: u64, node: u64 },
    /// The place of a file.
    At(PathBuf),
}

impl Identity {
    fn of_input(path: &Path) -> Option<Identity> {
        if path.as_os_str() == "-" {
            return of_descriptor(&std::io::stdin());
        }
        let found = path.metadata().ok().filter(|found| !is_device(found))?;
        Some(Identity::of_file(&found, || path.canonicalize().unwrap_or_else(|_| path.to_owned())))
    }

    /// Devices take whatever comes, and the standard streams as well where they are named as such.
    fn of_output(place: &Place) -> Option<Identity> {
        match place {
            Place::File { target, there: None } => Some(Identity::At(target.clone())),
            Place::File { target: path, .. } | Place::Stream(path) => {
                let found = path.metadata().ok().filter(|found| !is_device(found))?;
                Some(Identity::of_file(&found, || path.clone()))
            }
            Place::Stdout | Place::Stderr | Place::Directory => None,
        }
    }

    #[cfg(unix)]
    fn of_file(found: &Metadata, _path: impl FnOnce() -> PathBuf) -> Identity {
        use std::os::unix::fs::MetadataExt;
        Identity::There { device: found.dev(), node: found.ino() }
    }

    #[cfg(not(unix))]
    fn of_file(_found: &Metadata, path: impl FnOnce() -> PathBuf) -> Identity {
        Identity::At(path())
    }
}

#[cfg(unix)]
fn is_device(found: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_char_device(&found.file_type())
}

#[cfg(not(unix))]
fn is_device(_: &Metadata) -> bool {
    false
}

/// The standard streams that go to regular files. Both may go to one: that is a matter of the shell.
fn standard_streams() -> Vec<(String, Identity)> {
    let streams = [
        ("standard output", of_descriptor(&std::io::stdout())),
        ("standard error", of_descriptor(&std::io::stderr())),
    ];
    streams.into_iter().filter_map(|(name, stream)| Some((name.to_owned(), stream?))).collect()
}

/// The regular file behind a descriptor.
#[cfg(unix)]
fn of_descriptor(stream: &impl std::os::fd::AsFd) -> Option<Identity> {
    let file = stream.as_fd().try_clone_to_owned().ok().map(std::fs::File::from)?;
    let found = file.metadata().ok().filter(Metadata::is_file)?;
    Some(Identity::of_file(&found, PathBuf::new))
}

#[cfg(not(unix))]
fn of_descriptor<S>(_: &S) -> Option<Identity> {
    None
}
