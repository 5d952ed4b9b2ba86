"use strict";
// Says what is pointed at: points of curves, bars, images; lights up the row of a table that belongs to it, and the other way
// round. Marks tables that are wider than the window. Without scripts the page shows the same, and browsers show titles.
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("role", "status");
  document.body.append(tip);

  // Where the parts of a group are, in the coordinates of its drawing.
  const corners = (group) => {
    if (!group.corners) {
      const line = group.querySelector("polyline");
      const numbers = line ? line.getAttribute("points").split(" ").map((pair) => pair.split(",").map(Number)) : [];
      group.corners = numbers;
      const { x, y, values } = group.dataset;
      group.values = (values || "").split("|").map((pair) => pair.split(" ")).map(([a, b]) => `${x} ${a}: ${y} ${b}`);
    }
    return group.corners;
  };
  const distanceTo = (group, x, y) => {
    const points = corners(group);
    if (points.length) {
      let best = [Infinity, 0];
      points.forEach(([px, py], index) => {
        const distance = Math.hypot(px - x, py - y);
        if (distance < best[0]) best = [distance, index];
      });
      return best;
    }
    const box = group.getBBox();
    const dx = Math.max(box.x - x, 0, x - box.x - box.width);
    const dy = Math.max(box.y - y, 0, y - box.y - box.height);
    return [Math.hypot(dx, dy), -1];
  };
  const nearest = (svg, event) => {
    const matrix = svg.getScreenCTM();
    if (!matrix) return null;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    let best = null;
    for (const group of svg.querySelectorAll("g[data-name]")) {
      const [distance, index] = distanceTo(group, at.x, at.y);
      if (distance < 24 && (!best || distance < best.distance)) best = { group, distance, index };
    }
    return best;
  };

  const rows = [...document.querySelectorAll("tr[data-names]")];
  const rowsOf = (name) => rows.filter((row) => row.dataset.names.split("|").includes(name));
  const groups = [...document.querySelectorAll("svg g[data-of]")];
  const clear = () => document.querySelectorAll(".lit").forEach((lit) => lit.classList.remove("lit"));
  const hide = () => {
    tip.style.display = "none";
    clear();
  };

  for (const svg of document.querySelectorAll("svg")) {
    if (!svg.querySelector("g[data-name]")) continue;
    const show = (event) => {
      const found = nearest(svg, event);
      hide();
      if (!found) return;
      const { group, index } = found;
      const value = index >= 0 ? group.values[index] : "";
      tip.textContent = value ? `${group.dataset.name}: ${value}` : group.dataset.name;
      tip.style.display = "block";
      const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
      tip.style.left = `${Math.max(8, Math.min(event.clientX + 12, room))}px`;
      tip.style.top = `${event.clientY + 16 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 16}px`;
      group.classList.add("lit");
      rowsOf(group.dataset.of).forEach((row) => row.classList.add("lit"));
    };
    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("click", (event) => {
      const found = nearest(svg, event);
      const row = found && rowsOf(found.group.dataset.of)[0];
      if (row) row.scrollIntoView({ block: "center" });
    });
  }
  for (const row of rows) {
    const names = row.dataset.names.split("|");
    row.addEventListener("pointerenter", () => {
      clear();
      groups.filter((group) => names.includes(group.dataset.of)).forEach((group) => group.classList.add("lit"));
    });
    row.addEventListener("pointerleave", clear);
  }

  const mark = () => {
    // All are measured before any is changed: a page with hundreds of tables is laid out once.
    const measured = [...document.querySelectorAll(".scroll")].map((box) => [box, box.scrollWidth > box.clientWidth + 1]);
    for (const [box, wide] of measured) {
      box.classList.toggle("wide", wide);
      let cue = box.previousElementSibling;
      if (!cue || !cue.classList.contains("cue")) {
        cue = document.createElement("div");
        cue.className = "cue";
        cue.textContent = "\u2194 wider than the window: scroll sideways";
        box.before(cue);
      }
      cue.style.display = wide ? "block" : "none";
    }
  };
  mark();
  addEventListener("resize", mark);
  document.querySelectorAll("details").forEach((details) => details.addEventListener("toggle", mark));
})();
