#!/usr/bin/env python3
"""Real programs as commands: two hosts, one ends in each way, and the other's program must start at the first try.

    programs.py BINARIES [PROGRAM...]     ROUNDS=20: so many of each ending for each program

Each host has a UTS namespace of its own, by which its processes are known whatever they call themselves. Ports, lock files,
data and shared memory are common, as on a shared disk: what the last leader left would be in the successor's way. But they are
in a network namespace of ours: a stranger on the machine must not take a port that was free a moment ago.

A leader that gets no CPU for longer than its lease stops, and may lead again: its log must say so for each further start.
"""
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

LIMIT = 60
KEEP = os.environ.get("KEEP")
T = "2s"
ENDINGS = ["stop", "kill", "kill-together", "freeze", "cut"]
JARS = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar"
LISTENER = "import socket,time; s=socket.create_server(('127.0.0.1',{port}),reuse_port=False); time.sleep(1e6)"
POOL = """
import multiprocessing, socket, time
from multiprocessing import shared_memory
def work(_):
    while True: sum(range(20000)); time.sleep(0.01)
memory = shared_memory.SharedMemory(create=True, size=1<<20)
pool = multiprocessing.Pool(4)
pool.map_async(work, range(4))
server = socket.create_server(('127.0.0.1', {port}))
time.sleep(1e6)
"""


# Below those that the kernel gives to outgoing connections.
PORTS = itertools.count(10000)
# What a host says that lost its lease although nobody ended it.
STARVED = ["stopping: no renewal was acknowledged in time", "stopping: this host stood still"]


def alone():
    """Executes this script once more, in a network namespace of its own: nobody else takes its ports."""
    if "--inside" in sys.argv:
        return sys.argv.remove("--inside")
    inside = 'ip link set lo up; exec "$0" "$@" --inside'
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", inside, sys.executable, *sys.argv])


def until(what, holds):
    end = time.monotonic() + LIMIT
    while not (answer := holds()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)
    return answer


def processes(uts):
    """Those of one host that live, our own program excepted: pid and name."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}/ns/uts").st_ino != uts:
                continue
            program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if not program.startswith("zk-leader-run") and state != "Z":
            found.append((int(pid), program))
    return found


def ended(uts):
    """What is there after some seconds should not be; it is told, and killed."""
    end = time.monotonic() + 5
    while (left := processes(uts)) and time.monotonic() < end:
        time.sleep(0.02)
    for pid, _ in left:
        tell(pid, signal.SIGKILL)
    return left


def tell(pid, number):
    """It may have ended meanwhile, as a guard does when its supervisor is killed."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def execute(arguments):
    """First in the command: what of the others lives now is written down."""
    report, others, command = arguments[0], arguments[1], arguments[2:]
    living = [process for uts in others.split(",") if uts for process in processes(int(uts))]
    with open(report, "a") as file:
        file.write(f"{os.environ['ZK_LEADER_ID']} {os.environ['ZK_LEADER_TOKEN']} {living}\n")
    os.execvp(command[0], command)


def serves(port):
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


def state_of(pid):
    """Why a process has not ended, as far as the kernel knows."""
    told = []
    for name in ["status", "wchan", "schedstat"]:
        try:
            text = open(f"/proc/{pid}/{name}").read()
        except OSError as error:
            text = str(error)
        wanted = ("State", "SigPnd", "ShdPnd", "SigBlk", "Threads")
        told += [line for line in text.splitlines() if name != "status" or line.startswith(wanted)]
    return ", ".join(told)


class Programs:
    """A command for each name, and how to know that it works."""

    def __init__(self, work):
        self.work = work

    def folder(self, owner=None):
        folder = tempfile.mkdtemp(dir=self.work)
        os.chmod(folder, 0o700)
        if owner:
            shutil.chown(folder, owner, owner)
        return folder

    def postgresql(self, port):
        folder = self.folder("postgres")
        tools = subprocess.check_output("ls -d /usr/lib/postgresql/*/bin", shell=True, text=True).split()[-1]
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        subprocess.run([*user, f"{tools}/initdb", "-D", f"{folder}/data", "-A", "trust"], check=True, stdout=-3)
        ready = [f"{tools}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        command = [*user, f"{tools}/postgres", "-D", f"{folder}/data", "-p", str(port), "-k", folder]
        return command + ["-c", "listen_addresses=127.0.0.1"], lambda: subprocess.run(ready).returncode == 0

    def nginx(self, port):
        folder = self.folder()
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(f"""daemon off; worker_processes 4; pid {folder}/pid; error_log {folder}/log;
                events {{}} http {{ access_log off; server {{ listen 127.0.0.1:{port}; }} }}""")
        return ["nginx", "-c", f"{folder}/nginx.conf"], lambda: serves(port)

    def redis(self, port):
        return ["redis-server", "--port", str(port), "--dir", self.folder()], lambda: serves(port)

    def jvm(self, port):
        folder = self.folder()
        command = ["java", "-Xmx64m", "-Dzookeeper.admin.enableServer=false", "-cp", JARS]
        command += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(port), folder]
        return command, lambda: serves(port)

    def python_pool(self, port):
        return ["python3", "-c", POOL.format(port=port)], lambda: serves(port)

    def shell_with_jobs(self, port):
        script = f"exec 9>{self.folder()}/lock; flock -n 9 || exit 99; sleep 1000 & (sleep 1000 & wait) & "
        script += f"python3 -c \"{LISTENER.format(port=port)}\" & wait"
        return ["sh", "-c", script], lambda: serves(port)

    def daemon(self, port):
        script = f"redis-server --port {port} --dir {self.folder()} --daemonize yes; exec sleep 1000"
        return ["sh", "-c", script], lambda: serves(port)

    def other_user(self, port):
        user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        return [*user, "python3", "-c", LISTENER.format(port=port)], lambda: serves(port)

    def unshared(self, port):
        command = ["unshare", "--fork", "--pid", "--mount-proc", "python3", "-c", LISTENER.format(port=port)]
        return command, lambda: serves(port)


class Host:
    def __init__(self, world, name, others):
        self.name, self.world = name, world
        self.link = next(PORTS)
        self.proxy = subprocess.Popen([f"{world.binaries}/examples/proxy", f"127.0.0.1:{self.link}", world.server])
        until("the proxy listens", lambda: serves(self.link))
        self.log = open(f"{world.folder}/{name}.log", "w")
        options = ["--connect", f"127.0.0.1:{self.link}", "--path", world.path, "--id", name]
        options += ["--session-timeout", T, "--contain", world.contain, "--stop-timeout", "10s"]
        first = [sys.executable, os.path.abspath(__file__), "--execute", world.report, others]
        command = ["unshare", "--uts", f"{world.binaries}/zk-leader-run", *options, "--", *first, *world.command]
        self.process = subprocess.Popen(command, stdin=-3, stdout=self.log, stderr=self.log)
        program = lambda: os.path.basename(os.readlink(f"/proc/{self.process.pid}/exe")) == "zk-leader-run"
        until("the supervisor runs", program)
        # As long as it is open, no other namespace gets its number.
        self.namespace = open(f"/proc/{self.process.pid}/ns/uts")
        self.uts = os.fstat(self.namespace.fileno()).st_ino

    def keepers(self):
        """Supervisor and guard; the sentinel has another name."""
        guards = subprocess.run(["ps", "-eo", "pid,comm"], capture_output=True, text=True).stdout.splitlines()[1:]
        # A process may have an empty name.
        named = [line.strip().partition(" ") for line in guards]
        pids = [int(pid) for pid, _, name in named if name.strip().startswith("zk-leader")]
        return [pid for pid in pids if self.has(pid)]

    def has(self, pid):
        try:
            return os.stat(f"/proc/{pid}/ns/uts").st_ino == self.uts
        except OSError:
            return False

    def leads(self):
        with open(self.world.report) as file:
            return any(line.startswith(f"{self.name} ") for line in file)

    def starved(self):
        """How often it lost its lease."""
        said = open(self.log.name).read()
        return sum(said.count(words) for words in STARVED)

    def end(self, how):
        if how == "stop":
            self.process.terminate()
        elif how == "kill":
            self.process.kill()
        elif how == "kill-together":
            for pid in self.keepers():
                tell(pid, signal.SIGKILL)
        elif how == "freeze":
            for pid in self.keepers():
                tell(pid, signal.SIGSTOP)
        else:
            os.kill(self.proxy.pid, signal.SIGSTOP)

    def clear(self):
        """Thaws, heals and stops it; what is there after that should not be."""
        for pid in [self.proxy.pid, *self.keepers()]:
            tell(pid, signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            state = state_of(self.process.pid)
            self.process.kill()
            self.process.wait()
            raise TimeoutError(f"{self.name} has not ended {LIMIT} s after SIGTERM: {state}") from None
        finally:
            self.proxy.kill()
            self.proxy.wait()
            self.log.close()


class Round:
    def __init__(self, binaries, server, work, name, ending, number):
        self.binaries, self.server, self.port = binaries, server, next(PORTS)
        self.folder = tempfile.mkdtemp(dir=work)
        os.chmod(self.folder, 0o755)
        os.chmod(work, 0o755)
        self.contain = ["subreaper", "pid-namespace"][number % 2]
        self.path = f"/world/{name}-{ending}-{number}"
        self.report = f"{self.folder}/report"
        open(self.report, "w").close()
        self.command, self.works = getattr(Programs(self.folder), name)(self.port)

    def run(self, ending):
        first = second = None
        try:
            first = Host(self, "a", "")
            until("the first host's program works", lambda: first.leads() and self.works())
            second = Host(self, "b", str(first.uts))
            first.end(ending)
            until("the second host leads", second.leads)
            until("the second host's program works", lambda: second.process.poll() is not None or self.works())
            assert second.process.poll() is None, f"its program ended: {open(second.log.name).read()[-2000:]}"
            starts = [line.split(" ", 2) for line in open(self.report)]
            assert [name for name, _ in itertools.groupby(start[0] for start in starts)] == ["a", "b"], starts
            tokens = [int(start[1]) for start in starts]
            assert all(one < other for one, other in itertools.pairwise(tokens)), starts
            for host in [first, second]:
                again = sum(start[0] == host.name for start in starts) - 1
                assert again <= host.starved(), f"{host.name} started again, and its log does not say why: {starts}"
            beside = [start[2] for start in starts if start[0] == "b" and start[2].strip() != "[]"]
            assert not beside, f"beside the successor lived {beside}"
        finally:
            left = []
            for host in filter(None, [second, first]):
                host.clear()
                left += ended(host.uts)
                host.namespace.close()
        assert not left, f"left behind: {left}"
        assert not serves(self.port), "the port is still in use"


def logs_of(work):
    """What both hosts of the last round said."""
    folder = max((f"{work}/{name}" for name in os.listdir(work) if os.path.exists(f"{work}/{name}/report")), key=os.path.getmtime)
    logs = [f"{folder}/{name}.log" for name in "ab" if os.path.exists(f"{folder}/{name}.log")]
    return "".join(f"--- {log}\n{open(log).read()[-6000:]}" for log in logs)


def main(binaries, chosen):
    rounds = int(os.environ.get("ROUNDS", "1"))
    names = chosen or [name for name in vars(Programs) if not name.startswith("_") and name != "folder"]
    work = tempfile.mkdtemp(prefix="zk-leader-run-world-")
    port, failures = next(PORTS), 0
    server = subprocess.Popen(
        ["java", "-Xmx128m", "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.forceSync=no", "-cp", JARS,
         "org.apache.zookeeper.server.ZooKeeperServerMain", str(port), f"{work}/zookeeper", "200"],
        stdout=-3, stderr=-3)
    try:
        until("ZooKeeper serves", lambda: serves(port))
        for name in names:
            told = []
            for ending in ENDINGS:
                good = 0
                for number in range(rounds):
                    try:
                        Round(binaries, f"127.0.0.1:{port}", work, name, ending, number).run(ending)
                        good += 1
                    except (AssertionError, TimeoutError, subprocess.TimeoutExpired) as error:
                        failures += 1
                        print(f"{name}, {ending}, round {number}: {error!r}\n{logs_of(work)}", file=sys.stderr)
                told.append(f"{ending} {good}/{rounds}")
            print(f"{name:<16} {', '.join(told)}", flush=True)
    finally:
        server.kill()
        server.wait()
        KEEP or shutil.rmtree(work, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1] == "--execute":
        execute(sys.argv[2:])
    alone()
    sys.exit(main(sys.argv[1], sys.argv[2:]))
