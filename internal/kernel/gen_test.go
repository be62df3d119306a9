package kernel

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedCodeIsCurrent: regenerating changes nothing.
func TestGeneratedCodeIsCurrent(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "-C", "gen", "mod", "download", "github.com/mmcloughlin/avo").CombinedOutput(); err != nil {
		t.Skipf("the generator needs github.com/mmcloughlin/avo, which cannot be had here: %s", out)
	}
	out, err := exec.Command("go", "run", "-C", "gen", ".", "-dir", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("the generator does not run: %v\n%s", err, out)
	}
	for _, name := range []string{"avx2_amd64.s", "avx2_amd64.go", "avx512_amd64.s", "avx512_amd64.go", "tiles_amd64.go"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate ./internal/kernel", name)
		}
		if !strings.HasPrefix(string(got), "// Code generated ") {
			t.Errorf("%s does not say that it is generated", name)
		}
	}
}
