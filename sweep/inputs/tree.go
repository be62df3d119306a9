package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/sweep/cells"
)

// entry is one file of a tree.
type entry struct {
	Path   string `json:"path"` // with slashes, from the tree's root
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// tree is files by what they hold. Its hash is that of its list.
type tree struct {
	root    string
	entries []entry
}

func (t tree) list() ([]byte, string, error) {
	text, err := json.Marshal(t.entries)
	return text, hashOf(text), err
}

// treeOf reads what a path names, a file, a folder or a pattern; rest is what is left of the
// path below the tree's root.
func treeOf(path string) (t tree, rest string, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		t.root = path
		err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return t.add(name)
		})
	case err == nil:
		t.root, rest = filepath.Dir(path), filepath.Base(path)
		err = t.add(path)
	default:
		t.root = path
		for strings.ContainsAny(t.root, `*?[`) {
			t.root = filepath.Dir(t.root)
		}
		if t.root == path { // no pattern: it is missing
			return t, "", err
		}
		var names []string
		if names, err = filepath.Glob(path); err != nil {
			return t, "", fmt.Errorf("%s is no pattern: %w", path, err)
		}
		rest = strings.TrimPrefix(strings.TrimPrefix(path, t.root), string(filepath.Separator))
		for _, name := range names {
			if info, err = os.Stat(name); err == nil && !info.IsDir() {
				err = t.add(name)
			}
			if err != nil {
				return t, "", err
			}
		}
	}
	slices.SortFunc(t.entries, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	return t, filepath.ToSlash(rest), err
}

func (t *tree) add(name string) error {
	f, err := os.Open(name) // a link counts as what it leads to
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	below, err := filepath.Rel(t.root, name)
	t.entries = append(t.entries, entry{filepath.ToSlash(below), hex.EncodeToString(h.Sum(nil)), n})
	return err
}

// send puts the tree's files and its list into the store, where they are not there yet.
func (t tree) send(ctx context.Context, store cells.Objects) error {
	text, hash, err := t.list()
	if err != nil {
		return err
	}
	for _, e := range t.entries {
		f, err := os.Open(filepath.Join(t.root, filepath.FromSlash(e.Path)))
		if err != nil {
			return err
		}
		err = store.Put(ctx, f, e.SHA256)
		f.Close()
		if err != nil {
			return fmt.Errorf("send %s: %w", e.Path, err)
		}
	}
	return store.Put(ctx, strings.NewReader(string(text)), hash)
}

// fetch lays a tree out in a folder, which appears whole or not at all.
func fetch(ctx context.Context, store cells.Objects, hash, folder string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	var text strings.Builder
	if err := store.Get(ctx, hash, &text); err != nil {
		return err
	}
	var entries []entry
	if err := json.Unmarshal([]byte(text.String()), &entries); err != nil {
		return fmt.Errorf("the list of files %s: %w", hash, err)
	}
	parent := filepath.Dir(folder)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(parent, ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for _, e := range entries {
		if !filepath.IsLocal(filepath.FromSlash(e.Path)) {
			return fmt.Errorf("the list of files %s names %q, which lies outside of it", hash, e.Path)
		}
		if err := fetchFile(ctx, store, e, filepath.Join(fresh, filepath.FromSlash(e.Path))); err != nil {
			return err
		}
	}
	err = os.Rename(fresh, folder)
	if errors.Is(err, fs.ErrExist) || err != nil && exists(folder) {
		return nil // another goroutine was first, with the same files
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func fetchFile(ctx context.Context, store cells.Objects, e entry, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := store.Get(ctx, e.SHA256, f); err != nil {
		f.Close()
		return fmt.Errorf("fetch %s: %w", e.Path, err)
	}
	return f.Close()
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
