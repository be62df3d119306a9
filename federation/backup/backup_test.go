package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/store"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func noon() time.Time { return time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC) }

// home is a server's folder with an authority, a store that has an open round with one
// release, and files.
func home(t *testing.T, serve string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	serve = strings.ReplaceAll(serve, "HOME", dir)
	check(t, os.WriteFile(filepath.Join(dir, "serve.yaml"), []byte("run: run.yaml\nparticipants: [a, b]\n"+serve), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "run.yaml"), []byte("name: backed-up\n"), 0o600))
	_, err := identity.Init(filepath.Join(dir, "ca"), identity.Options{})
	check(t, err)
	s := openStore(t, dir)
	check(t, s.CreateRun(t.Context(), store.Run{ID: "r", SHA256: "aa", Created: noon()}))
	for number := range 2 {
		check(t, s.OpenRound(t.Context(), store.Round{Run: "r", Number: number, Clients: []int{0, 1}}))
		content := fmt.Appendf(nil, "the release of round %d", number)
		up, err := s.Upload(t.Context(), store.Update{Run: "r", Round: number, SHA256: sha256.Sum256(content), Size: int64(len(content))})
		check(t, err)
		_, err = up.Write(content)
		check(t, err)
		_, err = up.Commit(t.Context(), nil)
		check(t, errors.Join(err, up.Close()))
		if number == 0 {
			check(t, s.CloseRound(t.Context(), "r", 0, []byte("the state"), noon()))
		}
	}
	check(t, s.Close())
	return dir
}

func openStore(t *testing.T, dir string) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(dir, "server", "state.db"), store.Options{})
	check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func options(dir string) Options {
	return Options{Serve: filepath.Join(dir, "serve.yaml"), Out: filepath.Join(dir, "server.backup"), Version: "test", Now: noon}
}

// tree is every file below a folder, but for those of a store that is in use.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	check(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, ".lock") || e.Name() == "lock" || strings.Contains(e.Name(), "state.db") && filepath.Dir(path) == filepath.Join(dir, "server") {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		text, err := os.ReadFile(path)
		all[rel] = string(text)
		return err
	}))
	return all
}

// TestBackupAndRestore: what is restored is what was backed up, with its modes, and a server
// finds its run there. Nothing else is left.
func TestBackupAndRestore(t *testing.T) {
	dir := home(t, "")
	before := tree(t, dir)
	running := openStore(t, dir) // as a server has it
	w, err := Write(t.Context(), options(dir))
	check(t, err)
	if w.Run != "r" || w.Rounds != 2 || w.Released != 1 || w.Store != "sqlite" || !w.Created.Equal(noon()) || len(w.Outside) != 0 {
		t.Errorf("the backup is %+v", w)
	}
	info, err := os.Stat(w.File)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != w.Bytes {
		t.Errorf("%v, %v", info, err)
	}
	check(t, running.Ping(t.Context()))
	check(t, running.Close())
	to := filepath.Join(t.TempDir(), "not", "there")
	r, err := Restore(w.File, to)
	check(t, err)
	if a, b := fmt.Sprint(r.Manifest), fmt.Sprint(w.Manifest); a != b {
		t.Errorf("restored is %s, written was %s", a, b)
	}
	delete(before, "server.backup")
	after := tree(t, to)
	// The registry says since when it knows nothing, and is as it was otherwise.
	registry := strings.TrimSuffix(before["ca/registry.json"], "}")
	if is := after["ca/registry.json"]; !strings.HasPrefix(is, registry+`,"gaps":[{"from":"`+noon().UTC().Format(time.RFC3339)+`"`) {
		t.Errorf("the registry is %s, was %s", is, before["ca/registry.json"])
	}
	delete(before, "ca/registry.json")
	delete(after, "ca/registry.json")
	if fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("restored are %v, there were %v", after, before)
	}
	for name, mode := range map[string]fs.FileMode{"ca/ca.key": 0o600, "ca/ca.crt": 0o644, "server/state.db": 0o600, ".": 0o700, "ca": 0o700} {
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	a, err := identity.Open(filepath.Join(to, "ca"), identity.Options{})
	if err != nil || a.Federation() != w.Federation {
		t.Errorf("the authority: %v", err)
	}
	s := openStore(t, to)
	if _, state, err := s.LatestState(t.Context(), "r"); err != nil || string(state) != "the state" {
		t.Errorf("%q, %v", state, err)
	}
	blob, err := s.OpenUpdate(t.Context(), "r", 1, 0)
	check(t, err)
	if blob.Size() != int64(len("the release of round 1")) {
		t.Errorf("the release has %d bytes", blob.Size())
	}
	check(t, blob.Close())
}

// TestNothingIsOverwritten: not a backup, not a folder with something in it.
func TestNothingIsOverwritten(t *testing.T) {
	dir := home(t, "")
	o := options(dir)
	check(t, os.WriteFile(o.Out, []byte("dear"), 0o600))
	if _, err := Write(t.Context(), o); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), o.Out) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(o.Out); err != nil || string(text) != "dear" {
		t.Errorf("%q, %v", text, err)
	}
	fresh := filepath.Join(dir, "fresh")
	check(t, os.WriteFile(fresh, []byte("new"), 0o600))
	if err := place(fresh, o.Out); !errors.Is(err, fs.ErrExist) { // one that came in between
		t.Errorf("got %v", err)
	}
	o.Out += "2"
	w, err := Write(t.Context(), o)
	check(t, err)
	if _, err := Restore(w.File, dir); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("got %v", err)
	}
	empty := t.TempDir()
	if _, err := Restore(w.File, empty); err != nil {
		t.Error(err)
	}
}

// TestWhatLiesElsewhere: what the serve file does not have beside it is kept apart, and told.
func TestWhatLiesElsewhere(t *testing.T) {
	dir := home(t, "ca: HOME/ca\nstore: sqlite:../"+"elsewhere/my.db\n")
	elsewhere := filepath.Join(filepath.Dir(dir), "elsewhere")
	check(t, os.Rename(filepath.Join(dir, "server"), elsewhere))
	for _, name := range []string{"state.db", "state.db.spool"} {
		check(t, os.Rename(filepath.Join(elsewhere, name), filepath.Join(elsewhere, strings.Replace(name, "state", "my", 1))))
	}
	w, err := Write(t.Context(), options(dir))
	check(t, err)
	want := []Outside{{"ca", filepath.Join(dir, "ca"), "outside/ca/ca"}, {"store", "../elsewhere/my.db", "outside/store/my.db"}}
	if !slices.Equal(w.Outside, want) || w.Released != 1 {
		t.Errorf("%+v, %d released; want %+v", w.Outside, w.Released, want)
	}
	to := t.TempDir()
	r, err := Restore(w.File, to)
	check(t, err)
	if !slices.Equal(r.Outside, want) {
		t.Errorf("restored %+v", r.Outside)
	}
	s, err := store.Open(t.Context(), filepath.Join(to, "outside", "store", "my.db"), store.Options{})
	check(t, err)
	defer s.Close()
	if _, err := s.OpenUpdate(t.Context(), "r", 1, 0); err != nil {
		t.Error(err)
	}
	if _, err := identity.Open(filepath.Join(to, "outside", "ca", "ca"), identity.Options{}); err != nil {
		t.Error(err)
	}
}

// TestDamagedBackupsAreRefused: a byte that changed, wherever it is, a file that was cut
// anywhere or has something behind it: it is named, and nothing is written.
func TestDamagedBackupsAreRefused(t *testing.T) {
	w, err := Write(t.Context(), options(home(t, "")))
	check(t, err)
	whole, err := os.ReadFile(w.File)
	check(t, err)
	parent := t.TempDir()
	file, to := filepath.Join(parent, "file"), filepath.Join(parent, "to")
	refused := func(what string, text []byte) {
		t.Helper()
		check(t, os.WriteFile(file, text, 0o600))
		if _, err := Restore(file, to); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), file) {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: something was written: %v", what, err)
		}
	}
	stride := 97 // every part of a block of 512 comes about
	for i := 0; i < len(whole); i += stride {
		text := bytes.Clone(whole)
		text[i] ^= 1 << (i % 8)
		refused(fmt.Sprintf("byte %d of %d", i, len(whole)), text)
	}
	for _, size := range []int{0, 1, 511, 512, 2047, 2048, len(whole) / 2, len(whole) - 2048, len(whole) - 512, len(whole) - 1} {
		refused(fmt.Sprintf("cut at %d of %d", size, len(whole)), whole[:size])
	}
	refused("longer", append(bytes.Clone(whole), 0))
	refused("a block more", append(bytes.Clone(whole), make([]byte, 512)...))
}

// forged is an archive with a right hash and anything in it.
func forged(t *testing.T, m any, entries ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for _, h := range entries {
		check(t, out.WriteHeader(h))
		_, err := out.Write(make([]byte, h.Size))
		check(t, err)
	}
	if m != nil {
		text, err := json.Marshal(m)
		check(t, err)
		check(t, put(out, manifestName, 0o600, text))
	}
	check(t, out.Flush())
	sum := sha256.Sum256(b.Bytes())
	return append(b.Bytes(), ending(sum[:])...)
}

// TestForgedBackupsAreRefused: an archive that somebody made writes nothing outside its
// folder and makes no links; what does not fit its manifest is refused.
func TestForgedBackupsAreRefused(t *testing.T) {
	good := Manifest{Format: Format, Serve: "serve.yaml", Files: []File{{"serve.yaml", 0, fmt.Sprintf("%x", sha256.Sum256(nil))}}}
	with := func(change func(*Manifest)) Manifest {
		m := good
		change(&m)
		return m
	}
	serve := header("serve.yaml", 0o600, 0)
	parent := t.TempDir()
	file, to := filepath.Join(parent, "file"), filepath.Join(parent, "to")
	check(t, os.WriteFile(file, forged(t, good, serve), 0o600))
	_, err := Restore(file, to) // the one that is as it should be
	check(t, err)
	check(t, os.RemoveAll(to))
	link := header("serve.yaml", 0o600, 0)
	link.Typeflag, link.Linkname = tar.TypeSymlink, "/etc/passwd"
	for name, text := range map[string][]byte{
		"no manifest":         forged(t, nil, serve),
		"no files":            forged(t, with(func(m *Manifest) { m.Files = nil })),
		"not in the manifest": forged(t, with(func(m *Manifest) { m.Files = nil }), serve),
		"a file more":         forged(t, good, serve, header("more", 0o600, 5)),
		"a file less":         forged(t, with(func(m *Manifest) { m.Files = append(m.Files, File{Name: "more"}) }), serve),
		"another size":        forged(t, with(func(m *Manifest) { m.Files = []File{{"serve.yaml", 1, m.Files[0].SHA256}} }), serve),
		"another hash":        forged(t, with(func(m *Manifest) { m.Files = []File{{"serve.yaml", 0, "00"}} }), serve),
		"above the folder":    forged(t, good, header("../escaped", 0o600, 0), serve),
		"deep above it":       forged(t, good, header("a/../../escaped", 0o600, 0), serve),
		"from the root":       forged(t, good, header("/tmp/escaped", 0o600, 0), serve),
		"twice":               forged(t, good, serve, serve),
		"a link":              forged(t, good, link),
		"for root":            forged(t, good, &tar.Header{Typeflag: tar.TypeReg, Name: "serve.yaml", Mode: 0o4755}),
		"no serve file":       forged(t, with(func(m *Manifest) { m.Serve = "" }), serve),
		"its serve elsewhere": forged(t, with(func(m *Manifest) { m.Serve = "../serve.yaml" }), serve),
		"of another version":  forged(t, with(func(m *Manifest) { m.Format = "coterie backup 2" }), serve),
		"no manifest at all":  forged(t, []int{1}, serve),
		"no archive":          append([]byte("text"), ending(sum("text"))...),
	} {
		check(t, os.WriteFile(file, text, 0o600))
		if _, err := Restore(file, to); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: something was written", name)
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
			t.Errorf("%s: left are %v, %v", name, left, err)
		}
	}
}

func sum(text string) []byte { s := sha256.Sum256([]byte(text)); return s[:] }

// TestBackupRefuses: what cannot be backed up leaves nothing behind, and says what to do.
func TestBackupRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		serve  string
		change func(dir string, o *Options) error
		want   string
	}{
		"PostgreSQL": {"store: postgres://coterie:secret@db/fl\n", nil, "pg_dump --format=custom --file=store.dump postgres://coterie:xxxxx@db/fl"},
		"SQLite without its store": {"", func(_ string, o *Options) error {
			o.WithoutStore = true
			return nil
		}, "leave --without-store away"},
		"no authority": {"", func(dir string, _ *Options) error { return os.RemoveAll(filepath.Join(dir, "ca")) }, "coterie ca init"},
		"no run file":  {"", func(dir string, _ *Options) error { return os.Remove(filepath.Join(dir, "run.yaml")) }, "run.yaml"},
		"a key that others can read": {"", func(dir string, _ *Options) error {
			return os.Chmod(filepath.Join(dir, "ca", "ca.key"), 0o644)
		}, "chmod 600"},
		"a release that is gone": {"", func(dir string, _ *Options) error {
			return os.RemoveAll(filepath.Join(dir, "server", "state.db.spool"))
		}, "damaged"},
		"a serve file with a fault": {"listen: 7\nunknown: 1\n", nil, "unknown"},
	} {
		dir := home(t, c.serve)
		o := options(dir)
		o.Out = filepath.Join(t.TempDir(), "server.backup")
		if c.change != nil {
			check(t, c.change(dir, &o))
		}
		if _, err := Write(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
		if left, err := os.ReadDir(filepath.Dir(o.Out)); err != nil || len(left) > 0 {
			t.Errorf("%s: left are %v, %v", name, left, err)
		}
	}
}

// TestBackupWithoutAStore: before the first run there is none, and PostgreSQL's is left out
// if that is said.
func TestBackupWithoutAStore(t *testing.T) {
	dir := home(t, "")
	check(t, os.RemoveAll(filepath.Join(dir, "server")))
	w, err := Write(t.Context(), options(dir))
	check(t, err)
	if w.Store != "none yet" || w.Run != "" {
		t.Errorf("%+v", w)
	}
	if _, err := os.Stat(filepath.Join(dir, "server")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a backup made a store")
	}
	dir = home(t, "store: postgres://db/fl\n")
	o := options(dir)
	o.WithoutStore = true
	if w, err = Write(t.Context(), o); err != nil || w.Store != "postgresql" {
		t.Fatalf("%+v, %v", w, err)
	}
	if r, err := Restore(w.File, t.TempDir()); err != nil || r.Store != "postgresql" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestInterruptedBackupLeavesNothing: when it is called off, no file is there.
func TestInterruptedBackupLeavesNothing(t *testing.T) {
	dir := home(t, "")
	o := options(dir)
	o.Out = filepath.Join(t.TempDir(), "server.backup")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(o.Out)); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
