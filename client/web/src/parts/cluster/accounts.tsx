// SPDX-License-Identifier: Apache-2.0
// Projects and their users: what each has had of all use against its share, and what it holds against its quota and its limit.

import type { ComponentChildren } from "preact";

import type { Account } from "../../controller/answers";
import { Bar } from "../bar";
import { Table } from "../table";
import { duration } from "../words";

const WIDTH = 120;
const HEIGHT = 10;
const SHOWN = 50;

type Holder = Pick<Account, "gpus" | "queued_jobs" | "share" | "target" | "delay_s">;

const percent = (part: number) => `${Math.round(100 * part)} %`;

/** The part of the use, with a mark where the share is. */
function Share({ part, target }: { part: number; target: number }) {
  const label = `${percent(part)} of the use; the share is ${percent(target)}`;
  return (
    <svg class="bar" width={WIDTH} height={HEIGHT} role="img" aria-label={label}>
      <title>{label}</title>
      <rect class={part > target ? "share-warning" : "share-good"} x={0} y={0} width={Math.min(part, 1) * WIDTH} height={HEIGHT} />
      <rect class="mark" x={Math.min(target * WIDTH, WIDTH - 2)} y={0} width={2} height={HEIGHT} />
    </svg>
  );
}

function shareCells(holder: Holder): ComponentChildren[] {
  if (holder.share === undefined || holder.target === undefined) {
    return ["", "", ""];
  }
  const delay = holder.delay_s ?? 0;
  const turn = Math.abs(delay) < 1 ? "" : `${duration(1000 * Math.abs(delay))} ${delay > 0 ? "later" : "earlier"}`;
  return [<Share part={holder.share} target={holder.target} />, `${percent(holder.share)} of ${percent(holder.target)}`, turn];
}

/** One line for each GPU type with a quota or a limit. */
function Quotas({ account }: { account: Account }) {
  const bound = account.use.filter((use) => (use.quota ?? null) !== null || use.max_gpus !== null);
  return (
    <>
      {bound.map((use) => {
        const quota = use.quota ?? null;
        const whole = Math.max(use.max_gpus ?? 0, quota ?? 0, use.gpus);
        const words = [...(quota === null ? [] : [`quota ${quota}`]), ...(use.max_gpus === null ? [] : [`at most ${use.max_gpus}`])].join(", ");
        return (
          <div key={use.gpu_type}>
            <Bar
              whole={whole}
              shares={[
                { kind: "running", count: use.entitled, what: "in use" },
                { kind: "warning", count: use.gpus - use.entitled, what: "borrowed" },
              ]}
            />
            <span class="reason">{`${use.gpus} ${use.gpu_type} (${words})`}</span>
          </div>
        );
      })}
    </>
  );
}

export function Accounts({ accounts }: { accounts: Account[] }) {
  if (accounts.length === 0) {
    return <p class="faint">No project has jobs, limits or use that still counts.</p>;
  }
  const rows: [string, ComponentChildren[]][] = accounts.flatMap((account) => {
    const first = account.kind === "project" ? `project ${account.name}` : `user ${account.name}`;
    const users = (account.users ?? []).map((user): [string, ComponentChildren[]] => [
      `${account.name}/${user.name}`,
      [<span class="inner">{user.name}</span>, String(user.gpus), String(user.queued_jobs), ...shareCells(user), ""],
    ]);
    return [[`${account.kind} ${account.name}`, [<b>{first}</b>, String(account.gpus), String(account.queued_jobs), ...shareCells(account), <Quotas account={account} />]], ...users];
  });
  const shown = rows.slice(0, SHOWN);
  return (
    <>
      <Table titles={["Account", "#GPUs", "#Waits", "Use", "Of its share", "Its jobs go", "Quota and limit"]} rows={shown.map(([, cells]) => cells)} keys={shown.map(([key]) => key)} />
      {rows.length > SHOWN && <p class="faint">{`${rows.length - SHOWN} more: gpuctl shares, gpuctl quotas.`}</p>}
    </>
  );
}
