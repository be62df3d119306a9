package main

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coterie-fl/coterie/internal/tier/browser"
)

// answeredAfter waits for the last answer to what act changes.
func answeredAfter(t *testing.T, p *browser.Page, act func()) {
	t.Helper()
	browser.Evaluate[bool](t, p, `(() => {
  const answer = document.getElementById("answer"), before = Number(answer.dataset.id);
  window.answered = new Promise((done) => new MutationObserver((_, me) => {
    if (Number(answer.dataset.id) > before && answer.getAttribute("aria-busy") === "false") { me.disconnect(); done(true); }
  }).observe(answer, { attributes: true }));
  return true;
})()`)
	act()
	browser.Evaluate[bool](t, p, `window.answered`)
}

// focused names the element that has the focus.
const focused = `(() => { const e = document.activeElement; return e.value && e.name ? e.name + "=" + e.value : (e.ariaLabel || e.name || e.tagName); })()`

// askedByKeyboard goes from the top of the page to a slider and to another question with
// the keys alone.
func askedByKeyboard(t *testing.T, p *browser.Page) {
	reach := func(want string) {
		t.Helper()
		var seen []string
		for range 30 {
			p.Do(t, chromedp.KeyEvent(kb.Tab))
			at := browser.Evaluate[string](t, p, focused)
			if at == want {
				return
			}
			seen = append(seen, at)
		}
		t.Fatalf("the tabulator does not reach %s; it reaches %v", want, seen)
	}
	reach("Noise S, slider")
	answeredAfter(t, p, func() { p.Do(t, chromedp.KeyEvent(kb.ArrowRight)) })
	noise := browser.Evaluate[string](t, p, `document.getElementById("training-noise").value`)
	if command := browser.Evaluate[string](t, p, `document.getElementById("command").textContent`); noise == "1.1" || !strings.Contains(command, "--noise "+noise+" ") {
		t.Errorf("an arrow on the slider leaves noise %s and asks %s", noise, command)
	}
	browser.Evaluate[bool](t, p, `document.activeElement.blur() || true`)
	p.Do(t, chromedp.Focus("input[name=ask]:checked"))
	answeredAfter(t, p, func() { p.Do(t, chromedp.KeyEvent(kb.ArrowRight)) })
	if at := browser.Evaluate[string](t, p, focused); at != "ask=metric" {
		t.Errorf("an arrow among the questions leads to %s", at)
	}
	if ring := browser.Evaluate[string](t, p, `getComputedStyle(document.activeElement.closest("label")).outlineStyle`); ring == "none" {
		t.Error("nothing shows where the keyboard is")
	}
}

// forms are the page's questions.
var forms = []string{"training", "metric", "silo", "tuning"}

// choose asks a question of another kind, by rdp where there is a choice.
func choose(t *testing.T, p *browser.Page, form string) {
	t.Helper()
	ask(t, p, asked{Form: form, Values: map[string]string{"accountant": "rdp", "solve": "noise"}})
}

// noBareEpsilonIn: wherever an epsilon's number stands in the page, its claim, unit and
// relation stand with it, in the row, the field, the picture or the sentence.
func noBareEpsilonIn(t *testing.T, p *browser.Page) {
	for _, form := range forms {
		choose(t, p, form)
		text := browser.Evaluate[string](t, p, `(async () => {
  while (document.querySelectorAll("#curves svg.chart").length < 2) await new Promise(requestAnimationFrame);
  const words = (e) => e.nodeType === Node.TEXT_NODE ? e.data : [...e.childNodes].map(words).join(" ");
  const line = (s) => s.replace(/\s+/g, " ").trim(), lines = [];
  for (const e of document.querySelectorAll("p, li, blockquote, #curves > div")) if (!e.closest("form, .sentence *")) lines.push(line(words(e)));
  for (const f of document.querySelectorAll("form:not([hidden]) .field:not([hidden])")) {
    const value = f.querySelector(".value, textarea");
    lines.push(line(words(f.querySelector("label")) + " " + (value ? value.value : "") + " " + words(f)));
  }
  for (const row of document.querySelectorAll(".label tr")) {
    if (row.cells[0].textContent.startsWith("Epsilon")) lines.push(line("Epsilon " + words(row.cells[1])));
  }
  lines.push(line(words(document.querySelector(".brief"))).replace(/(Epsilon)[^0-9]*/, "$1 "));
  for (const table of document.querySelectorAll("#answer .figures")) {
    const at = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent === "Epsilon");
    for (const row of table.tBodies[0].rows) lines.push(line("Epsilon " + words(row.cells[at]) + " " + words(row)));
  }
  return lines.join("\n") + "\n";
})()`)
		bare, seen := bareEpsilons(text)
		if len(bare) > 0 || seen < 4 {
			t.Errorf("%s: %d lines with an epsilon, at least 4 wanted, of which lack claim, unit or relation:\n%s\nin:\n%s", form, seen, strings.Join(bare, "\n"), text)
		}
	}
}

// narrowAndDark: on a telephone nothing lies outside, the answer stays in sight, and at night
// the page is dark.
func narrowAndDark(t *testing.T, p *browser.Page) {
	p.Do(t, chromedp.EmulateViewport(390, 844))
	browser.Call(t, p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	for _, form := range forms {
		choose(t, p, form)
		if wide := browser.Evaluate[float64](t, p, `document.documentElement.scrollWidth`); wide > 390 {
			t.Errorf("%s is %v wide on 390", form, wide)
		}
		if bottom := browser.Evaluate[float64](t, p, `document.getElementById("brief").getBoundingClientRect().bottom`); bottom != 844 {
			t.Errorf("%s: the answer in a line ends at %v, not at the screen's end", form, bottom)
		}
	}
	if small := browser.Evaluate[[]string](t, p, `[...document.querySelectorAll("form:not([hidden]) input:not([type=radio]):not([type=range]), select, button, .kinds label")]
  .filter((e) => e.offsetParent && e.getBoundingClientRect().height < 43).map((e) => e.outerHTML.slice(0, 80))`); len(small) > 0 {
		t.Errorf("too low for a finger: %v", small)
	}
	// No number stays in sight that is not the answer to what is asked.
	wrong := ask(t, p, asked{Form: "training", Values: map[string]string{"solve": "epsilon", "rate": "0.01x"}})[0]
	if brief := browser.Evaluate[string](t, p, `document.getElementById("brief").textContent`); wrong.Trouble != `Rate = "0.01x": want a number.` || brief != wrong.Trouble {
		t.Errorf("a rate that is none: the page says %q, and %q in the line below", wrong.Trouble, brief)
	}
	const light = `(() => { const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number); return r + g + b; })()`
	if dark := browser.Evaluate[float64](t, p, light); dark > 150 {
		t.Errorf("the page at night is as light as %v of 765", dark)
	}
	browser.Call(t, p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	if day := browser.Evaluate[float64](t, p, light); day < 600 {
		t.Errorf("the page by day is as dark as %v of 765", day)
	}
}
