#!/usr/bin/env bash
# The Ansible role, by Debian's Ansible, under a real systemd. As root; installs what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh
need_rust
need_zookeeper
need_packages ansible-core python3-apt systemd util-linux dpkg-dev binutils
cargo test --test ansible "$@"
