"use strict";
// The page follows its server: parts that have changed come as HTML that the server's templates
// made. Focus, opened details, scrolled tables and marked text stay.
(() => {
  const byId = (id) => document.getElementById(id);
  const rule = { createHTML: (s) => s };
  const ours = window.trustedTypes ? trustedTypes.createPolicy("live", rule) : rule;
  const main = byId("main"), link = byId("link"), fault = byId("fault");

  const marked = (part) => {
    const s = getSelection();
    return s && !s.isCollapsed && part.contains(s.anchorNode);
  };
  // keyOf names an element that outlives a change of its part.
  const keyOf = (part, e) => e.id ? "#" + CSS.escape(e.id) : e.tagName === "A" ? `a[href="${CSS.escape(e.getAttribute("href"))}"]` : null;

  const show = (part, html) => {
    const active = part.contains(document.activeElement) ? keyOf(part, document.activeElement) : null;
    const open = new Map([...part.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
    const scrolled = [...part.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
    part.innerHTML = ours.createHTML(html);
    for (const d of part.querySelectorAll("details[id]")) if (open.has(d.id)) d.open = open.get(d.id);
    part.querySelectorAll(".scroll").forEach((s, i) => { if (scrolled[i]) s.scrollLeft = scrolled[i]; });
    if (active) {
      const again = part.querySelector(active);
      if (again) again.focus({ preventScroll: true });
    }
  };

  const waiting = new Map(); // parts whose text somebody is marking
  const arrange = (order) => {
    for (const part of [...main.children]) if (!order.includes(part.id)) part.remove();
    order.forEach((id, i) => {
      let part = byId(id);
      if (!part) {
        part = document.createElement("section");
        part.id = id;
        part.className = "part";
      }
      if (main.children[i] !== part) main.insertBefore(part, main.children[i] || null);
    });
  };
  const flush = () => {
    for (const [id, html] of waiting) {
      const part = byId(id);
      if (part && marked(part)) continue;
      waiting.delete(id);
      if (part) show(part, html);
    }
    ago();
  };
  const take = (m) => {
    if (document.title !== m.title) document.title = byId("title").textContent = m.title;
    if (byId("status").textContent !== m.status) byId("status").textContent = m.status;
    fault.hidden = !m.fault;
    fault.textContent = m.fault ? "What is shown is old: " + m.fault : "";
    main.classList.toggle("old", Boolean(m.fault));
    arrange(m.order);
    for (const [id, html] of Object.entries(m.parts)) waiting.set(id, html);
    flush();
  };

  // Times are told from here on: the server need not send a word for every second.
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const told = new Intl.RelativeTimeFormat("en", { numeric: "always" });
  const ago = () => {
    for (const t of document.querySelectorAll("time[data-ago]")) {
      const seconds = (new Date(t.dateTime) - Date.now()) / 1000;
      const [size, unit] = units.find(([size]) => Math.abs(seconds) >= size) || units[3];
      const words = Math.abs(seconds) < 1 ? "now" : told.format(Math.trunc(seconds / size), unit);
      if (t.textContent !== words) t.textContent = words;
      t.title = new Date(t.dateTime).toLocaleString();
    }
  };
  setInterval(() => { ago(); if (waiting.size) flush(); }, 1000);

  // A browser keeps only a few connections to one server: pages out of sight give theirs up.
  let stream = null, again = 0;
  const connect = () => {
    clearTimeout(again);
    if (stream || document.hidden) return;
    stream = new EventSource(document.body.dataset.events);
    stream.onopen = () => { link.textContent = ""; document.body.classList.remove("cut"); };
    stream.onmessage = ({ data }) => { take(JSON.parse(data)); performance.mark("shown"); };
    stream.onerror = () => {
      link.textContent = "Nobody answers; asking again …";
      document.body.classList.add("cut");
      if (stream.readyState === EventSource.CLOSED) { // refused: it would not ask again by itself
        stop();
        again = setTimeout(connect, 3000);
      }
    };
  };
  const stop = () => { if (stream) stream.close(); stream = null; };
  document.addEventListener("visibilitychange", () => { if (document.hidden) stop(); else connect(); });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", connect);
  ago();
  connect();
})();
