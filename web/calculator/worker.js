"use strict";
// The calculator runs beside the page, so that sliders stay smooth. It is a Go program for
// WASI without files, network or arguments: what the system would do is answered here.
let go;

const system = (memory) => {
  const view = () => new DataView(memory().buffer);
  const bytes = (at, length) => new Uint8Array(memory().buffer, at, length);
  const nothing = (...at) => { for (const a of at) view().setUint32(a, 0, true); return 0; };
  const known = {
    clock_time_get: (_id, _precision, at) => { view().setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true); return 0; },
    random_get: (at, length) => { crypto.getRandomValues(bytes(at, length)); return 0; },
    poll_oneoff: (_waits, _events, _count, happened) => nothing(happened), // a look that finds nothing: there is nothing to wait for
    args_sizes_get: nothing, environ_sizes_get: nothing, args_get: () => 0, environ_get: () => 0, sched_yield: () => 0,
    fd_prestat_get: () => 8, // no folder
    fd_write: (_file, list, count, written) => { // the last words of a program that fails
      let said = "", length = 0;
      for (let i = 0; i < count; i++) {
        const at = view().getUint32(list + 8 * i, true), size = view().getUint32(list + 8 * i + 4, true);
        said += new TextDecoder().decode(bytes(at, size).slice());
        length += size;
      }
      console.error(said);
      view().setUint32(written, length, true);
      return 0;
    },
    proc_exit: (code) => { throw new Error("the calculator ended with code " + code); },
  };
  return (name) => known[name] || (() => 52); // not supported
};

const start = async (module) => {
  const answer = system(() => go.memory), imports = {};
  for (const { name } of WebAssembly.Module.imports(module)) imports[name] = answer(name);
  go = (await WebAssembly.instantiate(module, { wasi_snapshot_preview1: imports })).exports;
  go._initialize();
};

// compiled is the program: packed text the first time, ready when the page starts another.
const compiled = (given) => {
  if (given instanceof WebAssembly.Module) return given;
  const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(given) : Uint8Array.from(atob(given), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compileStreaming(new Response(stream, { headers: { "Content-Type": "application/wasm" } }));
};

const said = (length) => JSON.parse(new TextDecoder().decode(new Uint8Array(go.memory.buffer, go.answer(), length).slice()));

const asked = (question) => {
  const text = new TextEncoder().encode(JSON.stringify(question));
  const at = go.room(text.length);
  new Uint8Array(go.memory.buffer, at, text.length).set(text);
  return said(go.ask(text.length));
};

// A pause lets a newer question in: curves of an older one are not drawn to their end.
const pause = new MessageChannel();
let newest = 0;
const paused = () => new Promise((resume) => { pause.port1.onmessage = resume; pause.port2.postMessage(0); });

onmessage = async ({ data }) => {
  try {
    if (data.program) {
      const module = await compiled(data.program);
      await start(module);
      postMessage({ module });
      return;
    }
    newest = data.id;
    postMessage({ id: data.id, shown: asked(data.question) });
    while (data.curves) {
      await paused();
      if (newest !== data.id) return;
      const length = go.more();
      if (!length) break;
      const piece = said(length);
      if (piece.place) postMessage({ id: data.id, piece });
    }
    postMessage({ id: data.id, done: true });
  } catch (error) {
    postMessage({ failed: String(error && error.message || error) });
  }
};
