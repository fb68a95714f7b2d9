//! Options and variables: lengths of time, addresses, paths, ACLs, signals. The words are separated by NUL; one that begins
//! with a `\x01` is a variable.
#![no_main]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use libfuzzer_sys::fuzz_target;
use zk_leader_run::cli::{EarlyExit, Stream};
use zk_leader_run::config::Config;
use zk_leader_run::config::load::load;
use zk_leader_run::config::source::process_environment::ProcessEnvironment;
use zk_leader_run::observe::http::Address;

fn read(words: Vec<OsString>, variables: Vec<(OsString, OsString)>) -> Result<Config, EarlyExit> {
    let path = (OsString::from("PATH"), OsString::from("/usr/bin:/bin"));
    let variables = [path].into_iter().chain(variables).collect();
    let environment = ProcessEnvironment { variables, host: "host".into(), pid: 1, ..ProcessEnvironment::default() };
    load([OsString::from("zk-leader-run")].into_iter().chain(words), &environment)
}

fuzz_target!(|data: &[u8]| {
    if let Some(address) = std::str::from_utf8(data).ok().and_then(Address::parse) {
        assert_eq!(Address::parse(&address.to_string()), Some(address));
    }
    let (mut words, mut variables) = (Vec::new(), Vec::new());
    for word in data.split(|&byte| byte == 0) {
        match word.strip_prefix(b"\x01") {
            Some(variable) => {
                let end = variable.iter().position(|&byte| byte == b'=').unwrap_or(variable.len());
                let (name, value) = variable.split_at(end);
                let name = [b"ZK_LEADER_RUN_", name].concat();
                variables.push((name, value.get(1..).unwrap_or_default().to_vec()));
            }
            // It would open files of this machine.
            None if !word.starts_with(b"--config") && !word.starts_with(b"--auth") && !word.starts_with(b"--tls") => {
                words.push(OsString::from_vec(word.to_vec()));
            }
            None => {}
        }
    }
    variables.retain(|(name, _)| !["CONFIG", "AUTH", "TLS"].iter().any(|part| name.ends_with(part.as_bytes())));
    let variables = variables.into_iter().map(|(name, value)| (OsString::from_vec(name), OsString::from_vec(value)));
    match read(words, variables.collect()) {
        Err(stop) if stop.stream == Stream::Stdout => assert_eq!(stop.status, 0),
        Err(stop) => {
            let line = stop.text.strip_suffix('\n').expect("a line");
            assert!(!line.contains(char::is_control), "{:?}", stop.text);
            assert!(stop.text.len() < 4000, "{} bytes", stop.text.len());
        }
        Ok(config) => {
            assert!(config.notices.iter().all(|notice| !notice.contains(char::is_control)), "{:?}", config.notices);
            let timing = config.requested_timing;
            assert!(timing.lease <= config.session_timeout && timing.usable() > timing.reserve);
            let servers = config.servers.clone() + config.chroot.as_ref().map_or("", |chroot| chroot.as_str());
            let again = read(vec!["--connect".into(), servers.into(), "true".into()], Vec::new()).expect("accepted");
            assert_eq!((again.servers, again.chroot), (config.servers, config.chroot));
        }
    }
});
