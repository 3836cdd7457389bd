"use strict";
(function () {
  const views = [];
  const isolated = new Set();
  const legend = document.querySelector(".legend");
  const chips = Array.from(legend.querySelectorAll(".chip"));
  const reset = legend.querySelector(".reset");

  function show() {
    const cases = Array.from(isolated);
    for (const view of views) {
      view.signal("isolate", cases).runAsync();
    }
    for (const chip of chips) {
      chip.setAttribute("aria-pressed", String(isolated.has(chip.dataset.case)));
    }
    for (const row of document.querySelectorAll("tr[data-case]")) {
      row.classList.toggle("dim", cases.length > 0 && !isolated.has(row.dataset.case));
    }
    legend.classList.toggle("isolating", cases.length > 0);
    reset.hidden = cases.length === 0;
  }

  for (const chip of chips) {
    chip.addEventListener("click", function () {
      const name = chip.dataset.case;
      if (!isolated.delete(name)) {
        isolated.add(name);
      }
      show();
    });
  }
  reset.addEventListener("click", function () {
    isolated.clear();
    show();
  });

  // The page may load nothing: specifications carry their data, and the loader refuses everything else.
  const options = {
    actions: false,
    ast: true,
    renderer: "svg",
    tooltip: { disableDefaultStyle: false },
    loader: { load: () => Promise.reject(new Error("this page loads nothing")) },
  };

  async function draw() {
    for (const figure of document.querySelectorAll("figure.chart")) {
      const text = document.getElementById(figure.id.replace("chart-", "spec-")).textContent;
      try {
        const made = await window.vegaEmbed(figure.querySelector(".canvas"), JSON.parse(text), options);
        views.push(made.view);
      } catch (error) {
        figure.classList.add("failed");
        console.error(figure.id, error);
      }
    }
    document.body.dataset.drawn = String(views.length);
    if (isolated.size > 0) {
      show();
    }
  }

  const links = new Map();
  for (const link of document.querySelectorAll(".contents li a")) {
    links.set(link.getAttribute("href").slice(1), link);
  }
  const sections = Array.from(document.querySelectorAll("section"));
  function mark() {
    const passed = sections.filter((section) => section.getBoundingClientRect().top < 140);
    const atEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 4;
    const here = atEnd ? sections[sections.length - 1] : passed[passed.length - 1];
    for (const [name, link] of links) {
      link.classList.toggle("here", here !== undefined && here.id === name);
    }
  }
  window.addEventListener("scroll", mark, { passive: true });
  mark();
  draw();
})();
