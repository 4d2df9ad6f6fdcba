// SPDX-License-Identifier: Apache-2.0
// The page: which view the address names, when it is renewed, and what is shown when the controller refuses or does not answer.
// A view is {element, crumbs, refresh(signal)}: refresh fetches, shows, and says whether there will be news. It is given `again`, which has
// it renewed at once.

import { renewSession, signIn, signOut } from "/web/api.js";
import { experimentsView } from "/web/experiments.js";
import { element } from "/web/dom.js";
import { jobView } from "/web/job.js";
import { runView } from "/web/run.js";
import { runsView } from "/web/runs.js";
import { signInView } from "/web/sign_in.js";
import { codeOfAddress, forget, proof } from "/web/session.js";

const RENEW_MS = 3000;
const AGAIN_MS = 5000; // after a request that got no answer

const place = document.getElementById("view");
const trouble = document.getElementById("trouble");
const leave = document.getElementById("sign-out");
let shown = { timer: 0, stop: new AbortController() };

// What MLflow puts behind the address of a run, such as /artifacts, shows the run.
const ROUTES = [
  [/^\/?$/, () => experimentsView()],
  [/^\/experiments\/?$/, () => experimentsView()],
  [/^\/experiments\/(\d+)(?:\/runs)?\/?$/, ([, id]) => runsView(id)],
  [/^\/experiments\/(\d+)\/runs\/([0-9a-zA-Z_-]+)(?:\/.*)?$/, ([, id, run]) => runView(id, run)],
  [/^\/jobs\/([a-z2-7]+(?:\.\d+)?)$/, ([, id]) => jobView(id)],
];

function crumbs(parts) {
  const all = [{ text: "gpuctl", href: "#/" }, ...parts];
  document.title = all.map((part) => part.text).reverse().join(" · ");
  const made = all.map((part) => element("a", part.href ? { href: part.href } : { "aria-current": "page" }, part.text));
  document.getElementById("path").replaceChildren(...made);
}

/** One line where there is nothing to show. */
function line(text) {
  return element("p", { class: "line" }, text);
}

function nothing(address) {
  const text = `This page shows experiments, their runs, and the runs of jobs. It has no view for ${address}.`;
  return { element: line(text), crumbs: [], refresh: async () => false };
}

function find(address) {
  for (const [pattern, make] of ROUTES) {
    const match = pattern.exec(address);
    if (match) {
      return make(match);
    }
  }
  return nothing(address);
}

function say(text) {
  trouble.hidden = text === "";
  trouble.textContent = text;
}

function askIn(why) {
  stop();
  say("");
  leave.hidden = true;
  crumbs([]);
  place.replaceChildren(signInView(why, show));
}

function stop() {
  clearTimeout(shown.timer);
  shown.stop.abort();
  shown = { timer: 0, stop: new AbortController() };
}

/** The view could not be renewed. Returns whether to try again. */
function heed(failure) {
  if (failure.status === 401) {
    forget();
    askIn(`You are signed out: ${failure.message}.`);
    return false;
  }
  if (failure.status === 0 || failure.status === 429 || failure.status >= 500) {
    say(`${failure.message} Trying again.`);
    return true;
  }
  place.replaceChildren(line(failure.message));
  return false;
}

async function renew(view) {
  const mine = shown;
  let more;
  let pause = RENEW_MS;
  try {
    await renewSession();
    more = await view.refresh(mine.stop.signal);
    if (mine === shown) {
      say("");
      crumbs(view.crumbs);
    }
    if (!more && mine === shown) {
      onReturn(() => renew(view)); // a controller of one person's own ends when nobody asks it anything
    }
  } catch (failure) {
    if (mine !== shown || failure.name === "AbortError") {
      return;
    }
    if (failure.status === undefined) {
      throw failure;
    }
    more = heed(failure);
    pause = AGAIN_MS;
  }
  if (more && mine === shown) {
    mine.timer = setTimeout(() => whenSeen(() => renew(view)), pause);
  }
}

/** Once somebody comes back to the page. */
function onReturn(act) {
  document.addEventListener("visibilitychange", () => whenSeen(act), { once: true, signal: shown.stop.signal });
}

/** Nobody looks at a page in the background: it waits. */
function whenSeen(act) {
  if (document.visibilityState === "visible") {
    act();
  } else {
    onReturn(act);
  }
}

/** Uses the code in the address, if there is one. Whoever is signed in already stays so when the code is refused. */
async function useCode() {
  const code = codeOfAddress();
  if (!code) {
    return;
  }
  try {
    await signIn({ code });
  } catch (failure) {
    if (!proof()) {
      askIn(failure.message);
    }
  }
}

async function show() {
  stop();
  say("");
  const mine = shown;
  await useCode();
  if (mine !== shown) {
    return; // another view was asked for, or the code was refused
  }
  if (!proof()) {
    askIn("");
    return;
  }
  leave.hidden = false;
  let address;
  try {
    address = decodeURIComponent(location.hash.slice(1)).split("?")[0];
  } catch {
    address = location.hash.slice(1);
  }
  const view = find(address);
  view.again = () => {
    clearTimeout(shown.timer);
    renew(view);
  };
  crumbs(view.crumbs);
  place.replaceChildren(view.element);
  renew(view);
}

leave.addEventListener("click", async () => {
  await signOut();
  askIn("");
});
addEventListener("hashchange", show);
show();
