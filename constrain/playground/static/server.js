// What the page asks its server. A key, if the server wants one, is kept in this variable and nowhere else.

import { find } from "./dom.js";

let key = "";
let asking = null;

export class ServerError extends Error {
  constructor(status, error) {
    super(error?.message ?? `the server answered ${status}`);
    this.status = status;
    this.place = error?.param ?? "";
    this.code = error?.code ?? "";
  }
}

/** Send a request, and return the answer to it as a Response. Throws ServerError for one that is refused. */
async function send(path, body, signal) {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  if (body) headers["content-type"] = "application/json";
  const response = await fetch(`/playground/${path}`, {
    method: body ? "POST" : "GET", headers, body: body ? JSON.stringify(body) : undefined, signal,
  });
  if (response.ok) return response;
  if (response.status === 401 && (await askForKey())) return send(path, body, signal);
  const answer = await response.json().catch(() => null);
  throw new ServerError(response.status, answer?.error);
}

/** Ask for a key; several requests share one question. Resolves to false if none is given. */
function askForKey() {
  asking ??= new Promise((resolve) => {
    const dialog = find("key-dialog");
    dialog.returnValue = "";
    dialog.addEventListener("close", () => {
      const given = dialog.returnValue === "ok" ? find("key").value.trim() : "";
      find("key").value = "";
      if (given) key = given;
      asking = null;
      resolve(Boolean(given));
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

export const read = async (path, signal) => (await send(path, null, signal)).json();
export const ask = async (path, body, signal) => (await send(path, body, signal)).json();

/** Yield the events of a stream as objects. Throws ServerError for an event that is an error. */
export async function* follow(path, body, signal) {
  const response = await send(path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (waiting + value).split("\n\n");
    waiting = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").find((line) => line.startsWith("data: "))?.slice(6);
      if (!data || data === "[DONE]") continue;
      const event = JSON.parse(data);
      if (event.error) throw new ServerError(response.status, event.error);
      yield event;
    }
  }
}
