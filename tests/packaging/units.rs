//! The package that we ship, and its units, under a real systemd.

use std::fs;

use super::{election, server};
use crate::support::units::{A, B, Files};
use crate::support::{packages, wait};

/// T33: what the command says to systemd, by whatever way it finds, is nobody's business.
const IMPOSTOR: &str = "#!/bin/sh\n\
                        for socket in \"${NOTIFY_SOCKET:-/run/systemd/notify}\" /run/systemd/notify; do\n\
                        NOTIFY_SOCKET=$socket systemd-notify --ready --status=impostor STOPPING=1\n\
                        done\n\
                        exec witness \"$@\"\n";

const LONG_LEASE: &str = "ZK_LEADER_RUN_SESSION_TIMEOUT=20s\n";

/// Says what it may do.
const PROBE: &str = "#!/bin/sh\n\
                     exec >/shared/probe 2>&1\n\
                     id -un; grep ^CapBnd /proc/self/status; touch /etc/x /home/x /usr/x\n\
                     touch \"$STATE_DIRECTORY/x\" && echo kept; cat /proc/self/cgroup\n\
                     exec sleep 1000\n";

#[test]
fn under_a_real_systemd_a_standby_is_active_and_every_way_to_end_moves_the_command() {
    let election = election();
    let systemd = Files::of_two_hosts(&election, IMPOSTOR, LONG_LEASE).install(&election);
    systemd.ctl("start", &[A]);
    systemd.until_told(A, "leading, token ");
    election.diary.until_started(1);
    systemd.ctl("start", &[B]);
    systemd.until_told(B, "following, next in line");
    // T33
    assert_eq!([systemd.state(A), systemd.state(B)], ["active running"; 2]);
    systemd.until_told(A, "leading, token ");

    let token = election.term().mzxid;
    systemd.run(&["journalctl", "--sync"]);
    let journal =
        systemd.run(&["journalctl", "-o", "cat", "ZK_LEADER_TO=leading", &format!("ZK_LEADER_TOKEN={token}")]);
    assert!(journal.starts_with("following -> leading:"), "{journal}");
    let units = systemd.run(&["journalctl", "-o", "cat", "-u", A, "PRIORITY=6"]);
    assert!(units.contains("Command started"), "{units}");

    systemd.ctl("stop", &[A]);
    assert_eq!(systemd.state(A), "inactive dead");
    systemd.until_told(B, "leading, token ");
    assert_eq!(election.diary.until_started(2).told[1], "clean");

    // The supervisor alone is killed; the guard ends the tree and frees the lease.
    systemd.ctl("start", &[A]);
    systemd.until_told(A, "following, next in line");
    systemd.ctl("kill", &["--kill-whom=main", "--signal=KILL", B]);
    let start = election.diary.until_started(3);
    assert_eq!((start.id.as_str(), start.told[1].as_str()), ("a", "clean"), "the lease of 20 s was not freed");
    election.diary.assert_no_overlap();
    systemd.until_told(B, "following, next in line");
}

/// Says which signals it gets, and takes a second one as an order to end at once, as many programs do.
const LISTENER: &str = "#!/bin/sh\n\
                        trap 'echo TERM >>/shared/heard; [ -z \"$told\" ] || exit 9; told=1' TERM\n\
                        trap 'echo INT >>/shared/heard' INT\n\
                        echo started >>/shared/heard\n\
                        until grep -q \"$SIGNAL\" /shared/heard; do sleep 0.1; done\n\
                        sleep 1; echo done >>/shared/heard\n";

#[test]
fn a_stopped_unit_tells_its_command_once_and_by_its_own_stop_signal() {
    for signal in ["TERM", "INT"] {
        let election = election();
        let settings = format!("{LONG_LEASE}SIGNAL={signal}\nZK_LEADER_RUN_STOP_SIGNAL={signal}\n");
        let systemd = Files::of_two_hosts(&election, LISTENER, &settings).install(&election);
        let heard = || fs::read_to_string(election.diary.directory().join("heard")).unwrap_or_default();
        systemd.ctl("start", &[A]);
        wait::until("the command has started", || heard() == "started\n");
        systemd.ctl("stop", &[A]);
        assert_eq!(heard(), format!("started\n{signal}\ndone\n"), "{}", systemd.journal());
        assert_eq!(systemd.state(A), "inactive dead", "{}", systemd.journal());
    }
}

#[test]
fn a_unit_without_its_settings_is_not_started_again_and_again() {
    let election = election();
    let systemd = Files::of_two_hosts(&election, IMPOSTOR, "").install(&election);
    let unit = "zk-leader-run@typo";
    assert!(!systemd.try_run(&["systemctl", "start", unit]).0);
    assert_eq!((systemd.state(unit).as_str(), systemd.property(unit, "NRestarts").as_str()), ("inactive dead", "0"));
}

/// The sandbox takes nothing away that the promise rests on.
#[test]
fn in_its_sandbox_the_command_has_a_cgroup_of_its_own_no_rights_and_one_folder() {
    let election = election();
    let systemd = Files::of_two_hosts(&election, PROBE, "").install(&election);
    systemd.ctl("start", &[A]);
    systemd.until_told(A, "leading, token ");
    let report = || fs::read_to_string(election.diary.directory().join("probe")).unwrap_or_default();
    wait::until("the command looked around", || report().contains("0::/"));
    let report = report();
    for fact in ["zk-leader-run\n", "CapBnd:\t0000000000000000", "kept", "/zk-leader-run@a.service/zk-leader-run-"] {
        assert!(report.contains(fact), "no {fact}:\n{report}");
    }
    assert_eq!(report.matches("touch: cannot touch").count(), 3, "{report}");
    let score = || systemd.run(&["systemd-analyze", "security", "--no-pager", A]).lines().last().unwrap().to_owned();
    assert!(score().contains("exposure level for zk-leader-run@a.service: 1.9 OK"), "{}", score());
    // One link lifts it.
    systemd.must(
        "mkdir -p /etc/systemd/system/zk-leader-run@a.service.d\n\
         ln -s /dev/null /etc/systemd/system/zk-leader-run@a.service.d/10-sandbox.conf\n\
         systemctl daemon-reload",
    );
    assert!(score().contains("9.2 UNSAFE"), "{}", score());
}

#[test]
fn the_package_is_removed_with_what_runs_and_purged_without_a_trace() {
    let election = election();
    let systemd = Files::of_two_hosts(&election, IMPOSTOR, LONG_LEASE).install(&election);
    systemd.ctl("enable", &["--now", A]);
    systemd.until_told(A, "leading, token ");
    election.diary.until_started(1);
    let process = systemd.property(A, "MainPID");
    systemd.must("test -e /usr/share/man/man1/zk-leader-run.1.gz");

    // An upgrade of the package leaves alone a file that was changed, and puts the new program into the place of what runs. The
    // command does not notice.
    systemd.must("echo 'stop-timeout = \"1m\"' >>/etc/zk-leader-run/config.toml");
    // Not even a systemd that does not answer stops it.
    systemd.must(
        "mount --bind /bin/false /usr/bin/systemctl\n\
         DEBIAN_FRONTEND=noninteractive apt-get install -y --reinstall /zk-leader-run.deb\n\
         umount /usr/bin/systemctl\n\
         DEBIAN_FRONTEND=noninteractive apt-get install -y --reinstall /zk-leader-run.deb",
    );
    let upgraded = |times| systemd.run(&["journalctl", "-o", "cat", "-u", A]).matches("Upgraded from").count() == times;
    wait::until("the supervisor is upgraded", || upgraded(1));
    systemd.must(&format!("test /proc/{process}/exe -ef /usr/bin/zk-leader-run"));
    assert!(systemd.must("cat /etc/zk-leader-run/config.toml").contains("\"1m\""));
    // And so does a reload.
    systemd.ctl("reload", &[A]);
    wait::until("the supervisor is upgraded again", || upgraded(2));
    systemd.until_state(A, "active running");
    assert_eq!(systemd.property(A, "MainPID"), process);
    election.diary.until_alive();
    assert_eq!(election.diary.starts().len(), 1);

    // A unit of the operator's own, whose link leads somewhere.
    systemd.must(
        "printf '[Service]\\nExecStart=/bin/true\\n[Install]\\nWantedBy=multi-user.target\\n' \
         >/etc/systemd/system/zk-leader-run@own.service; systemctl enable zk-leader-run@own",
    );
    let files = systemd.must("dpkg -L zk-leader-run | grep /zk-leader");
    systemd.must("apt-get remove -y zk-leader-run");
    assert_eq!(systemd.state(A), "inactive dead");
    assert_eq!(election.state(), "free");
    systemd.must("test -e /etc/zk-leader-run/config.toml");
    systemd.must("apt-get purge -y zk-leader-run");
    for file in files.lines().filter(|&file| file != "/etc/zk-leader-run") {
        systemd.must(&format!("! test -e '{file}'"));
    }
    let own = "zk-leader-run@own.service";
    systemd.must(&format!("cd /etc/systemd/system; test -L multi-user.target.wants/{own}; rm {own} */{own}"));
    let left = systemd.must("find /etc /usr /var/lib -name '*zk-leader*' ! -path '/var/lib/systemd/*' | sort");
    // The settings that we wrote, their drop-ins, and what a run of the command has left.
    let operators = [
        "/etc/systemd/system/zk-leader-run-job@.service.d",
        "/etc/systemd/system/zk-leader-run@.service.d",
        "/etc/zk-leader-run",
        "/var/lib/zk-leader-run",
    ];
    assert_eq!(left.lines().collect::<Vec<_>>(), operators);
    assert_eq!(systemd.must("ls /etc/zk-leader-run"), "a.env\nb.env");
}

/// The guide's settings for systemd 253 and later, where `systemctl reload` waits for our answer: in a box with Debian 13
/// (`BOX_ROOT`). Before, the unit is `reloading` until the answer comes.
#[test]
fn a_reload_is_over_when_the_program_was_replaced_or_has_refused() {
    let election = election();
    let systemd = Files::of_two_hosts(&election, "#!/bin/sh\nexec witness \"$@\"\n", LONG_LEASE).install(&election);
    let version = systemd.must("systemctl --version | sed -n '1s/systemd \\([0-9]*\\).*/\\1/p'");
    let waits = version.parse::<u32>().unwrap() >= 253;
    if waits {
        systemd.must(
            "mkdir -p /etc/systemd/system/zk-leader-run@a.service.d\n\
             printf '[Service]\\nType=notify-reload\\nReloadSignal=RTMIN+1\\nExecReload=\\n' \
             >/etc/systemd/system/zk-leader-run@a.service.d/reload.conf\n\
             systemctl daemon-reload",
        );
        assert_eq!(systemd.property(A, "Type"), "notify-reload");
    }
    systemd.ctl("start", &[A]);
    systemd.until_told(A, "leading, token ");
    election.diary.until_started(1);
    let process = systemd.property(A, "MainPID");
    let reload = |holds: &str| {
        systemd.must(&format!("timeout 60 systemctl reload {A}"));
        let holds = || systemd.try_run(&["sh", "-ec", holds]).0;
        assert!(if waits { holds() } else { wait::held_within(wait::LIMIT, holds) }, "systemd {version}");
        systemd.until_state(A, "active running");
    };
    let replaced = format!("test /proc/{process}/exe -ef /usr/bin/zk-leader-run");
    systemd.must("cp /usr/bin/zk-leader-run /usr/bin/kept");
    for _ in 0..3 {
        systemd.must("cp /usr/bin/kept /usr/bin/fresh && mv /usr/bin/fresh /usr/bin/zk-leader-run");
        reload(&replaced);
    }
    let refused =
        |times: u32| format!("journalctl --sync; test $(journalctl -o cat -u {A} | grep -c 'Not upgraded') = {times}");
    systemd.must("cp /bin/false /usr/bin/fresh && mv /usr/bin/fresh /usr/bin/zk-leader-run");
    reload(&refused(1));
    systemd.must("rm /usr/bin/zk-leader-run");
    reload(&refused(2));
    election.diary.until_alive();
    assert_eq!(election.diary.starts().len(), 1);
}

/// It would pass the request on to its command.
#[test]
fn an_upgrade_of_the_package_leaves_alone_a_program_that_does_not_know_the_request() {
    let election = election();
    let systemd = Files::of_two_hosts(&election, IMPOSTOR, "").install(&election);
    systemd.must(
        "cp /bin/sleep /usr/bin/fresh && mv /usr/bin/fresh /usr/bin/zk-leader-run\n\
         systemd-run --unit older /usr/bin/zk-leader-run 1000\n\
         until readlink /proc/$(systemctl show --value -p MainPID older)/exe | grep zk-leader-run; do sleep 0.1; done",
    );
    let process = systemd.property("older", "MainPID");
    let said = systemd.must("DEBIAN_FRONTEND=noninteractive apt-get install -y --reinstall /zk-leader-run.deb");
    assert!(said.contains(&format!("process {process} is of a version that only a restart replaces")), "{said}");
    assert_eq!(systemd.state("older"), "active running");
}

#[test]
fn a_job_whose_timers_go_off_on_every_host_runs_once() {
    let election = election();
    let files = Files::of_two_hosts(&election, "#!/bin/sh\necho $ZK_LEADER_ID >>/shared/ran\n", "PERIOD=1h\n");
    files.put("etc/systemd/system/zk-leader-run-job@.timer.d/soon.conf", "[Timer]\nOnCalendar=\nOnActiveSec=1s\n");
    let systemd = files.install(&election);
    let [a, b] = ["zk-leader-run-job@a", "zk-leader-run-job@b"];
    systemd.must(&format!("systemctl start {a}.timer {b}.timer"));
    let has_ended = |unit: &str| systemd.run(&["journalctl", "-o", "cat", "-u", unit]).contains("Deactivated");
    wait::until("both have ended", || has_ended(a) && has_ended(b));
    let ran = fs::read_to_string(election.diary.directory().join("ran")).unwrap();
    assert!(ran == "a\n" || ran == "b\n", "{ran}");
    // Without a period every host would run it.
    systemd.must(&format!("sed -i /^PERIOD/d /etc/zk-leader-run/a.env; systemctl start {a} && exit 1 || :"));
    assert!(systemd.journal().contains("--once-per"), "{}", systemd.journal());
}

/// `examples/systemd`, on two hosts.
#[test]
fn an_existing_unit_runs_on_one_host_with_the_drop_in_of_the_example() {
    let election = election();
    let service = "#!/bin/sh\n[ \"$*\" = '--port 8080' ] && exec witness /shared/diary\n";
    let files = Files::of_two_hosts(&election, IMPOSTOR, "");
    files.executable("usr/local/bin/my-service", service);
    let example = packages::source().join("examples/systemd");
    let units = "etc/systemd/system/my-service.service";
    fs::copy(example.join("my-service.service"), files.path(units)).unwrap();
    let [first, second] = [(); 2].map(|()| files.install(&election));
    let unit = "my-service";
    let settings = format!(
        "printf 'connect = \"{}\"\\npath = \"/zk-leader-run/{}\"\\nsession-timeout = \"20s\"\\n' >>/etc/zk-leader-run/config.toml",
        server().connect_string(),
        election.name
    );
    fs::copy(example.join("one-leader.conf"), election.diary.directory().join("one-leader.conf")).unwrap();
    let readme = fs::read_to_string(example.join("README.md")).unwrap();
    let command = readme.lines().skip_while(|line| *line != "```sh").nth(1).unwrap();
    for host in [&first, &second] {
        host.must(&settings);
        host.must(&format!("cd /shared; {command}"));
    }
    first.until_told(unit, "leading, token ");
    assert!(election.diary.until_started(1).told[1] == "first");
    second.until_told(unit, "following, next in line");
    assert_eq!([first.state(unit), second.state(unit)], ["active running"; 2]);
    first.ctl("kill", &["--kill-whom=main", "--signal=KILL", unit]);
    assert_eq!(election.diary.until_started(2).told[1], "clean", "the lease of 20 s was not freed");
    second.until_told(unit, "leading, token ");
    first.until_told(unit, "following, next in line");
    second.ctl("stop", &[unit]);
    assert_eq!(election.diary.until_started(3).told[1], "clean");
    election.diary.assert_no_overlap();
}
