// Refreshes the part of a page that is marked with data-live, and selects all entries of a list. Every page works without it.
"use strict";

const seconds = Number(document.querySelector("[data-live]")?.dataset.live);

// Fetches the whole page and replaces only its live part, so that focus and scroll position stay.
async function refresh() {
  if (document.hidden) return;
  const old = document.querySelector("[data-live]");
  try {
    const answer = await fetch(location.origin + location.pathname + location.search, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const live = page.querySelector("[data-live]");
    if (live) replace(old, live);
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

const all = document.querySelector("[data-all]");
if (all) {
  const boxes = () => [...document.querySelectorAll(`input[name="${all.dataset.all}"]`)];
  all.closest("[hidden]")?.removeAttribute("hidden");
  all.addEventListener("change", () => boxes().forEach((box) => { box.checked = all.checked; }));
}
