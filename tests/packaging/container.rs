//! In containers: as PID 1, and in the images that we ship, built by buildah and run by hand in namespaces (there is no engine here).

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{election, link, server};
use crate::support::packages::{said, source};
use crate::support::subject::{children_of, guards_of, is_alive};
use crate::support::{Running, Subject, wait};

/// What runs under unshare(1), whose death does not end a PID 1 that has become another user (`PR_SET_PDEATHSIG(2const)`).
struct Container(Running);

impl Deref for Container {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.0
    }
}

impl DerefMut for Container {
    fn deref_mut(&mut self) -> &mut Running {
        &mut self.0
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        for init in children_of(self.pid()) {
            kill(Pid::from_raw(init), Signal::SIGKILL).ok();
        }
    }
}

/// PID 1 of a PID namespace, in which the given shell script is executed first; its last word is the rest of the command line.
fn container(prepare: &str, process: &Command) -> Container {
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount", "--kill-child=KILL", "sh", "-ec", &format!("{prepare}\nexec \"$@\"")]);
    unshare.arg("sh").arg(process.get_program()).args(process.get_args());
    unshare.envs(process.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Container(Subject::start(unshare))
}

/// What it is called outside.
fn init_of(container: &Running) -> i32 {
    wait::for_some("there is a PID 1", || children_of(container.pid()).first().copied())
}

#[track_caller]
fn kill_guard_of(init: i32) {
    let guard = wait::for_some("PID 1 has a guard", || guards_of(init).first().copied());
    kill(Pid::from_raw(guard), Signal::SIGKILL).unwrap();
}

#[test]
fn as_pid_1_it_reaps_what_it_adopts_and_ends_its_tree_when_it_is_stopped() {
    let election = election();
    let process = election.steady_host("a").witness(&election.diary, &["daemonise"]).to_process();
    let mut host = container("mount -t proc proc /proc", &process);
    election.diary.until_noted("orphan");
    let init = init_of(&host);
    let sentinel = children_of(init);
    assert_eq!(sentinel.len(), 1, "{sentinel:?}");
    // As `docker exec` does: no process of the tree, and its orphans are PID 1's.
    for _ in 0..3 {
        let script = "sleep 0.2 & exit 0";
        said(Command::new("nsenter").args(["-t", &init.to_string(), "-p", "-m", "sh", "-c", script]));
    }
    wait::until("PID 1 has reaped them", || children_of(init) == sentinel);
    assert!(election.diary.somebody_lives());
    kill(Pid::from_raw(init), Signal::SIGTERM).unwrap();
    assert_eq!(host.code(), 0);
    assert!(!election.diary.somebody_lives());
    assert_eq!(election.state(), "free");
}

#[test]
fn as_pid_1_it_ends_the_tree_and_frees_the_lease_when_its_guard_is_killed() {
    let election = election();
    let process = election.steady_host("a").witness(&election.diary, &["daemonise", "ignore-term"]).to_process();
    let mut host = container("mount -t proc proc /proc", &process);
    election.diary.until_noted("orphan");
    kill_guard_of(init_of(&host));
    assert_eq!(host.code(), 70);
    assert!(!election.diary.somebody_lives());
    assert_eq!(election.state(), "free");
}

/// As `docker exec` leaves it behind: PID 1 has adopted it, and it is none of the tree.
#[test]
fn as_pid_1_it_does_not_end_what_it_has_adopted_when_its_guard_is_killed() {
    let election = election();
    let link = link();
    let host = election.host_behind(&link, "a").session_timeout("20s");
    let process = host.witness(&election.diary, &["daemonise"]).to_process();
    let host = container("mount -t proc proc /proc", &process);
    election.diary.until_noted("orphan");
    let init = init_of(&host);
    let sentinel = children_of(init);
    said(Command::new("nsenter").args([
        "-t",
        &init.to_string(),
        "-p",
        "-m",
        "sh",
        "-c",
        "sleep 1000 >&- 2>&- & exit 0",
    ]));
    let stranger = wait::for_some("PID 1 has adopted it", || {
        children_of(init).into_iter().find(|child| !sentinel.contains(child))
    });
    // PID 1 cannot release, and so has not ended when we look.
    link.stall();
    kill_guard_of(init);
    wait::until("the tree is gone", || !election.diary.somebody_lives());
    wait::until("PID 1 has seen it", || !is_alive(sentinel[0]));
    assert!(is_alive(stranger), "{}", host.log());
}

/// `unshare --pid` without `--mount-proc`: our children have other numbers in `/proc` than for us.
#[test]
fn with_the_proc_of_another_pid_namespace_it_refuses_to_start_in_one_line() {
    let election = election();
    let mut host = container("", &election.host("a").to_process());
    assert_eq!(host.code(), 78, "{}", host.log());
    assert_eq!(host.log().lines().count(), 1, "{}", host.log());
    assert!(host.log().contains("/proc belongs to another PID namespace"), "{}", host.log());
    assert!(election.diary.starts().is_empty());
}

/// Images in a store of their own.
struct Images(tempfile::TempDir);

impl Images {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.0.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn buildah(&self, words: &[&str]) -> String {
        let mut buildah = Command::new("buildah");
        buildah.arg("--root").arg(self.folder("store")).arg("--runroot").arg(self.folder("run"));
        said(buildah.args(["--storage-driver", "vfs"]).args(words)).trim().to_owned()
    }

    fn build(&self, name: &str, dockerfile: &Path, options: &[&str], context: &Path) {
        let (dockerfile, context) = (dockerfile.to_str().unwrap(), context.to_str().unwrap());
        let words = ["bud", "--isolation", "chroot", "--pull-never", "-t", name, "-f", dockerfile];
        self.buildah(&[&words, options, &[context]].concat());
    }

    /// Stands for Debian's: a shell, `sleep`, and the libraries that these and our programs want.
    fn build_base(&self) {
        let context = self.folder("base");
        let programs = ["/bin/sh", "/bin/sleep", "/usr/bin/env", env!("CARGO_BIN_EXE_zk-leader-run")];
        let libraries = said(Command::new("ldd").args(programs));
        let libraries = libraries.split_whitespace().filter(|word| word.starts_with('/') && !word.ends_with(':'));
        for file in libraries.chain(["/bin/sh", "/bin/sleep", "/usr/bin/env"]) {
            let copy = context.join("root").join(file.trim_start_matches('/'));
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(file, copy).unwrap();
        }
        for mount_point in ["proc", "dev"] {
            fs::create_dir_all(context.join("root").join(mount_point)).unwrap();
        }
        let dockerfile = context.join("Dockerfile");
        fs::write(&dockerfile, "FROM scratch\nCOPY root/ /\n").unwrap();
        self.build("docker.io/library/debian:bookworm-slim", &dockerfile, &[], &context);
    }

    /// As our Dockerfile makes it, from programs that are built already (and not static).
    fn build_ours(&self) {
        let built = self.folder("built/out");
        for program in [env!("CARGO_BIN_EXE_zk-leader-run"), env!("CARGO_BIN_EXE_zk-leaderctl")] {
            fs::copy(program, built.join(Path::new(program).file_name().unwrap())).unwrap();
        }
        let stage = format!("build={}", built.parent().unwrap().display());
        let dockerfile = source().join("packaging/container/Dockerfile");
        self.build("zk-leader-run", &dockerfile, &["--build-context", &stage], &self.folder("nothing"));
    }

    /// A container of an image, as its settings say.
    fn run(&self, image: &str, environment: &[(&str, &str)]) -> Container {
        let container = self.buildah(&["from", "--pull-never", image]);
        let root = self.buildah(&["mount", &container]);
        let image: Value = serde_json::from_str(&self.buildah(&["inspect", &container])).unwrap();
        let image = &image["OCIv1"]["config"];
        let words = |key: &str| image[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned());
        let mut process = Command::new("chroot");
        process.arg(format!("--userspec={}", image["User"].as_str().unwrap())).arg(&root);
        process.args(["/usr/bin/env", "-i"]);
        process.args(words("Env")).args(environment.iter().map(|(name, value)| format!("{name}={value}")));
        process.args(words("Entrypoint")).args(words("Cmd"));
        self::container(&format!("mount -t proc proc {root}/proc; mount --bind /dev {root}/dev"), &process)
    }
}

/// `examples/container`, on two hosts.
#[test]
fn the_image_of_the_example_runs_its_service_in_one_container_until_that_is_stopped() {
    let election = election();
    let images = Images::new();
    images.build_base();
    images.build_ours();
    let example = source().join("examples/container");
    images.build("my-service", &example.join("Dockerfile"), &[], &example);
    let path = format!("/zk-leader-run/{}", election.name);
    let servers = server().connect_string();
    let environment = [("ZK_LEADER_RUN_CONNECT", &*servers), ("ZK_LEADER_RUN_PATH", &path)];
    let start = |id| images.run("my-service", &[&environment[..], &[("ZK_LEADER_RUN_ID", id)]].concat());
    let runs = |container: &Running| container.output().contains("my-service: token");
    let mut first = start("a");
    wait::until("the first container leads", || runs(&first));
    let second = start("b");
    election.until_candidates(2);
    assert!(!runs(&second));
    kill(Pid::from_raw(init_of(&first)), Signal::SIGTERM).unwrap();
    assert_eq!(first.code(), 0);
    assert!(first.output().contains("my-service: stopped"), "{}", first.output());
    wait::until("the second container leads", || runs(&second));
}

/// What is in it but the command line was checked against the schemas of Kubernetes 1.37 by hand (decision 18).
#[test]
fn the_manifest_for_kubernetes_calls_us_with_options_that_we_have() {
    let manifest = include_str!("../../packaging/kubernetes/zk-leader-run.yaml");
    let line = manifest.lines().find_map(|line| line.trim().strip_prefix("args: ")).unwrap();
    let words: Vec<String> = serde_json::from_str(line).unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_zk-leader-run"));
    let command = process.arg("--dry-run").args(&words[..words.len() - 1]).arg("true");
    assert!(said(command).contains("0.0.0.0:8008"));
    assert_eq!(words.last().unwrap(), "my-service");
    let probe = manifest.lines().find(|line| line.contains("path: /leader,")).unwrap();
    assert!(
        probe.contains("failureThreshold: 1}"),
        "who leads no more is behind the service at most one period: {probe}"
    );
}

/// What a budget does not select, it does not protect; what a base does not list, it does not apply.
#[test]
fn the_disruption_budget_selects_the_pods_and_the_base_lists_the_manifest() {
    let manifest = include_str!("../../packaging/kubernetes/zk-leader-run.yaml");
    let documents: Vec<_> = manifest.split("\n---\n").collect();
    let of_kind = |kind: &str| documents.iter().find(|document| document.contains(&format!("kind: {kind}\n"))).unwrap();
    let selected = "selector: {matchLabels: {app: my-service}}";
    assert!(of_kind("PodDisruptionBudget").contains(selected) && of_kind("Deployment").contains(selected));
    // One pod is ready, the leader: any other budget would keep it, and the node, for ever.
    let asks_for_the_leader = of_kind("Deployment").contains("readinessProbe: {httpGet: {path: /leader");
    assert_eq!(asks_for_the_leader, of_kind("PodDisruptionBudget").contains("minAvailable: 0"));
    assert!(include_str!("../../packaging/kubernetes/kustomization.yaml").contains("resources: [zk-leader-run.yaml]"));
}
