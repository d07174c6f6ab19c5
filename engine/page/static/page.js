// Makes pages live that say so, and helps with long lists. Every page works without it.
"use strict";

const seconds = Number(document.querySelector("[data-live]")?.dataset.live);

// News come as a whole page; only what is live in it is taken over, so that focus and scrolling stay.
async function look() {
  if (document.hidden) return;
  const old = document.querySelector("[data-live]");
  try {
    const answer = await fetch(location.origin + location.pathname + location.search, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const news = page.querySelector("[data-live]");
    if (news) replace(old, news);
    const foot = page.querySelector(".foot");
    if (foot) document.querySelector(".foot").replaceChildren(...foot.childNodes);
    document.body.classList.remove("lost");
  } catch {
    // The bridge has ended or the network is gone: what is shown is old, and has to look like it.
    document.body.classList.add("lost");
  }
}

function replace(old, news) {
  const focused = old.contains(document.activeElement) && nameOf(document.activeElement);
  const lefts = [...old.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
  old.replaceChildren(...news.childNodes);
  old.querySelectorAll(".scroll").forEach((each, number) => { each.scrollLeft = lefts[number] ?? 0; });
  const again = focused && [...old.querySelectorAll("a, [tabindex]")].find((each) => nameOf(each) === focused);
  if (again) again.focus({ preventScroll: true });
}

// What tells an element from others, now and in the news.
function nameOf(element) {
  return `${element.closest("svg, table, dl")?.tagName} ${element.getAttribute("href") ?? element.className}`;
}

if (seconds) setInterval(look, seconds * 1000);
document.addEventListener("visibilitychange", () => { if (seconds) look(); });

const all = document.querySelector("[data-all]");
if (all) {
  const boxes = () => [...document.querySelectorAll(`input[name="${all.dataset.all}"]`)];
  all.closest("[hidden]")?.removeAttribute("hidden");
  all.addEventListener("change", () => boxes().forEach((box) => { box.checked = all.checked; }));
}
