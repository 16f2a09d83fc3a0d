"""The look of a report, and the script that sorts and filters its tables."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark;
        --ink: #1b1f24; --paper: #ffffff; --faint: #5b6570; --line: #d5dae0; --tint: #f3f6f9;
        --above: #0072b2; --below: #a84300; --link: #0b5cad; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --paper: #14171b; --faint: #9aa4af; --line: #343b43; --tint: #1d2228;
          --above: #6cc3f2; --below: #f0a35e; --link: #7cb8f2; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 68rem; background: var(--paper); color: var(--ink);
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .25rem; }
a { color: var(--link); }
p, h3, figcaption { overflow-wrap: anywhere; }
p.made { color: var(--faint); margin-top: 0; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .88em; background: var(--tint);
       padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--tint); padding: .7rem; border-radius: 6px;
      font: .82rem/1.45 ui-monospace, "DejaVu Sans Mono", monospace; margin: .5rem 0; }
summary { cursor: pointer; padding: .3rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th.word, td.word, th:first-child, td:first-child { text-align: left; }
td.word { white-space: normal; min-width: 6.5rem; }
td.long { white-space: normal; min-width: 14rem; overflow-wrap: anywhere; }
thead th { border-bottom: 2px solid var(--line); }
tbody tr:nth-child(even of :not([hidden])) { background: var(--tint); }
td.verdict { text-align: left; }
td.verdict::before { display: inline-block; width: 1.3em; content: "\\2248"; color: var(--faint); }
td.above { color: var(--above); } td.above::before { content: "\\25b2"; color: inherit; }
td.below { color: var(--below); } td.below::before { content: "\\25bc"; color: inherit; }
th button { font: inherit; font-weight: bold; color: inherit; background: none; border: 0; padding: 0;
            cursor: pointer; }
th button::after { display: inline-block; width: 1em; text-align: center; content: "\\2195"; color: var(--faint); }
th[aria-sort=ascending] button::after { content: "\\2191"; color: inherit; }
th[aria-sort=descending] button::after { content: "\\2193"; color: inherit; }
.filters { display: flex; flex-wrap: wrap; gap: .4rem .8rem; align-items: center; margin-bottom: .5rem;
           font-size: .9rem; }
.filters label { color: var(--faint); }
.filters select, .filters input { font: inherit; color: inherit; background: var(--paper); max-width: 12rem;
                                  border: 1px solid var(--line); border-radius: 4px; padding: .2rem .35rem; }
.filters output { color: var(--faint); margin-left: auto; }
figure { margin: 1rem 0; }
figure img { width: 100%; height: auto; background: #fff; border-radius: 6px; }
picture img { background: none; }
figcaption { color: var(--faint); font-size: .9rem; padding-top: .4rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 0 1.5rem; }
.figures.small { grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); }
.figures .wide { grid-column: 1 / -1; }
@media screen and (max-width: 40rem) {
  th, td { padding: .3rem .5rem; font-size: .9rem; }
  thead th:first-child, tbody td:first-child { position: sticky; left: 0; background: var(--paper); }
  tbody tr:nth-child(even of :not([hidden])) td:first-child { background: var(--tint); }
  .wide img { width: 44rem; max-width: none; }
}
@media print {
  :root { font-size: 11px; }
  body { max-width: none; padding: 0; font-size: 1rem; }
  h2, h3 { break-after: avoid; } figure img, tr { break-inside: avoid; } thead { display: table-header-group; }
  .scroll { overflow: visible; } .filters, nav { display: none; }
  th button::after { content: none; } th, td { padding: .15rem .4rem; white-space: normal; }
  .figures { grid-template-columns: 1fr 1fr; } .figures.small { grid-template-columns: repeat(4, 1fr); }
}
"""

# Without it the tables are the same, and cannot be sorted.
SCRIPT = """
"use strict";
for (const table of document.querySelectorAll("table.sorted")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const text = (row, column) => row.cells[column].textContent.trim();
  const number = (words) => parseFloat(words.replace(/^[<\\u2248]\\s*/, "").replace(/,/g, ""));
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const filled = rows.map((row) => text(row, column)).filter((words) => words !== "");
      const numbers = filled.every((words) => !Number.isNaN(number(words)));
      rows.sort((first, second) => {
        const [a, b] = [text(first, column), text(second, column)];
        if (a === "" || b === "") return (a === "") - (b === "");
        return sign * (numbers ? number(a) - number(b) : a.localeCompare(b, "en", {numeric: true}));
      });
      body.append(...rows);
    });
  });
  const names = (table.dataset.filters || "").split("\\n").filter(Boolean);
  if (!names.length) continue;
  const bar = document.createElement("div"), count = document.createElement("output"), chosen = new Map();
  const search = document.createElement("input");
  bar.className = "filters";
  const apply = () => {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = [...chosen].every(([column, value]) => !value || text(row, column) === value);
      row.hidden = !(fits && row.textContent.toLowerCase().includes(wanted));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length} rows`;
  };
  const labelled = (words, control) => {
    const label = document.createElement("label");
    label.append(words + " ", control);
    bar.append(label);
  };
  for (const name of names) {
    const column = heads.findIndex((head) => head.textContent.trim() === name);
    const values = [...new Set(rows.map((row) => text(row, column)))].filter(Boolean);
    if (values.length < 2) continue;
    const select = document.createElement("select");
    select.add(new Option("all", ""));
    for (const value of values) select.add(new Option(value, value));
    select.addEventListener("change", () => { chosen.set(column, select.value); apply(); });
    labelled(name, select);
  }
  search.type = "search";
  search.addEventListener("input", apply);
  labelled("search", search);
  bar.append(count);
  table.closest("figure").prepend(bar);
  apply();
}
"""
