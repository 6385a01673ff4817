//! The accounts servers run under.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use crate::ServerError;
use crate::error::Doing;

/// An account of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// The account for a server that refuses to run as root; none where we are not root, since
    /// the server then runs as whoever we are.
    pub(crate) fn unless_unprivileged(
        name: &'static str,
        package: &'static str,
    ) -> Result<Option<Self>, ServerError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let accounts = fs::read_to_string("/etc/passwd").doing(|| "read /etc/passwd".to_owned())?;
        match accounts.lines().find_map(|line| parse(line, name)) {
            Some(user) => Ok(Some(user)),
            None => Err(ServerError::NoUser { name, package }),
        }
    }
}

fn parse(line: &str, name: &str) -> Option<User> {
    let mut fields = line.split(':');
    if fields.next()? != name {
        return None;
    }
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { uid, gid })
}

/// Makes a directory that belongs to the user.
pub(crate) fn make_directory(path: &Path, owner: Option<User>) -> Result<(), ServerError> {
    fs::create_dir_all(path).doing(|| format!("create {}", path.display()))?;
    match owner {
        Some(user) => chown(path, Some(user.uid), Some(user.gid))
            .doing(|| format!("hand {} to its server", path.display())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_their_whole_name() {
        let line = "postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash";
        assert_eq!(parse(line, "postgres"), Some(User { uid: 101, gid: 104 }));
        assert_eq!(parse(line, "post"), None);
        assert_eq!(parse("postgres:x:one", "postgres"), None);
    }
}
