# Names, hosts and ids, which the ensemble knows.
function __fish_zk_leaderctl_values
    set -l typed (commandline -opc)
    $typed[1] completions values $typed[2..] (commandline -ct) 2>/dev/null
end

# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_zk_leaderctl_global_optspecs
    string join \n z/connect= auth-file= kerberos kerberos-server= tls tls-ca= tls-cert= tls-key= tls-any-name path= config= connect-timeout= o/output= json h/help V/version
end

function __fish_zk_leaderctl_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_zk_leaderctl_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_zk_leaderctl_using_subcommand
    set -l cmd (__fish_zk_leaderctl_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -s V -l version -d 'Print the version'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "status" -d 'Show who leads, since when, who is next, and who may not be elected and why'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "list" -d 'List all elections below /zk-leader-run, or below --path'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "history" -d 'Show the last terms: who led, from when to when, and how it ended'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "handover" -d 'Let another host lead: the leader stops its command, releases, and goes to the end of the queue'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "disable" -d 'Disable the election: no host runs the command until enable; the queue is kept'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "enable" -d 'Enable the election again'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "drain" -d 'Let other hosts lead: the leaders of one host hand over, and its standbys are not elected, in all elections'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "undrain" -d 'End the drain of a host: it may be elected again'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "token-check" -d 'Tell whether a fencing token is still the newest'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "put" -d 'Write a znode of yours, if a fencing token is still the newest at that very moment'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "lease" -d 'Tell how long the command may still act, from its lease file; asks no server'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_needs_command" -f -a "doctor" -d 'Look for what is wrong, or could be better, with the ensemble and an election'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -s w -l watch -d 'Go on looking, and show what has changed, until Ctrl-C (status 130)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -s w -l watch -d 'Go on looking, elections in trouble first and finished jobs last, until Ctrl-C (status 130)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand list" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -s n -l lines -d 'Only the last N terms [default: all that are kept, 50]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -s w -l watch -d 'Go on looking until Ctrl-C (status 130)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l to -d 'Id or host of the next leader [default: the next in line]' -r -f -a '(__fish_zk_leaderctl_values)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l timeout -d 'How long it may take; the order ends with it' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l wait -d 'Wait until the next leader runs the command'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l reason -d 'The reason, shown by status' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l for -d 'For how long, by ZooKeeper\'s clock [default: until enable]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l timeout -d 'How long to wait' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l wait -d 'Wait until no command runs: exit status 1 if one still does after --timeout'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l timeout -d 'How long to wait' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l wait -d 'Wait until a host runs the command: exit status 1 if none does after --timeout, 2 if that is not known'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l root -d 'The parent of the elections' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l reason -d 'The reason, shown by status and list' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l for -d 'For how long, by ZooKeeper\'s clock [default: until undrain]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l timeout -d 'How long to wait' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l force -d 'Stop the command also where no other host could lead'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l wait -d 'Wait until the host leads no election that another host could lead'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l root -d 'The parent of the elections' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l token -d 'The fencing token [default: ZK_LEADER_TOKEN]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l name -d 'Name of the election [default: the one of ZK_LEADER_PATH, or the only one]' -r -f -a '(__fish_zk_leaderctl_values)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l fenced -d 'Write only under the newest token; there is no other way to write'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l create -d 'Create the znode if it does not exist; its parent must'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand put" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l at-least -d 'How long the next step takes: status 0 only if so much is left' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand lease" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -s z -l connect -d 'Servers, as host:port,.../chroot' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l auth-file -d 'File of identities, like digest:USER:PASSWORD [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l kerberos-server -d 'The servers\' principal [default: zookeeper/NAME-IN-CONNECT]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l tls-ca -d 'PEM file of the servers\' certificate authorities [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l tls-cert -d 'PEM file of our own certificate [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l tls-key -d 'PEM file of its private key, not encrypted [default: none]' -r -F
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l path -d 'Znode of the election [default: /zk-leader-run/<NAME>]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l config -d 'Configuration file of zk-leader-run, for its connect [default: /etc/zk-leader-run/config.toml]' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l connect-timeout -d 'How long to try to reach the ensemble, and to wait for each of its answers' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -s o -l output -d 'How the answer is written: table, wide, json, yaml or plain' -r
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l kerberos -d 'Log in by Kerberos (SASL GSSAPI), in a build that can'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l tls -d 'Speak TLS with every server in --connect that does not say tcp://'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l tls-any-name -d 'Accept a server\'s certificate whatever name it is for'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -l json -d 'The same as --output json'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -s h -l help -d 'Print this help; -h is short, --help tells more'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand status" -f -a '(__fish_zk_leaderctl_values)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand history" -f -a '(__fish_zk_leaderctl_values)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand handover" -f -a '(__fish_zk_leaderctl_values)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand disable" -f -a '(__fish_zk_leaderctl_values)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand enable" -f -a '(__fish_zk_leaderctl_values)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand drain" -f -a '(__fish_zk_leaderctl_values)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand undrain" -f -a '(__fish_zk_leaderctl_values)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand token-check" -f -a '(__fish_zk_leaderctl_values)'
complete -c zk-leaderctl -n "__fish_zk_leaderctl_using_subcommand doctor" -f -a '(__fish_zk_leaderctl_values)'
