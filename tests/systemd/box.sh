#!/bin/sh
# box.sh DIRECTORY FILES SHARED [ROOT]: a throw-away systemd in namespaces of its own (PID 1, mounts, cgroups; the network is shared)
# over an overlay of ROOT (/). Called by tests/support/systemd_box.rs as root. FILES is copied over it, SHARED is one folder for both.
set -eu
if [ "${5:-}" != inside ]; then
    tree=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/$(basename "$1")
    mkdir "$tree"
    echo $$ >"$tree/cgroup.procs"
    exec unshare --mount --pid --fork --kill-child=KILL --uts --ipc --cgroup --propagation private sh "$0" "$1" "$2" "$3" "${4:-/}" inside
fi
box=$1 root=$1/root
mount -t tmpfs tmpfs "$box"
mkdir "$box/upper" "$box/work" "$root"
mount -t overlay overlay -o "lowerdir=$4,upperdir=$box/upper,workdir=$box/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
# systemd empties /tmp when it boots.
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root/shared"
mount --bind "$3" "$root/shared"
cp -R "$2/." "$root"
rm -rf "$root"/etc/systemd/system/*.wants
# As on a host: what is mounted for the credentials of a unit is mounted by a process with mounts of its own.
mount --make-rshared "$root"
# There is no console.
ln -s /dev/null "$root/etc/systemd/system/console-getty.service"
exec env -i container=unshare PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /lib/systemd/systemd --unit=multi-user.target
