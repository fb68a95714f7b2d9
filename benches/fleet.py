#!/usr/bin/env python3
"""Many elections on three hosts and an ensemble of three servers, all on this machine: how long until all are led, what an idle fleet
costs, and what happens when a host is drained, or dies, that leads its share. Keeps what it measured in target/fleet, and writes the
table in docs/benchmarks.md and docs/benchmarks-fleet.svg from all that is kept there.

    make bench-fleet                   ELECTIONS=30 T=10s: a contender for each election on every host
    BIN=FOLDER python3 benches/fleet.py
    python3 benches/fleet.py --write   only writes table and plot

It loads the machine, and stops by itself when the load average exceeds 60. A host is a PID and UTS namespace with a name of its own: root
is needed. It dies as a whole when its first process is killed.
"""

import datetime
import json
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
# Contenders that each host starts in a second: this machine has not the processors of three hosts.
STARTS = int(os.environ.get("STARTS", "10"))
HIGHEST_LOAD = 60
KEPT = Path("target/fleet")
PAGE, PLOT = Path("docs/benchmarks.md"), Path("docs/benchmarks-fleet.svg")
JARS = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar:/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar"
# As PID 1 of a host: starts its contenders, then only waits. $1: election names up to this; $2: servers; $3: T; $4: where starts are
# noted; $5: the program; $6: seconds between two contenders.
HOST = r"""
hostname "$0"
for i in $(seq "$1"); do
    "$5" -z "$2" --name "job-$i" --session-timeout "$3" --contain subreaper --priority spread --preempt-after 5s --on-loss rejoin --log-level warn -- \
        sh -c 'echo "$0 $1 $(date +%s.%N)" >>"$2" && exec sleep 1d' "job-$i" "$0" "$4" &
    sleep "$6"
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
                f"tickTime=2000\ninitLimit=100\nsyncLimit=25\nmaxClientCnxns=0\nmaxSessionTimeout=120000\ndataDir={home}\nclientPortAddress=127.0.0.1\n"
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
        calm()
        if time.time() > end:
            sys.exit(f"waited {limit} s in vain until {what}")
        time.sleep(0.1)


def calm():
    if os.getloadavg()[0] > HIGHEST_LOAD:
        sys.exit(f"stopped: the load average exceeds {HIGHEST_LOAD}")


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
        words += [str(ELECTIONS), self.ensemble.address(), TIMEOUT, str(self.starts), str(BIN / "zk-leader-run"), str(1 / STARTS)]
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

    def until_settled(self):
        """No leader has changed for longer than --preempt-after."""
        begun = time.time()
        until("leaders have spread", lambda: max(begun, self.newest_start()) < time.time() - 8)

    def newest_start(self):
        return max(at for _, _, at in self.log_of_starts())

    def until_members(self):
        """All have said who they are."""
        until("all are in line", lambda: self.ensemble.total("zk_ephemerals_count") >= 3 * 2 * ELECTIONS * len(self.hosts))


def moved(fleet, names, since):
    """When these are led by another one: seconds after `since`, sorted."""
    def all_moved():
        leaders = fleet.leaders()
        return all(leaders[name][1] > since for name in names)
    until("all are led again", all_moved)
    return sorted(fleet.leaders()[name][1] - since for name in names)


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


def idle(fleet):
    programs = fleet.programs()
    memory = sum(private(pid) for pid in programs)
    starts = len(fleet.log_of_starts())
    meter, before = Meter(fleet.ensemble), sum(cpu_of(pid) for pid in programs)
    time.sleep(IDLE)
    (_, rate, cpu, slowest), after = meter.read(), sum(cpu_of(pid) for pid in programs)
    return {
        "memory": memory / (ELECTIONS * len(fleet.hosts)),
        "cpu": 100 * (after - before) / IDLE,
        "servers_cpu": cpu,
        "rate": rate,
        "slowest": slowest,
        "changes": len(fleet.log_of_starts()) - starts,
    }


def event(fleet, names, act):
    if not names:
        sys.exit("the host leads nothing; more elections are needed, ELECTIONS=30 or so")
    meter, since = Meter(fleet.ensemble), time.time()
    act()
    times = moved(fleet, names, since)
    packets, _, _, slowest = meter.read()
    return {"times": times, "packets": packets, "slowest": slowest}


def measure(folder):
    ensemble = Ensemble(folder)
    fleet = Fleet(folder, ensemble)
    found = {"elections": ELECTIONS, "timeout": TIMEOUT, "starts": STARTS, "day": f"{datetime.date.today():%-d %B %Y}"}
    try:
        since, meter = time.time(), Meter(ensemble)
        for host in HOSTS:
            fleet.boot(host)
        until("all are led", lambda: len(fleet.leaders()) == ELECTIONS)
        found["led"] = max(at for _, at in fleet.leaders().values()) - since
        fleet.until_members()
        found["in_line"], found["boot_slowest"] = time.time() - since, meter.read()[3]
        found["load"] = os.getloadavg()[0]
        fleet.until_settled()
        found["settled"] = fleet.newest_start() - since
        found["share"] = [len(fleet.led_by(host)) for host in HOSTS]
        found["idle"] = idle(fleet)
        drain = lambda: fleet.ctl("drain", "one", "--wait", "--timeout", "10m")
        found["drain"] = event(fleet, fleet.led_by("one"), drain)
        fleet.ctl("undrain", "one")
        fleet.until_settled()
        found["death"] = event(fleet, fleet.led_by("two"), lambda: fleet.kill("two"))
    except BaseException:
        print(f"so far: {found}", file=sys.stderr)
        for log in folder.glob("*.log"):
            print(log.read_text()[-2000:], file=sys.stderr)
        raise
    finally:
        for host in list(fleet.hosts):
            fleet.kill(host)
        for server in ensemble.servers:
            server.kill()
            server.wait()
    return found


ROWS = [
    ("T; contenders that each host starts in a second", lambda it: f"{it['timeout']}; {it['starts']}"),
    ("all hosts boot: until all are led", lambda it: f"{it['led']:.1f} s"),
    ("until all stand in line; slowest request", lambda it: f"{it['in_line']:.1f} s; {it['boot_slowest']:.0f} ms"),
    ("until they have spread (`--priority spread --preempt-after 5s`): leaders of each host", lambda it: f"{it['settled']:.0f} s: " + ", ".join(str(count) for count in it["share"])),
    ("private memory of a contender", lambda it: f"{it['idle']['memory']:.2f} MiB"),
    ("CPU of all contenders, idle", lambda it: f"{it['idle']['cpu']:.0f} % of a core"),
    ("CPU of the three servers, idle", lambda it: f"{it['idle']['servers_cpu']:.0f} % of a core"),
    ("packets to ZooKeeper, idle: all; for an election", lambda it: f"{it['idle']['rate']:.0f}/s; {it['idle']['rate'] / it['elections']:.2f}/s"),
    (f"slowest request in {IDLE} s, idle; leaders that changed", lambda it: f"{it['idle']['slowest']:.0f} ms; {it['idle']['changes']}"),
]
for _key, _what in [("drain", "a host is drained"), ("death", "a host dies")]:
    ROWS += [
        (f"{_what}: elections that it leads", lambda it, key=_key: str(len(it[key]["times"]))),
        ("the next leader starts after: median; last", lambda it, key=_key: f"{statistics.median(it[key]['times']):.2f} s; {it[key]['times'][-1]:.2f} s"),
        ("packets; slowest request", lambda it, key=_key: f"{it[key]['packets']:.0f}; {it[key]['slowest']:.0f} ms"),
    ]


def table(runs):
    lines = ["| elections × 3 contenders | " + " | ".join(f"{it['elections']}" for it in runs) + " |", "|---" * (len(runs) + 1) + "|"]
    return "\n".join(lines + [f"| {name} | " + " | ".join(show(it) for it in runs) + " |" for name, show in ROWS])


# Black and white are exchanged on a dark page, as in the other plots.
STYLE = """<style>@media(prefers-color-scheme:dark){svg{fill:#e6edf3}[fill="#fff"]{fill:#0d1117}[fill="#000"]{fill:#e6edf3}\
[stroke="#000"]{stroke:#e6edf3}[fill="#666"]{fill:#9da7b3}[stroke="#ccc"]{stroke:#444c56}}</style>"""
COLOURS = ["#aaaaaa", "#2a78b5", "#6aa84f", "#e0a03c", "#b05a9c"]
WIDTH, HEIGHT, TOP = 310, 170, 40


def panel(left, title, runs, key):
    """The share of elections that are led again, over the seconds since the event."""
    longest = max(it[key]["times"][-1] for it in runs)
    step = next(step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if longest / step <= 6)
    end = step * (int(longest / step) + 1)
    x = lambda seconds: left + WIDTH * seconds / end
    y = lambda share: TOP + HEIGHT * (1 - share)
    parts = [f'<text x="{left}" y="20" font-size="13" font-weight="bold">{title}</text>']
    for share in (0, 0.5, 1):
        parts.append(f'<path d="M{left} {y(share):.1f}h{WIDTH}" fill="none" stroke="#ccc" stroke-width="1"/>')
        parts.append(f'<text x="{left - 6}" y="{y(share) + 4:.1f}" text-anchor="end" fill="#666">{share:.0%}</text>')
    for number in range(round(end / step) + 1):
        parts.append(f'<text x="{x(number * step):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle" fill="#666">{number * step:g}</text>')
    for at, it in enumerate(runs):
        times = it[key]["times"]
        path = f"M{x(0):.1f} {y(0):.1f}" + "".join(f"H{x(when):.1f}V{y((rank + 1) / len(times)):.1f}" for rank, when in enumerate(times))
        colour = COLOURS[at % len(COLOURS)]
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{left + 60 + 90 * at}" y="{TOP + HEIGHT + 50}" fill="{colour}">{len(times)} (T = {it["timeout"]})</text>')
    parts.append(f'<text x="{left}" y="{TOP + HEIGHT + 33}" fill="#666">seconds since then; elections that the host led:</text>')
    return parts


def plot(runs):
    title = "Elections that are led again after a host was drained, and after a host died"
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="800" height="270" viewBox="0 0 800 270" font-family="sans-serif" font-size="11" role="img">'
    parts = [head, f"<title>{title}</title>", STYLE, '<rect width="100%" height="100%" fill="#fff"/>']
    parts += panel(50, "A host is drained: led again", runs, "drain") + panel(450, "A host dies: led again", runs, "death")
    return "\n".join(parts + ["</svg>"]) + "\n"


BEGIN, END = "<!-- fleet: written by `make bench-fleet` -->\n", "<!-- end of fleet -->"


def write():
    runs = sorted((json.loads(file.read_text()) for file in KEPT.glob("*.json")), key=lambda it: it["elections"])
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table(runs)}\n\n{END}{rest.split(END)[1]}")
    PLOT.write_text(plot(runs))


def main():
    if sys.argv[1:] == ["--write"]:
        return write()
    # timeout(1), Ctrl-C: the hosts and the servers end all the same.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = Path(tempfile.mkdtemp(prefix="bench-fleet-", dir="/dev/shm"))
    try:
        found = measure(folder)
    finally:
        shutil.rmtree(folder)
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{ELECTIONS}.json").write_text(json.dumps(found))
    write()
    print(table([found]))


if __name__ == "__main__":
    main()
