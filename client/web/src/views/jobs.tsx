// SPDX-License-Identifier: Apache-2.0
// Jobs in one live table. The filter stands in the address, so a link leads to what its sender saw. Selected jobs are canceled, held back,
// released or submitted again together.

import { useRef, useState } from "preact/hooks";

import type { Job } from "../controller/answers";
import { changeJob, Failure, retryJob } from "../controller/api";
import { useJobList } from "../parts/job/job_list";
import { LongTable, type Column } from "../parts/long_table";
import { Progress, ran } from "../parts/job/progress";
import { useCrumbs } from "../parts/renew";
import { Chip } from "../parts/state";
import { moment } from "../parts/words";

const PAGE = 1000; // jobs, each time that somebody asks for more
const LIVE = ["HELD", "BLOCKED", "QUEUED", "STAGING", "PLACED", "RUNNING"];
const ENDED = ["SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT"];
const STATES: Record<string, string[]> = { all: [], live: LIVE, ended: ENDED };
const TEXTS = ["name", "owner", "project"] as const; // filters that somebody types
const CHANGES = { cancel: "Cancel", hold: "Hold", release: "Release", retry: "Retry" } as const;

type Change = keyof typeof CHANGES;

/** What a column is sorted by. */
const ORDERS: Record<string, (job: Job) => string | number> = {
  Job: (job) => job.name ?? job.id,
  State: (job) => job.state,
  Owner: (job) => job.owner,
  Project: (job) => job.project,
  GPUs: (job) => job.gpus,
  Submitted: (job) => Date.parse(job.created_at),
  Ran: (job) => (job.started_at === null ? 0 : Date.parse(job.ended_at ?? new Date().toISOString()) - Date.parse(job.started_at)),
};
const TITLES = ["Select", "Job", "State", "Owner", "Project", "GPUs", "Submitted", "Ran", "Reason"];

function setParameter(search: URLSearchParams, name: string, value: string): void {
  const changed = new URLSearchParams(search);
  changed.set(name, value);
  if (value === "" || value === "all") {
    changed.delete(name);
  }
  location.hash = `#/jobs${changed.size > 0 ? `?${changed}` : ""}`;
}

/** The jobs in the order of the address: "GPUs" or, backward, "-GPUs"; the newest first without one. */
function sorted(listed: Job[], order: string): Job[] {
  const by = ORDERS[order.replace(/^-/, "")];
  if (by === undefined) {
    return listed;
  }
  const sign = order.startsWith("-") ? -1 : 1;
  return [...listed].sort((a, b) => {
    const [one, other] = [by(a), by(b)];
    return sign * (one < other ? -1 : one > other ? 1 : 0);
  });
}

function columnsOf(search: URLSearchParams): Column[] {
  const order = search.get("sort") ?? "";
  return TITLES.map((title) => {
    if (ORDERS[title] === undefined) {
      return { title };
    }
    const now = order === title ? "ascending" : order === `-${title}` ? "descending" : "none";
    const next = now === "none" ? title : now === "ascending" ? `-${title}` : "";
    return { title, sort: { now, press: () => setParameter(search, "sort", next) } };
  });
}

/** The parameters of the API for those of the address. */
function filterOf(search: URLSearchParams): Record<string, string> {
  const state = search.get("state") ?? "all";
  const states = STATES[state] ?? [state];
  const texts = TEXTS.flatMap((name) => (search.get(name) ? [[name, search.get(name)!]] : []));
  return { ...Object.fromEntries(texts), ...(states.length > 0 && { state: states.join(",") }) };
}

/** What somebody types stays when the table is renewed meanwhile: the field is made anew only when the address has another value. */
function TextFilter({ name, begin, set }: { name: string; begin: string; set: (name: string, value: string) => void }) {
  return (
    <label>
      {name[0]!.toUpperCase() + name.slice(1)}
      <input type="search" defaultValue={begin} onChange={(event) => set(name, event.currentTarget.value.trim())} />
    </label>
  );
}

function Filter({ search }: { search: URLSearchParams }) {
  const set = (name: string, value: string) => setParameter(search, name, value);
  const titles = [...Object.keys(STATES), ...LIVE, ...ENDED];
  return (
    <>
      <label>
        State
        <select value={search.get("state") ?? "all"} onChange={(event) => set("state", event.currentTarget.value)}>
          {titles.map((title) => <option key={title} value={title}>{title}</option>)}
        </select>
      </label>
      {TEXTS.map((name) => <TextFilter key={`${name} ${search.get(name)}`} name={name} begin={search.get(name) ?? ""} set={set} />)}
    </>
  );
}

function row(job: Job, selected: boolean, select: (on: boolean) => void) {
  return [
    <input type="checkbox" aria-label={`Select job ${job.id}`} checked={selected} onChange={(event) => select(event.currentTarget.checked)} />,
    <><a href={`#/jobs/${job.id}`}><code>{job.id}</code></a> {job.name}</>,
    <><Chip state={job.state} />{job.array && <Progress array={job.array} />}</>,
    job.owner,
    job.project,
    `${job.gpus} ${job.gpu_type ?? ""}`,
    moment(Date.parse(job.created_at)),
    ran(job),
    <span class="faint" title={job.reason ?? ""}>{job.reason}</span>,
  ];
}

export function JobsView({ search }: { search: URLSearchParams }) {
  const [most, setMost] = useState(PAGE);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState("");
  const seen = useRef<[number, number]>([0, 0]);
  const [found, again] = useJobList(filterOf(search), most, seen);
  useCrumbs({ text: "jobs" });
  const listed = sorted(found?.jobs ?? [], search.get("sort") ?? "");
  const chosen = listed.filter((job) => selected.has(job.id));
  const select = (id: string, on: boolean) => {
    const changed = new Set(selected);
    if (on) {
      changed.add(id);
    } else {
      changed.delete(id);
    }
    setSelected(changed);
  };
  const change = async (what: Change) => {
    const failed: string[] = [];
    for (const job of chosen) {
      await (what === "retry" ? retryJob(job.id) : changeJob(job.id, what)).catch((failure: unknown) => {
        if (!(failure instanceof Failure)) {
          throw failure;
        }
        failed.push(`${job.id}: ${failure.message}`);
      });
    }
    setRefused(failed.join("\n"));
    setSelected(new Set());
    again();
  };
  return (
    <section>
      <h1>Jobs</h1>
      <div class="tools">
        <Filter search={search} />
        <span class="gap" />
        {(Object.keys(CHANGES) as Change[]).map((what) => (
          <button key={what} type="button" disabled={chosen.length === 0} onClick={() => void change(what)}>
            {chosen.length === 0 ? CHANGES[what] : `${CHANGES[what]} ${chosen.length}`}
          </button>
        ))}
      </div>
      {refused !== "" && <p class="line error" role="alert">{refused}</p>}
      {found && listed.length === 0 && <p class="line">There is no such job.</p>}
      {listed.length > 0 && (
        <LongTable
          columns={columnsOf(search)}
          count={listed.length}
          row={(index) => row(listed[index]!, selected.has(listed[index]!.id), (on) => select(listed[index]!.id, on))}
          keyOf={(index) => listed[index]!.id}
          seen={seen}
        />
      )}
      {found?.more && <button type="button" onClick={() => setMost(most + PAGE)}>Show older jobs</button>}
    </section>
  );
}
