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

  async function draw(data) {
    const place = document.getElementById(data.dataset.for);
    try {
      await vegaEmbed(place, JSON.parse(data.textContent), {
        mode: "vega-lite",
        renderer: "svg",
        ast: true,
        defaultStyle: false,
        forceActionsMenu: true,
        tooltip: showTip,
        downloadFileName: place.dataset.file,
        actions: { export: { svg: true, png: true }, source: false, compiled: false, editor: false },
        i18n: { SVG_ACTION: "Save as SVG", PNG_ACTION: "Save as PNG" },
      });
    } catch (error) {
      place.textContent = `This chart cannot be drawn: ${error.message}`;
      throw error;
    }
  }

  function compare(kind, left, right) {
    if (left === "" || right === "") return (left === "") - (right === "");
    return kind === "number" ? left - right : left.localeCompare(right);
  }

  function sort(button) {
    const head = button.closest("th");
    const descending = head.ariaSort === "ascending";
    for (const other of head.parentElement.children) other.ariaSort = "none";
    head.ariaSort = descending ? "descending" : "ascending";
    const value = (row) => row.cells[head.cellIndex].dataset.value;
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].sort((one, other) => {
      const [left, right] = [value(one), value(other)];
      const order = compare(button.dataset.kind, left, right);
      return descending && left !== "" && right !== "" ? -order : order;
    });
    body.append(...rows);
  }

  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => sort(button));
  }
  const charts = [...document.querySelectorAll("script[data-for]")];
  Promise.all(charts.map(draw)).then(() => { document.documentElement.dataset.charts = "drawn"; });
})();
