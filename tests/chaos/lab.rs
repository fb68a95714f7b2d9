//! A small network of our own: one switch, and a network namespace for every server, every host and ourselves. All of it
//! is gone when the lab is dropped, and also when this process dies: a watchdog sees its standard input close.
//!
//! Never: an address, a rule or a process of ours in the namespace that everybody uses.

use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sched::{CloneFlags, setns};
use nix::unistd::Uid;

/// Of this process.
static LABS: AtomicU32 = AtomicU32::new(0);

const HELP: &str = "chaos needs network namespaces: run it as root on Linux, with `apt-get install --no-install-recommends iproute2 iptables`";

/// One end of the switch's cables.
#[derive(Clone, Debug)]
pub struct Node {
    /// `z0`, `h3`, `me`.
    pub name: String,
    pub address: Ipv4Addr,
    namespace: String,
    /// What `/proc/PID/ns/net` of its processes refers to.
    inode: u64,
    groups: Vec<PathBuf>,
}

/// The namespaces, their watchdog, and a directory for everything that is written.
#[derive(Debug)]
pub struct Lab {
    pub nodes: Vec<Node>,
    directory: PathBuf,
    watchdog: Child,
}

impl Lab {
    pub fn build(names: &[String]) -> Self {
        assert!(Uid::effective().is_root(), "{HELP}");
        let prefix = format!("zkc{}-{}", std::process::id(), LABS.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::Builder::new().prefix("zk-leader-run-chaos-").tempdir().unwrap().keep();
        let hierarchies = hierarchies();
        let roots: Vec<PathBuf> = hierarchies.iter().map(|hierarchy| hierarchy.join(&prefix)).collect();
        let watchdog = watch_over(&prefix, names, &roots, &directory);
        let switch = format!("{prefix}-sw");
        ip(&["netns", "add", &switch]);
        ip(&["-n", &switch, "link", "add", "name", "sw", "type", "bridge", "forward_delay", "0", "stp_state", "0"]);
        ip(&["-n", &switch, "link", "set", "sw", "up"]);
        for root in &roots {
            fs::create_dir(root).unwrap();
        }
        let nodes = names.iter().enumerate().map(|(index, name)| Node::cable(index, name, &prefix, &roots)).collect();
        Self { nodes, directory, watchdog }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        self.watchdog.wait().ok();
    }
}

impl Node {
    fn cable(index: usize, name: &str, prefix: &str, roots: &[PathBuf]) -> Self {
        let (switch, namespace) = (format!("{prefix}-sw"), format!("{prefix}-{name}"));
        let address = Ipv4Addr::new(10, 213, 77, u8::try_from(index + 1).unwrap());
        ip(&["netns", "add", &namespace]);
        let port = format!("port-{name}");
        ip(&["-n", &switch, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &namespace]);
        ip(&["-n", &switch, "link", "set", &port, "master", "sw", "up"]);
        ip(&["-n", &namespace, "addr", "add", &format!("{address}/24"), "dev", "eth0"]);
        ip(&["-n", &namespace, "link", "set", "eth0", "up"]);
        ip(&["-n", &namespace, "link", "set", "lo", "up"]);
        let inode = fs::metadata(format!("/run/netns/{namespace}")).unwrap().ino();
        let groups: Vec<PathBuf> = roots.iter().map(|root| root.join(name)).collect();
        for group in &groups {
            fs::create_dir(group).unwrap();
        }
        Self { name: name.to_owned(), address, namespace, inode, groups }
    }

    /// A command that will run in this namespace and in cgroups of its own, out of reach of our terminal's Ctrl-C. It is
    /// executed in place: its process id is the child's.
    pub fn command(&self, program: &Path) -> Command {
        let script = "for group in $CHAOS_GROUPS; do echo 0 >$group/cgroup.procs || exit 1; done; exec \"$@\"";
        let groups: Vec<_> = self.groups.iter().map(|group| group.to_str().unwrap()).collect();
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace));
        command.args(["sh", "-c", script, "sh"]).arg(program).env("CHAOS_GROUPS", groups.join(" ")).process_group(0);
        command
    }

    /// Runs a tool of the network's in here, with this on its standard input.
    pub fn tool(&self, program: &str, arguments: &[&str], input: &str) -> Output {
        let namespace = format!("--net=/run/netns/{}", self.namespace);
        let mut child = Command::new("nsenter")
            .args([&namespace, program])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{HELP}: {error}"));
        // A tool that reads nothing has closed its end.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        child.wait_with_output().unwrap()
    }

    /// Moves the calling thread, and what it starts, in here.
    pub fn enter(&self) {
        let file = fs::File::open(format!("/run/netns/{}", self.namespace)).unwrap();
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
    }

    /// The living processes in here, however they got here.
    pub fn processes(&self) -> Vec<i32> {
        let here = format!("net:[{}]", self.inode);
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|link| link == Path::new(&here)))
            .collect()
    }

    /// The v1 freezer of what runs in here. Unlike a stopped process, or one in a v2 freezer, a process frozen by it does
    /// not even die: it is as deep asleep as in a paused virtual machine.
    pub fn freezer(&self) -> Option<PathBuf> {
        self.groups.iter().map(|group| group.join("freezer.state")).find(|state| state.exists())
    }
}

/// Where we put processes into cgroups of our own: the v1 freezer, and the v2 hierarchy, as far as they are there. What
/// the subjects make below them goes when the lab goes.
fn hierarchies() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mounted = |wanted: &dyn Fn(&str, &str) -> bool| {
        mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (path, kind, options) = (words.next()?, words.next()?, words.next()?);
            wanted(kind, options).then(|| PathBuf::from(path))
        })
    };
    let freezer = mounted(&|kind, options| kind == "cgroup" && options.split(',').any(|option| option == "freezer"));
    let unified = mounted(&|kind, _| kind == "cgroup2");
    freezer.into_iter().chain(unified).collect()
}

/// Waits for the end of this process, then removes everything, whatever state it is in.
fn watch_over(prefix: &str, names: &[String], roots: &[PathBuf], directory: &Path) -> Child {
    let namespaces: Vec<String> =
        names.iter().map(String::as_str).chain(["sw"]).map(|name| format!("{prefix}-{name}")).collect();
    let roots: Vec<&str> = roots.iter().map(|root| root.to_str().unwrap()).collect();
    let script = r#"
        trap '' INT TERM HUP
        cat >/dev/null
        for round in 1 2 3; do
            for namespace in $CHAOS_NAMESPACES; do ip netns pids "$namespace" | xargs -r kill -KILL; done
            for root in $CHAOS_ROOTS; do for state in "$root"/*/freezer.state; do echo THAWED >"$state"; done; done
            sleep 0.2
        done
        for namespace in $CHAOS_NAMESPACES; do ip netns del "$namespace"; done
        for root in $CHAOS_ROOTS; do find "$root" -depth -type d -exec rmdir {} +; done
        rm -rf "$CHAOS_DIRECTORY""#;
    Command::new("setsid")
        .args(["sh", "-c", script])
        .env("CHAOS_NAMESPACES", namespaces.join(" "))
        .env("CHAOS_ROOTS", roots.join(" "))
        .env("CHAOS_DIRECTORY", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{HELP}: {error}"))
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap_or_else(|error| panic!("{HELP}: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {}: {complaint}\n{HELP}", arguments.join(" "));
}
