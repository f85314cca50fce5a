// What the screen follows: when there was news last, and the charts, drawn on as samples come.
import { $, MBIT, made } from "./ask.js";

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
    width: figure.clientWidth || 190, height: 84, legend: { show: false }, cursor: { show: false },
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

if (screen) {
  document.body.addEventListener("htmx:sseMessage", (event) => {
    const { type, data } = event.detail;
    if (type === "tick") lastNews = Date.now();
    if (type === "sample") addSample(data);
  });
  setInterval(watchStale, 1000);
  loadCharts();
}
