// SPDX-License-Identifier: Apache-2.0
// What a webhook was told, the newest first, and its replay. The state that is listed stands in the address.

import { useState } from "preact/hooks";

import type { Delivery } from "../../controller/answers";
import { deliveries, replay } from "../../controller/api";
import { useRenewed } from "../renew";
import { Chip } from "../state";
import { Table } from "../table";
import { moment } from "../words";
import { answerOf } from "./state";

const RENEW_MS = 5000;
const PAGE = 50; // each time that somebody asks for more
const STATES = ["PENDING", "DELIVERED", "FAILED"];

const when = (text: string | null) => <span class="whole">{text !== null && moment(Date.parse(text))}</span>;

function cells(delivery: Delivery, repeat: () => void) {
  return [
    when(delivery.created_at),
    delivery.event ?? "",
    delivery.job_id === null ? "" : <a href={`#/jobs/${delivery.job_id}`}><code>{delivery.job_id}</code></a>,
    <Chip state={delivery.state} />,
    <div class="reason narrow">{answerOf(delivery)}</div>,
    String(delivery.tries),
    when(delivery.next_at),
    delivery.state !== "PENDING" && <button type="button" class="small" aria-label={`Replay delivery ${delivery.id}`} onClick={repeat}>Replay</button>,
  ];
}

interface Props {
  id: string;
  enabled: boolean;
  state: string;
  /** Asks for a change, and says what was refused. */
  tryTo: (change: Promise<void>) => void;
}

export function Deliveries({ id, enabled, state, tryTo }: Props) {
  const [most, setMost] = useState(PAGE);
  const [said, say] = useState("");
  const [found, again] = useRenewed(`${id} ${state} ${most}`, async (signal) => ({ value: await deliveries(id, state, most, signal), more: true }), RENEW_MS);
  const repeat = (named: string[] | null) =>
    tryTo(
      replay(id, named).then(({ replayed, more }) => {
        say(`${replayed === 1 ? "1 delivery is" : `${replayed} deliveries are`} sent again${more ? "; there are more that have failed" : ""}.`);
        again();
      }),
    );
  const shown = found?.deliveries ?? [];
  const go = (chosen: string) => {
    location.hash = `#/webhooks/${id}${chosen && `?state=${chosen}`}`;
  };
  return (
    <>
      <div class="tools">
        <label>
          State
          <select value={state} onChange={(event) => go(event.currentTarget.value)}>
            <option value="">any</option>
            {STATES.map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        </label>
        <span class="gap" />
        <button type="button" disabled={!enabled} onClick={() => repeat(null)}>Replay all that failed</button>
      </div>
      <p role="status" class="faint">{said}</p>
      {found && shown.length === 0 && <p class="faint">{state === "" ? "It was told nothing in the last week." : `There is none that is ${state}.`}</p>}
      {shown.length > 0 && (
        <Table
          titles={["Event at", "Event", "Job", "State", "Answer", "#Tries", "Next try", "Again"]}
          rows={shown.map((one) => cells(one, () => repeat([one.id])))}
          keys={shown.map((one) => one.id)}
        />
      )}
      {found?.more && <button type="button" onClick={() => setMost(most + PAGE)}>Show older deliveries</button>}
    </>
  );
}
