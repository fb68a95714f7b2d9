# The contributor's and the packager's interface.
PREFIX ?= /usr/local
DESTDIR ?=
N ?= 1000000
SEEDS ?= 1-3
FAULTS ?= 170

.PHONY: build check fix test bench sim chaos chaos-controls mutants test-3.9 demo docs install

build:            ## release binary
	cargo build --release --bins
check:            ## format and clippy
	cargo fmt --check && cargo clippy --all-targets -- -D warnings
fix:              ## format, and rewrite golden files
	cargo fmt && UPDATE=1 cargo test
test:             ## everything that CI runs
	bash tests/run.sh
bench:            ## this program, its peers and the floor, side by side; ROUNDS=20
	bash benches/run.sh
sim:              ## N random fault scripts through the simulator
	SIM_SCRIPTS=$(N) cargo test --release --test simulation
chaos:            ## real servers and hosts in network namespaces, broken at random; as root; SEEDS=1-3 FAULTS=170
	cargo build --example witness
	CHAOS_SEEDS=$(SEEDS) CHAOS_FAULTS=$(FAULTS) cargo test --test chaos -- --nocapture no_two_commands
chaos-controls:   ## sabotaged builds must be caught by the same chaos
	bash tests/chaos/controls.sh
mutants:          ## each planted mistake must turn a test red
	bash tests/mutations/run.sh
test-3.9:         ## the suites that talk to a server, against ZooKeeper 3.9
	bash tests/versions.sh 3.9
demo:
	bash examples/demo.sh
docs:
	cargo doc --no-deps
install: build
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin target/release/zk-leader-run target/release/zk-leaderctl
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 docs/man/*.1
	for program in zk-leader-run zk-leaderctl; do \
	  install -D -m 644 packaging/completions/$$program.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$program; done
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/zsh/site-functions packaging/completions/_*
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d packaging/completions/*.fish
