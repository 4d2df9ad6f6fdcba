# SPDX-License-Identifier: Apache-2.0
"""gpuagent --run-as owner: each job runs as a user of its owner's alone, and finds nothing of the agent, of root or of other people."""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import BUILD, GPUAGENT, Api, Cluster, Program, eventually, run_gpuctl
from owners import PYTHON, needs_owners, passable_folder
from packages import make_source, make_wheel, pip_environment
from paper_controller import Node, Paper

pytestmark = needs_owners

FIRST = 1900000000
LIBRARY = (BUILD / "tests" / "unit" / "libfake-nvml.so").resolve()

STATUS = ["sh", "-c", "id -u; id -g; id -G; grep -E '^(NoNewPrivs|Cap|Groups|Seccomp:)' /proc/self/status"]

#: Tries what a user of the cluster would like to have, and names what it got. Words: state, run, other's work folder, pids of root.
BURGLAR = """
import os, socket, sys
state, run, other, token, *pids = sys.argv[1:]
def attempt(what, act):
    try:
        act()
    except (OSError, AttributeError):
        return
    print("GOT", what)
def connect(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as talk:
        talk.connect(path)
        talk.send(b"stop 0 CANCELED")
        if talk.recv(100) == b"":
            raise OSError("refused")
own = os.environ["GPUCTL_SOCKET"].rpartition("/")[0]
logs = os.path.dirname(os.environ["TORCHELASTIC_ERROR_FILE"]).rpartition("/")[0]
runner = os.environ["GPUCTL_WATCH"]
for path in (token, f"{own}/launch", f"{own}/shim.pid", f"{logs}/0.stdout", f"{state}/users", f"{other}/secret", f"{other}/../0.stdout",
             "/etc/shadow", f"/proc/{os.getppid()}/environ", f"{state}/journal", f"{state}/shim.log"):
    attempt(f"read {path}", lambda: open(path).read())
for path in (state, f"{state}/attempts", run, own, logs, other, f"{state}/homes", f"{state}/payloads", f"{state}/spare"):
    attempt(f"list {path}", lambda: os.listdir(path))
for path in (f"{logs}/exit", f"{logs}/stray", f"{own}/stray", f"{runner}/gpuctl_watch.py", f"{state}/stray", "/etc/x", f"{other}/stray"):
    attempt(f"write {path}", lambda: open(path, "a").close())
for name in ("work", "results", "errors"):
    attempt(f"replace {name}", lambda: os.rename(f"{logs}/{name}", f"{logs}/moved"))
for pid in map(int, pids):
    attempt(f"signal {pid}", lambda: os.kill(pid, 0))
    attempt(f"see {pid}", lambda: os.stat(f"/proc/{pid}"))
attempt("stop its shim", lambda: connect(f"{own}/shim.sock"))
attempt("become root", lambda: os.setuid(0))
attempt("take root's group", lambda: os.setgroups([0]))
attempt("make a device", lambda: os.mknod("disk", 0o60600, os.makedev(8, 0)))
attempt("mount", lambda: os.unshare(0x20000))
attempt("leave its cgroup", lambda: open("/sys/fs/cgroup/cgroup.procs", "w").write("0"))
attempt("link to a file of root", lambda: os.link("/etc/shadow", "results-link"))
seen = {os.stat(f"/proc/{name}").st_uid for name in os.listdir("/proc") if name.isdigit()}
print("sees only its own" if seen == {os.getuid()} else f"GOT processes of {seen}")
"""


#: Builds a package, and says who builds it and what it could read. It leaves a process.
BACKEND = """
import os, shutil, subprocess
def build_wheel(folder, *settings, **more):
    with open("{folder}/said", "a") as said:
        print(os.getuid(), file=said)
        for path in ("{token}", "{state}/journal", "{state}/users", "/etc/shadow"):
            try:
                print("read", path, open(path).read(1), file=said)
            except OSError:
                pass
        for path in ("{state}/environments", "{state}/attempts"):
            try:
                print("list", path, os.listdir(path), file=said)
            except OSError:
                pass
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        print("list of system calls", status["Seccomp"].strip(), file=said)
        print(open("/proc/self/cgroup").read().rstrip().rpartition(".")[2], file=said)
    subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return os.path.basename(shutil.copy("{folder}/curious-1.0-py3-none-any.whl.made", folder + "/curious-1.0-py3-none-any.whl"))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with passable_folder() as folder:
        shared = Cluster(folder, [2], agent=["--run-as", "owner"], agent_environment=pip_environment(folder / "wheels")).start()
        yield shared
        shared.stop()


@pytest.fixture
def wheels(cluster: Cluster) -> Path:
    """A folder of packages, which every user may read, and write a file to."""
    folder = cluster.folder / "wheels"
    folder.mkdir()
    (folder / "said").touch()
    (folder / "said").chmod(0o666)
    return folder


def ran(api: Api, command: list[str], **spec: Any) -> str:
    """What a job printed that succeeds."""
    job = api.submit(command, **spec)
    view = api.wait(job)
    assert view["state"] == "SUCCEEDED", (view, api.log(job), api.log(job, stream="stderr"))
    return api.log(job)


def test_each_owner_has_a_user_of_their_own_without_any_rights(cluster: Cluster) -> None:
    ann, bob = cluster.user("ann-of-tests"), cluster.user("bob-of-tests")
    first, again, other = (ran(api, STATUS).splitlines() for api in (ann, ann, bob))
    assert first == again
    assert first[0] != other[0] and min(int(first[0]), int(other[0])) > FIRST
    assert first[:3] == [first[0]] * 3, "its group is its own, and there is no other"
    status = dict(line.split(":\t", 1) for line in first[3:])
    assert status["NoNewPrivs"] == "1"
    assert {value for name, value in status.items() if name.startswith("Cap")} == {"0" * 16}
    assert status["Seccomp"] == "2", "a list"
    labels = cluster.nodes()["node0"]["labels"]
    assert (labels["isolation"], labels["seccomp"]) == ("user", "default")


@pytest.mark.parametrize("owner", ["root", "daemon", "nobody", "messagebus"])
def test_users_of_the_host_that_are_no_people_run_no_job(cluster: Cluster, owner: str) -> None:
    assert int(ran(cluster.user(owner), ["id", "-u"])) > FIRST


def test_a_job_finds_nothing_of_the_agent_and_of_others(cluster: Cluster) -> None:
    bob = cluster.user("bob-of-tests")
    hidden = bob.submit(["sh", "-c", "umask 0; echo mine > secret; pwd; sleep 600"])
    work = eventually(lambda: bob.log(hidden), "the folder of bob's job").strip()
    agent = cluster.agents[0].process
    assert agent is not None
    pids = [str(pid) for pid in (agent.pid, 1, *pids_below(agent.pid))]
    words = [str(cluster.folder / "node0"), str(cluster.folder / "node0.run"), work, str(cluster.folder / "node.token"), *pids]
    said = ran(cluster.user("ann-of-tests"), [PYTHON, "-c", BURGLAR, *words])
    assert said == "sees only its own\n"
    bob.post(f"/v1/jobs/{hidden}/cancel")
    bob.wait(hidden)


def pids_below(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_temporary_files_are_the_jobs_own_and_go_with_it(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    command = ["sh", "-c", "ls -A /tmp /var/tmp; echo $TMPDIR; touch /tmp/left /dev/shm/left; mktemp; ls /var/tmp /dev/shm"]
    for _ in range(2):  # also where the same supervisor serves both
        said = ran(ann, command).splitlines()
        assert said[:4] == ["/tmp:", "", "/var/tmp:", "/tmp"], said
        assert said[4].startswith("/tmp/tmp.") and said[5:7] == ["/dev/shm:", "left"]
    assert not Path("/tmp/left").exists() and not Path("/dev/shm/left").exists()


def test_services_of_the_host_are_hidden_and_locks_go_with_the_job(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    mark = f"gpuctl-test-{uuid.uuid4().hex}"
    service = Path("/run/user", mark)
    service.mkdir(parents=True)
    try:
        assert ran(ann, ["sh", "-c", f"ls -A /run/user; touch /run/lock/{mark} && ls /run/lock"]) == f"{mark}\n"
        refused = ran(ann, ["sh", "-c", "touch /run/user/x 2>/dev/null || echo refused"])
        assert refused == "refused\n" and not Path("/run/lock", mark).exists()
    finally:
        service.rmdir()


def test_a_home_is_kept_for_its_owner_alone(cluster: Cluster) -> None:
    ann, bob = cluster.user("ann-of-tests"), cluster.user("bob-of-tests")
    home, *names = ran(ann, ["sh", "-c", 'echo kept > ~/note; echo "$HOME"; echo $USER $LOGNAME $SHELL']).splitlines()
    assert names == ["ann-of-tests ann-of-tests /bin/sh"]
    assert ran(ann, ["sh", "-c", "cat ~/note"]) == "kept\n"
    assert ran(bob, ["sh", "-c", f"ls {home} || cat {home}/note || echo shut; echo $HOME"]) == f"shut\n{Path(home).parent}/{FIRST + 17}\n"


def test_files_and_bundles_belong_to_the_owner_and_are_unpacked_with_their_rights(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for info, data in (("code/train.py", b"print('trained')\n"), ("run.sh", b"#!/bin/sh\necho ran\n")):
            member = tarfile.TarInfo(info)
            member.size, member.mode = len(data), 0o4755
            archive.addfile(member, io.BytesIO(data))
    files = [{"path": "data/given.txt", "text": "given"}, {"path": "big", "blob": ann.blob(b"x" * 200_000)}]
    said = ran(
        ann, ["sh", "-c", "./run.sh; cat data/given.txt; echo; wc -c < big; find . -printf '%U %m %p\\n' | sort; id -u"],
        bundle={"blob": ann.blob(packed.getvalue())}, files=files,
    ).splitlines()  # fmt: skip
    assert said[:3] == ["ran", "given", "200000"]
    owner = said[-1]
    assert {line.split()[0] for line in said[3:-1]} == {owner}
    assert f"{owner} 755 ./run.sh" in said, "no bit that changes the user"


def test_a_function_returns_what_it_found(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    payload = b"gpuctl-function 1 python=%d.%d\n" % sys.version_info[:2] + pickle.dumps((os.getuid, (), {}))
    inline = base64.b64encode(payload).decode()
    job = ann.post("/v1/jobs", {"function": {"inline": inline}, "gpus": 2, "python": PYTHON})["id"]
    view = ann.wait(job)
    assert view["state"] == "SUCCEEDED", (view, ann.log(job, stream="stderr"))
    results = ann.get(f"/v1/jobs/{job}/results")["results"]
    assert [result["kind"] for result in results] == ["value", "value"]
    assert len({result["json"] for result in results}) == 1 and results[0]["json"] > FIRST


def test_each_rank_keeps_files_as_its_user(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    keeps = (
        "import os, pathlib; kept = pathlib.Path(os.environ['GPUCTL_OUTPUT_DIR']); (kept / 'uid').write_text(str(os.getuid()));"
        "(kept / 'shadow').symlink_to('/etc/shadow'); assert kept.stat().st_uid == os.getuid() and kept.stat().st_mode & 0o077 == 0"
    )
    job = ann.submit([PYTHON, "-c", keeps], gpus=2)
    assert ann.wait(job)["state"] == "SUCCEEDED", ann.log(job, stream="stderr")
    kept = ann.get(f"/v1/jobs/{job}/files")
    assert [file["path"] for file in kept["files"]] == ["0/uid", "1/uid"] and kept["left_out"]["files"] == 2
    assert int(ann.raw("GET", f"/v1/jobs/{job}/files/content?path=1/uid")[2]) > FIRST


#: Of its first attempt: saves, and puts links to what others have. Of its second: says what it found, and whose it is.
SAVES = """
import os, pathlib, signal, sys
folder, other = pathlib.Path(os.environ["GPUCTL_CHECKPOINT_DIR"]), sys.argv[1]
assert folder.stat().st_uid == os.getuid() and folder.stat().st_mode & 0o077 == 0
if os.environ["GPUCTL_ATTEMPT"] == "1":
    (folder / "deep").mkdir()
    (folder / "deep" / "state").write_text("mine")
    (folder / "shadow").symlink_to("/etc/shadow")
    (folder / "secret").symlink_to(other)
    (folder / "etc").symlink_to("/etc")
    sys.exit(3)
for path in sorted(folder.rglob("*")):
    print(path.relative_to(folder), path.lstat().st_uid == os.getuid())
print((folder / "deep" / "state").read_text())
"""


def test_a_checkpoint_is_its_owners_on_each_attempt_and_no_link_is_followed(cluster: Cluster) -> None:
    ann, bob = cluster.user("ann-of-tests"), cluster.user("bob-of-tests")
    secret = ran(bob, ["sh", "-c", "echo secret > ~/secret; echo ~/secret"]).strip()
    job = ann.submit([PYTHON, "-c", SAVES, secret], retries=1)
    view = ann.wait(job)
    assert view["state"] == "SUCCEEDED", (view, ann.log(job), ann.log(job, stream="stderr"))
    *found, last = ann.log(job).splitlines()
    assert found == ["deep True", "deep/state True"]
    assert last == "mine"
    shown = ann.get(f"/v1/jobs/{job}/checkpoint")["checkpoint"]
    assert (shown["files"], shown["bytes"], shown["left_out"]) == (1, 4, 3)
    assert bob.raw("GET", f"/v1/jobs/{job}/checkpoint")[0] == 404


def test_programs_reach_their_output_by_its_name_and_their_supervisor_by_its_socket(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    says = (
        "import os, socket; open('/dev/stdout', 'w').write('by name\\n'); open('/dev/stderr', 'w').write('so, too\\n');"
        "line = b'{\"metric\": \"loss\", \"value\": 1.5, \"step\": 1, \"rank\": 0, \"time\": 1.0}\\n';"
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(line, os.environ['GPUCTL_SOCKET'])"
    )
    job = ann.submit([PYTHON, "-c", says])
    assert ann.wait(job)["state"] == "SUCCEEDED", ann.log(job, stream="stderr")
    assert (ann.log(job), ann.log(job, stream="stderr")) == ("by name\n", "so, too\n")
    metrics = ann.get(f"/v1/jobs/{job}/metrics")
    assert "1.5" in json.dumps(metrics), metrics


def test_packages_are_installed_by_a_user_without_rights_and_then_are_nobodys(cluster: Cluster, wheels: Path) -> None:
    """The build of a package sees no file of the agent and of jobs, leaves no process, and cannot change the environment later."""
    ann = cluster.user("ann-of-tests")
    make_wheel(wheels, "plain", "1.5")
    made = make_wheel(wheels, "curious", "1.0")
    made.rename(f"{made}.made")  # pip finds the source alone
    words = {"folder": str(wheels), "state": str(cluster.folder / "node0"), "token": str(cluster.folder / "node.token")}
    make_source(wheels, "curious", BACKEND.format(**words))
    code = (
        "import json, os, plain, curious, sys; made = curious.__file__; print(json.dumps([plain.version, os.stat(made).st_uid, "
        "os.access(made, os.W_OK), os.access(sys.prefix, os.W_OK), os.path.exists(sys.prefix + '/.build')]))"
    )
    job = ann.submit(["python", "-c", code], environment={"requirements": ["plain==1.5", "curious"]}, python=PYTHON)
    view = ann.wait(job)
    assert view["state"] == "SUCCEEDED", (view, ann.log(job, stream="stderr"))
    assert json.loads(ann.log(job)) == ["1.5", 0, False, False, False]
    said = (wheels / "said").read_text().splitlines()
    place = "build0" if cluster.nodes()["node0"]["isolation"] == "cgroup2" else said[-1]
    assert FIRST <= int(said[0]) < FIRST + 16 and said[1:] == ["list of system calls 2", place], said
    assert not [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and owner_of(entry) == int(said[0])]


def owner_of(process: Path) -> int:
    try:
        return process.stat().st_uid
    except OSError:  # it has ended
        return 0


def test_the_numbers_outlive_the_agent_and_so_do_jobs(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    before = ran(ann, ["id", "-u"])
    job = ann.submit(["sh", "-c", "id -u; until [ -e ~/go ]; do sleep 0.05; done; id -u"])
    eventually(lambda: ann.log(job), "its first line")
    agent = cluster.agents[0]
    agent.kill()
    agent.start()
    cluster.wait_ready()
    assert ran(ann, ["sh", "-c", "touch ~/go; id -u"]) == before
    assert ann.wait(job)["state"] == "SUCCEEDED" and ann.log(job) == before * 2
    ran(ann, ["sh", "-c", "rm ~/go"])


def test_a_service_account_is_a_user_of_its_own(cluster: Cluster) -> None:
    cluster.open_project("web")
    secret = cluster.api.post("/v1/tokens", {"role": "user", "service": "ci-of-tests", "project": "web"})["secret"]
    first, again = (ran(Api(cluster.url, secret), ["sh", "-c", "id -u; echo $USER; ls -a ~"], project="web") for _ in range(2))
    assert first == again and first.splitlines()[1] == "service:ci-of-tests" and int(first.splitlines()[0]) > FIRST


def test_an_operator_can_allow_all_system_calls(cluster: Cluster) -> None:
    """Programs that make namespaces, such as Apptainer, need some that the list refuses."""
    ann = cluster.user("ann-of-tests")
    cluster.add_agent("apptainer", 1, "--run-as", "owner", "--seccomp", "off")
    cluster.wait_ready()
    makes = ["sh", "-c", "unshare --user --map-root-user id -u 2>&1; grep Seccomp: /proc/self/status"]
    assert cluster.nodes()["apptainer"]["labels"]["seccomp"] == "off"
    assert ran(ann, makes, constraints={"seccomp": "off"}) == "0\nSeccomp:\t0\n"
    assert ran(ann, makes, constraints={"seccomp": "default"}) == "unshare: unshare failed: Operation not permitted\nSeccomp:\t2\n"


def test_jobs_can_ask_for_it_and_say_what_they_got(cluster: Cluster) -> None:
    cluster.add_agent("open", 1, "--run-as", "agent")
    cluster.wait_ready()
    apart = cluster.api.submit(["true"], constraints={"isolation": "user"})
    assert cluster.api.wait(apart)["state"] == "SUCCEEDED"
    attempts = cluster.api.get(f"/v1/jobs/{apart}/attempts")["attempts"]
    (node,) = {placement["node"] for one in attempts for placement in one["nodes"]}
    assert node != "open" and attempts[0]["nodes"][0]["isolation"] == "user"
    others = [name for name in cluster.nodes() if name != "open"]
    for name in others:
        cluster.api.post(f"/v1/nodes/{name}/drain", {})
    among = cluster.api.submit(["true"])
    placement = cluster.api.wait(among)["nodes"][0]
    assert (placement["node"], placement["isolation"]) == ("open", None)
    token = cluster.folder / "controller" / "admin.token"
    asks = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "NO_COLOR": "1"}
    shown = {job: run_gpuctl("get", job, env=asks).stdout for job in (apart, among)}
    assert re.search(rf"{node} .* user +[A-Z]+\n", shown[apart]) and re.search(r"open .* none +[A-Z]+\n", shown[among]), shown
    for name in others:
        cluster.api.post(f"/v1/nodes/{name}/resume", {})


def test_the_files_of_gpus_are_made_before_a_job_needs_them(tmp_path: Path) -> None:
    """CUDA asks a setuid program for them, which has no effect in a rank without rights."""
    driver, made = tmp_path / "driver", tmp_path / "made"
    driver.mkdir()
    (driver / "libnvidia-ml.so.1").symlink_to(LIBRARY)
    (driver / "nvidia-modprobe").write_text(f'#!/bin/sh\necho "$@" > {made}\n')
    (driver / "nvidia-modprobe").chmod(0o755)
    with passable_folder() as state:
        variables = {"LD_LIBRARY_PATH": str(driver), "FAKE_NVML_STATE": str(tmp_path / "gpus"), "FAKE_NVML_UUID": "GPU-made-"}
        (tmp_path / "gpus").write_text("process 1 0\n")
        (tmp_path / "token").write_text("gct_x\n")
        agent = Program(
            [str(GPUAGENT), "--controller", "http://127.0.0.1:1", "--token-file", str(tmp_path / "token"), "--name", "g1",
             "--run-as", "owner", "--state", str(state), "--run", str(state / "run")],
            tmp_path / "log", {**variables, "CUDA_VISIBLE_DEVICES": "", "PATH": f"{driver}:{os.environ['PATH']}"},
        )  # fmt: skip
        agent.start()
        eventually(lambda: made.exists() and made.read_text(), f"the call, by an agent that says {agent.said()}")
        assert made.read_text() == "-c 0 -u\n"
        agent.kill(signal.SIGTERM)


def test_an_order_without_an_owner_or_with_a_forged_one_starts_nothing(tmp_path: Path) -> None:
    """A controller of the version before does not name owners; a hostile one would write lines into the record of numbers."""
    with passable_folder() as folder:
        paper = Paper()
        node = Node(folder, paper, "--run-as", "owner")
        orders = (None, "older than this agent"), ("x\n1000 mallory", "is no name"), ("../x", "is no name")
        for number, (owner, says) in enumerate(orders):
            report = paper.run((1 << 32) + number + 1, {"command": ["touch", str(tmp_path / "ran")]}, owner=owner)
            assert report["kind"] == "declined" and says in report["text"], report
        assert not (tmp_path / "ran").exists() and not (folder / "state" / "users").exists()
        paper.change(live=[], orders=[], wanted=[])
        node.stop()
        paper.stop()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--run-as", "owner", "--state", "/tmp/x"], "--state /tmp/x would be hidden from jobs"),
        (["--run-as", "owner", "--state", "/srv/x", "--run", "/var/tmp/x"], "--run /var/tmp/x would be hidden from jobs"),
        (["--run-as", "owner", "--state", "/srv/x", "--run", "/run/user/0/x"], "--run /run/user/0/x would be hidden from jobs"),
        (["--run-as", "owner", "--user-ids", "0-5"], "--user-ids 0-5 is not a range"),
        (["--run-as", "me"], "--run-as"),
    ],
)
def test_what_cannot_work_is_refused(arguments: list[str], says: str) -> None:
    command = [str(GPUAGENT), "--controller", "http://127.0.0.1:1", "--token-file", "none", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_only_root_can(tmp_path: Path) -> None:
    program = tmp_path / "gpuagent"
    shutil.copy(GPUAGENT, program)
    for folder in [tmp_path, *tmp_path.parents[:-2]]:
        folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run(
        ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", str(program), "--config", "none", "--run-as", "owner",
         "--controller", "http://127.0.0.1:1", "--token-file", "none", "--state", "/srv/x"],
        capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 2 and "only root can run jobs as other users" in done.stderr, done.stderr
