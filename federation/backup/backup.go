// Package backup puts all that a federation's server must not lose into one file, while it runs, and back into a folder.
//
// The file is a tar archive of the folder as Restore leaves it, then a manifest, then a hash
// of everything before: a byte that changed, is missing or was added is found before
// anything is read.
package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/internal/durable"
)

// Format is what this program writes and reads.
const Format = "coterie backup 1"

// What a backup holds besides the folder.
const (
	manifestName = "backup/manifest.json"
	sumName      = "backup/sha256"
)

// outside is the folder for what does not lie beside the serve file.
const outside = "outside"

// ErrPostgreSQL: the store is in PostgreSQL, which has a backup of its own.
var ErrPostgreSQL = errors.New("the store is in PostgreSQL")

// ErrUsage marks options that cannot be followed.
var ErrUsage = errors.New("nothing was written")

// Manifest says what a backup is.
type Manifest struct {
	Format     string    `json:"format"`
	Version    string    `json:"version"` // of the program that wrote it
	Created    time.Time `json:"created"`
	Federation string    `json:"federation"`
	Serve      string    `json:"serve"` // the serve file
	// Store is where rounds and receipts are: "sqlite", "none yet", or "postgresql", and
	// then not in this file.
	Store    string    `json:"store"`
	Run      string    `json:"run_id"`   // the latest; empty: none
	Rounds   int       `json:"rounds"`   // of it that were opened
	Released int       `json:"released"` // in its open round
	Outside  []Outside `json:"outside"`
	Files    []File    `json:"files"`
}

// Outside is something that the serve file finds elsewhere than beside itself.
type Outside struct {
	Key  string `json:"key"` // of the serve file
	Path string `json:"path"`
	Name string `json:"name"` // where it is in the backup
}

// File is one file.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Written is a backup that was made.
type Written struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	Manifest
}

// Options are what `coterie backup` takes.
type Options struct {
	Serve string // the serve file
	Out   string // the file to write
	// WithoutStore leaves a PostgreSQL store out; it has to be dumped by its own tools.
	WithoutStore bool
	Version      string
	Now          func() time.Time
}

// Write makes a backup. The server may run. A file that is there is not touched.
func Write(ctx context.Context, o Options) (w Written, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back up %s: %w", o.Serve, err)
		}
	}()
	if _, err := os.Lstat(o.Out); !errors.Is(err, fs.ErrNotExist) {
		return w, errors.Join(fmt.Errorf("%w: %s is there already; a backup is never overwritten: choose another name", ErrUsage, o.Out), err)
	}
	a := &archive{manifest: Manifest{Format: Format, Version: o.Version, Created: o.Now().UTC().Truncate(time.Second), Outside: []Outside{}}}
	if err := a.collect(ctx, o); err != nil {
		return w, err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(o.Out), "."+filepath.Base(o.Out)+".new-")
	if err != nil {
		return w, err
	}
	defer os.RemoveAll(scratch)
	if err := a.copyStore(ctx, filepath.Join(scratch, "store")); err != nil {
		return w, err
	}
	defer a.close()
	fresh := filepath.Join(scratch, "backup")
	size, err := a.write(fresh)
	if err != nil {
		return w, err
	}
	if err := place(fresh, o.Out); err != nil {
		return w, err
	}
	return Written{File: o.Out, Bytes: size, Manifest: a.manifest}, nil
}

// place gives a file its name, unless another one has it.
func place(fresh, out string) error {
	err := os.Link(fresh, out)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a disk without links
		if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s: %w", out, fs.ErrExist), err)
		}
		err = os.Rename(fresh, out)
	}
	if err != nil {
		return err
	}
	return durable.SyncDirectory(filepath.Dir(out))
}

// archive is a backup on its way out.
type archive struct {
	manifest Manifest
	small    []member // files that are held in memory
	database string   // of the store; empty: none
	copied   *store.Copy
	storeAt  string // name of the database in the backup
}

// member is a file of the backup.
type member struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// collect reads the serve file and all that it names, but for the store.
func (a *archive) collect(ctx context.Context, o Options) error {
	text, err := os.ReadFile(o.Serve)
	if err != nil {
		return err
	}
	f, err := plan.LoadServeFile(text, "") // paths as they are written
	if err != nil {
		return fmt.Errorf("%s: %w", o.Serve, err)
	}
	real := func(file string) string {
		if filepath.IsAbs(file) {
			return file
		}
		return filepath.Join(filepath.Dir(o.Serve), file)
	}
	a.manifest.Serve = filepath.Base(o.Serve)
	a.small = append(a.small, member{a.manifest.Serve, 0o600, text})

	run, err := os.ReadFile(real(f.Run))
	if err != nil {
		return err
	}
	a.small = append(a.small, member{a.inside("run", f.Run), 0o600, run})

	authority, err := identity.Open(real(f.CA), identity.Options{})
	if err != nil {
		return err
	}
	a.manifest.Federation = authority.Federation()
	files, err := identity.CopyFolder(real(f.CA))
	if err != nil {
		return err
	}
	ca := a.inside("ca", f.CA)
	for _, file := range files {
		a.small = append(a.small, member{path.Join(ca, file.Name), file.Mode, file.Content})
	}
	file, sqlite := plan.SQLiteFile(f.Store)
	switch {
	case sqlite && o.WithoutStore:
		return fmt.Errorf("%w: without the store %s a backup is of no use; leave --without-store away", ErrUsage, file)
	case sqlite:
		a.database, a.storeAt = real(file), a.inside("store", file)
	case o.WithoutStore:
		a.manifest.Store = "postgresql"
	default:
		return fmt.Errorf("%w: %w: dump it with its own tool, for example pg_dump --format=custom --file=store.dump %s, and back the rest up with --without-store",
			ErrUsage, ErrPostgreSQL, redacted(f.Store))
	}
	return ctx.Err()
}

// redacted is an address without its password.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "URL"
	}
	return u.Redacted()
}

// inside is where a path of the serve file lies in the backup: where it is beside the
// serve file, or in a folder for what is not.
func (a *archive) inside(key, file string) string {
	if filepath.IsLocal(file) {
		return filepath.ToSlash(filepath.Clean(file))
	}
	name := path.Join(outside, key, filepath.Base(file))
	a.manifest.Outside = append(a.manifest.Outside, Outside{Key: key, Path: file, Name: name})
	return name
}

// copyStore takes a copy of an SQLite store, if there is one.
func (a *archive) copyStore(ctx context.Context, to string) error {
	if a.database == "" {
		return nil
	}
	c, err := store.CopySQLite(ctx, a.database, to)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(a.database); errors.Is(missing, fs.ErrNotExist) {
			a.manifest.Store = "none yet"
			return nil
		}
	}
	if err != nil {
		return err
	}
	a.copied, a.manifest.Store = c, "sqlite"
	a.manifest.Run, a.manifest.Rounds, a.manifest.Released = c.Run.ID, c.Rounds, c.Released
	return nil
}

func (a *archive) close() {
	if a.copied != nil {
		_ = a.copied.Close() // it was read
	}
}

// write writes the archive, and returns its size.
func (a *archive) write(to string) (int64, error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sum := sha256.New()
	out := tar.NewWriter(io.MultiWriter(f, sum))
	if err := a.writeFiles(out); err != nil {
		return 0, err
	}
	text, err := json.MarshalIndent(a.manifest, "", " ")
	if err != nil {
		return 0, err
	}
	if err := put(out, manifestName, 0o600, append(text, '\n')); err != nil {
		return 0, err
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	if _, err := f.Write(ending(sum.Sum(nil))); err != nil {
		return 0, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	info, err := os.Stat(to)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// ending is the last part of a backup, which follows from the hash of all others.
func ending(sum []byte) []byte {
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	text := hex.EncodeToString(sum) + "  all bytes before this entry\n"
	if err := errors.Join(put(out, sumName, 0o600, []byte(text)), out.Close()); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// put writes a small file.
func put(out *tar.Writer, name string, mode fs.FileMode, content []byte) error {
	if err := out.WriteHeader(header(name, mode, int64(len(content)))); err != nil {
		return err
	}
	_, err := out.Write(content)
	return err
}

func header(name string, mode fs.FileMode, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode.Perm()), Size: size, Format: tar.FormatPAX}
}

// writeFiles writes everything, and notes it in the manifest.
func (a *archive) writeFiles(out *tar.Writer) error {
	taken := map[string]bool{manifestName: true, sumName: true}
	add := func(name string, mode fs.FileMode, size int64, write func(io.Writer) error) error {
		if taken[name] {
			return fmt.Errorf("two files would be %s in the backup", name)
		}
		taken[name] = true
		if err := out.WriteHeader(header(name, mode, size)); err != nil {
			return err
		}
		sum := sha256.New()
		if err := write(io.MultiWriter(out, sum)); err != nil {
			return err
		}
		a.manifest.Files = append(a.manifest.Files, File{Name: name, Bytes: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
		return nil
	}
	for _, m := range a.small {
		err := add(m.name, m.mode, int64(len(m.content)), func(w io.Writer) error {
			_, err := w.Write(m.content)
			return err
		})
		if err != nil {
			return err
		}
	}
	if a.copied == nil {
		return nil
	}
	db, err := os.Open(a.copied.Database)
	if err != nil {
		return err
	}
	defer db.Close()
	info, err := db.Stat()
	if err != nil {
		return err
	}
	err = add(a.storeAt, 0o600, info.Size(), func(w io.Writer) error {
		_, err := io.Copy(w, db)
		return err
	})
	if err != nil {
		return err
	}
	for _, c := range a.copied.Contents {
		name := path.Join(path.Dir(a.storeAt), filepath.ToSlash(c.Name))
		if err := add(name, 0o600, c.Size, func(w io.Writer) error { _, err := c.WriteTo(w); return err }); err != nil {
			return err
		}
	}
	return nil
}
