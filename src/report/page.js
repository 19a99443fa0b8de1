"use strict";

// What is in the cells of a picture, by pointer, or by arrow keys on the button below it. The table behind the picture says it.
function explore(figure) {
  const picture = figure.querySelector(".picture");
  const svg = picture.querySelector("svg");
  const cursor = picture.querySelector(".cursor");
  const button = figure.querySelector(".cell button");
  const output = figure.querySelector(".cell output");
  const edges = JSON.parse(picture.querySelector("script").textContent);
  const rows = figure.querySelectorAll("tbody tr");
  const columns = figure.querySelectorAll("thead th");
  let row = 0;
  let column = 0;

  function scale() {
    return svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  }

  function show() {
    const factor = scale();
    cursor.hidden = false;
    cursor.style.left = edges.x[column] * factor + "px";
    cursor.style.top = edges.y[row] * factor + "px";
    cursor.style.width = (edges.x[column + 1] - edges.x[column]) * factor + "px";
    cursor.style.height = (edges.y[row + 1] - edges.y[row]) * factor + "px";
    const cells = rows[row].children;
    output.textContent = cells[0].textContent + " – " + columns[column + 1].textContent + ": " + cells[column + 1].textContent;
  }

  function find(ends, at) {
    return ends.findIndex(function (end, k) {
      return k + 1 < ends.length && at >= end && at < ends[k + 1];
    });
  }

  svg.addEventListener("mousemove", function (event) {
    const box = svg.getBoundingClientRect();
    const foundRow = find(edges.y, (event.clientY - box.top) / scale());
    const foundColumn = find(edges.x, (event.clientX - box.left) / scale());
    if (foundRow >= 0 && foundColumn >= 0) {
      row = foundRow;
      column = foundColumn;
      show();
    }
  });

  // it is where its cell was
  window.addEventListener("resize", function () {
    cursor.hidden = true;
  });
  button.addEventListener("focus", show);
  button.addEventListener("click", show);
  button.addEventListener("blur", function () {
    cursor.hidden = true;
  });
  button.addEventListener("keydown", function (event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (move) {
      event.preventDefault();
      row = Math.min(Math.max(row + move[0], 0), edges.y.length - 2);
      column = Math.min(Math.max(column + move[1], 0), edges.x.length - 2);
      show();
    }
  });
}

// What is not seen at first is there as deflated text.
function unpack(view, then) {
  const bytes = Uint8Array.from(atob(view.dataset.packed), function (letter) {
    return letter.charCodeAt(0);
  });
  const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  delete view.dataset.packed;
  new Response(text).text().then(function (html) {
    view.innerHTML = html;
    then();
  });
}

// The view of a collective, a root if it has one, and a size if it has one: those of several sizes have one element, with pieces of each.
function choose(chooser) {
  const controls = Array.from(chooser.querySelectorAll("[data-choose]"));
  const slider = chooser.querySelector("[data-choose=size]");
  const output = chooser.querySelector(".controls output");
  const sizes = JSON.parse(chooser.querySelector(".controls script").textContent);

  function show() {
    let isSeen = false;
    controls.forEach(function (control) {
      control.disabled = false;
    });
    chooser.querySelectorAll(".view").forEach(function (view) {
      view.hidden = controls.some(function (control) {
        const own = view.dataset[control.dataset.choose];
        return own !== undefined && !own.split(" ").includes(control.value);
      });
      view.querySelectorAll(".piece[data-size]").forEach(function (piece) {
        piece.hidden = piece.dataset.size !== slider.value;
      });
      if (!view.hidden) {
        isSeen = true;
        controls.forEach(function (control) {
          control.disabled = view.dataset[control.dataset.choose] === undefined;
        });
        if (view.dataset.packed) {
          unpack(view, show);
        }
      }
    });
    chooser.querySelector("[data-none]").hidden = isSeen;
    const size = slider.disabled ? "no message" : sizes[Number(slider.value)];
    slider.setAttribute("aria-valuetext", size);
    output.textContent = size;
  }

  controls.forEach(function (control) {
    control.addEventListener("input", show);
  });
  show();
}

document.querySelectorAll("figure").forEach(function (figure) {
  if (figure.querySelector("[data-cells]")) {
    explore(figure);
  }
});
document.querySelectorAll(".chooser").forEach(choose);

// On paper are the tables that are unfolded; nothing scrolls there: those with more columns than a sheet has room for are in parts.
const MOST_COLUMNS = 14;

function part(table, from) {
  const copy = table.cloneNode(true);
  copy.querySelectorAll("tr").forEach(function (row) {
    Array.from(row.children).forEach(function (cell, column) {
      if (column > 0 && (column < from || column >= from + MOST_COLUMNS)) {
        cell.remove();
      }
    });
  });
  copy.classList.add("part");
  return copy;
}

window.addEventListener("beforeprint", function () {
  document.querySelectorAll("table").forEach(function (table) {
    const columns = table.querySelectorAll("thead th").length;
    if (columns > MOST_COLUMNS + 1 && !table.closest("details:not([open]), [hidden]")) {
      for (let from = 1; from < columns; from += MOST_COLUMNS) {
        table.parentNode.append(part(table, from));
      }
      table.hidden = true;
    }
  });
});
window.addEventListener("afterprint", function () {
  document.querySelectorAll("table.part").forEach(function (table) {
    table.remove();
  });
  document.querySelectorAll("table[hidden]").forEach(function (table) {
    table.hidden = false;
  });
});
