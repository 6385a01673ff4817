//! How connections are encrypted: the parameters `sslmode` and `sslrootcert` of a URL, with the
//! meaning they have for PostgreSQL's own clients.

use std::path::PathBuf;

#[cfg(any(feature = "etcd", feature = "postgres", feature = "redis"))]
use {rustls::pki_types::CertificateDer, rustls::pki_types::pem::PemObject as _, std::path::Path};

use crate::error::DbError;
use crate::url::Address;

/// What to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// No encryption.
    Disable,
    /// Encryption where the server offers it. Whose certificate it is does not matter.
    Prefer,
    /// Encryption. Whose certificate it is does not matter.
    Require,
    /// Encryption, and a certificate that is valid for the host.
    Verify,
}

/// The names of the modes in URLs.
const MODES: [(&str, Mode); 4] = [
    ("disable", Mode::Disable),
    ("prefer", Mode::Prefer),
    ("require", Mode::Require),
    ("verify-full", Mode::Verify),
];

/// What a URL says about encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) mode: Mode,
    /// A file with the certificates to trust; without one, those of the public authorities.
    pub(crate) roots: Option<PathBuf>,
}

impl Tls {
    /// Reads the parameters of a URL. The only others are the database's own.
    pub(crate) fn of(address: &Address, default: Mode, own: &[&str]) -> Result<Tls, DbError> {
        let mut tls = Tls { mode: default, roots: None };
        for (name, value) in &address.parameters {
            match name.as_str() {
                "sslmode" => tls.mode = mode(value)?,
                "sslrootcert" => tls.roots = Some(file(value)?),
                other if own.contains(&other) => {}
                _ => {
                    let known = [&["sslmode"], own, &["sslrootcert"]].concat().join(" or ");
                    return Err(DbError::fatal(format!("parameter {name:?}: expected {known}")));
                }
            }
        }
        Ok(tls)
    }
}

/// A file that is there: some clients would take its absence for that of the server.
fn file(path: &str) -> Result<PathBuf, DbError> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(PathBuf::from(path)),
        Err(error) => Err(DbError::fatal(format!("sslrootcert {path}: {error}"))),
    }
}

fn mode(text: &str) -> Result<Mode, DbError> {
    let found = MODES.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode);
    found.ok_or_else(|| {
        let names = MODES.map(|(name, _)| name).join(", ");
        DbError::fatal(format!("sslmode {text:?}: expected one of {names}"))
    })
}

#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) use client::client_config;

/// Reads the certificates in a file.
#[cfg(any(feature = "etcd", feature = "postgres", feature = "redis"))]
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, DbError> {
    let wrong = |why: String| DbError::fatal(format!("sslrootcert {}: {why}", path.display()));
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let all: Vec<_> = all.map_err(|error| wrong(error.to_string()))?;
    if all.is_empty() { Err(wrong("it has no certificate".into())) } else { Ok(all) }
}

/// For the clients that take a configuration of rustls.
#[cfg(any(feature = "postgres", feature = "redis"))]
mod client {
    use std::sync::Arc;

    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

    use super::{Mode, Tls, certificates};
    use crate::error::DbError;

    /// The configuration of a client.
    pub(crate) fn client_config(tls: &Tls) -> Result<ClientConfig, DbError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| DbError::fatal(format!("cannot set up TLS: {error}")))?;
        let builder = match tls.mode {
            Mode::Verify => builder.with_root_certificates(roots(tls)?),
            _ => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider))),
        };
        Ok(builder.with_no_client_auth())
    }

    fn roots(tls: &Tls) -> Result<RootCertStore, DbError> {
        let Some(path) = &tls.roots else {
            return Ok(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect());
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| {
                DbError::fatal(format!("sslrootcert {}: {error}", path.display()))
            })?;
        }
        Ok(roots)
    }

    /// Accepts every certificate, as `sslmode=require` means it: nobody listens, but who answers is
    /// not checked.
    #[derive(Debug)]
    struct Anyone(Arc<CryptoProvider>);

    impl ServerCertVerifier for Anyone {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let known = &self.0.signature_verification_algorithms;
            verify_tls12_signature(message, certificate, signature, known)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let known = &self.0.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, known)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::DbUrl;

    fn tls(parameters: &str) -> Result<Tls, DbError> {
        let url = DbUrl::parse(&format!("postgres://host/db{parameters}"))?;
        Tls::of(&url.address()?, Mode::Prefer, &[])
    }

    #[test]
    fn parameters_choose_the_mode() {
        assert_eq!(tls("").unwrap().mode, Mode::Prefer);
        assert_eq!(tls("?sslmode=disable").unwrap().mode, Mode::Disable);
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let verified = tls(&format!("?sslmode=verify-full&sslrootcert={file}")).unwrap();
        assert_eq!(verified, Tls { mode: Mode::Verify, roots: Some(file.into()) });
    }

    #[test]
    fn wrong_parameters_are_named() {
        assert_eq!(
            tls("?sslmode=maybe").unwrap_err().message,
            "sslmode \"maybe\": expected one of disable, prefer, require, verify-full"
        );
        let missing = tls("?sslrootcert=/no/such/file").unwrap_err().message;
        assert!(missing.starts_with("sslrootcert /no/such/file: "), "{missing}");
        assert_eq!(
            tls("?tls=on").unwrap_err().message,
            "parameter \"tls\": expected sslmode or sslrootcert"
        );
    }
}
