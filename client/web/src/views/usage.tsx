// SPDX-License-Identifier: Apache-2.0
// Who used what: GPU hours, idle part, energy and cost over a time, by names that the address has. As a chart, a table, and CSV.

import type { Usage, UsageRow } from "../controller/answers";
import { usage } from "../controller/api";
import { useCrumbs, useRenewed } from "../parts/renew";
import { save } from "../parts/save";
import { Stack } from "../parts/charts/stack";
import { Table } from "../parts/table";

const RENEW_MS = 60000;
const HOUR_MS = 3600000;
const DAY_MS = 24 * HOUR_MS;
const SPANS: Record<string, number> = { "1 day": DAY_MS, "7 days": 7 * DAY_MS, "30 days": 30 * DAY_MS, "90 days": 90 * DAY_MS, "1 year": 365 * DAY_MS };
const NAMES = { owner: "User", project: "Project", gpu_type: "GPU type", pool: "Pool", reserved: "Reserved" } as const;

type Name = keyof typeof NAMES;

/** What the address asks for. */
function readAddress(search: URLSearchParams): { span: string; by: Name[] } {
  const span = search.get("span") ?? "";
  const by = (search.get("by") ?? "owner").split(",").filter((name): name is Name => name in NAMES);
  return { span: span in SPANS ? span : "7 days", by: by.length > 0 ? by : ["owner"] };
}

function go(span: string, by: string[]): void {
  location.hash = `#/usage?${new URLSearchParams({ span, by: by.join(",") })}`;
}

const wordOf = (row: UsageRow, name: Name) => (name === "reserved" ? (row.reserved ? "reserved" : "on demand") : row[name]!);
const nameOf = (row: UsageRow, by: Name[]) => by.map((name) => wordOf(row, name)).join(" · ");

/** The rows of all steps together. */
function sum(rows: UsageRow[], by: Name[]): UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const key = nameOf(row, by);
    const before = sums.get(key);
    if (before === undefined) {
      sums.set(key, { ...row });
      continue;
    }
    before.gpu_seconds += row.gpu_seconds;
    before.measured_gpu_seconds += row.measured_gpu_seconds;
    before.idle_gpu_seconds += row.idle_gpu_seconds;
    before.energy_joules += row.energy_joules;
    before.attempts += row.attempts;
    before.cost = (before.cost ?? 0) + (row.cost ?? 0);
  }
  return [...sums.values()].sort((a, b) => b.gpu_seconds - a.gpu_seconds);
}

function cells(row: Omit<UsageRow, "at">, hasCost: boolean): string[] {
  return [
    (row.gpu_seconds / 3600).toFixed(2),
    row.measured_gpu_seconds > 0 ? `${Math.round((100 * row.idle_gpu_seconds) / row.measured_gpu_seconds)} %` : "",
    row.energy_joules > 0 ? (row.energy_joules / 3.6e6).toFixed(2) : "",
    String(row.attempts),
    ...(hasCost ? [(row.cost ?? 0).toFixed(2)] : []),
  ];
}

function csv(found: Usage, by: Name[]): string {
  const figures = ["gpu_seconds", "measured_gpu_seconds", "idle_gpu_seconds", "energy_joules", "attempts", "cost"] as const;
  const lines = found.usage.map((row) => [row.at, ...by.map((name) => String(row[name])), ...figures.map((name) => row[name] ?? "")].join(","));
  return [["at", ...by, ...figures].join(","), ...lines, ""].join("\n");
}

function Listing({ found, by }: { found: Usage; by: Name[] }) {
  const hasCost = found.total.cost !== undefined;
  const rows = sum(found.usage, by);
  const cost = `#Cost${found.currency === null ? "" : ` (${found.currency})`}`;
  const titles = [...by.map((name) => NAMES[name]), "#GPU hours", "#Idle", "#kWh", "#Runs", ...(hasCost ? [cost] : [])];
  const total = ["All", ...by.slice(1).map(() => ""), ...cells(found.total, hasCost)].map((text) => <b>{text}</b>);
  return (
    <Table
      titles={titles}
      rows={[...rows.map((row) => [...by.map((name) => wordOf(row, name)), ...cells(row, hasCost)]), total]}
      keys={[...rows.map((row) => nameOf(row, by)), ""]}
    />
  );
}

function Tools({ span, by, found }: { span: string; by: Name[]; found: Usage | undefined }) {
  const toggle = (name: Name, on: boolean) => {
    const changed = on ? [...by, name] : by.filter((other) => other !== name);
    go(span, changed.length > 0 ? changed : ["owner"]);
  };
  return (
    <div class="tools">
      <label>
        Time
        <select value={span} onChange={(event) => go(event.currentTarget.value, by)}>
          {Object.keys(SPANS).map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      </label>
      <fieldset>
        <legend>By</legend>
        {(Object.keys(NAMES) as Name[]).map((name) => (
          <label key={name} class="check">
            <input type="checkbox" checked={by.includes(name)} onChange={(event) => toggle(name, event.currentTarget.checked)} />
            {NAMES[name]}
          </label>
        ))}
      </fieldset>
      <span class="gap" />
      <button type="button" disabled={found === undefined} onClick={() => found && save(new Blob([csv(found, by)], { type: "text/csv" }), "usage.csv")}>CSV</button>
    </div>
  );
}

export function UsageView({ search }: { search: URLSearchParams }) {
  const { span, by } = readAddress(search);
  const step = SPANS[span]! <= 2 * DAY_MS ? "hour" : "day";
  const [found] = useRenewed(`${span} ${by.join()}`, async (signal) => {
    const asked = { since: String(Date.now() - SPANS[span]!), by: by.join(","), step };
    return { value: await usage(asked, signal), more: true };
  }, RENEW_MS);
  useCrumbs({ text: "usage" });
  const stepMs = step === "hour" ? HOUR_MS : DAY_MS;
  return (
    <section>
      <h1>Usage</h1>
      <Tools span={span} by={by} found={found} />
      {found && <Stack title={`GPU hours in each ${step}`} rows={found.usage} since={Date.parse(found.since)} until={Date.parse(found.until)} stepMs={stepMs} name={(row) => nameOf(row, by)} />}
      {found && <div class="part"><Listing found={found} by={by} /></div>}
      <p class="faint">A job uses its GPUs from the moment that they are its own until they are free again. Idle time and energy are known once it has ended.</p>
    </section>
  );
}
