// SPDX-License-Identifier: Apache-2.0
// One webhook: how it is, what of it can be changed, a test, and what it was told.

import type { Webhook } from "../controller/answers";
import { changeWebhook, removeWebhook, testWebhook, webhook } from "../controller/api";
import { useChange } from "../parts/change";
import { Confirm } from "../parts/confirm";
import { Fact, Part } from "../parts/page";
import { useCrumbs, useRenewed } from "../parts/renew";
import { Deliveries } from "../parts/webhooks/deliveries";
import { WebhookForm } from "../parts/webhooks/form";
import { failuresOf, LastDelivery, WebhookState } from "../parts/webhooks/state";
import { moment } from "../parts/words";

const RENEW_MS = 5000;

function Facts({ hook }: { hook: Webhook }) {
  return (
    <dl>
      <Fact name="State"><WebhookState hook={hook} /></Fact>
      <Fact name="Reason">{hook.reason}</Fact>
      <Fact name="Failing since">{hook.failing_since && moment(Date.parse(hook.failing_since))}</Fact>
      <Fact name="Failures in a row">{failuresOf(hook)}</Fact>
      <Fact name="Last delivery"><LastDelivery delivery={hook.last_delivery} /></Fact>
      <Fact name="Owner">{hook.owner}</Fact>
      <Fact name="Of">{hook.scope}</Fact>
      <Fact name="Project">{hook.project}</Fact>
      <Fact name="Made">{moment(Date.parse(hook.created_at))}</Fact>
    </dl>
  );
}

export function WebhookView({ id, search }: { id: string; search: URLSearchParams }) {
  const [hook, again] = useRenewed(id, async (signal) => ({ value: await webhook(id, signal), more: true }), RENEW_MS);
  const [refused, tryTo] = useChange(again);
  useCrumbs({ text: "webhooks", href: "#/webhooks" }, { text: hook?.name ?? id });
  if (hook === undefined) {
    return null;
  }
  const save = async (changed: Partial<Webhook>) => {
    await changeWebhook(id, changed);
    again();
  };
  const remove = () =>
    tryTo(
      removeWebhook(id).then(() => {
        location.hash = "#/webhooks";
      }),
    );
  return (
    <article>
      <div class="tools">
        <h1>{hook.name ?? id}</h1>
        <code>{id}</code>
        <span class="gap" />
        <button type="button" disabled={!hook.enabled} onClick={() => tryTo(testWebhook(id))}>Send a test</button>
        <button type="button" onClick={() => tryTo(changeWebhook(id, { enabled: !hook.enabled }))}>{hook.enabled ? "Disable" : "Enable"}</button>
        <Confirm title="Delete" question={`Delete the webhook ${hook.name ?? id}? What is left to tell it, and the log of its deliveries, go with it.`} act={remove} />
      </div>
      {refused !== "" && <p class="line error" role="alert">{refused}</p>}
      <div class="columns">
        <div class="side">
          <section class="card"><Facts hook={hook} /></section>
          <Part title="Change it" kind="params"><WebhookForm key={id} begin={hook} send={save} title="Save" /></Part>
        </div>
        <div class="wide"><Part title="Deliveries" kind="metrics"><Deliveries id={id} enabled={hook.enabled} state={search.get("state") ?? ""} tryTo={tryTo} /></Part></div>
      </div>
    </article>
  );
}
