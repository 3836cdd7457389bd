// A chart's data as tables: what its specification holds, so that the page holds it once.

const MAX_ROWS = 200; // of a chart's tables together
const MIN_ROWS = 24; // of each, where a chart has many
// Numbers in words, which the other columns have as numbers, and the order of panels.
const LEFT_OUT = new Set(["label", "shown", "range", "place"]);

// Each panel's data: {title, x, y, columns: [{field, title, percent}], rows}.
function tablesOf(specification) {
  const found = [];
  visit(specification, { data: specification.data, title: "", x: "", y: "" });
  return found;

  function visit(node, above) {
    const here = { ...above, data: node.data ?? above.data, title: words(node.title?.text ?? node.title) || above.title };
    const children = node.vconcat ?? node.hconcat ?? node.concat;
    if (children) {
      // Only the first of a row names the vertical axis.
      const y = node.hconcat ? axisTitle(children[0], "y") : "";
      children.forEach((child) => visit(child, { ...here, y }));
    } else if (node.facet) {
      visit(node.spec, here);
    } else {
      read(node, { ...here, x: axisTitle(node, "x"), y: axisTitle(node, "y") || here.y });
    }
  }

  function read(node, here) {
    const layers = (node.layer ?? [node]).flatMap((layer) => layer.layer ?? [layer]);
    const columns = new Map(); // of each of the panel's data sets, by field
    for (const fields of [told, drawn]) {
      const found = new Map();
      for (const layer of layers) {
        const name = (layer.data ?? here.data)?.name;
        if (!columns.has(name)) {
          const own = found.get(name) ?? new Map();
          found.set(name, own);
          fields(layer).forEach((field) => own.set(field.field, own.get(field.field) ?? field));
        }
      }
      // What is told of the rows suffices; of those that no layer tells anything of, what they are drawn from.
      found.forEach((own, name) => own.size > 0 && columns.set(name, own));
    }
    const seen = new Set();
    for (const [name, own] of columns) {
      // What is drawn once more, such as the point of a line that has only one, is not told twice.
      const rows = (specification.datasets?.[name] ?? []).filter((row) => {
        const text = JSON.stringify(row);
        return !seen.has(text) && seen.add(text);
      });
      if (rows.length > 0) {
        found.push({ title: here.title, x: here.x, y: here.y, columns: Array.from(own.values()), rows });
      }
    }
  }
}

// What the pointer is told of a row.
function told(layer) {
  const items = [].concat(layer.encoding?.tooltip ?? []).filter((item) => item.field);
  return items.map(({ field, title, format }) => ({ field, title, percent: /[%p]$/.test(format ?? "") }));
}

// What a row is drawn from.
function drawn(layer) {
  const items = ["color", "x", "x2", "y", "y2", "text"].map((channel) => layer.encoding?.[channel]);
  return items.filter((item) => item?.field).map(({ field, title }) => ({
    field, title: title ?? (field === "case" ? "scheme" : field), percent: false,
  }));
}

function axisTitle(node, channel) {
  const layers = node?.layer ?? node?.spec?.layer ?? [node?.spec ?? node];
  const found = layers.map((layer) => layer?.encoding?.[channel]).map((own) => own?.title ?? own?.axis?.title);
  return words(found.find(Boolean));
}

function words(text) {
  return text === undefined || text === null || typeof text === "object" && !Array.isArray(text) ? "" : [].concat(text).join(" ");
}

// Every row of every panel: what panel it is of, what its axes are, and all that it has.
function csvOf(specification) {
  const tables = tablesOf(specification);
  const fields = new Set(tables.flatMap((table) => table.rows.flatMap((row) => Object.keys(row))));
  const kept = Array.from(fields).filter((field) => field !== "panel" && !LEFT_OUT.has(field));
  const lines = [["panel", "x_axis", "y_axis", ...kept]];
  for (const table of tables) {
    for (const row of table.rows) {
      lines.push([row.panel ?? table.title, table.x, table.y, ...kept.map((field) => row[field])]);
    }
  }
  return lines.map((line) => line.map(quoted).join(",") + "\r\n").join("");
}

// As RFC 4180 has it; a text that a spreadsheet would take for a formula begins with an apostrophe.
function quoted(value) {
  if (typeof value === "number" || typeof value === "boolean") {
    return String(value);
  }
  const text = String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// The same as elements, of many rows every second, third and so on.
function tableElements(specification) {
  const tables = tablesOf(specification);
  const limit = Math.max(MIN_ROWS, Math.floor(MAX_ROWS / Math.max(1, tables.length)));
  const made = document.createDocumentFragment();
  for (const { title, columns, rows } of tables) {
    const step = Math.ceil(rows.length / limit);
    const shown = rows.filter((_, place) => place % step === 0);
    const box = element("div", { className: "wide" });
    const table = element("table", { className: "plain small" });
    const caption = element("caption", {}, title || "Data");
    if (step > 1) {
      caption.append(`: ${whole(shown.length)} of ${whole(rows.length)} rows, evenly; the CSV file has all of them`);
    }
    const head = element("tr");
    head.append(...columns.map((column) => element("th", { scope: "col" }, column.title)));
    const body = element("tbody");
    for (const row of shown) {
      const line = element("tr");
      line.append(...columns.map((column) => element("td", {}, cell(row[column.field], column.percent))));
      body.append(line);
    }
    table.append(caption, element("thead"), body);
    table.tHead.append(head);
    box.append(table);
    made.append(box);
  }
  return made;
}

function cell(value, percent) {
  if (typeof value !== "number") {
    return String(value ?? "–");
  }
  return percent ? `${Number((100 * value).toPrecision(5))} %` : whole(value);
}

// Digits in groups of three, as the page has them elsewhere.
function whole(value) {
  const [before, after] = String(value).split(".");
  const grouped = before.length > 4 && /^-?\d+$/.test(before) ? before.replace(/\B(?=(\d{3})+$)/g, "\u202f") : before;
  return after === undefined ? grouped : `${grouped}.${after}`;
}

function element(name, properties = {}, text = "") {
  const made = Object.assign(document.createElement(name), properties);
  if (text !== "") {
    made.textContent = text;
  }
  return made;
}
