//go:build unix

package source

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipesAreNoPictures: nobody waits for what will never come.
func TestPipesAreNoPictures(t *testing.T) {
	dir := twoClients(t)
	pipes := []string{"south/cat", "south/dog/pipe.png", "west.npz", "east-images-idx3-ubyte"}
	for _, pipe := range pipes {
		if err := syscall.Mkfifo(filepath.Join(dir, pipe), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(t, idx(nil, 0), dir, "east-labels-idx1-ubyte")
	_, _, err := readPictures(pictureBlock(dir))
	for _, pipe := range pipes {
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, pipe)+": ") {
			t.Errorf("%s: %v", pipe, err)
		}
	}
}
