"use strict";
(() => {
  /* ---- data: what gnnc wrote, and what a trainer measured ---- */
  const read = (doc, id) => { const s = doc.getElementById(id); return s ? JSON.parse(s.textContent) : null; };
  const R = read(document, "report"), S = read(document, "stages"), M = read(document, "measured");
  const val = (e) => (e ? e.value ?? e.nominal ?? 0 : 0);
  const known = (e) => e && e.value !== undefined;
  const moved = (s) => val(s.read) + val(s.written);
  const MAIN = R.verdict ? R.verdict.phase : "train";
  const phaseOf = (r, name) => (r.fusion.phases.find((p) => p.phase === name) || { steps: [] });

  /* ---- drawing ---- */
  /* Makes an HTML element: props are attributes and properties (cls: class; on: handlers by
     event; style: by name), kids its children; null and false ones are left out. */
  const el = (tag, props, ...kids) => {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(props || {})) {
      if (v === undefined || v === null || v === false) continue;
      if (k === "on") for (const [n, f] of Object.entries(v)) e.addEventListener(n, f);
      else if (k === "style") for (const [n, x] of Object.entries(v)) e.style.setProperty(n, x);
      else if (k in e && k !== "list" && typeof v !== "string") e[k] = v;
      else e.setAttribute(k === "cls" ? "class" : k, v);
    }
    e.append(...kids.flat(9).filter((x) => x !== undefined && x !== null && x !== false));
    return e;
  };
  /* Makes an SVG element with attributes and children. */
  const svg = (tag, props, ...kids) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(props || {})) if (v !== undefined) e.setAttribute(k === "cls" ? "class" : k, v);
    e.append(...kids.flat(9).filter(Boolean));
    return e;
  };
  const $ = (id) => document.getElementById(id);
  /* A number with a metric prefix and a unit, as "1.50 MB". */
  const scaled = (v, unit) => {
    const sign = v < 0 ? "-" : "";
    let x = Math.abs(v), i = 0;
    while (x >= 999.5 && i < 5) { x /= 1000; i++; }
    return sign + (i || x % 1 ? x.toPrecision(3) : String(x)) + " " + ["", "k", "M", "G", "T", "P"][i] + unit;
  };
  const count = (v) => v.toLocaleString("en-US");
  const bytes = (v) => scaled(v, "B"), flops = (v) => scaled(v, "FLOP");
  const time = (ns) => (ns >= 1e9 ? (ns / 1e9).toPrecision(3) + " s" : ns >= 1e6 ? (ns / 1e6).toPrecision(3) + " ms" : ns >= 1e3 ? (ns / 1e3).toPrecision(3) + " µs" : Math.round(ns) + " ns");
  const percent = (x) => (100 * x).toFixed(1) + "%";
  const short = (path) => path.replace(/^.*\/(?=layers\/)/, "").replace(/^.*\//, (m) => (m.endsWith("layers/") ? m : ""));

  /* ---- measured ---- */
  const P = M && M.profile ? M.profile : null;
  const runs = (phase) => (P && P.runs && P.runs[phase]) || 0;
  const measuredOf = (phase, step) => P && P.steps.find((x) => x.phase === phase && x.index === step && phaseOf(R, phase).steps[step]?.name === x.name);
  const measuredStep = P && runs(MAIN) ? P.steps.filter((x) => x.phase === MAIN).reduce((a, x) => a + x.ms, 0) / runs(MAIN) : 0;
  const roof = P && P.gb_per_s ? { machine: "this machine, as measured", bytes_per_s: 1e9 * P.gb_per_s, flops_per_s: 1e9 * P.gflop_per_s }
    : R.verdict && R.verdict.roof ? R.verdict.roof : null;
  const atBest = (s) => (roof ? 1e9 * Math.max(moved(s) / roof.bytes_per_s, val(s.flops) / roof.flops_per_s) : 0);

  /* ---- texts of stages, inflated when they are looked at ---- */
  /* The bytes of a text that report_page.c has deflated and put in base64. */
  const inflate = async (packed) => {
    const raw = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const out = new Response(new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate")));
    return new Uint8Array(await out.arrayBuffer());
  };
  const cache = new Map();
  /* A promise of the text of a stage, which is inflated once. */
  const textOf = (t) => {
    if (!cache.has(t)) cache.set(t, inflate(t.packed).then((b) => new TextDecoder().decode(b)));
    return cache.get(t);
  };

  /* ---- which lines of a stage are from which lines of the model ---- */
  const files = R.source ? R.source.files : [];
  const byPath = new Map(files.map((f, i) => [f.path, i]));
  /* The index in `files` of a path as a stage spells it; -1: it is none of the model's files. */
  const fileOf = (path) => {
    if (byPath.has(path)) return byPath.get(path);
    const plain = path.replace(/^\.\//, "");
    const i = byPath.has(plain) ? byPath.get(plain) : files.findIndex((f) => f.name === plain || (plain && (f.path.endsWith("/" + plain) || plain.endsWith("/" + f.path))));
    byPath.set(path, i);
    return i;
  };
  const key = (file, line) => file + ":" + line;
  const unquote = (s) => { if (s[0] !== '"') return s; try { return JSON.parse(s); } catch { return s.slice(1, -1); } };
  const PLACE = /  !("(?:[^"\\]|\\.)*"|[^\s"<]+?):(\d+):[\d:-]+(?:<("(?:[^"\\]|\\.)*"|[^\s"]+?):(\d+)(?:@("(?:[^"\\]|\\.)*"|\S+))?)?$/;
  const KERNEL = { loops: /^kernel (\S+?)(?: |$)/, llvm: /^define [^@]*@"?([\w.]+)"?\(/, cuda: /^static __global__ void .*?\) (\w+)\(/, cudaComment: /^ \* kernel (\w+)/ };
  /* Where each line of a stage comes from: {own, site, kernel} = its line of the model, the user's
     line if that is inside a layer, and the kernel that it belongs to; null: nothing is known. */
  const parsePlaces = (kind, lines) => {
    const out = new Array(lines.length);
    let kernel = null;
    const loc = new Map(), scope = new Map(), dir = new Map(), asmFile = new Map();
    if (kind === "llvm")
      for (const l of lines) {
        let m;
        if (l[0] !== "!") continue;
        if ((m = /^!(\d+) = !DILocation\(line: (\d+).*?scope: !(\d+)/.exec(l))) loc.set(m[1], [m[2], m[3]]);
        else if ((m = /^!(\d+) = .*?(?:DISubprogram|DILexicalBlock\w*)\(.*?file: !(\d+)/.exec(l))) scope.set(m[1], m[2]);
        else if ((m = /^!(\d+) = !DIFile\(filename: "(.*?)", directory: "(.*?)"/.exec(l))) dir.set(m[1], fileOf(m[3] && m[3] !== "." && m[2][0] !== "/" ? m[3] + "/" + m[2] : m[2]));
      }
    let at = null;
    for (let i = 0; i < lines.length; i++) {
      const l = lines[i];
      let m, own = null, site = null;
      if (kind === "ir" || kind === "plan" || kind === "loops") {
        if (kind === "loops" && (m = KERNEL.loops.exec(l))) kernel = m[1];
        if (kind === "plan") kernel = (m = /^ {2}\d+: kernel (\w+)/.exec(l)) ? m[1] : null;
        if ((m = PLACE.exec(l))) {
          own = key(fileOf(unquote(m[1])), +m[2]);
          if (m[3]) site = key(fileOf(unquote(m[3])), +m[4]);
        }
      } else if (kind === "llvm") {
        if ((m = KERNEL.llvm.exec(l))) kernel = m[1];
        else if (l === "}") kernel = null;
        if ((m = /!dbg !(\d+)/.exec(l)) && loc.has(m[1])) { const [line, s] = loc.get(m[1]); own = key(dir.get(scope.get(s)) ?? -1, +line); }
      } else if (kind === "asm") {
        if ((m = /^"?([\w.$]+)"?:/.exec(l)) && m[1][0] !== ".") { kernel = m[1]; at = null; }
        else if ((m = /\.entry _ZL?(\d+)(\w+)\(/.exec(l))) { kernel = m[2].slice(0, +m[1]); at = null; }
        else if ((m = /^\s*\.file\s+(\d+)\s+"(.*?)"(?:\s+"(.*?)")?/.exec(l))) asmFile.set(m[1], fileOf(m[3] ? (m[2] === "." ? m[3] : m[2] + "/" + m[3]) : m[2]));
        else if ((m = /^\s*\.loc\s+(\d+)\s+(\d+)/.exec(l))) at = +m[2] && asmFile.get(m[1]) >= 0 ? key(asmFile.get(m[1]), +m[2]) : null;
        own = at;
      } else if (kind === "cuda") {
        if ((m = KERNEL.cudaComment.exec(l))) kernel = m[1];
        else if ((m = /^ \* (.+?):(\d+): /.exec(l))) { const f = fileOf(m[1]); if (f >= 0) own = key(f, +m[2]); }
      }
      out[i] = own || kernel ? { own, site, kernel } : null;
    }
    return out;
  };

  /* What is selected: a line of a file. In loops it is found by place; so are, of the emitted code, the
     lines with the same place in a kernel of which a line was found. */
  const stages = S.texts.map((t) => ({ ...t, ready: null }));
  /* Inflates a stage's text on first use, and finds the places of its lines; stages without a
     text stay as they are. */
  const load = async (st) => {
    if (!st.packed) return st;
    if (!st.ready) st.ready = textOf(st).then((text) => { st.lines = text.split("\n"); if (st.lines[st.lines.length - 1] === "") st.lines.pop(); st.places = parsePlaces(st.kind, st.lines); return st; });
    return st.ready;
  };
  let sel = null;
  const chosen = { pairs: new Set(), kernels: new Set() };
  /* Finds what belongs to the selected line: kernels, and pairs of a kernel and a place in it. */
  const choose = async () => {
    chosen.pairs = new Set();
    chosen.kernels = new Set();
    const loops = stages.find((s) => s.kind === "loops");
    if (!sel || !loops) return;
    await load(loops);
    const want = key(sel.file, sel.line);
    for (const p of loops.places)
      if (p && (p.own === want || p.site === want)) { chosen.pairs.add(p.kernel + " " + p.own); chosen.kernels.add(p.kernel); }
  };
  /* Whether a line of stage st, with place p, belongs to the selected line of the model. */
  const matches = (st, p) => {
    if (!sel || !p) return false;
    const want = key(sel.file, sel.line);
    if (st.kind === "ir" || st.kind === "loops") return p.own === want || p.site === want;
    if (st.kind === "plan") return p.own === want || p.site === want || (p.kernel && chosen.kernels.has(p.kernel));
    if (st.kind === "cuda") return p.own === want;
    return p.own ? chosen.pairs.has(p.kernel.replace(/_parts$/, "") + " " + p.own) : false;
  };
  /* Lines that begin what is selected where emitted code has no places of its own. */
  const heads = (st) => {
    const out = [];
    if (st.kind !== "cuda" && !(st.kind === "asm" && st.title === "PTX")) return out;
    st.lines.forEach((l, i) => {
      const p = st.places[i], before = i ? st.places[i - 1] : null;
      if (p && p.kernel && (!before || before.kernel !== p.kernel) && chosen.kernels.has(p.kernel)) out.push(i);
    });
    return out;
  };

  /* "layers/gat.gnn:27 for gat.gnn:13, conv1" */
  const nameOf = (path) => { const f = fileOf(unquote(path)); return f >= 0 ? files[f].name : unquote(path); };
  const placeText = (m) => `${nameOf(m[1])}:${m[2]}` + (m[3] ? ` for ${nameOf(m[3])}:${m[4]}` : "") + (m[5] ? `, ${unquote(m[5])}` : "");

  /* ---- a viewer of many lines, which draws those that are seen ---- */
  const H = 18;
  /* A box that shows many lines but draws only those in sight. pick(i) is called when line i is
     clicked; null: no line can be. */
  const viewer = (pick) => {
    const rows = el("div", { cls: "rows code" });
    const box = el("div", { cls: "scroll", tabindex: "0", role: "region", "aria-label": "text" }, rows);
    let lines = [], cls = () => "", wide = 0;
    const draw = () => {
      const from = Math.max(0, Math.floor(box.scrollTop / H) - 20), to = Math.min(lines.length, from + Math.ceil(box.clientHeight / H) + 40);
      rows.replaceChildren(...Array.from({ length: to - from }, (_, k) => {
        const i = from + k, m = PLACE.exec(lines[i]);
        return el("div", { cls: "row " + cls(i), style: { top: i * H + "px" }, "data-i": String(i) }, el("span", { cls: "no", "aria-hidden": "true" }, String(i + 1)),
          m ? lines[i].slice(0, m.index) : lines[i], m ? el("span", { cls: "at", title: lines[i].slice(m.index + 3) }, "  " + placeText(m)) : null);
      }));
    };
    box.addEventListener("scroll", () => requestAnimationFrame(draw));
    rows.addEventListener("click", (e) => { const r = e.target.closest(".row"); if (r && pick && !String(getSelection())) pick(+r.dataset.i); });
    new ResizeObserver(draw).observe(box);
    return {
      box,
      set(l, c) { lines = l; cls = c; wide = 0; for (const x of l) if (x.length > wide) wide = x.length; rows.style.height = l.length * H + "px"; rows.style.minWidth = Math.min(wide, 4000) + 8 + "ch"; draw(); },
      redraw: draw,
      to(i) { box.scrollTop = Math.max(0, i * H - box.clientHeight / 3); draw(); },
      sees(i) { return i * H >= box.scrollTop && (i + 1) * H <= box.scrollTop + box.clientHeight; },
    };
  };

  /* ---- tabs ---- */
  /* A row of tabs in the element bar. show(i) is called when tab i is opened; go(i) opens it,
     step(d) the one d further. */
  const tabs = (bar, names, show) => {
    let now = 0;
    const go = (i, focus) => {
      now = (i + names.length) % names.length;
      [...bar.children].forEach((b, k) => { b.setAttribute("aria-selected", String(k === now)); b.tabIndex = k === now ? 0 : -1; });
      if (focus) bar.children[now].focus();
      bar.children[now].scrollIntoView({ block: "nearest", inline: "nearest" });
      show(now);
    };
    bar.replaceChildren(...names.map((n, i) => el("button", { role: "tab", type: "button", on: { click: () => go(i) } }, n)));
    bar.addEventListener("keydown", (e) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (by) { go(now + by, true); e.preventDefault(); }
    });
    return { go, step: (d) => go(now + d), get now() { return now; } };
  };

  /* ---- the view of source and stages ---- */
  /* The view "Source": lines of the model with what they move, and beside them the lines of a
     stage that come from the selected one. */
  const sourceView = (() => {
    let root, list, detail, stageBar, view, st, hits = [], at = 0, file = 0, count;
    const total = R.source ? val(R.source.bytes) : 0;
    const facts = files.map((f) => new Map(f.lines.map((l) => [l.line, l])));
    file = Math.max(0, files.findIndex((f) => !f.library));
    const stepName = (i) => { const s = phaseOf(R, MAIN).steps[i]; return s ? s.name : "step " + i; };
    /* The marks on a line of the model: into which kernels its values were fused, which are
       stored. */
    const badges = (l) => {
      const fused = l.badges.filter((b) => b.kind === "fused"), stored = l.badges.filter((b) => b.kind === "stored");
      const into = [...new Set(fused.map((b) => stepName(b.step)))];
      return [
        into.length ? el("span", { cls: "badge fused", title: into.join(", ") }, into.length === 1 ? `fused into ${into[0]}` : `fused into ${into.length} kernels`) : null,
        stored.length ? el("span", { cls: "badge stored", title: stored.map((b) => b.value + ": " + b.why.join("; ")).join("\n") }, stored.length === 1 ? `stored: ${stored[0].value}` : `stored: ${stored.length} values`) : null,
      ];
    };
    /* Draws all lines of the current file. */
    const drawList = () => {
      const f = files[file], lines = f.text.split("\n");
      if (lines[lines.length - 1] === "") lines.pop();
      list.replaceChildren(...lines.map((text, i) => {
        const l = facts[file].get(i + 1), share = l && total ? val(l.bytes) / total : 0;
        const on = sel && sel.file === file && sel.line === i + 1;
        const b = l ? badges(l).filter(Boolean) : [];
        return el("div", { cls: "src" + (on ? " sel" : ""), "data-line": String(i + 1), role: "option", "aria-selected": String(!!on), tabindex: on || (!sel && i === 0) ? "0" : "-1" },
          el("span", { cls: "share" }, el("i", { style: { width: (100 * share).toFixed(1) + "%" } }), el("span", null, share >= 0.0005 ? percent(share) : "")),
          el("span", { cls: "no" }, String(i + 1)), el("pre", null, text || " "), b.length ? el("div", { cls: "badges" }, b) : null);
      }));
    };
    /* Draws what is known of the selected line: its bytes and operations, and what became of its
       values. */
    const drawDetail = () => {
      const l = sel && facts[sel.file] && facts[sel.file].get(sel.line);
      detail.hidden = !l;
      if (!l) return;
      const stored = l.badges.filter((b) => b.kind === "stored"), fused = l.badges.filter((b) => b.kind === "fused");
      const by = new Map();
      for (const b of fused) by.set(b.step, (by.get(b.step) || []).concat(b.value));
      detail.replaceChildren(
        el("p", { cls: "dim" }, `${files[sel.file].name}:${sel.line} moves ${bytes(val(l.bytes))}${known(l.bytes) ? "" : " by nominal sizes"} and computes ${flops(val(l.flops))} in a run of @${MAIN}`),
        el("ul", null,
          [...by].map(([s, v]) => el("li", null, el("span", { cls: "badge fused" }, "fused into " + stepName(s)), " " + [...new Set(v)].join(", "))),
          stored.map((b) => el("li", null, el("span", { cls: "badge stored" }, "stored " + b.value + ": " + b.type), " " + (b.why.length ? b.why.join("; ") : "read again")))));
    };
    /* Draws the current stage with the lines marked that belong to the selection. first: scroll
       to one of them. */
    const drawStage = async (first) => {
      const s = st;
      await load(s);
      await choose();
      if (s !== st) return;
      if (!s.packed) { view.set([s.title], () => ""); count.textContent = ""; return; }
      hits = [];
      s.places.forEach((p, i) => { if (matches(s, p)) hits.push(i); });
      const h = heads(s);
      if (h.length) hits = [...new Set([...hits, ...h])].sort((a, b) => a - b);
      const set = new Set(hits);
      at = 0;
      view.set(s.lines, (i) => (set.has(i) ? "hit" : "") + (hits.length && i === hits[at] ? " cur" : ""));
      count.textContent = sel ? `${hits.length} of ${s.lines.length} lines` : `${s.lines.length} lines`;
      if (first !== false && hits.length && !hits.some((i) => view.sees(i))) view.to(hits[0]);
    };
    const move = (d) => { if (!hits.length) return; at = (at + d + hits.length) % hits.length; view.to(hits[at]); };
    const focusLine = () => { const e = list.querySelector(".sel"); if (e) { e.scrollIntoView({ block: "nearest" }); } };
    /* Selects a line of file number f (-1: none). fromStage: a click in the stage chose it, so
       that does not scroll. */
    const select = (f, line, fromStage) => {
      sel = f < 0 ? null : { file: f, line };
      if (sel && f !== file) { file = f; root.querySelector("select").value = String(f); }
      drawList();
      drawDetail();
      focusLine();
      return drawStage(!fromStage);
    };
    /* Selects the line of the model that line i of the current stage comes from. */
    const pick = (i) => {
      const p = st.places && st.places[i];
      if (!p) return;
      let place = p.own;
      if (p.site && !files[+p.site.split(":")[0]]?.library) place = p.site;
      if (!place && p.kernel) { const s = phaseOf(R, MAIN).steps.find((x) => x.name === p.kernel); const m = s && /^(.+?):(\d+)/.exec(s.site); if (m) place = key(fileOf(m[1]), +m[2]); }
      if (!place) return;
      const [f, l] = place.split(":");
      if (+f >= 0) select(+f, +l, true);
    };
    /* Makes the elements of the view, once. */
    const build = () => {
      list = el("div", { cls: "scroll code", role: "listbox", "aria-label": "lines of the model", on: { click: (e) => { const r = e.target.closest(".src"); if (r) select(file, +r.dataset.line); } } });
      detail = el("div", { cls: "detail", "aria-live": "polite", hidden: true });
      count = el("span", { cls: "dim" });
      stageBar = el("div", { role: "tablist", "aria-label": "stages" });
      view = viewer(pick);
      root = el("div", { style: { display: "contents" } },
        el("section", { cls: "pane", "aria-label": "source" },
          el("div", { cls: "bar" }, el("select", { "aria-label": "file", on: { change: (e) => { file = +e.target.value; drawList(); } } }, files.map((f, i) => el("option", { value: String(i), selected: i === file }, f.name))),
            el("span", null, `share of ${bytes(total)} moved in a run of @${MAIN}`)), list, detail),
        el("section", { cls: "pane", "aria-label": "stages" }, stageBar,
          el("div", { cls: "bar" }, el("button", { type: "button", title: "previous match (p)", "aria-label": "previous match", on: { click: () => move(-1) } }, "↑"), el("button", { type: "button", title: "next match (n)", "aria-label": "next match", on: { click: () => move(1) } }, "↓"), count), view.box));
      view.tabs = tabs(stageBar, stages.map((s) => (s.packed ? s.title : s.title.split(":")[0])), (i) => { st = stages[i]; drawStage(); });
    };
    return {
      name: "Source", split: true,
      show(main) { if (!root) { build(); main.append(root); drawList(); drawDetail(); view.tabs.go(0); } else { main.append(root); view.redraw(); } },
      key(k) {
        if (k === "n") move(1); else if (k === "p") move(-1);
        else if (k === "[" || k === "]") view.tabs.step(k === "]" ? 1 : -1);
        else if (k === "j" || k === "k") {
          const with_ = [...facts[file].keys()].sort((a, b) => a - b), now = sel && sel.file === file ? sel.line : 0;
          const next = k === "j" ? with_.find((l) => l > now) ?? with_[0] : with_.filter((l) => l < now).pop() ?? with_[with_.length - 1];
          if (next) select(file, next);
        } else if (k === "Escape") select(-1, 0);
        else return false;
        return true;
      },
      select,
    };
  })();
  const goTo = (at) => { const m = /^(.*?):(\d+)/.exec(at || ""); if (!m) return; const f = fileOf(m[1]); if (f < 0) return; views.go(0); sourceView.select(f, +m[2]); };
  const placeLink = (at) => el("button", { cls: "link", type: "button", title: "show in the source", on: { click: (e) => { e.stopPropagation(); goTo(at); } } }, short(at));

  /* ---- passes ---- */
  /* The view "Passes": what each pass changed, as a difference of texts. */
  const passesView = (() => {
    let root, list, view, all = [], shown = [], now = 0, diffs, level = "graph", only = true, kernel = "", head;
    const kernels = [...new Set((S.passes || []).filter((p) => p.kernel).map((p) => p.kernel))];
    const counts = (p) => { if (p.counts) return p.counts; let a = 0, d = 0; for (const l of p.lines) { if (l[0] === "+") a++; else if (l[0] === "-") d++; } return (p.counts = [a, d]); };
    const filter = () => { shown = all.filter((p) => p.level === level && (!only || p.bytes) && (level !== "loops" || p.kernel === kernel)); };
    const title = (p) => p.pass + (all.some((q) => q !== p && q.pass === p.pass && q.kernel === p.kernel) ? "#" + p.run : "");
    /* Draws the list of passes that the choices above it leave. */
    const drawList = () => {
      filter();
      now = Math.min(now, Math.max(0, shown.length - 1));
      list.replaceChildren(...shown.map((p, i) => el("li", null, el("button", { cls: "item" + (p.bytes ? "" : " same"), type: "button", "aria-current": String(i === now), on: { click: () => step(i) } },
        el("b", null, title(p)), " ", el("span", { cls: "plus" }, "+" + counts(p)[0]), " ", el("span", { cls: "minus" }, "−" + counts(p)[1]), el("small", null, " " + time(1e3 * p.us)), el("br"), el("small", null, p.summary)))));
      step(now);
    };
    /* Shows what pass i of the list changed. */
    const step = (i) => {
      now = i;
      [...list.querySelectorAll(".item")].forEach((b, k) => b.setAttribute("aria-current", String(k === now)));
      const p = shown[now];
      list.children[now]?.scrollIntoView({ block: "nearest" });
      const lines = p ? (p.bytes ? p.lines : ["it changed nothing"]) : ["no pass changed anything here"];
      head.textContent = p ? `${now + 1} of ${shown.length}: what ${title(p)} changed${p.kernel ? " in " + p.kernel : ""}` : "";
      view.set(lines, (k) => (lines[k][0] === "+" ? "add" : lines[k][0] === "-" ? "del" : lines[k].startsWith("@@") ? "hunk" : ""));
      view.to(0);
    };
    /* Makes the elements of the view, once, and inflates the differences. */
    const build = async () => {
      list = el("ol", { cls: "list scroll", "aria-label": "passes" });
      head = el("span");
      view = viewer(null);
      const which = el("select", { "aria-label": "kernel", hidden: true, on: { change: (e) => { kernel = e.target.value; now = 0; drawList(); } } }, kernels.map((k) => el("option", { value: k }, k)));
      kernel = kernels[0] || "";
      root = el("div", { style: { display: "contents" } },
        el("section", { cls: "pane", "aria-label": "passes" }, el("div", { cls: "bar" },
          el("select", { "aria-label": "level", on: { change: (e) => { level = e.target.value; which.hidden = level !== "loops"; now = 0; drawList(); } } }, [["graph", "graph IR"], ["plan", "step plan"], ["loops", "loops of a kernel"]].map(([v, t]) => el("option", { value: v }, t))), which,
          el("label", null, el("input", { type: "checkbox", checked: true, on: { change: (e) => { only = e.target.checked; now = 0; drawList(); } } }), " that changed something")), list),
        el("section", { cls: "pane", "aria-label": "difference" }, el("div", { cls: "bar" }, head), view.box));
      const raw = S.diffs ? await inflate(S.diffs) : new Uint8Array();
      const text = new TextDecoder();
      all = (S.passes || []).map((p) => ({ ...p, lines: text.decode(raw.subarray(p.from, p.from + p.bytes)).replace(/\n$/, "").split("\n") }));
    };
    return {
      name: "Passes", split: true,
      async show(main) { if (!root) { const b = build(); main.append(root); await b; drawList(); } else { main.append(root); view.redraw(); } },
      key(k) { if (k === "j" || k === "k") { const i = Math.min(shown.length - 1, Math.max(0, now + (k === "j" ? 1 : -1))); if (shown.length) step(i); return true; } return false; },
    };
  })();

  /* ---- missed ---- */
  /* The view "Missed": cards for stored values that need not be in memory, and for what passes
     refused. */
  const missedView = (() => {
    let root, cards, now = -1, phase = MAIN;
    const items = R.missed || [], most = Math.max(1, ...items.filter((m) => m.kind === "stored").map((m) => val(m.bytes)));
    const draw = () => {
      const mine = items.filter((m) => !phase || !m.phase || m.phase === phase);
      const card = (m) => el("article", { cls: "card", tabindex: "0" },
        el("p", null, el("b", null, m.kind === "stored" ? `${bytes(val(m.bytes))}${known(m.bytes) ? "" : " (nominal)"}  ${m.value}: ${m.type}` : `${m.pass}${m.times > 1 ? " ×" + m.times : ""}`), "  ", m.site ? placeLink(m.site) : null, m.line !== m.site ? [" ", placeLink(m.line)] : null),
        m.step ? el("p", { cls: "dim" }, (m.kind === "stored" ? "stored by " : "in ") + m.step + (m.phase ? " of @" + m.phase : "") + (m.kind === "refused" && m.bytes ? ", which moves " + bytes(val(m.bytes)) : "")) : null,
        m.why.map((w) => el("p", null, w)), m.cures.map((c) => el("p", { cls: m.kind === "stored" ? "cure" : "cure may" }, c)),
        m.kind === "stored" ? el("div", { cls: "fill", style: { width: (100 * val(m.bytes)) / most + "%" } }) : null);
      const stored = mine.filter((m) => m.kind === "stored"), refused = mine.filter((m) => m.kind === "refused");
      cards.replaceChildren(
        el("section", null, el("h2", null, `Values in memory that need not be there: ${stored.length}`), stored.length ? stored.map(card) : el("p", { cls: "dim" }, "none: whatever is stored has a reader that needs memory")),
        el("section", null, el("h2", null, `What passes refused, where most is moved first: ${refused.length}`), refused.map(card)));
      now = -1;
    };
    return {
      name: "Missed",
      show(main) {
        if (!root) {
          cards = el("div", { cls: "two" });
          root = el("div", null, el("div", { cls: "tools" }, phaseSelect(phase, (p) => { phase = p; draw(); }, true)), cards);
          draw();
        }
        main.append(root);
      },
      key(k) { const all = [...cards.querySelectorAll(".card")]; if ((k !== "j" && k !== "k") || !all.length) return false; now = Math.min(all.length - 1, Math.max(0, now + (k === "j" ? 1 : -1))); all[now].focus(); return true; },
    };
  })();
  /* A menu of the phases that have steps. change(name) is called on a choice; any: "all phases"
     is one. */
  function phaseSelect(now, change, any) {
    return el("select", { "aria-label": "phase", on: { change: (e) => change(e.target.value) } }, any ? el("option", { value: "" }, "all phases") : null,
      R.fusion.phases.filter((p) => p.steps.length).map((p) => el("option", { value: p.phase, selected: p.phase === now }, "@" + p.phase)));
  }

  /* ---- memory against program order ---- */
  /* The view "Memory": bytes that are live at each step of a phase, and the lives of its
     buffers. */
  const memoryView = (() => {
    let root, phase = MAIN, out, step = -1;
    const draw = () => {
      const a = R.memory.arena.find((x) => x.phase === phase), steps = phaseOf(R, phase).steps;
      if (!a || !a.live_bytes.length) { out.replaceChildren(el("p", { cls: "dim" }, "this phase has no temporaries")); return; }
      const live = a.live_bytes.map((l) => val(l.bytes)), most = Math.max(1, ...live), peak = live.indexOf(Math.max(...live));
      if (step < 0 || step >= live.length) step = peak;
      const W = 960, Ht = 220, L = 64, w = (W - L - 10) / live.length;
      const bars = live.map((v, i) => { const h = (v / most) * (Ht - 40); return svg("rect", { cls: "area" + (i === step ? " sel" : ""), x: L + i * w + 0.5, y: Ht - 20 - h, width: Math.max(1, w - 1), height: h, "data-i": i }, svg("title", {}, `step ${i} ${steps[i] ? steps[i].name : ""}: ${bytes(v)}`)); });
      const pic = svg("svg", { viewBox: `0 0 ${W} ${Ht}`, role: "img", "aria-label": `bytes live at each step of @${phase}, at most ${bytes(most)}` },
        [0, 0.5, 1].map((f) => [svg("line", { cls: "axis", x1: L, x2: W - 10, y1: Ht - 20 - f * (Ht - 40), y2: Ht - 20 - f * (Ht - 40) }), svg("text", { x: L - 6, y: Ht - 16 - f * (Ht - 40), "text-anchor": "end" }, bytes(f * most))]),
        bars, svg("text", { x: L, y: Ht - 4 }, "step 0"), svg("text", { x: W - 10, y: Ht - 4, "text-anchor": "end" }, "step " + (live.length - 1)));
      pic.addEventListener("click", (e) => { if (e.target.dataset.i !== undefined) { step = +e.target.dataset.i; draw(); } });
      const bufs = R.memory.buffers.filter((b) => b.phase === phase).map((b) => ({ ...b, size: val(b.bytes), live: b.first <= step && step <= b.last })).sort((x, y) => y.live - x.live || y.size - x.size || x.first - y.first);
      const here = bufs.filter((b) => b.live);
      const rows = bufs.slice(0, 80), rh = 16, LW = 250;
      const life = svg("svg", { viewBox: `0 0 ${W} ${rows.length * rh + 8}`, role: "img", "aria-label": "lives of buffers" }, rows.map((b, i) => {
        const x = LW + (b.first / live.length) * (W - LW - 90), x2 = LW + ((b.last + 1) / live.length) * (W - LW - 90);
        return [svg("text", { x: LW - 6, y: i * rh + 15, "text-anchor": "end" }, b.name.length > 38 ? b.name.slice(0, 37) + "…" : b.name, svg("title", {}, b.name)), svg("rect", { cls: "life" + (b.live ? " live" : ""), x, y: i * rh + 5, width: Math.max(2, x2 - x), height: rh - 4, rx: 2 }, svg("title", {}, `${b.name}: ${b.life}, ${b.bytes.expr} B`)), svg("text", { x: Math.min(x2 + 5, W - 70), y: i * rh + 15 }, bytes(b.size) + (b.block ? " (a block at a time)" : ""))];
      }));
      out.replaceChildren(
        el("p", null, `At step ${step}${step === peak ? ", the fullest," : ""} of @${phase} (${steps[step] ? steps[step].name : ""}) ${here.length} buffers are live: ${bytes(live[step])}${known(a.live_bytes[step].bytes) ? "" : " by nominal sizes"}.`, a.packed_bytes ? ` Packed, the phase takes ${bytes(a.packed_bytes)}.` : "", M && M.memory ? ` Measured on ${M.data}: the arena has ${bytes(M.memory.arena)}, all memory of the trainer ${bytes(M.memory.all)}.` : ""),
        pic, el("h3", null, "Lives, by program order; those live at the step first" + (bufs.length > 80 ? ` (80 of ${bufs.length})` : "")), life);
    };
    return {
      name: "Memory",
      show(main) { if (!root) { out = el("div"); root = el("div", null, el("div", { cls: "tools" }, phaseSelect(phase, (p) => { phase = p; step = -1; draw(); }), el("span", { cls: "dim" }, "j and k go from step to step")), out); draw(); } main.append(root); },
      key(k) { if (k !== "j" && k !== "k") return false; const n = (R.memory.arena.find((x) => x.phase === phase) || { live_bytes: [] }).live_bytes.length; if (n) { step = (step + (k === "j" ? 1 : -1) + n) % n; draw(); } return true; },
    };
  })();

  /* ---- roofline ---- */
  /* The view "Roofline": each step of a phase by its operations per byte and its speed, below
     the limits of a machine. */
  const roofView = (() => {
    let root, phase = MAIN, out;
    const draw = () => {
      const steps = phaseOf(R, phase).steps.map((s, i) => ({ s, i, m: measuredOf(phase, i) })).filter((x) => moved(x.s) > 0 && val(x.s.flops) > 0 && x.s.within === undefined);
      if (!steps.length) { out.replaceChildren(el("p", { cls: "dim" }, "no step of this phase computes")); return; }
      const pts = steps.map(({ s, i, m }) => {
        const x = val(s.flops) / moved(s), ns = m && m.calls ? (1e6 * m.ms) / m.calls : 0;
        const y = ns ? val(s.flops) / ns : roof ? val(s.flops) / Math.max(1e-9, atBest(s)) : moved(s);
        return { x, y, s, i, ns };
      });
      const W = 960, Ht = 420, L = 70, B = 40;
      const lx = pts.map((p) => Math.log10(p.x)), ly = pts.map((p) => Math.log10(p.y));
      let x0 = Math.floor(Math.min(...lx)) - 0.2, x1 = Math.ceil(Math.max(...lx)) + 0.3, y0 = Math.floor(Math.min(...ly)), y1 = Math.ceil(Math.max(...ly));
      if (roof) { const top = Math.log10(roof.flops_per_s / 1e9); x1 = Math.max(x1, Math.log10(roof.flops_per_s / roof.bytes_per_s) + 0.6); y1 = Math.max(y1, Math.ceil(top + 0.1)); }
      if (y1 - y0 < 1) y1 = y0 + 1;
      const X = (v) => L + ((v - x0) / (x1 - x0)) * (W - L - 16), Y = (v) => Ht - B - ((v - y0) / (y1 - y0)) * (Ht - B - 16);
      const grid = [];
      for (let d = Math.ceil(x0); d <= x1; d++) grid.push(svg("line", { cls: "axis", x1: X(d), x2: X(d), y1: 16, y2: Ht - B }), svg("text", { x: X(d), y: Ht - B + 16, "text-anchor": "middle" }, String(+(10 ** d).toPrecision(2))));
      for (let d = y0; d <= y1; d++) grid.push(svg("line", { cls: "axis", x1: L, x2: W - 16, y1: Y(d), y2: Y(d) }), svg("text", { x: L - 6, y: Y(d) + 4, "text-anchor": "end" }, roof || pts[0].ns ? String(+(10 ** d).toPrecision(2)) : bytes(10 ** d)));
      const line = [];
      if (roof) {
        const f = (lxv) => Math.log10(Math.min(roof.flops_per_s, 10 ** lxv * roof.bytes_per_s) / 1e9), ridge = Math.log10(roof.flops_per_s / roof.bytes_per_s), low = Math.max(x0, y0 + 9 - Math.log10(roof.bytes_per_s));
        line.push(svg("polyline", { cls: "roof", points: [low, ridge, x1].map((v) => X(v) + "," + Y(f(v))).join(" ") }), svg("text", { x: W - 20, y: Y(f(x1)) - 6, "text-anchor": "end" }, `${roof.machine}: ${scaled(roof.flops_per_s, "FLOP/s")}, ${scaled(roof.bytes_per_s, "B/s")}`));
      }
      const most = Math.max(...pts.map((p) => p.ns || moved(p.s)));
      const dots = pts.map((p) => svg("circle", { cls: "dot" + (p.s.kind === "kernel" ? "" : " gemm"), cx: X(Math.log10(p.x)), cy: Y(Math.log10(p.y)), r: 4 + 12 * Math.sqrt((p.ns || moved(p.s)) / most), tabindex: 0, role: "img", "aria-label": p.s.name }, svg("title", {}, `${p.i} ${p.s.name}\n${p.s.site}\n${p.x.toPrecision(3)} FLOP/B, ${bytes(moved(p.s))}, ${flops(val(p.s.flops))}` + (p.ns ? `\nmeasured ${time(p.ns)}` : "") + (roof ? `\nat best ${time(atBest(p.s))}` : ""))));
      const axis = P ? "GFLOP/s, measured" : roof ? "GFLOP/s at best" : "bytes moved";
      out.replaceChildren(el("p", null, P ? "Each dot is a step where it was measured; its size is its time." : roof ? "Each dot is a step at best: on the roof. A measured page shows how far below it runs." : "There is no roof of a processor here: ./" + R.program + " --profile --html FILE measures it, and each step. Size is bytes moved.", known(phaseOf(R, phase).steps[0].read) || P ? "" : " Sizes are nominal."),
        svg("svg", { viewBox: `0 0 ${W} ${Ht}`, role: "img", "aria-label": "roofline of @" + phase }, grid, line, dots, svg("text", { x: W - 16, y: Ht - 6, "text-anchor": "end" }, "FLOP per byte"), svg("text", { x: L + 6, y: 28 }, axis)));
    };
    return { name: "Roofline", show(main) { if (!root) { out = el("div"); root = el("div", null, el("div", { cls: "tools" }, phaseSelect(phase, (p) => { phase = p; draw(); }), el("span", { cls: "key" }, "● kernels"), el("span", { cls: "better" }, "● library calls")), out); draw(); } main.append(root); }, key: () => false };
  })();

  /* ---- kernels ---- */
  /* A table whose columns can be sorted. cols: name, of(row) = its value to sort by, show(row) =
     what is shown; first: the column that it is sorted by, -1: none. */
  const table = (cols, rows, first) => {
    let by = first ?? 0, down = true;
    const body = el("tbody"), head = el("tr");
    const draw = () => {
      const sorted = by < 0 ? rows : [...rows].sort((a, b) => { const x = cols[by].of(a), y = cols[by].of(b); const c = typeof x === "string" || typeof y === "string" ? String(x ?? "").localeCompare(String(y ?? "")) : (x ?? -1) - (y ?? -1); return down ? -c : c; });
      head.replaceChildren(...cols.map((c, i) => el("th", { scope: "col", cls: c.left ? "left" : undefined, "aria-sort": i === by ? (down ? "descending" : "ascending") : undefined }, el("button", { type: "button", title: c.help, on: { click: () => { down = i === by ? !down : !c.left; by = i; draw(); } } }, c.name + (i === by ? (down ? " ↓" : " ↑") : "")))));
      body.replaceChildren(...sorted.map((r) => el("tr", null, cols.map((c) => el("td", { cls: c.left ? "left" : undefined }, c.show ? c.show(r) : c.of(r) ?? "")))));
    };
    draw();
    return el("div", { cls: "table", tabindex: "0", role: "region", "aria-label": "table" }, el("table", null, el("thead", null, head), body));
  };
  /* The view "Kernels": a table of the steps of a phase with costs, times and how their kernels
     are emitted. */
  const kernelsView = (() => {
    let root, phase = MAIN, out;
    const draw = () => {
      const emitted = R.kernels ? R.kernels.all : [];
      const rows = phaseOf(R, phase).steps.map((s, i) => ({ s, i, m: measuredOf(phase, i), k: emitted.find((k) => k.phase === phase && k.step === i), n: emitted.filter((k) => k.phase === phase && k.step === i).length }));
      const cols = [
        { name: "#", of: (r) => r.i }, { name: "step", left: true, of: (r) => r.s.name, show: (r) => el("span", { cls: "mono" }, r.s.name + (r.n > 1 ? ` (${r.n} stages)` : "")) },
        { name: "lines", left: true, of: (r) => r.s.site, show: (r) => { const at = r.s.site.split(/[ ,]/)[0]; return at ? el("button", { cls: "link", type: "button", on: { click: () => goTo(at) } }, r.s.site) : ""; } },
        { name: "bytes", of: (r) => moved(r.s), show: (r) => (r.s.within !== undefined ? "within " + r.s.within : bytes(moved(r.s))) }, { name: "gathered", of: (r) => val(r.s.gathered), show: (r) => (val(r.s.gathered) ? bytes(val(r.s.gathered)) : "") },
        { name: "FLOP", of: (r) => val(r.s.flops), show: (r) => scaled(val(r.s.flops), "") }, { name: "kept out", help: "bytes that fusion keeps out of memory", of: (r) => val(r.s.saved), show: (r) => (val(r.s.saved) ? bytes(val(r.s.saved)) : "") },
      ];
      const add = (name, f, show, help) => { if (rows.some((r) => f(r) !== undefined)) cols.push({ name, of: f, show, help }); };
      if (roof) add("at best", (r) => (moved(r.s) ? atBest(r.s) : undefined), (r) => (moved(r.s) ? time(atBest(r.s)) : ""), "on " + roof.machine);
      add("measured", (r) => (r.m && r.m.calls ? (1e6 * r.m.ms) / r.m.calls : undefined), (r) => (r.m && r.m.calls ? time((1e6 * r.m.ms) / r.m.calls) : ""));
      add("of limit", (r) => (r.m ? r.m.limit : undefined), (r) => (r.m ? percent(r.m.limit) : ""), "above 100 % bytes came from caches");
      add("vector", (r) => r.k && r.k.vector); add("tile", (r) => r.k && r.k.tile_columns, null, "columns of a sum in registers at a time"); add("rows", (r) => r.k && r.k.rows_in_lanes, null, "side by side in lanes"); add("ahead", (r) => r.k && r.k.prefetch_ahead, null, "entries that rows are asked for before they come");
      add("by", (r) => r.k && r.k.by); add("lanes", (r) => r.k && r.k.team_lanes); add("registers", (r) => r.k && r.k.registers); add("shared", (r) => r.k && r.k.shared_bytes); add("spilled", (r) => r.k && r.k.spill_bytes); add("occupancy", (r) => r.k && r.k.occupancy_percent, (r) => (r.k && r.k.occupancy_percent !== undefined ? r.k.occupancy_percent + "%" : ""));
      out.replaceChildren(R.kernels && R.kernels.not_built ? el("p", { cls: "dim" }, "Registers, shared memory and occupancy are left out: " + R.kernels.not_built) : "", table(cols, rows, P ? cols.findIndex((c) => c.name === "measured") : 3));
    };
    return { name: "Kernels", show(main) { if (!root) { out = el("div"); root = el("div", null, el("div", { cls: "tools" }, phaseSelect(phase, (p) => { phase = p; draw(); })), out); draw(); } main.append(root); }, key: () => false };
  })();

  /* ---- data ---- */
  /* A picture of how many rows have how many edges. h: the bins of a relation. */
  const histogram = (h) => {
    const most = Math.max(1, ...h.map((b) => b.rows)), W = 460, rh = 17;
    return svg("svg", { cls: "small", viewBox: `0 0 ${W} ${h.length * rh + 8}`, role: "img", "aria-label": "rows by degree" }, h.map((b, i) => [svg("text", { x: 88, y: i * rh + 16, "text-anchor": "end" }, b.from === b.to ? String(b.from) : `${b.from}–${b.to}`), svg("rect", { cls: "area", x: 94, y: i * rh + 6, width: Math.max(b.rows ? 1 : 0, (b.rows / most) * (W - 180)), height: rh - 5, rx: 2 }), svg("text", { x: 100 + (b.rows / most) * (W - 180), y: i * rh + 16 }, count(b.rows))]));
  };
  /* The view "Data": degrees of the relations, and all sizes. */
  const dataView = {
    name: "Data",
    show(main) {
      const spaces = R.shapes ? R.shapes.spaces : [], D = R.degrees;
      main.append(el("div", null,
        D ? el("div", { cls: "two" }, D.map((r) => el("section", { cls: "card" }, el("h2", null, r.name), el("p", null, `${count(r.edges)} edges into ${count(r.rows)} rows of ${r.to}; ${(r.edges / Math.max(1, r.rows)).toPrecision(3)} each, at most ${count(r.most)}; ${count(r.none)} rows have none`), el("p", null, `Hubs: the fullest hundredth of the rows has ${percent(r.hub_edges / Math.max(1, r.edges))} of the edges`), r.hops.filter((h) => h.fanout > 0).map((h, i) => el("p", null, `hop ${i + 1} draws at most ${h.fanout} each: ${percent(h.there / Math.max(1, h.fanout * r.rows))} of them there are`)), el("h3", null, "Rows by their edges"), histogram(r.rows_by_edges)))) : el("p", { cls: "dim" }, "Degrees, hubs and how full draws are stand here of a page that was made with --specialize=DATA."),
        el("h3", null, "Sizes"),
        table([{ name: "space", left: true, of: (s) => s.name }, { name: "kind", left: true, of: (s) => s.kind }, { name: "size", of: (s) => val(s.size), show: (s) => (known(s.size) ? String(s.size.value) : s.size.expr + " ≈ " + scaled(val(s.size), "")) }, { name: "from", left: true, of: (s) => s.from }], spaces, -1)));
    },
    key: () => false,
  };

  /* ---- two reports ---- */
  /* The view "Compare": this page beside another page of gnnc that the user opens. */
  const compareView = (() => {
    let root, out;
    const steps = (r) => { const p = phaseOf(r, r.verdict.phase), cut = new RegExp("^" + r.program.replace(/\W/g, "\\$&") + "_|_\\d+(?=_|$)", "g"); return p.steps.map((s, i) => ({ ...s, i, id: s.name.replace(cut, "") })); };
    const change = (a, b, less) => { if (!a && !b) return ""; const d = b - a, r = a ? d / a : 1; return el("span", { cls: Math.abs(r) < 1e-9 ? "dim" : (d < 0) === less ? "better" : "worse" }, d === 0 ? "same" : (d > 0 ? "+" : "") + (Math.abs(r) < 10 ? percent(r) : "×" + (b / a).toPrecision(3))); };
    /* Draws the comparison with report r of the file `name`; m: what a trainer measured of it,
       or null. */
    const draw = (name, r, m) => {
      const A = R.verdict, B = r.verdict, mine = [
        ["moves", val(A.moved), val(B.moved), bytes, true], ["computes", val(A.flops), val(B.flops), flops, true], ["kept out of memory", val(A.saved), val(B.saved), bytes, false], ["kernels", A.kernels, B.kernels, String, true], ["library calls", A.library_calls, B.library_calls, String, true],
        ["host reads", A.reads_per_run, B.reads_per_run, String, true], ["live at the fullest step", val(A.peak), val(B.peak), bytes, true], ["at best", A.at_best_ns || 0, B.at_best_ns || 0, time, true], ["missed", A.missed, B.missed, String, true], ["compile", 1e6 * (A.compile_ms || 0), 1e6 * (B.compile_ms || 0), time, true]];
      const mp = m && m.profile, theirs = mp && mp.runs[B.phase] ? (1e6 * mp.steps.filter((x) => x.phase === B.phase).reduce((t, x) => t + x.ms, 0)) / mp.runs[B.phase] : 0;
      if (measuredStep || theirs) mine.unshift(["measured step", 1e6 * measuredStep, theirs, time, true]);
      const here = steps(R), there = steps(r), ids = [...new Set([...here, ...there].map((x) => x.id))];
      const rows = ids.flatMap((id) => { const a = here.filter((x) => x.id === id), b = there.filter((x) => x.id === id); return Array.from({ length: Math.max(a.length, b.length) }, (_, i) => ({ id, a: a[i], b: b[i] })); });
      const cell = (x) => (x ? bytes(moved(x)) : "—");
      const texts = (f) => (f ? f.text.split("\n") : []);
      const mf = files.find((f) => !f.library), tf = r.source && r.source.files.find((f) => !f.library), line = (f, total) => (text, i) => { const l = f.lines.find((x) => x.line === i + 1), sh = l && total ? val(l.bytes) / total : 0; return el("div", { cls: "src" }, el("span", { cls: "share" }, el("i", { style: { width: 100 * sh + "%" } }), el("span", null, sh >= 0.0005 ? percent(sh) : "")), el("span", { cls: "no" }, String(i + 1)), el("pre", null, text || " ")); };
      out.replaceChildren(
        el("p", null, "This page: ", el("b", null, `${R.program}, ${R.options || ""}`), ". Beside it: ", el("b", null, `${r.program}, ${r.options || ""}`), ` (${name}).`),
        el("div", { cls: "table" }, el("table", null, el("thead", null, el("tr", null, ["a run of @" + A.phase, "this page", "beside it", "change"].map((t) => el("th", { scope: "col" }, t)))), el("tbody", null, mine.map(([t, a, b, f, less]) => el("tr", null, el("td", null, t), el("td", null, f(a)), el("td", null, f(b)), el("td", null, change(a, b, less))))))),
        el("h3", null, "Steps, by what they make"),
        table([{ name: "step", left: true, of: (x) => x.id, show: (x) => el("span", { cls: "mono" }, x.id) }, { name: "this page", of: (x) => (x.a ? moved(x.a) : -1), show: (x) => cell(x.a) }, { name: "beside it", of: (x) => (x.b ? moved(x.b) : -1), show: (x) => cell(x.b) }, { name: "change", of: (x) => (x.b ? moved(x.b) : 0) - (x.a ? moved(x.a) : 0), show: (x) => (x.a && x.b ? change(moved(x.a), moved(x.b), true) : el("span", { cls: "dim" }, x.a ? "only here" : "only there")) }], rows, 1),
        el("h3", null, "Source"), el("div", { cls: "two" }, [[mf, val(R.source.bytes)], [tf, tf ? val(r.source.bytes) : 0]].map(([f, total]) => el("section", { cls: "pane code" }, f ? [el("div", { cls: "bar" }, f.name), texts(f).map(line(f, total))] : ""))));
    };
    /* Reads the page in a file of the user's and compares it, or says why it cannot. */
    const take = async (file) => {
      try {
        const doc = new DOMParser().parseFromString(await file.text(), "text/html"), r = read(doc, "report");
        if (!r || !r.verdict || !r.fusion) throw new Error("it is no page of gnnc --emit=html");
        draw(file.name, r, read(doc, "measured"));
      } catch (e) { out.replaceChildren(el("p", { cls: "worse", role: "alert" }, `${file.name} cannot be shown: ${e.message}`)); }
    };
    return {
      name: "Compare",
      show(main) {
        if (!root) {
          out = el("div");
          root = el("div", { on: { dragover: (e) => e.preventDefault(), drop: (e) => { e.preventDefault(); if (e.dataTransfer.files[0]) take(e.dataTransfer.files[0]); } } },
            el("div", { cls: "tools" }, el("label", null, "Another page of gnnc: ", el("input", { id: "other", type: "file", accept: ".html", on: { change: (e) => e.target.files[0] && take(e.target.files[0]) } })), el("span", { cls: "dim" }, "it is read here, and sent nowhere")), out);
        }
        main.append(root);
      },
      key: () => false,
    };
  })();

  /* ---- the frame ---- */
  const all = [sourceView, passesView, missedView, memoryView, roofView, kernelsView, dataView, compareView];
  let now = all[0];
  const main = $("main");
  const views = tabs($("views"), all.map((v) => v.name), (i) => {
    now = all[i];
    main.replaceChildren();
    main.classList.toggle("split", !!now.split);
    now.show(main);
    main.setAttribute("role", "tabpanel");
    main.setAttribute("aria-label", now.name);
  });
  const V = R.verdict;
  document.title = "gnnc: " + R.program;
  $("program").textContent = R.program;
  $("options").textContent = (R.options || "") + (R.variants.length ? ` · variant ${R.variant} of ${R.variants.length}: ${R.variants[R.variant]}` : "") + (R.data ? " · data " + R.data : "");
  if (V) {
    const about = V.sizes_known ? "" : " (nominal)";
    const tile = (value, label, view) => el("button", { cls: "tile", type: "button", role: "listitem", title: "evidence: " + all[view].name, on: { click: () => views.go(view) } }, el("b", null, value), el("span", null, label));
    const best = V.at_best_ns ? V.at_best_ns : roof ? phaseOf(R, MAIN).steps.reduce((a, s) => a + (s.within === undefined ? atBest(s) : 0), 0) : 0;
    $("verdict").replaceChildren(...[
      measuredStep ? tile(time(1e6 * measuredStep), `measured step of @${MAIN}`, 5) : null,
      best ? tile(time(best), (measuredStep ? "at best, here" : `at best on ${roof.machine}`) + (V.at_best_ns || P ? "" : about), 4) : tile("not known", "time: --profile --html measures", 4),
      tile(bytes(val(V.moved)), "moved" + about, 0), tile(flops(val(V.flops)), "computed" + about, 5), tile(`${V.kernels} + ${V.library_calls}`, "kernels + library calls", 5),
      tile(String(V.reads_per_run), "waits for the host", 5), V.peak ? tile(bytes(val(V.peak)), "live at the fullest step" + about, 3) : null, tile(String(V.missed), "missed", 2), V.compile_ms ? tile(time(1e6 * V.compile_ms), "to compile", 1) : null].filter(Boolean));
  }
  $("keys").replaceChildren(...[["1 … 8", "views"], ["j k", "next, previous: line, pass, card, step"], ["n p", "next, previous match in a stage"], ["[ ]", "stages"], ["← →", "in a row of tabs"], ["Esc", "nothing is selected"], ["?", "this"]].flatMap(([k, t]) => [el("dt", null, k), el("dd", null, t)]));
  const help = $("help");
  $("help-open").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || help.open) return;
    if (e.key === "?") help.showModal();
    else if (e.key >= "1" && e.key <= String(all.length)) views.go(+e.key - 1);
    else if (!now.key(e.key)) return;
    e.preventDefault();
  });
  views.go(0);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
