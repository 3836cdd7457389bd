// Lays a chart out for a column that is narrower than the chart: panels wrap, titles and legends break.

const FULL = 1000; // pixels that a chart is made for
const MIN_SCALE = 0.85; // a chart that need not be scaled further than this keeps its layout
const MAX_HEIGHT = 1150; // pixels of a chart that is drawn in one piece: a page of A4 holds 1300 of its scale
const MIN_PANEL = 290; // pixels of a panel with its labels
const LETTER = 7.3; // pixels of a letter of a title or a name at most, on average
const LINE = 12; // pixels of a line of a name beside bars
const SIDE = 76; // pixels left of a panel for an axis with numbers and its title

function fitted(specification, width) {
  return width >= MIN_SCALE * FULL ? specification : fit(specification, width);
}

// A chart that is higher than a page of paper in several, which page breaks may part; the rows of each stay whole.
function parted(specification) {
  const { vconcat, title, ...rest } = specification;
  if (vconcat === undefined || heightOf(specification) <= MAX_HEIGHT) {
    return [specification];
  }
  const parts = [[]];
  let filled = 0;
  for (const child of vconcat) {
    const height = heightOf(child);
    if (filled > 0 && filled + height > MAX_HEIGHT) {
      parts.push([]);
      filled = 0;
    }
    parts[parts.length - 1].push(child);
    filled += height;
  }
  const last = vconcat[vconcat.length - 1];
  return parts.map((own, place) => ({
    ...rest,
    ...(title && place === 0 ? { title } : {}),
    vconcat: own.every((child) => child.facet?.column) ? between(own, last) : own,
  }));
}

// Pixels, more or less.
function heightOf(node) {
  if (node.vconcat) {
    return node.vconcat.reduce((sum, child) => sum + heightOf(child), 0);
  }
  if (node.hconcat || node.concat) {
    const columns = node.columns ?? node.hconcat?.length ?? node.concat.length;
    const heights = (node.hconcat ?? node.concat).map(heightOf);
    return Math.ceil(heights.length / columns) * Math.max(...heights);
  }
  if (node.facet) {
    const names = (node.facet.column ?? node.facet).sort?.length ?? 1;
    return Math.ceil(names / (node.columns ?? names)) * ((node.spec.height ?? 200) + 36);
  }
  return (node.height ?? 200) + 70;
}

// Rows of small multiples: names above the first, times below the last, as the chart's last row has them.
function between(rows, model) {
  return rows.map((row, place) => {
    const header = { ...row.facet.column.header, labels: row.facet.column.header?.labels || place === 0 };
    const named = { ...row, facet: { column: { ...row.facet.column, header } } };
    return place === rows.length - 1 ? withTime(named, model) : named;
  });
}

function withTime(row, model) {
  const axis = (model.spec.layer ?? [model.spec]).map((layer) => layer.encoding?.x?.axis).find(Boolean);
  const change = (encoding) => (encoding.x?.axis ? { ...encoding, x: { ...encoding.x, axis } } : encoding);
  return { ...row, spec: eachLayer(row.spec, change) };
}

function fit(node, width) {
  if (node.vconcat) {
    return { ...node, ...titled(node, width), vconcat: withTimes(node.vconcat).map((child) => fit(child, width)) };
  }
  if (node.hconcat) {
    const { hconcat, ...rest } = node;
    const columns = Math.max(1, Math.min(hconcat.length, Math.floor(width / MIN_PANEL)));
    const each = Math.floor((width - 24 * (columns - 1)) / columns);
    const concat = hconcat.map((child) => fit(withAxis(child, hconcat[0]), each));
    return { ...rest, ...titled(node, width), concat, columns, spacing: 24 };
  }
  if (node.facet) {
    return facets(node, width);
  }
  return node.mark || node.layer ? panel(node, width) : node;
}

// Only the first of a row says what is on its vertical axis: below each other, each says it.
function withAxis(child, first) {
  const layers = child.layer ?? [child];
  const model = (first.layer ?? [first]).map((layer) => layer.encoding?.y).find((y) => y && y.axis !== null);
  if (model === undefined) {
    return child;
  }
  const changed = layers.map((layer) => {
    const y = layer.encoding?.y;
    if (!y?.field) {
      return layer;
    }
    const own = { ...y };
    if (own.axis === null || own.axis?.labels === false) {
      own.axis = model.axis;
    }
    if (own.title === null && model.title) {
      own.title = model.title;
    }
    return { ...layer, encoding: { ...layer.encoding, y: own } };
  });
  return child.layer ? { ...child, layer: changed } : changed[0];
}

// Rows of small multiples have names above the first and times below the last: once they wrap, each has both.
function withTimes(children) {
  const [first, last] = [children[0], children[children.length - 1]];
  if (!children.every((child) => child.facet?.column)) {
    return children;
  }
  return children.map((child) => withTime({
    ...child,
    facet: { column: { ...child.facet.column, header: { ...first.facet.column.header, labels: true } } },
  }, last));
}

function facets(node, width) {
  const facet = node.facet.column ?? node.facet;
  if (!facet.field || node.facet.row) {
    return node;
  }
  const names = Array.isArray(facet.sort) ? facet.sort : []; // a chart may be sorted by a field
  const longest = Math.min(44, Math.max(1, ...names.flatMap((name) => name.split(/\s+/)).map((word) => word.length)));
  const least = Math.max(node.facet.column ? 100 : 150, LETTER * longest);
  const room = width - SIDE;
  const columns = Math.max(1, Math.min(Math.max(1, names.length), Math.floor((room + 14) / (least + 14))));
  const each = Math.floor((room - 14 * (columns - 1)) / columns);
  const lines = Object.fromEntries(names.map((name) => [name, broken(name, each)]));
  const several = names.length > 0 ? { labelExpr: `(${JSON.stringify(lines)})[datum.label]`, labelLineHeight: 14 } : {};
  const header = { ...facet.header, labels: true, ...several };
  const { spacing, ...rest } = node;
  const within = panel({ ...node.spec, width: each }, each + SIDE);
  return { ...rest, ...titled(node, width), facet: { ...facet, header }, columns, spacing: 14, spec: { ...within, width: each } };
}

function panel(node, width) {
  const before = node.width ?? width;
  const layers = node.layer ?? [node];
  const names = layers.map((layer) => layer.encoding?.y).find((y) => y?.type === "nominal" && y.axis !== null);
  const longest = names ? Math.max(...(names.sort ?? [""]).map((name) => name.length)) : 0;
  const label = Math.min(Math.max(60, LETTER * longest), 0.42 * width);
  const lines = Object.fromEntries((names?.sort ?? []).map((name) => [name, broken(name, label)]));
  const most = Math.max(1, ...Object.values(lines).map((own) => own.length));
  // A name of a case stands left of its bar; the number of the longest bar may stand over on the right.
  const own = Math.max(80, Math.min(before, Math.floor(width - (names ? label + 10 : SIDE))));
  const changed = eachLayer(node, (encoding) => fitEncoding(encoding, { before, own, width, label, lines: most > 1 ? lines : null }), (mark) => fitMark(mark, own));
  const height = most > 1 ? { height: Object.keys(lines).length * Math.max(22, LINE * most + 6) } : {};
  return { ...changed, ...titled(node, own), ...height, width: own };
}

function eachLayer(node, change, changeMark = (mark) => mark) {
  const made = { ...node };
  if (node.layer) {
    made.layer = node.layer.map((layer) => eachLayer(layer, change, changeMark));
  }
  if (node.encoding) {
    made.encoding = change(node.encoding);
  }
  if (node.mark) {
    made.mark = changeMark(node.mark);
  }
  return made;
}

function fitEncoding(encoding, { before, own, width, label, lines }) {
  const made = { ...encoding };
  for (const channel of ["color", "strokeDash"]) {
    const legend = made[channel]?.legend;
    if (legend?.gradientLength) {
      const above = { ...legend, orient: "top", direction: "horizontal", titleLimit: width - 35 };
      made[channel] = { ...made[channel], legend: above };
    } else if (legend) {
      const longest = Math.max(1, ...(made[channel].scale?.domain ?? [""]).map((name) => String(name).length));
      const columns = Math.max(1, Math.floor(width / (7 * longest + 35)));
      made[channel] = { ...made[channel], legend: { ...legend, columns, labelLimit: width - 35 } };
    }
  }
  if (made.y?.type === "nominal" && made.y.axis) {
    const several = { labelExpr: `(${JSON.stringify(lines)})[datum.label]`, labelLineHeight: LINE, labelFontSize: 11 };
    made.y = { ...made.y, axis: { ...made.y.axis, labelLimit: label, ...(lines ? several : {}) } };
  }
  if (typeof made.x?.value === "number" && made.x.value >= before) {
    made.x = { ...made.x, value: made.x.value + own - before };
  }
  return made;
}

function fitMark(mark, width) {
  return Array.isArray(mark?.text) ? { ...mark, text: broken(mark.text.join(" "), width * (LETTER / 6)) } : mark;
}

function titled(node, width) {
  if (!node.title) {
    return {};
  }
  const title = typeof node.title === "string" ? { text: node.title } : node.title;
  return { title: { ...title, text: broken([].concat(title.text).join(" "), width) } };
}

// A text in lines that are no wider than this, broken between words.
function broken(text, width) {
  const most = Math.max(8, Math.floor(width / LETTER));
  const lines = [];
  for (const word of String(text).split(/\s+/)) {
    const last = lines[lines.length - 1];
    if (last !== undefined && last.length + 1 + word.length <= most) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines;
}
