package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/coterie-fl/coterie/internal/tier/browser"
)

// pageFile writes the calculator.
func pageFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "calculator.html")
	if out, errs, code := accounted(t, "page", "--out", file); code != 0 || !strings.Contains(out, file) {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	return file
}

// TestAccountPageFile: one file of at most 3 MB as it travels, that may run and style
// itself and nothing else.
func TestAccountPageFile(t *testing.T) {
	text, err := os.ReadFile(pageFile(t))
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression)
	_, _ = w.Write(text)
	_ = w.Close()
	t.Logf("%d bytes, %d gzipped", len(text), small.Len())
	if small.Len() > 3e6 {
		t.Errorf("%d bytes gzipped, at most 3 MB are wanted", small.Len())
	}
	page := string(text)
	for _, m := range regexp.MustCompile(`(?i)\b(src|href|action)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if m[2] != "data:," && !strings.HasPrefix(m[2], "#") {
			t.Errorf("the page loads %s", m[0])
		}
	}
	policy := strings.ReplaceAll(regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1], "&#39;", "'")
	policy = strings.ReplaceAll(policy, "&#43;", "+")
	for _, tag := range []string{"script", "style"} {
		parts := strings.Split(page, "<"+tag+">")
		if len(parts) != 2 {
			t.Fatalf("%d elements <%s>, want one", len(parts)-1, tag)
		}
		content, _, _ := strings.Cut(parts[1], "</"+tag+">")
		sum := sha256.Sum256([]byte(content))
		if want := tag + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("the policy %q does not name the page's %s", policy, tag)
		}
	}
	for _, never := range []string{"unsafe-inline", "'unsafe-eval'", "http", "*"} {
		if strings.Contains(policy, never) {
			t.Errorf("the policy %q allows %s", policy, never)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'; ") {
		t.Errorf("the policy %q does not begin with nothing", policy)
	}
}

func TestAccountPageRefuses(t *testing.T) {
	for _, args := range [][]string{{"page", "--out", ""}, {"page", "more"}} {
		if out, errs, code := accounted(t, args...); code != exitUsage || errs == "" || out != "" {
			t.Errorf("account %v: exit %d, printed %q, said %q", args, code, out, errs)
		}
	}
	missing := filepath.Join(t.TempDir(), "no", "folder.html")
	if _, errs, code := accounted(t, "page", "--out", missing); code != exitFailure || !strings.Contains(errs, "folder.html") {
		t.Errorf("a folder that is not there: exit %d, said %q", code, errs)
	}
}

// asked is a question as a visitor puts it, and as the command line does.
type asked struct {
	Form   string            `json:"form"`
	Values map[string]string `json:"values"`
	args   []string
	file   string
}

// answered is what the page then shows.
type answered struct{ Command, File, JSON, Trouble string }

// questions are count questions of all kinds, the same every time. One in 25 asks the
// slow accountant, the others rdp.
func questions(count int) (list []asked) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(low, high float64) string { // even factors, four digits
		x := low * math.Pow(high/low, r.Float64())
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	whole := func(low, high float64) string {
		x, _ := strconv.ParseFloat(pick(low, high), 64)
		return strconv.Itoa(int(x))
	}
	for i := range count {
		q := asked{Values: map[string]string{"accountant": "rdp"}}
		set := func(name, value string) {
			q.Values[name] = value
			q.args = append(q.args, "--"+name, value)
		}
		best := i%25 == 24
		training := func() { // at a large epsilon a tuning by Poisson trials takes a second
			set("noise", pick(2, 20))
			set("rate", pick(1e-4, 0.05))
			set("steps", whole(1, 20000))
		}
		switch kind := i % 5; {
		case best || kind < 2:
			q.Form = "training"
			solve, least := []string{"epsilon", "noise", "steps", "rate"}[i/5%4], 1e-4
			if best { // small rates take seconds
				solve, least = "epsilon", 0.01
			}
			if solve != "epsilon" {
				set("epsilon", pick(0.2, 10))
			}
			if solve != "noise" {
				set("noise", pick(0.8, 20))
			}
			if solve != "rate" {
				set("rate", pick(least, 0.5))
			}
			if solve != "steps" {
				set("steps", whole(1, 20000))
			}
			set("delta", pick(1e-9, 1e-3))
			q.Values["solve"] = solve
			q.args = append([]string{map[bool]string{true: "dpsgd", false: "calibrate"}[solve == "epsilon"]}, q.args...)
			if r.IntN(2) == 1 {
				set("unit", "client")
			} else {
				q.Values["unit"] = "example"
			}
		case kind == 2:
			q.Form = "metric"
			set("dimension", whole(1, 1e6))
			set("noise-multiplier", pick(0.1, 1e6))
			set("releases", whole(1, 500))
			set("radius", pick(0.01, 100))
			set("distance", pick(0.01, 100))
			q.args = append([]string{"metric"}, q.args...)
		case kind == 3:
			q.Form = "tuning"
			set("mean-trials", pick(1.5, 200))
			q.Values["distribution"] = "poisson"
			if i%3 > 0 {
				q.Values["distribution"] = "tnb"
				set("eta", pick(0.01, 3))
			}
			training()
			set("delta", pick(1e-9, 1e-3))
			if i%3 == 0 {
				q.args = append(q.args, "--distribution", "poisson")
			}
			q.args = append([]string{"tuning"}, q.args...)
		default:
			q.Form = "silo"
			own := "yours"
			for _, name := range []string{"examples", "batch", "epochs", "epsilon", "delta"} {
				value := map[string]func() string{
					"examples": func() string { return whole(300, 1e5) }, "batch": func() string { return whole(8, 256) }, "epochs": func() string { return whole(1, 50) },
					"epsilon": func() string { return pick(0.2, 10) }, "delta": func() string { return pick(1e-9, 1e-3) },
				}[name]()
				q.Values[name] = value
				own += "," + value
			}
			q.Values["others"] = "north,872,64,10,0.5,1e-7"
			q.file = "silo,examples,batch,epochs,epsilon,delta\n" + own + "\n" + q.Values["others"] + "\n"
			q.args = []string{"silo"}
		}
		if best {
			q.Values["accountant"] = "best"
		} else if q.Form != "metric" {
			q.args = append(q.args, "--accountant", "rdp")
		}
		if q.file != "" {
			q.args = append(q.args, "silos.csv")
		}
		list = append(list, q)
	}
	return list
}

// asking fills a form as a visitor does and waits for its last answer.
const asking = `async (q) => {
  const answer = document.getElementById("answer"), form = document.getElementById(q.form), before = Number(answer.dataset.id || 0);
  for (const [name, value] of Object.entries(q.values)) if (form.elements[name]) form.elements[name].value = value;
  const last = new Promise((done) => new MutationObserver((_, me) => {
    if (Number(answer.dataset.id) > before && answer.getAttribute("aria-busy") === "false") { me.disconnect(); done(); }
  }).observe(answer, { attributes: true }));
  if (form.hidden) document.querySelector("input[name=ask][value=" + q.form + "]").click();
  else form.querySelector(".value").dispatchEvent(new Event("input", { bubbles: true }));
  await last;
  const text = (selector) => { const e = document.querySelector(selector); return e ? e.textContent : ""; };
  return { Command: text("#command"), File: text("#answer pre.config"), JSON: text("#json"), Trouble: text("#trouble") };
}`

// ask puts questions one after the other, and gets what the page shows after each.
func ask(t *testing.T, p *browser.Page, list ...asked) []answered {
	t.Helper()
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return browser.Evaluate[[]answered](t, p, fmt.Sprintf(`(async (ask, list) => { const all = []; for (const q of list) all.push(await ask(q)); return all; })(%s, %s)`, asking, text))
}

// TestAccountPageInChromium opens the page in a real browser: it asks for nothing, breaks
// no rule of its policy, and says what the command line says.
func TestAccountPageInChromium(t *testing.T) {
	t.Parallel()
	page := browser.Open(t)
	page.Do(t, chromedp.Navigate("file://"+pageFile(t)), chromedp.WaitReady("#json"))
	t.Logf("first answer %.0f ms after the page was asked for", browser.Evaluate[float64](t, page, `performance.getEntriesByName("answer")[0].startTime`))
	t.Run("by keyboard", func(t *testing.T) { askedByKeyboard(t, page) })
	t.Run("no bare epsilon", func(t *testing.T) { noBareEpsilonIn(t, page) })
	t.Run("narrow and dark", func(t *testing.T) { narrowAndDark(t, page) })
	t.Run("as the command line", func(t *testing.T) { answersAsTheCommandLine(t, page) })
	if err := page.Faults(); err != nil {
		t.Error(err)
	}
}

// answersAsTheCommandLine: 200 questions get the answers of the command line to ten digits.
func answersAsTheCommandLine(t *testing.T, page *browser.Page) {
	dir := t.TempDir()
	worst := 0.0
	list := questions(200)
	answers := ask(t, page, list...)
	for i, q := range list {
		got := answers[i]
		want := "coterie account " + strings.Join(q.args, " ")
		if q.file != "" {
			if err := os.WriteFile(filepath.Join(dir, "silos.csv"), []byte(q.file), 0o600); err != nil {
				t.Fatal(err)
			}
			q.args[len(q.args)-1] = filepath.Join(dir, "silos.csv")
		}
		out, errs, code := accounted(t, append(q.args, "--output", "json")...)
		if code != 0 {
			var says struct{ Error string }
			if err := json.Unmarshal([]byte(errs), &says); err != nil || !strings.EqualFold(got.Trouble, strings.TrimPrefix(says.Error, "wrong usage: ")+".") {
				t.Errorf("%d: %s: the page says %q, the program %s", i, want, got.Trouble, errs)
			}
			continue
		}
		if got.Trouble != "" || got.Command != want || got.File != strings.TrimSpace(q.file) {
			t.Errorf("%d: asked %s, the page answers %s (%s): %s", i, want, got.Command, got.File, got.Trouble)
			continue
		}
		var ours, theirs any
		if err := json.Unmarshal([]byte(got.JSON), &ours); err != nil {
			t.Fatalf("%d: %v in %s", i, err, got.JSON)
		}
		if err := json.Unmarshal([]byte(out), &theirs); err != nil {
			t.Fatal(err)
		}
		if far := apart(ours, theirs); far > 1e-10 {
			t.Errorf("%d: %s: %g apart:\npage    %s\nprogram %s", i, want, far, got.JSON, out)
		} else {
			worst = max(worst, far)
		}
	}
	t.Logf("at most %.1g apart, relatively", worst)
}

// apart is the largest relative difference of the numbers in two answers; infinite where
// they differ otherwise.
func apart(a, b any) float64 {
	switch a := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		if !ok || len(a) != len(other) {
			return math.Inf(1)
		}
		far := 0.0
		for key, value := range a {
			far = max(far, apart(value, other[key]))
		}
		return far
	case []any:
		other, ok := b.([]any)
		if !ok || len(a) != len(other) {
			return math.Inf(1)
		}
		far := 0.0
		for i, value := range a {
			far = max(far, apart(value, other[i]))
		}
		return far
	case float64:
		other, ok := b.(float64)
		if !ok {
			return math.Inf(1)
		}
		if a == other {
			return 0
		}
		return math.Abs(a-other) / math.Abs(other)
	}
	if a != b {
		return math.Inf(1)
	}
	return 0
}
