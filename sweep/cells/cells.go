// Package cells is the work of sweeps and studies in pieces: what a piece is, where what came of it is remembered, and who makes it.
package cells

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/coterie-fl/coterie/internal/durable"
)

// Cell is one piece of work whose result depends on nothing but what it is made of: made
// twice, or elsewhere, it gives the same bytes.
type Cell struct {
	// Key is everything that the result depends on, as this machine names it.
	Key any
	// Kind says which Maker makes it elsewhere, and Order from what. Where Kind is empty it is
	// made in this process, whoever the others are made by.
	Kind  string
	Order func(ctx context.Context) (Order, error)
	// Varies says that it does not: its noise is from the system's entropy, or it holds times.
	// The first result counts then, and a second one is held against nothing.
	Varies bool
	// Make makes it in this process.
	Make func(ctx context.Context) (any, error)
}

// Order is what a worker elsewhere makes a cell from.
type Order struct {
	Spec any // for the Maker
	// Identity is everything that the result depends on, as every machine names it: files by
	// their hashes. Cells of one kind with one identity are one cell.
	Identity any
}

// Runner makes cells: this process does (Here), or workers do that a queue hands them to.
type Runner interface {
	// Make returns what came of a cell, as JSON, once somebody has made it.
	Make(ctx context.Context, c Cell) (json.RawMessage, error)
	// Width is how many cells are worth being asked for at the same time.
	Width() int
}

// ErrFailed marks a cell that could not be made, however often it was tried; the others
// can.
var ErrFailed = errors.New("a cell failed")

// Here makes cells in this process.
type Here struct {
	Workers int // cells at the same time; 0: one a core
}

// Make makes a cell at once.
func (Here) Make(ctx context.Context, c Cell) (json.RawMessage, error) {
	value, err := c.Make(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// Width is the number of workers.
func (h Here) Width() int {
	if h.Workers > 0 {
		return h.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Book remembers what came of cells in a folder, a file a cell, so that a stop loses only
// those under way.
type Book struct {
	Folder  string
	Version string // of the program: its results are its own
	Runner  Runner
}

// Path is the file of what came of a cell. Its name is all that the result depends on.
func (b Book) Path(key any) (string, error) {
	text, err := json.Marshal(struct {
		Version string
		Key     any
	}{b.Version, key})
	sum := sha256.Sum256(text)
	return filepath.Join(b.Folder, hex.EncodeToString(sum[:12])+".json"), err
}

// Recall fills into from the cell's file, and says whether there is one that can be read.
func (b Book) Recall(key, into any) (bool, error) {
	path, err := b.Path(key)
	if err != nil {
		return false, err
	}
	stored, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && json.Unmarshal(stored, into) == nil, err
}

// Remember fills into from the cell's file, or has the cell made and writes it.
func (b Book) Remember(ctx context.Context, c Cell, into any) error {
	if found, err := b.Recall(c.Key, into); found || err != nil {
		return err
	}
	path, err := b.Path(c.Key)
	if err != nil {
		return err
	}
	stored, err := b.Runner.Make(ctx, c)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(stored, into); err != nil {
		return fmt.Errorf("a cell's result is not understood: %w", err)
	}
	return durable.WriteFile(path, append(stored, '\n'), 0o644)
}
