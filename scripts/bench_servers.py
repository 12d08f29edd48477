"""The servers that scripts/bench compares: each on an empty directory of its own, on Unix sockets, ended with its block.

Needs delayd as it is shipped (scripts/package), the load tool of the release build, and for the peers Debian's beanstalkd,
redis-server and postgresql (scripts/install-packages bench).
"""
import contextlib
import glob
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
DELAYD = os.path.join(ROOT, "build/package/bin/delayd")
LOAD = os.path.join(ROOT, "build/release/bin/delayd_load")
WORK = os.path.join(ROOT, "build/bench")
TICKS = os.sysconf("SC_CLK_TCK")


def fail(what):
    sys.exit("bench: " + what)


def tool(mode, **options):
    argv = [LOAD, mode]
    for key, value in options.items():
        argv += ["--" + key, str(value)]
    run = subprocess.run(argv, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        fail("%s\n%s" % (" ".join(argv), run.stderr.strip()))
    return json.loads(run.stdout)


def floor():
    """The current cost of fdatasync and of an echo on this disk."""
    os.makedirs(WORK, exist_ok=True)
    return tool("floor", target=WORK)


def busy_seconds():
    """Processor time of the whole machine."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def family(pid):
    """A process and its descendants."""
    pids = [pid]
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="utf-8") as file:
            for child in file.read().split():
                pids += family(int(child))
    except OSError:
        pass
    return pids


def postgres_bin():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    program = found[-1] if found else shutil.which("initdb")
    return os.path.dirname(program) if program else None


class Server:
    """One server; gone at the end of the block."""
    protocol = "beanstalk"

    def __init__(self):
        self.dir = os.path.join(WORK, "server")
        self.data = os.path.join(self.dir, "data")
        self.process = None
        self.run_dir = None

    def __enter__(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.data)
        self.run_dir = tempfile.mkdtemp(prefix="delayd-bench-")  # paths of sockets must be short
        self.prepare()
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.run_dir, ignore_errors=True)
        # On a disk mounted with `discard` a sync waits for removed files; the next server must not wait for these.
        os.sync()
        os.sync()

    def prepare(self):
        pass

    def socket(self):
        return os.path.join(self.run_dir, "s")

    def start(self):
        """Starts it and waits for the first acknowledged put; returns how long that took, in seconds."""
        first = subprocess.Popen([LOAD, "first", "--target", "unix:" + self.socket(), "--protocol", self.protocol],
                                 stdout=subprocess.PIPE, text=True)
        with open(os.path.join(self.dir, "log"), "a", encoding="utf-8") as log:
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            self.process = subprocess.Popen(self.argv(), stdout=log, stderr=log)
        while first.poll() is None:
            if self.process.poll() is not None:
                first.kill()
                first.wait()
                with open(os.path.join(self.dir, "log"), encoding="utf-8") as log:
                    fail("the server ended: %s\n%s" % (" ".join(self.argv()), log.read()[-2000:]))
            time.sleep(0.005)
        return json.loads(first.stdout.read())["acknowledged_us"] / 1e6 - begin / 1e9

    def stop(self, how=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def kill(self):
        self.stop(signal.SIGKILL)

    def load(self, mode, **options):
        """Runs the load tool against it. Adds `foreign`: the processors that other processes used meanwhile."""
        begin, busy = time.monotonic(), busy_seconds()
        server, children = self.cpu_seconds(), resource.getrusage(resource.RUSAGE_CHILDREN)
        result = tool(mode, target="unix:" + self.socket(), protocol=self.protocol, pid=self.process.pid, **options)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = self.cpu_seconds() - server + after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
        result["foreign"] = max(0.0, (busy_seconds() - busy - own) / (time.monotonic() - begin))
        return result

    def cpu_seconds(self):
        ticks = 0
        for pid in family(self.process.pid):
            try:
                with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            ticks += sum(int(fields[i]) for i in (11, 12, 13, 14))
        return ticks / TICKS

    def memory(self):
        """Bytes in memory; memory shared by several processes is counted once."""
        total = 0
        for pid in family(self.process.pid):
            try:
                with open("/proc/%d/smaps_rollup" % pid, encoding="utf-8") as file:
                    total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
            except OSError:
                pass  # it has just ended
        return total

    def disk(self):
        total = 0
        for path, _, names in os.walk(self.data):
            if os.path.basename(path) == "pg_wal":
                continue
            for name in names:
                try:
                    total += os.stat(os.path.join(path, name)).st_blocks * 512
                except OSError:
                    pass
        return total

    def settle(self):
        """Waits until its background work is done."""
        for _ in range(60):
            before = self.cpu_seconds()
            time.sleep(0.5)
            if self.cpu_seconds() - before < 0.05:
                return


class Delayd(Server):
    def __init__(self, protocol="beanstalk", awake="0s"):
        super().__init__()
        self.protocol = protocol
        self.awake = awake

    def prepare(self):
        with open(os.path.join(self.dir, "delayd.yaml"), "w", encoding="utf-8") as file:
            json.dump({"data_dir": self.data, "api": {"socket": os.path.join(self.run_dir, "api")},
                       "beanstalk": {"socket": os.path.join(self.run_dir, "s")},
                       "processors": {"awake": self.awake}, "limits": {"connections": 11000}, "log": {"level": "warn"}}, file)

    def socket(self):
        return os.path.join(self.run_dir, "api" if self.protocol == "http" else "s")

    def argv(self):
        return [DELAYD, "--config", os.path.join(self.dir, "delayd.yaml")]


class Beanstalkd(Server):
    def __init__(self, sync):
        super().__init__()
        self.sync = sync

    def argv(self):
        return ["beanstalkd", self.sync, "-b", self.data, "-l", "unix:" + self.socket()]

    def stop(self, how=signal.SIGTERM):
        super().stop(how)
        if os.path.exists(self.socket()):
            os.unlink(self.socket())


class Redis(Server):
    protocol = "redis"

    def __init__(self, sync):
        super().__init__()
        self.sync = sync

    def argv(self):
        return ["redis-server", "--port", "0", "--unixsocket", self.socket(), "--dir", self.data, "--appendonly", "yes",
                "--appendfsync", self.sync, "--save", "", "--loglevel", "warning"]


class Postgres(Server):
    protocol = "postgres"

    def as_owner(self):
        """PostgreSQL does not run as root."""
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []

    def own(self, *paths):
        if os.geteuid() == 0:
            for path in paths:
                shutil.chown(path, "postgres", "postgres")

    def prepare(self):
        os.chmod(self.run_dir, 0o755)
        os.chmod(self.data, 0o700)
        self.own(self.run_dir, self.data)
        template = os.path.join(WORK, "postgres-template")
        if not os.path.exists(os.path.join(template, "PG_VERSION")):
            shutil.rmtree(template, ignore_errors=True)
            os.makedirs(template, mode=0o700)
            self.own(template)
            run = subprocess.run(self.as_owner() + [os.path.join(postgres_bin(), "initdb"), "-D", template, "-A", "trust",
                                                    "-U", "postgres", "-N"], capture_output=True, text=True, check=False)
            if run.returncode != 0:
                fail("initdb: " + run.stderr)
        subprocess.run(["cp", "-a", template + "/.", self.data], check=True)

    def socket(self):
        return os.path.join(self.run_dir, ".s.PGSQL.5432")

    def argv(self):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        settings = ["listen_addresses=", "synchronous_commit=on", "fsync=on", "max_connections=300",
                    "shared_buffers=%dMB" % min(2048, memory // 4 >> 20), "max_wal_size=8GB", "checkpoint_timeout=15min"]
        argv = self.as_owner() + [os.path.join(postgres_bin(), "postgres"), "-D", self.data, "-k", self.run_dir]
        for setting in settings:
            argv += ["-c", setting]
        return argv

    def stop(self, how=signal.SIGTERM):
        if how == signal.SIGKILL and self.process is not None:
            for pid in family(self.process.pid)[1:]:  # the backends would finish their work
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(pid, signal.SIGKILL)
        super().stop(signal.SIGINT if how == signal.SIGTERM else how)  # SIGTERM would wait for clients
        pid_file = os.path.join(self.data, "postmaster.pid")
        if os.path.exists(pid_file):
            os.unlink(pid_file)


# In the order of tables and plots; delayd comes first.
MAKE = {
    "delayd": Delayd,
    "delayd HTTP": lambda: Delayd("http"),
    "delayd awake": lambda: Delayd(awake="20ms"),
    "delayd batches": lambda: Delayd("beanstalk-batch"),
    "beanstalkd -f0": lambda: Beanstalkd("-f0"),
    "beanstalkd -f50": lambda: Beanstalkd("-f50"),
    "Redis always": lambda: Redis("always"),
    "Redis everysec": lambda: Redis("everysec"),
    "PostgreSQL": Postgres,
}


def can_keep_awake():
    return os.access("/dev/cpu_dma_latency", os.W_OK)


def missing_peers():
    needed = {"beanstalkd": shutil.which("beanstalkd"), "redis-server": shutil.which("redis-server"), "postgresql": postgres_bin()}
    return [name for name, path in needed.items() if path is None]
