//! A key distribution centre of Kerberos in a temporary directory, as an administrator makes one with MIT's tools.
//!
//! Never: the machine's own `krb5.conf`, tickets or keys.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::ports::Port;
use super::wait;

const HELP: &str =
    "these tests need MIT's Kerberos: apt-get install --no-install-recommends krb5-kdc krb5-admin-server krb5-user";
/// Where Debian puts the daemon.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// The realm `TEST`. Dropped: killed, and its files removed.
#[derive(Debug)]
pub struct Kdc {
    daemon: Child,
    watchdog: Child,
    port: Port,
    directory: TempDir,
}

/// Whom a key distribution centre knows, or what it gave them: the path of a file.
pub type Keytab = PathBuf;

impl Kdc {
    pub fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("zk-leader-run-kdc-").tempdir().unwrap();
        let (port, home) = (Port::reserve(), directory.path().display().to_string());
        let write = |name: &str, text: String| fs::write(directory.path().join(name), text).unwrap();
        write("krb5.conf", client(port.number(), ""));
        let address = format!("127.0.0.1:{}", port.number());
        write(
            "kdc.conf",
            format!(
                "[kdcdefaults]\n kdc_listen = {address}\n kdc_tcp_listen = {address}\n[realms]\n TEST = {{\n \
                 database_name = {home}/principal\n key_stash_file = {home}/stash\n acl_file = {home}/acl\n \
                 max_life = 10h\n }}\n[logging]\n kdc = FILE:{home}/kdc.log\n"
            ),
        );
        let tool = |program: &str| tool(&directory, program);
        run(tool("kdb5_util").args(["create", "-s", "-r", "TEST", "-P", "master"]));
        let daemon = tool("krb5kdc")
            .arg("-n")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect(HELP);
        let watchdog = Command::new("sh")
            .args(["-c", r#"cat >/dev/null; kill -KILL "$0"; rm -rf "$1""#, &daemon.id().to_string(), &home])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let kdc = Self { daemon, watchdog, port, directory };
        wait::until("the key distribution centre listens", || TcpStream::connect(kdc.port.address()).is_ok());
        kdc
    }

    /// For `KRB5_CONFIG`.
    pub fn config(&self) -> PathBuf {
        self.path("krb5.conf")
    }

    /// The same with more lines among `[libdefaults]`.
    pub fn config_with(&self, name: &str, lines: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, client(self.port.number(), lines)).unwrap();
        path
    }

    /// A new principal, and a file with its keys.
    pub fn add(&self, principal: &str) -> Keytab {
        let keytab = self.path(&format!("{}.keytab", principal.replace('/', "-")));
        for query in [format!("addprinc -randkey {principal}"), format!("ktadd -k {} {principal}", keytab.display())] {
            run(tool(&self.directory, "kadmin.local").args(["-q", &query]));
        }
        keytab
    }

    /// New keys: old tickets count on, and the old file is worth nothing.
    pub fn change_keys(&self, principal: &str) {
        run(tool(&self.directory, "kadmin.local").args(["-q", &format!("cpw -randkey {principal}")]));
    }

    /// A ticket for `KRB5CCNAME`, for so many seconds.
    pub fn ticket(&self, principal: &str, keytab: &Keytab, seconds: u32) -> String {
        let cache = format!("FILE:{}", self.path(&format!("{}.ticket", principal.replace('/', "-"))).display());
        let lifetime = format!("{seconds}s");
        let mut kinit = tool(&self.directory, "kinit");
        run(kinit.args(["-l", &lifetime, "-c", &cache, "-k", "-t"]).arg(keytab).arg(principal));
        cache
    }

    /// A file in its directory, for who needs one.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// How often it was asked for a ticket for a server (`TGS_REQ`) or a user (`AS_REQ`).
    pub fn asked_for(&self, kind: &str, user: &str) -> usize {
        let log = fs::read_to_string(self.path("kdc.log")).unwrap();
        log.lines().filter(|line| line.contains(kind) && line.contains(user) && line.contains("ISSUE")).count()
    }

    /// It answers nothing, as behind a broken network.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.daemon.id()).unwrap()), signal).unwrap();
    }
}

impl Drop for Kdc {
    fn drop(&mut self) {
        for child in [&mut self.daemon, &mut self.watchdog] {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

fn client(port: u16, more: &str) -> String {
    // Debian's file, too, makes tickets that can be handed on.
    format!(
        "[libdefaults]\n default_realm = TEST\n dns_lookup_kdc = false\n dns_lookup_realm = false\n \
         dns_canonicalize_hostname = false\n rdns = false\n forwardable = true\n {more}\n\
         [realms]\n TEST = {{\n kdc = 127.0.0.1:{port}\n }}\n[domain_realm]\n localhost = TEST\n"
    )
}

fn tool(directory: &TempDir, program: &str) -> Command {
    let mut tool = Command::new(program);
    tool.env("PATH", PATH).env("KRB5_CONFIG", directory.path().join("krb5.conf"));
    tool.env("KRB5_KDC_PROFILE", directory.path().join("kdc.conf"));
    tool
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{HELP}: {command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// As secret files should be.
pub fn open_to_all(keytab: &Keytab, is_open: bool) {
    fs::set_permissions(keytab, Permissions::from_mode(if is_open { 0o644 } else { 0o600 })).unwrap();
}
