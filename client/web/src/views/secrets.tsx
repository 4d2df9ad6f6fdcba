// SPDX-License-Identifier: Apache-2.0
// The secrets of the person, or of a project: their names, a form that sets one, and a button that removes one. Values are sent, and never shown.
// Whose they are stands in the address.

import { useState } from "preact/hooks";

import type { Secret } from "../controller/answers";
import { Failure, removeSecret, secrets, setSecret } from "../controller/api";
import { maySubmit } from "../controller/session";
import { useChange } from "../parts/change";
import { Confirm } from "../parts/confirm";
import { Part } from "../parts/page";
import { useCrumbs, useRenewed } from "../parts/renew";
import { Table } from "../parts/table";
import { moment, size } from "../parts/words";

const RENEW_MS = 10000;

/** The bytes of a file in base64. */
function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve((reader.result as string).split(",")[1] ?? "");
    reader.onerror = () => reject(new Failure(0, `${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

function Listing({ found, remove }: { found: Secret[]; remove: (name: string) => void }) {
  if (found.length === 0) {
    return <p class="line">There is none. A job asks for a secret by its name, and gets the value as a variable or a file.</p>;
  }
  const rows = found.map((one) => [
    <code>{one.name}</code>,
    size(one.bytes),
    one.set_by,
    moment(Date.parse(one.set_at)),
    <Confirm title="Remove" question={`Remove the secret ${one.name}? Its value cannot be shown or brought back.`} act={() => remove(one.name)} />,
  ]);
  return <Table titles={["Secret", "#Size", "Set by", "Set at", "Change"]} rows={rows} keys={found.map((one) => one.name)} />;
}

/** Sets a secret. The value leaves the page as soon as the controller has it. */
function SecretForm({ project, done }: { project: string; done: () => void }) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [file, setFile] = useState<File | null>(null);
  const [refused, setRefused] = useState("");
  const [sending, setSending] = useState(false);
  const [round, setRound] = useState(0); // a new one empties the field of the file
  const send = async () => {
    await setSecret(name, file === null ? { value } : { base64: await base64Of(file) }, project);
    setName("");
    setValue("");
    setFile(null);
    setRound(round + 1);
    done();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    setRefused("");
    setSending(true);
    send()
      .catch((failure: unknown) => {
        if (!(failure instanceof Failure)) {
          throw failure;
        }
        setRefused([failure.message, failure.hint].filter(Boolean).join(": "));
      })
      .finally(() => setSending(false));
  };
  return (
    <form class="card form" onSubmit={submit} aria-label="Set a secret">
      <label>
        Name
        <input type="text" value={name} required spellcheck={false} autocomplete="off" placeholder="HF_TOKEN" onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <label>
        Value
        <input type="password" value={value} autocomplete="new-password" disabled={file !== null} required={file === null} onInput={(event) => setValue(event.currentTarget.value)} />
      </label>
      <label>
        Or a file with the value
        <input key={round} type="file" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
      </label>
      {refused !== "" && <p class="error" role="alert">{refused}</p>}
      <button type="submit" disabled={sending}>Set</button>
    </form>
  );
}

function Whose({ project }: { project: string }) {
  const [text, setText] = useState(project);
  const go = (event: Event) => {
    event.preventDefault();
    location.hash = text === "" ? "#/secrets" : `#/secrets?${new URLSearchParams({ project: text })}`;
  };
  return (
    <form class="tools" onSubmit={go} aria-label="Whose">
      <label>
        Of a project
        <input type="search" value={text} placeholder="mine" onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

export function SecretsView({ search }: { search: URLSearchParams }) {
  const project = search.get("project") ?? "";
  const [found, again] = useRenewed(`secrets ${project}`, async (signal) => {
    try {
      return { value: { all: maySubmit() ? await secrets(project, signal) : [], wrong: maySubmit() ? "" : "You may look at jobs, and have no secrets." }, more: true };
    } catch (failure) {
      if (failure instanceof Failure && (failure.status === 403 || failure.status === 422)) {
        return { value: { all: [], wrong: failure.message }, more: false };
      }
      throw failure;
    }
  }, RENEW_MS);
  const [refused, tryTo] = useChange(again);
  useCrumbs({ text: "secrets" });
  return (
    <section>
      <h1>{project === "" ? "Secrets" : `Secrets of ${project}`}</h1>
      <Whose key={project} project={project} />
      {refused !== "" && <p class="line error" role="alert">{refused}</p>}
      {found && found.wrong !== "" && <p class="line error">{found.wrong}</p>}
      {found && found.wrong === "" && (
        <>
          <div class="part"><Listing found={found.all} remove={(name) => tryTo(removeSecret(name, project), name)} /></div>
          <Part title="Set a secret" kind="params"><SecretForm project={project} done={again} /></Part>
        </>
      )}
    </section>
  );
}
