# SPDX-License-Identifier: Apache-2.0
"""Jobs of one person against the job of another on the same node, and against the node: what each tries, and what it has to be told.

An attack is a program in Python that ranks execute without any package. `tries(WHAT, ACT)` prints how the kernel answers; what is expected
is that text, word by word, so that an attack that fails for another reason than it should fails its test.
"""

from __future__ import annotations

from dataclasses import dataclass

import gpu_files

#: Before each: `site` is what an attacker who knows the node well would know. See World in test_neighbours.py.
PRELUDE = """
import ctypes, errno, fcntl, json, os, signal, socket, struct, subprocess, sys, time
site = json.loads(sys.argv[1])
victim, agent, state, run = site["victim"], site["agent"], site["state"], site["run"]
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
def tries(what, act):
    try:
        got = act()
    except OSError as problem:
        print(f"{what}: {errno.errorcode[problem.errno]}")
    else:
        print(f"{what}: DONE {got!r}"[:200])
def refused(what, acts, *names):  # the same for each
    for act in acts:
        try:
            print(f"{what}: DONE {act()!r}"[:200])
        except OSError as problem:
            if errno.errorcode[problem.errno] not in names:
                print(f"{what}: {errno.errorcode[problem.errno]} {problem}")
    print(f"{what}: {' or '.join(names)}")
def done(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return result
def call(number, *arguments):
    return done(libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)))
def read(path):
    with open(path, "rb") as file:
        return file.read(64)
def write(path, text="x"):
    with open(path, "r+") as file:
        file.write(text)
def connect(path, kind=socket.SOCK_SEQPACKET):
    with socket.socket(socket.AF_UNIX, kind) as talk:
        talk.connect(path)
"""

#: The job of the other person. It protects nothing itself, says where all of it is, and ends well only if nobody has touched it.
VICTIM = """
import ctypes, json, mmap, os, socket, sys, threading, time
os.umask(0)
work, home = os.getcwd(), os.path.expanduser("~")
secret = os.environ["SECRET"]
def put(path):
    with open(path, "w") as file:
        file.write(secret)
places = [f"{work}/secret", f"{home}/secret", "/tmp/victim", "/dev/shm/victim"]
for place in places:
    put(place)
inner = bytearray(secret.encode())
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
number = libc.shmget(0x5EC, 4096, 0o1666)
shared = (ctypes.c_char * 4096).from_address(libc.shmat(number, None, 0))
shared.value = secret.encode()
queue, semaphore = libc.msgget(0x5EC, 0o1666), libc.semget(0x5EC, 1, 0o1666)
heard = []
def serve(name):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()
    def answer():
        while True:
            talk, _ = listener.accept()
            uid = int.from_bytes(talk.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
            if uid == os.getuid():
                heard.append(name)
                talk.send(secret.encode())
            talk.close()
    threading.Thread(target=answer, daemon=True).start()
serve(f"{work}/door")
os.mkfifo(f"{work}/go")
serve(f"\\0victim-{os.getpid()}")
print(json.dumps({"pid": os.getpid(), "uid": os.getuid(), "work": work, "home": home, "memory": ctypes.addressof(
    (ctypes.c_char * len(inner)).from_buffer(inner)), "shm": number, "queue": queue, "semaphore": semaphore}), flush=True)
open(f"{work}/go").close()  # until somebody opens it to write
kept = [open(place).read() for place in places] + [inner.decode(), shared.value.decode()]
assert kept == [secret] * len(kept) and heard == [], (kept, heard)
for place in places:
    os.unlink(place)
print("the answer is 42", flush=True)
"""


@dataclass(frozen=True)
class Attack:
    """`expected` is all that the program prints; `check` names what is looked at afterwards (test_neighbours.py)."""

    name: str
    script: str
    expected: str
    check: str = ""


def told(answer: str, *names: str) -> str:
    """What is printed where all are answered alike."""
    return "".join(f"{name}: {answer}\n" for name in names)


ATTACKS = [
    Attack(
        "files",
        """
for place in (victim["work"], victim["home"]):
    tries("list", lambda: os.listdir(place))
    tries("read", lambda: read(place + "/secret"))
    tries("write", lambda: write(place + "/secret"))
    tries("make", lambda: os.mkdir(place + "/mine"))
    tries("remove", lambda: os.unlink(place + "/secret"))
    tries("replace", lambda: os.rename(place, place + ".moved"))
""",
        "list: EACCES\nread: EACCES\nwrite: EACCES\nmake: EACCES\nremove: EACCES\nreplace: EACCES\n" * 2,
    ),
    Attack(
        "what /proc shows",
        """
for pid in (victim["pid"], agent, site["shim"], 1):
    for name in ("environ", "mem", "maps", "cmdline", "fd", "root", "cwd", "exe", "ns/mnt", "syscall"):
        tries(name, lambda: read(f"/proc/{pid}/{name}"))
print(sorted({os.stat("/proc/" + name).st_uid for name in os.listdir("/proc") if name.isdigit()}) == [os.getuid()])
""",
        told("ENOENT", "environ", "mem", "maps", "cmdline", "fd", "root", "cwd", "exe", "ns/mnt", "syscall") * 4 + "True\n",
    ),
    Attack(
        "signals",
        """
for pid in (victim["pid"], agent, site["shim"], os.getppid(), 1):
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, 0):
        tries(number, lambda: os.kill(pid, number))
    tries("group", lambda: os.killpg(pid, signal.SIGKILL) if pid > 1 else os.kill(1, signal.SIGKILL))  # of 1 it means all of one's own
    tries("descriptor", lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL))
tries("queue", lambda: call(129 if x86 else 138, victim["pid"], signal.SIGKILL, 0))
if os.fork() == 0:
    os.kill(-1, signal.SIGCONT)
    os._exit(0)
os.wait()
""",
        "9: EPERM\n19: EPERM\n15: EPERM\n0: EPERM\ngroup: EPERM\ndescriptor: EPERM\n" * 5 + "queue: EFAULT\n",
    ),
    Attack(
        "debuggers",
        """
ATTACH, SEIZE = 16, 0x4206
for pid in (victim["pid"], agent, site["shim"], 1):
    for request in (ATTACH, SEIZE):
        tries(request, lambda: done(libc.ptrace(ctypes.c_long(request), ctypes.c_long(pid), None, None)))
""",
        "16: EPERM\n16902: EPERM\n" * 4,
    ),
    Attack(
        "memory of others",
        """
here = ctypes.create_string_buffer(16)
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
for pid in (victim["pid"], agent, site["shim"]):
    ours, theirs = Part(ctypes.addressof(here), 16), Part(victim["memory"], 16)
    for move in (libc.process_vm_readv, libc.process_vm_writev):
        tries("move", lambda: done(move(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)))
    tries("take a descriptor", lambda: call(438, os.pidfd_open(pid), 1, 0))
    tries("compare", lambda: call(312 if x86 else 272, pid, os.getpid(), 1, 0, 0))
    tries("limits", lambda: __import__("resource").prlimit(pid, __import__("resource").RLIMIT_NOFILE, (3, 3)))
    tries("advise", lambda: call(440, os.pidfd_open(pid), ctypes.addressof(ours), 1, 21, 0))
    tries("move to another CPU", lambda: os.sched_setaffinity(pid, {0}))
    tries("slow down", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
""",
        ("move: EPERM\n" * 2 + "take a descriptor: EPERM\ncompare: EPERM\nlimits: EPERM\nadvise: EACCES\nmove to another CPU: EPERM\n"
         "slow down: EPERM\n") * 3,
    ),
    Attack(
        "sockets of the job",
        """
tries("by its path", lambda: connect(victim["work"] + "/door", socket.SOCK_STREAM))
talk = socket.socket(socket.AF_UNIX)
talk.connect("\\0victim-%d" % victim["pid"])  # as any port on loopback; the kernel tells the other who calls
print(talk.recv(100))
tries("metrics", lambda: connect(f"{run}/{victim['attempt']}/rank.sock", socket.SOCK_DGRAM))
""",
        "by its path: EACCES\nb''\nmetrics: EACCES\n",
    ),
    Attack(
        "shared memory",
        """
tries("open", lambda: read("/dev/shm/victim"))
print(os.listdir("/dev/shm"), os.listdir("/tmp"), os.listdir("/var/tmp"))
tries("queue of POSIX", lambda: done(libc.mq_open(b"/victim", os.O_RDWR)))
""",
        "open: ENOENT\n[] [] []\nqueue of POSIX: ENOENT\n",
    ),
    Attack(
        "objects of System V",
        """
libc.shmat.restype = ctypes.c_long
for kind in (libc.shmget, libc.semget):
    tries("by key", lambda: done(kind(0x5EC, 1, 0)))
tries("by key", lambda: done(libc.msgget(0x5EC, 0)))
tries("attach", lambda: done(libc.shmat(victim["shm"], None, 0)))
tries("remove memory", lambda: done(libc.shmctl(victim["shm"], 0, None)))
tries("remove queue", lambda: done(libc.msgctl(victim["queue"], 0, None)))
tries("remove semaphore", lambda: done(libc.semctl(victim["semaphore"], 0, 0)))
""",
        "by key: ENOENT\n" * 3 + "attach: EINVAL\nremove memory: EINVAL\nremove queue: EINVAL\nremove semaphore: EINVAL\n",
    ),
    Attack(
        "names in /tmp",
        """
for folder in ("/tmp", "/dev/shm"):
    os.symlink(site["canary"], folder + "/victim")  # what the other writes to, if it were the same folder
    for number in range(200):
        os.rename(folder + "/victim", folder + "/x")
        os.rename(folder + "/x", folder + "/victim")
tries("by its root", lambda: os.listdir(os.path.join(f"/proc/{victim['pid']}", "root", "tmp")))
""",
        "by its root: ENOENT\n",
    ),
    Attack(
        "the agent's folder",
        """
for path in (state, run, *(f"{state}/{name}" for name in ("attempts", "homes", "payloads", "spare", "trash", "environments"))):
    tries("list", lambda: os.listdir(path))
    tries("make", lambda: os.mkdir(path + "/mine"))
names = ("lock", "journal", "users", "shim.log", "agent.id")
refused("open", [lambda name=name: os.open(f"{state}/{name}", os.O_RDWR) for name in names], "EACCES", "ENOENT")
refused("remove", [lambda name=name: os.unlink(f"{state}/{name}") for name in names], "EACCES", "ENOENT")
tries("runner", lambda: write(os.environ["GPUCTL_WATCH"] + "/gpuctl_watch.py"))
""",
        "list: EACCES\nmake: EACCES\n" * 8 + "open: EACCES or ENOENT\nremove: EACCES or ENOENT\nrunner: EACCES\n",
    ),
    Attack(
        "tokens",
        """
for path in (site["token"], site["controller"] + "/admin.token", site["controller"] + "/gpuctl.db", "/etc/shadow", site["canary"]):
    tries("read", lambda: read(path))
for path in (f"/proc/{agent}/environ", f"/proc/{agent}/fd/3"):
    tries("inherit", lambda: read(path))
print([name for name in os.environ if "TOKEN" in name and name != "MLFLOW_TRACKING_TOKEN"])
""",
        "read: EACCES\n" * 5 + "inherit: ENOENT\n" * 2 + "[]\n",
    ),
    Attack(
        "supervisors",
        """
own = os.path.dirname(os.environ["GPUCTL_SOCKET"])
for folder in (own, f"{run}/{victim['attempt']}"):
    tries("order", lambda: connect(folder + "/shim.sock"))
    tries("launch", lambda: read(folder + "/launch"))
    tries("pid", lambda: read(folder + "/shim.pid"))
    tries("remove", lambda: os.unlink(folder + "/shim.pid"))
    tries("replace", lambda: os.rename(folder, folder + ".moved"))
    tries("list", lambda: os.listdir(folder))
""",
        "order: EACCES\nlaunch: EACCES\npid: EACCES\nremove: EACCES\nreplace: EACCES\nlist: EACCES\n" * 2,
    ),
    Attack(
        "folders of other attempts",
        """
other = f"{state}/attempts/{victim['attempt']}"
for name in ("0.stdout", "0.stderr", "exit", "work/secret", "results/0.pickle", "errors/0.json", "tmp/victim"):
    tries("open", lambda: os.open(f"{other}/{name}", os.O_RDWR | os.O_CREAT))
for name in ("work", "results", "errors", "tmp"):
    tries("replace", lambda: os.rename(f"{other}/{name}", f"{other}/moved"))
    tries("lead elsewhere", lambda: os.symlink("/etc", f"{other}/{name}/link"))
""",
        "open: EACCES\n" * 7 + "replace: EACCES\nlead elsewhere: EACCES\n" * 4,
    ),
    Attack(
        "exit record",
        """
own = os.path.dirname(os.getcwd())
for name in ("exit", "exit.new", "0.stdout", "0.metrics"):
    tries("write", lambda: os.open(f"{own}/{name}", os.O_WRONLY | os.O_CREAT))
    tries("put in place", lambda: os.rename("forged", f"{own}/{name}") if not open("forged", "w").close() else None)
    refused("remove", [lambda: os.unlink(f"{own}/{name}")], "EACCES", "ENOENT")
sys.stdout.flush()
os._exit(7)
""",
        "write: EACCES\nput in place: EACCES\nremove: EACCES or ENOENT\n" * 4,
        check="exits with 7",
    ),
    Attack(
        "lines for other ranks",
        """
talk = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
talk.connect(os.environ["GPUCTL_SOCKET"])
for line in ({"checkpoint": {"step": 1}, "rank": 5}, {"mark": "begun", "rank": 99},
             {"metric": "loss", "value": 1, "step": 1, "rank": 7, "time": 1}):
    talk.send(json.dumps(line).encode() + b"\\n")
for text in (b"exited\\n", b"stop 0 CANCELED", b"\\0" * 4096, b"{" * 60000):
    tries(len(text), lambda: talk.send(text))
for rank in range(4):
    open(f"../results/{rank}.json", "w").write('"forged"')
""",
        "7: DONE 7\n15: DONE 15\n4096: DONE 4096\n60000: DONE 60000\n",
        check="nothing of it is the other's",
    ),
    Attack(
        "cgroups",
        """
own = open("/proc/self/cgroup").read().partition("0::/")[2].partition(chr(10))[0]
folders = site["cgroups"] + ([site["cgroup_mount"] + "/" + own] if site["cgroup_mount"] else [])
files = (("cgroup.procs", "0"), ("cgroup.threads", "0"), ("pids.max", "max"), ("memory.max", "max"), ("memory.high", "max"),
         ("cpu.max", "max"), ("cgroup.freeze", "1"), ("cgroup.kill", "1"), ("cgroup.subtree_control", "-pids"), ("cgroup.max.depth", "0"),
         ("cgroup.type", "threaded"))
acts = [lambda path=f"{folder}/{name}", text=text: write(path, text) for folder in folders for name, text in files]
refused("write", acts, "EACCES", "ENOENT")
refused("make", [lambda folder=folder: os.mkdir(folder + "/mine") for folder in folders], "EACCES")
refused("remove", [lambda folder=folder: os.rmdir(folder) for folder in folders], "EACCES", "EBUSY")
""",
        "write: EACCES or ENOENT\nmake: EACCES\nremove: EACCES or EBUSY\n",
    ),
    Attack(
        "programs of root",
        """
print(subprocess.run([site["setuid"], "-u"], capture_output=True, text=True).stdout.strip() == str(os.getuid()))
print(subprocess.run([site["setuid"], "-g"], capture_output=True, text=True).stdout.strip() == str(os.getgid()))
tries("become root", lambda: os.setuid(0))
tries("join its group", lambda: os.setgroups([0]))
tries("take a group", lambda: os.setgid(0))
tries("give rights away", lambda: os.chown(os.getcwd(), 0, 0))
tries("give a program rights", lambda: os.setxattr("/proc/self/exe", "security.capability", b"\\1\\0\\0\\2" + b"\\377" * 16))
print({line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")} == {"0" * 16})
""",
        "True\nTrue\n"
        + told("EPERM", "become root", "join its group", "take a group", "give rights away", "give a program rights")
        + "True\n",
    ),
    Attack(
        "namespaces",
        """
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x4000000, 0x8000000, 0x2000000, 0x80):
    tries("unshare", lambda: done(libc.unshare(flag)))
for flag in (0x10000000, 0x20000, 0x20000000):
    tries("clone", lambda: call(56 if x86 else 220, flag | signal.SIGCHLD, 0, 0, 0, 0))
tries("clone3", lambda: call(435, 0, 0))
for name in ("mnt", "pid", "ipc"):
    tries("enter", lambda: done(libc.setns(os.open(f"/proc/self/ns/{name}", os.O_RDONLY), 0)))
tries("enter that of a process", lambda: done(libc.setns(os.pidfd_open(victim["pid"]), 0x20000)))
print("container:", subprocess.run(["unshare", "--user", "true"], capture_output=True, text=True).stderr.strip())
""",
        "unshare: EPERM\n" * 8 + "clone: EPERM\n" * 3 + "clone3: ENOSYS\n" + "enter: EPERM\n" * 3 + "enter that of a process: EPERM\n"
        "container: unshare: unshare failed: Operation not permitted\n",
    ),
    Attack(
        "mounts",
        """
here = os.getcwd().encode()
tries("mount", lambda: done(libc.mount(b"none", here, b"tmpfs", 0, None)))
tries("bind", lambda: done(libc.mount(b"/etc", here, None, 0x1000, None)))
tries("show all processes", lambda: done(libc.mount(b"proc", b"/proc", b"proc", 0x20, b"hidepid=0")))
tries("take /tmp away", lambda: done(libc.umount2(b"/tmp", 2)))
tries("take /proc away", lambda: done(libc.umount2(b"/proc", 2)))
for name, number in (("open_tree", 428), ("move_mount", 429), ("fsopen", 430), ("fsmount", 432), ("fspick", 433), ("mount_setattr", 442)):
    tries(name, lambda: call(number, -100, 0, 0, 0, 0))
tries("chroot", lambda: os.chroot("/"))
tries("pivot_root", lambda: call(155 if x86 else 41, 0, 0))
tries("by handle", lambda: call(304 if x86 else 265, -100, 0, 0))
""",
        told("EPERM", "mount", "bind", "show all processes", "take /tmp away", "take /proc away", "open_tree", "move_mount", "fsopen",
             "fsmount", "fspick", "mount_setattr", "chroot", "pivot_root", "by handle"),
    ),
    Attack(
        "devices",
        """
for kind, number in ((0o60000, os.makedev(8, 0)), (0o20000, os.makedev(1, 1)), (0o20000, os.makedev(10, 200))):
    tries("make", lambda: os.mknod("device", kind | 0o666, number))
paths = ("/dev/mem", "/dev/kmsg", "/dev/port", *site["disks"])
for how in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY):
    tried = [path for path in paths if (path, how) != ("/dev/kmsg", os.O_RDONLY)]
    refused("open", [lambda path=path: os.open(path, how) for path in tried], "EACCES", "ENOENT", "EPERM")
tries("log of the kernel", lambda: done(libc.klogctl(10, None, 0)))
""",
        "make: EPERM\n" * 3 + "open: EACCES or ENOENT or EPERM\n" * 3 + "log of the kernel: EPERM\n",
    ),
    Attack(
        "GPUs of others",
        """
for path in site["gpus"]:
    for how in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY | os.O_NONBLOCK):
        tries("open", lambda: os.open(path, how))
    tries("by another way", lambda: os.open("/proc/self/root" + path, os.O_RDWR))
tries("make one", lambda: os.mknod("gpu", 0o20666, os.makedev(195, 0)))
if os.fork() == 0:
    os.setsid()
    tries("as a child", lambda: os.open(site["gpus"][0], os.O_RDWR))
    os._exit(0)
os.wait()
tries("take the rule away", lambda: call(321 if x86 else 280, 9, 0, 0))
""",
        told("EPERM", *["open", "open", "open", "by another way"] * len(gpu_files.FILES), "make one", "as a child", "take the rule away"),
        check="needs a rule",
    ),
    Attack(
        "settings of the kernel",
        """
names = ("sys/kernel/core_pattern", "sys/kernel/modprobe", "sys/vm/drop_caches", "sys/kernel/randomize_va_space", "sys/net/ipv4/ip_forward",
         "sys/fs/suid_dumpable", "sys/kernel/hostname", "sys/kernel/shmmax", "sysrq-trigger", "self/oom_score_adj")
refused("write", [lambda name=name: write("/proc/" + name, "-1000") for name in names], "EACCES", "ENOENT", "EPERM")
refused("write", [lambda: write("/sys/kernel/mm/transparent_hugepage/enabled", "never")], "EACCES", "ENOENT", "EROFS")
tries("name of the host", lambda: socket.sethostname("x"))
tries("clock", lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()))
tries("reboot", lambda: call(169 if x86 else 142, 0, 0, 0, 0))
tries("swap", lambda: done(libc.swapoff(b"/nowhere")))
tries("account", lambda: done(libc.acct(b"/tmp/account")))
tries("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))
tries("real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))
""",
        "write: EACCES or ENOENT or EPERM\nwrite: EACCES or ENOENT or EROFS\n"
        + told("EPERM", "name of the host", "clock", "reboot", "swap", "account") + "priority: EACCES\nreal time: EPERM\n",
    ),
    Attack(
        "keyrings and other parts of the kernel",
        """
for name, number in (("add_key", (248, 217)), ("request_key", (249, 218)), ("keyctl", (250, 219)), ("bpf", (321, 280)),
                     ("perf_event_open", (298, 241)), ("userfaultfd", (323, 282)), ("io_uring_setup", (425, 425)),
                     ("init_module", (175, 105)), ("kexec_load", (246, 104)), ("quotactl", (179, 60))):
    tries(name, lambda: call(number[0 if x86 else 1], 1, 0, 0, 0, 0))
tries("personality", lambda: call(135 if x86 else 92, 0x400000))
""",
        told("EPERM", "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "init_module",
             "kexec_load", "quotactl", "personality"),
    ),
    Attack(
        "network of root",
        """
for family, protocol in ((socket.AF_PACKET, 0x300), (socket.AF_INET, 1), (socket.AF_INET6, 58), (socket.AF_INET, 255)):
    tries("raw", lambda: socket.socket(family, socket.SOCK_RAW, protocol))
talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
tries("another address", lambda: fcntl.ioctl(talk, 0x8916, struct.pack("16sH2s4s8s", b"lo", socket.AF_INET, b"", bytes(4), b"")))
tries("interface down", lambda: fcntl.ioctl(talk, 0x8914, struct.pack("16sh14s", b"lo", 0, b"")))
tries("mark", lambda: talk.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 1))
refused("firewall", [lambda: talk.setsockopt(socket.IPPROTO_IP, 64, bytes(84))], "EPERM", "ENOPROTOOPT")
""",
        "raw: EPERM\n" * 4 + "another address: EPERM\ninterface down: EPERM\nmark: EPERM\nfirewall: EPERM or ENOPROTOOPT\n",
    ),
    Attack(
        "the API with the token of a rank",
        """
import urllib.error, urllib.request
forged = {"node": "node0", "boot_id": "x", "epoch": victim["attempt"], "kind": "exited", "ranks": [], "flushed": True}
for method, path, body in (
    ("GET", "/v1/jobs", None), ("GET", "/v1/jobs/" + victim["job"], None), ("GET", f"/v1/jobs/{victim['job']}/logs", None),
    ("POST", f"/v1/jobs/{victim['job']}/cancel", {}), ("POST", "/v1/jobs", {"command": ["true"], "gpus": 1}), ("GET", "/v1/nodes", None),
    ("POST", "/v1/tokens", {"role": "admin", "owner": "x"}), ("POST", "/v1/agent/report", forged),
    ("POST", "/v1/agent/poll", {"node": "node0"}), ("GET", "/v1/audit", None), ("PUT", "/v1/blobs/" + "0" * 64, {}),
    ("POST", "/api/2.0/mlflow/experiments/delete", {"experiment_id": "0"}),
):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["MLFLOW_TRACKING_URI"] + path, method=method, data=data)
    request.add_header("Authorization", "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"])
    request.add_header("Content-Type", "application/json")
    try:
        print(path.split("/")[2], "DONE", urllib.request.urlopen(request).read()[:100])
    except urllib.error.HTTPError as problem:
        print(problem.code in (401, 403), end=" ")
print()
""",
        "True " * 12 + "\n",
    ),
    Attack(
        "services of the host",
        """
tries("who is logged in", lambda: os.listdir("/run/user"))
for name in ("bus", "systemd/private"):  # a manager of a user would start a process that is in no job
    tries("a manager of root", lambda: connect(f"/run/user/0/{name}", socket.SOCK_STREAM))
for name in ("/run/systemd/journal/socket", "/run/systemd/journal/dev-log", "/run/systemd/journal/stdout"):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):  # where the agent's unit speaks
        refused(name, [lambda: connect(name, kind)], "ENOENT")
tries("a lock", lambda: os.open(f"/run/lock/{os.getuid()}", os.O_CREAT | os.O_EXCL) and None)
tries("queues", lambda: os.listdir("/dev/mqueue") if os.path.exists("/dev/mqueue") else [])
""",
        (
            "who is logged in: DONE []\n"
            + told("ENOENT", *["a manager of root"] * 2)
            + told("ENOENT", *[f"/run/systemd/journal/{name}" for name in ("socket", "dev-log", "stdout") for _ in range(2)])
            + "a lock: DONE None\nqueues: DONE []\n"
        ),
    ),
    Attack(
        "processes without end",
        """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
ready, readies = os.pipe()
for _ in range(40):
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        for _ in range(4):
            try:
                os.fork()
            except OSError:
                pass
        os.write(readies, b".")
        while True:
            signal.pause()
for _ in range(40):
    os.read(ready, 1)
os._exit(0)
""",
        "",
        check="nothing is left",
    ),
    Attack(
        "memory",
        """
held = bytearray(256 << 20)
for at in range(0, len(held), 4096):
    held[at] = 1
tries("be killed last", lambda: write("/proc/self/oom_score_adj", "-1000"))
refused("huge pages of the node", [lambda: done(libc.shmget(0, 1 << 30, 0o4600 | 0o1000))], "EPERM", "ENOMEM", "ENOSYS", "EINVAL")
""",
        "be killed last: EACCES\nhuge pages of the node: EPERM or ENOMEM or ENOSYS or EINVAL\n",
    ),
    Attack(
        "huge files and deep folders",
        """
file = os.open("huge", os.O_WRONLY | os.O_CREAT)
refused("larger than any", [lambda: os.truncate("huge", (1 << 63) - 1)], "EFBIG", "EINVAL")
os.truncate("huge", 1 << 40)
place = os.open(".", os.O_RDONLY)
for _ in range(500):  # a path of 100,000 bytes
    os.mkdir("d" * 200, dir_fd=place)
    place, before = os.open("d" * 200, os.O_RDONLY, dir_fd=place), place
    os.close(before)
for number in range(3000):
    os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY, 0, dir_fd=place))
os.chmod(".", 0)
sys.stdout.write("x" * (1 << 20) + "\\n")
print("end")
""",
        "larger than any: EFBIG or EINVAL\n" + "x" * (1 << 20) + "\nend\n",
        check="its folder goes",
    ),
    Attack(
        "outliving its end",
        """
sys.stdout.flush()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        libc.prctl(1, 0)  # no signal when a parent ends
        libc.prctl(36, 1)  # a reaper of its own
        os.chdir("/")
        os.closerange(0, 256)
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True:
            if os.fork() != 0:
                os._exit(0)  # another number each time
    os._exit(0)
os.wait()
""",
        "",
        check="nothing is left",
    ),
    Attack(
        "ignoring every signal",
        """
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
libc.prctl(1, 0)
print("here", flush=True)
while True:
    signal.pause()
""",
        "here\n",
        check="is canceled",
    ),
    Attack(
        "descriptors",
        """
print(sorted(int(name) for name in os.listdir("/proc/self/fd"))[:3])
for number in range(3, 4096):
    try:
        kind = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        continue
    if not kind.startswith("/proc/"):
        print(number, kind)
for name in ("0", "1", "2"):
    print(os.readlink("/proc/self/fd/" + name).split(":")[0])
""",
        "[0, 1, 2]\n/dev/null\npipe\npipe\n",
    ),
    Attack(
        "links that root follows",
        """
own = os.path.dirname(os.getcwd())
for folder in (own + "/results", own + "/errors", os.getcwd(), "/tmp"):
    for name in ("0.json", "0.pickle", "0.error.pickle", "0.stdout", "link"):
        os.symlink(site["canary"], f"{folder}/{name}")
    os.symlink(site["folder"], folder + "/folder")
tries("link to a file of root", lambda: os.link(site["canary"], "hard"))
tries("link to a program of root", lambda: os.link(site["setuid"], "program"))
""",
        "link to a file of root: EPERM\nlink to a program of root: EPERM\n",
        check="the canary is root's",
    ),
    Attack(
        "terminals",
        """
TIOCSTI, TIOCLINUX, TIOCSCTTY = 0x5412, 0x541C, 0x540E
ours, theirs = os.openpty()
for terminal in (ours, theirs):
    tries("type", lambda: fcntl.ioctl(terminal, TIOCSTI, b"x"))
    tries("paste", lambda: fcntl.ioctl(terminal, TIOCLINUX, b"\\x03"))
tries("have one", lambda: os.open("/dev/tty", os.O_RDWR))
refused("open", [lambda path=path: os.open(path, os.O_RDWR) for path in ("/dev/console", "/dev/tty1", "/dev/vcs1")], "EACCES", "ENOENT")
""",
        "type: EPERM\npaste: EPERM\n" * 2 + "have one: ENXIO\nopen: EACCES or ENOENT\n",
    ),
]
