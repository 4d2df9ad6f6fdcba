// SPDX-License-Identifier: Apache-2.0
// Why a job failed: which rank and node, how it ended in words, what it said last, whether it was tried again, and what to do.

import type { Attempt, JobDetail, LogStream } from "../../controller/answers";
import { node, nodeSamples, outputTail } from "../../controller/api";
import { Fact } from "../page";
import { useRenewed } from "../renew";
import { size } from "../words";

const TAIL_BYTES = 4096; // of the rank's stream
const TAIL_LINES = 20;
const BEFORE_MS = 300000; // of the end, in which memory is looked at

/** What signals mean that end programs. */
const SIGNALS: Record<number, string> = {
  2: "SIGINT: it was interrupted",
  4: "SIGILL: it was built for another processor",
  6: "SIGABRT: it gave up by itself, as after a failed assertion or an uncaught C++ exception",
  7: "SIGBUS: it used memory that is not there; often /dev/shm is full",
  8: "SIGFPE: it divided by zero",
  9: "SIGKILL: somebody killed it, often the kernel, for memory",
  11: "SIGSEGV: it used memory that is not its own",
  15: "SIGTERM: it was told to end",
};
/** What shells and Python mean by exit codes; another one is the program's own. */
const CODES: Record<number, string> = {
  1: "the code of most errors, and of an exception in Python",
  2: "the code of a wrong command line",
  126: "the file cannot be executed",
  127: "the command was not found",
  137: "128 + 9: a process of it was killed, often for memory",
  139: "128 + 11: a process of it used memory that is not its own",
};

interface Cause {
  text: string;
  remedy: string;
  budget: "retries" | "infra_retries" | null; // what a further attempt costs; null: there is none
}
const OF_NODES = "The fault is not the job's: retry it. The page of the node and `gpuctl explain` say how the nodes are.";
const CAUSES: Record<string, Cause> = {
  RANK_FAILED: { text: "a rank failed", remedy: "Look at its last lines, then change the program or its arguments and submit it again.", budget: "retries" },
  OUT_OF_MEMORY: { text: "a rank ran out of memory", remedy: "Use less memory in each rank: a smaller batch, fewer workers that load data; or ask for more with --memory.", budget: "retries" },
  EXEC_FAILED: { text: "the command could not be executed", remedy: "Check that the command is on the nodes, or send it with --file or --bundle, and that it is executable.", budget: "retries" },
  RESULT_MISSING: { text: "a rank ended without a result", remedy: "The function ended its process itself, as by os._exit: have it return or raise.", budget: "retries" },
  TIME_LIMIT: { text: "the time limit was reached", remedy: "Submit it again with a higher --time, or let it save its work and go on from there: --early-signal warns it before the end.", budget: null },
  STAGE_FAILED: { text: "what the job needs could not be made ready", remedy: "Correct the requirements or the bundle that the reason names, and submit it again.", budget: "retries" },
  PORT_TAKEN: { text: "MASTER_PORT was taken by another process", remedy: OF_NODES, budget: "infra_retries" },
  PREPARE_EXPIRED: { text: "a node did not get prepared in time", remedy: OF_NODES, budget: "infra_retries" },
  NODE_LOST: { text: "a node was lost", remedy: OF_NODES, budget: "infra_retries" },
  SHIM_LOST: { text: "the supervisor of the ranks was killed", remedy: OF_NODES, budget: "infra_retries" },
  TASK_FAILED: { text: "tasks of the array failed", remedy: "The tasks below say why. A retry runs all of them again.", budget: null },
};
const INFRA_RETRIES = 3; // where the spec says nothing

/** Whether the job was tried again, and why not once more. */
function retried(found: JobDetail, all: Attempt[], budget: Cause["budget"]): string {
  if (budget === null) {
    return "Not tried again: that does not follow from such an end.";
  }
  const most = Number(found.spec[budget] ?? (budget === "retries" ? 0 : INFRA_RETRIES));
  const used = all.filter((one) => one.cause !== null && CAUSES[one.cause]?.budget === budget).length - 1;
  const what = budget === "retries" ? "failures of its own" : "failures of nodes";
  return most === 0 ? `Not tried again: its spec allows no attempts after ${what} (${budget} is 0).` : `Tried again ${Math.max(used, 0)} of ${most} times that its spec allows after ${what} (${budget})${used < most ? ": once more would end alike" : "; none is left"}.`;
}

function ending(attempt: Attempt | undefined, code: number | null): string {
  const exit = attempt?.ranks.find((one) => one.rank === attempt.failed_rank);
  const signal = exit?.signal ?? null;
  if (signal !== null) {
    return `Ended by signal ${signal}${SIGNALS[signal] ? `, ${SIGNALS[signal]}` : ""}.`;
  }
  const own = exit?.exit_code ?? code;
  return own === null ? "" : `Exit code ${own}${CODES[own] ? `: ${CODES[own]}` : ", which the program chose itself"}.`;
}

/** The last lines of what the rank said: errors where it has written some. */
async function lastLines(job: string, rank: number, attempt: number, signal: AbortSignal): Promise<{ text: string; stream: LogStream["stream"] }> {
  for (const stream of ["stderr", "stdout"] as const) {
    const tail = await outputTail(job, { rank, stream, attempt }, TAIL_BYTES, signal);
    const lines = tail.trimEnd().split("\n");
    if (lines[0] !== "" || lines.length > 1) {
      return { text: lines.slice(-TAIL_LINES).join("\n"), stream };
    }
  }
  return { text: "", stream: "stdout" };
}

/** Whether an end is of the kind that memory is often the cause of. */
function isOfMemory(found: JobDetail, attempt: Attempt | undefined, last: string): boolean {
  const exit = attempt?.ranks.find((one) => one.rank === attempt.failed_rank);
  return found.cause === "OUT_OF_MEMORY" || exit?.signal === 9 || exit?.exit_code === 137 || /out of ?memory|MemoryError|Killed/i.test(last);
}

/** The most memory that the node and the job's GPUs on it had in use before the end; "" where it is not known. */
async function memoryOf(name: string, devices: string, endMs: number, signal: AbortSignal): Promise<string> {
  const [seen, whole] = await Promise.all([nodeSamples(name, endMs - BEFORE_MS, endMs + 1000, signal), node(name, signal)]);
  const own = devices.split(",").map(Number);
  const most = (column: (number | null)[]) => Math.max(0, ...column.map((bytes) => bytes ?? 0));
  const host = most(seen.memory_bytes);
  const gpus = seen.gpus.flatMap((gpu) => {
    const used = most(gpu.memory_bytes);
    const total = whole.devices.find((device) => device.index === gpu.index)?.memory_bytes ?? 0;
    return own.includes(gpu.index) && used > 0 && total > 0 ? [`GPU ${gpu.index} had up to ${size(used)} of ${size(total)} in use`] : [];
  });
  return [...gpus, ...(host > 0 ? [`the node had up to ${size(host)} of its own in use`] : [])].join("; ");
}

export function Postmortem({ found, all }: { found: JobDetail; all: Attempt[] }) {
  const attempt = all[0];
  const rank = attempt?.failed_rank ?? found.failed_rank;
  const name = found.failed_node;
  const [said] = useRenewed(`${found.id} ${found.attempt}`, async (signal) => {
    const part = attempt?.nodes.find((one) => one.node === name);
    const nothing = () => null; // the output or the node may be gone
    const last = rank === null || attempt === undefined ? null : await lastLines(found.id, rank, attempt.attempt, signal).catch(nothing);
    const asked = part !== undefined && name !== null && isOfMemory(found, attempt, last?.text ?? "");
    const memory = !asked ? null : await memoryOf(name, part.devices, Date.parse(found.ended_at ?? ""), signal).catch(nothing);
    return { value: { last, memory }, more: false };
  });
  const cause = CAUSES[found.cause ?? ""];
  return (
    <section class="card postmortem" aria-label="What went wrong">
      <h2>{rank === null ? "What went wrong" : `Rank ${rank}${name === null ? "" : ` on ${name}`} failed first`}</h2>
      <dl>
        <Fact name="Cause">{cause ? `${cause.text} (${found.cause})` : found.cause}</Fact>
        <Fact name="Reason">{found.reason}</Fact>
        <Fact name="It ended">{rank === null ? "" : ending(attempt, found.exit_code)}</Fact>
        <Fact name="Memory">{said?.memory}</Fact>
        <Fact name="Attempts">{cause && found.array === null && retried(found, all, cause.budget)}</Fact>
        <Fact name="What to do">{cause?.remedy}</Fact>
      </dl>
      {said?.last && said.last.text !== "" && (
        <>
          <h3>{`Its last lines on ${said.last.stream}`}</h3>
          <pre class="output" tabIndex={0} aria-label={`Last lines of rank ${rank}`}>{said.last.text}</pre>
        </>
      )}
    </section>
  );
}
