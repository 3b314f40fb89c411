"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const all = (query) => [...document.querySelectorAll(query)];
  const hidden = new Set();
  const chosen = (id) => Number(document.getElementById(id).value);
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const isDark = () => root.dataset.theme === "dark";
  const colour = (label) => data.inks[label][isDark() ? "dark" : "light"];
  const faint = (hex, alpha) => {
    const part = (at) => parseInt(hex.slice(at, at + 2), 16);
    return `rgba(${part(1)},${part(3)},${part(5)},${alpha})`;
  };

  const axes = {
    step: { title: "environment steps", scale: 1 },
    paper_flops: { title: "FLOPs", scale: 1 },
    full_flops: { title: "FLOPs", scale: 1 },
    seconds: { title: "minutes", scale: 1 / 60 },
  };

  const layout = (x, y, more = {}) => {
    const axis = (title) => ({
      title: { text: title, font: { size: 12 }, standoff: 8 }, gridcolor: css("--line"), zerolinecolor: css("--line"),
      linecolor: css("--line"), tickfont: { size: 11 }, automargin: true, fixedrange: touch,
      spikecolor: css("--soft"), spikethickness: 1, spikedash: "dot",
    });
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: css("--soft"), family: "system-ui, sans-serif" },
      margin: { l: 8, r: 12, t: 8, b: 8 }, showlegend: false, hovermode: "x unified", dragmode: touch ? false : "zoom",
      hoverlabel: { bgcolor: css("--bg"), bordercolor: css("--line"), font: { color: css("--fg"), size: touch ? 11 : 12 } },
      ...more,
      xaxis: { ...axis(x), ...more.xaxis }, yaxis: { ...axis(y), ...more.yaxis },
    };
  };
  const touch = matchMedia("(pointer: coarse)").matches;

  const band = (x, low, high, label, more = {}) => ({
    x: [...x, ...[...x].reverse()], y: [...high, ...[...low].reverse()], fill: "toself", fillcolor: faint(colour(label), 0.16),
    line: { width: 0 }, mode: "lines", hoverinfo: "skip", type: "scatter", visible: !hidden.has(label), meta: label, ...more,
  });

  const draw = {
    curve(div) {
      const task = data.tasks[div.dataset.chosen ? chosen(div.dataset.chosen) : Number(div.dataset.task)];
      const { title, scale } = axes[div.dataset.x];
      const showSeeds = document.getElementById("seeds").checked;
      const kind = document.getElementById("raw").checked ? "raw" : "smooth";
      const traces = [];
      for (const curve of task.curves) {
        const known = [...curve.n.keys()].filter((i) => curve[div.dataset.x][i] !== null);
        if (!known.length) continue;
        const pick = (values) => known.map((i) => values[i]);
        const [x, mean, std, n] = [pick(curve[div.dataset.x]).map((value) => value * scale), pick(curve[kind].mean), pick(curve[kind].std), pick(curve.n)];
        const visible = !hidden.has(curve.label);
        const spread = (sign) => mean.map((value, i) => value + sign * std[i]);
        if (!showSeeds || div.dataset.x !== "step") traces.push(band(x, spread(-1), spread(1), curve.label));
        if (showSeeds && div.dataset.x === "step") {
          for (const seed of curve.seeds) {
            traces.push({
              x: seed.step, y: seed[kind], mode: "lines", type: "scatter", line: { width: 1, color: faint(colour(curve.label), 0.5) },
              name: `${curve.label}, seed ${seed.seed}`, visible, meta: curve.label, hovertemplate: "%{y:,.0f}",
            });
          }
        }
        traces.push({
          x, y: mean, mode: "lines", type: "scatter", name: curve.label, visible, meta: curve.label,
          line: { width: 2.2, color: colour(curve.label), dash: data.inks[curve.label].dash },
          customdata: std.map((value, i) => [value, n[i]]),
          hovertemplate: "%{y:,.0f} ± %{customdata[0]:,.0f} (n = %{customdata[1]})",
        });
      }
      div.closest(".card").hidden = !traces.length; // a task whose runs did not log this
      const flops = div.dataset.x.endsWith("flops");
      return [traces, layout(title, "return", {
        hovermode: div.dataset.x === "step" && !showSeeds ? "x unified" : "closest", // all at once, unless they are many
        xaxis: { hoverformat: { step: ",d", seconds: ",.1f" }[div.dataset.x] || ".3e", exponentformat: flops ? "e" : "SI", nticks: flops ? 5 : 0 },
        yaxis: { tickformat: "," },
      })];
    },

    diagnostic(div) {
      const column = div.dataset.column;
      const share = column.endsWith("dormant");
      const traces = [];
      for (const { label, diagnostics } of data.tasks[chosen("diagnosed-task")].curves) {
        const known = diagnostics[column];
        if (!known) continue;
        const spread = (sign) => known.mean.map((value, i) => value + sign * known.std[i]);
        traces.push(band(known.step, spread(-1), spread(1), label));
        traces.push({
          x: known.step, y: known.mean, mode: "lines", type: "scatter", name: label, visible: !hidden.has(label), meta: label,
          line: { width: 2.2, color: colour(label), dash: data.inks[label].dash }, customdata: known.std,
          hovertemplate: share ? "%{y:.1%} ± %{customdata:.1%}" : "%{y:,.1f} ± %{customdata:,.1f}",
        });
      }
      div.closest(".card").hidden = !traces.length; // a task whose runs did not log this
      return [traces, layout("environment steps", "", { xaxis: { hoverformat: ",d" }, yaxis: { tickformat: share ? ".0%" : "," } })];
    },

    iqm() {
      const items = data.iqm.filter((item) => !hidden.has(item.label)).reverse();
      const traces = items.map((item) => ({
        x: [item.value], y: [`${item.label} (n = ${item.n})`], type: "scatter", mode: "markers", name: item.label, meta: item.label,
        marker: { color: colour(item.label), size: 9, symbol: "diamond" },
        error_x: item.low === null ? undefined : {
          type: "data", symmetric: false, array: [item.high - item.value], arrayminus: [item.value - item.low],
          color: colour(item.label), thickness: 2.5, width: 5,
        },
        hovertemplate: `%{x:.3f}` + (item.low === null ? "" : ` [${item.low.toFixed(3)}, ${item.high.toFixed(3)}]`) + `<extra>${item.label}</extra>`,
      }));
      return [traces, layout("IQM of the normalised return", "", { hovermode: "closest", yaxis: { gridcolor: "rgba(0,0,0,0)" } })];
    },

    profile() {
      const traces = [];
      for (const item of data.profiles) {
        traces.push(band(item.taus, item.low, item.high, item.label));
        traces.push({
          x: item.taus, y: item.share, type: "scatter", mode: "lines", name: item.label, meta: item.label, visible: !hidden.has(item.label),
          line: { width: 2.2, color: colour(item.label), dash: data.inks[item.label].dash }, hovertemplate: `%{y:.0%} (n = ${item.n})`,
        });
      }
      return [traces, layout("normalised return τ", "runs above τ", { yaxis: { tickformat: ".0%", range: [-0.02, 1.04] }, xaxis: { hoverformat: ".2f" } })];
    },

    heat(div) {
      const study = wiring();
      div.style.height = `${Math.min(Math.max(15, 5 + 1.05 * study.features.length), 60)}rem`;
      div.closest(".card").hidden = !study.features.length; // its first layer is dense
      if (!study.features.length) return [[], {}];
      const narrow = div.clientWidth < 520;
      return [[{
        type: "heatmap", x: study.step, y: study.features, z: study.links, colorscale: "Cividis", hoverongaps: false,
        colorbar: { title: { text: "links", side: "right" }, thickness: 10, outlinewidth: 0, tickfont: { size: 11 } },
        hovertemplate: "%{y}<br>step %{x:,}<br>%{z:.0f} links<extra></extra>",
      }], layout("environment steps", "", {
        hovermode: "closest",
        yaxis: { autorange: "reversed", tickfont: { size: narrow ? 9 : 11 }, nticks: Math.min(study.features.length, 60), gridcolor: "rgba(0,0,0,0)", title: { text: "" } },
        xaxis: { gridcolor: "rgba(0,0,0,0)", nticks: narrow ? 4 : 8 },
      })];
    },

    ages() {
      const study = wiring();
      const shades = isDark() ? ["#6b7785", "#8fa3b5", "#b5cadb", "#e6f2fb"] : ["#a9c3d6", "#6d9cbd", "#2f77a6", "#0b3c5d"];
      const traces = study.ages.map((age, i) => ({
        x: study.age_step, y: age.share, type: "scatter", mode: "lines", name: `${age.name} steps old`,
        line: { width: 2, color: shades[i % shades.length] }, hovertemplate: "%{y:.0%}",
      }));
      return [traces, layout("environment steps", "share of links", {
        yaxis: { tickformat: ".0%", range: [-0.02, 1.04] }, xaxis: { hoverformat: ",d" }, showlegend: true,
        legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 11 } },
      })];
    },

    degrees(div) {
      const degrees = wiring().degrees[Number(div.dataset.part)];
      div.hidden = !degrees;
      if (!degrees) return [[], {}];
      const middle = degrees.first.map((_, i) => (degrees.edges[i] + degrees.edges[i + 1]) / 2);
      const bars = (y, name, fill, line) => ({
        x: middle, y, type: "scatter", mode: "lines", name, fill: fill ? "tozeroy" : "none", fillcolor: fill,
        line: { shape: "hvh", width: line ? 2 : 0, color: line || fill }, hovertemplate: "%{y:.1%}",
      });
      return [
        [bars(degrees.first, "at the start", faint(isDark() ? "#c4c4c4" : "#777777", 0.35), null), bars(degrees.last, "at the end", null, isDark() ? "#56b4e9" : "#0072b2")],
        layout(degrees.side, "", { yaxis: { tickformat: ".0%", nticks: 4, rangemode: "tozero" }, xaxis: { nticks: 5, tickangle: 0, title: { text: degrees.side, font: { size: 10.5 }, standoff: 4 } } }),
      ];
    },
  };

  const wiring = () => {
    const names = [...new Set(data.wiring.map((study) => `${study.label} on ${study.task}`))];
    const networks = [...new Set(data.wiring.map((study) => study.network))];
    const [name, network] = [names[chosen("wiring-method")], networks[chosen("wiring-network")]];
    return data.wiring.find((study) => `${study.label} on ${study.task}` === name && study.network === network);
  };

  const config = { responsive: true, displayModeBar: false };
  const drawn = new Set();
  const show = (div) => {
    const [traces, shape] = draw[div.dataset.plot](div);
    drawn.add(div);
    return Plotly.react(div, traces, shape, config);
  };
  const again = (kinds) => drawn.forEach((div) => { if (!kinds || kinds.includes(div.dataset.plot)) show(div); });

  // A plot is drawn when it is about to be seen: the page opens at once, however many there are.
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { watcher.unobserve(entry.target); show(entry.target); }
    }
  }, { rootMargin: "500px" });

  const methods = ["curve", "diagnostic", "iqm", "profile"];
  const paintChips = () => {
    for (const chip of all(".chip")) chip.setAttribute("aria-pressed", String(!hidden.has(chip.dataset.label)));
    again(methods);
  };
  for (const chip of all(".chip")) {
    const label = chip.dataset.label;
    chip.addEventListener("click", (event) => {
      if (event.detail > 1) return; // the second click of a double one
      if (!hidden.delete(label)) hidden.add(label);
      paintChips();
    });
    chip.addEventListener("dblclick", () => {
      const others = Object.keys(data.inks).filter((other) => other !== label);
      const alone = others.every((other) => hidden.has(other));
      hidden.clear();
      if (!alone) others.forEach((other) => hidden.add(other));
      paintChips();
    });
  }

  const labelWiring = () => {
    const place = document.getElementById("wiring-n");
    if (place) place.textContent = wiring().n;
  };
  const on = (id, kinds, also = () => {}) => {
    const element = document.getElementById(id);
    if (element) element.addEventListener("change", () => { also(); again(kinds); });
  };
  on("seeds", ["curve"]);
  on("raw", ["curve"]);
  on("cost-task", ["curve"]);
  on("diagnosed-task", ["diagnostic"]);
  on("wiring-method", ["heat", "ages", "degrees"], labelWiring);
  on("wiring-network", ["heat", "ages", "degrees"], labelWiring);
  labelWiring();

  // A shadow where a table continues to the right.
  const shade = (box) => box.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  for (const box of all(".table .scroll")) {
    box.addEventListener("scroll", () => shade(box), { passive: true });
    new ResizeObserver(() => shade(box)).observe(box);
  }

  const button = document.getElementById("theme");
  const wish = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "☀ light" : "☾ dark";
    again();
  };
  button.addEventListener("click", () => setTheme(!isDark()));
  wish.addEventListener("change", () => setTheme(wish.matches));
  setTheme(wish.matches);

  all(".plot").forEach((div) => watcher.observe(div));
  addEventListener("beforeprint", () => all(".plot").forEach(show));
})();
