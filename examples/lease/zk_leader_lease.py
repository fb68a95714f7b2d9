"""May this process still act as the leader, and for how long? Without the network.

    from zk_leader_lease import Lease
    lease = Lease()              # once, at the start
    if lease.left() > 0.1:       # before each step: more than 100 ms are left
        step()

The answer says "I may act for so long", not "no other host will ever act": the resource checks ZK_LEADER_TOKEN.
It is yes only if the file says so; a missing, foreign, half-written or old file says no.

Linux, Python 3.8 or later, the standard library only. As a script: python3 zk_leader_lease.py [FILE] says how many seconds
are left, every 100 ms.
"""

import os
import stat
import struct
import time
from typing import NamedTuple, Optional

_LAYOUT = struct.Struct("=8sQqiIQQ16s")
_MAGIC = b"ZKLEASE\x01"
_STATES = {1: "leading", 2: "paused", 3: "stopping"}
_TRIES = 100


class View(NamedTuple):
    """What the lease file says. Seconds; `left` is 0 if the process may not act."""

    state: str  # leading, paused (contact is lost), stopping (the stop signal was sent), over, unknown
    token: int = 0
    term: int = 0
    left: float = 0.0  # until SIGKILL
    stop_in: float = 0.0  # until the stop signal, unless the lease is renewed


def now_ns() -> int:
    """The lease's clock. In this order a pause between two readings can only make it late, and the lease too short."""
    monotonic = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    raw = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    return raw + (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - monotonic)


class Lease:
    """A lease file, by default the command's own (ZK_LEADER_LEASE) for its own term (ZK_LEADER_TOKEN).

    It stays readable in a chroot and under another user. `error` says why it cannot be read, if it cannot be.
    """

    def __init__(self, path: Optional[str] = None) -> None:
        self.error: Optional[str] = None
        self._fd = -1
        self._token = 0  # any
        try:
            if path is None:
                path, token = os.environ.get("ZK_LEADER_LEASE"), os.environ.get("ZK_LEADER_TOKEN")
                if not path or not token:
                    raise OSError("ZK_LEADER_LEASE and ZK_LEADER_TOKEN are not both set")
                self._token = int(token)
            if not _has_the_hosts_clocks():
                raise OSError("this time namespace has clocks of its own")
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                self._boot_id = bytes.fromhex(file.read().strip().replace("-", ""))
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            if not stat.S_ISREG(os.fstat(self._fd).st_mode) or self._fields() is None:
                raise OSError(f"{path} is no lease file of this boot")
        except (OSError, ValueError) as error:
            self.error = str(error)
            self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def left(self) -> float:
        """How many seconds this process may act; 0: it may not."""
        return self.view().left

    def view(self) -> View:
        fields = self._fields()
        if fields is None:
            return View("unknown")
        _, _, token, term, state, stop_at, kill_at, _ = fields
        if self._token not in (0, token):
            return View("unknown")
        if state not in _STATES:
            return View("over", token, term)
        now = now_ns()  # after the file
        left, stop_in = (max(0, at - now) / 1e9 for at in (kill_at, stop_at))
        return View(_STATES[state], token, term, left, stop_in)

    def _fields(self) -> Optional[tuple]:
        if self._fd < 0:
            return None
        for _ in range(_TRIES):
            before = os.pread(self._fd, 8, 8)
            file = os.pread(self._fd, _LAYOUT.size, 0)
            if os.pread(self._fd, 8, 8) == before and len(file) == _LAYOUT.size:
                fields = _LAYOUT.unpack(file)
                if fields[1] % 2 == 0:
                    return fields if fields[0] == _MAGIC and fields[7] == self._boot_id else None
        return None


def _has_the_hosts_clocks() -> bool:
    try:
        return os.readlink("/proc/self/ns/time") == "time:[4026531834]"
    except OSError:
        return True


if __name__ == "__main__":
    import sys

    lease = Lease(sys.argv[1] if len(sys.argv) > 1 else None)
    if lease.error:
        print("no lease:", lease.error, file=sys.stderr)
    while True:
        print(f"{now_ns()} {lease.view().state} {lease.left()}", flush=True)
        time.sleep(0.1)
