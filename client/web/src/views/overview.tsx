// SPDX-License-Identifier: Apache-2.0
// The cluster at a glance: what is free, who uses what, how long the queue is, and what is wrong.

import type { Overview } from "../controller/answers";
import { overview, usage } from "../controller/api";
import { Bar } from "../parts/bar";
import { Part } from "../parts/page";
import { useCrumbs, useRenewed } from "../parts/renew";
import { Stack } from "../parts/charts/stack";
import { Chip } from "../parts/state";
import { Table } from "../parts/table";
import { duration } from "../parts/words";

const RENEW_MS = 10000;
const DAY_RENEW_MS = 300000;
const HOUR_MS = 3600000;

function Gpus({ found }: { found: Overview }) {
  if (found.gpus.length === 0) {
    return <p class="line">No node is registered.</p>;
  }
  const rows = found.gpus.map((one) => [
    one.gpu_type,
    <span class="whole">{one.kind === "reserved" ? `${one.pool} (reserved)` : one.pool}</span>,
    String(one.nodes),
    String(one.total),
    <b>{String(one.free)}</b>,
    <Bar
      whole={one.total}
      shares={[
        { kind: "running", count: one.total - one.free - one.unavailable, what: "in use" },
        { kind: "bad", count: one.unavailable, what: "unavailable" },
        { kind: "good", count: one.free, what: "free" },
      ]}
    />,
  ]);
  return <Table titles={["GPU type", "Pool", "#Nodes", "#GPUs", "#Free", "Use"]} rows={rows} keys={found.gpus.map((one) => `${one.gpu_type} ${one.pool}`)} />;
}

function Queue({ found }: { found: Overview }) {
  const waits = (found.jobs["QUEUED"] ?? 0) + (found.jobs["STAGING"] ?? 0);
  const states = Object.entries(found.jobs).filter(([, count]) => count > 0);
  return (
    <section class="card">
      <p>
        {waits === 0 ? "No job waits for GPUs." : `${waits} ${waits === 1 ? "job waits" : "jobs wait"} for GPUs`}
        {found.oldest_waiting_at !== null && `, the oldest for ${duration(Date.now() - Date.parse(found.oldest_waiting_at))}.`}
      </p>
      {waits > 0 && <p><a href="#/queue">Who is next, and why</a></p>}
      <p class="counts">
        {states.map(([state, count]) => <a key={state} href={`#/jobs?state=${state}`}><Chip state={state} /> {String(count)}</a>)}
        {states.length === 0 && <span class="faint">There are no live jobs.</span>}
      </p>
    </section>
  );
}

function Users({ found }: { found: Overview }) {
  const all = found.users.reduce((sum, user) => sum + user.gpus, 0);
  if (all === 0) {
    return <p class="faint">Nobody.</p>;
  }
  const rows = found.users.map((user) => [
    user.owner === null ? "others" : <a href={`#/jobs?state=live&owner=${encodeURIComponent(user.owner)}`}>{user.owner}</a>,
    String(user.gpus),
    String(user.jobs),
    <Bar whole={all} shares={[{ kind: "running", count: user.gpus, what: "GPUs" }]} />,
  ]);
  return <Table titles={["User", "#GPUs", "#Jobs", "Share"]} rows={rows} keys={found.users.map((user) => user.owner ?? "")} />;
}

function Problems({ found }: { found: Overview }) {
  const alerts = [
    ...(found.leases_held ? ["Most nodes are silent at once, so no lease expires: the controller's own network may be down."] : []),
    ...(found.disk_full ? ["The controller's disk is full: it takes no submissions."] : []),
  ];
  if (found.problem_count === 0 && alerts.length === 0) {
    return <p class="faint">Nothing: all nodes take work.</p>;
  }
  const rows = found.problems.map((one) => [
    <a class="whole" href={`#/nodes/${encodeURIComponent(one.node)}`}>{one.node}</a>,
    <Chip state={one.state} />,
    one.unavailable_gpus > 0 ? String(one.unavailable_gpus) : "",
    <div class="reason">{one.reason}</div>,
  ]);
  return (
    <>
      {alerts.map((text) => <p key={text} class="line error">{text}</p>)}
      {rows.length > 0 && <Table titles={["Node", "State", "#GPUs unavailable", "Reason"]} rows={rows} keys={found.problems.map((one) => one.node)} />}
      {found.problem_count > rows.length && <p class="faint">{`${found.problem_count - rows.length} more nodes: see Nodes.`}</p>}
    </>
  );
}

function LastDay() {
  const [found] = useRenewed("day", async (signal) => ({ value: await usage({ by: "owner", step: "hour" }, signal), more: true }), DAY_RENEW_MS);
  if (found === undefined) {
    return null;
  }
  const times = { since: Date.parse(found.since), until: Date.parse(found.until), stepMs: HOUR_MS };
  return <Stack title="GPU hours in each hour of the last day, by user" rows={found.usage} {...times} name={(row) => row.owner!} />;
}

export function OverviewView() {
  const [found] = useRenewed("overview", async (signal) => ({ value: await overview(signal), more: true }), RENEW_MS);
  useCrumbs();
  if (found === undefined) {
    return null;
  }
  return (
    <section class="overview">
      <h1>Overview</h1>
      <Gpus found={found} />
      <div class="halves">
        <Part title="Queue" kind="values"><Queue found={found} /></Part>
        <Part title="Who uses GPUs now" kind="values"><Users found={found} /></Part>
      </div>
      <Part title="What is wrong" kind="values"><Problems found={found} /></Part>
      <Part title="The last day" kind="metrics"><LastDay /></Part>
    </section>
  );
}
