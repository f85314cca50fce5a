// Reserve and change: the calendar is the form, and what is refused comes with offers.
import { $, MBIT, ask, made, seen } from "./ask.js";

function wanted(form) {
  return Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
}

async function reserve(body) {
  const got = await ask("POST", "/v1/reservations", body);
  if (got === null) return;
  const shown = $("#answer");
  if (got.ok) {
    const { id, state, rate_bps: bps, start, end } = got.said;
    const line = made("p", `${state}: ${bps / MBIT} Mbit/s, ${start} to ${end}: `);
    line.append(made("a", id, { href: `/reservations/${encodeURIComponent(id)}` }));
    shown.prepend(line);
    if (state === "held") {
      const button = made("button", "Commit", { type: "button", id: "commit" });
      button.addEventListener("click", async () => {
        const done = await ask("POST", `/v1/reservations/${encodeURIComponent(id)}/commit`);
        if (done?.ok) $("#answer").prepend(made("p", `${done.said.state}: ${id}`));
      });
      line.append(" ", button);
    }
  }
  sayLeft();
  const { rate: _rate, ...rest } = body;
  showOffers(got.said, (offered) => reserve({ ...rest, ...offered }));
}

// What would be granted instead, each with a button that takes it.
function showOffers(said, take) {
  for (const offer of said.offers ?? []) {
    const { kind, rate_bps: bps, start, end, class: flowClass, circuits } = offer;
    const words = `${kind}: ${bps / MBIT} Mbit/s ${flowClass}, ${start} to ${end}, by ${circuits.join(", ")}`;
    const button = made("button", `Take: ${words}`, { type: "button", class: "offer" });
    button.addEventListener("click", () => take({ class: flowClass, rate_bps: bps, start, end }));
    const line = made("p");
    line.append(button);
    $("#answer").append(line);
  }
}

// Change: what differs from what was seen, and only if nobody has changed it since.
async function change(form, body) {
  const { path, version } = form.dataset;
  const got = await ask("PATCH", path, body, version);
  if (got === null) return;
  if (!got.ok) {
    const hasStart = "start" in form.elements; // it may not be moved once it has begun
    const { rate: _rate, ...rest } = body;
    showOffers(got.said, ({ start, ...offered }) => change(form, { ...rest, ...(hasStart && { start }), ...offered }));
    return;
  }
  const { rate_bps: bps, start, end, description, version: now } = got.said;
  seen(now);
  const is = { rate: `${bps / MBIT} Mbit/s`, start, end, description: description ?? "" };
  for (const field of form.elements) if (field.name) field.value = field.defaultValue = is[field.name];
  $("#answer").prepend(made("p", `Changed: ${bps / MBIT} Mbit/s, ${start} to ${end}.`));
}

async function sayFree(form) {
  const { from, to, class: flowClass, start, end } = Object.fromEntries(new FormData(form));
  const free = $("#free");
  if (!start || !end || from === to) return;
  const query = new URLSearchParams({ from, to, class: flowClass, start, end });
  const answer = await fetch(`/v1/availability?${query}`);
  if (!answer.ok) {
    free.textContent = (await answer.json()).detail ?? "";
    return;
  }
  const { paths } = await answer.json();
  free.textContent = paths.map((way) => `${way.circuits.join(", ")}: ${way.most_bps / MBIT} Mbit/s free all the time`).join("; ");
}

// What is left of the quotas of whoever looks; nothing is said where there is none.
async function sayLeft() {
  const answer = await fetch("/v1/whoami");
  if (!answer.ok) return;
  const said = [];
  for (const { owner, left } of (await answer.json()).owners) {
    const words = [];
    if (typeof left?.rate_bps === "number") words.push(`${left.rate_bps / MBIT} Mbit/s`);
    if (typeof left?.bytes === "number") words.push(`${left.bytes / 1e9} GB announced`);
    if (typeof left?.entries === "number") words.push(`${left.entries} promises`);
    if (typeof left?.ahead_s === "number") words.push(`${left.ahead_s / 86400} days ahead`);
    if (words.length) said.push(`${owner} has left: ${words.join(", ")}`);
  }
  $("#left").textContent = said.join("; ");
}

const SNAP_MS = 15 * 60 * 1000;
let dragging = false;

function timeAt(svg, clientX) {
  const box = svg.getBoundingClientRect();
  const [start, end] = [Number(svg.dataset.start) / 1000, Number(svg.dataset.end) / 1000];
  const view = svg.viewBox.baseVal.width;
  const part = ((clientX - box.left) / box.width * view - 8) / (view - 16);
  return Math.round((start + Math.min(1, Math.max(0, part)) * (end - start)) / SNAP_MS) * SNAP_MS;
}

function dragSpan(form) {
  const tonight = $("#tonight");
  let svg = null, from = 0, picked = null;
  tonight.addEventListener("dragstart", (event) => event.preventDefault());
  tonight.addEventListener("pointerdown", (event) => {
    svg = event.target.closest("svg.calendar");
    if (!svg || event.button !== 0) { svg = null; return; }
    from = event.clientX;
  });
  tonight.addEventListener("pointermove", (event) => {
    if (!svg || (!dragging && Math.abs(event.clientX - from) < 4)) return;
    dragging = true;
    picked?.remove();
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const [left, right] = [from, event.clientX].sort((a, b) => a - b);
    picked = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const free = $("rect.free", svg).attributes;
    const [y, height] = [free.y.value, free.height.value];
    const shape = { class: "picked", x: (left - box.left) * scale, y, width: (right - left) * scale, height };
    for (const [name, value] of Object.entries(shape)) picked.setAttribute(name, value);
    svg.append(picked);
  });
  document.addEventListener("pointerup", (event) => {
    if (svg && dragging) {
      const [start, end] = [timeAt(svg, from), timeAt(svg, event.clientX)].sort((a, b) => a - b);
      const shown = (ms) => new Date(ms).toISOString().replace(".000Z", "Z");
      form.elements.start.value = shown(Math.max(start, Date.now() + 60000));
      form.elements.end.value = shown(Math.max(end, start + SNAP_MS));
      form.scrollIntoView({ block: "nearest" });
      sayFree(form);
      tonight.addEventListener("click", (click) => click.preventDefault(), { once: true, capture: true });
      setTimeout(() => { dragging = false; }, 0);
    }
    svg = null;
  });
  document.addEventListener("pointercancel", () => { // the finger scrolls: it picks nothing
    picked?.remove();
    svg = null;
    dragging = false;
  });
}

const form = $("#reserve");
if (form) {
  dragSpan(form);
  sayLeft();
  form.addEventListener("change", () => sayFree(form));
  form.addEventListener("submit", (event) => { event.preventDefault(); reserve(wanted(form)); });
}

$("#change")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const changed = [...event.target.elements].filter((field) => field.name && field.value !== field.defaultValue);
  if (changed.length) change(event.target, Object.fromEntries(changed.map((field) => [field.name, field.value])));
  else $("#answer").replaceChildren(made("p", "Nothing is different."));
});

// A calendar is not drawn anew under somebody's finger.
document.body.addEventListener("htmx:sseBeforeMessage", (event) => {
  if (event.detail.type === "tonight" && dragging) event.preventDefault();
});
