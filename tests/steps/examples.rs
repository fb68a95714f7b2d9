//! The two worked examples, in namespaces of their own: they need root.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::sys::signal::Signal;

use super::{election, wait};
use crate::support::{Election, Running, Subject};

const HELP: &str = "this needs root, and `apt-get install iproute2 util-linux mount python3`";

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(path)
}

fn run(words: &[&str]) -> Output {
    Command::new(words[0]).args(&words[1..]).output().expect(HELP)
}

#[track_caller]
fn must(words: &[&str]) -> String {
    let told = run(words);
    assert!(told.status.success(), "{HELP}: {words:?}: {}", String::from_utf8_lossy(&told.stderr));
    String::from_utf8_lossy(&told.stdout).into_owned()
}

/// Two hosts and a neighbour on one switch; gone when dropped.
struct Segment(String);

impl Segment {
    fn build(name: &str) -> Self {
        let segment = Self(format!("zk{name}{}", std::process::id()));
        let switch = segment.of("sw");
        must(&["ip", "netns", "add", &switch]);
        must(&["ip", "-n", &switch, "link", "add", "sw", "type", "bridge", "forward_delay", "0", "stp_state", "0"]);
        must(&["ip", "-n", &switch, "link", "set", "sw", "up"]);
        for (number, node) in ["a", "b", "n"].iter().enumerate() {
            let (space, port) = (segment.of(node), format!("port-{node}"));
            must(&["ip", "netns", "add", &space]);
            must(&["ip", "-n", &switch, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &space]);
            must(&["ip", "-n", &switch, "link", "set", &port, "master", "sw", "up"]);
            must(&["ip", "-n", &space, "address", "add", &format!("192.0.2.{}/24", number + 1), "dev", "eth0"]);
            must(&["ip", "-n", &space, "link", "set", "eth0", "up"]);
        }
        segment
    }

    fn of(&self, node: &str) -> String {
        format!("{}-{node}", self.0)
    }

    fn has_address(&self, node: &str) -> bool {
        must(&["ip", "-n", &self.of(node), "address", "show", "dev", "eth0"]).contains("192.0.2.10/24")
    }

    fn hardware_address(&self, node: &str) -> String {
        must(&["ip", "netns", "exec", &self.of(node), "cat", "/sys/class/net/eth0/address"]).trim().to_owned()
    }

    /// Where the neighbour takes the address to be; it is not asked anew.
    fn known_at(&self) -> String {
        must(&["ip", "-n", &self.of("n"), "neighbour", "show", "192.0.2.10"])
    }

    /// The neighbour sends something to the address, and so asks who has it.
    fn neighbour_looks_for(&self, there: &str) {
        let send = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('192.0.2.10', 9))";
        must(&["ip", "netns", "exec", &self.of("n"), "python3", "-c", send]);
        wait::until("the neighbour knows the address", || self.known_at().contains(there));
    }

    /// A host whose steps work in its network namespace. It contends in ours, where the server is.
    fn host(&self, election: &Election, id: &str) -> Running {
        let step = |word: &str| {
            let script = example("virtual-ip/address.sh");
            format!("exec ip netns exec {} {} {word}", self.of(id), script.display())
        };
        let host =
            election.steady_host(id).option("--before-start", &step("take")).option("--after-stop", &step("drop"));
        host.env("ADDRESS", "192.0.2.10/24").env("INTERFACE", "eth0").spawn()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        for node in ["a", "b", "n", "sw"] {
            run(&["ip", "netns", "delete", &self.of(node)]);
        }
    }
}

#[test]
fn the_virtual_ip_moves_with_the_leader_and_the_neighbours_learn_of_it() {
    let election = election();
    let segment = Segment::build("s");
    let first = segment.host(&election, "a");
    election.diary.until_started(1);
    assert!(segment.has_address("a"));
    segment.neighbour_looks_for(&segment.hardware_address("a"));
    let _second = segment.host(&election, "b");
    election.until_candidates(2);
    first.signal(Signal::SIGTERM);
    election.diary.until_started(2);
    assert!(segment.has_address("b") && !segment.has_address("a"));
    let (there, told) = (segment.hardware_address("b"), || segment.known_at());
    wait::until("the neighbour learns of it without asking", || told().contains(&there));
    election.diary.assert_no_overlap();
}

#[test]
fn the_virtual_ip_is_dropped_any_number_of_times_and_a_failure_is_told() {
    let segment = Segment::build("d");
    let (space, script) = (segment.of("a"), example("virtual-ip/address.sh"));
    let step = |interface: &str, word: &str| {
        let interface = format!("INTERFACE={interface}");
        let settings = ["env", "ADDRESS=192.0.2.10/24", &interface, script.to_str().unwrap(), word];
        run(&[&["ip", "netns", "exec", &space], &settings[..]].concat())
    };
    assert!(step("eth0", "take").status.success() && segment.has_address("a"));
    for _ in 0..2 {
        assert!(step("eth0", "drop").status.success() && !segment.has_address("a"));
    }
    let told = step("eth7", "drop");
    assert!(!told.status.success() && String::from_utf8_lossy(&told.stderr).contains("eth7"), "{told:?}");
}

/// What a killed supervisor left at its host is taken over.
#[test]
fn the_virtual_ip_is_taken_over_from_a_host_that_could_not_drop_it() {
    let election = election();
    let segment = Segment::build("k");
    let first = segment.host(&election, "a");
    election.diary.until_started(1);
    segment.neighbour_looks_for(&segment.hardware_address("a"));
    let _second = segment.host(&election, "b");
    election.until_candidates(2);
    first.kill();
    election.diary.until_started(2);
    assert!(segment.has_address("a"), "there was nobody to drop it");
    let there = segment.hardware_address("b");
    wait::until("the neighbour goes to the new leader", || segment.known_at().contains(&there));
}

/// Two hosts with mount namespaces of their own, and one volume.
#[test]
fn the_volume_is_mounted_where_the_leader_is_and_nowhere_else() {
    let election = election();
    let directory = election.diary.directory();
    let (image, target) = (directory.join("image"), directory.join("volume"));
    std::fs::create_dir(&image).unwrap();
    std::fs::write(image.join("data"), "data").unwrap();
    std::fs::create_dir(&target).unwrap();
    let host = |id: &str| -> Running {
        let step = |word: &str| format!("exec {} {word}", example("mount/volume.sh").display());
        let host: Subject = election.steady_host(id);
        let host = host.option("--before-start", &step("mount")).option("--after-stop", &step("unmount"));
        let host = host.env("SOURCE", image.to_str().unwrap()).env("TARGET", target.to_str().unwrap());
        let host = host.env("FSTYPE", "none").env("OPTIONS", "bind");
        let mut space = Command::new("unshare");
        space.args(["--mount", "--propagation", "private"]);
        host.spawn_inside(space)
    };
    // As its processes see it.
    let is_mounted = |host: &Running| {
        let mounts = std::fs::read_to_string(format!("/proc/{}/mounts", host.pid())).unwrap_or_default();
        mounts.contains(target.to_str().unwrap())
    };
    let first = host("a");
    election.diary.until_started(1);
    assert!(is_mounted(&first));
    let second = host("b");
    election.until_candidates(2);
    assert!(!is_mounted(&second));
    let name = election.name.clone();
    let mut ctl = Command::new(env!("CARGO_BIN_EXE_zk-leaderctl"));
    assert!(ctl.args(["-z", election.servers(), "handover", &name]).status().unwrap().success());
    assert_eq!(election.diary.until_started(2).id, "b");
    assert!(is_mounted(&second) && !is_mounted(&first), "one at a time");
    election.diary.assert_no_overlap();
}
