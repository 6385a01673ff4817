//! Free loopback ports.

use std::net::{Ipv4Addr, TcpListener};

use crate::ServerError;
use crate::error::Doing;

/// As many different ports as asked for. All are held until the last one is found, so no port
/// comes twice. Between here and the server's own `bind` another process may take one: starting a
/// server is tried again then.
pub(crate) fn free<const N: usize>() -> Result<[u16; N], ServerError> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = bind().doing(|| "find a free port".to_owned())?;
        *port = listener.local_addr().doing(|| "find a free port".to_owned())?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn bind() -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}

#[cfg(test)]
mod tests {
    #[test]
    fn ports_differ_and_are_free() {
        let ports = super::free::<20>().unwrap();
        let distinct: std::collections::BTreeSet<u16> = ports.into_iter().collect();
        assert_eq!(distinct.len(), 20);
        std::net::TcpListener::bind(("127.0.0.1", ports[7])).unwrap();
    }
}
