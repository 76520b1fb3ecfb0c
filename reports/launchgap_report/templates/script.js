"use strict";
// Comfort only: the page says everything without it. Filters and sorts the table of cases.
(() => {
  const table = document.getElementById("case-table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const text = rows.map((row) => row.textContent.toLowerCase());
  const heads = Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent);
  const column = (name) => rows.map((row) => row.cells[heads.indexOf(name)]);
  const status = column("status").map((cell) => cell.querySelector(".chip").textContent);
  const arm = column("arm").map((cell) => cell.textContent);
  const filter = document.getElementById("filter");
  // Where all rows are of one arm there is nothing to choose.
  const choices = [["status", status], ["arm", arm]]
    .map(([id, values]) => [document.getElementById(id), values])
    .filter(([choice]) => choice);
  const shown = document.getElementById("shown");
  document.querySelector(".controls").hidden = false;

  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, i) => {
      const fits = choices.every(([choice, values]) => !choice.value || values[i] === choice.value) &&
        words.every((word) => text[i].includes(word));
      row.hidden = !fits;
      count += fits;
    });
    shown.textContent = count + " of " + rows.length + " rows";
  };
  filter.addEventListener("input", apply);
  for (const [choice] of choices) choice.addEventListener("change", apply);
  apply();

  // A cell sorts by the number as recorded, which stands in its title; missing ones stay last.
  const value = (row, column) => {
    const cell = row.cells[column];
    const raw = cell.title || cell.textContent;
    const number = parseFloat(raw);
    return cell.classList.contains("num") ? (Number.isNaN(number) ? null : number) : raw.trim();
  };
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.title = head.title;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = rows.map((row) => [value(row, column), row]);
      keyed.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        const order = typeof a === "number" ? a - b : a.localeCompare(b);
        return down ? -order : order;
      });
      body.append(...keyed.map(([, row]) => row));
    });
  });
})();
