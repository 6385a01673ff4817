//! The protocol of Redis (RESP, version 2): commands out, replies in.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::error::{DbError, Obstacle};
use crate::remote::Stage;
use crate::site::Site;
use crate::tls::{self, Mode};
use crate::url::Address;

/// The usual port.
pub(super) const PORT: u16 = 6379;

/// How deep replies may be nested: a list within the answer to EXEC, and one more.
const DEPTH: u32 = 3;

/// Refusals that do not pass. The others, such as LOADING, BUSY and OOM, may.
const FATAL: [&str; 8] =
    ["WRONGPASS", "NOAUTH", "NOPERM", "WRONGTYPE", "ERR", "MOVED", "NOSCRIPT", "DENIED"];

/// Those that are about who we are.
const LOGIN: [&str; 4] = ["WRONGPASS", "NOAUTH", "NOPERM", "DENIED"];

#[derive(Debug, PartialEq)]
pub(super) enum Reply {
    Nothing,
    Text(String),
    Integer(i64),
    List(Vec<Reply>),
    /// A refusal, which begins with its code.
    Error(String),
}

impl Reply {
    /// A text, or nothing.
    pub(super) fn text(self) -> Result<Option<String>, DbError> {
        match self {
            Reply::Nothing => Ok(None),
            Reply::Text(text) => Ok(Some(text)),
            other => Err(other.unexpected()),
        }
    }

    /// A number that was written as a text, or nothing.
    pub(super) fn number(self) -> Result<Option<i64>, DbError> {
        let Some(text) = self.text()? else { return Ok(None) };
        let wrong = |_| {
            DbError::fatal(format!("found the value {text:?}, which no client of this run wrote"))
        };
        text.parse().map(Some).map_err(wrong)
    }

    pub(super) fn list(self) -> Result<Vec<Reply>, DbError> {
        match self {
            Reply::List(list) => Ok(list),
            other => Err(other.unexpected()),
        }
    }

    pub(super) fn array<const N: usize>(self) -> Result<[Reply; N], DbError> {
        let wrong = |list| Reply::List(list).unexpected();
        self.list()?.try_into().map_err(wrong)
    }

    pub(super) fn unexpected(&self) -> DbError {
        DbError::fatal(format!("unexpected answer from Redis: {self:?}"))
    }
}

/// A refusal in Redis' own words: nothing was done.
pub(super) fn refused(words: String) -> DbError {
    let code = words.split(' ').next().unwrap_or_default().to_owned();
    let error = match FATAL.contains(&code.as_str()) {
        true => DbError::fatal(words),
        false => DbError::retryable(words),
    };
    let error = match LOGIN.contains(&code.as_str()) {
        true => error.with_obstacle(Obstacle::Login),
        false => error,
    };
    error.with_code(code)
}

/// A connection, encrypted or not.
trait Stream: Read + Write + Send {}
impl Stream for TcpStream {}
impl Stream for StreamOwned<ClientConnection, TcpStream> {}

pub(super) struct Wire {
    stream: BufReader<Box<dyn Stream>>,
}

impl Wire {
    pub(super) fn open(site: &Site) -> Result<Wire, DbError> {
        let Site { address, tls, patience, .. } = site;
        let stream = connect(address, *patience).map_err(|error| Stage::Connect.broken(&error))?;
        let stream: Box<dyn Stream> = match tls.mode {
            Mode::Disable => Box::new(stream),
            _ => {
                let wrong = |error: String| DbError::fatal(format!("TLS: {error}"));
                let name = ServerName::try_from(address.host.clone())
                    .map_err(|error| wrong(error.to_string()))?;
                let config = Arc::new(tls::client_config(tls)?);
                let client = ClientConnection::new(config, name)
                    .map_err(|error| wrong(error.to_string()))?;
                Box::new(StreamOwned::new(client, stream))
            }
        };
        Ok(Wire { stream: BufReader::new(stream) })
    }

    /// Sends one command and waits for its reply. An error of Redis is an error.
    pub(super) fn one(&mut self, command: &[&str], stage: Stage) -> Result<Reply, DbError> {
        let [reply] = self.all([command], stage)?;
        match reply {
            Reply::Error(words) => Err(refused(words)),
            reply => Ok(reply),
        }
    }

    /// Sends several commands at once and waits for all replies.
    pub(super) fn all<const N: usize>(
        &mut self,
        commands: [&[&str]; N],
        stage: Stage,
    ) -> Result<[Reply; N], DbError> {
        let replies = self.many(&commands, stage)?;
        replies.try_into().map_err(|_| stage.no_answer("too few replies"))
    }

    /// Sends commands at once and waits for all replies.
    pub(super) fn many(
        &mut self,
        commands: &[&[&str]],
        stage: Stage,
    ) -> Result<Vec<Reply>, DbError> {
        self.exchange(commands).map_err(|error| stage.broken(&error))
    }

    fn exchange(&mut self, commands: &[&[&str]]) -> io::Result<Vec<Reply>> {
        let mut bytes = Vec::new();
        for command in commands {
            encode(command, &mut bytes);
        }
        self.stream.get_mut().write_all(&bytes)?;
        self.stream.get_mut().flush()?;
        commands.iter().map(|_| decode(&mut self.stream, DEPTH)).collect()
    }
}

fn connect(address: &Address, patience: Duration) -> io::Result<TcpStream> {
    let place = (address.host.as_str(), address.port.unwrap_or(PORT));
    let mut failure = io::Error::from(ErrorKind::NotFound);
    for place in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, patience) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// A command is a list of texts, each with its length.
fn encode(command: &[&str], bytes: &mut Vec<u8>) {
    bytes.extend(format!("*{}\r\n", command.len()).into_bytes());
    for word in command {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
}

fn decode(stream: &mut impl BufRead, depth: u32) -> io::Result<Reply> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection"));
    }
    let wrong = || io::Error::other(format!("a strange reply: {line:?}"));
    let (kind, rest) = line.trim_end().split_at_checked(1).ok_or_else(wrong)?;
    let number = || rest.parse::<i64>().map_err(|_| wrong());
    match kind {
        "+" => Ok(Reply::Text(rest.to_owned())),
        "-" => Ok(Reply::Error(rest.to_owned())),
        ":" => Ok(Reply::Integer(number()?)),
        "$" | "*" if number()? == -1 => Ok(Reply::Nothing),
        "$" => {
            let length = u64::try_from(number()?).map_err(|_| wrong())?;
            let mut text = String::new();
            stream.take(length).read_to_string(&mut text)?;
            stream.read_exact(&mut [0; 2])?;
            Ok(Reply::Text(text))
        }
        "*" if depth > 0 => {
            let length = number()?;
            (0..length)
                .map(|_| decode(stream, depth - 1))
                .collect::<io::Result<_>>()
                .map(Reply::List)
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;

    #[test]
    fn commands_say_their_lengths() {
        let mut bytes = Vec::new();
        encode(&["SET", "città", ""], &mut bytes);
        let expected = "*3\r\n$3\r\nSET\r\n$6\r\ncittà\r\n$0\r\n\r\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        let text = "*5\r\n+OK\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n*2\r\n-ERR no\r\n*-1\r\n";
        let inner = Reply::List(vec![Reply::Error("ERR no".into()), Reply::Nothing]);
        let expected = vec![
            Reply::Text("OK".into()),
            Reply::Integer(-7),
            Reply::Text("a\r\nb".into()),
            Reply::Nothing,
            inner,
        ];
        assert_eq!(decode(&mut text.as_bytes(), DEPTH).unwrap(), Reply::List(expected));
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for text in ["", "\r\n", "?\r\n", "$x\r\n", "$5\r\nab", "*1\r\n", "$-2\r\n", "+é"] {
            let reply = decode(&mut text.as_bytes(), DEPTH);
            assert!(reply.is_err() || text == "+é", "{text:?}: {reply:?}");
        }
        let deep = "*1\r\n".repeat(100_000);
        assert!(decode(&mut deep.as_bytes(), DEPTH).is_err());
    }

    #[test]
    fn refusals_have_classes() {
        for (words, class) in [
            ("WRONGPASS invalid username-password pair", ErrorClass::Fatal),
            ("LOADING Redis is loading the dataset in memory", ErrorClass::Retryable),
            ("EXECABORT Transaction discarded", ErrorClass::Retryable),
        ] {
            assert_eq!(refused(words.to_owned()).class, class, "{words}");
        }
    }
}
