// What the pages do beside showing: charts, the calendar as a form, and the same /v1 calls that a script makes.
"use strict";

const $ = (selector, within = document) => within.querySelector(selector);
const MBIT = 1e6;

// An element with text in it; whatever is answered goes in as text, never as markup.
function made(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// Stale data.

const screen = $("#screen");
let lastNews = Date.now();
let asked = 0;

function newsAt(at) {
  return new Date(at).toISOString().slice(11, 19);
}

async function watchStale() {
  const staleMs = Number(screen.dataset.staleS) * 1000;
  const isStale = Date.now() - lastNews > staleMs;
  const said = $("#stale");
  if (isStale === said.hidden) {
    said.textContent = isStale ? `No news since ${newsAt(lastNews)} UTC: the controller does not answer.` : "";
    said.hidden = !isStale;
    if (!isStale) loadCharts(); // a controller that was started again has samples of its own
  }
  document.body.classList.toggle("stale", isStale);
  if (isStale && Date.now() - asked > staleMs) { // a token that has ended is another matter than a controller that is down
    asked = Date.now();
    try {
      if ((await fetch("/series")).status === 401) location.assign("/login");
    } catch { /* it does not answer: that is said already */ }
  }
}

// Charts: one for each class on each direction of a circuit, of the same unit.

const charts = new Map();
let dragging = false;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const inMbit = (values) => values.map((bps) => (bps === null ? null : bps / MBIT));

// Minutes, or seconds while there are only a few minutes.
function moments(plot, splits) {
  const { min, max } = plot.scales.x;
  return splits.map((s) => newsAt(s * 1000).slice(max - min > 400 ? 0 : 3, max - min > 400 ? 5 : 8));
}

function chart(one, at) {
  const figure = made("figure");
  const caption = made("figcaption", `${one.circuit} from ${one.from}, ${one.class}: `);
  const now = made("span");
  caption.append(now);
  figure.append(caption);
  $("#series").append(figure);
  const text = colour("--text");
  const axis = { stroke: text, font: "12px system-ui", grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const options = {
    width: figure.clientWidth || 260, height: 130, legend: { show: false }, cursor: { show: false },
    scales: { y: { range: (_, least, most) => [0, Math.max(1, most || 0) * 1.1] } },
    axes: [{ ...axis, size: 24, values: moments }, { ...axis, size: 48 }],
    series: [
      {},
      { label: "planned", stroke: text, width: 1, dash: [6, 4], points: { show: false } },
      { label: "delivered", stroke: colour("--flow"), width: 2, points: { show: false } },
    ],
  };
  const data = [[...at], inMbit(one.planned_bps), inMbit(one.delivered_bps)];
  const plot = new uPlot(options, data, figure);
  $("canvas", figure).setAttribute("aria-hidden", "true");
  const drawn = { plot, data, now, figure };
  say(drawn);
  return drawn;
}

function say({ data, now }) {
  const [planned, delivered] = [data[1].at(-1), data[2].at(-1)];
  const isNone = (value) => value === null || value === undefined;
  const words = isNone(delivered) ? "nobody says what is delivered" : `delivered ${delivered.toFixed(1)}`;
  now.textContent = isNone(planned) ? "nothing is planned now" : `planned ${planned.toFixed(1)}, ${words}`;
}

async function loadCharts() {
  const answer = await fetch("/series");
  if (!answer.ok) return;
  const { at, series } = await answer.json();
  for (const { plot } of charts.values()) plot.destroy();
  charts.clear();
  $("#series").replaceChildren();
  for (const one of series) charts.set(one.name, chart(one, at));
  if (!series.length) $("#series").append(made("p", "Nothing is planned on a circuit."));
}

function addSample(text) {
  const { at, values } = JSON.parse(text);
  if (Object.keys(values).some((name) => !charts.has(name)) && charts.size < 12) {
    loadCharts();
    return;
  }
  for (const [name, drawn] of charts) {
    const [planned, delivered] = values[name] ?? [null, null];
    const row = [at, planned === null ? null : planned / MBIT, delivered === null ? null : delivered / MBIT];
    if (drawn.data[0].at(-1) >= at) continue;
    drawn.data.forEach((list, k) => { list.push(row[k]); if (list.length > 900) list.shift(); });
    drawn.plot.setData(drawn.data);
    say(drawn);
  }
}

// Requests: the same that a script makes, shown as curl.

function curl(method, path, body, version) {
  const parts = [`curl${method === "GET" ? "" : ` -X ${method}`} -H "Authorization: Bearer $TOKEN"`];
  if (version) parts.push(`-H 'If-Match: "${version}"'`);
  if (body) parts.push(`-H "Content-Type: application/json" -d '${JSON.stringify(body)}'`);
  return [...parts, location.origin + path].join(" ");
}

async function ask(method, path, body, version) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  if (version) headers["If-Match"] = `"${version}"`;
  const shown = $("#answer");
  shown.replaceChildren();
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body ? JSON.stringify(body) : undefined });
  } catch (fault) {
    shown.append(made("p", `No answer: ${fault.message}. Ask again; a hold is not made twice by chance, look at the calendar first.`));
    return null;
  }
  const text = await answer.text();
  const said = text ? JSON.parse(text) : {};
  if (!answer.ok) shown.append(made("p", `${answer.status}: ${said.detail ?? said.title ?? ""}`));
  const line = made("p", "The same for a script: ");
  line.append(made("code", curl(method, path, body, version)));
  shown.append(line);
  return { ok: answer.ok, status: answer.status, said };
}

// Reserve: the calendar is the form.

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
    showOffers(got.said, ({ start, ...offered }) => change(form, hasStart ? { start, ...offered } : offered));
    return;
  }
  const { rate_bps: bps, start, end, version: now } = got.said;
  form.dataset.version = now;
  for (const button of document.querySelectorAll("[data-act]")) button.dataset.version = now;
  for (const field of form.elements) if (field.name) field.defaultValue = field.value;
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
    const shape = { class: "picked", x: (left - box.left) * scale, y: 34, width: (right - left) * scale, height: 60 };
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
}

// What there is on this page.

if (screen) {
  document.body.addEventListener("htmx:sseBeforeMessage", (event) => {
    if (event.detail.type === "tonight" && dragging) event.preventDefault(); // not under somebody's finger
  });
  document.body.addEventListener("htmx:sseMessage", (event) => {
    const { type, data } = event.detail;
    if (type === "tick") lastNews = Date.now();
    if (type === "sample") addSample(data);
  });
  setInterval(watchStale, 1000);
  loadCharts();
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

// What a page shows of a thing, as it is after a change.
async function showAnew(selector) {
  const answer = await fetch(location.pathname);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [now, before] = [$(selector, page), $(selector)];
  if (answer.ok && now && before) before.replaceWith(document.adoptNode(now));
}

// Maintenance: what it breaks is said first, and only then there is a button that plans it.
async function maintain(body) {
  const got = await ask("POST", "/v1/maintenance", body);
  if (!got?.ok) return;
  const { planned, breaks, beside } = got.said;
  for (const other of beside) {
    const words = other.description || other.id;
    $("#answer").prepend(made("p", `Beside another, ${other.start} to ${other.end} (${words}): nothing goes by until both are over.`));
  }
  for (const { id, why, instead } of breaks.toReversed()) {
    const line = made("p", `${planned ? "Breaks" : "Would break"} `);
    line.append(made("a", id, { href: `/reservations/${encodeURIComponent(id)}` }), `: ${why}${instead ? `; instead: ${instead}` : ""}`);
    $("#answer").prepend(line);
  }
  if (planned) {
    $("#answer").prepend(made("p", "It is planned."));
    showAnew("#planned");
    return;
  }
  const button = made("button", breaks.length ? `Plan it, and break ${breaks.length}` : "Plan it", { type: "button", id: "plan-it" });
  button.addEventListener("click", () => maintain({ ...body, only_look: false, force: breaks.length > 0 }));
  $("#answer").prepend(button);
}

$("#maintain")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const { start, end, description } = Object.fromEntries(new FormData(event.target));
  maintain({ circuit: event.target.dataset.circuit, start, end, description, only_look: true });
});

// What a circuit's death would break: worked out beside the controller, which changes nothing.
function broken({ kind, id, why, promised, done, lacks_s: lacks }, begin) {
  const when = kind === "reservation" ? `is not carried for ${lacks >= 60 ? `${Math.round(lacks / 60)} min` : `${lacks.toFixed(1)} s`}, until ${promised} at most`
    : `promised by ${promised}, done ${done ?? "not at all"}`;
  const line = made("p", `${begin} ${kind} `);
  line.append(made("a", id, { href: `/${kind}s/${encodeURIComponent(id)}` }), `: ${when}: ${why}`);
  return line;
}

$("#what-if")?.addEventListener("click", async ({ target: button }) => {
  button.disabled = true;
  const answer = $("#answer");
  answer.replaceChildren(made("p", "It is being worked out, a minute at most."));
  const got = await ask("GET", button.dataset.path);
  button.disabled = false;
  if (!got?.ok) return;
  const { at, until, unlike, breaks, anyway } = got.said;
  const lines = [made("p", breaks.length ? `If it dies at ${at} and stays dead, ${breaks.length === 1 ? "1 promise breaks" : `${breaks.length} promises break`}:`
    : `If it dies at ${at} and stays dead, no promise breaks until ${until}.`)];
  lines.push(...breaks.map((one) => broken(one, "Breaks")), ...anyway.map((one) => broken(one, "Breaks anyway:")));
  lines.push(...unlike.map((words) => made("p", `Note: ${words}.`, { class: "hint" })));
  answer.prepend(...lines);
});

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-act]");
  if (!button) return;
  const { act, path, version, what, means } = button.dataset;
  const gives = act === "release" || act === "take-back";
  if (gives && !confirm(`${act === "release" ? "Release" : "Take back"} ${what}? ${means}`)) return;
  const got = await ask(gives ? "DELETE" : "POST", path, undefined, act === "release" && Number(version) ? version : undefined);
  if (!got?.ok) return;
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
    location.assign(/^\/(?![/\\])/.test(to) ? to : "/"); // never to another machine
  } else {
    $("#answer").textContent = (await answer.json()).detail;
  }
});

$("#log-out")?.addEventListener("click", async () => {
  await fetch("/session", { method: "DELETE" });
  location.assign("/"); // where the login is, if nobody may look
});

for (const place of document.querySelectorAll("[data-origin]")) place.textContent = location.origin;
