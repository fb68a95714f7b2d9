#!/usr/bin/env python3
"""Faults inside ZooKeeper's servers, by Byteman: a slow disk, halted stages of the pipeline, answers that are lost after the commit,
a leader that does not notice that it has lost its quorum.

    server_faults.py BINARIES [JARS]      ROUNDS=20: so many of each fault

Two hosts contend while the fault is on for some seconds. Their commands hold one lock; who finds it taken writes that down. Each fault
must be seen to strike, or the round fails. After it, a command must run again.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ensembles import JARS, Ensemble, mode
from programs import alone, until

SERVER = "org.apache.zookeeper.server"
# Where, and what; `{on}` is the file that switches it on, `{struck}` is written whenever it strikes.
FAULTS = {
    "slow fsync, 0.5 s": (f"{SERVER}.persistence.FileTxnLog", "commit()", "delay(500)"),
    "slow fsync, 2 s": (f"{SERVER}.persistence.FileTxnLog", "commit()", "delay(2000)"),
    "slow fsync, 5 s": (f"{SERVER}.persistence.FileTxnLog", "commit()", "delay(5000)"),
    "halted sync stage": (f"{SERVER}.SyncRequestProcessor", "flush", "delay(6000)"),
    "halted commit stage": (f"{SERVER}.quorum.CommitProcessor", "processWrite", "delay(6000)"),
    "answers lost after the commit": (f"{SERVER}.NIOServerCnxn", "sendResponse", "return 0"),
    "blind leader": (f"{SERVER}.quorum.LearnerHandler", "synced", "return true"),
}


def rules(folder):
    text = ""
    for number, (where, method, action) in enumerate(FAULTS.values()):
        condition = "on.exists()" + (" AND java.lang.Math.random() < 0.2" if action == "return 0" else "")
        files = f'on:java.io.File = new java.io.File("{folder}/on-{number}"); struck:java.io.File = new java.io.File("{folder}/struck-{number}")'
        text += f"RULE {number}\nCLASS {where}\nMETHOD {method}\nAT ENTRY\nBIND {files}\n"
        text += f"IF {condition}\nDO struck.mkdir(); {action}\nENDRULE\n"
    with open(f"{folder}/rules.btm", "w") as file:
        file.write(text)
    return f"-javaagent:/usr/share/java/byteman.jar=script:{folder}/rules.btm,boot:/usr/share/java/byteman.jar"


class Host:
    def __init__(self, folder, binaries, ensemble, path, name):
        self.diary = f"{folder}/diary"
        script = 'exec 9>"$1.lock"; flock -n 9 || echo "overlap $ZK_LEADER_ID" >>"$1"; '
        script += 'while echo "$ZK_LEADER_ID $ZK_LEADER_TOKEN $(date +%s.%N)" >>"$1"; do sleep 0.05; done'
        servers = ",".join(f"127.0.0.1:{client}" for client, *_ in ensemble.ports)
        command = [f"{binaries}/zk-leader-run", "--connect", servers, "--path", path, "--id", name, "--session-timeout", "4s"]
        command += ["--", "sh", "-c", script, "sh", self.diary]
        self.log = open(f"{folder}/{name}.log", "w")
        self.process = subprocess.Popen(command, stdin=-3, stderr=self.log)

    def end(self):
        self.process.terminate()
        self.process.wait(60)


def last_stamp(diary):
    lines = open(diary).read().splitlines()[:-1] if os.path.exists(diary) else []
    stamps = [line.split()[2] for line in lines if len(line.split()) == 3]
    return float(stamps[-1]) if stamps else 0.0


def one_round(work, binaries, ensemble, number, attempt):
    folder = f"{work}/{number}-{attempt}"
    os.mkdir(folder)
    hosts = [Host(folder, binaries, ensemble, f"/faults/{number}-{attempt}", name) for name in "ab"]
    diary, switch, struck = hosts[0].diary, f"{work}/on-{number}", f"{work}/struck-{number}"
    try:
        until("a command runs", lambda: last_stamp(diary))
        open(switch, "w").close()
        frozen = None
        if number == len(FAULTS) - 1:
            # Its followers stand still; it goes on answering reads, and takes no write.
            frozen = [process for process, (client, *_) in zip(ensemble.processes, ensemble.ports) if mode(client) == "follower"]
            for process in frozen:
                process.send_signal(19)
        time.sleep(random.uniform(6, 10))
        os.unlink(switch)
        for process in frozen or []:
            process.send_signal(18)
        until("the fault has struck", lambda: os.path.exists(struck))
        healed = time.time()
        until("a command runs again", lambda: last_stamp(diary) > healed)
        back = last_stamp(diary) - healed
    finally:
        if os.path.exists(switch):
            os.unlink(switch)
        for host in hosts:
            host.end()
        if os.path.exists(struck):
            os.rmdir(struck)
    text = open(diary).read()
    assert "overlap" not in text, text
    return len({line.split()[1] for line in text.splitlines() if len(line.split()) == 3}), back


def main(binaries, jars=JARS):
    rounds = int(os.environ.get("ROUNDS", "1"))
    work = tempfile.mkdtemp(prefix="zk-leader-run-world-")
    ensemble, failures = None, 0
    try:
        ensemble = Ensemble(work, jars, [rules(work), "-Dorg.jboss.byteman.transform.all=false"])
        for number, name in enumerate(FAULTS):
            good, terms, longest = 0, 0, 0.0
            for attempt in range(rounds):
                try:
                    count, back = one_round(work, binaries, ensemble, number, attempt)
                    good, terms, longest = good + 1, terms + count, max(longest, back)
                except (AssertionError, TimeoutError, subprocess.TimeoutExpired) as error:
                    failures += 1
                    print(f"{name}, round {attempt}: {error}", file=sys.stderr)
            print(f"{name:<32} {good}/{rounds}, {terms} terms, a command again after at most {longest:.1f} s", flush=True)
    finally:
        if ensemble:
            ensemble.end()
        os.environ.get("KEEP") or shutil.rmtree(work, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    alone()
    sys.exit(main(*sys.argv[1:]))
