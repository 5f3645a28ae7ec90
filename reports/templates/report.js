"use strict";
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  // Vega's own tooltip brings a style element, which the page's policy refuses.
  function showTip(_handler, event, _item, value) {
    tip.hidden = !value;
    if (!value) return;
    tip.textContent = Object.entries(value).map(([name, text]) => `${name}: ${text}`).join("\n");
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 12, room)) + window.scrollX}px`;
    tip.style.top = `${event.clientY + 16 + window.scrollY}px`;
  }

  function save(href, name) {
    const link = document.createElement("a");
    link.href = href;
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
  }

  function saveText(text, name) {
    const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    save(href, name);
    setTimeout(() => URL.revokeObjectURL(href), 60000);
  }

  // A spreadsheet runs a cell that begins like a formula; numbers are left as they are.
  function csvCell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    let text = String(value);
    if (/^\s*[=+\-@\t\r]/.test(text) && !/^-?[\d,.]+(e[+-]?\d+)?$/i.test(text)) text = `'${text}`;
    return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  const csv = (rows) => rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

  function button(label, name, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "tool";
    made.textContent = label;
    if (name) made.setAttribute("aria-label", name);
    made.addEventListener("click", action);
    return made;
  }

  // Buttons with the word that they share; each one's own name is whole.
  function group(word, ...buttons) {
    const made = document.createElement("span");
    made.className = "tool-group";
    made.append(word, ...buttons);
    return made;
  }

  // Charts

  function chartRows(spec) {
    const found = Object.values(spec.datasets || {});
    for (const part of [spec, ...(spec.layer || [])]) if (part.data?.values) found.push(part.data.values);
    const records = found.flat();
    const names = [...new Set(records.flatMap(Object.keys))];
    return [names, ...records.map((record) => names.map((name) => record[name]))];
  }

  // The horizontal scale follows a signal named for the selection and its field; null: all.
  function zoomer(view, spec) {
    const layer = spec.layer?.find((part) => part.params);
    const field = (layer?.encoding?.x ?? spec.encoding?.x)?.field;
    if (!layer?.params || !field) return null;
    const signal = `${layer.params[0].name}_${field}`;
    const whole = view.scale("x").domain().map(Number);
    return (factor) => {
      const scale = view.scale("x");
      const [to, from] = scale.type === "log" ? [Math.log, Math.exp] : [Number, Number];
      const [low, high] = scale.domain().map((end) => to(Number(end)));
      const [middle, half] = [(low + high) / 2, ((high - low) / 2) * factor];
      const ends = [from(middle - half), from(middle + half)];
      const beyond = ends[0] <= whole[0] && ends[1] >= whole[1];
      return view.signal(signal, beyond ? null : ends).runAsync();
    };
  }

  function chartTools(place, view, spec) {
    const file = place.dataset.file;
    const what = spec.description;
    const bar = document.createElement("div");
    bar.className = "tools";
    const zoom = zoomer(view, spec);
    if (zoom) {
      bar.append(group("Zoom",
        button("in", `Zoom in: ${what}`, () => zoom(1 / 2)),
        button("out", `Zoom out: ${what}`, () => zoom(2)),
        button("whole", `Zoom to the whole: ${what}`, () => zoom(Infinity)),
      ));
    }
    const picture = (kind, scale) => async () =>
      save(await view.toImageURL(kind, scale), `${file}.${kind}`);
    bar.append(group("Save",
      button("SVG", `Save SVG: ${what}`, picture("svg", 1)),
      button("PNG", `Save PNG: ${what}`, picture("png", 2)),
      button("CSV", `Save CSV: ${what}`, () => saveText(csv(chartRows(spec)), `${file}.csv`)),
    ));
    place.after(bar);
  }

  async function draw(data) {
    const place = document.getElementById(data.dataset.for);
    const spec = JSON.parse(data.textContent);
    spec.description ??= place.getAttribute("aria-label"); // Vega names the chart by it
    if (spec.config?.legend) spec.config.legend.columns = Math.max(1, Math.floor(place.clientWidth / 150));
    try {
      const { view } = await vegaEmbed(place, structuredClone(spec), {
        mode: "vega-lite",
        renderer: "svg",
        ast: true,
        defaultStyle: false,
        tooltip: showTip,
        actions: false,
      });
      chartTools(place, view, spec);
    } catch (error) {
      place.textContent = `This chart cannot be drawn: ${error.message}`;
      throw error;
    }
  }

  // Tables

  const text = (cell) => (cell.dataset.value ?? cell.textContent).trim();
  const isNone = (value) => value === "" || value === "n/a" || value === "none";

  function number(value) {
    const found = /^(?:[<>] )?(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*(?:x|%|s|ms)?(?: (?:of|to) [\d.,]+)?$/i.exec(value);
    return found ? Number(found[1].replaceAll(",", "")) : NaN;
  }

  function compare(left, right) {
    if (isNone(left) || isNone(right)) return 0;
    const [one, other] = [number(left), number(right)];
    if (!Number.isNaN(one) && !Number.isNaN(other)) return one - other;
    return left.localeCompare(right);
  }

  function sort(head) {
    const descending = head.ariaSort === "ascending";
    for (const other of head.parentElement.children) other.ariaSort = "none";
    head.ariaSort = descending ? "descending" : "ascending";
    const value = (row) => text(row.cells[head.cellIndex]);
    const table = head.closest("table");
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
      rows.sort((one, other) => {
        const [left, right] = [value(one), value(other)];
        const missing = isNone(left) - isNone(right);
        return missing || (descending ? -1 : 1) * compare(left, right);
      });
      body.append(...rows);
    }
    show(table);
  }

  // Rows that match the filter, of a long table the first ones until all are asked for.
  const FIRST_ROWS = 25;
  const states = new Map();

  function show(table) {
    const state = states.get(table);
    const needle = state.field?.value.trim().toLowerCase() ?? "";
    let [matching, shown] = [0, 0];
    for (const body of table.tBodies) {
      const group = body.querySelector(".group");
      const named = group?.textContent.toLowerCase().includes(needle);
      let any = false;
      for (const row of body.rows) {
        if (row === group) continue;
        const matches = named || row.textContent.toLowerCase().includes(needle);
        matching += matches;
        row.dataset.matches = matches;
        row.hidden = !matches || (!state.whole && !group && shown >= FIRST_ROWS);
        shown += !row.hidden;
        any ||= !row.hidden;
      }
      if (group) group.hidden = !any;
    }
    state.count.textContent = needle || shown < matching ? `${shown} of ${needle ? `${matching} that match, ` : ""}${state.rows} rows` : "";
    state.more.hidden = shown === matching;
    state.more.textContent = `Show all ${matching}`;
  }

  function tableRows(table) {
    const head = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    const rows = [];
    let grouped = false;
    for (const body of table.tBodies) {
      const group = body.querySelector(".group")?.textContent.trim().replace(/\s+/g, " ");
      grouped ||= group !== undefined;
      for (const row of body.rows) {
        if (row.dataset.matches === "false" || row.classList.contains("group")) continue;
        const cells = [...row.cells].map((cell) => text(cell).replace(/\s+/g, " "));
        rows.push(group === undefined ? cells : [group, ...cells]);
      }
    }
    return [grouped ? ["Figure", ...head] : head, ...rows];
  }

  function tableTools(table) {
    const name = table.caption.textContent.trim();
    for (const head of table.tHead.rows[0].cells) {
      const label = document.createElement("button");
      label.type = "button";
      label.append(...head.childNodes);
      label.addEventListener("click", () => sort(head));
      head.append(label);
      head.ariaSort = "none";
    }
    const bar = document.createElement("div");
    bar.className = "tools";
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    const state = { count, whole: false, rows: table.querySelectorAll("tbody tr:not(.group)").length };
    state.more = button("Show all", "", () => {
      state.whole = true;
      show(table);
    });
    states.set(table, state);
    if (state.rows > 5) {
      state.field = document.createElement("input");
      state.field.type = "search";
      state.field.placeholder = "Filter";
      state.field.setAttribute("aria-label", `Filter: ${name}`);
      state.field.addEventListener("input", () => show(table));
      bar.append(state.field);
    }
    bar.append(
      button("Save CSV", `Save CSV: ${name}`, () => saveText(csv(tableRows(table)), `${table.dataset.file}.csv`)),
      count,
    );
    const folded = table.querySelectorAll("details");
    if (folded.length) {
      const open = button("Open all", `Open all: ${name}`, () => {
        const closed = [...folded].some((one) => !one.open);
        for (const one of folded) one.open = closed;
        open.textContent = closed ? "Fold all" : "Open all";
        open.setAttribute("aria-label", `${open.textContent}: ${name}`);
      });
      bar.insertBefore(open, count);
    }
    const place = table.closest(".scroll") ?? table;
    place.after(state.more);
    show(table);
    place.before(bar);
  }

  function saveColumns(place) {
    const columns = JSON.parse(place.textContent);
    const names = Object.keys(columns);
    const rows = (columns[names[0]] ?? []).map((_, at) => names.map((name) => columns[name][at]));
    saveText(csv([names, ...rows]), `${place.dataset.file}.csv`);
  }

  document.querySelectorAll("table[data-tools]").forEach(tableTools);
  for (const saver of document.querySelectorAll("button[data-save]")) {
    saver.addEventListener("click", () => saveColumns(document.getElementById(saver.dataset.save)));
  }
  const charts = [...document.querySelectorAll("script[data-for]")];
  Promise.all(charts.map(draw)).then(() => { document.documentElement.dataset.charts = "drawn"; });
})();
