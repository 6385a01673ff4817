//! Loopback ports, held for as long as their servers live.

use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::ServerError;
use crate::error::Doing;

/// Below the ports that systems give to clients, which begin at 32768 on Linux. Any client may get
/// one of those at any moment. Worse: a client that calls a server which is down may get the very
/// port that it calls, talk to itself, and keep the server from coming back.
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// How often other ports are tried when somebody else was quicker to take one.
const ATTEMPTS: usize = 4;

/// The ports of a server or a cluster. No other [`Ports`] on this machine has them, in whichever
/// process, until it is dropped: a server that is down, or not up yet, finds its ports again.
#[derive(Default)]
pub(crate) struct Ports {
    // Servers talk TCP, so the UDP side of a port is free to say that it is taken. The system gives
    // it back when the process ends, however that happens.
    held: Vec<UdpSocket>,
}

impl Ports {
    /// As many different ports as asked for.
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u16; N], ServerError> {
        let mut ports = [0; N];
        for port in &mut ports {
            *port = self.one().doing(|| "find a free port".to_owned())?;
        }
        Ok(ports)
    }

    fn one(&mut self) -> std::io::Result<u16> {
        // Other processes begin to look elsewhere.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let start = process::id().wrapping_mul(97);
        for _ in 0..COUNT {
            let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let port = (FIRST + number % COUNT) as u16;
            if let Ok(holder) = hold(port) {
                self.held.push(holder);
                return Ok(port);
            }
        }
        Err(Error::new(ErrorKind::AddrInUse, "all are taken"))
    }
}

/// Takes a port that nobody holds and nobody listens on.
fn hold(port: u16) -> std::io::Result<UdpSocket> {
    let holder = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    Ok(holder)
}

/// Starts something; if a stranger has taken a port in the meantime, with others once more.
pub(crate) fn despite_clashes<T>(
    mut start: impl FnMut() -> Result<T, ServerError>,
) -> Result<T, ServerError> {
    for _ in 1..ATTEMPTS {
        match start() {
            Err(error) if error.is_port_clash() => {}
            done => return done,
        }
    }
    start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_nobody_gets_them_twice() {
        let (mut one, mut two) = (Ports::default(), Ports::default());
        let mut all: Vec<u16> = one.take::<20>().unwrap().into();
        all.extend(two.take::<20>().unwrap());
        let listeners: Vec<_> =
            all.iter().map(|port| TcpListener::bind(("127.0.0.1", *port))).collect();
        assert!(listeners.iter().all(Result::is_ok), "{listeners:?}");
        assert!(all.iter().all(|port| hold(*port).is_err()));
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_taken() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        assert!(hold(listener.local_addr().unwrap().port()).is_err());
    }

    #[test]
    fn a_clash_is_tried_again_and_nothing_else() {
        let fail = |clash| ServerError::NotReady {
            node: "rialto".to_owned(),
            what: "ended".to_owned(),
            log: String::new(),
            clash,
        };
        let mut starts = 0;
        let mut start = |result: Result<(), bool>| {
            despite_clashes(|| {
                starts += 1;
                result.map_err(fail)
            })
            .is_ok()
        };
        assert!(start(Ok(())) && !start(Err(false)) && !start(Err(true)));
        assert_eq!(starts, 1 + 1 + ATTEMPTS);
    }
}
