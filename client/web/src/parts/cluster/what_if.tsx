// SPDX-License-Identifier: Apache-2.0
// What another policy would have meant: a form, and what the controller makes of the jobs that have ended under the policy that it has and under
// others. The same as a line for gpuctl and for curl.

import { useEffect, useRef, useState } from "preact/hooks";

import type { Simulation, SimulationResult } from "../../controller/answers";
import { Failure, simulate } from "../../controller/api";
import { Command } from "../command";
import { lineOf, quoted } from "../shell";
import { Table } from "../table";
import { duration, moment } from "../words";

/** Those that a controller may have. */
const POLICIES: Record<string, string> = {
  default: "by priority, then the job that is due first; gaps are filled",
  easy: "the oldest first; gaps are filled",
  fifo: "the oldest first",
  sjf: "the shortest first",
};
const SPANS = ["1d", "7d", "30d", "90d"];
const FEWEST = 20; // jobs of which a comparison says something
const SAME = 0.005; // a smaller difference is none
const BAR = { left: 64, width: 200, right: 116, height: 14, step: 22 };

type Found = { since: string; answer: Simulation } | { since: string; failed: string };
type Seconds = "avg_jct_s" | "p50_jct_s" | "avg_wait_s" | "p50_wait_s" | "p90_wait_s" | "p99_wait_s";

const span = (seconds: number) => duration(1000 * seconds);
const jobs = (count: number) => `${count} ${count === 1 ? "job" : "jobs"}`;

// --- differences in words

/** "the same", "25 % shorter", "3.2 times as long". */
function lengthAgainst(one: number, now: number): string {
  if (Math.abs(one - now) <= SAME * Math.max(now, 1)) {
    return "the same";
  }
  if (now === 0) {
    return "longer: there was none";
  }
  const part = one / now;
  return part >= 2 ? `${part.toFixed(1)} times as long` : `${Math.max(Math.round(100 * Math.abs(part - 1)), 1)} % ${part > 1 ? "longer" : "shorter"}`;
}

function countAgainst(one: number, now: number): string {
  return one === now ? "the same" : `${Math.abs(one - now)} ${one > now ? "more" : "fewer"}`;
}

function pointsAgainst(one: number, now: number): string {
  const points = Math.round(1000 * (one - now)) / 10;
  return points === 0 ? "the same" : `${Math.abs(points)} points ${points > 0 ? "more" : "less"}`;
}

function Value({ text, difference }: { text: string; difference: string | null }) {
  return <>{text}{difference !== null && <div class="reason narrow">{difference}</div>}</>;
}

// --- the answer

function Comparison({ results }: { results: SimulationResult[] }) {
  const now = results[0]!;
  const length = (one: SimulationResult, name: Seconds) => <Value text={span(one[name])} difference={one === now ? null : lengthAgainst(one[name], now[name])} />;
  const rows = results.map((one) => [
    <b><Value text={one.policy} difference={one === now ? "as it is" : null} /></b>,
    length(one, "avg_wait_s"),
    length(one, "p50_wait_s"),
    length(one, "p90_wait_s"),
    length(one, "p99_wait_s"),
    length(one, "avg_jct_s"),
    length(one, "p50_jct_s"),
    <Value text={`${(100 * one.utilization).toFixed(1)} %`} difference={one === now ? null : pointsAgainst(one.utilization, now.utilization)} />,
    <Value text={String(one.preemptions)} difference={one === now ? null : countAgainst(one.preemptions, now.preemptions)} />,
  ]);
  const titles = ["Policy", "#Average wait", "#Median wait", "#90 % wait at most", "#99 % wait at most", "#Average completion", "#Median completion", "#GPUs in use", "#Preemptions"];
  return <Table titles={titles} rows={rows} keys={results.map((one) => one.policy)} />;
}

/** A bar for each policy, the longest as wide as there is room. */
function Bars({ title, results, name }: { title: string; results: SimulationResult[]; name: Seconds }) {
  const most = Math.max(...results.map((one) => one[name]), 1e-9);
  return (
    <figure class="bars">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${BAR.left + BAR.width + BAR.right} ${BAR.step * results.length}`} role="img" aria-label={`${title}: ${results.map((one) => `${one.policy} ${span(one[name])}`).join(", ")}`}>
        {results.map((one, row) => (
          <g key={one.policy}>
            <text x={0} y={BAR.step * row + BAR.height - 2}>{one.policy}</text>
            <rect class={row === 0 ? "share-running" : "share-other"} x={BAR.left} y={BAR.step * row} width={Math.max((one[name] / most) * BAR.width, 1)} height={BAR.height} />
            <text x={BAR.left + Math.max((one[name] / most) * BAR.width, 1) + 6} y={BAR.step * row + BAR.height - 2}>{span(one[name])}</text>
          </g>
        ))}
      </svg>
    </figure>
  );
}

/** Whose waits become longer or shorter; nothing where there is only one user in one project. */
function Groups({ results }: { results: SimulationResult[] }) {
  const now = results[0]!;
  if (now.owners.length < 2 && now.projects.length < 2) {
    return null;
  }
  const rows = ([["user", "owners"], ["project", "projects"]] as const).flatMap(([kind, list]) =>
    now[list].map((group) => {
      const waits = results.map((one) => one[list].find((other) => other.name === group.name)?.avg_wait_s);
      const cells = waits.map((wait, index) => (wait === undefined ? "" : <Value text={span(wait)} difference={index === 0 ? null : lengthAgainst(wait, group.avg_wait_s)} />));
      return [`${kind} ${group.name}`, String(group.jobs), ...cells];
    }),
  );
  return (
    <>
      <h3>Average wait of users and projects</h3>
      <Table titles={["Whose", "#Jobs", ...results.map((one) => `#${one.policy}`)]} rows={rows} />
    </>
  );
}

/** What the figures are of, and what was left out. */
function About({ since, answer }: { since: string; answer: Simulation }) {
  const refused = answer.results[0]?.refused ?? 0;
  const said = [
    `${jobs(answer.jobs)} of the last ${since}, on the nodes that take work now (${answer.nodes}), as of ${moment(Date.parse(answer.as_of))}.`,
    ...(answer.more ? [`Only the newest ${answer.jobs} are replayed: those since ${moment(Date.parse(answer.oldest_at!))}.`] : []),
    ...(answer.not_run > 0 ? [`${jobs(answer.not_run)} that never ran ${answer.not_run === 1 ? "is" : "are"} left out.`] : []),
    ...(refused > 0 ? [`${jobs(refused)} could never run on these nodes, the first because ${answer.refusal}.`] : []),
    ...(answer.cut.length > 0 ? [`The time was over before ${answer.cut.join(" and ")} could be replayed: choose a shorter time, or use gpuctl.`] : []),
  ];
  return <p>{said.join(" ")}</p>;
}

function Answer({ found, policy }: { found: Found; policy: string }) {
  if ("failed" in found) {
    return <p class="error" role="alert">{found.failed}</p>;
  }
  const { since, answer } = found;
  if (answer.jobs < FEWEST) {
    return <p>{`${answer.jobs === 0 ? "No job" : `Only ${jobs(answer.jobs)}`} of the last ${since} ran and ${answer.jobs < 2 ? "has" : "have"} ended: fewer than ${FEWEST} are too few to compare. Choose a longer time.`}</p>;
  }
  return (
    <section class="what-if" aria-label="Comparison">
      <About since={since} answer={answer} />
      {answer.results[0]?.policy === policy && (
        <>
          <Comparison results={answer.results} />
          <div class="charts">
            <Bars title="Average wait" results={answer.results} name="avg_wait_s" />
            <Bars title="Average completion" results={answer.results} name="avg_jct_s" />
          </div>
          <Groups results={answer.results} />
        </>
      )}
    </section>
  );
}

// --- the form

const curlLine = (body: object) =>
  `curl ${quoted(`${location.origin}/v1/simulations`)} -H "Authorization: Bearer $GPUCTL_TOKEN" -H "Content-Type: application/json" -d ${quoted(JSON.stringify(body))}`;

/** `policy` is the one that the controller has. */
export function WhatIf({ policy }: { policy: string }) {
  const others = Object.keys(POLICIES).filter((name) => name !== policy);
  const [chosen, choose] = useState(others);
  const [since, setSince] = useState("7d");
  const [found, setFound] = useState<Found>();
  const [running, setRunning] = useState<AbortController>();
  const newest = useRef(running);
  newest.current = running;
  useEffect(() => () => newest.current?.abort(), []); // the controller ends what nobody waits for
  const question = { policies: [policy, ...others.filter((name) => chosen.includes(name))], since };
  const compare = (event: Event) => {
    event.preventDefault();
    if (running !== undefined) {
      running.abort();
      return;
    }
    const stop = new AbortController();
    setRunning(stop);
    setFound(undefined);
    simulate(question, stop.signal)
      .then(
        (answer) => setFound({ since, answer }),
        (failure: unknown) => {
          if (failure instanceof Failure) {
            setFound({ since, failed: failure.message });
          } else if (!stop.signal.aborted) {
            throw failure;
          }
        },
      )
      .finally(() => setRunning(undefined));
  };
  const toggle = (name: string, on: boolean) => choose(on ? [...chosen, name] : chosen.filter((one) => one !== name));
  return (
    <div class="card">
      <p>{`The controller replays the jobs that have ended through the code that decides, under the policy ${policy} as it is and under others. Nothing changes by that, and nothing waits for it.`}</p>
      <form class="tools" onSubmit={compare}>
        <fieldset>
          <legend class="faint">{`Compare ${policy} with`}</legend>
          {others.map((name) => (
            <label key={name} class="check">
              <input type="checkbox" checked={chosen.includes(name)} disabled={running !== undefined} onChange={(event) => toggle(name, event.currentTarget.checked)} />
              {`${name}: ${POLICIES[name]}`}
            </label>
          ))}
        </fieldset>
        <label>
          Jobs of the last
          <select value={since} disabled={running !== undefined} onChange={(event) => setSince(event.currentTarget.value)}>
            {SPANS.map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        </label>
        <button type="submit" disabled={question.policies.length < 2}>{running === undefined ? "Compare" : "Stop"}</button>
      </form>
      <div role="status">{running !== undefined && <p class="faint">The jobs are being replayed, for a minute at most, once others who asked before have their answers.</p>}</div>
      {found !== undefined && <Answer found={found} policy={policy} />}
      <h3>The same elsewhere</h3>
      <Command line={lineOf(["gpuctl", "simulate", "--history", "--since", since, "--policy", question.policies.join(",")])} label="Command" />
      <Command line={curlLine(question)} label="The same with curl" />
    </div>
  );
}
