# The contributor's and the packager's interface.
PREFIX ?= /usr/local
DESTDIR ?=
BINARIES ?= target/release
N ?= 1000000
SEEDS ?= 1-3
FAULTS ?= 170
UPGRADES ?= 0
ELECTIONS ?= 30
T ?= 10s
OUTAGE ?= 540
FUZZ_SECONDS ?= 120

.PHONY: build check fix test-fast test ansible bench bench-fleet bench-vouching sim chaos outage chaos-controls world mutants test-3.9 upgrades upgrade-test deny msrv sbom reproducible demo docs fuzz install deb rpm release

export PREFIX DESTDIR

build:            ## release binary
	sh packaging/build.sh
check:            ## format and clippy
	cargo fmt --all --check && cargo clippy --all-targets -- -D warnings
	cargo check --no-default-features --lib --bins
fix:              ## format, and rewrite golden files
	cargo fmt --all && UPDATE=1 cargo test
test-fast:        ## what needs no server and no root: the decisions, the command line, the layers; in under a minute
	cargo test --lib --test machine --test machine_properties --test cli --test architecture
test:             ## everything that CI runs
	bash tests/run.sh
ansible:          ## the Ansible role, by Debian's Ansible under a real systemd; as root
	bash tests/ansible.sh
bench:            ## this program, its peers and the floor, side by side; ROUNDS=20
	bash benches/run.sh
bench-fleet: build ## many elections on three hosts, a drain, the death of a host; as root; ELECTIONS=30 T=10s
	ELECTIONS=$(ELECTIONS) T=$(T) python3 benches/fleet.py
bench-vouching: build ## what --vouch costs: processor time, datagrams, bytes, of 3 and 30 hosts; as root; T=4s
	T=$(if $(filter file,$(origin T)),4s,$(T)) python3 benches/vouching.py
sim:              ## N random fault scripts through the simulator, and a fortieth of N through that of the whole shell
	SIM_SCRIPTS=$(N) cargo test --release --test simulation
	SHELL_SCRIPTS=$$(($(N) / 40)) cargo test --release --test shell -- never_do_two
	SHELL_SCRIPTS=$$(($(N) / 40)) cargo test --release --test shell -- commands_that_live_on
chaos:            ## real servers and hosts in network namespaces, broken at random; as root; SEEDS=1-3 FAULTS=170 UPGRADES=0
	bash -c '. tests/prerequisites.sh && need_zookeeper && need_packages libbyteman-java iproute2 iptables'
	cargo build --example witness
	CHAOS_SEEDS=$(SEEDS) CHAOS_FAULTS=$(FAULTS) CHAOS_UPGRADES=$(UPGRADES) cargo test --test chaos -- --nocapture no_two_commands
outage:           ## hosts that vouch for one another live through an outage of so many seconds, in namespaces; as root; OUTAGE=540 T=4s
	bash -c '. tests/prerequisites.sh && need_zookeeper && need_packages iproute2 iptables'
	cargo build --example witness
	OUTAGE=$(OUTAGE) OUTAGE_T=$(if $(filter file,$(origin T)),4s,$(T)) cargo test --test chaos -- --nocapture an_outage_is_not_noticed
chaos-controls:   ## sabotaged builds must be caught by the same chaos
	bash tests/chaos/controls.sh
fuzz:             ## every parser, with coverage: FUZZ_SECONDS=120 each; rustup toolchain install nightly
	sh tests/fuzz/run.sh $(FUZZ_SECONDS)
world:            ## judges that nobody here wrote: other suites, real programs, a checker of histories, other servers; ROUNDS=20
	bash tests/world/run.sh
mutants:          ## each planted mistake must turn a test red
	bash tests/mutations/run.sh
upgrades:         ## 1 000 upgrades in place of one leader, one after the other
	UPGRADES=1000 cargo test --release --test upgrade_in_place a_leader_is_upgraded -- --nocapture
upgrade-test:     ## this build and an older one in one election; OLD=<revision>
	bash tests/upgrade.sh $(OLD)
test-3.9:         ## the suites that talk to a server, against ZooKeeper 3.9
	bash tests/versions.sh 3.9
deny:             ## licences, bans, sources and advisories, by cargo-deny (cargo install --locked cargo-deny)
	cargo deny check
msrv:             ## the oldest compiler that Cargo.toml promises, from Debian, builds it; as root
	bash tests/msrv.sh
sbom:             ## bill of materials of the release binaries, CycloneDX
	@python3 packaging/sbom.py
reproducible:     ## two release builds in two folders must give the same bytes
	sh packaging/reproducible.sh
demo:
	bash examples/demo.sh
docs:
	cargo doc --no-deps
install: build
	sh packaging/install.sh $(BINARIES)
deb: build        ## target/packages/*.deb
	sh packaging/debian/build.sh $(BINARIES)
rpm: build        ## target/packages/*.rpm
	sh packaging/rpm/build.sh $(BINARIES)
release:          ## the checklist of a release; first sh packaging/release.sh --dry-run
	sh packaging/release.sh
