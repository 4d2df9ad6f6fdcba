// SPDX-License-Identifier: Apache-2.0
// Whose turn it is, and why: the waiting jobs in the order in which the scheduler looks at them, who gets which nodes when, accounts against
// their shares and quotas, and what another policy would have meant. The address may name a pool.

import type { Queue, QueuedJob } from "../controller/answers";
import { accounts, pools, queue, windows } from "../controller/api";
import { Accounts } from "../parts/cluster/accounts";
import { OrderBar, ruleOf } from "../parts/cluster/order";
import { Part } from "../parts/page";
import { useCrumbs, useRenewed } from "../parts/renew";
import { Schedule } from "../parts/cluster/schedule";
import { Table } from "../parts/table";
import { WhatIf } from "../parts/cluster/what_if";
import { duration, moment } from "../parts/words";

const RENEW_MS = 5000;
const REST_RENEW_MS = 30000; // accounts, pools and windows: the thread that decides answers for two of them

const go = (pool: string) => {
  location.hash = pool === "" ? "#/queue" : `#/queue?${new URLSearchParams({ pool })}`;
};

function Who({ job }: { job: QueuedJob }) {
  return (
    <>
      <a href={`#/jobs/${job.id}`}>{job.name ?? job.id}</a>
      {job.tasks !== null && ` (${job.tasks} ${job.tasks === 1 ? "task" : "tasks"})`}
      <div class="reason narrow">{`${job.owner} in ${job.project}`}</div>
    </>
  );
}

function Wants({ job }: { job: QueuedJob }) {
  return <>{`${job.gpus} ${job.gpu_type ?? (job.gpus === 1 ? "GPU" : "GPUs")}`}{job.pool !== null && <div class="reason narrow">{`in ${job.pool}`}</div>}</>;
}

function Starts({ job, now }: { job: QueuedJob; now: number }) {
  const at = job.start?.at ?? null;
  const later = job.start?.later_than ?? null;
  if (at !== null) {
    return <span title={`${moment(at)}, confidence ${job.start!.confidence}`}>{Date.parse(at) <= now ? "now" : `in ${duration(Date.parse(at) - now)}`}</span>;
  }
  return <>{later === null ? "not known" : `after ${duration(Date.parse(later) - now)}`}</>;
}

function Why({ job }: { job: QueuedJob }) {
  return (
    <div class="reason">
      {job.reason === null ? "Many are ahead of it: its own page says why it waits." : job.reason.text}
      {job.reservations.length > 0 && <b>{` Reserved: ${job.reservations.map((one) => (one.nodes.length > 0 ? one.nodes.map((place) => place.node).join(" ") : `pool ${one.pool}`)).join("; ")}.`}</b>}
    </div>
  );
}

function Waiting({ found }: { found: Queue }) {
  const now = Date.parse(found.as_of);
  const rest = [...(found.held > 0 ? [`${found.held} held`] : []), ...(found.blocked > 0 ? [`${found.blocked} blocked by other jobs`] : [])];
  const rows = found.jobs.map((job) => [
    String(job.position),
    <Who job={job} />,
    <Wants job={job} />,
    String(job.priority),
    duration(now - Date.parse(job.submitted_at)),
    <OrderBar queue={found} job={job} />,
    <Starts job={job} now={now} />,
    <Why job={job} />,
  ]);
  return (
    <>
      <p>
        {found.count === 0 ? "No job waits for GPUs." : `${found.count} ${found.count === 1 ? "job waits" : "jobs wait"} for GPUs${found.count > rows.length ? `, the first ${rows.length} are shown` : ""}.`}
        {rest.length > 0 && ` Not in the queue: ${rest.join(", ")}.`}
        {` Policy ${found.policy}. ${ruleOf(found.policy)}`}
      </p>
      {rows.length > 0 && (
        <section class="turns" aria-label="Waiting jobs">
          <Table titles={["#Turn", "Job", "Wants", "#Priority", "Waits", "Order", "Starts", "Why it waits"]} rows={rows} keys={found.jobs.map((job) => job.id)} />
        </section>
      )}
    </>
  );
}

function Pools({ pool, names }: { pool: string; names: string[] }) {
  const all = names.includes(pool) || pool === "" ? names : [pool, ...names];
  return (
    <div class="tools">
      <label>
        Pool
        <select value={pool} onChange={(event) => go(event.currentTarget.value)}>
          <option value="">all</option>
          {all.map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      </label>
    </div>
  );
}

export function QueueView({ search }: { search: URLSearchParams }) {
  const pool = search.get("pool") ?? "";
  const [found] = useRenewed(`queue ${pool}`, async (signal) => ({ value: await queue(pool, signal), more: true }), RENEW_MS);
  const [rest] = useRenewed("rest", async (signal) => {
    const [owners, names, times] = await Promise.all([accounts(signal), pools(signal), windows(signal)]);
    return { value: { owners, names, times }, more: true };
  }, REST_RENEW_MS);
  useCrumbs({ text: "queue" });
  return (
    <section>
      <h1>Queue</h1>
      <Pools pool={pool} names={rest?.names ?? []} />
      {found && <Waiting found={found} />}
      {found && rest && <Part title="Who gets which nodes when" kind="metrics"><Schedule queue={found} windows={rest.times} pool={pool} /></Part>}
      {rest && <Part title="Shares and quotas" kind="values"><Accounts accounts={rest.owners} /></Part>}
      {found && <Part title="What another policy would have meant" kind="params"><WhatIf key={found.policy} policy={found.policy} /></Part>}
    </section>
  );
}
