#!/bin/sh
# build.sh BINARIES [FOLDER]: zk-leader-run-VERSION-1.ARCHITECTURE.rpm in FOLDER (target/packages), from the programs in the folder
# BINARIES. Needs rpmbuild (Debian's rpm), no rights, no network. Twice the same commit and binaries: twice the same bytes.
set -eu
umask 022
cd "$(dirname "$0")/../.."
. packaging/version.sh
binaries=$(realpath "${1:?usage: build.sh BINARIES [FOLDER]}")
mkdir -p "${2:-target/packages}"
out=$(realpath "${2:-target/packages}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rpmbuild -bb --quiet --build-in-place \
    -D "_topdir $work" -D "_rpmdir $out" -D "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
    -D "version $VERSION" -D "maintainer $MAINTAINER" -D "source $PWD" -D "binaries $binaries" \
    -D "_buildhost localhost" -D "use_source_date_epoch_as_buildtime 1" -D "clamp_mtime_to_source_date_epoch 1" \
    -D "_binary_payload ${COMPRESSION:-w19.zstdio}" packaging/rpm/zk-leader-run.spec
