package identity

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/durable"
)

// TestCopyIsOfOneInstant: a copy has everything that whoever changes the folder has done, or
// nothing of it, and opens as an authority.
func TestCopyIsOfOneInstant(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	a, err := Init(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var files []CopiedFile
	for i := range 50 {
		lock, err := durable.TryLock(filepath.Join(dir, lockFile))
		if err != nil {
			t.Fatal(err)
		}
		began, copied := make(chan struct{}), make(chan error)
		go func() {
			close(began)
			var err error
			files, err = CopyFolder(dir)
			copied <- err
		}()
		<-began
		for _, part := range []string{"one", "two"} {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d", part, i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-copied; err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"one", "two"} {
			if !slices.ContainsFunc(files, func(f CopiedFile) bool { return f.Name == fmt.Sprintf("%s-%d", part, i) }) {
				t.Fatalf("copy %d was made while somebody changed the folder", i)
			}
		}
	}
	to := filepath.Join(t.TempDir(), "ca")
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name == lockFile || strings.HasPrefix(f.Name, ".") {
			t.Errorf("%s was copied", f.Name)
		}
		if err := os.WriteFile(filepath.Join(to, f.Name), f.Content, f.Mode); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Open(to, Options{})
	if err != nil || b.Federation() != a.Federation() || !b.ReceiptKey().Equal(a.ReceiptKey()) {
		t.Errorf("the copy is another authority: %v", err)
	}
	if _, err := CopyFolder(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no authority") {
		t.Errorf("a folder without an authority: %v", err)
	}
}
