// SPDX-License-Identifier: Apache-2.0
// A form for a job. As somebody types, it shows the same as a line for gpuctl, as Python and as curl, and what the job would meet.

import { useEffect, useRef, useState } from "preact/hooks";

import type { Spec, WaitAnswer } from "../controller/answers";
import { Failure, overview, plan, secrets, submit } from "../controller/api";
import { maySubmit } from "../controller/session";
import { Explanation } from "../parts/job/explanation";
import { Part } from "../parts/page";
import { useCrumbs, useRenewed } from "../parts/renew";
import { Reproduce } from "../parts/job/reproduce";
import { wordsOf } from "../parts/shell";

const PAUSE_MS = 400; // after the last key, before the controller is asked
const RENEW_MS = 30000;
const NO_GPUS = "0";

interface Form {
  name: string;
  command: string;
  gpus: string;
  cpus: string;
  memory: string;
  gpuType: string;
  pool: string;
  hours: string;
  project: string;
  retries: string;
  reserved: "auto" | "true" | "false";
  secrets: string[];
  image: string;
  imageSecret: string;
  inputs: string; // one a line, as volumes and labels
  volumes: string;
  checkpointVolume: string;
  labels: string;
}
const EMPTY: Form = {
  name: "", command: "", gpus: "1", cpus: "", memory: "", gpuType: "", pool: "", hours: "", project: "", retries: "", reserved: "auto", secrets: [],
  image: "", imageSecret: "", inputs: "", volumes: "", checkpointVolume: "", labels: "",
};

const linesOf = (text: string): string[] => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** Labels from their lines, or what is wrong with one. */
function labelsOf(text: string): { labels: Record<string, string>; wrong: string } {
  const pairs = linesOf(text).map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1), line] as const);
  const bare = pairs.find(([name, , line]) => name === "" || !line.includes("="));
  const twice = pairs.find(([name], at) => pairs.findIndex(([other]) => other === name) < at);
  const wrong = bare ? `A label is NAME=VALUE, and "${bare[2]}" is not.` : twice ? `The label ${twice[0]} is there twice.` : "";
  return { labels: Object.fromEntries(pairs), wrong };
}

/** The fields of the API; what is left empty is left out. */
function specOf(form: Form, words: string[], labels: Record<string, string>): Spec {
  const inputs = linesOf(form.inputs);
  const volumes = linesOf(form.volumes);
  return {
    command: words,
    ...(form.name && { name: form.name }),
    gpus: Number(form.gpus),
    ...(form.cpus && { cpus: Number(form.cpus) }),
    ...(form.memory && { memory: form.memory }),
    ...(form.gpuType && form.gpus !== NO_GPUS && { gpu_type: form.gpuType }),
    ...(form.pool && { pool: form.pool }),
    ...(form.hours && { time_limit_s: Math.round(Number(form.hours) * 3600) }),
    ...(form.project && { project: form.project }),
    ...(form.retries && { retries: Number(form.retries) }),
    ...(form.reserved !== "auto" && { use_reserved_pool: form.reserved === "true" }),
    ...(form.secrets.length > 0 && { secrets: form.secrets }),
    ...(form.image && { image: form.image }),
    ...(form.image && form.imageSecret && { image_secret: form.imageSecret }),
    ...(inputs.length > 0 && { inputs }),
    ...(volumes.length > 0 && { volumes }),
    ...(volumes.length > 0 && form.checkpointVolume && { checkpoint_volume: form.checkpointVolume }),
    ...(Object.keys(labels).length > 0 && { labels }),
  };
}

type Set = (changed: Partial<Form>) => void;
interface FieldProps {
  form: Form;
  name: Exclude<keyof Form, "secrets">;
  title: string;
  set: Set;
  type?: string;
  list?: string;
  hint?: string;
  disabled?: boolean;
}

function Field({ form, name, title, set, type, list, hint, disabled }: FieldProps) {
  return (
    <label>
      {title}
      <input
        type={type ?? "text"}
        value={form[name]}
        {...(list && { list })}
        {...(hint && { placeholder: hint })}
        {...(type === "number" && { min: "0", step: name === "hours" || name === "cpus" ? "any" : "1" })}
        disabled={disabled ?? false}
        onInput={(event) => set({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}

/** A field of which each line is one of several. */
function Lines({ form, name, title, set, hint }: { form: Form; name: "inputs" | "volumes" | "labels"; title: string; set: Set; hint: string }) {
  return (
    <label>
      {`${title}, one a line`}
      <textarea rows={2} value={form[name]} placeholder={hint} spellcheck={false} onInput={(event) => set({ [name]: event.currentTarget.value })} />
    </label>
  );
}

/** The names of the person's secrets, to choose those that the job gets as variables. */
function Secrets({ names, chosen, set }: { names: string[]; chosen: string[]; set: Set }) {
  const toggle = (name: string, on: boolean) => set({ secrets: on ? [...chosen, name] : chosen.filter((other) => other !== name) });
  return (
    <fieldset>
      <legend>Secrets, as variables</legend>
      {names.map((name) => (
        <label key={name} class="check">
          <input type="checkbox" checked={chosen.includes(name)} onChange={(event) => toggle(name, event.currentTarget.checked)} />
          {name}
        </label>
      ))}
    </fieldset>
  );
}

/** What `plan` says of the spec, some moments after it has changed. */
function usePlan(spec: Spec | null): { answer: WaitAnswer | null; wrong: string } {
  const [said, setSaid] = useState<{ answer: WaitAnswer | null; wrong: string }>({ answer: null, wrong: "" });
  useEffect(() => {
    const stop = new AbortController();
    const timer = window.setTimeout(() => {
      if (spec === null) {
        setSaid({ answer: null, wrong: "" });
        return;
      }
      plan(spec, stop.signal).then(
        (answer) => setSaid({ answer, wrong: "" }),
        (failure: unknown) => {
          if (failure instanceof Failure) {
            setSaid({ answer: null, wrong: failure.message });
          }
        },
      );
    }, PAUSE_MS);
    return () => {
      window.clearTimeout(timer);
      stop.abort();
    };
  }, [JSON.stringify(spec)]);
  return said;
}

export function SubmitView() {
  const [form, setForm] = useState(EMPTY);
  const [refused, setRefused] = useState("");
  const [sending, setSending] = useState(false);
  const key = useRef(crypto.randomUUID());
  const [found] = useRenewed("types", async (signal) => ({ value: await overview(signal), more: true }), RENEW_MS);
  const [mine] = useRenewed("secrets", async (signal) => ({ value: maySubmit() ? await secrets("", signal) : [], more: true }), RENEW_MS);
  useCrumbs({ text: "submit" });
  const { words, wrong } = wordsOf(form.command);
  const { labels, wrong: wrongLabel } = labelsOf(form.labels);
  const spec = words.length > 0 && wrong === "" && wrongLabel === "" ? specOf(form, words, labels) : null;
  const said = usePlan(spec);
  const set = (changed: Partial<Form>) => {
    key.current = crypto.randomUUID(); // another job
    setRefused("");
    setForm({ ...form, ...changed });
  };
  const send = (event: Event) => {
    event.preventDefault();
    if (spec === null) {
      setRefused(wrongLabel || (wrong === "" ? "Write a command." : `The command cannot be read: ${wrong}.`));
      return;
    }
    setSending(true);
    submit(spec, key.current).then(
      (job) => {
        location.hash = `#/jobs/${job.id}`;
      },
      (failure: unknown) => {
        setSending(false);
        if (!(failure instanceof Failure)) {
          throw failure;
        }
        setRefused(failure.message);
      },
    );
  };
  const types = [...new Set(found?.gpus.map((one) => one.gpu_type))];
  const pools = [...new Set(found?.gpus.map((one) => one.pool))];
  return (
    <section>
      <h1>Submit a job</h1>
      <div class="columns">
        <form class="card form" onSubmit={send}>
          <label>
            Command
            <textarea rows={3} value={form.command} spellcheck={false} onInput={(event) => set({ command: event.currentTarget.value })} />
          </label>
          <Field form={form} set={set} name="name" title="Name" />
          <Field form={form} set={set} name="gpus" title="GPUs" type="number" />
          <label class="check">
            <input type="checkbox" checked={form.gpus === NO_GPUS} onChange={(event) => set({ gpus: event.currentTarget.checked ? NO_GPUS : EMPTY.gpus })} />
            No GPU
          </label>
          <Field form={form} set={set} name="gpuType" title="GPU type" list="gpu-types" disabled={form.gpus === NO_GPUS} />
          <Field form={form} set={set} name="cpus" title="CPUs" type="number" hint={form.gpus === NO_GPUS ? "1" : "those of its GPUs"} />
          <Field form={form} set={set} name="memory" title="Memory" hint={form.gpus === NO_GPUS ? "that of its CPUs, or such as 64G" : "that of its GPUs, or such as 64G"} />
          <Field form={form} set={set} name="hours" title="Time limit in hours" type="number" />
          <Field form={form} set={set} name="project" title="Project" />
          <Field form={form} set={set} name="pool" title="Pool" list="pools" />
          <label>
            Reserved pools
            <select value={form.reserved} onChange={(event) => set({ reserved: event.currentTarget.value as Form["reserved"] })}>
              <option value="auto">as the administrator has set it</option>
              <option value="true">only reserved</option>
              <option value="false">not reserved</option>
            </select>
          </label>
          <Field form={form} set={set} name="retries" title="Retries after a failure" type="number" />
          {mine && mine.length > 0 && <Secrets names={mine.map((one) => one.name)} chosen={form.secrets} set={set} />}
          <Field form={form} set={set} name="image" title="Container image" hint="registry/name:tag" />
          <Field form={form} set={set} name="imageSecret" title="Secret of the image" list="secrets" hint="for a private one" disabled={form.image === ""} />
          <Lines form={form} set={set} name="inputs" title="Inputs" hint="train=s3://bucket/train.csv" />
          <Lines form={form} set={set} name="volumes" title="Volumes" hint="data:/data:ro" />
          <Field form={form} set={set} name="checkpointVolume" title="Checkpoint volume" hint="one of the volumes above" disabled={form.volumes === ""} />
          <Lines form={form} set={set} name="labels" title="Labels" hint="phase=2" />
          <datalist id="secrets">{mine?.map((one) => <option key={one.name} value={one.name} />)}</datalist>
          <datalist id="gpu-types">{types.map((type) => <option key={type} value={type} />)}</datalist>
          <datalist id="pools">{pools.map((pool) => <option key={pool} value={pool} />)}</datalist>
          {refused !== "" && <p class="error" role="alert">{refused}</p>}
          <button type="submit" disabled={sending}>Submit</button>
        </form>
        <div class="wide">
          <Part title="What it would meet" kind="metrics">
            {(wrongLabel || said.wrong) !== "" && <p class="line error">{wrongLabel || said.wrong}</p>}
            {said.answer !== null && <Explanation answer={said.answer} />}
            {said.answer === null && (wrongLabel || said.wrong) === "" && <p class="faint">Write a command first.</p>}
          </Part>
          {spec !== null && <Part title="To submit it from elsewhere" kind="values"><Reproduce source={{ spec }} /></Part>}
        </div>
      </div>
    </section>
  );
}
