// SPDX-License-Identifier: Apache-2.0
// Requests to the controller, in the session of who is signed in. A reply that is an error is thrown as a Failure with the controller's words.

import { forget, isHalfOver, keep, proof } from "/web/session.js";

const SESSION = "/v1/session";
const MLFLOW = "/api/2.0/mlflow/";
const FILES = "/api/2.0/mlflow-artifacts/artifacts/";
const ROOT = "mlflow-artifacts:/"; // how the address of artifacts begins that lie on the controller
const PAGE = 25000; // points of a metric in one reply
const PAGES = 4; // that are fetched of one metric

export class Failure extends Error {
  constructor(status, text) {
    super(text);
    this.status = status; // of HTTP; 0: the controller did not answer
  }
}

async function words(reply) {
  try {
    const said = await reply.json();
    return said.detail ?? said.message ?? said.title ?? reply.statusText;
  } catch {
    return reply.statusText;
  }
}

async function send(path, signal, body, method = body === undefined ? "GET" : "POST") {
  const headers = proof() ? { "Gpuctl-Session": proof() } : {};
  const options = { method, headers, signal, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let reply;
  try {
    reply = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new Failure(0, "The controller does not answer.");
  }
  if (!reply.ok) {
    throw new Failure(reply.status, await words(reply));
  }
  return reply;
}

const ask = async (path, signal, body) => (await send(path, signal, body)).json();
const query = (values) => new URLSearchParams(values).toString();

/** Begins a session: `by` is {token} or {code}, or {} to renew the one that there is. */
export async function signIn(by) {
  keep(await ask(SESSION, undefined, by));
}

export async function renewSession() {
  if (isHalfOver()) {
    await signIn({});
  }
}

/** Ends the session also when the controller does not answer: it is worth nothing without its proof. */
export async function signOut() {
  try {
    await send(SESSION, undefined, undefined, "DELETE");
  } catch (failure) {
    if (!(failure instanceof Failure)) {
      throw failure;
    }
  } finally {
    forget();
  }
}

/** The experiments that are not deleted, newest first, by pages: {experiments, next_page_token}. */
export const experiments = (page, signal) =>
  ask(`${MLFLOW}experiments/search`, signal, { max_results: 200, order_by: ["last_update_time DESC"], page_token: page });

export const experiment = async (id, signal) =>
  (await ask(`${MLFLOW}experiments/get?${query({ experiment_id: id })}`, signal)).experiment;

/** The runs of an experiment, newest first, by pages: {runs, next_page_token}. */
export const runs = (id, page, signal) =>
  ask(`${MLFLOW}runs/search`, signal, { experiment_ids: [id], max_results: 100, order_by: ["attributes.start_time DESC"], page_token: page });

export const run = async (id, signal) => (await ask(`${MLFLOW}runs/get?${query({ run_id: id })}`, signal)).run;

/** The points of a metric, oldest first, and whether they are all. */
export async function history(id, name, signal) {
  const points = [];
  let page = "";
  for (let pages = 0; pages < PAGES; pages++) {
    const asked = { run_id: id, metric_key: name, max_results: PAGE, ...(page && { page_token: page }) };
    const reply = await ask(`${MLFLOW}metrics/get-history?${query(asked)}`, signal);
    for (const point of reply.metrics ?? []) {
      points.push({ step: Number(point.step ?? 0), at: Number(point.timestamp), value: Number(point.value) });
    }
    page = reply.next_page_token;
    if (!page) {
      return { points, whole: true };
    }
  }
  return { points, whole: false };
}

/** The files in a folder of a run's artifacts: {root, files}. */
export async function artifacts(id, path, signal) {
  const reply = await ask(`${MLFLOW}artifacts/list?${query({ run_id: id, ...(path && { path }) })}`, signal);
  return { root: reply.root_uri, files: reply.files ?? [] };
}

/** The bytes of an artifact. */
export async function artifact(root, path, signal) {
  const whole = `${root.slice(ROOT.length)}/${path}`;
  return (await send(FILES + whole.split("/").filter(Boolean).map(encodeURIComponent).join("/"), signal)).blob();
}

export const job = (id, signal) => ask(`/v1/jobs/${encodeURIComponent(id)}`, signal);
export const jobRuns = async (id, signal) => (await ask(`/v1/jobs/${encodeURIComponent(id)}/runs`, signal)).runs;
