package live

import (
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// Folder shows what lies in a folder: runs, sweeps, studies, ledgers, identities. It only
// reads, and shows nothing outside of it.
type Folder struct {
	scanner
	loaded cache
}

// NewFolder opens a folder to be shown.
func NewFolder(dir string) (*Folder, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder %s: %w", dir, err)
	}
	root, err := os.OpenRoot(full)
	if err != nil {
		return nil, fmt.Errorf("there is no folder to show: %w", err)
	}
	return &Folder{scanner: scanner{path: full, root: root, known: map[string]folder{}}, loaded: newCache()}, nil
}

// Close lets go of the folder.
func (f *Folder) Close() error { return f.root.Close() }

// find is the thing that a place names.
func (f *Folder) find(place url.Values) (thing, error) {
	all, err := f.things()
	if err != nil {
		return thing{}, err
	}
	at := slices.IndexFunc(all, func(t thing) bool { return t.id == place.Get("at") })
	if at < 0 {
		return thing{}, ErrNotThere
	}
	return all[at], nil
}

// View is the list of all that is there, or one thing.
func (f *Folder) View(place url.Values) (View, error) {
	if !place.Has("at") {
		all, err := f.things()
		if err != nil {
			return View{}, err
		}
		if i := slices.IndexFunc(all, func(t thing) bool { return t.id == "." }); i >= 0 {
			return f.one(all[i], nil)
		}
		return f.list(all, place)
	}
	t, err := f.find(place)
	if err != nil {
		return View{}, err
	}
	return f.one(t, []Link{{"All", "."}})
}

func (f *Folder) one(t thing, up []Link) (v View, err error) {
	switch t.kind {
	case aRun:
		v, err = f.runView(t)
	case aSweep:
		v, err = f.sweepView(t)
	case ofSeeds:
		v, err = f.seedsView(t)
	case aLedger:
		v, err = f.ledgerView(t)
	case anIdentity:
		v, err = f.identityView(t)
	case aFederation:
		v, err = f.servedView(t)
	default:
		v, err = f.studyView(t)
	}
	if v.Up = up; v.Lead == "." {
		v.Lead = f.path
	}
	return v, err
}

// Report opens what a thing left as its own page.
func (f *Folder) Report(place url.Values) (io.ReadCloser, error) {
	t, err := f.find(place)
	if err != nil {
		return nil, err
	}
	file, err := f.root.Open(path.Join(t.id, sim.ReportFile))
	if err != nil {
		return nil, ErrNotThere
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, ErrNotThere
	}
	return file, nil
}

// hasReport says whether there is one.
func (f *Folder) hasReport(t thing) bool {
	info, err := f.root.Lstat(path.Join(t.id, sim.ReportFile))
	return err == nil && info.Mode().IsRegular()
}

// where is a thing's folder as a command line names it.
func (f *Folder) where(t thing) string { return filepath.Join(f.path, filepath.FromSlash(t.id)) }

// name is what a thing is called where it does not say itself.
func (f *Folder) name(t thing) string { return filepath.Base(f.where(t)) }

func to(page string, t thing) string { return page + "?" + url.Values{"at": {t.id}}.Encode() }

// row is a thing in the list.
type row struct {
	Name, To  string
	State     state
	Lines     []string
	Meter     *meter
	Changed   *time.Time
	Also      []Link
	Ephemeral bool // it changes while one looks
}

// state is a word with a look of its own.
type state struct{ Word, Class string }

var (
	running  = state{"running", "running"}
	finished = state{"finished", "finished"}
	stopped  = state{"stopped", "stopped"}
	silent   = state{"no sign of life", "silent"}
	unread   = state{"cannot be read", "failed"}
)

// meter is a bar: how much of something is used or done.
type meter struct {
	Share, Other float64 // of 100; Other follows Share
	Words        string
	Over         bool
}

func newMeter(done, of float64, words string) *meter {
	m := &meter{Words: words}
	if of > 0 && done > 0 {
		m.Share, m.Over = 100*min(1, done/of), done > of
	}
	return m
}

// pageSize is how many things of a kind a page lists.
const pageSize = 25

// group is a part of the list.
type group struct {
	ID, Name string
	Rows     []row
	Total    int
	Pages    []Link // to the one before and the one after
	Range    string
}

var listTemplate = parsed(partsText + `{{template "group" .}}`)

// groups are the kinds as the list has them.
var groups = []struct {
	kind kind
	name string
}{{aRun, "Runs"}, {ofSeeds, "Seeds"}, {aSweep, "Sweeps"}, {aStudy, "Studies"}, {aFederation, "Federations"}, {aLedger, "Ledgers"}, {anIdentity, "Certificates"}}

// list is all that is there, a page of each kind.
func (f *Folder) list(all []thing, place url.Values) (View, error) {
	v := View{Title: filepath.Base(f.path), Lead: f.path}
	now, counts, seeds := time.Now(), map[string]int{}, map[string]bool{}
	for _, t := range all {
		if t.kind == ofSeeds {
			seeds[t.id] = true
		}
		if t.kind == aRun || t.kind == aSweep || t.kind == aStudy {
			counts[stateOf(t, now).Word]++
		}
	}
	for _, g := range groups {
		var of []thing
		for _, t := range all {
			if t.kind == g.kind && !(t.kind == aRun && seeds[path.Dir(t.id)] && seedFolder.MatchString(path.Base(t.id))) { // a hundred seeds are one line
				of = append(of, t)
			}
		}
		if len(of) == 0 {
			continue
		}
		page := pageOf(place, string(g.kind), len(of))
		shown := of[page*pageSize : min(len(of), (page+1)*pageSize)]
		part := group{ID: string(g.kind), Name: g.name, Total: len(of)}
		for _, t := range shown {
			part.Rows = append(part.Rows, f.row(t))
		}
		if len(of) > pageSize {
			part.Range = fmt.Sprintf("%s to %s of %s", prose.Count(page*pageSize+1), prose.Count(page*pageSize+len(shown)), prose.Count(len(of)))
			part.Pages = pages(place, string(g.kind), page, (len(of)-1)/pageSize)
		}
		p, err := fill("list-"+string(g.kind), listTemplate, part)
		if err != nil {
			return View{}, err
		}
		v.Parts = append(v.Parts, p)
	}
	v.Status = "No runs."
	if len(counts) > 0 {
		v.Status = fmt.Sprintf("%s running, %s finished", prose.Count(counts[running.Word]), prose.Count(counts[finished.Word]))
		if n := counts[silent.Word]; n > 0 {
			v.Status += ", " + prose.Count(n) + " without a sign of life"
		}
		v.Status += "."
	}
	if len(v.Parts) == 0 {
		v.Status = "Nothing here yet: a run that is started with --out below this folder appears by itself."
	}
	return v, nil
}

// pageOf is which page of a kind is asked for, from 0.
func pageOf(place url.Values, kind string, total int) int {
	n, err := strconv.Atoi(place.Get(kind))
	if err != nil {
		return 0
	}
	return max(0, min(n-1, (total-1)/pageSize))
}

func pages(place url.Values, kind string, page, last int) (links []Link) {
	at := func(n int) string {
		q := url.Values{}
		for k, v := range place {
			q[k] = v
		}
		q.Set(kind, strconv.Itoa(n+1))
		return "?" + q.Encode()
	}
	if page > 0 {
		links = append(links, Link{"Before", at(page - 1)})
	}
	if page < last {
		links = append(links, Link{"Further", at(page + 1)})
	}
	return links
}

// stateOf is what can be said without reading anything.
func stateOf(t thing, now time.Time) state {
	switch {
	case t.finished:
		return finished
	case t.alive(now):
		return running
	}
	return silent
}

// row is a thing in the list. One that cannot be read says so, and harms no other.
func (f *Folder) row(t thing) row {
	changed := t.changed.UTC()
	r := row{Name: f.name(t), To: to("", t), State: stateOf(t, time.Now()), Changed: &changed}
	if r.State == running {
		r.Changed = nil
	}
	if f.hasReport(t) {
		r.Also = append(r.Also, Link{"Report", to(reportPath, t)})
	}
	if err := f.describe(t, &r); err != nil {
		r.State, r.Lines = unread, []string{err.Error()}
	}
	return r
}

// describe fills in what the thing's files say.
func (f *Folder) describe(t thing, r *row) error {
	switch t.kind {
	case aRun:
		return f.describeRun(t, r)
	case aSweep:
		return f.describeSweep(t, r)
	case ofSeeds:
		return f.describeSeeds(t, r)
	case aLedger:
		return f.describeLedger(t, r)
	case anIdentity:
		return f.describeIdentity(t, r)
	case aFederation:
		return f.describeServed(t, r)
	}
	return f.describeStudy(t, r)
}

// readFile is a file of a thing.
func (f *Folder) readFile(t thing, name string) ([]byte, error) {
	return fs.ReadFile(f.root.FS(), path.Join(t.id, name))
}
