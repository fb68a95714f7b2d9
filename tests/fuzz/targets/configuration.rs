//! The configuration file, as TOML. What is refused is refused in one printable line; what is accepted is accepted again as
//! the options that a releaser gets.
#![no_main]

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;

use libfuzzer_sys::fuzz_target;
use zk_leader_run::config::load::load;
use zk_leader_run::config::source::process_environment::ProcessEnvironment;

fuzz_target!(|data: &[u8]| {
    let memory = nix::sys::memfd::memfd_create(c"config", nix::sys::memfd::MFdFlags::empty()).unwrap();
    let mut file = std::fs::File::from(memory);
    file.set_permissions(Permissions::from_mode(0o600)).unwrap();
    file.write_all(data).unwrap();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let words = |more: Vec<OsString>| {
        let first = ["zk-leader-run", "--name", "job"].map(OsString::from);
        first.into_iter().chain(more).chain(["true".into()]).collect::<Vec<_>>()
    };
    let path_of_programs = (OsString::from("PATH"), OsString::from("/usr/bin:/bin"));
    let variables = vec![path_of_programs];
    let environment = ProcessEnvironment { variables, host: "host".into(), pid: 1, ..ProcessEnvironment::default() };
    match load(words(vec!["--config".into(), path.into()]), &environment) {
        Err(stop) => {
            let line = stop.text.strip_suffix('\n').expect("a line");
            assert!(!line.contains(char::is_control), "{:?}", stop.text);
            assert!(stop.text.len() < 4000, "{} bytes", stop.text.len());
            assert!([64, 78].contains(&stop.status), "{stop:?}");
        }
        Ok(config) => {
            let options = config.file.as_ref().map(|file| file.options.clone()).unwrap_or_default();
            let options = ["--config".into(), "/dev/null".into()].into_iter().chain(options).collect();
            let again = load(words(options), &environment).expect("what was accepted");
            assert_eq!((&again.servers, &again.base, &again.id), (&config.servers, &config.base, &config.id));
            assert_eq!(again.requested_timing.lease, config.requested_timing.lease);
        }
    }
});
