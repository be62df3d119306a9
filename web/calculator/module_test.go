package calculator

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

var rebuild = flag.Bool("rebuild", false, "write module.wasm.gz and module.json anew")

// made is what module.json says of the program in the page.
type made struct {
	Go     string `json:"go"`     // the toolchain
	SHA256 string `json:"sha256"` // of the program, unpacked
}

const (
	moduleFile = "module.wasm.gz"
	madeFile   = "module.json"
)

// built compiles the program, the same on every machine.
func built(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "module.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", file, "./wasm")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "GOFLAGS=", "GOEXPERIMENT=", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// TestModuleBelongsToItsSource: the program in the page is what its source compiles to.
func TestModuleBelongsToItsSource(t *testing.T) {
	if *rebuild {
		program := built(t)
		text, err := json.Marshal(made{runtime.Version(), sum(program)})
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		w, _ := gzip.NewWriterLevel(&file, gzip.BestCompression) // without name and time: the same bytes every time
		if _, err := w.Write(program); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{moduleFile: file.Bytes(), madeFile: append(text, '\n')} {
			if err := os.WriteFile(name, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%d bytes, %d packed", len(program), file.Len())
		return
	}
	text, err := os.ReadFile(madeFile)
	if err != nil {
		t.Fatal(err)
	}
	var says made
	if err := json.Unmarshal(text, &says); err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	program, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if sum(program) != says.SHA256 {
		t.Fatalf("%s holds %s, %s says %s: go generate ./web/calculator", moduleFile, sum(program), madeFile, says.SHA256)
	}
	if says.Go != runtime.Version() {
		t.Skipf("the module was built by %s, here is %s: another compiler gives other bytes", says.Go, runtime.Version())
	}
	if got := sum(built(t)); got != says.SHA256 {
		t.Errorf("the source compiles to %s, the module is %s: go generate ./web/calculator", got, says.SHA256)
	}
}
