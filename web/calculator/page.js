"use strict";
// The page's side: reads the form, asks the program in the worker, and shows what it says.
// No figure is computed here; a slider only has a place for every value.
(() => {
  const byId = (id) => document.getElementById(id);
  const answer = byId("answer"), working = byId("working"), trouble = byId("trouble");

  // What the program and this file wrote may become part of the page, nothing else.
  const as = { createHTML: (s) => s, createScriptURL: (s) => s };
  const ours = window.trustedTypes ? window.trustedTypes.createPolicy("calculator", as) : as;
  const show = (place, html) => { place.innerHTML = ours.createHTML(html); };

  // Two workers: one answers at once and draws curves, the other takes its time over the
  // accountant that may find a smaller number. One that is busy with what nobody waits for
  // any more is replaced.
  let program = byId("program").textContent;
  const source = URL.createObjectURL(new Blob([byId("worker").textContent], { type: "text/javascript" }));
  class Helper {
    constructor(hear) { this.hear = hear; }
    start() {
      this.worker = new Worker(ours.createScriptURL(source));
      this.worker.onmessage = ({ data }) => {
        if (data.module) { program = data.module; this.ready = true; if (this.next) this.send(); return; }
        if (data.failed) { this.stop(); fail(data.failed); return; }
        if (data.shown) { this.asked = 0; clearTimeout(this.watch); }
        if (data.done) this.busy = false;
        this.hear(data);
        if (data.shown && this.next) this.send();
      };
      this.worker.onerror = () => { this.stop(); fail("this browser does not run it"); };
      this.worker.postMessage({ program });
    }
    stop() {
      clearTimeout(this.watch);
      if (this.worker) this.worker.terminate();
      this.worker = null;
      this.ready = this.busy = false;
      this.asked = 0;
      this.next = null;
    }
    ask(message) {
      this.next = message;
      if (!this.worker) this.start();
      else if (this.ready && !this.asked) this.send();
    }
    send() {
      const message = this.next, drawing = this.busy;
      this.next = null;
      this.asked = message.id;
      this.busy = true;
      this.worker.postMessage(message);
      clearTimeout(this.watch); // a point of a curve may take long: then another worker answers
      if (drawing) this.watch = setTimeout(() => { if (this.asked === message.id) { const next = this.next || message; this.stop(); this.ask(next); } }, 1500);
    }
  }
  const fail = (why) => {
    trouble.textContent = "The calculator stopped: " + why + ". Change a value to start it again, or ask coterie account on the command line.";
    trouble.hidden = false;
    working.textContent = "";
  };

  let id = 0, form = null, wanted = null, timer = 0;
  const take = (data, last) => {
    if (data.id !== id) return;
    if (data.piece) { show(byId(data.piece.place), data.piece.html); return; }
    if (!data.shown) return;
    const { error, brief, html, solved } = data.shown;
    trouble.hidden = !error;
    trouble.textContent = error || "";
    for (const place of [answer, byId("curves")]) place.classList.toggle("old", Boolean(error));
    if (error) byId("brief").textContent = error;
    else { show(answer, html); show(byId("brief"), brief); }
    performance.mark("answer");
    for (const field of form.querySelectorAll(".field.solved")) {
      const value = solved && solved[field.dataset.flag];
      if (value !== undefined) put(field, value);
    }
    const more = wanted && !last && !error;
    working.textContent = more ? "This is rdp’s answer; a smaller number is looked for …" : "";
    answer.setAttribute("aria-busy", String(Boolean(more)));
    answer.dataset.id = data.id;
    if (more) timer = setTimeout(() => thorough.ask({ id, question: wanted }), 250);
  };
  const quick = new Helper((data) => take(data, false)), thorough = new Helper((data) => take(data, true));

  // Sliders: 0 to 1000 over a range, even steps or even factors; three digits are enough.
  const range = (field) => ({ low: Number(field.dataset.low), high: Number(field.dataset.high), linear: "linear" in field.dataset, whole: "whole" in field.dataset });
  const valueAt = (field, place) => {
    const { low, high, linear, whole } = range(field), share = place / 1000;
    const x = linear ? low + (high - low) * share : Math.exp(Math.log(low) + (Math.log(high) - Math.log(low)) * share);
    const short = Number(x.toPrecision(3));
    return String(whole ? Math.round(short) : short);
  };
  const placeOf = (field, value) => {
    const { low, high, linear } = range(field), x = Math.min(high, Math.max(low, Number(value)));
    return Math.round(1000 * (linear ? (x - low) / (high - low) : Math.log(x / low) / Math.log(high / low)));
  };
  const put = (field, value) => { field.querySelector(".value").value = value; follow(field); };
  const follow = (field) => {
    const slider = field.querySelector(".slider"), value = field.querySelector(".value").value;
    const place = placeOf(field, value);
    if (Number.isFinite(place)) slider.value = place;
    slider.setAttribute("aria-valuetext", value);
  };

  // question is the command line that the form stands for.
  const question = () => {
    const value = (name) => form.elements[name].value.trim();
    const chosen = [...form.querySelectorAll("select")].filter((s) => s.selectedIndex > 0).map((s) => [s.name, s.value]);
    if (form.id === "silo") {
      const own = ["yours", ...["examples", "batch", "epochs", "epsilon", "delta"].map(value)].join(",");
      const lines = ["silo,examples,batch,epochs,epsilon,delta", own, ...form.elements.others.value.split("\n").map((l) => l.trim()).filter(Boolean)];
      return { command: "silo", flags: chosen, file: lines.join("\n") + "\n" };
    }
    const solve = form.id === "training" ? form.elements.solve.value : "";
    const left = solve === "epsilon" ? "epsilon" : solve;
    const poisson = form.id === "tuning" && value("distribution") === "poisson";
    const flags = [...form.querySelectorAll(".field[data-flag]")].map((f) => f.dataset.flag)
      .filter((flag) => flag !== left && !(poisson && flag === "eta")).map((flag) => [flag, value(flag)]);
    return { command: form.id === "training" ? (solve === "epsilon" ? "dpsgd" : "calibrate") : form.id, flags: [...flags, ...chosen] };
  };

  const changed = () => {
    id++;
    clearTimeout(timer);
    if (thorough.busy || thorough.next) thorough.stop();
    for (const field of form.querySelectorAll(".field[data-flag]")) {
      const solve = form.id === "training" ? form.elements.solve.value : "";
      const solved = solve === field.dataset.flag;
      field.classList.toggle("solved", solved);
      field.hidden = solved && solve === "epsilon";
      field.querySelector(".value").readOnly = solved;
      field.querySelector(".slider").disabled = solved;
    }
    const all = question(), rdp = all.flags.some(([name]) => name === "accountant") || form.id === "metric";
    wanted = rdp ? null : all;
    quick.ask({ id, question: rdp ? all : { ...all, flags: [...all.flags, ["accountant", "rdp"]] }, curves: true });
  };

  document.addEventListener("input", ({ target }) => {
    if (target.name === "ask") { choose(target.value); return; }
    const field = target.closest(".field[data-flag]");
    if (field && target.classList.contains("slider")) put(field, valueAt(field, Number(target.value)));
    else if (field) follow(field);
    changed();
  });
  document.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("click", async ({ target }) => {
    const from = target.dataset && target.dataset.copies;
    if (!from) return;
    const text = byId(from).textContent;
    try { await navigator.clipboard.writeText(text); target.textContent = "Copied"; } catch {
      getSelection().selectAllChildren(byId(from)); // it stands ready to be copied by hand
      target.textContent = "Marked: copy it";
    }
  });

  const choose = (name) => {
    for (const f of document.forms) f.hidden = f.id !== name;
    form = byId(name);
    for (const place of byId("curves").children) place.replaceChildren();
    changed();
  };
  for (const field of document.querySelectorAll(".field[data-flag]")) follow(field);
  choose(document.querySelector("input[name=ask]:checked").value);
})();
