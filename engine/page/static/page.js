// Refreshes the part of a page that is marked with data-live, also while a filter is typed, selects all entries of a list, loads the part that is
// marked with data-load, and shows what a search finds. Every page works without it.
"use strict";

const seconds = Number(document.querySelector("[data-live]")?.dataset.live);

// Fetches the whole page and replaces only its live part, so that focus and scroll position stay.
async function refresh() {
  const old = document.querySelector("[data-live]");
  if (document.hidden || old.dataset.live === "0") return;
  const asked = location.search;
  try {
    // Not a relative address: the page's own may have a login in it, which `fetch` refuses.
    const answer = await fetch(location.origin + location.pathname + location.search, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.statusText);
    if (asked !== location.search) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const live = page.querySelector("[data-live]");
    if (live) replace(old, live);
    if (live?.dataset.live === "0") old.dataset.live = "0";
    const foot = page.querySelector(".foot");
    if (foot) document.querySelector(".foot").replaceChildren(...foot.childNodes);
    document.body.classList.remove("lost");
  } catch {
    // The bridge has ended or the network is down: the page fades, because its figures are old.
    document.body.classList.add("lost");
  }
}

function replace(old, live) {
  const focused = old.contains(document.activeElement) && keyOf(document.activeElement);
  const opened = [...old.querySelectorAll("details[open]")].map((each) => each.id);
  const lefts = [...old.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
  old.replaceChildren(...live.childNodes);
  opened.forEach((id) => { const each = document.getElementById(id); if (each) each.open = true; });
  old.querySelectorAll(".scroll").forEach((each, number) => { each.scrollLeft = lefts[number] ?? 0; });
  const again = focused && [...old.querySelectorAll("a, [tabindex]")].find((each) => keyOf(each) === focused);
  if (again) again.focus({ preventScroll: true });
}

// Key by which an element of the old page is found in the new one.
function keyOf(element) {
  return `${element.closest("svg, table, dl")?.tagName} ${element.getAttribute("href") ?? element.className}`;
}

if (seconds) setInterval(refresh, seconds * 1000);
document.addEventListener("visibilitychange", () => { if (seconds) refresh(); });

// A filter acts while it is typed: it becomes the page's address, whose live part is then fetched.
const typed = document.querySelector("form[data-typed]");
if (typed) {
  let pause;
  typed.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      history.replaceState(null, "", "?" + new URLSearchParams(new FormData(typed)));
      refresh();
    }, 200);
  });
}

const all = document.querySelector("[data-all]");
if (all) {
  const boxes = () => [...document.querySelectorAll(`input[name="${all.dataset.all}"]`)];
  all.closest("[hidden]")?.removeAttribute("hidden");
  all.addEventListener("change", () => boxes().forEach((box) => { box.checked = all.checked; }));
}

// A part that takes long to make, such as a timeline, is a page of its own, of which the same part is taken.
const later = document.querySelector("[data-load]:not([data-load=''])");
if (later) {
  fetch(location.origin + later.dataset.load, { headers: { Accept: "text/html" } }).then((answer) => answer.text()).then((text) => {
    const part = new DOMParser().parseFromString(text, "text/html").querySelector("[data-load]");
    if (part) later.replaceChildren(...part.childNodes);
  }).catch(() => {});
}

const search = document.querySelector("[data-find]");
if (search) {
  const part = (name) => search.querySelector(name);
  const [bar, said, fault, table] = [part("progress"), part("[data-said]"), part("[data-fault]"), part("table")];
  const [cancel, proceed] = [part("[data-cancel]"), part("[data-continue]")];
  let resume = null;
  let stop = null;

  async function run() {
    stop = new AbortController();
    cancel.hidden = false;
    proceed.hidden = fault.hidden = true;
    let done = false;
    let ended = "The connection was lost before the search was complete.";
    try {
      const url = location.origin + search.dataset.find + (resume ? "&resume=" + encodeURIComponent(resume) : "");
      const answer = await fetch(url, { signal: stop.signal });
      for await (const line of lines(answer.body)) {
        if (line.error) ended = line.error;
        if (line.row) add(line.row);
        if (!line.progress) continue;
        bar.max = line.progress.total || 1;
        bar.value = line.progress.total ? line.progress.read : 1;
        said.textContent = [line.progress.text, ...line.progress.notes].join("; ");
        resume = line.progress.resume;
        done = line.progress.done;
        ended = done || resume ? "" : ended;
      }
    } catch {
      if (stop.signal.aborted) ended = "The search was cancelled before it was complete.";
    }
    cancel.hidden = true;
    if (done) said.textContent += ". Everything was read.";
    else if (ended) { fault.textContent = ended; fault.hidden = false; }
    proceed.hidden = done || !resume;
  }

  // The server makes the rows, with everything in them escaped.
  function add(row) {
    const body = table.tBodies[0];
    body.insertAdjacentHTML("beforeend", row);
    table.hidden = false;
  }

  cancel.addEventListener("click", () => stop.abort());
  proceed.addEventListener("click", run);
  addEventListener("pagehide", () => stop?.abort());
  run();
}

async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const parts = (rest + (value ?? "")).split("\n");
    rest = parts.pop();
    for (const text of parts) if (text) yield JSON.parse(text);
    if (done) break;
  }
  if (rest) yield JSON.parse(rest);
}
