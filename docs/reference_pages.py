# SPDX-License-Identifier: Apache-2.0
"""Makes the pages of docs/reference: `GPUCTL_BUILD=build .venv/bin/python docs/reference_pages.py` writes them.

Each page comes from the table that the programs themselves use: commands and options from what they say on --help, states, causes and
events from proto/states.h, error and exit codes from proto/errors.h, limits from proto/limits*.h, the REST API and the fields of a job from
proto/openapi.yaml, the Python package from its signatures and docstrings. tests/python/project/test_reference.py compares the pages with
these. docs/reference/frameworks.md and mlflow.md have generators of their own, tests/frameworks/run and docs/mlflow_page.py.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
PACKAGE = ROOT / "client" / "python" / "src" / "serverless_gpu"
sys.path.append(str(ROOT / "docs" / "man"))

import page as man  # noqa: E402

PROGRAMS = {"gpuctl": "client/cli/gpuctl", "gpuctld": "daemon/gpuctld", "gpuagent": "agent/gpuagent"}
Row = dict[str, str]


def build() -> Path:
    return Path(os.environ.get("GPUCTL_BUILD", ROOT / "build"))


def source(folder: str, name: str) -> str:
    """The text of the one file of this name below the folder."""
    (path,) = (ROOT / folder).rglob(name)
    return path.read_text()


def plain(text: str) -> str:
    """Text that is nothing else in Markdown, in a table or outside of one. What stands between backticks stays."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part.replace("|", "\\|") if part[:1] == "`" else re.sub(r"([*|])", r"\\\1", part).replace("<", "&lt;") for part in parts)


def code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [f"| {' | '.join(line)} |".replace("|  |", "| |") for line in [head, *map(list, rows)]]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]]) + "\n"


def figure(lines: Iterable[str]) -> str:
    return "\n".join(["```text figure", *lines, "```", ""])


def joined(*parts: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip("\n") + "\n"


# --- lists of C -----------------------------------------------------------------------------------------------

ARGUMENT = re.compile(r'\s*(?:((?:"(?:[^"\\]|\\.)*"\s*)+)|([\w.]+))\s*(?:,|$)')


def rows_of(header: str, name: str) -> list[Row]:
    """The rows of an X-macro: each argument by its place, and the comment behind the row as "comment"."""
    text = re.sub(r"[ \t]*\\\n", "\n", (ROOT / "proto" / header).read_text())
    found = re.search(rf"^#define {name}\(X\)\n(.*?)^(?=#|\n|/\*|enum)", text + "\n\n", re.MULTILINE | re.DOTALL)
    assert found is not None, f"{header} has no list {name}"
    rows: list[Row] = []
    for match in re.finditer(r'X\(((?:"(?:[^"\\]|\\.)*"|[^")])*)\)[ \t]*(?:/\*(.*?)\*/)?', found[1], re.DOTALL):
        values = ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', each[1])) if each[1] else each[2] for each in ARGUMENT.finditer(match[1])]
        rows.append({**{str(place): value for place, value in enumerate(values)}, "comment": " ".join((match[2] or "").split())})
    assert len(rows) == len(re.findall(r"X\(", found[1])), f"a row of {name} has another form"
    return rows


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


# --- states.md, events.md -------------------------------------------------------------------------------------


def transitions() -> list[list[str]]:
    """The rows of the table of the core: from, to, event in the history."""
    text = source("daemon/core", "job.c")
    rows = re.findall(r"\{JOB_(\w+), JOB_EVENT_\w+, JOB_(\w+), EVENT_(\w+), \w+\}", text)
    assert len(rows) == len(re.findall(r"\{JOB_\w+, JOB_EVENT_", text)), "a row of the transitions in job.c has another form"
    spelled = {row["0"]: row["1"] for row in rows_of("states.h", "EVENT_KINDS")}
    order = [row["0"] for row in rows_of("states.h", "JOB_STATES")]
    seen = sorted(dict.fromkeys(rows), key=lambda row: (order.index(row[0]), order.index(row[1])))
    return [[code(old), code(new), code(spelled[event])] for old, new, event in seen]


def states_page() -> str:
    yes = {"true": "yes", "false": "no"}
    jobs = [[code(row["0"]), plain(sentence(row["2"])), yes[row["1"]]] for row in rows_of("states.h", "JOB_STATES")]
    attempts = [[code(row["0"]), plain(sentence(row["2"])), yes[row["1"]]] for row in rows_of("states.h", "ATTEMPT_STATES")]
    causes = [
        [code(row["0"]), plain(sentence(row["2"])), "the job" if row["1"] == "true" else "not the job"]
        for row in rows_of("states.h", "CAUSES")
        if row["0"] != "NONE"
    ]
    simple = {
        name: [[code(row["0"]), plain(sentence(row["1"]))] for row in rows_of("states.h", name)]
        for name in ("MEMBER_STATES", "NODE_STATES", "WAIT_REASONS")
    }
    gpus = [[code(row["1"]), plain(sentence(row["2"]))] for row in rows_of("states.h", "GPU_STATES")]
    tests = [[code(row["1"]), plain(sentence(row["2"]))] for row in rows_of("states.h", "NODE_TESTS")]
    policies = [[code(row["1"]), plain(sentence(row["2"]))] for row in rows_of("states.h", "POLICIES")]
    return joined(
        "# States, causes and reasons\n",
        "The names are the same in `gpuctl`, in the REST API, in Python and in the database. They come from `proto/states.h`.\n",
        "## States of a job\n",
        figure(
            [
                "HELD <-> QUEUED, BLOCKED -> QUEUED                                      before the job may be placed",
                "QUEUED -> STAGING -> PLACED -> RUNNING -> SUCCEEDED | FAILED | CANCELED | TIMED_OUT",
                "a retry, or a preemption, leads back to QUEUED",
            ]
        ),
        table(["state", "meaning", "final"], jobs),
        "These are all transitions. The event in the last column is the one in the job's history.\n",
        table(["from", "to", "event"], transitions()),
        "## States of an attempt\n",
        "An attempt is one run of a job. Its GPUs are free for other work only when the attempt is `ENDED`.\n",
        table(["state", "meaning", "holds its GPUs"], attempts),
        "## States of a member\n",
        "A member is one node's part of an attempt.\n",
        table(["state", "meaning"], simple["MEMBER_STATES"]),
        "## States of a node\n",
        table(["state", "meaning"], simple["NODE_STATES"]),
        "## States of a GPU\n",
        "`gpuctl gpus` shows one of these. Where several hold, the first of them is shown.\n",
        table(["state", "meaning"], gpus),
        "## Causes\n",
        "The cause says why an attempt ended, or why a job ended without one. An attempt that failed by the "
        "job's own fault counts against\n"
        "`retries` of the job, any other against `infra_retries`. `DECLINED` and `PREEMPTED` cost no retry: "
        "the job waits again at its old place\n"
        "in the queue. After a cancel or a time limit nothing is tried again.\n",
        table(["cause", "meaning", "whose fault"], causes),
        "## Reasons to wait\n",
        "`gpuctl explain JOB` shows one of these reasons, with the numbers that belong to it.\n",
        table(["reason", "meaning"], simple["WAIT_REASONS"]),
        "## Tests of nodes\n",
        "`gpuctl explain JOB` also says how many nodes fail which test for the job.\n",
        table(["test", "what a node that fails it is like"], tests),
        "## Scheduling policies\n",
        "`gpuctld --policy` takes `fifo`, `easy`, `sjf` or `default`. Only `gpuctl simulate` knows `srtf` and `srsf`.\n",
        table(["policy", "meaning"], policies),
    )


def events_page() -> str:
    rows = [[code(row["1"]), plain(sentence(row["2"]))] for row in rows_of("states.h", "EVENT_KINDS")]
    return joined(
        "# Events\n",
        "Every job has a history. Its events are numbered from 1 without gaps, and none is ever changed or "
        "removed while the job is stored.\n"
        "`gpuctl events JOB` shows them, and `gpuctl events JOB --follow -o jsonl` streams them as JSON. The REST API has them at\n"
        "`GET /v1/jobs/{id}/events`, also as a stream of server-sent events whose `id` is the number of the event.\n"
        "`gpuctl events --follow` and `GET /v1/events` stream those of all jobs, and [webhooks](../admin/webhooks.md) are told of them.\n",
        table(["event", "meaning"], rows),
        "## Fields of an event\n",
        fields_of("Event"),
    )


# --- errors.md, exit-codes.md ---------------------------------------------------------------------------------


def errors_page() -> str:
    rows = [row for row in rows_of("errors.h", "ERROR_TABLE") if row["0"] != "ERR_NONE"]
    served = [
        [code(row["1"]), row["2"], row["3"], "yes" if row["4"] == "true" else "no", plain(sentence(row["5"]))]
        for row in rows if row["2"] != "0"
    ]  # fmt: skip
    own = [[code(row["1"]), row["3"], plain(sentence(row["5"]))] for row in rows if row["2"] == "0"]
    return joined(
        "# Error codes\n",
        "An error of the REST API is a problem as RFC 9457 defines it (`application/problem+json`). `code` "
        "is one of the codes below. `field`\n"
        "names the field that is wrong, and `hint` says what to do. `retryable` says whether the same request may succeed later. MLflow's\n"
        'paths answer in MLflow\'s own form, `{"error_code", "message"}`.\n',
        "## Of the controller\n",
        table(["code", "HTTP status", "exit code of gpuctl", "retryable", "meaning"], served),
        "`unknown_outcome` means that the controller cannot tell whether the request took effect. Send it again with the same\n"
        "`Idempotency-Key`: it then takes effect once.\n",
        "## Of gpuctl itself\n",
        table(["code", "exit code", "meaning"], own),
        "## Fields of a problem\n",
        fields_of("Problem"),
    )


def exit_codes_page() -> str:
    meanings: dict[int, list[str]] = {}
    for row in rows_of("errors.h", "ERROR_TABLE"):
        meanings.setdefault(int(row["3"]), []).append(code(row["1"]))
    words = {
        0: "success", 1: "a failure that no other code names", 2: "the request or the command line is wrong", 3: "there is no such thing",
        4: "the token is missing, or may not do this", 5: "the state does not allow it", 6: "the cluster can never run this job",
        7: "the controller cannot be reached or cannot answer now", 8: "`gpuctl wait --timeout` is over and the job is not",
    }  # fmt: skip
    assert set(words) == set(meanings), "proto/errors.h has another exit code: say here what it means"
    rows = [[str(number), plain(sentence(words[number])), ", ".join(meanings[number]) if number else ""] for number in sorted(meanings)]
    own = re.search(r"#define EXIT_OWN_FAILURE (\d+)", source("client/cli", "verb.h"))
    left = re.search(r"#define EXIT_LEFT (\d+)", source("client/cli", "follow.h"))
    assert own is not None and left is not None
    job = [
        ["0", "The job succeeded."],
        ["1 to 123", "The exit code of the rank that did worst."],
        ["124", "The job reached its time limit."],
        [own[1], "gpuctl itself failed, and could not tell what became of the job."],
        ["128 + N", "Signal N ended the rank that did worst."],
        ["130", f"The job was canceled. Also ({left[1]}): you left `gpuctl run` with a second Ctrl-C, and the job may still run."],
    ]
    return joined(
        "# Exit codes\n",
        "## When a job decides\n",
        "`gpuctl run`, `gpuctl wait` and `gpuctl sbatch --wait` exit as the job did. Of several jobs, and of "
        "the tasks of an array, the worst\n"
        "code counts.\n",
        table(["exit code", "meaning"], job),
        "## All other commands\n",
        "Each failure also has a line on stderr which says what is wrong and what to do. [Error codes](errors.md) explains the codes.\n",
        table(["exit code", "meaning", "error codes"], rows),
        "`gpuctl logs --grep` and `gpuctl logs --errors` exit as grep does: 1 also when no line was found, and then stderr is empty.\n",
    )


# --- limits.md ------------------------------------------------------------------------------------------------

LIMITS = ("limits.h", "limits_agent.h", "limits_controller.h", "limits_objects.h", "limits_tracking.h", "limits_client.h")
UNITS = {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def number_of(expression: str, known: dict[str, int]) -> int:
    """What a constant of C is: whole numbers, names, sums and products."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            return known[node.id]
        assert isinstance(node, ast.BinOp), expression
        operations: dict[type, Callable[[int, int], int]] = {
            ast.Add: int.__add__, ast.Sub: int.__sub__, ast.Mult: int.__mul__, ast.Div: int.__floordiv__, ast.LShift: int.__lshift__,
        }  # fmt: skip
        return operations[type(node.op)](value(node.left), value(node.right))

    return value(ast.parse(re.sub(r"(?<=\d)U?LL", "", expression), mode="eval").body)


def amount(name: str, number: int) -> str:
    """A number in the largest unit that divides it."""
    if name.endswith(("_MS", "_S")) and "BYTES" not in name:
        seconds = number / 1000 if name.endswith("_MS") else number
        for unit, size in (("days", 86400), ("h", 3600), ("min", 60), ("s", 1)):
            if seconds >= 2 * size and seconds % size == 0:
                return f"{int(seconds // size):,} {unit}"
        return f"{seconds:,.10g} s" if seconds >= 1 else f"{number:,} ms"
    if "BYTES" in name or number >= 1 << 20 and number % (1 << 20) == 0:
        for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
            if number >= size and number % size == 0:
                return f"{number // size:,} {unit}"
        return f"{number:,} bytes"
    return f"{number:,}"


def limits_page() -> str:
    text = "".join((ROOT / "proto" / name).read_text() for name in LIMITS)
    known, pending, parts, rows = dict(UNITS), "", list[str](), list[list[str]]()

    def close() -> None:
        if rows:
            parts.append(table(["name", "value", "why"], rows))
            rows.clear()

    for match in re.finditer(r"/\*(.*?)\*/|^#define (\w+)[ \t]+([^\n]*?)[ \t]*(?:/\*([^\n]*)\*/)?$", text, re.MULTILINE | re.DOTALL):
        comment = " ".join(re.sub(r"\n \* ", " ", match[1] or "").split())
        if comment.startswith("---"):
            close()
            parts.append(f"## {sentence(comment.strip('- ')).rstrip('.')}\n")
        elif match[1] is not None:
            pending = comment
        elif match[2] in UNITS or match[3] == "":
            pending = ""
        else:
            name, expression = match[2], match[3]
            if expression.startswith('"'):
                shown = code(expression.strip('"'))
            else:
                known[name] = number_of(expression, known)
                shown = amount(name, known[name])
            why = " ".join(filter(None, (pending, (match[4] or "").strip())))
            rows.append([code(name), shown, plain(why)])
            pending = ""
    close()
    return joined(
        "# Limits\n",
        "Every queue, buffer, body and retry has a limit. This page lists all of them, with the reason for "
        "each number; a row without a reason\n"
        "belongs to the row above it, or needs none. They are constants of `proto/limits*.h`. Where an option "
        "changes a limit the row names it.\n",
        *parts,
    )


# --- cli.md, configuration.md ---------------------------------------------------------------------------------


def from_scdoc(text: str) -> str:
    """The prose of verbs.scd as Markdown."""
    text = re.sub(r"(?<!\w)_((?:\\.|[^_\n])+)_(?!\w)", r"`\1`", re.sub(r"\*([^*\n]+)\*", r"`\1`", text))
    return re.sub(r"\\([\\*_`~#])", r"\1", text)


def option_rows(options: list[tuple[str, str]]) -> str:
    return table(["option", "meaning"], [[code(label), plain(text)] for label, text in options])


def command(words: list[str], level: str, own: dict[str, str], shared: list[tuple[str, str]]) -> list[str]:
    """The section of one command, and of those below it."""
    told = man.ask(str(build() / PROGRAMS["gpuctl"]), *words)
    parts = [f"{level} gpuctl {' '.join(words)}\n", plain(told.summary) + "\n", figure([told.usage])]
    description, _, _ = own.get(" ".join(words), "").partition("# EXAMPLES\n")
    if description.strip():
        parts.append(from_scdoc(description.strip()) + "\n")
    options = [row for row in told.options if row not in shared]
    if options:
        parts.append(option_rows(options))
    for paragraph in "\n".join(told.details).split("\n\n"):
        lines = paragraph.split("\n")
        if paragraph.strip():
            parts.append(figure(lines) if any(line.startswith("  ") for line in lines) else plain(paragraph) + "\n")
    if told.examples:
        parts += ["Examples:\n", figure(line.removeprefix("  ") for line in told.examples)]
    for name, _ in told.verbs:
        parts += command([*words, name], f"{level}#", own, shared)
    return parts


def cli_page() -> str:
    gpuctl, own = str(build() / PROGRAMS["gpuctl"]), man.written_for_verbs()
    shared = [row for row in man.ask(gpuctl, "ps").options if man.option(row) in man.SHARED]
    verbs = man.ask(gpuctl).verbs
    sections = [part for name, _ in verbs for part in command([name], "##", own, shared)]
    daemons: list[str] = []
    for name in ("gpuctld", "gpuagent"):
        told = man.ask(str(build() / PROGRAMS[name]))
        daemons += [f"## {name}\n", plain(told.summary) + "\n", figure([told.usage]), option_rows(told.options)]
    return joined(
        "# Commands and options\n",
        "This page says what each program says on `--help`; the man pages (`man gpuctl-run`) say the same and have more examples.\n",
        table(["command", "what it does"], [[f"[`gpuctl {name}`](#gpuctl-{name})", plain(text)] for name, text in verbs]),
        "Options of every command that asks the controller:\n",
        option_rows(shared),
        "A job is named by its id or by the first characters of its id. `ID.17` is task 17 of an array. "
        "Durations are written `90s`, `15m`, `2h`\n"
        "or `7d`. [Exit codes](exit-codes.md) says how commands exit.\n",
        *sections,
        *daemons,
    )


def slurm_page() -> str:
    gpuctl, own = str(build() / PROGRAMS["gpuctl"]), man.written_for_verbs()
    shared = [row for row in man.ask(gpuctl, "ps").options if man.option(row) in man.SHARED]
    sections = [part for name in man.SLURM for part in command([name], "##", own, shared)]
    text = source("client/cli", "job_states.h")
    spelled = {name: f"`{short}` {whole}" for name, short, whole in re.findall(r'X\((\w+), "(\w+)", "(\w+)"\)', text)}
    ours = {
        "PENDING": "`QUEUED`, `HELD`, `BLOCKED`, `STAGING`", "RUNNING": "`PLACED`, `RUNNING`",
        "COMPLETING": "`RUNNING`, when its processes have ended on all nodes", "COMPLETED": "`SUCCEEDED`", "CANCELLED": "`CANCELED`",
        "FAILED": "`FAILED`", "TIMEOUT": "`TIMED_OUT`", "NODE_FAIL": "`FAILED` with the cause `NODE_LOST`",
        "PREEMPTED": "`FAILED` with the cause `PREEMPTED`", "OUT_OF_MEMORY": "`FAILED` with the cause `OUT_OF_MEMORY`",
    }  # fmt: skip
    assert set(ours) == set(spelled), "job_states.h has another state: say here which of ours it is"
    reasons = [
        ("`Resources`", "`NODES_BUSY`, `CPU_MEMORY`, `FRAGMENTED`"),
        ("`Priority`", "`RESERVED`, `BEHIND`, and jobs far behind in the queue"),
        ("`Dependency`", "`BLOCKED` by other jobs"), ("`BeginTime`", "`BLOCKED` until its time"), ("`JobHeldUser`", "`HELD`"),
        ("`QOSMaxGRESPerUser`", "`LIMIT` of GPUs, CPUs or memory"), ("`QOSMaxJobsPerUserLimit`", "`LIMIT` of running jobs"),
        ("`QOSMaxGRESMinutesPerUser`", "`LIMIT` of GPU hours"),
        ("`ReqNodeNotAvail`", "`DRAINED`, `UNAVAILABLE`, `LEAVING`, `HELD_OFF`, `NO_NODES`"),
        ("`Staging`", "`STAGING`"), ("`None`", "`DUE`"),
    ]  # fmt: skip
    nodes = [
        ("`idle`, `mix`, `alloc`", "`READY`: none, some or all of its GPUs are in use; without GPUs, of its CPUs"),
        ("the same with `*`", "`SUSPECT`: not heard"), ("`maint`", "in a maintenance window"), ("`drng`, `drain`", "`DRAINING`, `DRAINED`"),
        ("`down`", "`LOST`"),
    ]  # fmt: skip
    return joined(
        "# Slurm's commands\n",
        "gpuctl that is called by one of these names is that command.\n"
        "[Slurm users](../guide/slurm.md#slurms-own-commands) says how to get the names. `sbatch` is\n"
        "[`gpuctl sbatch`](cli.md#gpuctl-sbatch). All of them take the options of [every command](cli.md) that asks the controller, too.\n"
        "They exit with 1 when anything is wrong; `srun` and `sbatch --wait` exit as the job did.\n",
        *(part.replace("## gpuctl ", "## ") for part in sections),
        "## States of jobs\n",
        table(["Slurm", "gpuctl"], [[spelled[name], ours[name]] for name in spelled]),
        "`--states` knows Slurm's other states, too. No job is in them.\n",
        "## Reasons to wait\n",
        table(["Slurm", "gpuctl"], reasons),
        "The sentence with the numbers is shown by `gpuctl explain JOB`.\n",
        "## States of nodes\n",
        table(["Slurm", "gpuctl"], nodes),
    )


def setting_rows(program: str) -> str:
    """The table of settings, as tests/e2e/commands/test_configuration.py reads it."""
    options = man.ask(str(build() / PROGRAMS[program])).options
    rows: list[list[str]] = []
    for label, text in options:
        name, _, value = re.sub(r"^-\S, ", "", label).removeprefix("--").partition(" ")
        rows.append([code(name), value.replace("|", ", ") or "true or false", text.replace("|", ", ")])
        if name == "log-level":  # the last one that is a setting, too
            break
    return table(["setting", "value", "meaning"], rows)


def configuration_page() -> str:
    text = (REFERENCE / "configuration.md").read_text()
    for program in ("gpuctld", "gpuagent"):
        before, rows, after = re.split(rf"(?<=\n## {program}\n\n)((?:\|[^\n]*\n)+)", text)
        text = before + setting_rows(program) + after
    return text


# --- api.md, job-spec.md --------------------------------------------------------------------------------------


def contract() -> dict[str, Any]:
    import yaml

    loaded: dict[str, Any] = yaml.safe_load((ROOT / "proto" / "openapi.yaml").read_text())
    return loaded


def resolved(api: dict[str, Any], thing: Any) -> dict[str, Any]:
    while isinstance(thing, dict) and "$ref" in thing:
        name = thing["$ref"].removeprefix("#/").split("/")
        other: Any = api
        for part in name:
            other = other[part]
        thing = {**other, **{key: value for key, value in thing.items() if key != "$ref"}}
    assert isinstance(thing, dict)
    return thing


def kind_of(api: dict[str, Any], schema: dict[str, Any]) -> str:
    """The type of a field in a few words."""
    schema = resolved(api, schema)
    if "const" in schema:
        return code(str(schema["const"]))
    if "enum" in schema:
        return ", ".join("null" if each is None else code(str(each)) for each in schema["enum"])
    if "oneOf" in schema:
        return " or ".join(dict.fromkeys(kind_of(api, each) for each in schema["oneOf"]))
    kind = schema.get("type", "any")
    kinds = kind if isinstance(kind, list) else [kind]
    shown = "list" if kinds == ["array"] else " or ".join("list" if each == "array" else each for each in kinds)
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    if lowest is not None and highest is not None:
        shown += f", {lowest:,} to {highest:,}"
    elif lowest is not None:
        shown += f", {lowest:,} or more"
    elif highest is not None:
        shown += f", up to {highest:,}"
    if schema.get("format") == "date-time":
        shown += ", RFC 3339"
    return shown


def fields_of(name: str, api: dict[str, Any] | None = None) -> str:
    api = api or contract()
    schema = api["components"]["schemas"][name]
    rows = []
    for field, value in schema["properties"].items():
        value = resolved(api, value)
        default = value.get("default")
        spelled = str(default).lower() if isinstance(default, bool) else default
        words = [value.get("description", ""), "" if default is None else f"Default: {spelled}."]
        rows.append([code(field), kind_of(api, value), plain(" ".join(filter(None, words)))])
    return table(["field", "value", "meaning"], rows)


def job_spec_page() -> str:
    api = contract()
    inner = {"function": "JobFunction", "environment": "JobEnvironment", "bundle": "JobBundle", "early_signal": "EarlySignal"}
    parts = [part for field, name in inner.items() for part in (f"## Fields of `{field}`\n", nested(api, name))]
    return joined(
        "# Fields of a job\n",
        "This is what `POST /v1/jobs` takes as JSON, and what a job file has as YAML. A job file also takes "
        "a `command` that is one text, which\n"
        "bash runs, and durations such as `2h` for `time_limit`, `grace` and `lease`: see [Commands and "
        "arrays](../guide/commands.md#jobs-as-files).\n"
        "A job has a `command` or a `function`, and `gpus`; all else may be left out.\n",
        fields_of("JobSpec", api),
        *parts,
    )


def nested(api: dict[str, Any], name: str) -> str:
    """The fields of a schema, or of each of its forms."""
    schema = api["components"]["schemas"][name]
    said = plain(schema.get("description", ""))
    parts = [said + "\n"] if said else []
    if "properties" in schema:
        parts.append(fields_of(name, api))
    elif "oneOf" in schema or "enum" in schema:
        parts.append(f"One of: {kind_of(api, schema)}.\n")
    return "\n".join(parts)


def api_page() -> str:
    api = contract()
    tags = {tag["name"]: tag.get("description", "") for tag in api["tags"]}
    sections: dict[str, list[str]] = {name: [] for name in tags}
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            if method not in ("get", "head", "post", "put", "patch", "delete"):
                continue
            rows = []
            for parameter in operation.get("parameters", ()):
                each = resolved(api, parameter)
                is_shared = "$ref" in parameter and each["in"] == "header"
                said = "See [Common headers](#common-headers)." if is_shared else plain(each.get("description", ""))
                rows.append([code(each["name"]), each["in"], kind_of(api, each["schema"]), said])
            said = operation.get("description", "").strip()
            if operation.get("security") == [] and not said.startswith(("No token", "Without")):
                said = f"No token is asked for. {said}"
            roles = [role for each in operation.get("security", ()) for role in each.get("token", ())]
            if roles:
                said = f"Role {' or '.join(roles)}. {said}"
            texts = [sentence(operation["summary"]), *filter(None, said.split("\n\n"))]
            part = [f"### `{method.upper()} {path}`\n", *(plain(text) + "\n" for text in texts)]
            sections[operation["tags"][0]] += [*part, *([table(["parameter", "in", "value", "meaning"], rows)] if rows else [])]
    titles = {name: f"## {sentence(name).rstrip('.')}\n" for name in tags}
    headers = [each for each in api["components"]["parameters"].values() if each["in"] == "header"]
    parts = [part for name, listed in sections.items() for part in (titles[name], plain(tags[name]) + "\n", *listed)]
    return joined(
        "# REST API\n",
        *(plain(text) + "\n" for text in api["info"]["description"].split("\n\n")),
        "The contract itself is `proto/openapi.yaml` (OpenAPI 3.1). A controller serves it at "
        "`/v1/openapi.yaml`, with the schema of every body.\n"
        "A request carries its token as `Authorization: Bearer TOKEN`, or as the password of `Basic`.\n",
        "## Common headers\n",
        table(["header", "meaning"], [[code(each["name"]), plain(each["description"])] for each in headers]),
        *parts,
    )


# --- python.md ------------------------------------------------------------------------------------------------


def signature(node: ast.FunctionDef, name: str) -> str:
    arguments = re.sub(r"\b(self|cls)(, )?", "", ast.unparse(node.args), count=1) if name.count(".") else ast.unparse(node.args)
    arguments = re.sub(r":[^,=\[\]]*(?:\[(?:[^\[\]]|\[[^\]]*\])*\][^,=]*)*(?=,|=|$)", "", arguments)  # types are in the source
    return f"{name}({arguments})"


def shown(text: str) -> str:
    """A signature as a block, in lines that fit a page."""
    return figure(textwrap.wrap(text, 110, subsequent_indent="    ", break_long_words=False))


def paragraphs(text: str) -> list[str]:
    """A docstring as Markdown: paragraphs, and a table of the lines that name an argument."""
    parts: list[str] = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        named = [re.match(r"([a-z_]+(?:, [a-z_]+)*) +(\S.*)", line) for line in lines if not line.startswith("   ")]
        if len(named) > 1 and all(named) and any(re.match(r"[a-z_, ]+?  +\S", line) for line in lines):
            rows: list[list[str]] = []
            for line in lines:
                match = re.match(r"([a-z_]+(?:, [a-z_]+)*) +(\S.*)", line)
                if match and not line.startswith("   "):
                    rows.append([", ".join(code(name) for name in match[1].split(", ")), match[2]])
                else:
                    rows[-1][1] += f" {line.strip()}"
            parts.append(table(["argument", "meaning"], [[name, plain(said)] for name, said in rows]))
        else:
            parts.append(plain(paragraph) + "\n")
    return parts


def document(path: Path, module: str, level: str = "##", only: set[str] | None = None) -> list[str]:
    """The public functions and classes of a module, as they are written in its source."""
    tree = ast.parse(path.read_text())
    told = ast.get_docstring(tree) or ""
    parts = [f"{level} {module}\n", *paragraphs(told.split("\n\n")[0])]
    listed = [node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    only = set(ast.literal_eval(listed[0])) if only is None and listed else only
    errors: list[list[str]] = []
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name.startswith("_") or only is not None and node.name not in only:
            continue
        docstring = ast.get_docstring(node)
        if docstring is None:
            continue
        if isinstance(node, ast.FunctionDef):
            parts += [f"{level}# `{node.name}`\n", shown(signature(node, node.name)), *paragraphs(docstring)]
            continue
        bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        if any(base.endswith(("Error", "Exception", "JobFailed")) for base in bases):
            errors.append([code(node.name), ", ".join(map(code, bases)), plain(docstring)])
            continue
        parts.append(f"{level}# `{node.name}`\n")
        parts += paragraphs(docstring)
        rows = []
        for inner in node.body:
            said = ast.get_docstring(inner) if isinstance(inner, ast.FunctionDef) else None
            if isinstance(inner, ast.FunctionDef) and said is not None and not inner.name.startswith("_"):
                is_property = any(ast.unparse(each) == "property" for each in inner.decorator_list)
                form = inner.name if is_property else signature(inner, f".{inner.name}").removeprefix(".")
                rows.append([code(form), plain(said)])
        parts += [table(["method", "meaning"], rows)] if rows else []
    return [*parts, *([table(["class", "kind of", "meaning"], errors)] if errors else [])]


#: The public modules, those first that people need first.
MODULES = (
    "runtime", "planner", "asynchronous", "errors", "exceptions", "compute", "data", "accelerate", "torch_distributor", "air",
)  # fmt: skip


def python_page() -> str:
    launcher = document(PACKAGE / "launcher.py", "serverless_gpu.launcher", only={"distributed", "DistributedFunction"})
    call = document(PACKAGE / "_internal" / "calls" / "call.py", "The handle of a call", only={"DistributedFunctionCall"})
    job = document(PACKAGE / "_internal" / "calls" / "job.py", "The job of a call", only={"Job"})
    modules = [part for name in MODULES for part in document(PACKAGE / f"{name}.py", f"serverless_gpu.{name}")]
    package = document(PACKAGE / "__init__.py", "serverless_gpu", only={"attach", "jobs"})
    mapping = document(PACKAGE / "_internal" / "calls" / "mapping.py", "The handle of a map", only={"MapCall"})
    data = document(PACKAGE / "_internal" / "volumes.py", "serverless_gpu.data: volumes")
    names = {"RayFunction", "RayMetricsMonitor", "ray_launch"}
    ray = document(PACKAGE / "ray" / "__init__.py", "serverless_gpu.ray")
    ray += [part for name in ("launch", "monitor") for part in document(PACKAGE / "ray" / f"{name}.py", "", only=names)[2:]]
    return joined(
        "# Python package\n",
        "The distribution `client/python` has one package, `serverless_gpu`. This page shows its public modules; what is below\n"
        "`serverless_gpu._internal` may change with any version. `from serverless_gpu import distributed` is the usual beginning.\n",
        *package,
        *launcher,
        *call,
        *mapping,
        *job,
        *modules,
        *data,
        *ray,
    )


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "slurm.md": slurm_page,
    "python.md": python_page,
    "configuration.md": configuration_page,
    "job-spec.md": job_spec_page,
    "api.md": api_page,
    "states.md": states_page,
    "events.md": events_page,
    "exit-codes.md": exit_codes_page,
    "errors.md": errors_page,
    "limits.md": limits_page,
}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (REFERENCE / name).write_text(make())
