package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/report/prose"
)

// The files of a run directory. ResultFile is written last: a directory without
// it can be resumed.
const (
	RunFile        = "run.yaml"
	CheckpointFile = "checkpoint"
	ModelFile      = artifact.ModelFile
	ReportFile     = "report.html"
	ResultFile     = "result.json"
)

// Directory is a run's place on disk, locked against a second process.
type Directory struct {
	Path string
	// Continue is the command that goes on with the run, to be pasted into a shell.
	Continue string
	lock     *os.File
}

// CreateDirectory makes path hold the run file, in one step: it appears whole or
// not at all. An existing path must be an empty folder.
func CreateDirectory(path string, runFile []byte) (*Directory, error) {
	exists, err := isFree(path)
	if err != nil {
		return nil, err
	}
	if exists {
		if err := WriteFile(filepath.Join(path, RunFile), runFile); err != nil {
			return nil, err
		}
		return lock(path)
	}
	if err := createAtOnce(path, runFile); err != nil {
		return nil, fmt.Errorf("create the run directory: %w", err)
	}
	return lock(path)
}

// createAtOnce fills a folder beside path and renames it.
func createAtOnce(path string, runFile []byte) error {
	parent := filepath.Dir(filepath.Clean(path))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(parent, "."+filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh) // nothing is left there once it has been renamed
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(fresh, RunFile), runFile); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return durable.SyncDirectory(parent)
}

// isFree says whether path is there already; one that holds something is refused.
func isFree(path string) (exists bool, err error) {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("the run directory %s cannot be used: %w", path, err)
	case len(entries) > 0:
		return false, fmt.Errorf("%s is not empty: choose another --out, or continue a run there with --resume", path)
	}
	return true, nil
}

// OpenDirectory opens an existing run directory and loads its run file.
func OpenDirectory(path string) (*Directory, config.Run, error) {
	text, err := os.ReadFile(filepath.Join(path, RunFile))
	if err != nil {
		return nil, config.Run{}, fmt.Errorf("%s is not a run directory: %w", path, err)
	}
	run, err := config.Resolve(text, nil, Checks()...)
	if err != nil {
		return nil, config.Run{}, fmt.Errorf("%s: %w", filepath.Join(path, RunFile), err)
	}
	d, err := lock(path)
	return d, run, err
}

// ErrBusy means that another process works in the run directory.
var ErrBusy = errors.New("another process is working in this run directory")

func lock(path string) (*Directory, error) {
	f, err := os.Open(filepath.Join(path, RunFile)) // it is never replaced
	if err != nil {
		return nil, fmt.Errorf("lock the run directory: %w", err)
	}
	if err := durable.LockExclusive(f); err != nil {
		f.Close()
		if errors.Is(err, durable.ErrBusy) {
			err = ErrBusy
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Directory{Path: path, Continue: "coterie run --resume " + prose.ShellWord(path), lock: f}, nil
}

// Close gives the lock back.
func (d *Directory) Close() error { return d.lock.Close() }

// File is the path of one of the directory's files.
func (d *Directory) File(name string) string { return filepath.Join(d.Path, name) }

// Write replaces a file: readers see the old one or the new one, whole.
func (d *Directory) Write(name string, content []byte) error {
	return WriteFile(d.File(name), content)
}

// Finished says whether the run has its result.
func (d *Directory) Finished() bool {
	_, err := os.Stat(d.File(ResultFile))
	return err == nil
}

// WriteFile replaces a file by a synced rename: it is never seen half-written.
func WriteFile(path string, content []byte) error { return durable.WriteFile(path, content, 0o644) }
