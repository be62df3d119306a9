package live

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coterie-fl/coterie/internal/tier/browser"
	"github.com/coterie-fl/coterie/sim"
)

// open serves a page as coterie dash does, at an address or at any; stop ends it at once.
func open(t *testing.T, h *Door, at string) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, h, slog.New(slog.DiscardHandler)) }()
	return l.Addr().String(), func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// until waits for an expression of the page to be true.
func until(t *testing.T, p *browser.Page, what, expression string) {
	t.Helper()
	ok := browser.Evaluate[bool](t, p, `(async () => {
  for (const end = performance.now() + 15000; performance.now() < end; await new Promise((r) => setTimeout(r, 50))) if (`+expression+`) return true;
  return false;
})()`)
	if !ok {
		t.Fatalf("%s: never; the page says:\n%.2000s", what, browser.Evaluate[string](t, p, `document.body.innerText`))
	}
}

// reporting tells which reports are asked for: they run nothing, so they cannot be asked
// themselves.
type reporting struct {
	Source
	asked chan string
}

func (r reporting) Report(place url.Values) (io.ReadCloser, error) {
	r.asked <- place.Get("at")
	return r.Source.Report(place)
}

func (r reporting) was(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-r.asked:
		if got != want {
			t.Errorf("the report of %s is asked for, not that of %s", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("nobody asks for the report of %s", want)
	}
}

// TestLivePageInChromium follows a folder in a real browser: runs as they go, appear and
// vanish, a server that goes and comes back, keys, a telephone at night.
func TestLivePageInChromium(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	finishedRun(t, filepath.Join(dir, "done"), "done-run")
	stop := liveRun(t, filepath.Join(dir, "on"), "on-run")
	const hostile = `<img src=x onerror=alert(1)>` // a name that no text of the page may become
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, hostile, cellsFolder), 0o755),
		os.WriteFile(filepath.Join(dir, hostile, sim.ReportFile), []byte(`<script src="http://127.0.0.1:9/x.js"></script>`), 0o644)); err != nil {
		t.Fatal(err)
	}
	reports := reporting{folderOf(t, dir), make(chan string, 10)}
	page := New(reports, "test")
	door := NewDoor(NewToken(), page)
	at, end := open(t, door, "127.0.0.1:0")
	defer func() { end() }()
	p := browser.OpenFor(t, "http://"+at)
	p.Do(t, chromedp.Navigate(door.Address(at)), chromedp.WaitReady("#list-run"))
	if where := browser.Evaluate[string](t, p, `location.href`); where != "http://"+at+door.folder+"/" {
		t.Errorf("the page is at %s: the token should be out of sight", where)
	}
	browser.Evaluate[bool](t, p, `window.same = true`) // a page that was loaded again has lost it

	t.Run("as it goes", func(t *testing.T) {
		until(t, p, "two runs and a study", `document.querySelectorAll(".thing").length === 3 && document.body.innerText.includes("`+hostile+`") && !document.querySelector("img")`)
		words := browser.Evaluate[string](t, p, `document.querySelector(".thing p").textContent`)
		until(t, p, "a later round", `document.querySelector(".thing p").textContent !== "`+words+`"`)
		finishedRun(t, filepath.Join(dir, "new"), "new-run")
		until(t, p, "a run that appears", `document.body.innerText.includes("new-run") && document.getElementById("status").textContent === "1 running, 3 finished."`)
		if err := os.RemoveAll(filepath.Join(dir, "new")); err != nil {
			t.Fatal(err)
		}
		until(t, p, "a run that vanishes", `!document.body.innerText.includes("new-run")`)
	})

	t.Run("the list, narrow and dark", func(t *testing.T) { narrowAndDark(t, p) })

	t.Run("by keyboard", func(t *testing.T) {
		var seen []string
		for range 12 {
			p.Do(t, chromedp.KeyEvent(kb.Tab))
			at := browser.Evaluate[string](t, p, `document.activeElement.getAttribute("href") || document.activeElement.id`)
			if seen = append(seen, at); at == "?at=on" {
				break
			}
		}
		words := browser.Evaluate[string](t, p, `document.querySelector(".thing p").textContent`)
		until(t, p, "a later round", `document.querySelector(".thing p").textContent !== "`+words+`"`)
		if at := browser.Evaluate[string](t, p, `document.activeElement.getAttribute("href")`); at != "?at=on" {
			t.Fatalf("after a change the focus is on %q; the tabulator had reached %v", at, seen)
		}
		if ring := browser.Evaluate[string](t, p, `getComputedStyle(document.activeElement.closest(".thing")).outlineStyle`); ring == "none" {
			t.Error("nothing shows where the keyboard is")
		}
		p.Follow(t, chromedp.KeyEvent(kb.Enter))
		until(t, p, "curves", `document.querySelectorAll("svg.chart").length === 4`)
		if live := browser.Evaluate[string](t, p, `document.getElementById("status").getAttribute("aria-live")`); live != "polite" {
			t.Errorf("the status is announced as %q", live)
		}
		path := browser.Evaluate[string](t, p, `document.querySelector("svg.chart path").getAttribute("d")`)
		until(t, p, "a curve that grows", `document.querySelector("svg.chart path").getAttribute("d") !== "`+path+`"`)
		browser.Evaluate[bool](t, p, `(document.getElementById("run-file").open = true)`)
		wait := browser.Evaluate[string](t, p, `document.getElementById("stand").textContent`)
		until(t, p, "a later state", `document.getElementById("stand").textContent !== `+"`"+wait+"`")
		if !browser.Evaluate[bool](t, p, `document.getElementById("run-file").open`) {
			t.Error("what somebody unfolded is folded again")
		}
		browser.Evaluate[bool](t, p, `(document.getElementById("run-file").open = false) || true`)
	})

	t.Run("narrow and dark", func(t *testing.T) { narrowAndDark(t, p) })

	if err := p.Faults(); err != nil { // what comes now is refused on purpose
		t.Error(err)
	}

	t.Run("the server goes and comes back", func(t *testing.T) {
		browser.Evaluate[bool](t, p, `window.same = true`)
		end()
		until(t, p, "a word about it", `document.getElementById("link").textContent.startsWith("Nobody answers")`)
		_, end = open(t, door, at)
		until(t, p, "it goes on", `document.getElementById("link").textContent === "" && window.same`)
		words := browser.Evaluate[string](t, p, `document.getElementById("stand").textContent`)
		until(t, p, "a later state", `document.getElementById("stand").textContent !== `+"`"+words+"`")
	})

	t.Run("out of sight", func(t *testing.T) {
		readers := func(want int) {
			t.Helper()
			for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				page.streams.mu.Lock()
				n := page.streams.count
				page.streams.mu.Unlock()
				if n == want {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("%d streams are open, want %d", n, want)
				}
			}
		}
		const hide = `Object.defineProperty(document, "hidden", { configurable: true, value: %v }) && document.dispatchEvent(new Event("visibilitychange"))`
		readers(1)
		browser.Evaluate[bool](t, p, strings.ReplaceAll(hide, "%v", "true"))
		readers(0)
		browser.Evaluate[bool](t, p, strings.ReplaceAll(hide, "%v", "false"))
		readers(1)
	})

	t.Run("to its end", func(t *testing.T) {
		stop()
		until(t, p, "it stopped", `document.getElementById("status").textContent.includes("stopped") && document.body.innerText.includes("coterie run --resume")`)
		p.Do(t, chromedp.Navigate("http://"+at+door.folder+"/?at=done"), chromedp.WaitReady(".label"))
		text := browser.Evaluate[string](t, p, `fetch("report?at=done").then((r) => r.text())`)
		reports.was(t, "done")
		wants(t, text, "<title>done-run</title>", `<svg class="chart"`)
		p.Follow(t, chromedp.Click(`a[href="report?at=done"]`))
		reports.was(t, "done")
		// What a report asks for is asked of nobody: Faults would have it.
		p.Do(t, chromedp.Navigate("http://"+at+door.folder+"/report?"+url.Values{"at": {hostile}}.Encode()))
		reports.was(t, hostile)
	})

	t.Run("the calculator", func(t *testing.T) {
		p.Do(t, chromedp.Navigate("http://"+at+door.folder+"/"), chromedp.WaitReady(".thing"))
		p.Follow(t, chromedp.Click(`a[href="calculator"]`))
		until(t, p, "an answer", `document.getElementById("json") && JSON.parse(document.getElementById("json").textContent).epsilon > 0`)
	})
	refused := false
	for line := range strings.Lines(p.Faults().Error()) {
		switch {
		case strings.Contains(line, "frame is sandboxed"): // the hostile report's script
			refused = true
		case !strings.Contains(line, "net::ERR_"): // the server went
			t.Error(line)
		}
	}
	if !refused {
		t.Error("the script of a report was not refused")
	}
	if _, err := os.Stat(filepath.Join(dir, "on", sim.CheckpointFile)); errors.Is(err, os.ErrNotExist) {
		t.Error("the run left no checkpoint")
	}
}

// narrowAndDark: on a telephone nothing lies outside, by day and by night everything can be
// read, and who wants no motion gets none.
func narrowAndDark(t *testing.T, p *browser.Page) {
	p.Do(t, chromedp.EmulateViewport(390, 844))
	for _, scheme := range []string{"dark", "light"} {
		fits(t, p, scheme)
		if moves := browser.Evaluate[string](t, p, `getComputedStyle(document.querySelector(".state.running"), "::before").animationName`); moves != "none" {
			t.Errorf("%s: %s moves", scheme, moves)
		}
		light := browser.Evaluate[float64](t, p, `(() => { const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number); return r + g + b; })()`)
		if (scheme == "dark") != (light < 150) {
			t.Errorf("%s: the page is as light as %v of 765", scheme, light)
		}
	}
	if small := browser.Evaluate[[]string](t, p, `[...document.querySelectorAll("nav a, .up a, .buttons a")].filter((e) => e.getBoundingClientRect().height < 43).map((e) => e.outerHTML)`); len(small) > 0 {
		t.Errorf("too low for a finger: %v", small)
	}
	browser.Call(t, p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	if moves := browser.Evaluate[string](t, p, `getComputedStyle(document.querySelector(".state.running"), "::before").animationName`); moves != "beat" {
		t.Errorf("a run that goes on does not beat: %s", moves)
	}
	p.Do(t, chromedp.EmulateViewport(1280, 900))
}

// fits: on a telephone nothing lies outside, and everything can be read.
func fits(t *testing.T, p *browser.Page, scheme string) {
	t.Helper()
	browser.Call(t, p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if wide := browser.Evaluate[float64](t, p, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("%s: the page is %v wide on 390", scheme, wide)
	}
	if low := browser.Evaluate[[]string](t, p, contrasts); len(low) > 0 {
		t.Errorf("%s: too little contrast: %v", scheme, low)
	}
}

// contrasts are texts that stand out less than 4.5 to 1 from what is behind them (WCAG AA).
const contrasts = `(() => {
  const parse = (c) => c.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const low = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !e.getClientRects().length || e.closest("script, noscript, .skip")) continue;
    const style = getComputedStyle(e), a = light(parse(e.ownerSVGElement ? style.fill : style.color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(ratio.toFixed(2) + " " + walk.currentNode.data.trim().slice(0, 40));
  }
  return low;
})()`
