//! Where the programs of a server are.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::ServerError;

/// Places that hold servers but are not in everybody's search path.
const BEYOND_PATH: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Debian keeps each version of PostgreSQL in a directory of its own.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// Finds a program of a Debian package.
pub(crate) fn find(program: &str, package: &'static str) -> Result<PathBuf, ServerError> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(BEYOND_PATH.map(PathBuf::from))
        .chain(postgres_directories(Path::new(POSTGRES_VERSIONS)))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| ServerError::Missing { program: program.to_owned(), package })
}

/// The first of these files that exists: a library is elsewhere on every architecture.
pub(crate) fn find_library(
    name: &str,
    directories: &[&str],
    package: &'static str,
) -> Result<PathBuf, ServerError> {
    directories
        .iter()
        .map(|directory| Path::new(directory).join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| ServerError::Missing { program: name.to_owned(), package })
}

/// `VERSION/bin` for every version, newest first.
fn postgres_directories(versions: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(versions)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_comes_first() {
        let root = tempfile::tempdir().unwrap();
        for name in ["9", "15", "common"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let found = postgres_directories(root.path());
        assert_eq!(found, [root.path().join("15/bin"), root.path().join("9/bin")]);
    }

    #[test]
    fn a_missing_program_says_what_to_install() {
        let error = find("rialto-server", "rialto").unwrap_err();
        assert_eq!(error.to_string(), "rialto-server is not installed: apt-get install rialto");
    }
}
