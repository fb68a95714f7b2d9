complete -c zk-leader-run -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leader-run -l name -d 'Election to take part in [default: the command\'s file name]' -r
complete -c zk-leader-run -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leader-run -l id -d 'Id of this participant [default: <hostname>:<pid>]' -r
complete -c zk-leader-run -l recipe -d 'How candidates line up: sequential, curator-lock, kazoo, java-les or single' -r -f -a "sequential\t''
curator-latch\t''
curator-lock\t''
kazoo\t''
java-les\t''
single\t''"
complete -c zk-leader-run -l election-path -d 'Election shared with other libraries [default: none]' -r
complete -c zk-leader-run -l leaders -d 'How many hosts may lead at once, 1 to 64' -r
complete -c zk-leader-run -l priority -d 'The highest leads first, -999 to 999; or spread' -r
complete -c zk-leader-run -l preempt-after -d 'Ask a leader of lower --priority to leave [default: never]' -r
complete -c zk-leader-run -l wait -d 'How long to wait; 0: only if free now [default: for ever]' -r
complete -c zk-leader-run -l conflict-exit-code -d 'Exit status when not elected within --wait' -r
complete -c zk-leader-run -l connect-timeout -d 'How long to try to connect [default: for ever, or see --wait]' -r
complete -c zk-leader-run -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leader-run -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leader-run -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leader-run -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leader-run -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leader-run -l acl -d 'ACL of new znodes: open, creator or digest:USER:HASH' -r
complete -c zk-leader-run -l session-timeout -d 'ZooKeeper session timeout to ask for' -r
complete -c zk-leader-run -l lease -d 'Length of the lease, at most 2m [default: the session timeout]' -r
complete -c zk-leader-run -l stop-reserve -d 'Time kept for the stop signal [default: a quarter of the lease]' -r
complete -c zk-leader-run -l guarantee -d 'at-most-one or at-least-one command' -r -f -a "at-most-one\t''
at-least-one\t''"
complete -c zk-leader-run -l max-pause -d 'Longest run without contact [default: 10 of the session timeouts that were asked for]' -r
complete -c zk-leader-run -l grace -d 'Longest loss of contact; 0: stop at once [default: all the lease allows]' -r
complete -c zk-leader-run -l on-pause -d 'What the command does: run, freeze or get a SIGNAL' -r -f -a "run\t''
freeze\t''
HUP\t''
INT\t''
QUIT\t''
ILL\t''
TRAP\t''
ABRT\t''
BUS\t''
FPE\t''
KILL\t''
USR1\t''
SEGV\t''
USR2\t''
PIPE\t''
ALRM\t''
TERM\t''
STKFLT\t''
CHLD\t''
CONT\t''
STOP\t''
TSTP\t''
TTIN\t''
TTOU\t''
URG\t''
XCPU\t''
XFSZ\t''
VTALRM\t''
PROF\t''
WINCH\t''
IO\t''
PWR\t''
SYS\t''"
complete -c zk-leader-run -l on-resume -d 'Signal to send when contact is back, after --on-pause SIGNAL' -r -f -a "HUP\t''
INT\t''
QUIT\t''
ILL\t''
TRAP\t''
ABRT\t''
BUS\t''
FPE\t''
KILL\t''
USR1\t''
SEGV\t''
USR2\t''
PIPE\t''
ALRM\t''
TERM\t''
STKFLT\t''
CHLD\t''
CONT\t''
STOP\t''
TSTP\t''
TTIN\t''
TTOU\t''
URG\t''
XCPU\t''
XFSZ\t''
VTALRM\t''
PROF\t''
WINCH\t''
IO\t''
PWR\t''
SYS\t''"
complete -c zk-leader-run -l vouch-address -d 'Where other hosts ask this one [default: towards ZooKeeper]' -r
complete -c zk-leader-run -l vouch-limit -d 'Longest run without ZooKeeper, 2 leases to 24h' -r
complete -c zk-leader-run -l contain -d 'auto, subreaper, cgroup or pid-namespace' -r -f -a "auto\t''
subreaper\t''
cgroup\t''
pid-namespace\t''"
complete -c zk-leader-run -l stop-signal -d 'Signal that asks the command to end' -r -f -a "HUP\t''
INT\t''
QUIT\t''
ILL\t''
TRAP\t''
ABRT\t''
BUS\t''
FPE\t''
KILL\t''
USR1\t''
SEGV\t''
USR2\t''
PIPE\t''
ALRM\t''
TERM\t''
STKFLT\t''
CHLD\t''
CONT\t''
STOP\t''
TSTP\t''
TTIN\t''
TTOU\t''
URG\t''
XCPU\t''
XFSZ\t''
VTALRM\t''
PROF\t''
WINCH\t''
IO\t''
PWR\t''
SYS\t''"
complete -c zk-leader-run -l stop-timeout -d 'Time between the stop signal and SIGKILL' -r
complete -c zk-leader-run -l on-exit -d 'After the command\'s end: exit, rejoin or restart' -r -f -a "exit\t''
rejoin\t''
restart\t''"
complete -c zk-leader-run -l on-loss -d 'When leadership is lost: rejoin or exit (status 76)' -r -f -a "rejoin\t''
exit\t''"
complete -c zk-leader-run -l restart -d 'Restart on-failure or always' -r -f -a "on-failure\t''
always\t''"
complete -c zk-leader-run -l restart-delay -d 'First pause; each failure doubles it' -r
complete -c zk-leader-run -l restart-max-delay -d 'The longest pause before a restart' -r
complete -c zk-leader-run -l max-restarts -d 'Restarts within --restart-window, or unlimited' -r
complete -c zk-leader-run -l restart-window -d 'For how long a failure counts' -r
complete -c zk-leader-run -l stand-back -d 'How long to stay out of the queue after we resigned' -r
complete -c zk-leader-run -l no-restart-status -d 'Exit statuses that end it for good, like 2,78' -r
complete -c zk-leader-run -l min-start-interval -d 'Least time between two starts; 0: none' -r
complete -c zk-leader-run -l timeout -d 'Longest run; then stop, status 124 [default: for ever]' -r
complete -c zk-leader-run -l start-deadline -d 'Skip a run not started by then: exit 0 [default: never]' -r
complete -c zk-leader-run -l takeover-delay -d 'Extra wait for a leader that did not release' -r
complete -c zk-leader-run -l health-cmd -d 'Shell command; exit status 0: this host may lead' -r
complete -c zk-leader-run -l health-interval -d 'Pause between two health checks' -r
complete -c zk-leader-run -l health-timeout -d 'Longest health check; then it fails' -r
complete -c zk-leader-run -l health-failures -d 'Failures in a row that make a host unhealthy' -r
complete -c zk-leader-run -l health-grace -d 'Time after a start in which no failure counts' -r
complete -c zk-leader-run -l eligible-cmd -d 'Shell command; exit status 0: this host may contend' -r
complete -c zk-leader-run -l eligible-timeout -d 'Longest eligibility command; then it refuses' -r
complete -c zk-leader-run -l fence-cmd -d 'Shell command that fences a leader that did not release' -r
complete -c zk-leader-run -l fence-timeout -d 'Longest fence command; then it fails' -r
complete -c zk-leader-run -l before-start -d 'Shell command to run before the command is first started' -r
complete -c zk-leader-run -l before-start-timeout -d 'Longest --before-start; then it fails' -r
complete -c zk-leader-run -l after-stop -d 'Shell command to run when the command\'s tree is dead' -r
complete -c zk-leader-run -l after-stop-timeout -d 'Longest --after-stop; then it is killed' -r
complete -c zk-leader-run -l hook -d 'Shell command to run at every change of our role' -r
complete -c zk-leader-run -l hook-timeout -d 'Longest hook; then it is killed' -r
complete -c zk-leader-run -l http -d 'Address of HTTP for health, status and metrics [default: nowhere]' -r
complete -c zk-leader-run -l meta -d 'Shown to those who look for the service [default: nothing]' -r
complete -c zk-leader-run -l ready-on -d 'When we are ready for systemd: contending or leading' -r -f -a "contending\t''
leading\t''"
complete -c zk-leader-run -l slot -d 'Run at most once for this key, whichever host runs it' -r
complete -c zk-leader-run -l once-per -d 'Run at most once in this length of time, whichever host runs it' -r
complete -c zk-leader-run -l keep-slots -d 'With --slot: how many markers to keep' -r
complete -c zk-leader-run -l log-format -d 'human or json on standard error, or journald' -r -f -a "human\t''
json\t''
journald\t''"
complete -c zk-leader-run -l log-level -d 'How much to log: error, warn, info, debug or trace' -r -f -a "error\t''
warn\t''
info\t''
debug\t''
trace\t''"
complete -c zk-leader-run -l config -d 'TOML file [default: /etc/zk-leader-run/config.toml, if it exists]' -r -F
complete -c zk-leader-run -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leader-run -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leader-run -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leader-run -l vouch -d 'Run on in an outage of ZooKeeper if the other hosts agree'
complete -c zk-leader-run -l foreground -d 'Give the command the terminal: its input and Ctrl-C'
complete -c zk-leader-run -l retry-failed -d 'Repeat a run that failed or was interrupted'
complete -c zk-leader-run -l print-config -d 'Print every setting and where it came from, and touch nothing'
complete -c zk-leader-run -l dry-run -d 'Print what would be done, with every timing, and touch nothing'
complete -c zk-leader-run -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leader-run -s V -l version -d 'Print the version'
complete -c zk-leader-run -x -a '(__fish_complete_subcommand -- -z --connect --name --path --id --recipe --election-path --leaders --priority --preempt-after --wait --conflict-exit-code --connect-timeout --auth-file --kerberos-server --tls-ca --tls-cert --tls-key --acl --session-timeout --lease --stop-reserve --guarantee --max-pause --grace --on-pause --on-resume --vouch-address --vouch-limit --contain --stop-signal --stop-timeout --on-exit --on-loss --restart --restart-delay --restart-max-delay --max-restarts --restart-window --stand-back --no-restart-status --min-start-interval --timeout --start-deadline --takeover-delay --health-cmd --health-interval --health-timeout --health-failures --health-grace --eligible-cmd --eligible-timeout --fence-cmd --fence-timeout --before-start --before-start-timeout --after-stop --after-stop-timeout --hook --hook-timeout --http --meta --ready-on --slot --once-per --keep-slots --log-format --log-level --config)'
