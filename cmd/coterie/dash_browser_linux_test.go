package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/internal/tier/browser"
)

// TestDashBehindACertificate: a real browser with an operator's certificate, made as
// docs/dash.md says, opens the page on the federation's own port and follows it; one without
// a certificate and one with a participant's are told nothing.
func TestDashBehindACertificate(t *testing.T) {
	t.Parallel()
	w := newWatched(t, watchedRun, "admin: 127.0.0.1:0\n", "a", "b", "c")
	process := w.serve()
	w.enrol("a")
	runJSON(t, "ca", "invite", "watch", "--operator", "--ca", w.path("ca"), "--out", w.path("watch.invite"))
	runJSON(t, "join", "--invite", w.path("watch.invite"), "--identity", w.path("watch"))
	bundle := func(identity string) string {
		t.Helper()
		file := identity + ".p12"
		if out, err := exec.Command("openssl", "pkcs12", "-export", "-in", identity+"/identity.pem", "-out", file, "-passout", "pass:x").CombinedOutput(); err != nil {
			t.Skipf("left out: chromium: openssl makes no bundle: %v, %s", err, out)
		}
		return file
	}
	site := "https://" + w.address
	text := func(p *browser.Page) string {
		t.Helper()
		p.Do(t, chromedp.Navigate(site+server.PagePath))
		return browser.Evaluate[string](t, p, `document.body.innerText`)
	}

	operator := browser.OpenHolding(t, site, browser.Holding{Authority: w.path("ca", "ca.crt"), Certificate: bundle(w.path("watch")), Password: "x"})
	if said := text(operator); !strings.Contains(said, "waiting for participants") {
		t.Errorf("an operator sees: %s", said)
	}
	browser.Evaluate[bool](t, operator, `window.same = true`) // a page that was loaded again has lost it
	joined := w.join("a")
	connected := browser.Evaluate[bool](t, operator, `(async () => {
  for (const end = performance.now() + 15000; performance.now() < end; await new Promise((r) => setTimeout(r, 50)))
    if (document.body.innerText.includes("1 of 3 participants connected") && window.same) return true;
  return false;
})()`)
	if !connected {
		t.Errorf("the page does not follow: %s", browser.Evaluate[string](t, operator, `document.body.innerText`))
	}
	if err := operator.Faults(); err != nil {
		t.Errorf("the page asks for more than its own, or fails: %v", err)
	}

	for who, c := range map[string]struct{ certificate, want string }{
		"nobody":        {"", "unauthenticated"},
		"a participant": {bundle(w.path("a", "identity")), "is for operators"},
	} {
		p := browser.OpenHolding(t, site, browser.Holding{Authority: w.path("ca", "ca.crt"), Certificate: c.certificate, Password: "x"})
		if said := text(p); !strings.Contains(said, c.want) || strings.Contains(said, "waiting") {
			t.Errorf("%s sees: %s", who, said)
		}
	}
	for _, p := range []interface{ Signal(os.Signal) error }{joined.cmd.Process, process.cmd.Process} {
		if err := p.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	w.wait(process)
}
