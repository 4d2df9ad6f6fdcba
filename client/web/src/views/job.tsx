// SPDX-License-Identifier: Apache-2.0
// One job: how it is, why it waits or how it ended, where its ranks are, what they say, and what has happened to it.

import { useRef } from "preact/hooks";

import type { Job, JobDetail, JobEvent, JobRun, Placement, Result } from "../controller/answers";
import { attempts, changeJob, explanation, job, jobEvents, jobFiles, jobResults, jobRuns, jobs, jobTiming, retryJob } from "../controller/api";
import { useChange } from "../parts/change";
import { Explanation } from "../parts/job/explanation";
import { Files } from "../parts/job/files";
import { Output } from "../parts/job/output_search";
import { Fact, Part } from "../parts/page";
import { Postmortem } from "../parts/job/postmortem";
import { Progress, ran } from "../parts/job/progress";
import { useCrumbs, useRenewed } from "../parts/renew";
import { Reproduce, sourceOf } from "../parts/job/reproduce";
import { Ranks } from "../parts/job/ranks";
import { Chip } from "../parts/state";
import { Table } from "../parts/table";
import { Timeline } from "../parts/job/timeline";
import { Use } from "../parts/charts/use";
import { exactMoment, moment, size } from "../parts/words";

const ENDED = ["SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT"];
const TASKS = 200; // of an array, that are listed
const WAITS = ["BLOCKED", "QUEUED", "STAGING"];

function RunLink({ run }: { run: JobRun }) {
  return run.tracking_uri === null ? (
    <a href={`#/experiments/${run.experiment_id}/runs/${run.run_id}`}>{`attempt ${run.attempt ?? 1}`}</a>
  ) : (
    <>{`it tracks at ${run.tracking_uri}`}</>
  );
}

function Facts({ found, runs }: { found: JobDetail; runs: JobRun[] }) {
  const { spec } = found;
  const old = spec.retry_of as string | undefined; // the job that it repeats
  return (
    <dl>
      <Fact name="State"><Chip state={found.state} /></Fact>
      <Fact name="Tasks">{found.array && <>{String(found.array.tasks)}<Progress array={found.array} /></>}</Fact>
      <Fact name="Reason">{found.reason}</Fact>
      <Fact name="Exit code">{found.exit_code === null ? null : String(found.exit_code)}</Fact>
      <Fact name="Owner">{found.owner}</Fact>
      <Fact name="Project">{found.project}</Fact>
      <Fact name="GPUs">{found.gpus === 0 ? "none" : `${found.gpus} ${found.gpu_type ?? ""}`}</Fact>
      <Fact name="CPUs">{typeof spec.cpus === "number" && String(spec.cpus)}</Fact>
      <Fact name="Memory">{typeof spec.memory === "number" ? size(spec.memory) : (spec.memory as string | null | undefined)}</Fact>
      <Fact name="Secrets">{Array.isArray(spec.secrets) && spec.secrets.join(", ")}</Fact>
      <Fact name="Volumes">{Array.isArray(spec.volumes) && spec.volumes.join(", ")}</Fact>
      <Fact name="Checkpoint volume">{spec.checkpoint_volume as string | null | undefined}</Fact>
      <Fact name="Image">{spec.image as string | null | undefined}</Fact>
      <Fact name="Inputs">{Array.isArray(spec.inputs) && spec.inputs.join(", ")}</Fact>
      <Fact name="Labels">{spec.labels !== undefined && Object.entries(spec.labels as Record<string, string>).map(([name, value]) => `${name}=${value}`).join(", ")}</Fact>
      <Fact name="Pool">{found.pool}</Fact>
      <Fact name="Priority">{String(found.priority)}</Fact>
      <Fact name="Isolation">{found.nodes.length > 0 && [...new Set(found.nodes.map((one) => one.isolation ?? "none"))].join(", ")}</Fact>
      <Fact name="Attempt">{found.attempt > 0 && String(found.attempt)}</Fact>
      <Fact name="Submitted">{moment(Date.parse(found.created_at))}</Fact>
      <Fact name="Started">{found.started_at && moment(Date.parse(found.started_at))}</Fact>
      <Fact name="Ran">{ran(found)}</Fact>
      <Fact name="Idle since">{found.idle_since && moment(Date.parse(found.idle_since))}</Fact>
      <Fact name="Kept until">{found.kept_until && moment(Date.parse(found.kept_until))}</Fact>
      <Fact name="Repeats">{old && <a href={`#/jobs/${old}`}><code>{old}</code></a>}</Fact>
      <Fact name="Runs">{runs.length > 0 && runs.map((run, index) => <span key={run.run_id}>{index > 0 && ", "}<RunLink run={run} /></span>)}</Fact>
    </dl>
  );
}

function Placements({ nodes }: { nodes: Placement[] }) {
  const rows = nodes.map((one) => [
    one.node,
    one.local_ranks === 1 ? String(one.first_rank) : `${one.first_rank} to ${one.first_rank + one.local_ranks - 1}`,
    one.devices,
    one.state,
    <>{one.cpus > 0 && <div>{`${one.cpus} CPUs`}</div>}{one.memory_bytes > 0 && <div>{size(one.memory_bytes)}</div>}</>,
  ]);
  return <Table titles={["Node", "Ranks", "Devices", "State", "Holds"]} rows={rows} keys={nodes.map((one) => one.node)} />;
}

/** Those that have become jobs, the newest first. */
function Tasks({ id, tasks }: { id: string; tasks: Job[] }) {
  const rows = tasks.map((task) => [
    <a href={`#/jobs/${id}.${task.task}`}>{`task ${task.task}`}</a>,
    <Chip state={task.state} />,
    ran(task),
    <div class="reason">{task.reason}</div>,
  ]);
  return <Table titles={["Task", "State", "Ran", "Reason"]} rows={rows} keys={tasks.map((task) => task.id)} />;
}

function History({ events }: { events: JobEvent[] }) {
  const rows = events.map((event) => [
    <span class="whole">{exactMoment(Date.parse(event.at))}</span>,
    <span class="whole">{event.kind}</span>,
    event.detail === null ? "" : <div class="reason"><code>{JSON.stringify(event.detail)}</code></div>,
  ]);
  return <Table titles={["At", "What", "Detail"]} rows={rows} keys={events.map((event) => String(event.seq))} />;
}

function Results({ results }: { results: Result[] }) {
  const said = (result: Result) => (result.kind === "exception" ? JSON.stringify(result.error ?? {}) : result.json === undefined ? `${size(result.size)}, which only Python can read` : JSON.stringify(result.json));
  const rows = results.map((result) => [String(result.rank), result.kind === "exception" ? "raised" : "returned", <code>{said(result)}</code>]);
  return <Table titles={["Rank", "It", "Value"]} rows={rows} keys={results.map((result) => String(result.rank))} />;
}

/** What may be done with a job in this state. */
function changesOf({ state, kept_until: kept }: Job): ("cancel" | "hold" | "release")[] {
  if (ENDED.includes(state)) {
    return [];
  }
  return state === "HELD" || kept !== null ? ["release", "cancel"] : WAITS.includes(state) ? ["hold", "cancel"] : ["cancel"];
}
const TITLES = { cancel: "Cancel", hold: "Hold", release: "Release" };

export function JobView({ id, search }: { id: string; search: URLSearchParams }) {
  const known = useRef<JobEvent[]>([]);
  const [found, again] = useRenewed(id, async (signal) => {
    const [newest, runs] = await Promise.all([job(id, signal), jobRuns(id, signal)]);
    known.current = [...known.current, ...(await jobEvents(id, known.current.at(-1)?.seq ?? 0, signal))];
    const waits = WAITS.includes(newest.state) ? await explanation(id, signal) : null;
    const placed = newest.attempt > 0 && newest.array === null;
    const [all, timing, results, files] = placed ? await Promise.all([attempts(id, signal), jobTiming(id, signal), jobResults(id, signal), jobFiles(id, signal)]) : [[], null, [], null];
    const tasks = newest.array === null ? [] : (await jobs({ array: id }, TASKS, signal)).jobs;
    return { value: { newest, runs, waits, all, timing, results, files, tasks, events: known.current }, more: !ENDED.includes(newest.state) };
  });
  const [refused, tryTo] = useChange(again);
  useCrumbs({ text: "jobs", href: "#/jobs" }, { text: found?.newest.name ?? id });
  if (found === undefined) {
    return null;
  }
  const { newest, runs, waits, all, timing, results, files, tasks, events } = found;
  const change = (what: "cancel" | "hold" | "release") => tryTo(changeJob(id, what));
  const retry = () =>
    tryTo(
      retryJob(id).then((made) => {
        location.hash = `#/jobs/${made}`;
      }),
    );
  const attempt = all[0];
  return (
    <article>
      <div class="tools">
        <h1>{newest.name ?? id}</h1>
        <code>{id}</code>
        <span class="gap" />
        {changesOf(newest).map((what) => <button key={what} type="button" onClick={() => change(what)}>{TITLES[what]}</button>)}
        {ENDED.includes(newest.state) && newest.task === null && <button type="button" onClick={retry}>Retry</button>}
      </div>
      {refused !== "" && <p class="line error" role="alert">{refused}</p>}
      {["FAILED", "TIMED_OUT"].includes(newest.state) && <Postmortem found={newest} all={all} />}
      <div class="columns">
        <div class="side">
          <section class="card"><Facts found={newest} runs={runs} /></section>
          {attempt && <Part title="Ranks" kind="values"><Ranks attempt={attempt} /></Part>}
          {newest.nodes.length > 0 && <Part title="Nodes" kind="values"><Placements nodes={newest.nodes} /></Part>}
          <Part title="Specification" kind="tags"><pre class="card" tabIndex={0} aria-label="Specification">{JSON.stringify(newest.spec, null, 2)}</pre></Part>
        </div>
        <div class="wide">
          {waits !== null && <Part title="Why it waits" kind="metrics"><Explanation answer={waits} /></Part>}
          {newest.array === null ? (
            <Part title="Output" kind="metrics"><Output job={id} ranks={attempt?.nodes.reduce((sum, node) => sum + node.local_ranks, 0) ?? newest.gpus} search={search} /></Part>
          ) : (
            <Part title="Tasks" kind="metrics"><Tasks id={id} tasks={tasks} /></Part>
          )}
          {results.length > 0 && <Part title="Results" kind="artifacts"><Results results={results} /></Part>}
          {files !== null && (files.files.length > 0 || files.left_out.files > 0) && <Part title="Files" kind="artifacts"><Files id={id} found={files} /></Part>}
          {newest.started_at !== null && newest.nodes.length > 0 && <Use found={newest} runs={runs} />}
          {timing !== null && <Part title="Where the time went" kind="artifacts"><Timeline timing={timing} /></Part>}
          {newest.task === null && <Part title="To submit it again" kind="values"><Reproduce source={sourceOf(id, newest.spec)} job={id} /></Part>}
          <Part title="History" kind="artifacts"><History events={events} /></Part>
        </div>
      </div>
    </article>
  );
}
