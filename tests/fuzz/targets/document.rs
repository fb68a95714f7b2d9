//! What one program hands over to the next, in an upgrade in place.
#![no_main]

use std::ffi::OsString;
use std::io::Read as _;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use zk_leader_run::config::Config;
use zk_leader_run::config::load::load;
use zk_leader_run::config::source::process_environment::ProcessEnvironment;
use zk_leader_run::supervisor::upgrade::document::Document;
use zk_leader_run::wiring;

static CONFIG: LazyLock<Config> = LazyLock::new(|| {
    let variables = vec![(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))];
    let environment = ProcessEnvironment { variables, host: "host".into(), pid: 1, ..ProcessEnvironment::default() };
    load(["zk-leader-run", "--name", "job", "true"].map(OsString::from), &environment).unwrap()
});

fuzz_target!(|data: &[u8]| {
    let Ok(document) = Document::read(data) else { return };
    let bytes = |document: &Document| {
        let (mut file, mut bytes) = (document.write().unwrap(), Vec::new());
        file.read_to_end(&mut bytes).unwrap();
        bytes
    };
    let written = bytes(&document);
    assert_eq!(bytes(&Document::read(written.as_slice()).unwrap()), written);
    // Whether a machine can go on with it.
    document.check(&wiring::machine(&CONFIG, 7), &document.fixed).ok();
});
