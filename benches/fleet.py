#!/usr/bin/env python3
"""Many elections on three hosts and an ensemble of three servers, all on this machine: how long until all are led, what an idle fleet
costs, and what happens when a host is drained, or dies, that leads its share. Prints a table for docs/benchmarks.md.

    make bench-fleet                   ELECTIONS=30 T=10s: a contender for each election on every host
    BIN=FOLDER python3 benches/fleet.py

It loads the machine: 300 contenders starved two cores and everybody else on them.

A host is a PID and UTS namespace with a name of its own: root is needed. It dies as a whole when its first process is killed.
"""

import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ELECTIONS = int(os.environ.get("ELECTIONS", "30"))
TIMEOUT = os.environ.get("T", "10s")
BIN = Path(os.environ.get("BIN", "target/release")).resolve()
HOSTS = ["one", "two", "three"]
IDLE = 20
JARS = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar:/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar"
# As PID 1 of a host: N contenders, ten in a second (this machine has not the processors of three hosts), then it only waits. $1: election names up to this; $2: servers; $3: T; $4: starts; $5: the program.
HOST = r"""
hostname "$0"
for i in $(seq "$1"); do
    "$5" -z "$2" --name "job-$i" --session-timeout "$3" --contain subreaper --priority spread --on-loss rejoin --log-level warn -- \
        sh -c 'echo "$0 $1 $(date +%s.%N)" >>"$2" && exec sleep 1d' "job-$i" "$0" "$4" &
    sleep 0.1
done
wait
"""


def ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return found


class Ensemble:
    """Three servers, their data in memory."""

    def __init__(self, folder):
        numbers = ports(9)
        self.clients = numbers[:3]
        members = "".join(f"server.{i}=127.0.0.1:{numbers[3 + i]}:{numbers[6 + i]}\n" for i in range(3))
        self.servers = []
        for i, port in enumerate(self.clients):
            home = folder / str(i)
            home.mkdir()
            (home / "myid").write_text(str(i))
            (home / "zoo.cfg").write_text(
                f"tickTime=2000\ninitLimit=100\nsyncLimit=25\nmaxClientCnxns=0\ndataDir={home}\nclientPortAddress=127.0.0.1\n"
                f"clientPort={port}\nadmin.enableServer=false\n4lw.commands.whitelist=*\n{members}"
            )
            java = ["java", "-Xmx1g", "-cp", JARS, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(home / "zoo.cfg")]
            self.servers.append(subprocess.Popen(java, stdout=open(home / "log", "w"), stderr=subprocess.STDOUT))
        until("the ensemble serves", lambda: all("zk_packets_received" in self.ask(i, "mntr") for i in range(3)))

    def address(self):
        return ",".join(f"127.0.0.1:{port}" for port in self.clients)

    def ask(self, index, word):
        try:
            with socket.create_connection(("127.0.0.1", self.clients[index]), 5) as link:
                link.sendall(word.encode())
                return b"".join(iter(lambda: link.recv(65536), b"")).decode()
        except OSError:
            return ""

    def total(self, key):
        found = (re.search(rf"^{key}\s+([\d.]+)", self.ask(i, "mntr"), re.M) for i in range(3))
        return sum(float(one.group(1)) for one in found if one)

    def slowest(self):
        """Milliseconds of the slowest request since the last call, at any server."""
        found = (re.search(r"^zk_max_latency\s+([\d.]+)", self.ask(i, "mntr"), re.M) for i in range(3))
        slowest = max(float(one.group(1)) for one in found if one)
        for i in range(3):
            self.ask(i, "srst")
        return slowest

    def cpu(self):
        return sum(cpu_of(server.pid) for server in self.servers)


def until(what, holds, limit=900):
    end = time.time() + limit
    while not holds():
        if time.time() > end:
            sys.exit(f"waited {limit} s in vain until {what}")
        time.sleep(0.1)


def cpu_of(pid):
    """Seconds of one core; 0 of a process that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0.0


def descendants(pid):
    found, new = [], [pid]
    while new:
        found += new
        new = [int(child) for one in new for child in children(one)]
    return found


def children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def private(pid):
    """MiB that no other process shares."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(size) for size in re.findall(r"^Private_(?:Clean|Dirty):\s+(\d+)", lines, re.M)) / 1024


def is_ours(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe").endswith("zk-leader-run")
    except OSError:
        return False


class Fleet:
    def __init__(self, folder, ensemble):
        self.folder, self.ensemble = folder, ensemble
        self.starts = folder / "starts"
        self.starts.touch()
        self.hosts = {}

    def boot(self, host):
        words = ["unshare", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child", "bash", "-c", HOST, host]
        words += [str(ELECTIONS), self.ensemble.address(), TIMEOUT, str(self.starts), str(BIN / "zk-leader-run")]
        log = open(self.folder / f"{host}.log", "a")
        self.hosts[host] = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def init_of(self, host):
        """PID 1 of the host."""
        return int(children(self.hosts[host].pid)[0])

    def kill(self, host):
        os.kill(self.init_of(host), signal.SIGKILL)
        self.hosts.pop(host).wait()

    def programs(self):
        return [pid for host in self.hosts.values() for pid in descendants(host.pid) if is_ours(pid)]

    def log_of_starts(self):
        rows = (line.split() for line in self.starts.read_text().splitlines())
        return [(name, host, float(at)) for name, host, at in rows]

    def leaders(self):
        return {name: (host, at) for name, host, at in self.log_of_starts()}

    def led_by(self, host):
        return [name for name, (leader, _) in self.leaders().items() if leader == host]

    def ctl(self, *words):
        return subprocess.run([BIN / "zk-leaderctl", "-z", self.ensemble.address(), "--connect-timeout", "30s", *words])

    def until_members(self):
        """All have said who they are."""
        until("all are in line", lambda: self.ensemble.total("zk_ephemerals_count") >= 3 * 2 * ELECTIONS * len(self.hosts))


def moved(fleet, names, since):
    """When these are led by another one: median and last, in seconds after `since`."""
    def all_moved():
        leaders = fleet.leaders()
        return all(leaders[name][1] > since for name in names)
    until("all are led again", all_moved)
    times = sorted(fleet.leaders()[name][1] - since for name in names)
    return statistics.median(times), times[-1]


class Meter:
    """What ZooKeeper received, and how long its slowest request took."""

    def __init__(self, ensemble):
        self.ensemble = ensemble
        ensemble.slowest()
        self.packets, self.cpu, self.at = ensemble.total("zk_packets_received"), ensemble.cpu(), time.time()

    def read(self):
        seconds = time.time() - self.at
        packets, cpu = self.ensemble.total("zk_packets_received") - self.packets, self.ensemble.cpu() - self.cpu
        return packets, packets / seconds, 100 * cpu / seconds, self.ensemble.slowest()


def idle(fleet, rows):
    programs = fleet.programs()
    memory = sum(private(pid) for pid in programs)
    meter, before = Meter(fleet.ensemble), sum(cpu_of(pid) for pid in programs)
    time.sleep(IDLE)
    (packets, rate, cpu, slowest), after = meter.read(), sum(cpu_of(pid) for pid in programs)
    contenders = ELECTIONS * len(fleet.hosts)
    rows.append(("private memory of a contender, all its processes", f"{memory / contenders:.2f} MiB"))
    rows.append(("CPU of all contenders", f"{100 * (after - before) / IDLE:.0f} % of one core"))
    rows.append(("CPU of the three servers", f"{cpu:.0f} % of one core"))
    rows.append(("packets to ZooKeeper", f"{rate:.0f}/s, {rate / ELECTIONS:.2f}/s for an election"))
    rows.append(("slowest request, idle", f"{slowest:.0f} ms"))


def event(fleet, rows, what, names, act):
    if not names:
        sys.exit(f"{what}: it leads nothing; more elections are needed, ELECTIONS=30 or so")
    meter, since = Meter(fleet.ensemble), time.time()
    act()
    median, last = moved(fleet, names, since)
    packets, _, _, slowest = meter.read()
    rows.append((f"{what}, which leads {len(names)}: until the next leader starts", f"{median:.2f} s median, {last:.2f} s the last"))
    rows.append((f"{what}: packets; slowest request", f"{packets:.0f}; {slowest:.0f} ms"))


def measure(folder):
    ensemble = Ensemble(folder)
    fleet, rows = Fleet(folder, ensemble), []
    try:
        since, meter = time.time(), Meter(ensemble)
        for host in HOSTS:
            fleet.boot(host)
        until("all are led", lambda: len(fleet.leaders()) == ELECTIONS)
        rows.append(("all hosts boot, ten contenders a second: until all are led", f"{max(at for _, at in fleet.leaders().values()) - since:.1f} s"))
        fleet.until_members()
        rows.append(("the same: until all stand in line; slowest request", f"{time.time() - since:.1f} s; {meter.read()[3]:.0f} ms"))
        rows.append(("leaders of each host", ", ".join(str(len(fleet.led_by(host))) for host in HOSTS)))
        time.sleep(5)
        idle(fleet, rows)
        drain = lambda: fleet.ctl("drain", "one", "--wait", "--timeout", "10m")
        event(fleet, rows, "a host is drained", fleet.led_by("one"), drain)
        fleet.ctl("undrain", "one")
        time.sleep(10)
        event(fleet, rows, "a host dies", fleet.led_by("two"), lambda: fleet.kill("two"))
    finally:
        for host in list(fleet.hosts):
            fleet.kill(host)
        for server in ensemble.servers:
            server.kill()
            server.wait()
    return rows


def main():
    # timeout(1), Ctrl-C: the hosts and the servers end all the same.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = Path(tempfile.mkdtemp(prefix="bench-fleet-", dir="/dev/shm"))
    try:
        rows = measure(folder)
    finally:
        shutil.rmtree(folder)
    print(f"| {ELECTIONS} elections × {len(HOSTS)} hosts, T = {TIMEOUT} | |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
