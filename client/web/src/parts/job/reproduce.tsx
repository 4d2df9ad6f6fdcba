// SPDX-License-Identifier: Apache-2.0
// A job as a line for gpuctl, as Python and as curl: to copy, and to submit it from elsewhere. Where its spec cannot be written whole, because a
// payload or a secret is hidden in it, all three submit the job again by its id.

import { useState } from "preact/hooks";

import type { Spec } from "../../controller/answers";
import { lineOf, quoted } from "../shell";

const FORMS = { gpuctl: "gpuctl", python: "Python", curl: "curl" } as const;

/** A spec that can be written, or the job whose spec cannot. */
export type Source = { spec: Spec } | { job: string };

type Values = Record<string, unknown>;
const valuesOf = (value: unknown): [string, unknown][] => Object.entries((value ?? {}) as Values);
const words = (value: unknown): string => (Array.isArray(value) ? value.join(",") : String(value));
const seconds = (value: unknown): string => (Number(value) % 60 === 0 ? `${Number(value) / 60}m` : `${value}s`);

/** Fields with an option that has the value as it is. */
const PLAIN: Record<string, string> = {
  name: "--name", gpus: "--gpus", cpus: "--cpus", memory: "--memory", nodes: "--nodes", gpu_type: "--gpu-type", pool: "--pool", placement: "--placement", workdir: "--chdir", python: "--python",
  checkpoint_volume: "--checkpoint-volume", image: "--image", worker_image: "--worker-image", image_secret: "--image-secret", launch_mode: "--launch-mode", project: "--project", priority: "--priority", retries: "--retries", infra_retries: "--infra-retries", on_disconnect: "--on-disconnect",
};
/** Fields whose options are made of the value: each an option and what is behind it. */
const MADE: Record<string, (value: unknown) => string[]> = {
  use_reserved_pool: (value) => [value === true ? "--reserved" : "--no-reserved"],
  remote: (value) => (value === false ? ["--local"] : []),
  hold: (value) => (value === true ? ["--hold"] : []),
  avoid: (value) => ["--avoid", words(value)],
  exclude: (value) => ["--exclude", words(value)],
  time_limit_s: (value) => ["--time", seconds(value)],
  grace_s: (value) => ["--grace", seconds(value)],
  keep_on_failure_s: (value) => ["--keep-on-failure", seconds(value)],
  lease_s: (value) => ["--lease", seconds(value)],
  env: (value) => valuesOf(value).flatMap(([name, one]) => ["--env", `${name}=${one}`]),
  secrets: (value) => (value as string[]).flatMap((one) => ["--secret", one]),
  volumes: (value) => (value as string[]).flatMap((one) => ["--volume", one]),
  inputs: (value) => (value as string[]).flatMap((one) => ["--input", one]),
  labels: (value) => valuesOf(value).flatMap(([name, one]) => ["--label", `${name}=${one}`]),
  sweep: (value) => valuesOf(value).flatMap(([name, one]) => ["--sweep", `${name}=${words(one)}`]),
  array: (value) => {
    const { tasks, parallel } = value as { tasks: number; parallel?: number };
    return ["--array", parallel ? `${tasks}%${parallel}` : String(tasks)];
  },
  early_signal: (value) => {
    const { signal, before_s: before } = value as { signal: string; before_s?: number };
    return ["--early-signal", before === undefined ? signal : `${signal}@${seconds(before)}`];
  },
  after: (value) => (value as (string | { job: string; when?: string })[]).flatMap((one) => ["--after", typeof one === "string" ? one : `${one.job}${one.when ? `:${one.when}` : ""}`]),
  constraints: (value) =>
    valuesOf(value).flatMap(([name, one]) => {
      const sides = typeof one === "object" && !Array.isArray(one) ? (one as { in?: unknown; not?: unknown }) : { in: one };
      return [...(sides.in === undefined ? [] : ["--constraint", `${name}=${words(sides.in)}`]), ...(sides.not === undefined ? [] : ["--constraint", `${name}!=${words(sides.not)}`])];
    }),
};
/** What is said of a job, and asks for nothing. */
const QUIET = ["command", "retry_of", "host_id"];

/** The line, or null: there are no options for all of the spec. */
export function gpuctlLine(spec: Spec): string | null {
  const options: string[] = [];
  for (const [name, value] of Object.entries(spec)) {
    if (value === null || QUIET.includes(name)) {
      continue;
    }
    if (PLAIN[name] !== undefined) {
      options.push(PLAIN[name], words(value));
    } else if (MADE[name] !== undefined) {
      options.push(...MADE[name](value));
    } else {
      return null;
    }
  }
  return Array.isArray(spec.command) ? lineOf(["gpuctl", "submit", ...options, "--", ...(spec.command as string[])]) : null;
}

/** JSON as Python writes it. */
function literal(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(literal).join(", ")}]`;
  }
  if (value !== null && typeof value === "object") {
    return `{${valuesOf(value).map(([name, one]) => `${JSON.stringify(name)}: ${literal(one)}`).join(", ")}}`;
  }
  return value === null ? "None" : typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);
}

function python(source: Source): string {
  const headers = 'headers = {"Authorization": "Bearer " + os.environ["GPUCTL_TOKEN"], "Idempotency-Key": str(uuid.uuid4())}';
  const begin = ["import os, uuid, requests", "", `url = ${JSON.stringify(location.origin)}`];
  if ("job" in source) {
    return [...begin, headers, `job = requests.post(url + "/v1/jobs/${source.job}/retry", headers=headers).json()`].join("\n");
  }
  const fields = Object.entries(source.spec).map(([name, value]) => `    ${JSON.stringify(name)}: ${literal(value)},`);
  return [...begin, "spec = {", ...fields, "}", headers, 'job = requests.post(url + "/v1/jobs", json=spec, headers=headers).json()'].join("\n");
}

function curl(source: Source): string {
  const begin = `curl ${location.origin}/v1/jobs${"job" in source ? `/${source.job}/retry -X POST` : ""} -H "Authorization: Bearer $GPUCTL_TOKEN" \\`;
  const key = '  -H "Idempotency-Key: $(uuidgen)"';
  return "job" in source ? `${begin}\n${key}` : [begin, `${key} -H "Content-Type: application/json" \\`, `  -d ${quoted(JSON.stringify(source.spec))}`].join("\n");
}

function textOf(form: keyof typeof FORMS, source: Source, job: string | undefined): string {
  if (form === "gpuctl") {
    return "job" in source ? `gpuctl retry ${source.job}` : (gpuctlLine(source.spec) ?? `gpuctl retry ${job}`);
  }
  return form === "python" ? python(source) : curl(source);
}

/** Whether a spec that is shown has all that the job had. */
const isWhole = (spec: Spec): boolean => !JSON.stringify(spec).includes('"***"') && (spec.function as Values | undefined)?.inline_bytes === undefined && !JSON.stringify(spec.environment ?? "").includes("***");

/** The source of a job that is shown. */
export function sourceOf(job: string, shown: Spec): Source {
  const { retry_of: _, ...spec } = shown;
  return isWhole(spec) ? { spec } : { job };
}

function Copy({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  const refused = () => setSaid("The browser does not allow it: select the text.");
  const copy = () => {
    const board = navigator.clipboard as Clipboard | undefined; // only with TLS, or on this machine
    board === undefined ? refused() : board.writeText(text).then(() => setSaid("Copied."), refused);
  };
  return (
    <>
      <span class="faint" role="status">{said}</span>
      <button type="button" onClick={copy}>Copy</button>
    </>
  );
}

/** `job` is the id of the job that it is of, if there is one yet. */
export function Reproduce({ source, job }: { source: Source; job?: string }) {
  const [form, setForm] = useState<keyof typeof FORMS>("gpuctl");
  const text = textOf(form, source, job);
  return (
    <>
      <div class="tools tight">
        <div role="group" aria-label="How it is written" class="choices">
          {(Object.keys(FORMS) as (keyof typeof FORMS)[]).map((one) => (
            <button key={one} type="button" aria-pressed={one === form} onClick={() => setForm(one)}>{FORMS[one]}</button>
          ))}
        </div>
        <span class="gap" />
        <Copy key={text} text={text} />
      </div>
      <pre class={form === "gpuctl" ? "card wrap" : "card"} tabIndex={0} aria-label="What to run">{text}</pre>
    </>
  );
}
