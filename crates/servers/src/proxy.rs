//! A proxy that passes bytes on until it is told to cut the connections.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::ServerError;
use crate::error::Doing;

/// Stands between clients and a server on the loopback interface.
pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
}

struct Shared {
    server: SocketAddr,
    closed: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Listens on a free port and passes everything on to the server's.
    pub fn to(server_port: u16) -> Result<Self, ServerError> {
        let doing = || "open a proxy".to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing(doing)?;
        let port = listener.local_addr().doing(doing)?.port();
        let shared = Arc::new(Shared {
            server: SocketAddr::from((Ipv4Addr::LOCALHOST, server_port)),
            closed: AtomicBool::new(false),
            open: Mutex::new(Vec::new()),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.closed.load(Ordering::Relaxed) {
                    break;
                }
                // A client that cannot be served sees a closed connection: its business.
                let _ = client.and_then(|client| accepting.serve(client));
            }
        });
        Ok(Self { shared, port })
    }

    /// The port on which clients connect.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts all connections that are open now; new ones are served. Returns how many there were.
    pub fn cut(&self) -> usize {
        let open = std::mem::take(&mut *self.shared.open());
        for stream in &open {
            let _ = stream.shutdown(Shutdown::Both);
        }
        open.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        self.cut();
        // Wakes the accepting thread, so that it sees the flag.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Shared {
    fn open(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(self.server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        self.open().push(client.try_clone()?);
        let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || pass(from_client, to_server));
        thread::spawn(move || pass(server, client));
        Ok(())
    }
}

/// Passes bytes on until one side closes; then closes the other.
fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if to.write_all(buffer.get(..length).unwrap_or_default()).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends every byte back.
    fn echo() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                thread::spawn(move || pass(stream.try_clone().unwrap(), stream));
            }
        });
        port
    }

    fn says(stream: &mut TcpStream, text: &[u8]) -> io::Result<Vec<u8>> {
        stream.write_all(text)?;
        let mut answer = vec![0; text.len()];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn it_passes_on_and_cuts() {
        let proxy = Proxy::to(echo()).unwrap();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        assert_eq!(says(&mut stream, b"marco").unwrap(), b"marco");
        assert_eq!(proxy.cut(), 1);
        assert!(says(&mut stream, b"polo").is_err());
        let mut again = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        assert_eq!(says(&mut again, b"polo").unwrap(), b"polo");
    }
}
