// SPDX-License-Identifier: Apache-2.0
// Requests to the controller, in the session of who is signed in. A reply that is an error is thrown as a Failure with the controller's words.

import type { Account, Artifact, Attempt, AttemptTiming, Delivery, Experiment, Gpu, Job, JobDetail, JobEvent, JobRun, KeptFiles, LogMatch, LogPiece, LogStream, MaintenanceWindow, Metric, Node, NodeDetail, NodeSamples, Overview, Point, Queue, Result, Run, Secret, Simulation, Spec, Usage, WaitAnswer, Webhook } from "./answers";
import { serverEvents } from "./server_events";
import { forget, isHalfOver, keep, proof } from "./session";

const SESSION = "/v1/session";
const MLFLOW = "/api/2.0/mlflow/";
const FILES = "/api/2.0/mlflow-artifacts/artifacts/";
const ROOT = "mlflow-artifacts:/"; // how the address of artifacts begins that lie on the controller
const JOBS_PAGE = 200;
const EVENTS_PAGE = 200;
const DELIVERIES_PAGE = 200;
const PAGE = 25000; // points of a metric in one reply
const PAGES = 4; // that are fetched of one metric

export class Failure extends Error {
  /** @param status of HTTP; 0: the controller did not answer
   * @param field of the request that is wrong, "" where none is named */
  constructor(readonly status: number, text: string, readonly field = "", readonly hint = "") {
    super(text);
  }
}

// --- requests

async function failureOf(reply: Response): Promise<Failure> {
  try {
    const said = (await reply.json()) as { detail?: string; message?: string; title?: string; field?: string; hint?: string };
    return new Failure(reply.status, said.detail ?? said.message ?? said.title ?? reply.statusText, said.field, said.hint);
  } catch {
    return new Failure(reply.status, reply.statusText);
  }
}

interface Sending {
  signal?: AbortSignal;
  body?: unknown;
  method?: string;
  headers?: Record<string, string>;
}

async function send(path: string, { signal, body, method, headers: more }: Sending = {}): Promise<Response> {
  const headers: Record<string, string> = { ...more };
  const mine = proof();
  if (mine !== undefined) {
    headers["Gpuctl-Session"] = mine;
  }
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  let reply: Response;
  try {
    reply = await fetch(path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") {
      throw error;
    }
    throw new Failure(0, "The controller does not answer.");
  }
  if (!reply.ok) {
    throw await failureOf(reply);
  }
  return reply;
}

async function ask<T>(path: string, signal?: AbortSignal, body?: unknown): Promise<T> {
  return (await (await send(path, { ...(signal && { signal }), body })).json()) as T;
}

const query = (values: Record<string, string>) => new URLSearchParams(values).toString();

// --- sessions

/** Begins a session: by a token or a code; by neither, to renew the one that there is. */
export async function signIn(by: { token?: string; code?: string }): Promise<void> {
  keep(await ask(SESSION, undefined, by));
}

export async function renewSession(): Promise<void> {
  if (isHalfOver()) {
    await signIn({});
  }
}

/** Ends the session also when the controller does not answer: it is worth nothing without its proof. */
export async function signOut(): Promise<void> {
  try {
    await send(SESSION, { method: "DELETE" });
  } catch (failure) {
    if (!(failure instanceof Failure)) {
      throw failure;
    }
  } finally {
    forget();
  }
}

// --- tracking

/** The experiments that are not deleted, newest first. */
export async function experiments(signal: AbortSignal): Promise<Experiment[]> {
  const all: Experiment[] = [];
  let page = "";
  do {
    const asked = { max_results: 200, order_by: ["last_update_time DESC"], page_token: page };
    const reply = await ask<{ experiments?: Experiment[]; next_page_token?: string }>(`${MLFLOW}experiments/search`, signal, asked);
    all.push(...(reply.experiments ?? []));
    page = reply.next_page_token ?? "";
  } while (page);
  return all;
}

export async function experiment(id: string, signal: AbortSignal): Promise<Experiment> {
  return (await ask<{ experiment: Experiment }>(`${MLFLOW}experiments/get?${query({ experiment_id: id })}`, signal)).experiment;
}

/** The runs of an experiment, newest first, and whether there are older ones than those of so many pages. */
export async function runs(id: string, pages: number, signal: AbortSignal): Promise<{ runs: Run[]; more: boolean }> {
  const all: Run[] = [];
  let page = "";
  for (let count = 0; count < pages && (count === 0 || page); count++) {
    const asked = { experiment_ids: [id], max_results: 100, order_by: ["attributes.start_time DESC"], page_token: page };
    const reply = await ask<{ runs?: Run[]; next_page_token?: string }>(`${MLFLOW}runs/search`, signal, asked);
    all.push(...(reply.runs ?? []));
    page = reply.next_page_token ?? "";
  }
  return { runs: all, more: page !== "" };
}

/** Those of an experiment that have these ids and are not deleted. */
export async function runsOf(id: string, ids: string[], signal: AbortSignal): Promise<Run[]> {
  const asked = { experiment_ids: [id], max_results: ids.length, filter: `attributes.run_id IN (${ids.map((one) => `'${one}'`).join(",")})` };
  return (await ask<{ runs?: Run[] }>(`${MLFLOW}runs/search`, signal, asked)).runs ?? [];
}

export async function run(id: string, signal: AbortSignal): Promise<Run> {
  return (await ask<{ run: Run }>(`${MLFLOW}runs/get?${query({ run_id: id })}`, signal)).run;
}

/** The points of a metric, oldest first, and whether they are all. */
export async function history(id: string, name: string, signal?: AbortSignal, most = PAGES): Promise<{ points: Point[]; whole: boolean }> {
  const points: Point[] = [];
  let page = "";
  for (let pages = 0; pages < most; pages++) {
    const asked = { run_id: id, metric_key: name, max_results: String(PAGE), ...(page && { page_token: page }) };
    const reply = await ask<{ metrics?: Metric[]; next_page_token?: string }>(`${MLFLOW}metrics/get-history?${query(asked)}`, signal);
    for (const point of reply.metrics ?? []) {
      points.push({ step: Number(point.step ?? 0), at: Number(point.timestamp), value: Number(point.value) });
    }
    page = reply.next_page_token ?? "";
    if (!page) {
      return { points, whole: true };
    }
  }
  return { points, whole: false };
}

/** The files in a folder of a run's artifacts. */
export async function artifacts(id: string, path: string, signal?: AbortSignal): Promise<{ root: string; files: Artifact[] }> {
  const reply = await ask<{ root_uri: string; files?: Artifact[] }>(`${MLFLOW}artifacts/list?${query({ run_id: id, ...(path && { path }) })}`, signal);
  return { root: reply.root_uri, files: reply.files ?? [] };
}

function fileOf(root: string, path: string): string {
  const whole = `${root.slice(ROOT.length)}/${path}`;
  return FILES + whole.split("/").filter(Boolean).map(encodeURIComponent).join("/");
}

/** The bytes of an artifact. */
export async function artifact(root: string, path: string): Promise<Blob> {
  return (await send(fileOf(root, path))).blob();
}

/** The first bytes of an artifact, at most so many and what came with them; nothing behind them is fetched. */
export async function artifactStart(root: string, path: string, most: number): Promise<Blob> {
  const reader = (await send(fileOf(root, path))).body!.getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for (let read = await reader.read(); !read.done && bytes < most; read = await reader.read()) {
    pieces.push(read.value);
    bytes += read.value.byteLength;
  }
  await reader.cancel();
  return new Blob(pieces).slice(0, most);
}

// --- jobs

const ofJob = (id: string) => `/v1/jobs/${encodeURIComponent(id)}`;

export const job = (id: string, signal: AbortSignal): Promise<JobDetail> => ask(ofJob(id), signal);

/** The history of a job behind an event, the oldest first. */
export async function jobEvents(id: string, after: number, signal: AbortSignal): Promise<JobEvent[]> {
  const all: JobEvent[] = [];
  let next: number | null = after;
  while (next !== null) {
    const asked = query({ after: String(next), limit: String(EVENTS_PAGE) });
    const reply: { events: JobEvent[]; next: number | null } = await ask(`${ofJob(id)}/events?${asked}`, signal);
    all.push(...reply.events);
    next = reply.next;
  }
  return all;
}

/** The output of a rank, or of all, as it comes, from `tail` bytes before the end of each stream on. Ends when the job has ended and all was said. */
export async function* jobOutput(id: string, rank: number | null, tail: number, signal: AbortSignal): AsyncGenerator<LogPiece> {
  const reply = await send(`${ofJob(id)}/logs?${query({ tail: String(tail), ...(rank !== null && { rank: String(rank) }) })}`, { signal, headers: { Accept: "text/event-stream" } });
  for await (const event of serverEvents(reply, signal)) {
    if (event.name === "end") {
      return;
    }
    if (event.data) {
      yield JSON.parse(event.data) as LogPiece;
    }
  }
  throw new Failure(0, "The connection broke.");
}

/** Lines of the output, and the cursor of those behind; `asked` has parameters of GET /v1/jobs/{id}/logs/search. */
export async function searchOutput(id: string, asked: Record<string, string>, cursor: string | null, signal: AbortSignal): Promise<{ matches: LogMatch[]; scanned: number; next: string | null }> {
  return ask(`${ofJob(id)}/logs/search?${query({ ...asked, ...(cursor !== null && { cursor }) })}`, signal);
}

/** The bytes of a stream from `from` on, before `until`, as text; "" where there are none. */
export async function outputPart(id: string, { rank, stream, attempt }: LogStream, from: number, until: number, signal?: AbortSignal): Promise<string> {
  if (until <= from) {
    return "";
  }
  const asked = query({ rank: String(rank), stream, attempt: String(attempt) });
  try {
    const reply = await send(`${ofJob(id)}/logs?${asked}`, { ...(signal && { signal }), headers: { Range: `bytes=${from}-${until - 1}` } });
    return await reply.text();
  } catch (failure) {
    if (failure instanceof Failure && failure.status === 416) {
      return "";
    }
    throw failure;
  }
}

/** The last bytes of a stream. */
export async function outputTail(id: string, { rank, stream, attempt }: LogStream, bytes: number, signal: AbortSignal): Promise<string> {
  return (await send(`${ofJob(id)}/logs?${query({ rank: String(rank), stream, attempt: String(attempt), tail: String(bytes) })}`, { signal })).text();
}

/** Jobs, the newest first; an array is one of them. `filter` has parameters of GET /v1/jobs. At most `most`, and whether there are older ones. */
export async function jobs(filter: Record<string, string>, most: number, signal: AbortSignal): Promise<{ jobs: Job[]; more: boolean }> {
  const all: Job[] = [];
  let cursor: string | null = "";
  while (cursor !== null && all.length < most) {
    const asked = query({ ...filter, limit: String(Math.min(JOBS_PAGE, most - all.length)), ...(cursor && { cursor }) });
    const reply: { jobs: Job[]; next: string | null } = await ask(`/v1/jobs?${asked}`, signal);
    all.push(...reply.jobs);
    cursor = reply.next;
  }
  return { jobs: all, more: cursor !== null };
}

/** A page of jobs: those behind a cursor; "" for the newest. */
export function jobsBehind(filter: Record<string, string>, cursor: string, signal: AbortSignal): Promise<{ jobs: Job[]; next: string | null }> {
  return ask(`/v1/jobs?${query({ ...filter, limit: String(JOBS_PAGE), ...(cursor && { cursor }) })}`, signal);
}

/** Cancels a job, holds it back, or releases it. */
export async function changeJob(id: string, change: "cancel" | "hold" | "release"): Promise<void> {
  await ask(`${ofJob(id)}/${change}`, undefined, {});
}

/** Submits a job that has ended again: the id of the new one. */
export async function retryJob(id: string): Promise<string> {
  const reply = await send(`${ofJob(id)}/retry`, { body: {}, headers: { "Idempotency-Key": crypto.randomUUID() } });
  return ((await reply.json()) as { id: string }).id;
}

export async function nodes(signal: AbortSignal): Promise<Node[]> {
  const all: Node[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const reply: { nodes: Node[]; next: string | null } = await ask(`/v1/nodes?${query({ limit: "200", ...(cursor && { cursor }) })}`, signal);
    all.push(...reply.nodes);
    cursor = reply.next;
  }
  return all;
}

/** By node and index. `filter` has parameters of GET /v1/gpus. */
export async function gpus(filter: Record<string, string>, signal: AbortSignal): Promise<Gpu[]> {
  const all: Gpu[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const reply: { gpus: Gpu[]; next: string | null } = await ask(`/v1/gpus?${query({ ...filter, ...(cursor && { cursor }) })}`, signal);
    all.push(...reply.gpus);
    cursor = reply.next;
  }
  return all;
}

/** Something that somebody did. */
export interface Act {
  seq: number;
  at: string;
  owner: string | null;
  path: string;
  status: number;
  detail: string | null;
}

/** What people did of late with a node, the newest first. Of administrators. */
export async function nodeActs(name: string, signal: AbortSignal): Promise<Act[]> {
  return (await ask<{ audit: Act[] }>(`/v1/audit?${query({ path: `${ofNode(name)}/`, limit: "20" })}`, signal)).audit;
}

/** Lets a node finish what it has and take nothing new, or take work again. Of administrators. */
export async function changeNode(name: string, change: "drain" | "resume"): Promise<void> {
  await ask(`${ofNode(name)}/${change}`, undefined, {});
}

export async function jobRuns(id: string, signal: AbortSignal): Promise<JobRun[]> {
  return (await ask<{ runs: JobRun[] }>(`${ofJob(id)}/runs`, signal)).runs;
}

// --- the cluster

export const overview = (signal: AbortSignal): Promise<Overview> => ask("/v1/overview", signal);

/** `asked` has parameters of GET /v1/usage. */
export const usage = (asked: Record<string, string>, signal: AbortSignal): Promise<Usage> => ask(`/v1/usage?${query(asked)}`, signal);

/** `pool` "": all. */
export const queue = (pool: string, signal: AbortSignal): Promise<Queue> => ask(`/v1/queue?${query(pool === "" ? {} : { pool })}`, signal);

/** It takes a minute at most, and ends when the signal says so. */
export const simulate = (question: { policies: string[]; since: string }, signal: AbortSignal): Promise<Simulation> => ask("/v1/simulations", signal, question);

/** The first 200 of them, projects first. */
export const accounts = async (signal: AbortSignal): Promise<Account[]> => (await ask<{ accounts: Account[] }>("/v1/accounts", signal)).accounts;

export const pools = async (signal: AbortSignal): Promise<string[]> => (await ask<{ pools: { name: string }[] }>("/v1/pools", signal)).pools.map((pool) => pool.name);

export const windows = async (signal: AbortSignal): Promise<MaintenanceWindow[]> => (await ask<{ windows: MaintenanceWindow[] }>("/v1/windows", signal)).windows;

const ofNode = (name: string) => `/v1/nodes/${encodeURIComponent(name)}`;

export const node = (name: string, signal: AbortSignal): Promise<NodeDetail> => ask(ofNode(name), signal);

/** `until` undefined: now. Times are in ms since 1970. */
export const nodeSamples = (name: string, since: number, until: number | undefined, signal: AbortSignal): Promise<NodeSamples> =>
  ask(`${ofNode(name)}/samples?${query({ since: String(since), ...(until !== undefined && { until: String(until) }) })}`, signal);

// --- submissions

export const explanation = (id: string, signal: AbortSignal): Promise<WaitAnswer> => ask(`${ofJob(id)}/explanation`, signal);

export const plan = (spec: Spec, signal: AbortSignal): Promise<WaitAnswer> => ask("/v1/plan", signal, spec);

/** One key never makes two jobs. */
export async function submit(spec: Spec, key: string): Promise<Job> {
  const reply = await send("/v1/jobs", { body: spec, headers: { "Idempotency-Key": key } });
  return (await reply.json()) as Job;
}

// --- what became of a job

/** Of its newest attempt; null: it has none. */
export async function jobTiming(id: string, signal: AbortSignal): Promise<AttemptTiming | null> {
  return (await ask<{ attempts: AttemptTiming[] }>(`${ofJob(id)}/timing`, signal)).attempts[0] ?? null;
}

/** The newest attempts, the newest first. */
export async function attempts(id: string, signal: AbortSignal): Promise<Attempt[]> {
  return (await ask<{ attempts: Attempt[] }>(`${ofJob(id)}/attempts`, signal)).attempts;
}

export async function jobResults(id: string, signal: AbortSignal): Promise<Result[]> {
  return (await ask<{ results: Result[] }>(`${ofJob(id)}/results?${query({ limit: "200" })}`, signal)).results;
}

/** The first files that its ranks kept. */
export async function jobFiles(id: string, signal: AbortSignal): Promise<KeptFiles> {
  return ask<KeptFiles>(`${ofJob(id)}/files?${query({ limit: "200" })}`, signal);
}

export async function jobFile(id: string, path: string): Promise<Blob> {
  return (await send(`${ofJob(id)}/files/content?${query({ path })}`)).blob();
}

// --- secrets

const ofSecret = (name: string) => `/v1/secrets/${encodeURIComponent(name)}`;

/** By name. `project` "": those of the person. */
export async function secrets(project: string, signal: AbortSignal): Promise<Secret[]> {
  return (await ask<{ secrets: Secret[] }>(`/v1/secrets?${query(project === "" ? {} : { project })}`, signal)).secrets;
}

export async function setSecret(name: string, value: { value: string } | { base64: string }, project: string): Promise<void> {
  await send(ofSecret(name), { method: "PUT", body: { ...value, ...(project !== "" && { project }) } });
}

export async function removeSecret(name: string, project: string): Promise<void> {
  await send(`${ofSecret(name)}?${query(project === "" ? {} : { project })}`, { method: "DELETE" });
}

// --- webhooks

const ofWebhook = (id: string) => `/v1/webhooks/${encodeURIComponent(id)}`;

/** By id; an administrator's are those of all people. */
export async function webhooks(signal: AbortSignal): Promise<Webhook[]> {
  const all: Webhook[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const reply: { webhooks: Webhook[]; next: string | null } = await ask(`/v1/webhooks?${query({ limit: "200", ...(cursor && { cursor }) })}`, signal);
    all.push(...reply.webhooks);
    cursor = reply.next;
  }
  return all;
}

export const webhook = (id: string, signal: AbortSignal): Promise<Webhook> => ask(ofWebhook(id), signal);

/** No later answer has the secret. */
export const makeWebhook = (wanted: Partial<Webhook>): Promise<Webhook & { secret: string }> => ask("/v1/webhooks", undefined, wanted);

export async function changeWebhook(id: string, changed: Partial<Webhook>): Promise<void> {
  await send(ofWebhook(id), { method: "PATCH", body: changed });
}

export async function removeWebhook(id: string): Promise<void> {
  await send(ofWebhook(id), { method: "DELETE" });
}

export async function testWebhook(id: string): Promise<void> {
  await ask(`${ofWebhook(id)}/test`, undefined, {});
}

/** What a webhook was told, the newest first; `state` "": in any. At most `most`, and whether there are older ones. */
export async function deliveries(id: string, state: string, most: number, signal: AbortSignal): Promise<{ deliveries: Delivery[]; more: boolean }> {
  const all: Delivery[] = [];
  let cursor: string | null = "";
  while (cursor !== null && all.length < most) {
    const asked = query({ limit: String(Math.min(DELIVERIES_PAGE, most - all.length)), ...(state && { state }), ...(cursor && { cursor }) });
    const reply: { deliveries: Delivery[]; next: string | null } = await ask(`${ofWebhook(id)}/deliveries?${asked}`, signal);
    all.push(...reply.deliveries);
    cursor = reply.next;
  }
  return { deliveries: all, more: cursor !== null };
}

/** Sends deliveries again; null: the newest 1,000 that have failed. */
export function replay(id: string, named: string[] | null): Promise<{ replayed: number; more: boolean }> {
  return ask(`${ofWebhook(id)}/replay`, undefined, named === null ? {} : { deliveries: named });
}
