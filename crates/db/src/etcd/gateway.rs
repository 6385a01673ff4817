//! The HTTP gateway: requests and answers in JSON, keys and values in base 64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Value, json};
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use crate::error::{DbError, Obstacle};
use crate::remote::{Site, Stage};
use crate::tls::{Mode, Tls, certificates};

/// The usual port of clients.
pub(super) const PORT: u16 = 2379;

pub(super) struct Gateway {
    agent: Agent,
    base: String,
    /// What a login gave.
    token: Option<String>,
}

/// Encodes a key or a value.
pub(super) fn text(plain: &str) -> String {
    BASE64_STANDARD.encode(plain)
}

/// What is there under a key. Fields without a value are left out of the answers.
#[derive(Deserialize)]
pub(super) struct Entry {
    #[serde(default, deserialize_with = "plain")]
    pub(super) value: String,
    /// The revision that wrote it.
    pub(super) mod_revision: String,
}

fn plain<'de, D: serde::Deserializer<'de>>(source: D) -> Result<String, D::Error> {
    let bytes = BASE64_STANDARD.decode(String::deserialize(source)?).map_err(D::Error::custom)?;
    String::from_utf8(bytes).map_err(D::Error::custom)
}

/// The answer to a read.
#[derive(Deserialize, Default)]
pub(super) struct RangeAnswer {
    #[serde(default)]
    pub(super) header: Header,
    #[serde(default)]
    pub(super) kvs: Vec<Entry>,
}

/// The answer to a transaction.
#[derive(Deserialize)]
pub(super) struct Done {
    #[serde(default)]
    pub(super) header: Header,
    #[serde(default)]
    pub(super) succeeded: bool,
    #[serde(default)]
    pub(super) responses: Vec<Response>,
}

/// What comes with every answer.
#[derive(Deserialize, Default)]
pub(super) struct Header {
    /// The revision of the store, as text.
    #[serde(default)]
    pub(super) revision: String,
}

/// The answer to one part of it.
#[derive(Deserialize)]
pub(super) struct Response {
    #[serde(default)]
    pub(super) response_range: RangeAnswer,
}

#[derive(Deserialize)]
struct Token {
    token: String,
}

#[derive(Deserialize)]
struct Version {
    etcdserver: String,
}

/// An error in etcd's own words, with a code of gRPC.
#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    message: String,
}

impl Gateway {
    pub(super) fn open(site: &Site) -> Result<Gateway, DbError> {
        let Site { address, tls, patience, .. } = site;
        let agent = Agent::config_builder()
            .timeout_global(Some(*patience))
            .http_status_as_error(false)
            .max_redirects(0)
            // A database is next door, whatever the way to the web is.
            .proxy(None)
            .tls_config(tls_config(tls)?)
            .build()
            .new_agent();
        let scheme = if tls.mode == Mode::Disable { "http" } else { "https" };
        let (host, port) = (&address.host, address.port.unwrap_or(PORT));
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let mut gateway = Gateway { agent, base: format!("{scheme}://{host}:{port}"), token: None };
        if let (Some(user), Some(password)) = (&address.user, &address.password) {
            let login = json!({"name": user, "password": password});
            let answer: Token = gateway.ask("auth/authenticate", &login, Stage::Connect)?;
            gateway.token = Some(answer.token);
        }
        Ok(gateway)
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask<T: DeserializeOwned>(
        &self,
        what: &str,
        request: &Value,
        stage: Stage,
    ) -> Result<T, DbError> {
        let mut post = self.agent.post(format!("{}/v3/{what}", self.base));
        if let Some(token) = &self.token {
            post = post.header("Authorization", token);
        }
        let lost = |error: ureq::Error| without_answer(&error, stage);
        let mut answer = post.send_json(request).map_err(lost)?;
        if answer.status().is_success() {
            return answer.body_mut().read_json().map_err(lost);
        }
        let refusal: Refusal = answer.body_mut().read_json().map_err(lost)?;
        Err(refused(refusal, stage))
    }

    /// Sends a request of which only success matters, outside of any transaction.
    pub(super) fn tell(&self, what: &str, request: &Value) -> Result<(), DbError> {
        self.ask::<Value>(what, request, Stage::Connect).map(|_| ())
    }

    /// Reads a key.
    pub(super) fn read(
        &self,
        key: &str,
        stale: bool,
        stage: Stage,
    ) -> Result<RangeAnswer, DbError> {
        self.ask("kv/range", &json!({"key": text(key), "serializable": stale}), stage)
    }

    pub(super) fn version(&self) -> Result<String, DbError> {
        let lost = |error: ureq::Error| without_answer(&error, Stage::Connect);
        let mut answer = self.agent.get(format!("{}/version", self.base)).call().map_err(lost)?;
        let version: Version = answer.body_mut().read_json().map_err(lost)?;
        Ok(version.etcdserver)
    }
}

fn tls_config(tls: &Tls) -> Result<TlsConfig, DbError> {
    let roots = match &tls.roots {
        None => RootCerts::WebPki,
        Some(path) => {
            let certificates = certificates(path)?;
            let owned = |der: &rustls::pki_types::CertificateDer<'_>| {
                ureq::tls::Certificate::from_der(der).to_owned()
            };
            RootCerts::new_with_certs(&certificates.iter().map(owned).collect::<Vec<_>>())
        }
    };
    let anyone = tls.mode != Mode::Verify;
    Ok(TlsConfig::builder().root_certs(roots).disable_verification(anyone).build())
}

/// No answer, or one that is none of etcd's.
fn without_answer(error: &ureq::Error, stage: Stage) -> DbError {
    match error {
        ureq::Error::Io(broken) => stage.broken(broken),
        ureq::Error::Timeout(_) => stage.no_answer("no answer in time"),
        // Something answers, but it is not etcd.
        ureq::Error::Json(_) | ureq::Error::Protocol(_) if stage == Stage::Connect => {
            DbError::fatal(error.to_string()).with_obstacle(Obstacle::Unreachable)
        }
        _ => stage.no_answer(error.to_string()),
    }
}

/// Invalid argument (a wrong password, too), permission denied and unauthenticated are refusals.
/// The others, from "no leader" to "out of space", may pass; a commit is in doubt then, since a
/// member may have proposed it to the others before it gave up.
fn refused(refusal: Refusal, stage: Stage) -> DbError {
    let Refusal { code, message } = refusal;
    match code {
        3 | 7 | 16 => DbError::fatal(message).with_code(code).with_obstacle(Obstacle::Login),
        // A password was given, but nobody asks for one.
        9 if stage == Stage::Connect => {
            DbError::fatal(format!("{message}: omit the user and the password in the URL"))
                .with_code(code)
        }
        _ if stage == Stage::Commit => DbError::unknown(message).with_code(code),
        _ => DbError::retryable(message).with_code(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass::{Fatal, Retryable, Unknown};

    #[test]
    fn codes_have_classes() {
        for (code, in_statement, in_commit) in [
            (3, Fatal, Fatal),
            (16, Fatal, Fatal),
            (14, Retryable, Unknown),
            (2, Retryable, Unknown),
        ] {
            let class = |stage| refused(Refusal { code, message: String::new() }, stage).class;
            assert_eq!((class(Stage::Statement), class(Stage::Commit)), (in_statement, in_commit));
        }
    }

    #[test]
    fn answers_leave_out_what_is_empty() {
        let found: RangeAnswer = serde_json::from_str(
            r#"{"header":{"revision":"7"},"kvs":[{"key":"eA==","mod_revision":"5","value":"NDI="}]}"#,
        )
        .unwrap();
        assert_eq!((found.kvs[0].value.as_str(), found.kvs[0].mod_revision.as_str()), ("42", "5"));
        let nothing: RangeAnswer = serde_json::from_str(r#"{"header":{}}"#).unwrap();
        assert!(nothing.kvs.is_empty());
        let failed: Done =
            serde_json::from_str(r#"{"responses":[{"response_range":{}}]}"#).unwrap();
        assert!(!failed.succeeded && failed.responses[0].response_range.kvs.is_empty());
    }
}
