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

// One of several views, by a list and a slider.
function choose(chooser) {
  const list = chooser.querySelector("[data-choose=list]");
  const slider = chooser.querySelector("[data-choose=slider]");
  const output = chooser.querySelector(".controls output");
  const names = JSON.parse(chooser.querySelector(".controls script").textContent);

  function show() {
    chooser.querySelectorAll(".view").forEach(function (view) {
      view.hidden = view.dataset.list !== list.value || view.dataset.slider !== slider.value;
    });
    slider.setAttribute("aria-valuetext", names[Number(slider.value)]);
    output.textContent = names[Number(slider.value)];
  }

  list.addEventListener("change", show);
  slider.addEventListener("input", show);
  show();
}

document.querySelectorAll("figure").forEach(function (figure) {
  if (figure.querySelector("[data-cells]")) {
    explore(figure);
  }
});
document.querySelectorAll(".chooser").forEach(choose);
