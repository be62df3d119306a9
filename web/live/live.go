// Package live is the page that shows runs, sweeps, ledgers and a federation as they go: read-only, pushed by server-sent events.
package live

import (
	"bytes"
	_ "embed" // page, style and script are part of the binary
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/web/calculator"
)

//go:embed page.gohtml
var pageText string

//go:embed page.css
var styleText string

//go:embed page.js
var scriptText string

var pageTemplate = parsed(pageText)

// parsed is a template that is parsed when it is first filled: every command of the program
// would wait for all of them, and most show no page.
func parsed(text string) func() *template.Template {
	return sync.OnceValue(func() *template.Template { return layout.Parse(text) })
}

// Source is what a page shows: a folder, or a federation's server.
type Source interface {
	// View is one page of it as it is now.
	View(place url.Values) (View, error)
	// Report opens a finished thing's own page; it is read and closed.
	Report(place url.Values) (io.ReadCloser, error)
}

// View is what one page shows. Parts that change are sent anew, one by one.
type View struct {
	Title  string
	Lead   string
	Status string // in a line, read out when it changes
	Up     []Link
	Parts  []Part
}

// Link leads to another view.
type Link struct{ Name, To string }

// Part is a piece of a page with a place of its own.
type Part struct {
	ID   string
	HTML template.HTML
}

// ErrNotThere means that a view or a report does not exist, or no more.
var ErrNotThere = errors.New("there is no such thing here, or no more")

// Page answers for one source.
type Page struct {
	source  Source
	version string
	streams *streams
	numbers func() []byte // the calculator
}

// New is the page of a source. Whoever asks it has been let in: see Door.
func New(s Source, version string) *Page {
	return &Page{source: s, version: version, streams: newStreams(s), numbers: sync.OnceValue(func() []byte {
		var page bytes.Buffer
		if calculator.HTML(&page, version) != nil {
			return nil
		}
		return page.Bytes()
	})}
}

// policy lets the page run one script and one style of its own, talk to its own server, and
// nothing else: no other text becomes a part of it but what the script's own rule lets in.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types live"

// reportPolicy is for pages that runs left: they may style themselves and do nothing at all.
const reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-popups allow-top-navigation-by-user-activation"

// secured sets what every answer has.
func secured(w http.ResponseWriter, policy string) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// The paths of a page, relative to where it is hung up.
const (
	eventsPath     = "events"
	reportPath     = "report"
	calculatorPath = "calculator"
	stylePath      = "live.css"
	scriptPath     = "live.js"
)

// ServeHTTP answers what is asked below the place where the page hangs; only GET and HEAD.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secured(w, policy)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page only shows: GET", http.StatusMethodNotAllowed)
		return
	}
	switch strings.TrimPrefix(r.URL.Path, "/") {
	case "":
		p.view(w, r)
	case eventsPath:
		p.streams.serve(w, r)
	case reportPath:
		p.report(w, r)
	case calculatorPath:
		// Its policy is in the file; what a file cannot say of itself is said here.
		w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'")
		serveText(w, "text/html; charset=utf-8", p.numbers())
	case stylePath:
		serveText(w, "text/css; charset=utf-8", []byte(layout.Style()+styleText))
	case scriptPath:
		serveText(w, "text/javascript; charset=utf-8", []byte(scriptText))
	default:
		http.NotFound(w, r)
	}
}

func serveText(w http.ResponseWriter, kind string, text []byte) {
	if len(text) == 0 {
		http.Error(w, "it cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(text) // the reader may be gone
}

// shown is all that the page's template gets.
type shown struct {
	View
	Version, Events string
}

// view writes a page as it is now; its script has it follow.
func (p *Page) view(w http.ResponseWriter, r *http.Request) {
	v, err := p.source.View(r.URL.Query())
	if err != nil {
		refuse(w, err)
		return
	}
	var page bytes.Buffer
	if err := layout.Write(&page, pageTemplate(), shown{v, p.version, eventsPath + "?" + r.URL.Query().Encode()}); err != nil {
		refuse(w, err)
		return
	}
	serveText(w, "text/html; charset=utf-8", page.Bytes())
}

// report hands out the page that a run, a sweep or a study left.
func (p *Page) report(w http.ResponseWriter, r *http.Request) {
	file, err := p.source.Report(r.URL.Query())
	if err != nil {
		refuse(w, err)
		return
	}
	defer file.Close()
	w.Header().Set("Content-Security-Policy", reportPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.Copy(w, file) // the reader may be gone
}

func refuse(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, ErrNotThere) {
		code = http.StatusNotFound
	}
	http.Error(w, err.Error(), code)
}

// fill makes a part of a template.
func fill(id string, t func() *template.Template, view any) (Part, error) {
	var text bytes.Buffer
	if err := layout.Write(&text, t(), view); err != nil {
		return Part{}, fmt.Errorf("%s: %w", id, err)
	}
	return Part{id, template.HTML(text.String())}, nil
}
