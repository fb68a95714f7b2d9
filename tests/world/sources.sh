# Sourced by tests/world/suites.sh and elections.py: upstream sources of Debian's packages, fetched and verified by apt.

source_of() { # source_of PACKAGE FOLDER: unpacked there
    local work options
    work=$(mktemp -d)
    mkdir -p "$work/lists/partial" "$2"
    sed -E 's/^Types: deb$/Types: deb-src/; s/^deb /deb-src /' \
        $(ls /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null) >"$work/sources.sources"
    options=(-q -o Dir::Etc::sourcelist="$work/sources.sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists"
        -o APT::Sandbox::User= -o Acquire::Languages=none)
    apt-get "${options[@]}" -q update >/dev/null
    (cd "$work" && apt-get "${options[@]}" --download-only source "$1" >fetched 2>&1 || true)
    if ! tar -xf "$work/$1"_*.orig.tar.* -C "$2" --strip-components=1 2>/dev/null; then
        echo "The source of Debian's package $1 could not be fetched:" && sed 's/^/    /' "$work/fetched"
        rm -rf "$work" && return 1
    fi
    rm -rf "$work"
}
