package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/internal/durable"
)

// ErrDamaged: a backup is not what was written.
var ErrDamaged = errors.New("the backup is damaged or cut short")

// Restored is a backup that was put back.
type Restored struct {
	File      string `json:"file"`
	Directory string `json:"directory"`
	Manifest
}

// maxManifest bounds what is read as a manifest.
const maxManifest = 64 << 20

// Restore puts a backup into a folder that is empty or not there. Everything is checked
// before anything stands under its name; if it fails, the folder is as it was.
func Restore(file, dir string) (r Restored, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore %s: %w", file, err)
		}
	}()
	f, err := os.Open(file)
	if err != nil {
		return r, err
	}
	defer f.Close()
	body, err := whole(f)
	if err != nil {
		return r, err
	}
	made, err := emptyFolder(dir)
	if err != nil {
		return r, err
	}
	m, err := unpack(io.NewSectionReader(f, 0, body), dir)
	if err != nil {
		if made {
			err = errors.Join(err, os.Remove(dir))
		}
		return r, err
	}
	return Restored{File: file, Directory: dir, Manifest: m}, durable.SyncDirectory(filepath.Dir(filepath.Clean(dir)))
}

// whole makes sure that a file ends with the hash of what is before, and returns the
// length of that.
func whole(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size() - int64(len(ending(make([]byte, sha256.Size))))
	if size < 0 || !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%w: it has %d bytes, fewer than any backup", ErrDamaged, info.Size())
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size)); err != nil {
		return 0, err
	}
	want := ending(sum.Sum(nil))
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, size); err != nil {
		return 0, err
	}
	if !bytes.Equal(got, want) {
		return 0, fmt.Errorf("%w: its hash is wrong: take another copy of it", ErrDamaged)
	}
	return size, nil
}

// emptyFolder makes the folder if it is not there.
func emptyFolder(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, os.MkdirAll(dir, 0o700)
	case err != nil:
		return false, err
	case len(entries) > 0:
		return false, fmt.Errorf("%w: %s is not empty (it has %s): choose another folder; nothing is overwritten", ErrUsage, dir, entries[0].Name())
	}
	return false, nil
}

// unpack puts the files into a folder below dir first, and moves them to their places when
// all are there and right, the serve file last: without it nobody serves the folder.
func unpack(body io.Reader, dir string) (m Manifest, err error) {
	scratch, err := os.MkdirTemp(dir, ".restoring-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(scratch)
	in := tar.NewReader(body)
	files := map[string]File{}
	for m.Format == "" { // the manifest is the last one
		h, err := in.Next()
		if err != nil {
			return m, fmt.Errorf("%w: there is no manifest in it: %w", ErrDamaged, err)
		}
		if h.Name == manifestName {
			text, err := io.ReadAll(io.LimitReader(in, maxManifest))
			if err != nil {
				return m, err
			}
			if m, err = readManifest(text); err != nil {
				return m, err
			}
			continue
		}
		if err := extract(in, h, scratch, files); err != nil {
			return m, err
		}
	}
	if _, err := in.Next(); !errors.Is(err, io.EOF) {
		return m, fmt.Errorf("%w: something follows its manifest", ErrDamaged)
	}
	if err := compare(m, files); err != nil {
		return m, err
	}
	if err := markRestored(m, scratch); err != nil {
		return m, err
	}
	return m, move(scratch, dir, m.Serve)
}

// markRestored tells the authority among the files that it knows nothing of the time since
// the backup.
func markRestored(m Manifest, dir string) error {
	for _, f := range m.Files {
		if path.Base(f.Name) == "authority.json" {
			return identity.MarkRestored(filepath.Join(dir, filepath.FromSlash(path.Dir(f.Name))), m.Created, time.Now())
		}
	}
	return nil
}

func readManifest(text []byte) (m Manifest, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: its manifest cannot be read: %w", ErrDamaged, err)
	}
	if m.Format != Format {
		return m, fmt.Errorf("it has the format %q; this program reads %q: restore it with the version of coterie that wrote it (%s)", m.Format, Format, m.Version)
	}
	if m.Serve == "" || !filepath.IsLocal(m.Serve) || strings.ContainsAny(m.Serve, `/\`) {
		return m, fmt.Errorf("%w: its manifest names the serve file %q", ErrDamaged, m.Serve)
	}
	return m, nil
}

// extract writes one file, and nothing outside the folder.
func extract(in io.Reader, h *tar.Header, dir string, files map[string]File) error {
	local := filepath.FromSlash(h.Name)
	if _, twice := files[h.Name]; twice || h.Typeflag != tar.TypeReg || !filepath.IsLocal(local) || h.Mode&^0o777 != 0 {
		return fmt.Errorf("%w: an entry %q of kind %q and mode %#o", ErrDamaged, h.Name, h.Typeflag, h.Mode)
	}
	to := filepath.Join(dir, local)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(h.Mode).Perm())
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), in)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	files[h.Name] = File{Name: h.Name, Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	return nil
}

// compare holds the files against the manifest, both ways.
func compare(m Manifest, files map[string]File) error {
	for _, want := range m.Files {
		if got, ok := files[want.Name]; !ok || got != want {
			return fmt.Errorf("%w: %s has %d bytes with SHA-256 %q, the manifest says %d and %s", ErrDamaged, want.Name, got.Bytes, got.SHA256, want.Bytes, want.SHA256)
		}
		delete(files, want.Name)
	}
	for name := range files {
		return fmt.Errorf("%w: %s is not in its manifest", ErrDamaged, name)
	}
	if !slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == m.Serve }) {
		return fmt.Errorf("%w: it has no %s", ErrDamaged, m.Serve)
	}
	return nil
}

// move gives what is in the scratch folder its names in dir, one of them last.
func move(scratch, dir, last string) (err error) {
	entries, err := os.ReadDir(scratch)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(scratch, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return durable.SyncDirectory(path)
	})
	if err != nil {
		return err
	}
	var moved []string
	defer func() {
		if err != nil {
			for _, name := range moved {
				err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
			}
		}
	}()
	for _, lastly := range []bool{false, true} {
		for _, e := range entries {
			if (e.Name() == last) != lastly {
				continue
			}
			if err := os.Rename(filepath.Join(scratch, e.Name()), filepath.Join(dir, e.Name())); err != nil {
				return err
			}
			moved = append(moved, e.Name())
		}
		if err := durable.SyncDirectory(dir); err != nil {
			return err
		}
	}
	return nil
}
