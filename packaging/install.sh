#!/bin/sh
# install.sh BINARIES: copies all that the project installs. `make install` and both packages call it; the programs come from the
# folder BINARIES. From the environment: DESTDIR (the root), PREFIX, SYSCONFDIR, and ZSH, where zsh looks for completions.
set -eu
cd "$(dirname "$0")/.."
binaries=${1:?usage: install.sh BINARIES}
prefix=${PREFIX:-/usr/local} root=${DESTDIR:-}
share=$root$prefix/share
zsh=$root${ZSH:-$prefix/share/zsh/site-functions}
etc=$root${SYSCONFDIR:-/etc}/zk-leader-run

put() { install -D -m 644 "$@"; }

for program in zk-leader-run zk-leaderctl; do
    install -D -m 755 "$binaries/$program" -t "$root$prefix/bin"
    # If the build did not do it.
    strip --remove-section=.comment "$root$prefix/bin/$program"
    put "docs/man/$program.1" -t "$share/man/man1"
    put "packaging/completions/$program.bash" "$share/bash-completion/completions/$program"
    put "packaging/completions/$program.fish" -t "$share/fish/vendor_completions.d"
    put "packaging/completions/_$program" -t "$zsh"
done
for unit in packaging/systemd/*@.*; do
    put "$unit" -t "$root$prefix/lib/systemd/system"
    sed -i "s|/usr/bin/|$prefix/bin/|" "$root$prefix/lib/systemd/system/${unit##*/}"
done
for service in zk-leader-run@ zk-leader-run-job@; do
    put packaging/systemd/sandbox.conf "$root$prefix/lib/systemd/system/$service.service.d/10-sandbox.conf"
done
install -D -m 755 packaging/upgrade-running.sh "$root$prefix/lib/zk-leader-run/upgrade-running"
sed -i "s|/usr/bin/|$prefix/bin/|" "$root$prefix/lib/zk-leader-run/upgrade-running"
put packaging/systemd/sysusers.conf "$root$prefix/lib/sysusers.d/zk-leader-run.conf"
put packaging/needrestart.conf "$root${SYSCONFDIR:-/etc}/needrestart/conf.d/zk-leader-run.conf"
put packaging/grafana/zk-leader-run.json -t "$share/zk-leader-run/grafana"
put packaging/prometheus/zk-leader-run.rules.yml -t "$share/zk-leader-run/prometheus"
# The operator's own is left alone.
[ -e "$etc/config.toml" ] || put packaging/config.toml -t "$etc"
