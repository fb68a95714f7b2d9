//! What the command finds when it starts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use zk_leader_run::core::guard_messages::{Cause, ChildStatus};
use zk_leader_run::core::settings::Contain;
use zk_leader_run::guard::command::environment::Identity;
use zk_leader_run::guard::contain::children_of;
use zk_leader_run::guard::handle::{Settings, fork};

use crate::subject::{KINDS, LONG, Setting, Subject, name};

pub fn the_command_finds_default_signals_and_a_session_of_its_own(contain: Contain) {
    let script = r#"
        grep -E '^Sig(Blk|Ign):' /proc/self/status | tr '\t' ' '
        read -r stat </proc/self/stat
        set -- ${stat##*) }
        echo "parent's group, own group, session: $3 $4"
        echo "$$"
    "#;
    // The way a script or cron job may be started: hang-ups and broken pipes ignored, a signal blocked.
    let mut setting = Setting::new(contain, &["sh", "-c", script]);
    let wrapped = wrapped(&setting.command, r#"trap "" HUP PIPE USR1; exec "$@""#);
    setting.command = wrapped;
    let mut subject = setting.run();
    subject.start(LONG);
    subject.says("SigBlk: 0000000000000000");
    subject.says("SigIgn: 0000000000000000");
    let ids = subject.line();
    let pid = subject.line();
    assert_eq!(ids, format!("parent's group, own group, session: {pid} {pid}"));
    assert_eq!(subject.ends().1, ChildStatus::Exited(0));
}

/// Started by a shell that does something first.
fn wrapped(command: &Command, script: &str) -> Command {
    inside("sh", &["-c", script, "sh"], command)
}

/// Opens the user's seventh descriptor.
const SEVEN: &str = r#"exec 7<"$DIR/seven"; exec "$@""#;

pub fn the_command_gets_the_users_descriptors_and_none_of_ours(contain: Contain) {
    let script = "ls -m /proc/$$/fd; cat <&7";
    let mut setting = Setting::new(contain, &["sh", "-c", script]);
    fs::write(setting.dir.path().join("seven"), "the user's\n").unwrap();
    setting.command = wrapped(&setting.command, SEVEN);
    // Whoever started this test may have left descriptors open: what the command would get without a guard.
    let without_a_guard = wrapped(Command::new("sh").args(["-c", script]).env("DIR", setting.dir.path()), SEVEN);
    let output = { without_a_guard }.output().unwrap();
    let descriptors = String::from_utf8(output.stdout).unwrap().lines().next().unwrap().to_owned();
    let mut subject = setting.run();
    subject.start(LONG);
    subject.says(&descriptors);
    subject.says("the user's");
    assert_eq!(subject.ends().1, ChildStatus::Exited(0));
}

pub fn the_environment_is_the_terms_and_nobody_elses(contain: Contain) {
    let script = "env | grep -E '^(ZK_LEADER_|NOTIFY_|WATCHDOG_|LISTEN_|KEPT)' | sort \
        | sed -E 's,(LEASE=)/(proc|run|dev/shm)/.*,\\1FILE,'; echo end; pwd";
    let mut setting = Setting::new(contain, &["sh", "-c", script]);
    let not_for_the_command = [
        ("ZK_LEADER_TOKEN", "1"),
        ("ZK_LEADER_TAKEOVER", "first"),
        ("ZK_LEADER_LEASE", "/of/another/run"),
        ("ZK_LEADER_RUN_CONNECT", "secret"),
        ("NOTIFY_SOCKET", "/run/systemd/notify"),
        ("WATCHDOG_USEC", "1"),
        ("LISTEN_FDS", "1"),
    ];
    setting.command.envs(not_for_the_command).env("KEPT", "as it was").current_dir("/");
    let mut subject = setting.run();
    subject.start(LONG);
    let expected = [
        "KEPT=as it was",
        "ZK_LEADER_CANDIDATE=",
        "ZK_LEADER_ID=driver:1",
        "ZK_LEADER_LEASE=FILE",
        "ZK_LEADER_PATH=/zk-leader-run/test",
        "ZK_LEADER_SESSION=0x100000000000001",
        "ZK_LEADER_SLOT=1",
        "ZK_LEADER_TAKEOVER=unclean",
        "ZK_LEADER_TERM=5",
        "ZK_LEADER_TOKEN=4294967299",
        "end",
        "/",
    ];
    for line in expected {
        subject.says(line);
    }
    assert_eq!(subject.ends().1, ChildStatus::Exited(0));
}

/// A file system that anybody stands in cannot be unmounted.
pub fn the_command_keeps_the_working_directory_and_the_guard_does_not(contain: Contain) {
    let mut setting = Setting::new(contain, &["./job"]);
    let directory = fs::canonicalize(setting.dir.path()).unwrap();
    fs::write(directory.join("job"), "#!/bin/sh\npwd\ncat data\nread -r line\n").unwrap();
    fs::set_permissions(directory.join("job"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(directory.join("data"), "relative\n").unwrap();
    setting.command.current_dir(&directory);
    let mut subject = setting.run();
    let guard = format!("/proc/{}/cwd", subject.guard.pid);
    for _ in 0..2 {
        subject.start(LONG);
        subject.says(directory.to_str().unwrap());
        subject.says("relative");
        assert_eq!(fs::read_link(&guard).unwrap().to_str(), Some("/"));
        for child in children_of(subject.guard.pid) {
            let stands_in = fs::read_link(format!("/proc/{child}/cwd")).unwrap();
            let is_init = contain == Contain::PidNamespace;
            assert_eq!(stands_in, if is_init { PathBuf::from("/") } else { directory.clone() });
        }
        subject.writes("go on");
        subject.ends();
    }
}

pub fn a_command_that_cannot_be_executed_says_why(contain: Contain) {
    for (program, errno) in
        [("/no/such/command", libc::ENOENT), ("no-such-command-on-the-path", libc::ENOENT), ("/", libc::EACCES)]
    {
        let mut setting = Setting::new(contain, &[program]);
        setting.command.env("PATH", "/usr/bin:/bin");
        let mut subject = setting.run();
        subject.start(LONG);
        let (reports, status, cause) = subject.ends();
        assert_eq!((status, cause), (ChildStatus::NotExecuted(errno), Cause::ItsOwn), "{program}");
        let is_taken = |report: &_| matches!(report, zk_leader_run::core::guard_messages::Report::Taken { .. });
        assert!(reports.iter().filter(|report| !is_taken(report)).count() == 1, "it never started: {reports:?}");
    }
}

/// As a deploy does that switches a symbolic link and removes what is old. The program itself is where it was.
pub fn a_command_whose_working_directory_is_gone_says_so(contain: Contain) {
    let mut setting = Setting::new(contain, &["/bin/true"]);
    let (directory, errors) = (setting.dir.path().join("release"), setting.dir.path().join("errors"));
    fs::create_dir(&directory).unwrap();
    let directory = fs::canonicalize(directory).unwrap();
    setting.command.current_dir(&directory).stderr(fs::File::create(&errors).unwrap());
    let mut subject = setting.run();
    subject.start(LONG);
    assert_eq!(subject.ends().1, ChildStatus::Exited(0));
    fs::remove_dir(&directory).unwrap();
    subject.start(LONG);
    let (_, status, cause) = subject.ends();
    assert_eq!((status, cause), (ChildStatus::NotExecuted(libc::ESTALE), Cause::ItsOwn));
    assert!(status.failed_for_now());
    let said = fs::read_to_string(errors).unwrap();
    assert!(said.contains(directory.to_str().unwrap()) && said.contains("No such file"), "{said}");
    fs::create_dir(&directory).unwrap();
    subject.start(LONG);
    assert_eq!(subject.ends().1, ChildStatus::Exited(0));
}

pub fn the_command_is_looked_up_on_the_path_and_may_be_a_bare_script(contain: Contain) {
    let mut setting = Setting::new(contain, &["bare-script", "an argument"]);
    let script = setting.dir.path().join("bare-script");
    fs::write(&script, "echo \"$0 got $1\"\nexit 5\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", setting.dir.path().display(), std::env::var("PATH").unwrap());
    setting.command.env("PATH", path);
    let mut subject = setting.run();
    let script = script.display().to_string();
    subject.start(LONG);
    subject.says(&format!("{script} got an argument"));
    assert_eq!(subject.ends().1, ChildStatus::Exited(5));
}

pub fn a_namespace_shows_its_own_processes_only() {
    let mut subject = Subject::script(Contain::PidNamespace, "ls /proc | grep -c '^[0-9]'; id -u; echo $PPID");
    subject.start(LONG);
    let processes: u32 = subject.line().parse().unwrap();
    assert!(processes <= 4, "init, the shell, ls and grep, not {processes}");
    subject.says(&nix::unistd::getuid().to_string());
    subject.says("1");
    assert_eq!(subject.ends().1, ChildStatus::Exited(0));
}

/// An ordinary user may or may not have a cgroup delegated; what `auto` says about it is what `cgroup` is refused for.
fn a_refusal_names_the_option_and_the_reason() {
    let auto = Setting::new(Contain::Auto, &["true"]).of_an_ordinary_user().run();
    let Some((_, reason)) = auto.containment.split_once("no cgroup of our own: ") else { return };
    let reason = reason.split_once("zk-leader-run-").map_or(reason, |(reason, _pid)| reason);
    let mut setting = Setting::new(Contain::Cgroup, &["true"]).of_an_ordinary_user();
    let refused = setting.command.stderr(std::process::Stdio::piped()).output().unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("--contain cgroup is not possible here: ") && message.contains(reason), "{message}");
}

pub fn the_containment_is_chosen_and_explained_before_any_command_runs() {
    for contain in KINDS.into_iter().chain([Contain::Auto]) {
        let subject = Setting::new(contain, &["true"]).run();
        let expected = match contain {
            Contain::Subreaper => "subreaper (as asked for)",
            Contain::Cgroup => "cgroup /",
            Contain::PidNamespace => "PID ",
            Contain::Auto | Contain::ProcessGroup => "",
        };
        assert!(subject.containment.starts_with(expected), "{}: {}", name(contain), subject.containment);
        assert!(subject.containment.contains("freezing is"));
    }
    a_refusal_names_the_option_and_the_reason();
    // Not from this process, which has threads: a guard of it would inherit their locks.
    let settings = Settings {
        command: vec!["true".into()],
        identity: Identity { id: String::new(), path: String::new() },
        stop_signal: libc::SIGTERM,
        contain: Contain::Subreaper,
        foreground: false,
        releaser: None,
    };
    let refused = fork(settings).unwrap_err().to_string();
    assert!(refused.contains("started a thread before our main function"), "{refused}");
}

pub fn where_no_tree_could_be_ended_no_guard_is_started_and_the_reason_is_told() {
    let told = |program: &str, options: &[&str]| {
        let setting = Setting::new(Contain::Subreaper, &["true"]);
        let mut refused = inside(program, options, &setting.command);
        let output = refused.stderr(std::process::Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let of_another_namespace = told("unshare", &["--map-root-user", "--pid", "--fork"]);
    assert!(of_another_namespace.contains("/proc belongs to another PID namespace"), "{of_another_namespace}");
    let without_a_timer = told("prlimit", &["--sigpending=0"]);
    assert!(without_a_timer.contains("ulimit -i"), "{without_a_timer}");
}

/// The same command with the same environment, started by another program.
fn inside(program: &str, options: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(program);
    outer.args(options).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        outer.env(name, value.unwrap());
    }
    outer.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    outer
}
