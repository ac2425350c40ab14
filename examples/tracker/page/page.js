// The page of the tracker: lists, creates and edits the issues of one project.

const byId = (id) => document.getElementById(id);
const show = (element, isShown) => { element.hidden = !isShown; };

/** What the tracker answered instead of what was asked for. */
class Refusal extends Error {
  constructor(status, body) {
    super(body.error ?? `the tracker answered ${status}`);
    this.status = status;
    this.body = body;
  }
}

async function ask(method, path, body, headers = {}) {
  const json = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } };
  const answer = await fetch(path, { method, ...json });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refusal(answer.status, found);
  return found;
}

/** Runs what a person has asked for: their button waits, and what goes wrong is shown. */
async function attempt(button, place, task) {
  show(place, false);
  if (button) button.disabled = true;
  try {
    await task();
  } catch (error) {
    place.textContent = error instanceof Refusal ? error.message : `The tracker does not answer: ${error.message}`;
    show(place, true);
  } finally {
    if (button) button.disabled = false;
  }
}

// Returns a new key for the header `Idempotency-Key`, so that a request that is sent twice opens one issue.
function newMark() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const failure = byId("failure");
const query = new URLSearchParams(location.search);
const place = { tenant: query.get("tenant"), project: query.get("project") };
const api = () => `/api/tenants/${encodeURIComponent(place.tenant)}/projects/${encodeURIComponent(place.project)}`;

// The list of issues.

let end = null;

function item(issue) {
  const li = byId("issue").content.firstElementChild.cloneNode(true);
  draw(li, issue);
  return li;
}

function draw(li, issue) {
  li.dataset.id = issue.id;
  li.classList.toggle("closed", issue.is_closed);
  li.querySelector(".title").textContent = issue.title;
  const meta = li.querySelector(".meta");
  meta.replaceChildren(...issue.labels.map((name) => Object.assign(document.createElement("b"), { textContent: name })));
  const since = issue.created_at ? new Date(issue.created_at).toLocaleString() : "";
  meta.append(`${since} · version ${issue.version}`);
  li.querySelector("button").onclick = () => attempt(null, failure, () => open(issue.id));
}

const isListed = (issue) => byId("filter").value === "" || byId("filter").value === String(issue.is_closed);

async function load(after) {
  const which = new URLSearchParams({ first: "20" });
  if (byId("filter").value) which.set("is_closed", byId("filter").value);
  if (after) which.set("after", after);
  const page = await ask("GET", `${api()}/issues?${which}`);
  const items = page.edges.map((edge) => item(edge.node));
  if (after) byId("issues").append(...items);
  else byId("issues").replaceChildren(...items);
  end = page.pageInfo.endCursor ?? end;
  show(byId("older"), page.pageInfo.hasNextPage);
  show(byId("empty"), !byId("issues").children.length);
}

byId("filter").onchange = () => attempt(byId("filter"), failure, () => load());
byId("older").onclick = () => attempt(byId("older"), failure, () => load(end));

// The form for a new issue.

let mark = newMark();

byId("create").onsubmit = (event) => {
  event.preventDefault();
  const form = event.target;
  attempt(event.submitter, failure, async () => {
    const asked = { title: form.title.value, body: form.body.value };
    let issue;
    try {
      issue = await ask("POST", `${api()}/issues`, asked, { "idempotency-key": mark });
    } catch (error) {
      // The next attempt keeps the mark if this one may have opened the issue: then the answer is that issue.
      if (error instanceof Refusal && error.status < 500) mark = newMark();
      throw error;
    }
    mark = newMark();
    form.reset();
    if (isListed(issue)) byId("issues").prepend(item(issue));
    show(byId("empty"), !byId("issues").children.length);
  });
};

// The form for an edit, which names the version that was read.

const editor = byId("editor");
const form = byId("edit");
let read = null;
let theirs = null;

function fill(issue) {
  read = issue;
  form.title.value = issue.title;
  form.body.value = issue.body;
  form.is_closed.checked = issue.is_closed;
}

async function open(id) {
  fill(await ask("GET", `${api()}/issues/${encodeURIComponent(id)}`));
  byId("edited").textContent = id;
  show(byId("conflict"), false);
  show(byId("refused"), false);
  editor.showModal();
}

function save(version) {
  attempt(byId("save"), byId("refused"), async () => {
    const edited = { version, title: form.title.value, body: form.body.value, is_closed: form.is_closed.checked };
    try {
      const issue = await ask("PATCH", `${api()}/issues/${encodeURIComponent(read.id)}`, edited);
      const li = [...byId("issues").children].find((it) => it.dataset.id === issue.id);
      if (li && isListed(issue)) draw(li, issue);
      else li?.remove();
      show(byId("empty"), !byId("issues").children.length);
      editor.close();
    } catch (error) {
      if (!(error instanceof Refusal) || !error.body.issue) throw error;
      conflict(error.body);
    }
  });
}

function conflict(found) {
  theirs = found.issue;
  byId("read").textContent = found.read_version;
  byId("found").textContent = found.found_version;
  const rows = [["Title", theirs.title], ["Description", theirs.body || "(none)"], ["State", theirs.is_closed ? "closed" : "open"]];
  byId("theirs").replaceChildren(...rows.flatMap(([name, text]) => [
    Object.assign(document.createElement("dt"), { textContent: name }),
    Object.assign(document.createElement("dd"), { textContent: text }),
  ]));
  show(byId("conflict"), true);
  byId("conflict").scrollIntoView({ block: "nearest" });
}

form.onsubmit = (event) => { event.preventDefault(); save(read.version); };
byId("cancel").onclick = () => editor.close();
byId("take").onclick = () => { fill(theirs); show(byId("conflict"), false); };
byId("keep").onclick = () => { read = theirs; show(byId("conflict"), false); save(theirs.version); };

// The import of a file.

byId("file").onchange = () => attempt(byId("file"), failure, async () => {
  const file = byId("file").files[0];
  if (!file) return;
  const status = byId("import");
  const [bar, text] = [status.querySelector("progress"), status.querySelector("span")];
  const type = file.name.endsWith(".json") ? "application/json" : "text/csv";
  bar.removeAttribute("value");
  text.textContent = "sending";
  show(status, true);
  try {
    const answer = await fetch(`${api()}/imports`, { method: "POST", body: file, headers: { "content-type": type } });
    let found = await answer.json();
    if (!answer.ok) throw new Refusal(answer.status, found);
    while (found.state === "running") {
      await new Promise((done) => setTimeout(done, 200));
      found = await ask("GET", `${api()}/imports/${encodeURIComponent(found.id)}`);
      if (found.rows_to_send) [bar.max, bar.value] = [found.rows_to_send, found.rows_sent];
      text.textContent = `${found.rows_sent} of ${found.rows_to_send || "?"} rows`;
    }
    if (found.state === "failed") throw new Refusal(500, found);
    text.textContent = `${found.added} issues imported, ${found.known} were there already`;
    await load();
  } catch (error) {
    show(status, false);
    throw error;
  } finally {
    byId("file").value = "";
  }
});

// The form for a new tenant and project.

byId("start").onsubmit = (event) => {
  event.preventDefault();
  const names = event.target;
  attempt(event.submitter, failure, async () => {
    const tenant = await ask("POST", "/api/tenants", { name: names.tenant.value });
    const project = await ask("POST", `/api/tenants/${tenant.id}/projects`, { name: names.project.value });
    localStorage.setItem("place", JSON.stringify({ tenant: tenant.id, project: project.id }));
    location.search = new URLSearchParams({ tenant: tenant.id, project: project.id });
  });
};

function remembered() {
  try {
    return JSON.parse(localStorage.getItem("place"));
  } catch {
    return null;
  }
}

attempt(null, failure, async () => {
  if (!place.tenant || !place.project) {
    const last = query.has("new") ? null : remembered();
    if (last) location.search = new URLSearchParams(last);
    else show(byId("start"), true);
    return;
  }
  const [tenant, project] = await Promise.all([
    ask("GET", `/api/tenants/${encodeURIComponent(place.tenant)}`),
    ask("GET", api()),
  ]);
  byId("place").textContent = `${tenant.name} / ${project.name}`;
  document.title = `${project.name} · tracker`;
  show(byId("project"), true);
  await load();
});
