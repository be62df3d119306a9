// Package draft looks at people's data where they lie and drafts the files of a first
// run on them: what every column is, within which range, and settings that suit the size
// of the clients. What it finds tells of the data and is for their owner alone.
package draft

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrRequest marks a request that the data do not fit.
var ErrRequest = errors.New("the files cannot be drafted")

// Request says what to look at, and for what.
type Request struct {
	Path   string // a file, a folder, or a pattern
	Client string // column that names the client; empty: one file or folder a client
	Target string // column that is to be predicted; of pictures and text there is none
	Out    string // folder that the files are to stand in: their paths are seen from it
}

// Draft is what was found, and the files.
type Draft struct {
	Kind      string   `json:"kind"` // table, pictures or text
	Rows      int      `json:"rows"`
	Clients   []Client `json:"clients"`
	Target    Column   `json:"target"`
	Task      string   `json:"task"`
	Columns   []Column `json:"columns"`
	NotPublic []string `json:"not_public"` // keys of run.yaml that were taken from the data
	Files     []File   `json:"files"`
}

// Client is one that rows or pictures were found of.
type Client struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
}

// File is one of the drafted files.
type File struct {
	Name string `json:"name"`
	Text string `json:"-"`
}

// New looks at the data and drafts the files. Nothing is written.
func New(ctx context.Context, r Request) (*Draft, error) {
	pictures, err := holdsFolders(r.Path)
	if err != nil {
		return nil, err
	}
	if pictures {
		return newPictures(ctx, r)
	}
	text, err := holdsText(r.Path)
	if err != nil {
		return nil, err
	}
	if text {
		return newText(ctx, r)
	}
	return newTable(ctx, r)
}

// holdsFolders says that a path is a folder of folders: those of clients with pictures.
func holdsFolders(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return false, nil // a pattern, or what the reader will complain of
	}
	inside, err := os.ReadDir(path)
	if err != nil {
		return false, fmt.Errorf("look at the data: %w", err)
	}
	for _, f := range inside {
		if f.IsDir() && f.Name()[0] != '.' {
			return true, nil
		}
	}
	return false, nil
}

// from is a path as it is seen from the folder of the drafted files.
func (r Request) from(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	out, err := filepath.Abs(r.Out)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", r.Out, err)
	}
	seen, err := filepath.Rel(out, path)
	if err != nil {
		return path, nil // on another drive
	}
	return filepath.ToSlash(seen), nil
}
