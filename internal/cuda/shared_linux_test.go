package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
)

// inSmallMemory says in the environment that a test's process is its own child, which has a /dev/shm of its own.
const inSmallMemory = "COTERIE_TEST_SMALL_MEMORY"

// TestSharedMemoryWithoutRoom: where /dev/shm has too little room, a network is opened with a file
// among the temporary ones, and where these have none either, it is refused in a sentence; the system ends
// neither program for writing where there is nothing.
func TestSharedMemoryWithoutRoom(t *testing.T) {
	if os.Getenv(inSmallMemory) == "" {
		if os.Geteuid() != 0 {
			t.Skip("a small /dev/shm is root's to make")
		}
		child := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		child.Env = append(os.Environ(), inSmallMemory+"=1")
		child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, err := child.CombinedOutput()
		if err != nil && child.Process == nil {
			t.Skipf("no /dev/shm of its own: %v", err)
		}
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	cudatest.Use(t)
	tiny := t.TempDir()
	for folder, size := range map[string]string{"/dev/shm": "size=6m", tiny: "size=1m"} {
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, size); err != nil {
			t.Skipf("no small %s: %v", folder, err)
		}
	}
	t.Cleanup(func() { _ = syscall.Unmount(tiny, syscall.MNT_DETACH) })
	p := plan(t, 4)
	if size := LayoutOf(p).Size; size < 4<<20 || size > 5<<20 {
		t.Fatalf("a network shares %d bytes, of which 6 MB have room for one", size)
	}
	var all []*Device
	for i, which := range []int{0, 1, 1} { // of one program
		d, err := Open(0, p)
		if err != nil {
			t.Fatal(err)
		}
		if d.helper.which != which {
			t.Errorf("network %d shares file %d", i, d.helper.which)
		}
		all = append(all, d)
	}
	for i := range all {
		computes(t, all[i])
	}
	t.Setenv("TMPDIR", tiny)
	t.Setenv("COTERIE_CUDA_TEST", "a program whose files are there")
	d, err := Open(0, p)
	for _, want := range []string{"5 MB of memory to share with coterie-cuda have no room (/dev/shm: no space left on device; " + tiny + ": no space", "--shm-size"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("neither has room: %v, %v", d, err)
		}
	}
	for _, d := range all {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	again, err := Open(0, p) // what networks that have ended had is free again
	if err != nil {
		t.Fatal(err)
	}
	computes(t, again)
	if again.helper.which != 0 {
		t.Error("a network that has ended holds memory")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// computes has a device of plan compute the outputs of a black picture.
func computes(t *testing.T, d *Device) {
	t.Helper()
	side := d.plan.Input.Height
	pictures := &data.Images{Height: side, Width: side, Pixels: make([]byte, side*side), Labels: []int{1}}
	c := &data.Client{Pictures: data.Pictures{Images: pictures, Index: []int{0}}}
	out, theta := make([]float32, 3), make([]float32, d.plan.Parameters)
	theta[len(theta)-1] = 5 // the last bias
	if err := d.Outputs(out, theta, c, []int{0}); err != nil || out[0] != 0 || out[2] != 5 {
		t.Errorf("outputs %v, %v", out, err)
	}
}

// bytesOn is how many bytes a file really has.
func bytesOn(t *testing.T, f *os.File) int64 {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return 512 * info.Sys().(*syscall.Stat_t).Blocks
}

// TestRoomIsTaken: memory that is shared has its room, all of it zero, also on a file system that cannot
// be asked for it, and after a signal.
func TestRoomIsTaken(t *testing.T) {
	const size = 33<<20 + 5
	for name, fails := range map[string]error{"the system's": nil, "none": syscall.EOPNOTSUPP, "old": syscall.ENOSYS, "a signal": syscall.EINTR} {
		calls := 0
		fallocate = func(f int, mode uint32, at, n int64) error {
			if calls++; calls > 1 && fails != nil && (fails != syscall.EINTR || calls == 2) {
				return fails
			}
			return syscall.Fallocate(f, mode, at, n)
		}
		f, err := os.Create(filepath.Join(t.TempDir(), "shared"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("what was there"); err != nil {
			t.Fatal(err)
		}
		if err := reserve(f, size); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text, err := os.ReadFile(f.Name())
		if err != nil || len(text) != size || strings.Trim(string(text), "\x00") != "" || bytesOn(t, f) < size {
			t.Errorf("%s: %d bytes, of which %d are there, %v", name, len(text), bytesOn(t, f), err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	fallocate = syscall.Fallocate
}

// TestIdleHelpersHoldNoMemory: what a network shared is given back when it ends, and not with its helper.
func TestIdleHelpersHoldNoMemory(t *testing.T) {
	cudatest.Use(t)
	t.Setenv("COTERIE_CUDA_TEST", t.Name()) // no other test's helpers
	d, err := Open(0, plan(t, 4))
	if err != nil {
		t.Fatal(err)
	}
	f := d.helper.files[d.helper.which]
	if held, size := bytesOn(t, f), int64(d.layout.Size); held < size {
		t.Errorf("a network holds %d of %d bytes", held, size)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if held := bytesOn(t, f); held != 0 {
		t.Errorf("an idle helper holds %d bytes", held)
	}
}
