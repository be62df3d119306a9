package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/report"
	"github.com/coterie-fl/coterie/sim"
)

// runText is a run that takes as long as one likes.
const runText = `
name: %s
seed: 3
data: {kind: synthetic, users: 20, samples: 20}
algorithm: {kind: group-private, mode: paper, hypotheses: 2, rounds: %d, clients_per_round: 5, stop: {patience: 1000000}}
privacy: {noise_multiplier: 5, ceiling: 1000}
`

// directory is a run that has not begun.
func directory(t testing.TB, dir, name string, rounds int) (*sim.Directory, *sim.Simulation) {
	t.Helper()
	run, err := config.Resolve(fmt.Appendf(nil, runText, name, rounds), nil, sim.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, data.NewFolder(""))
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.CreateDirectory(dir, text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); d.Close() })
	return d, s
}

// finishedRun is one that has its result and report.
func finishedRun(t testing.TB, dir, name string) {
	t.Helper()
	d, s := directory(t, dir, name, 30)
	if _, err := report.Run(t.Context(), d, s, "test", func(sim.Moment) {}); err != nil {
		t.Fatal(err)
	}
}

// liveRun is one that goes on until stop is called.
func liveRun(t testing.TB, dir, name string) (stop func()) {
	t.Helper()
	d, s := directory(t, dir, name, 100_000_000)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		pause := func(sim.Moment) { time.Sleep(2 * time.Millisecond) } // the machine is others', too
		if _, err := s.Execute(ctx, d, pause); !errors.Is(err, sim.ErrInterrupted) {
			t.Errorf("the run ends with %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	t.Cleanup(stop)
	return stop
}

func folderOf(t testing.TB, dir string) *Folder {
	t.Helper()
	f, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// view is a page's text at a place such as at=run.
func view(t testing.TB, s Source, place string) (View, string) {
	t.Helper()
	q, err := url.ParseQuery(place)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.View(q)
	if err != nil {
		t.Fatalf("%s: %v", place, err)
	}
	all := v.Title + "\n" + v.Status + "\n"
	for _, p := range v.Parts {
		all += string(p.HTML) + "\n"
	}
	return v, all
}

func wants(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%.3000s", part, text)
		}
	}
}

// again looks until the folder is scanned anew.
func again(f *Folder) {
	f.scanner.mu.Lock()
	f.scanner.last = time.Time{}
	f.scanner.mu.Unlock()
}

// TestARunIsSeenFromItsFirstRoundToItsReport follows one run: it goes on, is stopped, finishes.
func TestARunIsSeenFromItsFirstRoundToItsReport(t *testing.T) {
	dir := t.TempDir()
	finishedRun(t, filepath.Join(dir, "done"), "done-run")
	stop := liveRun(t, filepath.Join(dir, "on"), "on-run")
	f := folderOf(t, dir)
	var text string
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		again(f)
		if _, text = view(t, f, "at=on"); strings.Count(text, "<svg class=\"chart\"") == 4 || time.Now().After(end) {
			break
		}
	}
	wants(t, text, "on-run: running.", "Loss, by the judge", "Epsilon spent", "Releases in every cluster", "Clusters forming", "simulation only",
		"heuristic, unit neighbourhood, relation metric, radius not public", "</svg>interval</li>", " of 1000")
	list, listed := view(t, f, "")
	wants(t, listed, "1 running, 1 finished.", "on-run", "done-run", `href="report?at=done"`)
	if strings.Index(listed, "on-run") > strings.Index(listed, "done-run") {
		t.Error("what runs does not stand first")
	}
	if strings.Contains(listed, `report?at=on"`) {
		t.Error("a run without a report links to one")
	}
	if list.Parts[0].ID != "list-run" {
		t.Errorf("parts %v", list.Parts)
	}
	stop()
	again(f)
	_, text = view(t, f, "at=on")
	wants(t, text, "stopped", "coterie run --resume "+filepath.Join(dir, "on"))
	_, text = view(t, f, "at=done")
	wants(t, text, "done-run: finished", "Open its report", "heuristic", "What is not covered", "Most exposed participant", "run-file")
	if _, err := os.Stat(filepath.Join(dir, "done", sim.ProgressFile)); err == nil {
		t.Error("a finished run keeps its progress file")
	}
}

// TestHalfWrittenFilesHarmNothing: what cannot be read says so, and everything else is shown.
func TestHalfWrittenFilesHarmNothing(t *testing.T) {
	dir := t.TempDir()
	finishedRun(t, filepath.Join(dir, "good"), "good-run")
	whole, err := os.ReadFile(filepath.Join(dir, "good", sim.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	run, _ := os.ReadFile(filepath.Join(dir, "good", sim.RunFile))
	write := func(name string, text []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cut/run.yaml", run)
	write("cut/result.json", whole[:len(whole)/2])
	write("empty/run.yaml", run)
	write("empty/result.json", nil)
	write("torn/run.yaml", run)
	write("torn/progress.jsonl", []byte(`{"round":4,"rounds":30,"doing":"training","record":{"round":4,"loss":0.5}}`+"\n"+`{"round":5,"rou`))
	write("odd/run.yaml", []byte("name: [\n"))
	write("odd/checkpoint", nil)
	write("strange/result.json", []byte(`{"name":"<script>alert(1)</script>","algorithm":"x"}`))
	write("notes/readme.txt", []byte("not ours"))
	write("ledger/ledger.log", []byte("not a ledger"))
	write("who/identity.json", []byte("{"))
	write("plan/plan.json", []byte(`{"name":"grid","seeds":1,"points":[{"settings":{"a":"1"},"cells":["cells/x.json"]}]}`))
	f := folderOf(t, dir)
	_, text := view(t, f, "")
	wants(t, text, "good-run", "round 5 of 30", "0 of 1 runs")
	if n := strings.Count(text, "cannot be read"); n != 6 {
		t.Errorf("%d things cannot be read, want 6:\n%s", n, text)
	}
	if strings.Contains(text, "readme") || strings.Contains(text, "<script>") {
		t.Errorf("something is shown that should not be:\n%s", text)
	}
	for _, id := range []string{"cut", "empty", "odd", "strange", "ledger"} {
		if _, err := f.View(url.Values{"at": {id}}); err == nil {
			t.Errorf("%s is shown", id)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "good")); err != nil {
		t.Fatal(err)
	}
	again(f)
	if _, err := f.View(url.Values{"at": {"good"}}); !errors.Is(err, ErrNotThere) {
		t.Errorf("a run that vanished: %v", err)
	}
}

// TestNothingOutsideTheFolderIsServed: neither by name nor by link.
func TestNothingOutsideTheFolderIsServed(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret", sim.ReportFile)
	finishedRun(t, filepath.Join(dir, "shown", "run"), "run")
	if err := os.MkdirAll(filepath.Dir(secret), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := folderOf(t, filepath.Join(dir, "shown"))
	for _, at := range []string{"../secret", "/etc", "run/../../secret", "", "nothing", "run/"} {
		if file, err := f.Report(url.Values{"at": {at}}); err == nil {
			file.Close()
			t.Errorf("%q is served", at)
		}
	}
	own := filepath.Join(dir, "shown", "run", sim.ReportFile)
	if file, err := f.Report(url.Values{"at": {"run"}}); err != nil {
		t.Error(err)
	} else {
		file.Close()
	}
	if err := errors.Join(os.Remove(own), os.Symlink(secret, own)); err != nil {
		t.Fatal(err)
	}
	if file, err := f.Report(url.Values{"at": {"run"}}); err == nil {
		text, _ := io.ReadAll(file)
		file.Close()
		t.Errorf("a link out of the folder serves %q", text)
	}
}

// TestThousandsOfRuns: a page lists a few of them, and looking again reads none.
func TestThousandsOfRuns(t *testing.T) {
	dir := t.TempDir()
	finishedRun(t, filepath.Join(dir, "run-0000"), "run")
	const runs = 1000
	old := time.Now().Add(-time.Hour)
	for i := range runs {
		one := filepath.Join(dir, fmt.Sprintf("run-%04d", i+1))
		if err := os.Mkdir(one, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{sim.RunFile, sim.ResultFile} {
			if err := os.Link(filepath.Join(dir, "run-0000", name), filepath.Join(one, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(one, old, old); err != nil {
			t.Fatal(err)
		}
	}
	f := folderOf(t, dir)
	_, text := view(t, f, "")
	wants(t, text, "0 running, 1001 finished.", "1 to 25 of 1001", `<a href="?run=2">Further</a>`)
	if n := strings.Count(text, `class="thing"`); n != pageSize {
		t.Errorf("%d things on a page of %d", n, pageSize)
	}
	_, text = view(t, f, "run=41")
	wants(t, text, "1001 to 1001 of 1001", `<a href="?run=40">Before</a>`)
	_, text = view(t, f, "run=9999") // beyond the end is the end
	wants(t, text, "1001 to 1001 of 1001")
	again(f)
	began := time.Now()
	if _, err := f.things(); err != nil {
		t.Fatal(err)
	}
	t.Logf("looking at %d runs again takes %v", runs, time.Since(began))
	reads := 0
	for name, known := range f.known {
		if known.modified.Equal(old) && len(known.names) == 2 {
			reads++
			known.names = append(known.names, "seen") // a folder that is read again loses it
			f.known[name] = known
		}
	}
	again(f)
	if _, err := f.things(); err != nil {
		t.Fatal(err)
	}
	for name, known := range f.known {
		if known.modified.Equal(old) && len(known.names) != 3 {
			t.Fatalf("%s was read again", name)
		}
	}
	if reads < runs*9/10 {
		t.Errorf("%d folders were known", reads)
	}
}

// TestSeedsAreOneCurve: the mean over seeds with its interval, one line of the list however
// many they are, and every seed by itself.
func TestSeedsAreOneCurve(t *testing.T) {
	dir := t.TempDir()
	for _, seed := range []string{"2", "10", "1"} {
		finishedRun(t, filepath.Join(dir, "many", "seed-"+seed), "many-run")
	}
	if err := os.Mkdir(filepath.Join(dir, "many", "seed-11"), 0o755); err != nil {
		t.Fatal(err)
	}
	liveRun(t, filepath.Join(dir, "many", "seed-12"), "many-run")
	f := folderOf(t, dir)
	_, text := view(t, f, "")
	wants(t, text, "many-run, many", "3 of 5 seeds have ended", `href="?at=many"`, " ± ", `aria-label="3 of 5 seeds have ended"`)
	if strings.Contains(text, "many%2Fseed") {
		t.Error("the list has every seed")
	}
	for end := time.Now().Add(20 * time.Second); !strings.Contains(text, ": round ") && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		again(f)
		_, text = view(t, f, "at=many")
	}
	wants(t, text, "Loss, by the judge", "not ended", "30 rounds, loss ", `href="?at=many%2Fseed-10"`, "group-private, synthetic, seed 3: round ", "running")
	if !(strings.Index(text, "seed-1<") < strings.Index(text, "seed-2<") && strings.Index(text, "seed-2<") < strings.Index(text, "seed-10<")) {
		t.Error("seeds are out of order")
	}
	if _, own := view(t, folderOf(t, filepath.Join(dir, "many")), ""); !strings.Contains(own, "Every seed") {
		t.Errorf("a folder of seeds shows a list:\n%.2000s", own)
	}
}

// counted is a source that says how often it is looked at.
type counted struct {
	looks atomic.Int64
	mu    sync.Mutex
	parts []Part
	fault error
}

func (c *counted) View(url.Values) (View, error) {
	c.looks.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	return View{Title: "t", Status: "s", Parts: append([]Part{}, c.parts...)}, c.fault
}

func (c *counted) Report(url.Values) (io.ReadCloser, error) { return nil, ErrNotThere }

func (c *counted) set(fault error, parts ...Part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts, c.fault = parts, fault
}

// listener reads a stream's messages.
type listener struct {
	got  chan string
	stop func()
}

func listen(t *testing.T, address string) listener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	l := listener{make(chan string, 100), cancel}
	go func() {
		defer reply.Body.Close()
		buffer, all := make([]byte, 1<<16), ""
		for {
			n, err := reply.Body.Read(buffer)
			all += string(buffer[:n])
			for {
				one, rest, ok := strings.Cut(all, "\n\n")
				if !ok {
					break
				}
				all = rest
				if _, text, ok := strings.Cut(one, "data: "); ok {
					l.got <- text
				}
			}
			if err != nil {
				close(l.got)
				return
			}
		}
	}()
	return l
}

func (l listener) next(t *testing.T) string {
	t.Helper()
	select {
	case text := <-l.got:
		return text
	case <-time.After(10 * time.Second):
		t.Fatal("nothing comes")
		return ""
	}
}

// TestStreamsSendWhatChanged: first everything, then what is new, to all who look, for the
// work of one.
func TestStreamsSendWhatChanged(t *testing.T) {
	source := &counted{}
	source.set(nil, Part{"a", "one"}, Part{"b", "two"})
	page := New(source, "test")
	srv := httptest.NewServer(page)
	defer srv.Close()
	address := srv.URL + "/" + eventsPath + "?x=1"
	var all []listener
	for range 20 {
		all = append(all, listen(t, address))
	}
	for _, l := range all {
		if got := l.next(t); got != `{"title":"t","status":"s","fault":"","order":["a","b"],"parts":{"a":"one","b":"two"}}` {
			t.Fatalf("first comes %s", got)
		}
	}
	source.set(nil, Part{"a", "one"}, Part{"b", "three"}, Part{"c", "new"})
	for _, l := range all {
		if got := l.next(t); got != `{"title":"t","status":"s","fault":"","order":["a","b","c"],"parts":{"b":"three","c":"new"}}` {
			t.Fatalf("then comes %s", got)
		}
	}
	if looks := source.looks.Load(); looks > 8 {
		t.Errorf("20 readers cost %d looks", looks)
	}
	source.set(errors.New("the disk is gone"))
	for _, l := range all {
		if got := l.next(t); got != `{"title":"t","status":"s","fault":"the disk is gone","order":["a","b","c"],"parts":{}}` {
			t.Fatalf("a fault comes as %s", got)
		}
	}
	// Whoever comes back gets all of it.
	back := listen(t, address)
	if got := back.next(t); !strings.Contains(got, `"a":"one","b":"three","c":"new"`) {
		t.Errorf("who comes back gets %s", got)
	}
	back.stop()
	for _, l := range all {
		l.stop()
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		page.streams.mu.Lock()
		left, open := page.streams.count, len(page.streams.open)
		page.streams.mu.Unlock()
		if left == 0 && open == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d readers and %d streams are left", left, open)
		}
	}
	looks := source.looks.Load()
	time.Sleep(2 * lookEvery)
	if more := source.looks.Load(); more > looks+1 {
		t.Errorf("nobody looks, and the source is asked %d times more", more-looks)
	}
}
