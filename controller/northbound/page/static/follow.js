// Of a pair of controllers: goes to the one that leads, from one that stands by or does not answer any more.
// Only to addresses that this controller's own configuration names: whoever can write the database can name another one
// as the leader's, whose page could ask for a token. Nothing is shown there that says who looks.
import { $ } from "./ask.js";

const EVERY_MS = 3000; // longer than a change of leaders takes
const screen = $("#screen");
const others = (screen?.dataset.others ?? "").split(" ").filter(Boolean);

// Asks for the one file that another origin's page may load; it says nothing of the site.
async function isThere(address) {
  try {
    await fetch(`${address}/static/any/icon.svg`, {
      mode: "no-cors", credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(2000),
    });
    return true;
  } catch {
    return false;
  }
}

async function follow() {
  if (document.activeElement?.closest("form")) return; // somebody is filling it in
  const leader = $("#leader")?.getAttribute("href");
  const wanted = document.body.classList.contains("stale") ? others : others.filter((other) => other === leader);
  for (const address of wanted) {
    if (await isThere(address)) {
      location.replace(address + location.pathname + location.search);
      return;
    }
  }
}

if (others.length) setInterval(follow, EVERY_MS);
