// What scripts add, and nothing needs: pages that renew themselves, a button that stops that, and plots to point at.
(() => {
  "use strict";
  const status = document.getElementById("live");
  const pause = document.getElementById("pause");
  const stream = document.body.dataset.live;
  let source = null, pending = false, busy = false, wasLost = false;

  const say = (kind, text) => {
    status.className = "live " + kind;
    status.textContent = text;
  };

  // Somebody is writing, or has ticked or opened something: the page is theirs.
  const inUse = () => {
    const main = document.getElementById("main");
    const here = document.activeElement;
    return (here && main.contains(here) && here.matches("input, textarea, select"))
      || main.querySelector("input:checked, details[open]") !== null;
  };

  const renew = async () => {
    if (!document.getElementById("main").hasAttribute("data-refresh")) return;
    if (busy || document.hidden || inUse()) { pending = true; return; }
    pending = false;
    busy = true;
    try {
      await htmx.ajax("GET", location.href, { target: "#main", select: "#main", swap: "outerMorph" });
    } catch (_) { /* the stream says when the connection is lost */ }
    busy = false;
    // Something changed while the page was on its way.
    if (pending) renew();
  };

  const open = () => {
    source = new EventSource(stream);
    source.addEventListener("hello", () => {
      say("", "live");
      if (wasLost || pending) renew();
      wasLost = false;
    });
    source.addEventListener("change", renew);
    source.onerror = () => {
      wasLost = true;
      say("lost", "connection lost, trying again");
      if (source.readyState === EventSource.CLOSED) setTimeout(open, 5000);
    };
  };

  if (status && pause && document.querySelector("[data-refresh]")) {
    status.hidden = pause.hidden = false;
    let paused = sessionStorage.getItem("dlq-paused") === "1";
    const show = () => {
      pause.textContent = paused ? "Go on with updates" : "Pause updates";
      pause.setAttribute("aria-pressed", String(paused));
      if (paused) {
        if (source) source.close();
        say("paused", "paused");
      } else {
        say("", "connecting");
        open();
      }
    };
    pause.addEventListener("click", () => {
      paused = !paused;
      sessionStorage.setItem("dlq-paused", paused ? "1" : "0");
      if (!paused) pending = true;
      show();
    });
    document.addEventListener("visibilitychange", () => { if (!document.hidden && pending && !paused) renew(); });
    document.addEventListener("focusout", () => setTimeout(() => { if (pending && !paused) renew(); }, 300));
    addEventListener("pagehide", () => { if (source) source.close(); });
    show();
  }

  // Keys: "/" goes to the filter, "g" and a letter goes to a page.
  let went = 0;
  const pages = { o: "/", l: "/letters", g: "/groups", p: "/operations", a: "/audit", c: "/counters" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
    if (event.key === "/") {
      const filter = document.getElementById("q");
      if (filter) { event.preventDefault(); filter.focus(); filter.select(); }
    } else if (Date.now() - went < 1000 && event.key in pages) {
      const link = document.querySelector(`nav a[href$="${pages[event.key]}"]`);
      if (link) link.click();
    }
    went = event.key === "g" && Date.now() - went >= 1000 ? Date.now() : 0;
  });

  // Plots: the table beside each has the numbers; the picture that was drawn on the server makes room.
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const draw = (figure) => {
    const section = figure.closest("section");
    const rows = [...section.querySelectorAll("tbody tr")].reverse();
    const days = rows.map((row) => Date.parse(row.cells[0].textContent.trim() + "T00:00:00Z") / 1000);
    const counts = rows.map((row) => Number(row.cells[1].dataset.value));
    const above = figure.dataset.above === "" ? null : Number(figure.dataset.above);
    const data = [days, counts];
    // As the server writes numbers and days.
    const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
    const day = (at) => new Date(at * 1e3).toISOString().slice(0, 10);
    const said = (_, n) => (n === null || n === undefined ? "–" : number(n));
    const series = [
      { label: "day", value: (_, at) => (at === null || at === undefined ? "–" : day(at)) },
      { label: "count", value: said, stroke: css("--bar"), fill: css("--bar") + "44", width: 2, points: { show: true } },
    ];
    if (above !== null) {
      data.push(days.map(() => above));
      series.push({ label: "degraded above", value: said, stroke: css("--bad"), dash: [6, 4], width: 1.5, points: { show: false } });
    }
    const axis = { stroke: css("--muted"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") } };
    // Whole days and whole letters: nothing between them is a tick.
    const perDay = 86400;
    const x = { ...axis, space: 100, incrs: [1, 2, 5, 7, 14].map((n) => n * perDay), values: (_, ticks) => ticks.map(day) };
    const whole = [...Array(16).keys()].flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power));
    const widest = number(Math.max(...counts, above ?? 0) * 2).length;
    const y = { ...axis, size: Math.max(24 + 8 * widest, 64), incrs: whole, values: (_, ticks) => ticks.map(number) };
    const options = {
      width: Math.max(figure.clientWidth, 200), height: 200, series, tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), "Etc/UTC"),
      axes: [x, y], scales: { y: { range: (_, least, most) => [0, Math.max(most * 1.05, 1)] } },
      hooks: { setCursor: [(plot) => { if (plot.cursor.idx === null) newest(plot); }] },
    };
    // Where nothing is pointed at, the legend tells the last day.
    const newest = (plot) => plot.setLegend({ idx: days.length - 1 }, false);
    figure.replaceChildren();
    const plot = new uPlot(options, data, figure);
    newest(plot);
    addEventListener("resize", () => plot.setSize({ width: Math.max(figure.clientWidth, 200), height: 200 }));
  };
  if (typeof uPlot !== "undefined") document.querySelectorAll("figure[data-plot]").forEach(draw);
})();
