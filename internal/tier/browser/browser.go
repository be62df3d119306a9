// Package browser opens pages in a real Chromium, for the tests of pages that run something.
package browser

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/coterie-fl/coterie/internal/tier"
)

// Page is an open tab, and what happened in it that may not happen in a page of ours.
type Page struct {
	ctx    context.Context
	mu     sync.Mutex
	faults []error
}

// patience is how long a test of a page may take before something hangs.
const patience = 3 * time.Minute

// Open starts a browser with one empty tab, or leaves the test out.
func Open(t testing.TB) *Page {
	t.Helper()
	return OpenFor(t, "")
}

// OpenFor is Open for pages of a server, by the beginning of its addresses: whatever else they
// ask for is a fault.
func OpenFor(t testing.TB, server string) *Page {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		tier.LeaveOut(t, tier.Chromium, err)
	}
	return start(t, server, program)
}

// start starts a program that is a browser.
func start(t testing.TB, server, program string) *Page {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, stop := context.WithTimeout(context.Background(), patience)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // it ends before its folder is removed
	p := &Page{ctx: ctx}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	requests, messages := chromedp.Events(ctx, network.RequestWillBeSent), chromedp.Console(ctx)
	go func() {
		for e, err := range requests {
			if err == nil && !local(e.Request.URL) && (server == "" || !strings.HasPrefix(e.Request.URL, server+"/")) {
				p.note("it asks for " + e.Request.URL)
			}
		}
	}()
	go func() {
		for m, err := range messages {
			if err == nil && (m.IsException() || m.Type == "error" || m.Type == "warning") {
				p.note(m.String())
			}
		}
	}()
	return p
}

// local says that an address is in the file itself.
func local(url string) bool {
	scheme, _, _ := strings.Cut(url, ":")
	return scheme == "file" || scheme == "blob" || scheme == "data"
}

func (p *Page) note(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, errors.New(fault))
}

// Faults are requests beyond the file itself, exceptions, errors and what a content
// security policy refused, so far.
func (p *Page) Faults() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.faults...)
}

// Do runs steps in the tab.
func (p *Page) Do(t testing.TB, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		t.Fatalf("%v; in the page: %v", err, p.Faults())
	}
}

// Follow runs steps that lead to another page, and waits until it is there: what asks for a
// third one while the second is on its way may end in "aborted".
func (p *Page) Follow(t testing.TB, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if _, err := chromedp.RunResponse(p.ctx, steps...); err != nil {
		t.Fatalf("%v; in the page: %v", err, p.Faults())
	}
}

// Call runs a command of the DevTools protocol.
func Call[P, R any](t testing.TB, p *Page, command cdp.Command[P, R], params P) R {
	t.Helper()
	result, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		t.Fatalf("%v; in the page: %v", err, p.Faults())
	}
	return result
}

// Evaluate is the value of an expression in the page; a promise is awaited.
func Evaluate[T any](t testing.TB, p *Page, expression string) T {
	t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%v; in the page: %v", err, p.Faults())
	}
	return v
}
