// SPDX-License-Identifier: Apache-2.0
// How a webhook is, and what a delivery met.

import type { Delivery, Webhook } from "../../controller/answers";
import { Chip } from "../state";
import { moment } from "../words";

const LOOKED_AT = 20; // of its newest deliveries, where failures are counted

/** In the words of gpuctl webhooks list. */
export function WebhookState({ hook }: { hook: Webhook }) {
  return <Chip state={!hook.enabled ? "disabled" : hook.failing_since !== null ? "failing" : "ok"} />;
}

/** The answer to the last try: a status of HTTP, or why there was none. */
export const answerOf = (delivery: Delivery) => (delivery.status !== null ? String(delivery.status) : (delivery.error ?? ""));

export function LastDelivery({ delivery }: { delivery: Delivery | null }) {
  return delivery === null ? <span class="faint">none</span> : <><Chip state={delivery.state} /> <span class="whole">{moment(Date.parse(delivery.tried_at!))}</span><div class="reason">{answerOf(delivery)}</div></>;
}

export const failuresOf = (hook: Webhook) => (hook.failures >= LOOKED_AT ? `${LOOKED_AT} or more` : String(hook.failures));
