#!/usr/bin/env python3
"""Ensembles as sites run them: with an observer, behind HAProxy in TCP mode, with forceSync on a disk, among 10 000 other znodes.

    ensembles.py BINARIES [JARS]      ROUNDS=20: so many of each ending

Two hosts, connected through HAProxy to three voters and an observer; the leader is ended in each way, and the other one takes over.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from programs import PORTS, alone, serves, until

JARS = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar"
VOTERS, OTHERS = 3, 10_000


def word(port, text="srvr"):
    try:
        with socket.create_connection(("127.0.0.1", port), 2) as client:
            client.settimeout(2)
            client.sendall(text.encode())
            return client.makefile().read()
    except OSError:
        return ""


def mode(port):
    return next((line[6:] for line in word(port).splitlines() if line.startswith("Mode: ")), None)


class Ensemble:
    def __init__(self, work, jars, options=()):
        self.ports = [[next(PORTS) for _ in range(3)] for _ in range(VOTERS + 1)]
        members = ""
        for index, (_, quorum, election) in enumerate(self.ports):
            members += f"server.{index}=127.0.0.1:{quorum}:{election}{':observer' if index == VOTERS else ''}\n"
        self.processes = []
        for index, (client, *_) in enumerate(self.ports):
            home = f"{work}/server-{index}"
            os.mkdir(home)
            with open(f"{home}/myid", "w") as file:
                file.write(str(index))
            with open(f"{home}/zoo.cfg", "w") as file:
                file.write(f"tickTime=250\ninitLimit=20\nsyncLimit=8\ndataDir={home}\nclientPort={client}\n"
                           f"clientPortAddress=127.0.0.1\n{'peerType=observer' if index == VOTERS else ''}\n{members}")
            command = ["java", "-Xmx128m", "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.forceSync=yes"]
            command += [*options, "-cp", jars]
            command += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{home}/zoo.cfg"]
            log = open(f"{home}/log", "w")
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        until("four servers serve", lambda: all(mode(client) for client, *_ in self.ports))
        modes = sorted(mode(client) for client, *_ in self.ports)
        assert modes == ["follower", "follower", "leader", "observer"], modes

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def balancer(work, servers):
    port = next(PORTS)
    with open(f"{work}/haproxy.cfg", "w") as file:
        file.write(f"""defaults
  mode tcp
  timeout connect 1s
  timeout client 30s
  timeout server 30s
listen zookeeper
  bind 127.0.0.1:{port}
  balance roundrobin
""" + "".join(f"  server s{index} 127.0.0.1:{server} check inter 500ms\n" for index, server in enumerate(servers)))
    process = subprocess.Popen(["haproxy", "-db", "-q", "-f", f"{work}/haproxy.cfg"], stderr=-3)
    until("HAProxy listens", lambda: serves(port))
    return process, port


def fill(jars, port):
    """10 000 other znodes, by ZooKeeper's own client, which counts them afterwards."""
    script = "create /others\n" + "".join(f"create /others/{number} x\n" for number in range(OTHERS))
    script += "getAllChildrenNumber /others\nquit\n"
    command = ["java", "-cp", jars, "org.apache.zookeeper.ZooKeeperMain", "-server", f"127.0.0.1:{port}"]
    told = subprocess.run(command, input=script, capture_output=True, text=True, timeout=600).stdout
    assert str(OTHERS) in told, told[-500:]


class Host:
    def __init__(self, work, binaries, port, path, name):
        self.diary = f"{work}/diary"
        script = 'echo "$ZK_LEADER_ID $ZK_LEADER_TOKEN" >>"$1"; exec sleep 1000'
        command = [f"{binaries}/zk-leader-run", "--connect", f"127.0.0.1:{port}", "--path", path, "--id", name]
        command += ["--session-timeout", "4s", "--", "sh", "-c", script, "sh", self.diary]
        self.process = subprocess.Popen(command, stdin=-3, stderr=open(f"{work}/{name}.log", "w"))


def starts(diary):
    return [line.split() for line in open(diary)] if os.path.exists(diary) else []


def one_round(work, binaries, port, ensemble, ending, number):
    folder = f"{work}/{ending}-{number}"
    os.mkdir(folder)
    path = f"/world/{ending}-{number}"
    first = Host(folder, binaries, port, path, "a")
    second = None
    try:
        until("the first host leads", lambda: len(starts(first.diary)) == 1)
        second = Host(folder, binaries, port, path, "b")
        began = time.monotonic()
        if ending == "stop":
            first.process.terminate()
        elif ending == "kill":
            first.process.kill()
        else:
            first.process.send_signal(signal.SIGSTOP)
        until("the second host leads", lambda: len(starts(first.diary)) == 2)
        took = time.monotonic() - began
        told = starts(first.diary)
        assert [start[0] for start in told] == ["a", "b"] and int(told[0][1]) < int(told[1][1]), told
        return took
    finally:
        for host in filter(None, [first, second]):
            host.process.send_signal(signal.SIGCONT) if host.process.poll() is None else None
            host.process.terminate()
            host.process.wait(60)


def main(binaries, jars=JARS):
    rounds = int(os.environ.get("ROUNDS", "1"))
    work = tempfile.mkdtemp(prefix="zk-leader-run-world-")
    ensemble, proxy = None, None
    try:
        ensemble = Ensemble(work, jars)
        proxy, port = balancer(work, [client for client, *_ in ensemble.ports])
        fill(jars, ensemble.ports[0][0])
        for ending in ["stop", "kill", "hang"]:
            times = sorted(one_round(work, binaries, port, ensemble, ending, number) for number in range(rounds))
            print(f"{ending:<6} {len(times)}/{rounds}, next start after {times[len(times) // 2]:.3f} s, "
                  f"at most {times[-1]:.3f} s", flush=True)
    finally:
        if proxy:
            proxy.kill()
            proxy.wait()
        if ensemble:
            ensemble.end()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    alone()
    main(*sys.argv[1:])
