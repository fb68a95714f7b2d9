# Sourced by examples/demo.sh and tests/run.sh: installs what a fresh Debian lacks. Says what it does, and asks for nothing.

say() { printf '\033[1m== %s\033[0m\n' "$*"; }

need_packages() { # need_packages PACKAGE...: those that are not installed yet, by apt-get
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        echo "Missing Debian packages: ${missing[*]}. Install them, or run this as root: apt-get install ${missing[*]}" >&2
        return 1
    fi
    say "Installing Debian packages: ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

need_zookeeper() { # the server's jar and a Java runtime; nothing is started and no port is opened by this
    local java=()
    command -v java >/dev/null || java=(default-jre-headless)
    need_packages libzookeeper-java "${java[@]}"
}

serves() { # serves PORT: whether a server answers there; one that has only begun to start may take a connection and say nothing
    timeout 2 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf srvr >&3 && grep -q "^Mode: " <&3' "$1" 2>/dev/null
}

need_peers() { # what tests/peers needs to compile and run contenders with the real Curator, ZooKeeper's recipes, kazoo and go-zookeeper
    need_packages libcurator-recipes-java openjdk-17-jdk-headless python3-venv golang-go golang-github-samuel-go-zookeeper-dev
}

need_kerberos() { # to build with the feature, and a key distribution centre for its tests; none of the machine's own is started
    local daemons=(krb5-kdc krb5-admin-server) policy=/usr/sbin/policy-rc.d ours=
    if [ ! -x /usr/sbin/krb5kdc ] || [ ! -x /usr/sbin/kadmin.local ]; then
        if [ "$(id -u)" -eq 0 ] && [ ! -e "$policy" ]; then
            ours=$policy
            printf '#!/bin/sh\nexit 101\n' >"$ours"
            chmod +x "$ours"
        fi
        need_packages "${daemons[@]}" || { rm -f "$ours"; return 1; }
        [ -z "$ours" ] || rm "$ours"
        ! command -v systemctl >/dev/null || systemctl --quiet disable "${daemons[@]}" 2>/dev/null || true
    fi
    need_packages libkrb5-dev libclang-dev pkg-config krb5-user
}

need_rust() {
    [ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
    command -v cargo >/dev/null || { echo "cargo is missing: install Rust from https://rustup.rs" >&2; return 1; }
    command -v cc >/dev/null || need_packages gcc libc6-dev
}

of_release() { # of_release RELEASE APT-COMMAND...: apt as if nothing were installed, of another Debian release; verified as ever
    local release=$1 work archive status=0; shift
    work=$(mktemp -d)
    mkdir -p "$work"/{state/lists/partial,cache/archives/partial}
    : >"$work/status"
    # From where this machine has its own packages.
    archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | sort -u | head -n 1)
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${archive:?apt has no source of packages} $release main" >"$work/sources"
    cat >"$work/apt.conf" <<-END
		Dir::Etc::sourcelist "$work/sources";
		Dir::Etc::sourceparts "-";
		Dir::State "$work/state";
		Dir::State::status "$work/status";
		Dir::Cache "$work/cache";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		Acquire::Languages "none";
		APT::Sandbox::User "";
	END
    { APT_CONFIG=$work/apt.conf apt-get -qq update && APT_CONFIG=$work/apt.conf "$@"; } || status=$?
    rm -rf "$work"
    return $status
}
