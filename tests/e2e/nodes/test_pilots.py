# SPDX-License-Identifier: Apache-2.0
"""Nodes that come for a while and leave no trace: agents that end by themselves, and jobs of a real Slurm that bring them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import slurm_site
from harness import BUILD, GPUAGENT, PATIENCE, PYTHON, ROOT, Cluster, Program, eventually, make_tls, run_gpuctl
from packages import make_slow, pip_environment
from slowness import patient
from slurm_site import Slurm

#: Writes its process number, and goes on until it is told to end.
WAITS = ["sh", "-c", 'echo $$; trap "echo saved; exit 1" TERM; while :; do sleep 0.1; done']


class Pilots:
    """A controller, and agents that come with its token; scratch is their $TMPDIR."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.api = cluster.api
        self.scratch = cluster.folder / "scratch"
        self.scratch.mkdir()
        self.count = 0

    def start(self, *options: str, **variables: str) -> Program:
        self.count += 1
        agent = Program(
            [
                str(GPUAGENT), "--config", "none", "--controller", self.cluster.url, "--token-file",
                str(self.cluster.folder / "node.token"), "--cpu-slots", "1", "--python", PYTHON, "--run-as", "agent",
                "--warm-memory", "0", *options,
            ],
            self.cluster.folder / f"pilot{self.count}.log",
            {"TMPDIR": str(self.scratch), **variables},
        )  # fmt: skip
        agent.start()
        self.cluster.agents.append(agent)
        return agent

    def come(self, *options: str, **variables: str) -> tuple[Program, str]:
        """An agent whose node is READY, and the node's name."""
        agent = self.start(*options, **variables)
        return agent, self.ready(agent)

    def ready(self, agent: Program) -> str:
        said = re.compile(r"node registered name=(\S+)")
        eventually(lambda: said.search(agent.said()) or not agent.alive(), "the node to be registered")
        found = said.search(agent.said())
        assert found, agent.said()
        return found.group(1)

    def names(self) -> set[str]:
        return set(self.cluster.nodes())


def ended(agent: Program) -> int:
    assert agent.process is not None
    return agent.process.wait(PATIENCE)


@pytest.fixture
def pilots(make_cluster: Callable[..., Cluster]) -> Pilots:
    return Pilots(make_cluster())


def lives(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


# --- without Slurm ---


def test_an_ephemeral_agent_that_ends_leaves_neither_node_nor_files(pilots: Pilots) -> None:
    first, name = pilots.come("--ephemeral")
    second, other = pilots.come("--ephemeral")
    assert pilots.names() == {name, other} and name != other
    assert len(list(pilots.scratch.iterdir())) == 2
    assert pilots.api.wait(pilots.api.submit(["true"]))["state"] == "SUCCEEDED"
    for agent in (first, second):
        assert agent.kill(signal.SIGTERM) == 0, agent.said()
    assert pilots.names() == set() and list(pilots.scratch.iterdir()) == []


def test_a_named_state_folder_stays_and_with_it_what_was_built_there(pilots: Pilots, tmp_path: Path) -> None:
    agent, _ = pilots.come("--ephemeral", "--state", str(tmp_path / "kept"))
    assert agent.kill(signal.SIGTERM) == 0
    assert pilots.names() == set() and (tmp_path / "kept" / "environments").is_dir()


def test_what_runs_is_told_to_save_its_work_ends_before_the_agent_and_goes_on_elsewhere(pilots: Pilots) -> None:
    agent, name = pilots.come("--ephemeral")
    job = pilots.api.submit(WAITS)
    eventually(lambda: pilots.api.log(job), "the job's first line")
    process = int(pilots.api.log(job))
    assert agent.kill(signal.SIGTERM) == 0, agent.said()
    assert not lives(process) and name not in pilots.names() and list(pilots.scratch.iterdir()) == []
    assert pilots.api.job(job)["state"] == "QUEUED"
    _, other = pilots.come("--ephemeral")
    pilots.cluster.wait_state(job, "RUNNING")
    requeued = next(event for event in pilots.api.get(f"/v1/jobs/{job}/events")["events"] if event["kind"] == "requeued")
    assert requeued["detail"]["cause"] == "PREEMPTED", requeued
    second, first = pilots.api.get(f"/v1/jobs/{job}/attempts")["attempts"]
    assert [first["nodes"][0]["node"], second["nodes"][0]["node"]] == [name, other]
    assert "saved" in pilots.api.log(job, attempt=1)


def test_a_second_signal_does_not_shorten_the_grace_of_jobs(pilots: Pilots) -> None:
    agent, _ = pilots.come("--ephemeral")
    slow = 'trap "echo told; while [ ! -e go ]; do sleep 0.1; done; echo saved; exit 1" TERM; echo up; while :; do sleep 0.1; done'
    job = pilots.api.submit(["sh", "-c", f"pwd; {slow}"])
    eventually(lambda: "up" in pilots.api.log(job), "the job")
    assert agent.process is not None
    for _ in range(2):
        agent.process.send_signal(signal.SIGTERM)
        eventually(lambda: "told" in pilots.api.log(job), "the job to be told")
    (Path(pilots.api.log(job).split()[0]) / "go").touch()
    assert ended(agent) == 0
    assert "saved" in pilots.api.log(job, attempt=1)


def test_an_idle_agent_ends_and_its_node_is_lost_until_it_comes_back(pilots: Pilots, tmp_path: Path) -> None:
    options = ("--idle-exit", "100ms", "--state", str(tmp_path / "state"), "--name", "guest")
    agent = pilots.start(*options)
    assert ended(agent) == 0, agent.said()
    node = pilots.cluster.nodes()["guest"]
    assert (node["state"], node["reason"]) == ("LOST", "left: idle")
    again, _ = pilots.come(*options[2:])
    eventually(lambda: pilots.cluster.nodes()["guest"]["state"] == "READY", "the node to be back")
    assert again.alive()


def test_an_agent_with_a_job_is_not_idle(pilots: Pilots) -> None:
    agent, name = pilots.come("--ephemeral", "--idle-exit", "1s")
    job = pilots.api.submit(["sleep", "3"])
    assert pilots.api.wait(job)["state"] == "SUCCEEDED"
    (attempt,) = pilots.api.get(f"/v1/jobs/{job}/attempts")["attempts"]
    assert attempt["nodes"][0]["node"] == name
    assert ended(agent) == 0 and pilots.names() == set()


def test_an_agent_that_prepares_a_job_is_not_idle(pilots: Pilots, tmp_path: Path) -> None:
    house, sign = tmp_path / "house", tmp_path / "sign"
    house.mkdir()
    make_slow(house, "slowtool", sign)
    agent, name = pilots.come("--ephemeral", "--idle-exit", "1s", **pip_environment(house))
    job = pilots.api.submit([PYTHON, "-c", "pass"], environment={"requirements": ["slowtool"]})
    eventually((sign / "begun").exists, "the build to begin")
    ages = [0.0]

    def beats() -> bool:
        """Four heartbeats, of which one comes each half second."""
        ages.append(pilots.cluster.nodes()[name]["beat_age_s"])
        return sum(now < before for before, now in zip(ages, ages[1:], strict=False)) >= 4

    eventually(beats, "heartbeats")
    (sign / "go").touch()
    assert pilots.api.wait(job)["state"] == "SUCCEEDED"
    assert ended(agent) == 0 and pilots.names() == set()


def test_a_job_that_comes_in_the_last_moment_of_an_idle_agent_is_never_lost(pilots: Pilots, tmp_path: Path) -> None:
    """Submitted while the agent decides to go: it runs there, or on the next one, once."""
    ran = tmp_path / "ran"
    pilots.cluster.add_agent("drained", 1)  # so that jobs are taken when no other node is there
    eventually(lambda: "drained" in pilots.names(), "the node")
    pilots.api.post("/v1/nodes/drained/drain", {})
    jobs = []
    for turn in range(50):
        agent = pilots.start("--ephemeral", "--idle-exit", f"{turn + 10}ms")
        eventually(lambda agent=agent: "node registered" in agent.said() or not agent.alive(), "the node")
        jobs.append(pilots.api.submit(["sh", "-c", f"echo {turn} >>{ran}"]))
        eventually(lambda agent=agent: not agent.alive() or pilots.api.job(jobs[-1])["state"] == "SUCCEEDED", "one of them to end")
    pilots.start("--ephemeral")
    for job in jobs:
        view = pilots.api.wait(job)
        assert view["state"] == "SUCCEEDED", view
        assert len(pilots.api.get(f"/v1/jobs/{job}/attempts")["attempts"]) == 1
    assert sorted(map(int, ran.read_text().split())) == list(range(50))
    eventually(lambda: len(pilots.names()) == 2, "all pilots but the last to be gone")


def test_an_ephemeral_node_goes_at_the_time_that_it_expires(pilots: Pilots) -> None:
    agent, name = pilots.come("--ephemeral", "--expires-at", "+2s")
    assert pilots.cluster.nodes()[name]["expires_at"] is not None
    assert ended(agent) == 0, agent.said()
    assert pilots.names() == set()


def test_an_agent_that_is_told_to_end_while_the_controller_is_away_says_so_when_it_is_back(pilots: Pilots) -> None:
    agent, _ = pilots.come("--ephemeral")
    pilots.cluster.controller.kill()
    assert agent.process is not None
    agent.process.send_signal(signal.SIGTERM)
    eventually(lambda: "node leaves" in agent.said(), "the agent to be told")
    pilots.cluster.start_controller()
    assert ended(agent) == 0, agent.said()
    assert pilots.names() == set() and "unanswered" not in agent.said()


def test_an_idle_agent_ends_without_a_controller(pilots: Pilots) -> None:
    agent, name = pilots.come("--ephemeral", "--idle-exit", "1s")
    pilots.cluster.controller.kill()
    assert ended(agent) == 0
    assert "leave unanswered" in agent.said() and list(pilots.scratch.iterdir()) == []
    pilots.cluster.start_controller()
    assert pilots.names() == {name}


def test_another_agent_can_have_the_name_at_once(pilots: Pilots) -> None:
    first, _ = pilots.come("--ephemeral", "--name", "guest")
    rival = pilots.start("--ephemeral", "--name", "guest")
    eventually(lambda: "give each agent its own --name" in rival.said(), "the refusal")
    assert first.kill(signal.SIGTERM) == 0
    pilots.ready(rival)
    assert rival.kill(signal.SIGTERM) == 0 and pilots.names() == set()


def refused(*options: str, **variables: str) -> str:
    """The problem and the remedy, a line each, with which the agent ends."""
    command = [str(GPUAGENT), *options]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=PATIENCE)
    problem, remedy = done.stderr.splitlines()
    assert done.returncode == 2 and done.stdout == "" and remedy.startswith("  remedy: "), done.stderr
    return done.stderr


def test_what_is_wrong_is_said_in_a_line_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("gct_a_b\n")
    rest = ("--config", "none", "--controller", "http://127.0.0.1:1", "--token-file", str(tmp_path / "token"), "--run-as", "agent")
    assert '--idle-exit must be a duration such as 90s, 15m or 2h, not "5 minutes"' in refused("--idle-exit", "5 minutes", *rest)
    assert "--ephemeral" in refused("--ephemeral=for-a-while", *rest)
    assert "--expires-at yesterday is not a time" in refused("--ephemeral", "--expires-at", "yesterday", *rest)
    join = refused("join", "http://127.0.0.1:1", "--token", "gcj_x", "--ephemeral", "--cpu-slots", "1")
    assert "a token of its own" in join and "gpuctl token create --role node" in join
    bare = refused("--ephemeral", *rest, SLURM_JOB_ID="1", CUDA_VISIBLE_DEVICES="", TMPDIR=str(tmp_path))
    assert "the job of Slurm has no GPUs" in bare and "--gpus-per-node" in bare
    assert list(tmp_path.iterdir()) == [tmp_path / "token"]


# --- with Slurm ---


PAGE = (ROOT / "docs" / "guide" / "slurm-nodes.md").read_text()


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Two nodes of two CPUs each."""
    try:
        with slurm_site.running(tmp_path_factory.mktemp("slurm"), ["n1", "n2"], 2, "pgid") as running:
            yield running
    except slurm_site.Missing as why:  # one that is there and does not start fails
        pytest.skip(str(why))


class Site(Pilots):
    """A person who has done what docs/guide/slurm-nodes.md says, with a controller that gpuctld init has made in ~/gpuctl."""

    def __init__(self, cluster: Cluster, slurm: Slurm):
        super().__init__(cluster)
        self.slurm = slurm
        self.home = cluster.folder / "home"
        self.home.mkdir()
        (self.home / "gpuctl").symlink_to(cluster.folder / "controller")
        (self.home / "gpuctl" / "pilots.token").write_text((cluster.folder / "node.token").read_text())
        self.jobs: list[str] = []

    @property
    def environment(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "TMPDIR": str(self.scratch), "PATH": f"{BUILD / 'agent'}:{os.environ['PATH']}"}
        settings = {"GPUCTL_RUN_AS": "agent", "GPUCTL_WARM_MEMORY": "0", "GPUCTL_CPU_SLOTS": "1", "GPUCTL_PYTHON": PYTHON}
        return {**self.slurm.environment, **own, **settings}

    def sbatch(self, *options: str, idle_exit: str = "10m") -> str:
        """Submit the script of the page as the page does, but for GPUs, and with these options; the number of the job."""
        script = re.search(r"```bash file=pilots.sh\n(.*?)```", PAGE, re.DOTALL)
        line = re.search(r"^sbatch (.*) pilots.sh$", PAGE, re.MULTILINE)
        assert script and line
        text = script.group(1).replace("https://login1:7070", self.cluster.url).replace("--idle-exit 10m", f"--idle-exit {idle_exit}")
        (self.home / "pilots.sh").write_text(text)
        words = [word for word in line.group(1).split() if not word.startswith(("--gpus", "--cpus-per-gpu"))]
        command = ["sbatch", "--parsable", "-o", str(self.cluster.folder / "slurm-%j.out"), *words, *options, "pilots.sh"]
        done = subprocess.run(command, env=self.environment, cwd=self.home, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        job = done.stdout.strip()
        self.jobs.append(job)
        return job

    def bring(self, *options: str, **how: str) -> tuple[str, set[str]]:
        """The number of a job of Slurm, and the names of its nodes, which are READY."""
        job = self.sbatch(*options, **how)
        wanted = int(self.field(job, "NumNodes").partition("-")[0])

        def there() -> set[str]:
            mine = {name for name, node in self.cluster.nodes().items() if name.endswith(f"-{job}") and node["state"] == "READY"}
            return mine if len(mine) == wanted else set()

        return job, eventually(there, f"the nodes of job {job}")

    def field(self, job: str, name: str) -> str:
        found = re.search(rf"\b{name}=(\S+)", self.slurm.said("scontrol", "show", "job", job))
        assert found, name
        return found.group(1)

    def state(self, job: str, wanted: str) -> None:
        def there() -> bool:
            state = self.field(job, "JobState")
            assert state in (wanted, "PENDING", "RUNNING", "COMPLETING"), self.said(job)
            return state == wanted

        eventually(there, f"job {job} to be {wanted}")

    def said(self, job: str) -> str:
        return (self.cluster.folder / f"slurm-{job}.out").read_text(errors="replace")

    def gpuctl(self, *words: str) -> str:
        token = self.cluster.folder / "controller" / "admin.token"
        environment = {"GPUCTL_URL": self.cluster.url, "GPUCTL_TOKEN_FILE": str(token), "GPUCTL_CACERT": str(self.cluster.cacert)}
        done = run_gpuctl(*words, env={**environment, "COLUMNS": "250"})
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def site(tmp_path: Path, slurm: Slurm) -> Iterator[Site]:
    cluster = Cluster(tmp_path, [], make_tls(tmp_path)).start()
    made = Site(cluster, slurm)
    yield made
    for job in made.jobs:
        slurm.said("scancel", job)
    eventually(slurm.queue_is_empty, "Slurm's queue to be empty")
    cluster.stop()


def test_a_job_of_slurm_brings_nodes_for_a_gang_and_is_completed_when_they_are_idle(site: Site) -> None:
    pilot, nodes = site.bring("-N2", idle_exit=f"{patient(15):.0f}s")  # the first waits for the second
    assert nodes == {f"n1-{pilot}", f"n2-{pilot}"}
    assert {node["cpus"] for node in site.cluster.nodes().values()} == {1}  # of two that the node has
    gang = site.api.submit(["true"], gpus=2)
    assert site.api.wait(gang)["state"] == "SUCCEEDED"
    (attempt,) = site.api.get(f"/v1/jobs/{gang}/attempts")["attempts"]
    assert {part["node"] for part in attempt["nodes"]} == nodes
    site.state(pilot, "COMPLETED")
    assert site.names() == set() and list(site.scratch.iterdir()) == [], site.said(pilot)


@pytest.mark.parametrize(("command", "state"), [("scancel", "CANCELLED"), ("scancel --signal=TERM", "COMPLETED")])
def test_what_runs_on_a_pilot_that_slurm_ends_waits_again_and_runs_on_the_next(site: Site, command: str, state: str) -> None:
    """--signal of sbatch does what scancel --signal does."""
    pilot, (first,) = site.bring("-N1", "-w", "n1")
    job = site.api.submit(WAITS)
    eventually(lambda: site.api.log(job), "the job's first line")
    process = int(site.api.log(job))
    site.slurm.said(*command.split(), pilot)
    site.state(pilot, state)
    eventually(lambda: first not in site.names(), "the node to be gone")  # Slurm says CANCELLED before the job has ended
    assert not lives(process) and site.api.job(job)["state"] == "QUEUED", site.said(pilot)
    following, (second,) = site.bring("-N1", "-w", "n1")
    site.cluster.wait_state(job, "RUNNING")
    newer, older = site.api.get(f"/v1/jobs/{job}/attempts")["attempts"]
    assert (older["nodes"][0]["node"], older["cause"], newer["nodes"][0]["node"]) == (first, "PREEMPTED", second)
    assert "saved" in site.api.log(job, attempt=1)
    site.api.post(f"/v1/jobs/{job}/cancel")


def test_two_pilots_on_one_node_are_two_nodes(site: Site) -> None:
    (_, first), (_, second) = site.bring("-N1", "-w", "n1"), site.bring("-N1", "-w", "n1")
    assert len(first | second) == 2 == len(site.names())


def test_a_pilot_takes_what_ends_before_its_time_limit(site: Site) -> None:
    pilot, (name,) = site.bring("-N1", "--time=10")
    end = site.field(pilot, "EndTime")  # in the zone of this host
    expires = subprocess.run(["date", "-d", site.cluster.nodes()[name]["expires_at"], "+%FT%T"], capture_output=True, text=True)
    assert expires.stdout.strip() == end
    assert re.search(r"^expires +[0-9:-]+", site.gpuctl("nodes", "show", name), re.MULTILINE)
    longer = site.api.submit(["true"], time_limit_s=3600)
    shorter = site.api.submit(["true"], time_limit_s=60)
    assert site.api.wait(shorter)["state"] == "SUCCEEDED"
    assert site.api.job(longer)["state"] == "QUEUED"
    assert name in site.gpuctl("explain", longer)
    site.api.post(f"/v1/jobs/{longer}/cancel")
