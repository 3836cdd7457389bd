"use strict";
(function () {
  const EVERY_MS = 1000;
  const DRAWN_MS = 20000;
  const TRIES = 10;
  const state = document.querySelector(".state");
  const main = document.querySelector("main");
  const title = state.textContent;
  let shown = -1;
  let loading = false;
  let ended = false;
  let failed = 0;
  let current = null;

  // The next page is drawn behind the one that is shown, and then takes its place where that was scrolled to.
  function load(version) {
    loading = true;
    const next = document.createElement("iframe");
    next.className = "next";
    next.title = "Report";
    next.src = "/report?version=" + version;
    const since = Date.now();
    next.addEventListener("load", function () {
      replace(next, version, since);
    });
    main.append(next);
  }

  function replace(next, version, since) {
    const page = next.contentDocument;
    if (page === null) {
      // It did not arrive: what stands there is the browser's own page. The next look asks again.
      next.remove();
      loading = false;
      return;
    }
    const drawn = page.querySelector("figure.chart") === null || page.body.dataset.drawn !== undefined;
    if (!drawn && Date.now() - since < DRAWN_MS) {
      setTimeout(replace, 100, next, version, since);
      return;
    }
    if (current !== null) {
      next.contentWindow.scrollTo(0, current.contentWindow.scrollY);
      current.remove();
    }
    next.className = "";
    current = next;
    shown = version;
    loading = false;
    document.body.dataset.shown = String(version);
  }

  async function look() {
    try {
      const response = await fetch("/state");
      const now = await response.json();
      failed = 0;
      state.textContent = title + ": " + now.text;
      ended = now.ended;
      if (now.version !== shown && !loading) {
        load(now.version);
      }
      if (ended && now.version === shown) {
        return;
      }
    } catch (error) {
      failed += 1;
      if (!ended) {
        state.textContent = title + (failed < TRIES ? ": no answer; asking again." : ": the command has ended.");
      }
      if (failed === TRIES) {
        return;
      }
    }
    setTimeout(look, EVERY_MS);
  }
  look();
})();
