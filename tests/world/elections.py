#!/usr/bin/env python3
"""kazoo's and Curator's own tests of their elections, unmodified, with one contender of ours in the same directory.

    elections.py BINARIES [WORD...]     only tests with one of these words in their name; JOBS=2 at once; ROUNDS=1 of each

Each test runs twice. Ours comes first, and leads before the test contends; then it comes second, behind the first of theirs that
leads. It leads for 0.3 s and lines up again, as long as the test runs. Never may ours lead beside one of theirs, but for one that
has lost its session and learns it later (docs/interoperation.md). A test has to pass, unless it takes for granted that nobody else
contends (`COUNTS`, `FIRST`); then it has to pass alone.

kazoo's source is PyPI's, with a pinned hash. Curator's is Debian's, fetched and verified by apt, or in $CURATOR_SOURCE.
RECIPE=java-les, a recipe that is not the directory's, must fail.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

COMPANY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "company")
LEADS_FOR_MS = 300
# Its servers listen on every address, at ports of their choice.
APART = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]
KAZOO = "kazoo==2.11.0 --hash=sha256:57e7e6f69295c8f922511488eeb79680729e14bb8eb382d5cad83aa11345c36c"
JARS = "/usr/share/java"
# What a test takes for granted and is not true in company; the second kind only if ours comes first.
COUNTS = dict.fromkeys(["test_election", "test_lock", "test_lock_one", "test_lock_reconnect", "test_lock_cancel", "test_rw_lock",
                        "test_lock_fail_first_call", "test_lock_non_blocking", "testWatchedNodeDeletedOnReconnect",
                        "testLeadershipElectionWhenNodeDisappearsAfterChildrenAreRetrieved", "testResetRace",
                        "testCreateDeleteRace", "testLeaderNodeDeleteOnInterrupt"], "counts all candidates as its own")
FIRST = dict.fromkeys(["test_lock_same_thread_no_block", "test_lock_many_threads_no_block", "test_write_lock"],
                      "has to hold at the first try")
# It lets its main thread go on before it has counted.
RACES = {"testNoServerAtStart": "is not sure to pass alone"}


def jars(*names):
    return ":".join(f"{JARS}/{name}.jar" for name in names)


class Kazoo:
    name = "kazoo 2.11"
    limit = 60

    def __init__(self, work):
        with open(f"{work}/requirements", "w") as file:
            file.write(KAZOO + "\n")
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--require-hashes",
                        "-r", f"{work}/requirements", "-d", work], check=True)
        subprocess.run(["tar", "-xf", *glob.glob(f"{work}/kazoo-*.tar.gz"), "-C", work], check=True)
        self.source = next(folder for folder in glob.glob(f"{work}/kazoo-*") if os.path.isdir(folder))

    def tests(self):
        for file, group in [("test_election", "KazooElectionTests"), ("test_lock", "KazooLockTests")]:
            text = open(f"{self.source}/kazoo/tests/{file}.py").read()
            body = re.split(r"^class ", text.split(f"class {group}(")[1], flags=re.M)[0]
            yield from (f"{file}.py::{group}::{test}" for test in re.findall(r"def (test_\w+)", body))

    def command(self, test, comes):
        plugin = ["-p", "company"] if comes else []
        settings = {"PYTHONPATH": f"{self.source}:{COMPANY}", "ZOOKEEPER_VERSION": "3.8.0", "ZOOKEEPER_CLUSTER_SIZE": "1",
                    "ZOOKEEPER_CLASSPATH": jars("zookeeper", "netty-codec", "netty-resolver", "slf4j-nop")}
        command = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin]
        return [*command, f"{self.source}/kazoo/tests/{test}"], settings


class Curator:
    name = "Curator 5.4"
    limit = 180
    CLASSES = ["TestLeaderLatch", "TestLeaderSelector"]
    LIBRARIES = jars("curator-recipes", "curator-framework", "curator-client", "curator-test", "zookeeper", "guava",
                     "junit-jupiter-api", "opentest4j", "apiguardian-api", "slf4j-api", "slf4j-nop", "byteman", "metrics-core",
                     "snappy-java")
    CONSOLE = jars("junit-jupiter-engine", "junit-platform-console", "junit-platform-launcher", "junit-platform-engine",
                   "junit-platform-commons", "junit-platform-reporting", "picocli", "univocity-parsers")

    def __init__(self, work):
        self.classes = f"{work}/classes"
        source = os.environ.get("CURATOR_SOURCE") or self.fetched(work)
        self.folder = f"{source}/curator-recipes/src/test/java/org/apache/curator/framework/recipes/leader"
        files = [f"{self.folder}/{name}.java" for name in self.CLASSES]
        files += [f"{source}/curator-framework/src/test/java/org/apache/curator/framework/imps/TestCleanState.java"]
        files += [f"{COMPANY}/Company.java", f"{COMPANY}/org/awaitility/Awaitility.java"]
        subprocess.run(["javac", "-nowarn", "-Xlint:none", "-d", self.classes, "-cp", self.LIBRARIES, *files], check=True)

    @staticmethod
    def fetched(work):
        script = f". {os.path.dirname(COMPANY)}/sources.sh && source_of apache-curator {work}/curator"
        subprocess.run(["bash", "-c", script], check=True)
        return f"{work}/curator"

    def tests(self):
        for name in self.CLASSES:
            text = open(f"{self.folder}/{name}.java").read()
            yield from (f"{name}#{test}" for test in re.findall(r"@Test\s+public void (\w+)", text))

    def command(self, test, comes):
        agent = f"-javaagent:{JARS}/byteman.jar=script:{COMPANY}/company.btm,sys:{JARS}/byteman.jar"
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *([agent] if comes else [])]
        command += ["-cp", f"{self.classes}:{self.LIBRARIES}:{self.CONSOLE}", "org.junit.platform.console.ConsoleLauncher"]
        return [*command, "--select-method", f"org.apache.curator.framework.recipes.leader.{test}"], {}


CONTEND = """#!/bin/sh
echo "$3" >$COMPANY/directory.$$
exec {binaries}/zk-leader-run --recipe "${{RECIPE:-$1}}" --connect "$2" --election-path "$3" --path /company/$$ --id ours --session-timeout 4s \\
    --on-exit rejoin -- {binaries}/examples/witness $COMPANY/ours.$$ exit-after={time} >$COMPANY/log.$$ 2>&1
"""


def run(suite, work, binaries, test, comes):
    """Whether it passed, and the folder with what was written down."""
    home = tempfile.mkdtemp(dir=work)
    with open(f"{home}/contend", "w") as file:
        file.write(CONTEND.format(binaries=binaries, time=LEADS_FOR_MS))
    os.chmod(f"{home}/contend", 0o755)
    command, settings = suite.command(test, comes)
    with open(f"{home}/printed", "w") as printed:
        process = subprocess.Popen([*APART, *command], env={**os.environ, **settings, "COMPANY": home, "COMES": comes}, cwd=home, stdin=-3, stdout=printed,
                                   stderr=printed, start_new_session=True)
        try:
            passed = process.wait(suite.limit) == 0
        except subprocess.TimeoutExpired:
            passed = False
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass
    return passed, home


def terms_of_theirs(home):
    """Of each: directory, begin, end, and whether its client was told that its session was over."""
    terms, open_terms = [], {}
    for line in open(f"{home}/theirs") if os.path.exists(f"{home}/theirs") else []:
        at, event, who, directory = line.split()
        if event == "begin":
            open_terms[who] = (directory, int(at))
        elif event in ("end", "lost") and who in open_terms:
            terms.append((*open_terms.pop(who), int(at), event == "lost"))
        elif event in ("absent", "stuck"):
            terms.append((event, 0, 0, False))
    last = max([term[2] for term in terms], default=0)
    return terms + [(directory, began, max(last, began), False) for directory, began in open_terms.values()]


def terms_of_ours(home):
    terms = []
    for path in glob.glob(f"{home}/ours.*"):
        number = path.rsplit(".", 1)[1]
        if not number.isdigit():
            continue
        directory = open(f"{home}/directory.{number}").read().strip()
        spans = {}
        for line in open(path):
            words = line.split()
            if len(words) > 2:
                span = spans.setdefault(words[2], [int(words[0]), 0])
                span[1] = int(words[0])
        terms += [(directory, *span) for span in spans.values()]
    return terms


def judged(home):
    """How often ours and theirs led; ours beside theirs, and beside one that had lost its session, in ms; and what is wrong."""
    ours, theirs = terms_of_ours(home), terms_of_theirs(home)
    beside, problems = {False: 0, True: 0}, sorted({term[0] for term in theirs if not term[0].startswith("/")})
    for directory, began, ended in ours:
        for other, begins, ends, is_lost in theirs:
            if directory == other:
                beside[is_lost] = max(beside[is_lost], min(ended, ends) - max(began, begins))
    if re.search(r"^Rule\.|rule\.exception", open(f"{home}/printed").read(), re.M):
        problems.append("a rule of company.btm does not fit")
    theirs = [term for term in theirs if term[0].startswith("/")]
    if not theirs: # only what may be shared, or nothing
        problems = [problem for problem in problems if problem != "absent"]
    return len(ours), len(theirs), beside[False] / 1e6, beside[True] / 1e6, problems


def tried(suite, work, binaries, test, comes):
    passed, home = run(suite, work, binaries, test, comes)
    ours, theirs, beside, outlived, problems = judged(home)
    if beside:
        problems.append(f"ours led beside theirs for {beside:.3f} ms")
    name = re.split(r"::|#", test)[-1]
    why = (COUNTS | RACES | (FIRST if comes == "first" else {})).get(name)
    if why and "absent" in problems: # theirs came first nevertheless
        problems.remove("absent")
    if not passed and not why:
        problems.append("failed")
    # A race may be lost alone, too.
    if not passed and name not in RACES and not run(suite, work, binaries, test, "")[0]:
        problems.append("fails alone, too")
    apart = f", {outlived:.0f} ms beside one of theirs that had lost its session" if outlived else ""
    told = "passed" if passed else f"fails: it {why}"
    short = test.split("::", 1)[-1]
    print(f"{comes:<6} {short:<82} ours led {ours}, theirs {theirs}{apart}, {told} {problems or ''}", flush=True)
    if problems:
        print(f"    {home}", flush=True)
    return not problems, passed, ours, theirs


def main(binaries, words):
    work = tempfile.mkdtemp(prefix="zk-leader-run-world-")
    binaries, failed = os.path.realpath(binaries), False
    try:
        for suite, comes in [(suite, comes) for suite in [Kazoo(work), Curator(work)] for comes in ["first", "second"]]:
            tests = [test for test in suite.tests() if not words or any(word in test for word in words)]
            tests *= int(os.environ.get("ROUNDS", "1"))
            with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
                told = list(pool.map(lambda test: tried(suite, work, binaries, test, comes), tests))
            failed |= not all(good for good, *_ in told)
            print(f"{suite.name}, ours comes {comes}: {len(told)} tests, {sum(passed for _, passed, *_ in told)} passed in company, "
                  f"ours led {sum(one[2] for one in told)} times, theirs {sum(one[3] for one in told)} times", flush=True)
    finally:
        os.environ.get("KEEP") or shutil.rmtree(work, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
