//! One server of a validated connect string: `host:port`, `[v6]:port`, and `tcp+tls://` in front of either.

use std::fmt;

/// The client library's prefix for a server that speaks TLS.
pub const TLS: &str = "tcp+tls://";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address<'a> {
    pub is_tls: bool,
    /// Without brackets.
    pub host: &'a str,
    pub port: u16,
}

impl<'a> Address<'a> {
    pub fn of(server: &'a str) -> Self {
        let (is_tls, rest) = server.strip_prefix(TLS).map_or((false, server), |rest| (true, rest));
        let (host, port) = rest.rsplit_once(':').unwrap_or((rest, ""));
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Self { is_tls, host, port: port.parse().unwrap_or_default() }
    }
}

/// Without the scheme.
impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_taken_apart_and_put_together_again() {
        for (server, is_tls, host, port) in [
            ("h:2181", false, "h", 2181),
            ("tcp+tls://h.x:2281", true, "h.x", 2281),
            ("tcp+tls://[::1]:1", true, "::1", 1),
        ] {
            let address = Address::of(server);
            assert_eq!(address, Address { is_tls, host, port });
            assert_eq!(format!("{}{address}", if is_tls { TLS } else { "" }), server);
        }
    }
}
