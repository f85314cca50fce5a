// What the pages do beside showing, by subject; here what several have, and the login.
import "./circuit.js";
import "./follow.js";
import "./live.js";
import "./reserve.js";
import { $, ask, made, seen, showAnew } from "./ask.js";

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-act]");
  if (!button) return;
  const { act, path, version, what, means } = button.dataset;
  const gives = act === "release" || act === "take-back";
  if (gives && !confirm(`${act === "release" ? "Release" : "Take back"} ${what}? ${means}`)) return;
  const got = await ask(gives ? "DELETE" : "POST", path, undefined, act === "release" && Number(version) ? version : undefined);
  if (!got?.ok) return;
  if (got.said.version) seen(got.said.version);
  $("#answer").prepend(made("p", `Done: ${act === "take-back" ? "it is taken back" : got.said.state ?? "released"}.`));
  if (act === "take-back") showAnew("#planned");
});

$("#log-in")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = event.target.elements.token.value.trim();
  const answer = await fetch("/session", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }),
  });
  if (answer.ok) {
    const to = new URLSearchParams(location.search).get("to") ?? "/";
    location.assign(/^\/(?![/\\\s])/.test(to) ? to : "/"); // never to another machine
  } else {
    $("#answer").textContent = (await answer.json()).detail;
  }
});

$("#log-out")?.addEventListener("click", async () => {
  await fetch("/session", { method: "DELETE" });
  location.assign("/"); // where the login is, if nobody may look
});

for (const place of document.querySelectorAll("[data-origin]")) place.textContent = location.origin;
