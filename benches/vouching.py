#!/usr/bin/env python3
"""What --vouch costs: elections of 3 and 30 hosts with and without it, beside one another on this machine. Prints for the leader and a
standby: processor time, datagrams and bytes; then all servers are stopped, and the same again while the leader lives on promises.

    make bench-vouching                T=4s
    BIN=FOLDER python3 benches/vouching.py

Datagrams are counted by the kernel: each election has a network namespace of its own, in which its hosts and its server talk over loopback.
Root is needed.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fleet import JARS, children, cpu_of, descendants, is_ours  # noqa: E402

TIMEOUT = os.environ.get("T", "4s")
BIN = Path(os.environ.get("BIN", "target/release")).resolve()
SECONDS = int(os.environ.get("SECONDS_EACH", "60"))
DATAGRAM = 84 + 8 + 20  # with the headers of UDP and IPv4


class Election:
    def __init__(self, folder, hosts, vouches):
        self.name, self.folder = f"zkb{os.getpid()}-{hosts}-{int(vouches)}", folder / f"{hosts}-{vouches}"
        self.hosts, self.vouches = hosts, vouches
        self.folder.mkdir()
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        subprocess.run(["ip", "-n", self.name, "link", "set", "lo", "up"], check=True)
        (self.folder / "zoo.cfg").write_text(
            f"tickTime=500\nmaxClientCnxns=0\ndataDir={self.folder}\nclientPortAddress=127.0.0.1\nclientPort=2181\nadmin.enableServer=false\n"
        )
        java = ["java", "-Xmx128m", "-Dzookeeper.forceSync=no", "-cp", JARS, "org.apache.zookeeper.server.ZooKeeperServerMain"]
        self.server = self.run(*java, str(self.folder / "zoo.cfg"))
        option = ["--vouch"] if vouches else []
        words = [str(BIN / "zk-leader-run"), "-z", "127.0.0.1:2181", "--name", "job", "--session-timeout", TIMEOUT, "--contain", "subreaper"]
        self.processes = []
        for host in range(hosts):
            self.processes.append(self.run(*words, *option, "--id", f"h{host}", "--", "sleep", "1d"))
            time.sleep(0.1)

    def run(self, *words):
        log = open(self.folder / "log", "a")
        return subprocess.Popen(["ip", "netns", "exec", self.name, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def programs(self, host):
        return [pid for pid in descendants(self.processes[host].pid) if is_ours(pid)]

    def leader(self):
        """Whose command runs."""
        for host, process in enumerate(self.processes):
            for pid in descendants(process.pid):
                try:
                    if os.readlink(f"/proc/{pid}/exe").endswith("/sleep"):
                        return host
                except OSError:
                    pass
        return None

    def cpu(self, host):
        return sum(cpu_of(pid) for pid in self.programs(host))

    def datagrams(self):
        snmp = subprocess.run(["ip", "netns", "exec", self.name, "cat", "/proc/net/snmp"], capture_output=True, text=True).stdout
        head, values = (line.split()[1:] for line in snmp.splitlines() if line.startswith("Udp:"))
        return int(dict(zip(head, values))["OutDatagrams"])

    def end(self):
        for process in [*self.processes, self.server]:
            process.send_signal(signal.SIGTERM)
        for process in [*self.processes, self.server]:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        subprocess.run(["ip", "netns", "del", self.name])


def measure(elections, what):
    def look():
        leaders = [election.leader() for election in elections]
        rest = [next(host for host in range(e.hosts) if host != leader) for e, leader in zip(elections, leaders)]
        return [(e.cpu(a) if a is not None else 0, e.cpu(b), e.datagrams()) for e, a, b in zip(elections, leaders, rest)]

    before = look()
    time.sleep(SECONDS)
    for election, one, other in zip(elections, before, look()):
        leader, standby, datagrams = ((b - a) / SECONDS for a, b in zip(one, other))
        option = "--vouch" if election.vouches else "without"
        print(
            f"{what:24} {election.hosts:3} hosts {option:8} leader {1000 * leader:5.1f} ms/s  standby {1000 * standby:5.1f} ms/s  "
            f"{datagrams:5.1f} datagrams/s {DATAGRAM * datagrams:6.0f} B/s, leads: {election.leader()}",
            flush=True,
        )


with tempfile.TemporaryDirectory() as folder:
    elections = []
    try:
        for hosts in (3, 30):
            for vouches in (True, False):
                elections.append(Election(Path(folder), hosts, vouches))
        end = time.time() + 120
        while any(election.leader() is None for election in elections):
            if time.time() > end:
                sys.exit("nobody leads")
            time.sleep(0.5)
        time.sleep(15)
        measure(elections, "with ZooKeeper")
        for election in elections:
            for pid in descendants(election.server.pid):
                os.kill(pid, signal.SIGKILL)
        time.sleep(15)
        measure(elections, "in an outage")
    finally:
        for election in elections:
            election.end()
