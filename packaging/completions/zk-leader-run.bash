# bash completion for zk-leader-run: its options and their choices, then the command as if it stood alone.
_zk_leader_run() {
    local cur=${COMP_WORDS[COMP_CWORD]} at=1 option='' ended=''
    COMPREPLY=()
    while ((at < COMP_CWORD)); do
        option=${COMP_WORDS[at]}
        ((at++))
        case $option in
        --)
            ended=1
            break
            ;;
        -z|--connect|--name|--path|--id|--recipe|--election-path|--leaders|--priority|--preempt-after|--wait|--conflict-exit-code|--connect-timeout|--auth-file|--kerberos-server|--tls-ca|--tls-cert|--tls-key|--acl|--session-timeout|--lease|--stop-reserve|--guarantee|--max-pause|--grace|--on-pause|--on-resume|--vouch-address|--vouch-limit|--contain|--stop-signal|--stop-timeout|--on-exit|--on-loss|--restart|--restart-delay|--restart-max-delay|--max-restarts|--restart-window|--stand-back|--no-restart-status|--min-start-interval|--timeout|--start-deadline|--takeover-delay|--health-cmd|--health-interval|--health-timeout|--health-failures|--health-grace|--eligible-cmd|--eligible-timeout|--fence-cmd|--fence-timeout|--before-start|--before-start-timeout|--after-stop|--after-stop-timeout|--hook|--hook-timeout|--http|--meta|--ready-on|--slot|--once-per|--keep-slots|--log-format|--log-level|--config)
            [[ ${COMP_WORDS[at]} == = ]] && ((at++))
            # A value with colons is several words to readline.
            while [[ ${COMP_WORDS[at + 1]} == [:=]* ]]; do ((at += 2)); done
            if ((at >= COMP_CWORD)); then
                cur=${cur#=}
                case $option in
                --recipe) COMPREPLY=($(compgen -W 'sequential curator-latch curator-lock kazoo java-les single' -- "$cur")) ;;
                --auth-file) COMPREPLY=($(compgen -f -- "$cur")) ;;
                --tls-ca) COMPREPLY=($(compgen -f -- "$cur")) ;;
                --tls-cert) COMPREPLY=($(compgen -f -- "$cur")) ;;
                --tls-key) COMPREPLY=($(compgen -f -- "$cur")) ;;
                --guarantee) COMPREPLY=($(compgen -W 'at-most-one at-least-one' -- "$cur")) ;;
                --on-pause) COMPREPLY=($(compgen -W 'run freeze HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS' -- "$cur")) ;;
                --on-resume) COMPREPLY=($(compgen -W 'HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS' -- "$cur")) ;;
                --contain) COMPREPLY=($(compgen -W 'auto subreaper cgroup pid-namespace' -- "$cur")) ;;
                --stop-signal) COMPREPLY=($(compgen -W 'HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS' -- "$cur")) ;;
                --on-exit) COMPREPLY=($(compgen -W 'exit rejoin restart' -- "$cur")) ;;
                --on-loss) COMPREPLY=($(compgen -W 'rejoin exit' -- "$cur")) ;;
                --restart) COMPREPLY=($(compgen -W 'on-failure always' -- "$cur")) ;;
                --ready-on) COMPREPLY=($(compgen -W 'contending leading' -- "$cur")) ;;
                --log-format) COMPREPLY=($(compgen -W 'human json journald' -- "$cur")) ;;
                --log-level) COMPREPLY=($(compgen -W 'error warn info debug trace' -- "$cur")) ;;
                --config) COMPREPLY=($(compgen -f -- "$cur")) ;;
                esac
                return
            fi
            ((at++))
            ;;
        -*) ;;
        *)
            ((at--))
            break
            ;;
        esac
    done
    if [[ -z $ended && $cur == -* ]] && ((at == COMP_CWORD)); then
        COMPREPLY=($(compgen -W '--connect --name --path --id --recipe --election-path --leaders --priority --preempt-after --wait --conflict-exit-code --connect-timeout --auth-file --kerberos --kerberos-server --tls --tls-ca --tls-cert --tls-key --tls-any-name --acl --session-timeout --lease --stop-reserve --guarantee --max-pause --grace --on-pause --on-resume --vouch --vouch-address --vouch-limit --contain --foreground --stop-signal --stop-timeout --on-exit --on-loss --restart --restart-delay --restart-max-delay --max-restarts --restart-window --stand-back --no-restart-status --min-start-interval --timeout --start-deadline --takeover-delay --health-cmd --health-interval --health-timeout --health-failures --health-grace --eligible-cmd --eligible-timeout --fence-cmd --fence-timeout --before-start --before-start-timeout --after-stop --after-stop-timeout --hook --hook-timeout --http --meta --ready-on --slot --once-per --retry-failed --keep-slots --log-format --log-level --config --print-config --dry-run --help --version' -- "$cur"))
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$at"
    elif ((at == COMP_CWORD)); then
        COMPREPLY=($(compgen -c -- "$cur"))
    else
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}
complete -F _zk_leader_run zk-leader-run
