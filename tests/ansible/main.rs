//! The Ansible role (`packaging/ansible`), played by Debian's ansible under a real systemd: `make ansible`. Not a part of `make test`,
//! since each play takes seconds.
//!
//! Never: a sleep in place of a condition.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};
use support::packages::{self, said};
use support::standalone::{election, server};
use support::subject::example;
use support::{Election, SystemdBox, wait};

/// A host of its own name, with Ansible and the role on it.
struct Host {
    systemd: SystemdBox,
    unit: String,
    vars: Value,
}

impl Host {
    /// In one election, whose command is a witness.
    fn of(election: &Election) -> Self {
        let files = tempfile::tempdir().unwrap();
        let put = |at: &str, from: &std::path::Path| {
            let path = files.path().join(at);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            said(Command::new("cp").arg("-R").arg(from).arg(&path));
        };
        put("root/roles", &packages::source().join("packaging/ansible"));
        put("root/zk-leader-run.deb", packages::debian());
        put("usr/local/bin/witness", &example("witness"));
        // The command runs as another user than we.
        fs::set_permissions(election.diary.directory(), fs::Permissions::from_mode(0o777)).unwrap();
        let systemd = SystemdBox::boot(files.path(), election.diary.directory());
        systemd.must("hostname boxed; rm -f /var/lib/man-db/auto-update");
        let vars = json!({
            "zk_leader_run_package": "/root/zk-leader-run.deb",
            "zk_leader_run_connect": server().connect_string(),
            "zk_leader_run_settings": { "session-timeout": "20s", "on-exit": "rejoin" },
            "zk_leader_run_identities": [format!("digest:ops:{SECRET}")],
            "zk_leader_run_elections": [{
                "name": election.name,
                "command": "/usr/local/bin/witness /shared/diary",
                "settings": { "stop-timeout": "21s" },
                "unit": "[Service]\nReadWritePaths=/shared\n",
            }],
        });
        Self { systemd, unit: format!("zk-leader-run@{}", election.name), vars }
    }

    fn election(&mut self) -> &mut Value {
        &mut self.vars["zk_leader_run_elections"][0]
    }

    /// Whether a play of the role's tasks went through, and what it said.
    fn try_play(&self, tasks: &str, options: &str) -> (bool, String) {
        let role = json!({ "name": "zk_leader_run", "tasks_from": tasks });
        let play = json!([{ "hosts": "all", "vars": self.vars, "tasks": [{ "ansible.builtin.include_role": role }] }]);
        let script = format!(
            "cat >/root/play.yml <<'END'\n{play}\nEND\n\
             export ANSIBLE_ROLES_PATH=/root/roles ANSIBLE_NOCOLOR=1 ANSIBLE_LOCALHOST_WARNING=0 LC_ALL=C.UTF-8\n\
             timeout 300 ansible-playbook -i localhost, -c local -e ansible_python_interpreter=/usr/bin/python3 \
             --diff -v {options} /root/play.yml"
        );
        self.systemd.try_run(&["bash", "-c", &script])
    }

    #[track_caller]
    fn play(&self, tasks: &str, options: &str) -> Played {
        let (is_through, text) = self.try_play(tasks, options);
        assert!(is_through, "{text}\n{}", self.systemd.journal());
        assert!(!text.contains(SECRET), "a secret was shown: {text}");
        let changed = text.rsplit_once("changed=").expect("a recap").1;
        let changed = changed.split(' ').next().unwrap().parse().unwrap();
        Played { changed, text }
    }

    fn process(&self) -> String {
        self.systemd.property(&self.unit, "MainPID")
    }
}

const SECRET: &str = "geheim4711";

struct Played {
    changed: u32,
    text: String,
}

#[test]
fn a_preview_changes_nothing_the_first_run_everything_and_a_second_nothing_again() {
    let election = election();
    let host = Host::of(&election);
    let systemd = &host.systemd;
    let preview = host.play("main", "--check");
    assert!(preview.changed > 5, "{}", preview.text);
    systemd.must("! test -e /etc/zk-leader-run; ! test -e /usr/bin/zk-leader-run; ! test -e /var/cache/zk-leader-run");

    host.play("main", "");
    systemd.until_told(&host.unit, "leading, token ");
    election.diary.until_started(1);
    assert_eq!(systemd.ctl("is-enabled", &[&host.unit]), "enabled");
    let modes = systemd.must("cd /etc/zk-leader-run; stat -c '%n %U %G %a' *");
    let expected =
        format!("config.toml root root 644\n{}.env root root 600\nidentities root zk-leader-run 640", election.name);
    assert_eq!(modes, expected);
    // What was written is what the program reads.
    let running = format!("tr '\\0' '\\n' </proc/{}/environ", host.process());
    assert!(systemd.must(&running).contains("ZK_LEADER_RUN_ON_EXIT=rejoin"));
    let settings = systemd.must(&format!("zk-leader-run --name {} --print-config -- true", election.name));
    for line in ["session-timeout = \"20s\"", "stop-timeout = \"21s\"", "auth-file = \"/etc/zk-leader-run/identities\""]
    {
        assert!(settings.contains(line), "{line}: {settings}");
    }
    systemd.must("zk-leader-run --dry-run -- true");
    systemd.must(&format!("zk-leaderctl status {}", election.name));

    for options in ["", "--check"] {
        let again = host.play("main", options);
        assert_eq!(again.changed, 0, "{options} {}", again.text);
    }
    assert_eq!(election.diary.starts().len(), 1);
}

#[test]
fn new_settings_are_taken_up_in_place_and_what_needs_a_restart_is_said() {
    let election = election();
    let mut host = Host::of(&election);
    host.play("main", "");
    host.systemd.until_told(&host.unit, "leading, token ");
    election.diary.until_started(1);
    let process = host.process();

    host.election()["settings"]["stop-timeout"] = json!("22s");
    host.play("main", "");
    assert!(host.systemd.journal().contains("Upgraded from"), "{}", host.systemd.journal());

    host.vars["zk_leader_run_settings"]["session-timeout"] = json!("19s");
    let (is_through, text) = host.try_play("main", "");
    assert!(!is_through && text.contains("--session-timeout has changed; a restart applies it"), "{text}");

    host.election()["command"] = json!("/usr/local/bin/witness /shared/diary daemonise");
    let needed = format!("systemctl restart {} is needed", host.unit);
    for _ in 0..2 {
        let played = host.play("main", "");
        assert!(played.text.contains(&needed), "{}", played.text);
    }
    assert_eq!((host.process(), election.diary.starts().len()), (process, 1));

    host.vars["zk_leader_run_restart"] = json!(true);
    assert_eq!(host.play("main", "").changed, 1);
    election.diary.until_started(2);
    let again = host.play("main", "");
    assert!(again.changed == 0 && !again.text.contains(&needed), "{}", again.text);
    election.diary.assert_no_overlap();
}

#[test]
fn a_service_that_logs_no_more_than_warnings_takes_its_settings_up_in_place() {
    let election = election();
    let mut host = Host::of(&election);
    host.vars["zk_leader_run_settings"]["log-level"] = json!("warn");
    host.play("main", "");
    host.systemd.until_told(&host.unit, "leading, token ");
    election.diary.until_started(1);
    let process = host.process();
    // Where the kernel has put the program: elsewhere with each execution.
    let program = || host.systemd.must(&format!("cksum </proc/{process}/auxv"));
    let before = program();

    host.vars["zk_leader_run_restart"] = json!(true);
    host.vars["zk_leader_run_elections"][0]["settings"]["stop-timeout"] = json!("22s");
    host.play("main", "");
    assert_ne!(program(), before);
    assert_eq!((host.process(), election.diary.starts().len()), (process.clone(), 1));

    host.vars["zk_leader_run_restart"] = json!(false);
    host.vars["zk_leader_run_settings"]["session-timeout"] = json!("19s");
    let (is_through, text) = host.try_play("main", "");
    assert!(!is_through && text.contains("--session-timeout has changed; a restart applies it"), "{text}");
}

#[test]
fn a_service_that_is_not_in_line_yet_delays_no_run_and_takes_up_what_is_corrected() {
    let election = election();
    let mut host = Host::of(&election);
    let servers = host.vars["zk_leader_run_connect"].take();
    host.vars["zk_leader_run_connect"] = json!("127.0.0.1:1");
    host.play("main", "");
    host.systemd.until_state(&host.unit, "activating start");
    assert_eq!(host.play("main", "").changed, 0);

    // No command is there that a restart could disturb.
    host.election()["command"] = json!("/usr/local/bin/witness /shared/diary daemonise");
    host.play("main", "");
    wait::until("it will run the new command", || {
        host.systemd.run(&["sh", "-c", &format!("cat /proc/{}/cmdline", host.process())]).contains("daemonise")
    });
    host.vars["zk_leader_run_connect"] = servers;
    host.play("main", "");
    host.systemd.until_told(&host.unit, "leading, token ");
    election.diary.until_started(1);
    assert_eq!(host.play("main", "").changed, 0);
}

#[test]
fn settings_that_the_program_refuses_are_not_written() {
    let election = election();
    let mut host = Host::of(&election);
    // The unit's --on-exit is restart.
    host.vars["zk_leader_run_settings"] = json!({ "session-timeout": "20s" });
    host.election()["settings"]["restart"] = json!("always");
    host.play("main", "");
    let before = host.systemd.must("cat /etc/zk-leader-run/config.toml");
    host.election()["settings"]["stop-timeout"] = json!("soon");
    let (is_through, text) = host.try_play("main", "");
    assert!(!is_through && text.contains("stop-timeout"), "{text}");
    assert_eq!(host.systemd.must("cat /etc/zk-leader-run/config.toml"), before);
    host.election()["settings"]["stop-timeout"] = json!("21s");
    host.vars["zk_leader_run_settings"]["sesion-timeout"] = json!("20s");
    let (is_through, text) = host.try_play("main", "");
    assert!(!is_through && text.contains("sesion-timeout"), "{text}");
    assert_eq!(host.systemd.must("cat /etc/zk-leader-run/config.toml"), before);
    host.vars["zk_leader_run_connect"] = json!("");
    let (is_through, text) = host.try_play("main", "");
    assert!(!is_through && text.contains("zk_leader_run_connect must name the servers"), "{text}");
}

#[test]
fn a_host_is_drained_before_its_upgrade_and_undrained_after_it() {
    let election = election();
    let mut host = Host::of(&election);
    host.play("main", "");
    election.diary.until_started(1);
    host.systemd.until_told(&host.unit, "leading, token ");
    // Where nobody else could lead, the upgrade is not begun.
    let root = format!("/drained-{}", election.name);
    host.vars["zk_leader_run_drain_timeout"] = json!("30s");
    let (is_through, text) = host.try_play("drain", "");
    assert!(!is_through && text.contains("no other host could lead"), "{text}");
    host.play("undrain", "");

    let _other = election.host("other").session_timeout("20s").spawn();
    wait::until("both have said who they are", || election.admin.children(&election.path("members")).len() == 2);
    host.play("drain", "");
    assert_eq!(election.diary.until_started(2).id, "other");
    assert_eq!(host.play("undrain", "").changed, 1);
    assert_eq!(host.play("undrain", "").changed, 0);
    // Below another root nothing is led, and nothing is drained.
    host.vars["zk_leader_run_drain_root"] = json!(root);
    assert_eq!(host.play("undrain", "").changed, 0);
    let (is_through, text) = host.try_play("drain", "");
    assert!(!is_through && text.contains("does not exist"), "{text}");
    host.systemd.ctl("stop", &[&host.unit]);
    host.play("drain", "");
    election.admin.create_all(&root);
    host.play("drain", "");
    host.systemd.ctl("start", &[&host.unit]);
    let (is_through, text) = host.try_play("drain", "");
    assert!(!is_through && text.contains("No host called boxed"), "{text}");
    election.diary.assert_no_overlap();
}

#[test]
fn an_election_and_then_everything_is_removed_without_a_trace() {
    let election = election();
    let mut host = Host::of(&election);
    let job = "it's \"$1\" `now` \\ here";
    let entry = json!({ "name": "job", "command": "/bin/echo a  b", "period": "1h", "calendar": "*-*-* 02:00", "settings": { "wait": job } });
    host.vars["zk_leader_run_elections"].as_array_mut().unwrap().push(entry);
    host.play("main", "");
    election.diary.until_started(1);
    let timer = host.systemd.ctl("show", &["-p", "TimersCalendar", "-p", "ActiveState", "zk-leader-run-job@job.timer"]);
    assert!(timer.contains("OnCalendar=*-*-* 02:00:00") && timer.contains("ActiveState=active"), "{timer}");
    // systemd reads what the role has quoted.
    host.systemd.run(&["systemctl", "start", "zk-leader-run-job@job"]);
    let journal = host.systemd.journal();
    assert!(journal.contains(job), "{journal}");

    host.vars["zk_leader_run_elections"][1]["state"] = json!("absent");
    host.play("main", "");
    assert_eq!(host.systemd.ctl("is-active", &["zk-leader-run-job@job.timer"]), "inactive");
    host.systemd.must("! find /etc | grep zk-leader-run | grep job");
    assert!(election.diary.somebody_lives());

    host.vars["zk_leader_run_state"] = json!("absent");
    host.play("main", "");
    election.diary.until_nobody_lives();
    assert_eq!(election.state(), "free");
    assert_eq!(host.systemd.must("find /etc /usr /var -name '*zk-leader*'"), "/var/lib/zk-leader-run");
    assert_eq!(host.play("main", "").changed, 0);
}

#[test]
fn an_archive_is_installed_upgraded_and_removed_as_a_package_is() {
    let election = election();
    let mut host = Host::of(&election);
    let root = tempfile::tempdir().unwrap();
    let mut install = Command::new("sh");
    install.arg(packages::source().join("packaging/install.sh"));
    install.arg(std::path::Path::new(env!("CARGO_BIN_EXE_zk-leader-run")).parent().unwrap());
    said(install.env("DESTDIR", root.path()).env("PREFIX", "/usr/local"));
    let readme = fs::read_to_string(packages::source().join("packaging/ansible/zk_leader_run/README.md")).unwrap();
    let tar = readme.lines().find(|line| line.starts_with("(cd root && ")).unwrap();
    let folder = election.diary.directory();
    said(Command::new("cp").arg("-R").arg(root.path()).arg(folder.join("root")));
    said(Command::new("sh").args(["-c", tar]).current_dir(folder));
    host.vars["zk_leader_run_archive"] = json!("/shared/zk-leader-run.tar.gz");

    host.play("main", "--check");
    host.play("main", "");
    host.systemd.until_told(&host.unit, "leading, token ");
    election.diary.until_started(1);
    let process = host.process();
    host.systemd.must(&format!("test /proc/{process}/exe -ef /usr/local/bin/zk-leader-run"));
    let again = host.play("main", "");
    assert_eq!(again.changed, 0, "{}", again.text);

    said(
        Command::new("sh").args(["-c", &format!("touch root/usr/local/bin/zk-leader-run; {tar}")]).current_dir(folder),
    );
    host.play("main", "");
    wait::until("it has gone on with the new program", || host.systemd.journal().contains("Upgraded from"));
    assert_eq!(host.process(), process);

    host.vars["zk_leader_run_state"] = json!("absent");
    host.play("main", "");
    election.diary.until_nobody_lives();
    let left = host.systemd.must("find /etc /usr/local -name '*zk-leader*' -type f");
    assert_eq!(left, "");
}
