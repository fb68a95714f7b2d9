//! Certificates as an administrator makes them: by `openssl`, in a directory of their own.
//!
//! Never: a key that outlives the test.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

/// An authority, and what it has signed.
#[derive(Debug)]
pub struct Authority {
    directory: TempDir,
}

/// A certificate and its key; `both` has one behind the other, as `ZooKeeper` wants a server's.
#[derive(Clone, Debug)]
pub struct Issued {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub both: PathBuf,
}

impl Authority {
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("zk-leader-run-pki-").tempdir().unwrap();
        // The server's user need not be ours.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let authority = Self { directory };
        let mut request = authority.openssl();
        request.args(["req", "-x509", "-days", "30", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"]);
        request.args(NEW_KEY).args(["-addext", "basicConstraints=critical,CA:TRUE"]);
        run(request.args(["-addext", "keyUsage=critical,keyCertSign,cRLSign"]));
        authority
    }

    /// Its own certificate.
    pub fn certificate(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// For these alternative names, such as `DNS:localhost`.
    pub fn issue(&self, name: &str, alternatives: &str) -> Issued {
        self.sign(name, alternatives, None)
    }

    /// The same, valid on one day ten days ago.
    pub fn issue_expired(&self, name: &str, alternatives: &str) -> Issued {
        self.sign(name, alternatives, Some("-10d"))
    }

    /// The same, valid for so much longer only.
    pub fn issue_for(&self, name: &str, alternatives: &str, length: Duration) -> Issued {
        let signed = DAY.saturating_sub(length);
        self.sign(name, alternatives, Some(&format!("-{}", signed.as_secs())))
    }

    /// The same, valid only when so much time has passed.
    pub fn issue_in(&self, name: &str, alternatives: &str, length: Duration) -> Issued {
        self.sign(name, alternatives, Some(&format!("+{}", length.as_secs())))
    }

    fn sign(&self, name: &str, alternatives: &str, time: Option<&str>) -> Issued {
        let file = |kind: &str| format!("{name}.{kind}");
        let mut request = self.openssl();
        request.args(["req", "-new", "-subj", &format!("/CN={name}"), "-keyout", &file("key"), "-out", &file("csr")]);
        run(request.args(NEW_KEY));
        fs::write(self.path(&file("ext")), format!("subjectAltName={alternatives}\n")).unwrap();
        let mut sign = self.openssl();
        sign.args(["x509", "-req", "-days", "1", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]);
        sign.args(["-in", &file("csr"), "-extfile", &file("ext"), "-out", &file("pem")]);
        if let Some(time) = time {
            sign.env("LD_PRELOAD", faketime()).env("FAKETIME", time);
        }
        run(&mut sign);
        let (certificate, key, both) = (self.path(&file("pem")), self.path(&file("key")), self.path(&file("both")));
        let text = [fs::read(&certificate).unwrap(), fs::read(&key).unwrap()].concat();
        fs::write(&both, text).unwrap();
        Issued { certificate, key, both }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn openssl(&self) -> Command {
        let mut process = Command::new("openssl");
        process.current_dir(self.directory.path());
        process
    }
}

/// For so long it signs.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

#[track_caller]
fn run(process: &mut Command) {
    let output = process.output().expect("apt-get install openssl");
    assert!(output.status.success(), "{process:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Fools the clock of a program: here, of an `openssl` that shall issue what has expired already.
pub fn faketime() -> PathBuf {
    let mut found =
        fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path().join("faketime/libfaketime.so.1"));
    found.find(|path| path.exists()).expect("libfaketime is missing: apt-get install libfaketime")
}
