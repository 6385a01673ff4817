//! The URLs that name databases.

use std::fmt;

use crate::error::DbError;
use crate::secrets;

/// A URL, split at its scheme: `sqlite:`, `postgres://user@host/db`, `exec:./driver.py --fast`.
#[derive(Clone, PartialEq, Eq)]
pub struct DbUrl {
    scheme: String,
    rest: String,
}

/// The parameters after a question mark, in order.
pub type Parameters = Vec<(String, String)>;

/// What a URL of the form `scheme://user:password@host:port/database?name=value` says.
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Address {
    /// The user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The host; without brackets, where it is an IPv6 address.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
    /// What follows the host, without its slash; empty if nothing does.
    pub path: String,
    /// The parameters after the question mark, in order.
    pub parameters: Parameters,
}

impl DbUrl {
    /// Splits a URL at its scheme.
    pub fn parse(text: &str) -> Result<DbUrl, DbError> {
        match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => {
                Ok(DbUrl { scheme: scheme.to_ascii_lowercase(), rest: rest.to_owned() })
            }
            _ => Err(DbError::fatal(format!(
                "{text:?} does not name a database: expected SCHEME:..., such as sqlite:file.db"
            ))),
        }
    }

    /// The scheme, in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// All that follows the colon.
    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// What follows the colon, split at its question mark.
    pub fn path_and_parameters(&self) -> Result<(&str, Parameters), DbError> {
        match self.rest.split_once('?') {
            Some((path, query)) => Ok((path, parameters(query)?)),
            None => Ok((&self.rest, Vec::new())),
        }
    }

    /// The same database, as it is reached through a port of the loopback interface.
    pub fn through(&self, port: u16) -> DbUrl {
        let rest = self.rest.strip_prefix("//").unwrap_or(&self.rest);
        let (authority, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let login = authority.rfind('@').map_or("", |at| &authority[..=at]);
        DbUrl { scheme: self.scheme.clone(), rest: format!("//{login}127.0.0.1:{port}{after}") }
    }

    /// Reads `//user:password@host:port/path?name=value`.
    pub fn address(&self) -> Result<Address, DbError> {
        let wrong = |expected: &str| {
            let scheme = &self.scheme;
            DbError::fatal(format!("{self}: expected {expected}, as in {scheme}://localhost:1234"))
        };
        let rest = self.rest.strip_prefix("//").ok_or_else(|| wrong("// after the scheme"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (host, port) = split_port(place).ok_or_else(|| wrong("a host and a port"))?;
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, "")))
        {
            None => (None, None),
            Some((user, "")) => (Some(decode(user)?), None),
            Some((user, password)) => (Some(decode(user)?), Some(decode(password)?)),
        };
        if host.is_empty() {
            return Err(wrong("a host"));
        }
        let (host, path) = (decode(host)?, decode(path)?);
        Ok(Address { user, password, host, port, path, parameters: parameters(query)? })
    }
}

/// Shows everything but the password; of the command of a driver, everything but what looks like one.
impl fmt::Display for DbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scheme)?;
        let authority = self.rest.strip_prefix("//").map(|rest| {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            rest.split_at(end)
        });
        match authority.and_then(|(authority, rest)| Some((authority.rsplit_once('@')?, rest))) {
            Some(((login, place), rest)) if login.contains(':') => {
                let user = login.split(':').next().unwrap_or_default();
                write!(f, "//{user}:***@{place}{rest}")
            }
            _ if authority.is_some() => f.write_str(&self.rest),
            // The command of a driver, for one.
            _ => f.write_str(&secrets::masked(&self.rest)),
        }
    }
}

impl fmt::Debug for DbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DbUrl({self})")
    }
}

/// Shows everything but the password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { user, host, port, path, parameters, .. } = self;
        write!(f, "Address({user:?}, {host:?}, {port:?}, {path:?}, {parameters:?})")
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Splits a port off; an IPv6 address stands in brackets.
fn split_port(place: &str) -> Option<(&str, Option<u16>)> {
    let (host, rest) = match place.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    match rest.strip_prefix(':') {
        Some(port) => Some((host, Some(port.parse().ok()?))),
        None => rest.is_empty().then_some((host, None)),
    }
}

fn parameters(query: &str) -> Result<Parameters, DbError> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, DbError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| {
            DbError::fatal(format!("{text:?}: expected two hexadecimal digits after each %"))
        })?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes)
        .map_err(|_| DbError::fatal(format!("{text:?}: expected UTF-8 after decoding")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        DbUrl::parse(text).unwrap().address().unwrap()
    }

    #[test]
    fn every_part_of_an_address_is_read() {
        let full = address("postgres://me%40home:p%3Aw@db.example:5433/test?sslmode=off&x");
        assert_eq!(full.user.as_deref(), Some("me@home"));
        assert_eq!(full.password.as_deref(), Some("p:w"));
        assert_eq!((full.host.as_str(), full.port), ("db.example", Some(5433)));
        assert_eq!(full.path, "test");
        let parameters = [("sslmode".into(), "off".into()), ("x".into(), String::new())];
        assert_eq!(full.parameters, parameters);
        let short = address("redis://localhost");
        assert_eq!((short.host.as_str(), short.port, short.user), ("localhost", None, None));
        assert_eq!(address("etcd://[::1]:2379").host, "::1");
    }

    #[test]
    fn what_is_no_url_says_what_was_expected() {
        for text in ["postgres", "", ":x", "C\\file", "1x:y"] {
            assert!(DbUrl::parse(text).is_err(), "{text}");
        }
        for text in
            ["redis:localhost", "redis://host:port", "redis://[::1", "redis://%zz", "redis://"]
        {
            assert!(DbUrl::parse(text).unwrap().address().is_err(), "{text}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let url = DbUrl::parse("mysql://root:secret@host:3306/t?a=b").unwrap();
        assert_eq!(url.to_string(), "mysql://root:***@host:3306/t?a=b");
        assert!(!format!("{url:?} {:?}", url.address()).contains("secret"));
        let unusual = DbUrl::parse("exec:./driver 'a:b@c'").unwrap();
        assert_eq!(unusual.to_string(), "exec:./driver 'a:b@c'");
        let driver = DbUrl::parse("exec:./driver --password secret").unwrap();
        assert_eq!(driver.to_string(), "exec:./driver --password ***");
    }

    #[test]
    fn a_proxy_takes_the_place_of_the_server() {
        let through = |text: &str| DbUrl::parse(text).unwrap().through(99).address().unwrap();
        let url = "mysql://me:p%40w@[::1]:3306/t?engine=x";
        let there = Address { host: "127.0.0.1".into(), port: Some(99), ..address(url) };
        assert_eq!(through(url), there);
        assert_eq!(through("etcd://host"), address("etcd://127.0.0.1:99"));
        assert_eq!(through("redis://host?x=1").parameters.len(), 1);
    }

    #[test]
    fn parameters_follow_a_path_without_an_address_too() {
        let url = DbUrl::parse("sim:si?anomaly=lost-update").unwrap();
        let (path, parameters) = url.path_and_parameters().unwrap();
        assert_eq!((path, parameters[0].1.as_str()), ("si", "lost-update"));
    }
}
