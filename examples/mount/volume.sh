#!/bin/sh
# volume.sh mount|unmount: a volume on one host at a time. Both may be run again at any time.
# SOURCE, TARGET and FSTYPE (ext4 if unset) say which. Needs root (CAP_SYS_ADMIN), mount, umount and mountpoint.
set -eu
: "${SOURCE:?such as /dev/mapper/data}" "${TARGET:?such as /srv/data}"
is_mounted() { mountpoint -q "$TARGET"; }
case $1 in
mount)
    mkdir -p "$TARGET"
    # Left behind by a term of this host that could not end well: what it knows of the volume may be old.
    if is_mounted; then
        umount "$TARGET"
    fi
    mount -t "${FSTYPE:-ext4}" ${OPTIONS:+-o "$OPTIONS"} "$SOURCE" "$TARGET"
    ;;
unmount)
    # Not lazily (umount -l): the volume would stay in use. If it is busy, the failure is in the log.
    if is_mounted; then
        umount "$TARGET"
    fi
    ;;
*)
    echo "usage: volume.sh mount|unmount" >&2
    exit 64
    ;;
esac
