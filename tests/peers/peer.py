"""A contender with kazoo: see the script `peer` beside this file."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import CancelledError, KazooException

RECIPE, HOSTS, PATH, ID, SESSION_MS = sys.argv[1:6]
COMMAND = sys.argv[6:]
KILL_AFTER = 5.0


def note(event):
    os.write(1, f"{time.monotonic_ns()} {event} {ID}\n".encode())


class Command:
    """The command: started when elected, ended when the library says that leadership is in doubt."""

    def __init__(self):
        self.process = None
        self.lock = threading.Lock()
        self.barred = False  # no start: the connection is in doubt, or we are to end
        self.was_stopped = False
        self.status = None

    def run(self):
        note("elected")
        with self.lock:
            self.was_stopped = self.barred
            if self.barred:
                return
            self.process = subprocess.Popen(COMMAND, env={**os.environ, "ZK_LEADER_ID": ID})
        note("started")
        self.status = self.process.wait()
        note("stopped")

    def stop(self):
        with self.lock:
            self.barred = self.was_stopped = True
            if self.process and self.process.poll() is None:
                self.process.terminate()
                killer = threading.Timer(KILL_AFTER, self.process.kill)
                killer.daemon = True
                killer.start()

    def allow(self):
        with self.lock:
            self.barred = False


def contend(client, lock, command, words):
    """Until the command ends by itself, or the lock is cancelled."""
    while True:
        note("joined")
        try:
            if RECIPE == "kazoo-election":
                lock.run(command.run)
            else:
                with lock:
                    command.run()
            note("released")
        except (CancelledError, KazooException) as error:
            print(f"{ID}: {error!r}", file=sys.stderr)
        if not command.was_stopped and command.status is not None:
            words.put(command.status)
            return
        if client.connected is False:
            time.sleep(0.1)
        if words.ended:
            words.put(0)
            return


class Words(queue.SimpleQueue):
    """What the main thread is told; putting is safe in a signal handler."""

    ended = False


def main():
    client = KazooClient(HOSTS, timeout=int(SESSION_MS) / 1000)
    command, words = Command(), Words()

    def state_changed(state):
        if state == "CONNECTED":
            command.allow()
        else:
            command.stop()

    client.add_listener(state_changed)
    client.start(timeout=60)
    patterns = {"kazoo-lock-latch": ["latch-"], "kazoo-lock-lock": ["lock-"]}.get(RECIPE, [])
    if RECIPE == "kazoo-election":
        lock = client.Election(PATH, ID)
    else:
        lock = client.Lock(PATH, ID, extra_lock_patterns=patterns)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: words.put("stop"))
    worker = threading.Thread(target=contend, args=(client, lock, command, words), daemon=True)
    worker.start()
    word = words.get()
    if word == "stop":
        words.ended = True
        command.stop()
        lock.cancel()
        word = words.get()
    client.stop()
    sys.exit(word if word >= 0 else 128 - word)


main()
