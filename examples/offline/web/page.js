// A page that writes notes, with or without a server. A note has its key from the moment it is written, so that it can
// be shown, referred to and sent any number of times.
//
// localStorage has what all tabs share:
//   note_01k...           a note that the server has not acknowledged
//   refused note_01k...   a note that the server refuses, with its reason
//   ahead                 what the server's clock is ahead of this machine's, in milliseconds

import init, { newNoteId, setClockAhead, timeOf } from "/keys/offline_page.js";

const $ = (id) => document.getElementById(id);
const named = (prefix) => Object.keys(localStorage).filter((key) => key.startsWith(prefix)).sort();
const waiting = () => named("note_");

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const answer = await fetch(path, { cache: "no-store", ...options });
  const json = await answer.json();
  return { ok: answer.ok, status: answer.status, json };
}

// Keys are ordered by their times, and the clocks of people's machines are wrong. The server read its clock at some time
// between question and answer. So what is known already stays, unless this answer contradicts it.
async function setClock() {
  const asked = Date.now();
  const { json } = await ask("/api/time");
  const answered = Date.now();
  const ahead = json.unixMillis - (asked + answered) / 2;
  const known = Number(localStorage.getItem("ahead"));
  if (Math.abs(ahead - known) > (answered - asked) / 2 + 1) localStorage.setItem("ahead", ahead);
  setClockAhead(Number(localStorage.getItem("ahead")));
}

function item(id, text) {
  const li = document.createElement("li");
  li.append(text);
  const small = document.createElement("small");
  small.textContent = `${id}, ${new Date(timeOf(id)).toISOString()}`;
  li.append(small);
  return li;
}

function show(stored) {
  $("waiting").replaceChildren(...waiting().map((id) => item(id, localStorage.getItem(id))));
  $("refused").replaceChildren(...named("refused ").map((name) => {
    const { text, error } = JSON.parse(localStorage.getItem(name));
    const li = item(name.slice("refused ".length), text);
    li.append(`The server refuses it: ${error}.`);
    return li;
  }));
  if (stored) $("stored").replaceChildren(...stored.reverse().map(({ id, text }) => item(id, text)));
}

export function write(text) {
  const id = newNoteId();
  localStorage.setItem(id, text);
  return id;
}

// The server refuses this note, and keeps none of those that were sent with it.
function setAside({ id, text }, error) {
  localStorage.setItem(`refused ${id}`, JSON.stringify({ text, error }));
  localStorage.removeItem(id);
}

// Two tabs may send the same note. The server leaves alone what it has.
async function sendAll() {
  let most = 500;
  for (let ids = waiting(); ids.length > 0; ids = waiting()) {
    const notes = ids.slice(0, most).map((id) => ({ id, text: localStorage.getItem(id) }))
      // Another tab may have sent it since the list was made.
      .filter(({ text }) => text !== null);
    const { ok, status, json } = await ask("/api/notes", notes);
    if (ok) {
      notes.forEach(({ id }) => localStorage.removeItem(id));
    } else if (status >= 500) {
      throw new Error(json.error);
    } else {
      // The others need not wait for it. If the server does not say which one it is, each goes by itself.
      const one = notes.length === 1 ? notes[0] : notes.find(({ id }) => id === json.id);
      if (one) setAside(one, json.error);
      else most = 1;
    }
  }
}

let sending = null;
function send() {
  sending ??= work().finally(() => { sending = null; });
  return sending;
}

async function work() {
  try {
    await setClock();
    await sendAll();
    const { ok, json } = await ask("/api/notes");
    if (!ok) throw new Error(json.error);
    show(json);
    $("state").textContent = "The server answers.";
  } catch (error) {
    show();
    $("state").textContent = error instanceof TypeError
      ? "No server. Notes are kept here, and are sent when it answers."
      : `The server takes no notes now: ${error.message}`;
  }
}

await init();
setClockAhead(Number(localStorage.getItem("ahead")));
$("write").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = event.target.elements.text;
  write(field.value);
  field.value = "";
  show();
  send();
});
addEventListener("online", send);
addEventListener("storage", () => {
  setClockAhead(Number(localStorage.getItem("ahead")));
  show();
});
setInterval(send, 2000);
// Keeps the page itself, so that it opens without a server.
await navigator.serviceWorker?.register("/worker.js");
await send();
document.documentElement.dataset.ready = "yes";
