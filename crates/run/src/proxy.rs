//! A proxy that parts clients from a server for a while.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Stands between clients and a server: passes on what they say, or does not.
///
/// It listens on the loopback interface, on a port of its own. Dropping it cuts all connections.
pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
}

/// What a [`Proxy`] does with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Traffic {
    /// Everything passes.
    Free,
    /// Nothing passes. What is sent waits until traffic is free again, and so do new connections.
    Held,
    /// What clients say arrives; the answers wait until traffic is free again.
    AnswersHeld,
    /// New connections are closed at once. Those that are open are not concerned: see [`Proxy::cut`].
    Refused,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

impl Traffic {
    fn holds(self, direction: Direction) -> bool {
        self == Traffic::Held || self == Traffic::AnswersHeld && direction == Direction::ToClient
    }
}

struct Shared {
    server: Vec<SocketAddr>,
    state: Mutex<State>,
    /// Is told of every change of the traffic.
    changed: Condvar,
}

struct State {
    traffic: Traffic,
    is_closed: bool,
    /// How often something did not pass when it came.
    hindered: u64,
    /// Both ends of every connection, by its number.
    open: BTreeMap<u64, [TcpStream; 2]>,
    connections: u64,
}

impl Proxy {
    /// Listens on a free port and passes everything on to the server's.
    pub fn to(server: impl ToSocketAddrs) -> io::Result<Proxy> {
        let server = server.to_socket_addrs()?.collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let open = BTreeMap::new();
        let state =
            State { traffic: Traffic::Free, is_closed: false, hindered: 0, open, connections: 0 };
        let shared = Arc::new(Shared { server, state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        thread::Builder::new().spawn(move || {
            for client in listener.incoming().filter_map(Result::ok) {
                let serving = Arc::clone(&accepting);
                if accepting.state().is_closed {
                    break;
                }
                // A client that cannot be served sees a closed connection, as it does without a proxy.
                let _ = thread::Builder::new().spawn(move || serving.serve(client));
            }
        })?;
        Ok(Proxy { shared, port })
    }

    /// The port on which clients connect.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on, traffic is like this.
    pub fn set(&self, traffic: Traffic) {
        self.shared.state().traffic = traffic;
        self.shared.changed.notify_all();
    }

    /// Cuts all connections that are open now, and drops what waits on them. Returns how many there were.
    pub fn cut(&self) -> usize {
        let mut state = self.shared.state();
        let open = std::mem::take(&mut state.open);
        state.hindered += open.len() as u64;
        drop(state);
        for stream in open.values().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        open.len()
    }
}

impl Proxy {
    /// How often something did not pass when it came: connections that were cut or refused, and bytes that had to
    /// wait.
    pub fn hindered(&self) -> u64 {
        self.shared.state().hindered
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().is_closed = true;
        self.cut();
        self.set(Traffic::Refused);
        // Wakes the accepting thread, so that it sees that it is over.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something may pass.
    fn wait(&self, direction: Direction) -> MutexGuard<'_, State> {
        let mut state = self.state();
        let is_hindered = state.traffic.holds(direction) || state.traffic == Traffic::Refused;
        state.hindered += u64::from(is_hindered);
        while state.traffic.holds(direction) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn serve(&self, client: TcpStream) -> io::Result<()> {
        if self.wait(Direction::ToServer).traffic == Traffic::Refused {
            return Ok(());
        }
        let server = TcpStream::connect(self.server.as_slice())?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ends = [client.try_clone()?, server.try_clone()?];
        let number = {
            let mut state = self.state();
            // It may have come to this while the server was called.
            if state.traffic == Traffic::Refused {
                return Ok(());
            }
            state.connections += 1;
            let number = state.connections;
            state.open.insert(number, ends);
            number
        };
        let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
        thread::scope(|scope| {
            scope.spawn(|| self.pass(from_client, to_server, Direction::ToServer));
            self.pass(server, client, Direction::ToClient);
        });
        self.state().open.remove(&number);
        Ok(())
    }

    /// Passes bytes on until one side closes; then closes the other.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream, direction: Direction) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            drop(self.wait(direction));
            if to.write_all(buffer.get(..length).unwrap_or_default()).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A server that sends every byte back.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || io::copy(&mut stream.try_clone().unwrap(), &mut stream));
            }
        });
        address
    }

    fn client(proxy: &Proxy) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap()
    }

    fn hears(stream: &mut TcpStream, text: &[u8]) -> io::Result<()> {
        let mut answer = vec![0; text.len()];
        stream.read_exact(&mut answer)?;
        assert_eq!(answer, text);
        Ok(())
    }

    fn says(stream: &mut TcpStream, text: &[u8]) -> io::Result<()> {
        stream.write_all(text)?;
        hears(stream, text)
    }

    #[test]
    fn it_passes_on_and_cuts() {
        let proxy = Proxy::to(echo()).unwrap();
        let mut stream = client(&proxy);
        says(&mut stream, b"marco").unwrap();
        assert_eq!(proxy.cut(), 1);
        assert!(says(&mut stream, b"polo").is_err());
        says(&mut client(&proxy), b"polo").unwrap();
    }

    #[test]
    fn it_refuses_while_it_is_told_to() {
        let proxy = Proxy::to(echo()).unwrap();
        let mut open = client(&proxy);
        says(&mut open, b"marco").unwrap();
        proxy.set(Traffic::Refused);
        assert!(says(&mut client(&proxy), b"marco").is_err());
        says(&mut open, b"polo").unwrap();
        proxy.set(Traffic::Free);
        says(&mut client(&proxy), b"polo").unwrap();
    }

    /// What is held is neither lost nor passed on, in either direction.
    #[test]
    fn it_holds_what_is_said_until_it_lets_go() {
        for traffic in [Traffic::Held, Traffic::AnswersHeld] {
            let proxy = Proxy::to(echo()).unwrap();
            let mut old = client(&proxy);
            says(&mut old, b"marco").unwrap();
            proxy.set(traffic);
            let mut new = client(&proxy);
            for stream in [&mut old, &mut new] {
                stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
                assert!(says(stream, b"polo").is_err(), "{traffic:?}");
                stream.set_read_timeout(None).unwrap();
            }
            proxy.set(Traffic::Free);
            hears(&mut old, b"polo").unwrap();
            hears(&mut new, b"polo").unwrap();
        }
    }

    #[test]
    fn answers_that_were_held_can_be_lost() {
        let proxy = Proxy::to(echo()).unwrap();
        let mut stream = client(&proxy);
        says(&mut stream, b"marco").unwrap();
        proxy.set(Traffic::AnswersHeld);
        stream.write_all(b"polo").unwrap();
        assert_eq!(proxy.cut(), 1);
        proxy.set(Traffic::Free);
        assert!(hears(&mut stream, b"polo").is_err());
    }
}
