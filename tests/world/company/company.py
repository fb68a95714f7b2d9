"""A contender of ours in every directory in which kazoo's locks contend, and the times at which these hold: a plugin of pytest.

Each line of $COMPANY/theirs: CLOCK_MONOTONIC in ns, begin, end or lost, who, directory.
"""
import os
import subprocess
import threading
import time

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState
from kazoo.recipe.lock import Lock

HOME = os.environ["COMPANY"]
FIRST = os.environ["COMES"] == "first"
LIMIT = 20
OURS, LEADING, GUARD = {}, {}, threading.RLock()


def note(event, who, directory):
    with open(f"{HOME}/theirs", "a") as file:
        file.write(f"{time.monotonic_ns()} {event} {who} {directory}\n")


def comes(client, directory, file, word):
    """The first time for a directory: returns when ours has written that word."""
    with GUARD:
        path = client.chroot + directory
        if path in OURS:
            return
        host, port = client.hosts[0][:2]
        ours = OURS[path] = subprocess.Popen([f"{HOME}/contend", "kazoo", f"{host}:{port}", path])
        said, end = f"{HOME}/{file}.{ours.pid}", time.monotonic() + LIMIT
        while not (os.path.exists(said) and word in open(said).read()):
            if time.monotonic() > end:
                note("absent", ours.pid, path)
                break
            time.sleep(0.01)


def ends(is_meant, event="end"):
    with GUARD:
        for lock in list(filter(is_meant, LEADING)):
            note(event, id(lock), LEADING.pop(lock))


def wrapped(original):
    def acquire(self, *arguments, **options):
        if self._NODE_NAME == "__lock__":
            if FIRST:
                comes(self.client, self.path, "ours", " start ")
            self.client.add_listener(lambda state: ends(lambda lock: lock.client is self.client, "lost")
                                     if state == KazooState.LOST else None)
        gotten = original(self, *arguments, **options)
        if gotten and self._NODE_NAME == "__lock__":
            with GUARD:
                LEADING[self] = self.client.chroot + self.path
                note("begin", id(self), LEADING[self])
            if not FIRST:
                comes(self.client, self.path, "log", "Missing znodes were created")
        return gotten
    return acquire


def releases(original):
    def release(self):
        ends(lambda lock: lock is self)
        return original(self)
    return release


def stops(original):
    def stop(self):
        ends(lambda lock: lock.client is self)
        return original(self)
    return stop


Lock.acquire, Lock.release = wrapped(Lock.acquire), releases(Lock.release)
KazooClient.stop = stops(KazooClient.stop)


def pytest_runtest_teardown():
    """The server goes on until the class is over."""
    for ours in OURS.values():
        ours.terminate()
    for ours in OURS.values():
        try:
            ours.wait(LIMIT)
        except subprocess.TimeoutExpired:
            note("stuck", ours.pid, "-")
            ours.kill()
    OURS.clear()
