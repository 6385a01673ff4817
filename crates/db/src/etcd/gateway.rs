//! The HTTP gateway: requests and answers in JSON, keys and values in base 64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use crate::error::{DbError, Obstacle};
use crate::remote::Stage;
use crate::site::Site;
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

/// What is there under the first key of an answer, and the revision that wrote it. Fields without a value are left out
/// of the answers.
pub(super) fn entry(answer: &Value) -> Result<Option<(String, String)>, DbError> {
    let Some(found) = answer["kvs"].get(0) else { return Ok(None) };
    let value = BASE64_STANDARD.decode(found["value"].as_str().unwrap_or_default());
    match (value.ok().and_then(|bytes| String::from_utf8(bytes).ok()), &found["mod_revision"]) {
        (Some(value), Value::String(revision)) => Ok(Some((value, revision.clone()))),
        _ => Err(DbError::fatal(format!("etcd answered {found}, which cannot be parsed"))),
    }
}

/// The revision of the store, which comes with every answer.
pub(super) fn revision(answer: &Value) -> Option<u64> {
    answer["header"]["revision"].as_str()?.parse().ok()
}

/// Whether the comparisons of a transaction held.
pub(super) fn has_succeeded(answer: &Value) -> bool {
    answer["succeeded"] == true
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
            let answer = gateway.ask("auth/authenticate", &login, Stage::Connect)?;
            gateway.token = Some(field(&answer, "token")?);
        }
        Ok(gateway)
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask(&self, what: &str, request: &Value, stage: Stage) -> Result<Value, DbError> {
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
        self.ask(what, request, Stage::Connect).map(drop)
    }

    /// Reads a key.
    pub(super) fn read(&self, key: &str, stale: bool, stage: Stage) -> Result<Value, DbError> {
        self.ask("kv/range", &json!({"key": text(key), "serializable": stale}), stage)
    }

    pub(super) fn version(&self) -> Result<String, DbError> {
        let lost = |error: ureq::Error| without_answer(&error, Stage::Connect);
        let mut answer = self.agent.get(format!("{}/version", self.base)).call().map_err(lost)?;
        field(&answer.body_mut().read_json().map_err(lost)?, "etcdserver")
    }
}

/// A text that every etcd answers with.
fn field(answer: &Value, name: &str) -> Result<String, DbError> {
    answer[name].as_str().map(str::to_owned).ok_or_else(|| {
        DbError::fatal(format!("missing field `{name}`")).with_obstacle(Obstacle::Unreachable)
    })
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
        let found = json!({"header": {"revision": "7"}, "kvs": [
            {"key": "eA==", "mod_revision": "5", "value": "NDI="}
        ]});
        assert_eq!(entry(&found), Ok(Some(("42".to_owned(), "5".to_owned()))));
        assert_eq!(revision(&found), Some(7));
        let nothing = json!({"header": {}});
        assert_eq!((entry(&nothing), revision(&nothing)), (Ok(None), None));
        let failed = json!({"responses": [{"response_range": {}}]});
        assert!(!has_succeeded(&failed));
        assert_eq!(entry(&failed["responses"][0]["response_range"]), Ok(None));
        assert!(entry(&json!({"kvs": [{"mod_revision": "5", "value": "?"}]})).is_err());
    }
}
