package kernel

import (
	"syscall"
	"testing"
	"unsafe"
)

// newRegion is memory whose end is followed by a page that cannot be touched.
func newRegion[F Float]() []F {
	const size = 1 << 22
	page := syscall.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	if err := syscall.Mprotect(memory[size:], syscall.PROT_NONE); err != nil {
		panic(err)
	}
	var f F
	return unsafe.Slice((*F)(unsafe.Pointer(&memory[0])), size/int(unsafe.Sizeof(f)))
}

// TestArenaSeesOverruns: the other tests rely on it.
func TestArenaSeesOverruns(t *testing.T) {
	var a arena[float32]
	buffer := a.make(5)
	if _, broken := a.broken(); broken {
		t.Fatal("a new guard is broken")
	}
	*(*float32)(unsafe.Add(unsafe.Pointer(&buffer[0]), -4)) = 1
	if _, broken := a.broken(); !broken {
		t.Error("a value written before the buffer is not seen")
	}
	for what, touch := range map[string]func(p *float32){
		"read":  func(p *float32) { buffer[0] = *p },
		"write": func(p *float32) { *p = 1 },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a %s beyond the buffer is not seen", what)
				}
			}()
			touch((*float32)(unsafe.Add(unsafe.Pointer(&buffer[4]), 4)))
		}()
	}
}
