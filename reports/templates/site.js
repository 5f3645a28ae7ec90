"use strict";
(() => {
  const table = document.querySelector("table.index");
  if (!table) return;
  const body = table.tBodies[0];
  const words = document.getElementById("words");
  const verdict = document.getElementById("verdict");
  const shown = document.getElementById("shown");

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
    const rows = [...body.rows].sort((one, other) => {
      const [left, right] = [value(one), value(other)];
      const order = compare(button.dataset.kind, left, right);
      return descending && left !== "" && right !== "" ? -order : order;
    });
    body.append(...rows);
  }

  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      const fits = wanted.every((word) => text.includes(word));
      row.hidden = !fits || (verdict.value !== "" && row.dataset.verdict !== verdict.value);
      n += !row.hidden;
    }
    shown.textContent = `${n} of ${body.rows.length} runs`;
  }

  for (const button of table.querySelectorAll("th button")) {
    button.addEventListener("click", () => sort(button));
  }
  if (words) {
    words.addEventListener("input", filter);
    verdict.addEventListener("change", filter);
    document.getElementById("tools").hidden = false;
    filter();
  }
})();
