package identity

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coterie-fl/coterie/internal/durable"
)

// CopiedFile is one file of an authority's folder.
type CopiedFile struct {
	Name    string
	Mode    fs.FileMode
	Content []byte
}

// lockFile is held by whoever changes the folder.
const lockFile = "lock"

// CopyFolder reads all files of the authority in dir as they are at one instant: nobody
// can invite, enrol, renew or revoke meanwhile. They are secrets.
func CopyFolder(dir string) ([]CopiedFile, error) {
	if _, err := Open(dir, Options{}); err != nil { // a folder that is none is not copied as if it were
		return nil, err
	}
	lock, err := durable.Lock(filepath.Join(dir, lockFile), patience)
	if err != nil {
		return nil, fmt.Errorf("copy the authority: %w", err)
	}
	defer lock.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("copy the authority: %w", err)
	}
	var all []CopiedFile
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == lockFile || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("copy the authority: %w", err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("copy the authority: %w", err)
		}
		all = append(all, CopiedFile{Name: e.Name(), Mode: info.Mode().Perm(), Content: content})
	}
	return all, nil
}
