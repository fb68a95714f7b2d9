//! The ensemble: `host:port,[v6]:port/chroot`, with `tcp+tls://` in front of servers that speak TLS. Host names are
//! resolved when they are connected to.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::config::error::{ConfigError, ValueError, quoted};
use crate::config::source::layers::Layers;
use crate::config::value::digits;
use crate::config::value::znode::{self, ZnodePath};
use crate::zookeeper::client::address::TLS;
use crate::zookeeper::client::tls;

const DEFAULT_PORT: u16 = 2181;
const EXAMPLE: &str = "write it like h1:2181,h2:2181,[2001:db8::3]:2181/chroot";

/// The servers and the chroot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ensemble {
    /// `host:port` of every server, separated by commas; IPv6 addresses in brackets.
    pub servers: String,
    pub chroot: Option<ZnodePath>,
    /// Whether any of them speaks TLS.
    pub uses_tls: bool,
}

/// Reads `--connect` and `--tls`.
pub fn read(layers: &Layers) -> Result<Ensemble, ConfigError> {
    let tls = layers.flag("tls")?;
    let setting = layers.required("connect")?;
    parse(&setting.text, tls).map_err(|complaint| setting.refused(complaint))
}

/// `tls`: whether servers without a scheme speak TLS.
fn parse(text: &str, tls: bool) -> Result<Ensemble, ValueError> {
    if text.is_empty() {
        return Err(ValueError::from(format!("names no server; {EXAMPLE}")));
    }
    if text.contains(char::is_whitespace) {
        return Err(ValueError::from(format!("contains white space; {EXAMPLE}")));
    }
    let (servers, chroot) = text.split_at(start_of_chroot(text));
    let servers = servers.split(',').map(|text| server(text, tls)).collect::<Result<Vec<_>, _>>()?;
    let uses_tls = servers.iter().any(|server| server.starts_with(TLS));
    Ok(Ensemble { servers: servers.join(","), chroot: read_chroot(chroot)?, uses_tls })
}

/// The first slash that is not part of `://`.
fn start_of_chroot(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find('/')).map(|at| from + at) {
        match text.get(..at).zip(text.get(at..)) {
            Some((before, after)) if before.ends_with(':') && after.starts_with("//") => from = at + 2,
            _ => return at,
        }
    }
    text.len()
}

/// `/` alone is no chroot, as in every `ZooKeeper` client.
fn read_chroot(text: &str) -> Result<Option<ZnodePath>, ValueError> {
    match text {
        "" | "/" => Ok(None),
        _ if text.contains(',') => Err(ValueError::from(
            "has a chroot before its end; the chroot stands once, after the last server: h1:2181,h2:2181/chroot",
        )),
        _ => znode::part_of(text)
            .map(Some)
            .map_err(|error| ValueError::from(format!("has the chroot {}, which {error}", quoted(text)))),
    }
}

/// Each with its scheme, if that is TLS.
fn server(text: &str, tls: bool) -> Result<String, ValueError> {
    let (is_tls, rest) = match text.split_once("://") {
        None => (tls, text),
        Some(("tcp", rest)) => (false, rest),
        Some(("tcp+tls", rest)) => (true, rest),
        Some((scheme, _)) => {
            return Err(ValueError::from(format!(
                "has the scheme {}; write tcp+tls://host:port for a server that speaks TLS, host:port for another",
                quoted(scheme)
            )));
        }
    };
    let server = host_and_port(rest)?;
    if !is_tls {
        return Ok(server);
    }
    let (host, port) = server.rsplit_once(':').unwrap_or((&server, ""));
    if !rest.ends_with(&format!(":{port}")) {
        let remedy = format!("write the server's secureClientPort: {TLS}{host}:2281");
        return Err(ValueError::from(format!("has no port after {}; {remedy}", quoted(rest))));
    }
    if !tls::can_be_certified(host.trim_start_matches('[').trim_end_matches(']')) {
        let remedy = "write a host name or a plain address";
        return Err(ValueError::from(format!("has {}, for which there can be no certificate; {remedy}", quoted(rest))));
    }
    Ok(format!("{TLS}{server}"))
}

fn host_and_port(text: &str) -> Result<String, ValueError> {
    if text.is_empty() {
        return Err(ValueError::from(format!("contains an empty server; {EXAMPLE}")));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) =
            rest.split_once(']').ok_or_else(|| format!("has no ']' after {}; {EXAMPLE}", quoted(text)))?;
        let port = match rest {
            "" => DEFAULT_PORT,
            _ => port(
                rest.strip_prefix(':')
                    .ok_or_else(|| format!("has {} after ']'; write ':' and a port", quoted(rest)))?,
            )?,
        };
        let plain = address.split_once('%').map_or(address, |(plain, _zone)| plain);
        plain
            .parse::<Ipv6Addr>()
            .map_err(|_| format!("has {}, which is not an IPv6 address; {EXAMPLE}", quoted(address)))?;
        return Ok(format!("[{address}]:{port}"));
    }
    if text.matches(':').count() > 1 {
        return Err(ValueError::from(format!(
            "has {}; if that is an IPv6 address, write it in brackets: [::1]:{DEFAULT_PORT}",
            quoted(text)
        )));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, text)) => (host, port(text)?),
        None => (text, DEFAULT_PORT),
    };
    check_host(host)?;
    Ok(format!("{host}:{port}"))
}

fn port(text: &str) -> Result<u16, ValueError> {
    let complaint = || format!("has the port {}; a port is a number from 1 to 65535", quoted(text)).into();
    digits(text).filter(|port| *port > 0).ok_or_else(complaint)
}

fn check_host(host: &str) -> Result<(), ValueError> {
    const LONGEST: usize = 253;
    if host.is_empty() {
        return Err(ValueError::from(format!("has no host before ':'; {EXAMPLE}")));
    }
    let labels_are_good = host.trim_end_matches('.').split('.').all(|label| {
        !label.is_empty()
            && !label.starts_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    });
    if !labels_are_good || host.len() > LONGEST {
        return Err(ValueError::from(format!("has {}, which is not a host name; {EXAMPLE}", quoted(host))));
    }
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|byte| byte.is_ascii_digit()) && host.parse::<Ipv4Addr>().is_err() {
        return Err(ValueError::from(format!(
            "has {}, which is neither a host name nor an IPv4 address; {EXAMPLE}",
            quoted(host)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>) {
        let ensemble = parse(text, false).unwrap();
        assert_eq!(ensemble.uses_tls, text.contains("tls"));
        (ensemble.servers, ensemble.chroot.map(|chroot| chroot.to_string()))
    }

    #[test]
    fn each_server_says_whether_it_speaks_tls() {
        assert_eq!(
            parsed("tcp://h1,tcp+tls://h2:2281,tcp+tls://[::1]:2281,h3/a"),
            ("h1:2181,tcp+tls://h2:2281,tcp+tls://[::1]:2281,h3:2181".into(), Some("/a".into()))
        );
        assert_eq!(parse("h1:1,tcp://h2:2", true).unwrap().servers, "tcp+tls://h1:1,h2:2");
    }

    #[test]
    fn servers_and_chroot_are_told_apart() {
        assert_eq!(parsed("127.0.0.1:2181"), ("127.0.0.1:2181".into(), None));
        assert_eq!(parsed("h1,h2:2182/"), ("h1:2181,h2:2182".into(), None));
        assert_eq!(
            parsed("zk_1.example.:1,[::1]:65535,[fe80::1%eth0]/a/b"),
            ("zk_1.example.:1,[::1]:65535,[fe80::1%eth0]:2181".into(), Some("/a/b".into()))
        );
    }

    #[test]
    fn malformed_ensembles_are_refused_each_with_its_reason() {
        let cases = [
            ("", "names no server"),
            (" h1:2181", "contains white space"),
            ("h1:2181, h2:2181", "contains white space"),
            ("http://h1:2181", "has the scheme 'http'"),
            ("h1://2181", "has the scheme 'h1'"),
            ("tcp://", "contains an empty server"),
            ("tcp+tls://h1", "has no port after 'h1'"),
            ("tcp+tls://[::1]", "has no port after '[::1]'"),
            ("tcp+tls://[fe80::1%eth0]:2281", "for which there can be no certificate"),
            (":2181", "has no host before ':'"),
            ("h1:2181,,h2:2181", "contains an empty server"),
            ("h1:2181,", "contains an empty server"),
            ("/chroot", "contains an empty server"),
            ("h1:", "has the port ''"),
            ("h1:0", "has the port '0'"),
            ("h1:65536", "has the port '65536'"),
            ("h1:+5", "has the port '+5'"),
            ("h1:zk", "has the port 'zk'"),
            ("::1", "write it in brackets: [::1]:2181"),
            ("fe80::1:2181", "write it in brackets"),
            ("[::1:2181", "has no ']'"),
            ("[::1]2181", "has '2181' after ']'"),
            ("[::g]:2181", "is not an IPv6 address"),
            ("h1@x:2181", "is not a host name"),
            ("-h:2181", "is not a host name"),
            ("2181", "is neither a host name nor an IPv4 address"),
            ("1.2.3.400:2181", "is neither a host name nor an IPv4 address"),
            ("h1:2181/a,h2:2181", "the chroot stands once, after the last server"),
            ("h1:2181/a/", "has the chroot '/a/', which ends with '/'"),
            ("h1:2181//a", "has the chroot '//a', which has an empty step"),
            ("h1:2181/../a", "relative step"),
            ("h1:2181/a\u{1}", "ZooKeeper refuses"),
        ];
        for (text, reason) in cases {
            let complaint = parse(text, false).unwrap_err().to_string();
            assert!(complaint.contains(reason), "{text:?}: {complaint}");
        }
    }
}
