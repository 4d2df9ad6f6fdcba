// SPDX-License-Identifier: Apache-2.0
// The page: which view the address names, who is signed in, and what is said when the controller refuses or does not answer.

import "uplot/dist/uPlot.min.css";
import "./page.css";

import { render, type ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { Failure, signIn, signOut } from "./controller/api";
import { codeOfAddress, forget, proof } from "./controller/session";
import { Keys, type Place } from "./parts/keys";
import { FrameContext, useCrumbs, type Crumb } from "./parts/renew";
import { CompareView } from "./views/compare";
import { ExperimentsView } from "./views/experiments";
import { JobView } from "./views/job";
import { JobsView } from "./views/jobs";
import { NodeView } from "./views/node";
import { NodesView } from "./views/nodes";
import { OverviewView } from "./views/overview";
import { QueueView } from "./views/queue";
import { RunView } from "./views/run";
import { RunsView } from "./views/runs";
import { SecretsView } from "./views/secrets";
import { SignInView } from "./views/sign_in";
import { SubmitView } from "./views/submit";
import { UsageView } from "./views/usage";
import { WebhookView } from "./views/webhook";
import { WebhooksView } from "./views/webhooks";

// What MLflow puts behind the address of a run, such as /artifacts, shows the run.
const ROUTES: [RegExp, (match: string[], search: URLSearchParams) => ComponentChildren][] = [
  [/^\/?$/, () => <OverviewView />],
  [/^\/experiments\/?$/, () => <ExperimentsView />],
  [/^\/experiments\/(\d+)(?:\/runs)?\/?$/, ([, id], search) => <RunsView id={id!} search={search} />],
  [/^\/experiments\/(\d+)\/compare$/, ([, id], search) => <CompareView id={id!} search={search} />],
  [/^\/experiments\/(\d+)\/runs\/([0-9a-zA-Z_-]+)(?:\/.*)?$/, ([, experimentId, id]) => <RunView experimentId={experimentId!} id={id!} />],
  [/^\/jobs\/?$/, (_, search) => <JobsView search={search} />],
  [/^\/jobs\/([a-z2-7]+(?:\.\d+)?)$/, ([, id], search) => <JobView id={id!} search={search} />],
  [/^\/queue\/?$/, (_, search) => <QueueView search={search} />],
  [/^\/nodes\/?$/, (_, search) => <NodesView search={search} />],
  [/^\/nodes\/([A-Za-z0-9._-]+)$/, ([, name]) => <NodeView key={name} name={name!} />],
  [/^\/usage\/?$/, (_, search) => <UsageView search={search} />],
  [/^\/submit\/?$/, () => <SubmitView />],
  [/^\/secrets\/?$/, (_, search) => <SecretsView search={search} />],
  [/^\/webhooks\/?$/, () => <WebhooksView />],
  [/^\/webhooks\/([a-z2-7]+)$/, ([, id], search) => <WebhookView id={id!} search={search} />],
];

function Nothing({ address }: { address: string }) {
  useCrumbs();
  return <p class="line">{`This page shows jobs, the queue, nodes, experiments and their runs, usage, webhooks and secrets. It has no view for ${address}.`}</p>;
}

/** The fragment "#/jobs?state=live": what it names, and what comes behind. */
function addressOf(hash: string): [string, URLSearchParams] {
  const [path = "", search] = hash.slice(1).split("?");
  try {
    return [decodeURIComponent(path).split("?")[0]!, new URLSearchParams(search)];
  } catch {
    return [path, new URLSearchParams(search)];
  }
}

function View({ address, search }: { address: string; search: URLSearchParams }) {
  for (const [pattern, make] of ROUTES) {
    const match = pattern.exec(address);
    if (match) {
      return <>{make(match, search)}</>;
    }
  }
  return <Nothing address={address} />;
}

const MENU: Place[] = [
  { letter: "o", text: "Overview", path: "/" },
  { letter: "j", text: "Jobs", path: "/jobs" },
  { letter: "q", text: "Queue", path: "/queue" },
  { letter: "n", text: "Nodes", path: "/nodes" },
  { letter: "u", text: "Usage", path: "/usage" },
  { letter: "e", text: "Experiments", path: "/experiments" },
  { letter: "w", text: "Webhooks", path: "/webhooks" },
  { letter: "c", text: "Secrets", path: "/secrets" },
  { letter: "s", text: "Submit", path: "/submit" },
];

/** Whether an address belongs to an entry of the menu. */
const isIn = (address: string, path: string) => (path === "/" ? address === "" || address === "/" : address.startsWith(path));

function Menu({ address }: { address: string }) {
  return (
    <nav class="menu" aria-label="Views">
      {MENU.map(({ text, path }) => <a key={path} href={`#${path}`} {...(isIn(address, path) && { "aria-current": "page" as const })}>{text}</a>)}
    </nav>
  );
}

/** The path at the top, which the title of the page repeats. */
function Path({ crumbs }: { crumbs: Crumb[] }) {
  const all: Crumb[] = [{ text: "gpuctl", href: "#/" }, ...crumbs];
  useEffect(() => {
    document.title = all.map((part) => part.text).reverse().join(" · ");
  });
  return (
    <nav class="path" aria-label="Path">
      {all.map((part, index) => <a key={index} {...(part.href ? { href: part.href } : { "aria-current": "page" as const })}>{part.text}</a>)}
    </nav>
  );
}

/** What is wrong: with the connection (trouble), or with what the address names (refusal). */
interface Matter {
  trouble: string;
  refusal: string;
}
const NOTHING: Matter = { trouble: "", refusal: "" };

function matterOf(failure: Failure | null): Matter {
  if (failure === null) {
    return NOTHING;
  }
  const later = failure.status === 0 || failure.status === 429 || failure.status >= 500;
  return later ? { trouble: `${failure.message} Trying again.`, refusal: "" } : { trouble: "", refusal: failure.message };
}

/** Whether no code is being used. Whoever is signed in already stays so when one is refused. */
function useCode(hash: string, askIn: (why: string) => void): boolean {
  const [using, setUsing] = useState(hash.startsWith("#code="));
  const asked = useRef(false);
  useEffect(() => {
    const code = codeOfAddress();
    if (code === null) {
      setUsing(asked.current); // the address may have changed before its code was seen
      return;
    }
    asked.current = true;
    setUsing(true);
    signIn({ code }).catch((failure: unknown) => {
      if (!(failure instanceof Failure)) {
        throw failure;
      }
      askIn(proof() === undefined ? failure.message : "");
    }).finally(() => {
      asked.current = false;
      setUsing(false);
    });
  }, [hash]);
  return !using;
}

function Page() {
  const [hash, setHash] = useState(location.hash);
  const [why, askIn] = useState("");
  const [crumbs, setCrumbs] = useState<Crumb[]>([]);
  const [matter, setMatter] = useState(NOTHING);
  const [, setSigned] = useState(0); // counts the changes of who is signed in
  const ready = useCode(hash, askIn);
  useEffect(() => {
    const changed = () => {
      setMatter(NOTHING);
      setHash(location.hash);
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const leave = (text: string) => {
    askIn(text);
    setMatter(NOTHING);
    setCrumbs([]);
    setSigned((count) => count + 1);
  };
  const heed = (failure: Failure | null) => {
    if (failure?.status === 401) {
      forget();
      leave(`You are signed out: ${failure.message}.`);
    } else {
      setMatter(matterOf(failure));
    }
  };
  const signed = ready && proof() !== undefined;
  const [address, search] = addressOf(location.hash);
  return (
    <FrameContext.Provider value={{ heed, setCrumbs }}>
      <header>
        <Path crumbs={signed ? crumbs : []} />
        {signed && <Menu address={address} />}
        {signed && <button type="button" onClick={() => void signOut().then(() => leave(""))}>Sign out</button>}
      </header>
      {signed && <Keys places={MENU} />}
      {matter.trouble !== "" && <p id="trouble" role="status">{matter.trouble}</p>}
      <main>
        {signed && (matter.refusal !== "" ? <p class="line">{matter.refusal}</p> : <View key={address} address={address} search={search} />)}
        {ready && !signed && <SignInView key={why} why={why} done={() => leave("")} />}
      </main>
    </FrameContext.Provider>
  );
}

render(<Page />, document.getElementById("page")!);
