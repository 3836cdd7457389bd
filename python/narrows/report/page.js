// The page: draws its charts, isolates schemes, saves files, and shows which section is read.

const views = new Map(); // of each figure, its drawn views
const isolated = new Set();
const legend = document.querySelector(".legend");
const chips = Array.from(legend.querySelectorAll(".chip"));
const reset = legend.querySelector(".reset");
const figures = Array.from(document.querySelectorAll("figure.chart"));

function show() {
  const cases = Array.from(isolated);
  for (const view of Array.from(views.values()).flat()) {
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
  chips[0]?.focus(); // the button is gone, and the focus with it
});

// The page may load nothing: specifications carry their data, and the loader refuses everything else.
const options = {
  actions: false,
  ast: true,
  mode: "vega-lite",
  renderer: "svg",
  tooltip: { disableDefaultStyle: false },
  loader: { load: () => Promise.reject(new Error("this page loads nothing")) },
};

// Anew each time: Vega marks the rows that it is given.
function specificationOf(figure) {
  return JSON.parse(document.getElementById(figure.id.replace("chart-", "spec-")).textContent);
}

function columnOf(figure) {
  const canvas = figure.querySelector(".canvas");
  return Math.floor(canvas.clientWidth / (Number(getComputedStyle(canvas).zoom) || 1));
}

async function draw(figure) {
  const canvas = figure.querySelector(".canvas");
  figure.dataset.width = String(columnOf(figure));
  try {
    const parts = parted(fitted(specificationOf(figure), columnOf(figure)));
    const boxes = parts.map(() => element("div", { className: "part" }));
    const made = [];
    for (const [place, part] of parts.entries()) {
      made.push((await window.vegaEmbed(boxes[place], part, options)).view);
      await pause();
    }
    views.get(figure)?.forEach((view) => view.finalize());
    views.set(figure, made);
    canvas.replaceChildren(...boxes);
    figure.classList.toggle("parted", parts.length > 1);
    if (isolated.size > 0) {
      made.forEach((view) => view.signal("isolate", Array.from(isolated)).runAsync());
    }
  } catch (error) {
    figure.classList.add("failed");
    console.error(figure.id, error);
  }
}

// Lets the page answer.
function pause() {
  return new Promise((resume) => setTimeout(resume));
}

// One after another, and the page answers in between.
async function drawAll() {
  for (const figure of figures) {
    await draw(figure);
  }
  document.body.dataset.drawn = String(views.size);
}

// A column that has become narrower or wider has other panels beside each other.
async function redraw() {
  const full = MIN_SCALE * FULL;
  for (const figure of figures) {
    const [before, now] = [Number(figure.dataset.width), columnOf(figure)];
    if (Math.min(before, now) < full && Math.abs(Math.min(before, full) - Math.min(now, full)) > 20) {
      await draw(figure);
    }
  }
  focusable();
}

let waiting;
window.addEventListener("resize", function () {
  clearTimeout(waiting);
  waiting = setTimeout(() => drawing.then(redraw), 150);
});

function save(name, blob) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// The picture as it was made, whatever the page's width, and with what is isolated.
async function picture(figure) {
  const made = await window.vegaEmbed(element("div"), { ...specificationOf(figure), padding: 16 }, options);
  await made.view.signal("isolate", Array.from(isolated)).runAsync();
  return made.view;
}

const files = {
  async svg(figure) {
    return new Blob([await (await picture(figure)).toSVG()], { type: "image/svg+xml" });
  },
  async png(figure) {
    const canvas = await (await picture(figure)).toCanvas(2);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  },
  async csv(figure) {
    return new Blob([csvOf(specificationOf(figure))], { type: "text/csv" });
  },
};

for (const figure of figures) {
  const tools = figure.querySelector(".tools");
  tools.hidden = false;
  for (const button of tools.querySelectorAll("button")) {
    button.addEventListener("click", async function () {
      const name = `${document.body.dataset.report}-${figure.id.replace("chart-", "")}.${button.dataset.kind}`;
      save(name, await files[button.dataset.kind](figure));
    });
  }
  const details = figure.querySelector("details.data");
  details.addEventListener("toggle", function () {
    if (details.open && details.querySelector("table") === null) {
      details.append(tableElements(specificationOf(figure)));
      focusable();
    }
  });
}

// What is told of a cell to those who point at it, as a table for everyone.
for (const details of document.querySelectorAll("details.cells")) {
  details.addEventListener("toggle", function () {
    if (!details.open || details.querySelector("table") !== null) {
      return;
    }
    const heat = details.previousElementSibling.querySelector("table");
    const heads = Array.from(heat.querySelectorAll("thead th"), (head) => head.textContent);
    const body = element("tbody");
    for (const told of heat.querySelectorAll("td[title]")) {
      const row = element("tr");
      row.append(
        element("th", { scope: "row" }, told.parentElement.firstElementChild.textContent),
        element("td", {}, heads[told.cellIndex]),
        element("td", {}, told.title),
      );
      body.append(row);
    }
    const table = element("table", { className: "plain small" });
    table.append(body);
    details.append(table);
  });
}

for (const box of document.querySelectorAll("details.source")) {
  const text = box.querySelector("pre");
  const said = box.querySelector(".said");
  box.querySelector(".tools").hidden = false;
  box.querySelector(".copy").addEventListener("click", async function () {
    try {
      await navigator.clipboard.writeText(text.textContent);
      said.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(text);
      said.textContent = "selected: copy it with Ctrl+C";
    }
  });
  box.querySelector(".save").addEventListener("click", function () {
    save(box.dataset.file, new Blob([text.textContent], { type: "application/toml" }));
  });
}

// A box that scrolls is reached by keyboard; one that does not is passed over.
function focusable() {
  for (const box of document.querySelectorAll(".wide")) {
    if (box.scrollWidth > box.clientWidth) {
      const heading = box.closest("section")?.querySelector("h2")?.textContent ?? "";
      const caption = box.querySelector("caption")?.textContent;
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", `Table: ${caption ?? heading}`);
    } else {
      box.removeAttribute("tabindex");
      box.removeAttribute("role");
      box.removeAttribute("aria-label");
    }
  }
}

// Words of tables with many columns may break on paper, which does not scroll.
for (const table of document.querySelectorAll("table")) {
  table.classList.toggle("many", table.rows.length > 0 && table.rows[0].cells.length > 13);
}

// On paper nothing is folded but the data behind charts and cells.
let unfolded = [];
window.addEventListener("beforeprint", function () {
  unfolded = Array.from(document.querySelectorAll("details:not([open], .data, .cells)"));
  unfolded.forEach((details) => (details.open = true));
});
window.addEventListener("afterprint", function () {
  unfolded.forEach((details) => (details.open = false));
});

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
focusable();
const drawing = drawAll();
