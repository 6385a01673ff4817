//! The certificate that servers show to clients who want encryption.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::ServerError;
use crate::error::Doing;
use crate::user::User;

/// Its file, beside the files of the server.
pub(crate) const NAME: &str = "certificate.pem";

/// A certificate for the loopback interface, signed by itself, and its key.
pub(crate) struct Certificate {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificate {
    /// Makes a new one; the key is for the user alone.
    pub(crate) fn create(directory: &Path, user: Option<User>) -> Result<Self, ServerError> {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names)
            .map_err(std::io::Error::other)
            .doing(|| "make a certificate".to_owned())?;
        let files =
            Self { certificate: directory.join(NAME), key: directory.join("certificate.key") };
        for (path, text, mode) in [
            (&files.certificate, made.cert.pem(), 0o644),
            (&files.key, made.signing_key.serialize_pem(), 0o600),
        ] {
            let doing = || format!("write {}", path.display());
            fs::write(path, text).doing(doing)?;
            fs::set_permissions(path, Permissions::from_mode(mode)).doing(doing)?;
            if let Some(user) = user {
                chown(path, Some(user.uid), Some(user.gid)).doing(doing)?;
            }
        }
        Ok(files)
    }
}
