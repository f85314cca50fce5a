// The same /v1 calls that a script makes, each shown as curl; and how elements are found and made.

export const $ = (selector, within = document) => within.querySelector(selector);
export const MBIT = 1e6;

// An element with text in it; whatever is answered goes in as text, never as markup.
export function made(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function curl(method, path, body, version) {
  const parts = [`curl${method === "GET" ? "" : ` -X ${method}`} -H "Authorization: Bearer $TOKEN"`];
  if (version) parts.push(`-H 'If-Match: "${version}"'`);
  if (body) parts.push(`-H "Content-Type: application/json" -d '${JSON.stringify(body).replaceAll("'", String.raw`'\''`)}'`);
  return [...parts, location.origin + path].join(" ");
}

export async function ask(method, path, body, version) {
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
  let said = {};
  try {
    said = text ? JSON.parse(text) : {};
  } catch { // what stands before the controller has answered in its place
    shown.append(made("p", `${answer.status}: not the controller's answer. Whether it was done is not known: look before you ask again.`));
    return null;
  }
  if (!answer.ok) shown.append(made("p", `${answer.status}: ${said.detail ?? said.title ?? ""}`));
  const line = made("p", "The same for a script: ");
  line.append(made("code", curl(method, path, body, version)));
  shown.append(line);
  return { ok: answer.ok, status: answer.status, said };
}

// Whatever is asked next of the thing that a page is about goes by this version of it.
export function seen(version) {
  for (const one of document.querySelectorAll("[data-version]")) one.dataset.version = version;
}

// What a page shows of a thing, as it is after a change.
export async function showAnew(selector) {
  const answer = await fetch(location.pathname);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [now, before] = [$(selector, page), $(selector)];
  if (answer.ok && now && before) before.replaceWith(document.adoptNode(now));
}
