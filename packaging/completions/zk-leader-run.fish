complete -c zk-leader-run -s z -l connect -d 'Servers of the ensemble, as host:port,host:port/chroot' -r
complete -c zk-leader-run -l name -d 'Name of the election; hosts with the same name take turns [default: the command\'s file name]' -r
complete -c zk-leader-run -l path -d 'Znode under which everything is kept [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leader-run -l id -d 'How this participant is shown to others [default: <hostname>:<pid>]' -r
complete -c zk-leader-run -l recipe -d 'How candidates line up: sequential, curator-lock, kazoo, java-les or single' -r -f -a "sequential\t''
curator-latch\t''
curator-lock\t''
kazoo\t''
java-les\t''
single\t''"
complete -c zk-leader-run -l election-path -d 'Znode of an election that other libraries take part in [default: none but ours do]' -r
complete -c zk-leader-run -l leaders -d 'How many hosts may run the command at once, from 1 to 64' -r
complete -c zk-leader-run -l priority -d 'Higher leads first among those who wait, from -999 to 999' -r
complete -c zk-leader-run -l preempt-after -d 'As next in line, ask a leader of lower --priority to hand over after this time [default: never]' -r
complete -c zk-leader-run -l wait -d 'How long to wait for leadership; 0: only if free now [default: for ever]' -r
complete -c zk-leader-run -l conflict-exit-code -d 'Exit status when not elected within --wait' -r
complete -c zk-leader-run -l connect-timeout -d 'How long to try to reach the ensemble [default: for ever, or see --wait]' -r
complete -c zk-leader-run -l auth-file -d 'File of identities, a line for each: digest:USER:PASSWORD or sasl:USER:PASSWORD [default: none]' -r -F
complete -c zk-leader-run -l kerberos-server -d 'The servers\' principal in Kerberos [default: zookeeper, and each one\'s name in --connect]' -r
complete -c zk-leader-run -l tls-ca -d 'PEM file of the authorities that sign the servers\' certificates [default: none]' -r -F
complete -c zk-leader-run -l tls-cert -d 'PEM file of our own certificate, for servers that demand one [default: none]' -r -F
complete -c zk-leader-run -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leader-run -l acl -d 'Who may use the znodes that are created: open, creator or digest:USER:HASH' -r
complete -c zk-leader-run -l session-timeout -d 'ZooKeeper session timeout to ask for' -r
complete -c zk-leader-run -l lease -d 'How long one renewal entitles the leader to run, at most 2m [default: the session timeout]' -r
complete -c zk-leader-run -l stop-reserve -d 'Time kept for the stop signal before the lease ends [default: a quarter of the lease]' -r
complete -c zk-leader-run -l guarantee -d 'at-most-one or at-least-one command at a time' -r -f -a "at-most-one\t''
at-least-one\t''"
complete -c zk-leader-run -l max-pause -d 'With at-least-one: how long the command runs on without contact [default: 10 session timeouts]' -r
complete -c zk-leader-run -l grace -d 'How long contact may be lost before the command is stopped; 0: at once [default: all the lease allows]' -r
complete -c zk-leader-run -l on-pause -d 'What the command does while contact is lost: run, freeze or a SIGNAL to send it' -r
complete -c zk-leader-run -l on-resume -d 'Signal to send the command when contact is back, after a signal of --on-pause' -r
complete -c zk-leader-run -l contain -d 'What holds the process tree together: auto, subreaper, cgroup or pid-namespace' -r -f -a "auto\t''
subreaper\t''
cgroup\t''
pid-namespace\t''"
complete -c zk-leader-run -l stop-signal -d 'Signal that asks the command to end' -r
complete -c zk-leader-run -l stop-timeout -d 'How long the command may take to end when we are asked to stop; then SIGKILL' -r
complete -c zk-leader-run -l on-exit -d 'When the command ends by itself: exit, rejoin or restart' -r -f -a "exit\t''
rejoin\t''
restart\t''"
complete -c zk-leader-run -l on-loss -d 'When leadership is lost: rejoin or exit (status 76)' -r -f -a "rejoin\t''
exit\t''"
complete -c zk-leader-run -l restart -d 'With --on-exit restart: start the command again on-failure or always' -r -f -a "on-failure\t''
always\t''"
complete -c zk-leader-run -l restart-delay -d 'Pause before the first restart; it doubles with each failure in a row' -r
complete -c zk-leader-run -l restart-max-delay -d 'The longest pause before a restart' -r
complete -c zk-leader-run -l max-restarts -d 'How many failures within --restart-window are followed by a restart here, or unlimited' -r
complete -c zk-leader-run -l restart-window -d 'For how long a failure counts' -r
complete -c zk-leader-run -l stand-back -d 'How long we stay out of the line after we resigned' -r
complete -c zk-leader-run -l no-restart-status -d 'Exit statuses after which the command is not started again, like 2,78: release, and exit with it' -r
complete -c zk-leader-run -l min-start-interval -d 'The least time from one start of the command here to the next; 0: none' -r
complete -c zk-leader-run -l timeout -d 'How long one run may take; then it is stopped, with status 124 [default: for ever]' -r
complete -c zk-leader-run -l start-deadline -d 'Skip this run if it could not start within this time: exit 0 [default: never]' -r
complete -c zk-leader-run -l takeover-delay -d 'How much longer to wait for a leader that did not release; 0: for its lease only' -r
complete -c zk-leader-run -l health-cmd -d 'Shell command that says, by exit status 0, that this host may lead' -r
complete -c zk-leader-run -l health-interval -d 'From the end of one health check to the start of the next' -r
complete -c zk-leader-run -l health-timeout -d 'How long a health check may take; then its whole tree is killed, and it has failed' -r
complete -c zk-leader-run -l health-failures -d 'So many failures in a row make a host unhealthy' -r
complete -c zk-leader-run -l health-grace -d 'Start-up period: so long after each start of the command, failures do not count' -r
complete -c zk-leader-run -l eligible-cmd -d 'Shell command that says once, by exit status 0, that this host may contend' -r
complete -c zk-leader-run -l eligible-timeout -d 'How long the eligibility command may take; then its whole tree is killed, and it has refused' -r
complete -c zk-leader-run -l fence-cmd -d 'Shell command that fences an earlier leader whose term did not end cleanly' -r
complete -c zk-leader-run -l fence-timeout -d 'How long one run of the fence command may take; then its whole tree is killed, and it has failed' -r
complete -c zk-leader-run -l hook -d 'Shell command to run at every change of our part in the election' -r
complete -c zk-leader-run -l hook-timeout -d 'How long one hook may take; then its whole tree is killed' -r
complete -c zk-leader-run -l http -d 'Serve health, status and metrics over HTTP at this address [default: nowhere]' -r
complete -c zk-leader-run -l ready-on -d 'When systemd is told that we are ready: contending or leading' -r -f -a "contending\t''
leading\t''"
complete -c zk-leader-run -l slot -d 'Run at most once for this key, whichever host runs it' -r
complete -c zk-leader-run -l once-per -d 'Run at most once in this length of time, whichever host runs it' -r
complete -c zk-leader-run -l keep-slots -d 'With --slot: how many markers to keep' -r
complete -c zk-leader-run -l log-format -d 'Log as human or json lines on standard error, or to journald' -r -f -a "human\t''
json\t''
journald\t''"
complete -c zk-leader-run -l log-level -d 'How much to log: error, warn, info, debug or trace' -r -f -a "error\t''
warn\t''
info\t''
debug\t''
trace\t''"
complete -c zk-leader-run -l config -d 'TOML file of settings [default: /etc/zk-leader-run/config.toml, if it exists]' -r -F
complete -c zk-leader-run -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leader-run -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leader-run -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leader-run -l foreground -d 'Let the command use the terminal: read from it, and be interrupted by Ctrl-C'
complete -c zk-leader-run -l retry-failed -d 'Let a run that failed or was interrupted not count: at least once, instead of at most once'
complete -c zk-leader-run -l print-config -d 'Print every setting and where it came from, and touch nothing'
complete -c zk-leader-run -l dry-run -d 'Print what would be done, with every timing, and touch nothing'
complete -c zk-leader-run -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leader-run -s V -l version -d 'Print the version'
complete -c zk-leader-run -x -a '(__fish_complete_subcommand -- -z --connect --name --path --id --recipe --election-path --leaders --priority --preempt-after --wait --conflict-exit-code --connect-timeout --auth-file --kerberos-server --tls-ca --tls-cert --tls-key --acl --session-timeout --lease --stop-reserve --guarantee --max-pause --grace --on-pause --on-resume --contain --stop-signal --stop-timeout --on-exit --on-loss --restart --restart-delay --restart-max-delay --max-restarts --restart-window --stand-back --no-restart-status --min-start-interval --timeout --start-deadline --takeover-delay --health-cmd --health-interval --health-timeout --health-failures --health-grace --eligible-cmd --eligible-timeout --fence-cmd --fence-timeout --hook --hook-timeout --http --ready-on --slot --once-per --keep-slots --log-format --log-level --config)'
