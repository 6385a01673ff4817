//! How to tell that a server answers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::launch::Launch;

/// A question that a server answers once it is ready.
#[derive(Debug, Clone)]
pub(crate) enum Ready {
    /// A program of the server's package that succeeds.
    Program(Launch),
    /// Bytes sent to a port, and a text that the answer must contain.
    Answer { port: u16, question: &'static str, answer: &'static str },
}

impl Ready {
    pub(crate) fn holds(&self) -> bool {
        match self {
            Self::Program(launch) => launch.run().is_ok(),
            Self::Answer { port, question, answer } => {
                ask(*port, question).is_ok_and(|text| text.contains(answer))
            }
        }
    }
}

/// The beginning of a server's answer. A server closes the connection after it, or has said all
/// that we look for in its first packet.
fn ask(port: u16, question: &str) -> std::io::Result<String> {
    let patience = Duration::from_millis(500);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(question.as_bytes())?;
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(answer.get(..length).unwrap_or_default()).into_owned())
}
