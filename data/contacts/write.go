package contacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/internal/pool"
)

// Writing says how a population is written.
type Writing struct {
	Workers  int                              // 0: as many as there are cores; no byte depends on it
	Progress func(share float64, what string) // nil: nobody is told
}

// Written is what was: bytes by file.
type Written struct {
	Folder string       `json:"folder"`
	Files  []FileLength `json:"files"`
}

// FileLength is one file's.
type FileLength struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// ErrFolder: the folder to write to has something in it.
var ErrFolder = errors.New("the folder is not empty")

// CheckFolder says whether Write could write there, before there is anything to write.
func CheckFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("%s: %w, and nothing in it is replaced: name a new one, or remove it first", dir, ErrFolder)
	case err == nil || errors.Is(err, os.ErrNotExist):
		return nil
	}
	return fmt.Errorf("the folder to write to: %w", err)
}

// Write leaves the challenge's eight files in a folder, or nothing: they are written beside
// it, and renamed when all are there.
func (p *Population) Write(ctx context.Context, dir string, w Writing) (Written, error) {
	if err := CheckFolder(dir); err != nil {
		return Written{}, err
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Written{}, fmt.Errorf("the folder to write to: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".new-")
	if err != nil {
		return Written{}, fmt.Errorf("the folder to write to: %w", err)
	}
	defer os.RemoveAll(aside) // nothing is left there once it has been renamed
	out, err := p.writeAll(ctx, aside, w)
	if err == nil {
		err = errors.Join(os.Chmod(aside, 0o755), durable.SyncDirectory(aside))
	}
	if err != nil {
		return Written{}, err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) { // an empty folder
		return Written{}, fmt.Errorf("the folder to write to: %w", err)
	}
	if err := os.Rename(aside, dir); err != nil {
		return Written{}, fmt.Errorf("the folder to write to: %w", err)
	}
	out.Folder = dir
	return out, durable.SyncDirectory(filepath.Dir(dir))
}

// rowsJob adds some rows of a file to a text.
type rowsJob func(text []byte) []byte

func (p *Population) writeAll(ctx context.Context, dir string, w Writing) (Written, error) {
	jobs := map[string][]rowsJob{
		personFile: p.personRows(), householdFile: p.householdRows(), residenceFile: p.residenceRows(), locationFile: p.locationRows(),
		assignmentFile: p.assignmentRows(), networkFile: p.networkRows(), trainingFile: p.trainingRows(), targetFile: p.targetRows(),
	}
	all, done := 0, 0
	for _, j := range jobs {
		all += len(j)
	}
	var out Written
	for _, name := range Files() {
		length, err := writeRows(ctx, filepath.Join(dir, name), name, jobs[name], w.Workers, func() {
			done++
			if w.Progress != nil {
				w.Progress(float64(done)/float64(all), name)
			}
		})
		if err != nil {
			return out, err
		}
		out.Files = append(out.Files, FileLength{name, length})
	}
	return out, nil
}

// writeRows writes one file: rows are put into words by all workers, and written in order.
func writeRows(ctx context.Context, path, name string, jobs []rowsJob, workers int, tick func()) (int64, error) {
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", name, err)
	}
	length := int64(0)
	put := func(text []byte) error {
		n, err := f.Write(text)
		length += int64(n)
		return err
	}
	err = put([]byte(strings.Join(columnsOf[name], ",") + "\n"))
	var texts sync.Pool
	if err == nil {
		err = pool.InOrder(ctx, workers, func() (func() *[]byte, error) {
			if len(jobs) == 0 {
				return nil, io.EOF
			}
			job := jobs[0]
			jobs = jobs[1:]
			return func() *[]byte {
				text, ok := texts.Get().(*[]byte)
				if !ok {
					text = new([]byte)
				}
				*text = job((*text)[:0])
				return text
			}, nil
		}, func(text *[]byte) error {
			defer texts.Put(text)
			tick()
			return put(*text)
		})
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, fmt.Errorf("write %s: %w", name, err)
	}
	return length, nil
}
