package ledger

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFullDisk runs out of space for real, where a small file system can be had.
func TestFullDisk(t *testing.T) {
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("prlimit is missing: no way to limit the size of files")
	}
	// A limit on file sizes makes writes fail half-way, like a full disk.
	dir := filepath.Join(t.TempDir(), "ledger")
	cmd := exec.Command("prlimit", "--fsize=9000", os.Args[0], "-test.run", "^$")
	cmd.Env = append(os.Environ(), childFolder+"="+dir)
	sent, write, err := os.Pipe()
	must(t, err)
	defer sent.Close()
	cmd.ExtraFiles = []*os.File{write}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	must(t, write.Close())
	k := &killer{t: t, dir: dir, w: &witness{seen: map[Slot]string{}}}
	must(t, k.receive(sent))
	if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), ErrPoisoned.Error()) {
		t.Fatalf("the child ended with %v: %s", err, stderr.String())
	}
	must(t, k.check())
	if len(k.w.seen) == 0 || len(k.w.seen) >= childFits {
		t.Fatalf("%d releases before the disk was full", len(k.w.seen))
	}
	// With room again, the run goes on to its end.
	done, err := k.life("none@1")
	if err == nil {
		err = k.check()
	}
	if err != nil || !done || len(k.w.seen) != childFits {
		t.Fatalf("%v, %v, %d releases", done, err, len(k.w.seen))
	}
}
