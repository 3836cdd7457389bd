"use strict";
(function () {
  const EVERY_MS = 1000;
  const DRAWN_MS = 20000;
  const state = document.querySelector(".state");
  const main = document.querySelector("main");
  const title = state.textContent;
  let shown = -1;
  let loading = false;
  let ended = false;
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
      state.textContent = title + ": " + now.text;
      ended = now.ended;
      if (now.version !== shown && !loading) {
        load(now.version);
      }
    } catch (error) {
      if (!ended) {
        state.textContent = title + ": the command has ended.";
      }
      return;
    }
    if (!ended || loading) {
      setTimeout(look, EVERY_MS);
    }
  }
  look();
})();
