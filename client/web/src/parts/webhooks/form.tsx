// SPDX-License-Identifier: Apache-2.0
// The form of a webhook, for a new one and for one that is there. What the controller refuses stands at its field.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type { Webhook } from "../../controller/answers";
import { Failure } from "../../controller/api";
import { person } from "../../controller/session";

const ENDS = ["succeeded", "failed", "canceled", "timed_out", "requeued", "idle"];
const REST = ["submitted", "held", "released", "blocked", "ready", "changed", "staging", "staged", "placed", "started", "running", "busy", "warned", "kept", "cancel_asked", "stopping", "logs_cut"];
const SCOPES = { own: "all my jobs", named: "only my jobs that name it (--notify)", all: "the jobs of all people" };

export type Wanted = Pick<Webhook, "url" | "name" | "scope" | "project" | "events" | "tasks">;

const EMPTY: Wanted = { url: "", name: "", scope: "own", project: "", events: ENDS, tasks: false };
/** Fields beside which a refusal can stand; any other stands above the button. */
const FIELDS: (keyof Wanted)[] = ["url", "name", "scope", "project", "events"];

/** What is wrong with a field, which names it by `aria-describedby`. */
function Wrong({ name, refusal }: { name: string; refusal: Failure | null }) {
  return refusal?.field === name ? <span id={`wrong-${name}`} class="error" role="alert">{[refusal.message, refusal.hint].filter(Boolean).join(": ")}</span> : null;
}

const marks = (name: string, refusal: Failure | null) => refusal?.field === name && { "aria-invalid": true as const, "aria-describedby": `wrong-${name}` };

interface FieldProps {
  name: "url" | "name" | "project";
  title: string;
  form: Wanted;
  refusal: Failure | null;
  set: (changed: Partial<Wanted>) => void;
}

function Field({ name, title, form, refusal, set }: FieldProps) {
  return (
    <div>
      <label>
        {title}
        <input type="text" value={form[name] ?? ""} spellcheck={false} {...marks(name, refusal)} onInput={(event) => set({ [name]: event.currentTarget.value })} />
      </label>
      <Wrong name={name} refusal={refusal} />
    </div>
  );
}

function Kinds({ kinds, chosen, set }: { kinds: string[]; chosen: string[]; set: (events: string[]) => void }) {
  const toggle = (kind: string, on: boolean) => set(on ? [...chosen, kind] : chosen.filter((other) => other !== kind));
  return (
    <>
      {kinds.map((kind) => (
        <label key={kind} class="check">
          <input type="checkbox" checked={chosen.includes(kind)} onChange={(event) => toggle(kind, event.currentTarget.checked)} />
          {kind}
        </label>
      ))}
    </>
  );
}

/** `begin` is the webhook that is changed: of that only the URL, the events and whether it is told of tasks. `send` gets the fields that
 * differ from it, and of a new one those that are filled. */
export function WebhookForm({ begin, send, title, children }: { begin?: Webhook; send: (wanted: Partial<Wanted>) => Promise<void>; title: string; children?: ComponentChildren }) {
  const before: Wanted = begin ?? EMPTY;
  const [form, setForm] = useState(before);
  const [refusal, setRefusal] = useState<Failure | null>(null);
  const [sending, setSending] = useState(false);
  const set = (changed: Partial<Wanted>) => {
    setRefusal(null);
    setForm({ ...form, ...changed });
  };
  const wanted = (): Partial<Wanted> => {
    const { url, name, project, ...rest } = form;
    if (begin !== undefined) {
      return { ...(url !== before.url && { url }), events: rest.events, tasks: rest.tasks };
    }
    return { url, ...rest, ...(name && { name }), ...(project && { project }) };
  };
  const submit = (event: Event) => {
    event.preventDefault();
    setSending(true);
    send(wanted())
      .catch((failure: unknown) => {
        if (!(failure instanceof Failure)) {
          throw failure;
        }
        setRefusal(failure);
      })
      .finally(() => setSending(false));
  };
  const shared = { form, refusal, set };
  const elsewhere = refusal !== null && !FIELDS.includes(refusal.field as keyof Wanted);
  return (
    <form class="card form" onSubmit={submit} aria-label={title}>
      <Field name="url" title="URL" {...shared} />
      {begin === undefined && (
        <>
          <Field name="name" title="Name" {...shared} />
          <div>
            <label>
              It is told of
              <select value={form.scope} {...marks("scope", refusal)} onChange={(event) => set({ scope: event.currentTarget.value as Wanted["scope"] })}>
                {Object.entries(SCOPES).map(([scope, text]) => (scope !== "all" || person()?.role === "admin") && <option key={scope} value={scope}>{text}</option>)}
              </select>
            </label>
            <Wrong name="scope" refusal={refusal} />
          </div>
          <Field name="project" title="Of this project alone" {...shared} />
        </>
      )}
      <fieldset {...marks("events", refusal)}>
        <legend>Events</legend>
        <Kinds kinds={ENDS} chosen={form.events} set={(events) => set({ events })} />
      </fieldset>
      <details open={form.events.some((kind) => REST.includes(kind))}>
        <summary>Other events</summary>
        <fieldset aria-label="Other events"><Kinds kinds={REST} chosen={form.events} set={(events) => set({ events })} /></fieldset>
      </details>
      <Wrong name="events" refusal={refusal} />
      <label class="check">
        <input type="checkbox" checked={form.tasks} onChange={(event) => set({ tasks: event.currentTarget.checked })} />
        Also of each task of an array
      </label>
      {elsewhere && <p class="error" role="alert">{refusal.message}</p>}
      {children}
      <button type="submit" disabled={sending}>{title}</button>
    </form>
  );
}
