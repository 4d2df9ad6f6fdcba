// SPDX-License-Identifier: Apache-2.0
// Who is told of events of jobs: the webhooks of who is signed in, of all people for an administrator, and a form for a new one.

import { useState } from "preact/hooks";

import type { Webhook } from "../controller/answers";
import { makeWebhook, webhooks } from "../controller/api";
import { person } from "../controller/session";
import { Command } from "../parts/command";
import { Part } from "../parts/page";
import { useCrumbs, useRenewed } from "../parts/renew";
import { Table } from "../parts/table";
import { WebhookForm } from "../parts/webhooks/form";
import { failuresOf, LastDelivery, WebhookState } from "../parts/webhooks/state";

const RENEW_MS = 10000;

/** "own, project vision" */
const scopeOf = (hook: Webhook) => `${hook.scope}${hook.project === null ? "" : `, project ${hook.project}`}`;

function Listing({ found }: { found: Webhook[] }) {
  const isAdmin = person()?.role === "admin";
  if (found.length === 0) {
    return <p class="line">There is none. A webhook is a URL that gets a POST for each event of a job, signed with a secret.</p>;
  }
  const rows = found.map((hook) => [
    <><a href={`#/webhooks/${hook.id}`}>{hook.name ?? hook.id}</a><div class="reason narrow">{hook.url}</div></>,
    <><WebhookState hook={hook} />{hook.reason && <div class="reason">{hook.reason}</div>}</>,
    <LastDelivery delivery={hook.last_delivery} />,
    failuresOf(hook),
    scopeOf(hook),
    <div class="reason">{hook.events.join(", ")}</div>,
    ...(isAdmin ? [hook.owner] : []),
  ]);
  return <Table titles={["Webhook", "State", "Last delivery", "#Failures in a row", "Of", "Events", ...(isAdmin ? ["Owner"] : [])]} rows={rows} keys={found.map((hook) => hook.id)} />;
}

/** The page forgets it as soon as the view is left. */
function Secret({ made, done }: { made: Webhook & { secret: string }; done: () => void }) {
  return (
    <section class="card" aria-label="The new webhook">
      <p role="status">{`The webhook ${made.name ?? made.id} is made. This secret is shown once: its receiver checks signatures with it.`}</p>
      <Command line={made.secret} label="Secret" />
      <p><button type="button" onClick={done}>I have it</button></p>
    </section>
  );
}

export function WebhooksView() {
  const [found, again] = useRenewed("webhooks", async (signal) => ({ value: await webhooks(signal), more: true }), RENEW_MS);
  const [made, setMade] = useState<(Webhook & { secret: string }) | null>(null);
  useCrumbs({ text: "webhooks" });
  const send = async (wanted: Partial<Webhook>) => {
    setMade(await makeWebhook(wanted));
    again();
  };
  return (
    <section>
      <h1>Webhooks</h1>
      {made !== null && <Secret made={made} done={() => setMade(null)} />}
      {found && <div class="part"><Listing found={found} /></div>}
      <Part title="A new webhook" kind="params"><WebhookForm key={made?.id ?? ""} send={send} title="Make the webhook" /></Part>
    </section>
  );
}
