// SPDX-License-Identifier: Apache-2.0
// One node: how it is, which jobs run there and have run there, and what it and its GPUs have used in the last hours.

import { useRef, useState } from "preact/hooks";

import type { Gpu, Job, NodeDetail } from "../controller/answers";
import { changeNode, gpus, jobs, node, nodeActs, nodeSamples } from "../controller/api";
import { mayAudit, mayOperate } from "../controller/session";
import { useChange } from "../parts/change";
import { useJobList } from "../parts/job/job_list";
import { LongTable } from "../parts/long_table";
import { Fact, Part } from "../parts/page";
import { useCrumbs, useRenewed } from "../parts/renew";
import { SampleCharts } from "../parts/charts/samples";
import { Chip } from "../parts/state";
import { Table } from "../parts/table";
import { duration, freeOf, moment, size } from "../parts/words";

const RENEW_MS = 10000;
const SAMPLES_RENEW_MS = 60000;
const PAGE = 200; // jobs, each time that somebody asks for more
const LIVE = "PLACED,RUNNING";
const HOUR_MS = 3600000;
const SPANS: Record<string, number> = { "1 hour": HOUR_MS, "6 hours": 6 * HOUR_MS, "1 day": 24 * HOUR_MS };

/** The maintenance window that it is in, or its next. */
function when({ window }: NodeDetail): string | null {
  return window && `${moment(Date.parse(window.from))} to ${moment(Date.parse(window.until))}${window.hard ? ", what runs then is stopped" : ""}`;
}

function Facts({ found }: { found: NodeDetail }) {
  return (
    <dl>
      <Fact name="State"><Chip state={found.state} /></Fact>
      <Fact name="Reason">{found.reason}</Fact>
      <Fact name="Window">{when(found)}</Fact>
      <Fact name="Pool">{`${found.pool}${found.pool_kind === "reserved" ? " (reserved)" : ""}`}</Fact>
      <Fact name="GPUs">{`${found.free_gpus} of ${found.gpus} ${found.gpu_type ?? ""} free`}</Fact>
      <Fact name="CPUs">{found.cpus > 0 && `${freeOf(found.free_cpus, found.cpus)} free`}</Fact>
      <Fact name="Memory">{found.memory_bytes > 0 && `${freeOf(found.free_memory_bytes, found.memory_bytes, size)} free`}</Fact>
      <Fact name="Heard">{found.beat_age_s !== null && `${duration(found.beat_age_s * 1000)} ago`}</Fact>
      <Fact name="Address">{found.address}</Fact>
      <Fact name="Version">{found.version}</Fact>
    </dl>
  );
}

function Devices({ found }: { found: NodeDetail }) {
  const rows = found.devices.map((one) => [String(one.index), one.type, one.memory_bytes > 0 ? size(one.memory_bytes) : "", <code class="whole">{one.uuid}</code>, <div class="reason">{one.unavailable}</div>]);
  return <Table titles={["#GPU", "Type", "#Memory", "UUID", "Unavailable"]} rows={rows} keys={found.devices.map((one) => String(one.index))} />;
}

/** The jobs that hold its GPUs, and those without GPUs that run on it; users see their own. */
function Jobs({ held, without }: { held: Gpu[]; without: Job[] }) {
  const jobs = new Map<string, Gpu[]>();
  for (const gpu of held) {
    const job = gpu.holder?.job ?? "";
    jobs.set(job, [...(jobs.get(job) ?? []), gpu]);
  }
  const rows = [...jobs].map(([id, its]) => {
    const { holder } = its[0]!;
    const indices = its.map((gpu) => gpu.index).join(", ");
    return holder ? [<><a href={`#/jobs/${id}`}><code class="whole">{id}</code></a> {holder.name}</>, holder.owner, indices, duration(Date.now() - Date.parse(holder.since))] : ["of others", "", indices, ""];
  });
  for (const { id, name, owner, on_node: here } of without) {
    rows.push([<><a href={`#/jobs/${id}`}><code class="whole">{id}</code></a> {name}</>, owner, "none", here ? duration(Date.now() - Date.parse(here.created_at)) : ""]);
  }
  return rows.length === 0 ? <p class="faint">None.</p> : <Table titles={["Job", "Owner", "GPUs", "For"]} rows={rows} keys={[...jobs.keys(), ...without.map((job) => job.id)]} />;
}

/** How the job's last attempt here ended: as the job did, or with what sent the job on. */
function Outcome({ job }: { job: Job }) {
  const here = job.on_node;
  const decided = !here || here.ended_at === null || (here.attempt === job.attempt && job.ended_at !== null);
  const [state, reason] = decided ? [job.state, job.reason] : [here.cause ?? "ENDED", here.reason];
  return <><Chip state={state} /> <span class="faint" title={reason ?? ""}>{reason}</span></>;
}

/** Jobs that it had, the newest first; users see their own. */
function History({ name }: { name: string }) {
  const [most, setMost] = useState(PAGE);
  const seen = useRef<[number, number]>([0, 0]);
  const [found] = useJobList({ node: name }, most, seen);
  if (found === undefined) {
    return null;
  }
  const row = (job: Job) => [
    <><a href={`#/jobs/${job.id}`}><code>{job.id}</code></a> {job.name}</>,
    job.owner,
    job.on_node?.devices.replaceAll(",", ", ") || "none",
    job.on_node && moment(Date.parse(job.on_node.created_at)),
    job.on_node?.ended_at && moment(Date.parse(job.on_node.ended_at)),
    <Outcome job={job} />,
  ];
  return (
    <>
      {found.jobs.length === 0 && <p class="faint">None.</p>}
      {found.jobs.length > 0 && (
        <LongTable
          columns={["Job", "Owner", "GPUs", "From", "Until", "Outcome"].map((title) => ({ title }))}
          count={found.jobs.length}
          row={(index) => row(found.jobs[index]!)}
          keyOf={(index) => found.jobs[index]!.id}
          seen={seen}
        />
      )}
      {found.more && <button type="button" onClick={() => setMost(most + PAGE)}>Show older jobs</button>}
    </>
  );
}

/** What people did with it: drains, and why. */
function Acts({ name }: { name: string }) {
  const [found] = useRenewed(`acts on ${name}`, async (signal) => ({ value: (await nodeActs(name, signal)).filter((act) => act.status < 400), more: true }), SAMPLES_RENEW_MS);
  if (found === undefined || found.length === 0) {
    return found && <p class="faint">Nobody did anything with it of late.</p>;
  }
  const rows = found.map((act) => [
    moment(Date.parse(act.at)),
    act.owner,
    act.path.split("/").at(-1),
    act.detail && Object.entries(JSON.parse(act.detail) as Record<string, unknown>).map(([name, value]) => `${name}: ${String(value)}`).join(", "),
  ]);
  return <Table titles={["When", "Who", "What", "With"]} rows={rows} keys={found.map((act) => String(act.seq))} />;
}

function Samples({ name }: { name: string }) {
  const [span, setSpan] = useState("1 hour");
  const [found] = useRenewed(`${name} ${span}`, async (signal) => {
    const until = Date.now();
    const since = until - SPANS[span]!;
    const samples = await nodeSamples(name, since, undefined, signal);
    return { value: { samples, span: [since / 1000, until / 1000] as [number, number] }, more: true };
  }, SAMPLES_RENEW_MS);
  if (found === undefined) {
    return null;
  }
  const { samples } = found;
  return (
    <>
      <div class="tools">
        <label>
          Time
          <select value={span} onChange={(event) => setSpan(event.currentTarget.value)}>
            {Object.keys(SPANS).map((text) => <option key={text} value={text}>{text}</option>)}
          </select>
        </label>
      </div>
      {samples.at_ms.length < 2 && <p class="faint">There are charts here once the node has been measured twice: each 30 s.</p>}
      {samples.at_ms.length >= 2 && <SampleCharts all={[{ node: name, samples }]} span={found.span} sync={name} />}
    </>
  );
}

export function NodeView({ name }: { name: string }) {
  const [found, again] = useRenewed(name, async (signal) => ({ value: await node(name, signal), more: true }), RENEW_MS);
  const [now] = useRenewed(`jobs on ${name}`, async (signal) => {
    const [held, here] = await Promise.all([gpus({ node: name, state: "allocated" }, signal), jobs({ node: name, state: LIVE }, PAGE, signal)]);
    return { value: { held, without: here.jobs.filter((job) => job.gpus === 0 && job.on_node?.ended_at === null) }, more: true };
  }, RENEW_MS);
  const [refused, tryTo] = useChange(again);
  useCrumbs({ text: "nodes", href: "#/nodes" }, { text: name });
  if (found === undefined) {
    return null;
  }
  const takesWork = found.state === "READY" || found.state === "SUSPECT";
  const change = () => tryTo(changeNode(name, takesWork ? "drain" : "resume"));
  return (
    <article>
      <div class="tools">
        <h1>{name}</h1>
        <span class="gap" />
        {mayOperate() && <button type="button" onClick={change}>{takesWork ? "Drain" : "Resume"}</button>}
      </div>
      {refused !== "" && <p class="line error" role="alert">{refused}</p>}
      <div class="columns">
        <div class="side">
          <section class="card"><Facts found={found} /></section>
          {now && <Part title="Jobs now" kind="values"><Jobs {...now} /></Part>}
        </div>
        <div class="wide">
          <Part title="What it used" kind="metrics"><Samples name={name} /></Part>
          <Part title="GPUs" kind="values"><Devices found={found} /></Part>
        </div>
      </div>
      {mayAudit() && <Part title="Drains and other changes" kind="values"><Acts name={name} /></Part>}
      <Part title="Ran here" kind="values"><History key={name} name={name} /></Part>
    </article>
  );
}
