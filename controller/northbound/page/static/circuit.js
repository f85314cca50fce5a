// What is done on the page of a circuit: plan maintenance, and ask what its death would break.
import { $, ask, made, showAnew } from "./ask.js";

// Maintenance: what it breaks is said first, and only then there is a button that plans it.
async function maintain(body) {
  const got = await ask("POST", "/v1/maintenance", body);
  if (!got?.ok) return;
  const { planned, breaks, beside } = got.said;
  for (const other of beside) {
    const words = other.description || other.id;
    $("#answer").prepend(made("p", `Beside another, ${other.start} to ${other.end} (${words}): nothing goes by until both are over.`));
  }
  for (const { id, why, until, instead } of breaks.toReversed()) {
    const line = made("p", `${planned ? "Breaks" : "Would break"} `);
    line.append(made("a", id, { href: `/reservations/${encodeURIComponent(id)}` }), `: ${why}${until ? `; it goes on at ${until}` : ""}${instead ? `; instead: ${instead}` : ""}`);
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
function broken({ kind, id, why, promised, done, lacks_s: lacks }, begin, until) {
  const when = kind === "reservation" ? `is not carried for ${lacks >= 60 ? `${Math.round(lacks / 60)} min` : `${lacks.toFixed(1)} s`}, until ${promised} at most`
    : `promised by ${promised}, ${done ? `done ${done}` : `not done by ${until}`}`;
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
  lines.push(...breaks.map((one) => broken(one, "Breaks", until)), ...anyway.map((one) => broken(one, "Breaks anyway:", until)));
  lines.push(...unlike.map((words) => made("p", `Note: ${words}.`, { class: "hint" })));
  answer.prepend(...lines);
});
