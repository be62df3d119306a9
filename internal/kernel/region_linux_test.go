package kernel

import (
	"syscall"
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
