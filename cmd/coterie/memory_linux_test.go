package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestAsInFile: what can be written, or was, is not given back: it could not be read again.
func TestAsInFile(t *testing.T) {
	const smaps = `00400000-0187f000 r-xp 00000000 fe:00 10339936                           /opt/my programs/coterie
Rss:               13756 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
0187f000-02d5d000 r--p 0147f000 fe:00 10339936                           /opt/my programs/coterie
Anonymous:             0 kB
02d5d000-02d6d000 r--p 0147f000 fe:00 10339936                           /opt/my programs/coterie
Anonymous:             4 kB
02d6d000-02e8a000 rw-p 0295d000 fe:00 10339936                           /opt/my programs/coterie
Anonymous:             0 kB
02e8a000-02e9a000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f50120dc000-7f5012232000 r-xp 00026000 fe:00 326269                     /usr/lib/libc.so.6
Anonymous:             0 kB
7f5012232000-7f5012233000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`
	got, err := asInFile(strings.NewReader(smaps), "/opt/my programs/coterie")
	want := []addresses{{0x400000, 0x187f000}, {0x187f000, 0x2d5d000}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%x, %v; want %x", got, err, want)
	}
	if _, err := asInFile(strings.NewReader("x-y r-xp 0 fe:00 1 /coterie\n"), "/coterie"); err == nil {
		t.Error("x-y is taken for a part of memory")
	}
}

// TestForgetStart: the pages of the program's file are given back, and the program goes on.
func TestForgetStart(t *testing.T) {
	resident := func() (kB int) {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Skip(err)
		}
		_, rest, _ := strings.Cut(string(status), "RssFile:")
		if _, err := fmt.Sscan(rest, &kB); err != nil {
			t.Skipf("no RssFile: %v", err)
		}
		return kB
	}
	parts, err := programParts()
	if err != nil || len(parts) == 0 {
		t.Fatal(parts, err)
	}
	before := resident()
	if err := forget(parts); err != nil {
		t.Fatal(err)
	}
	if after := resident(); after > before*3/4 {
		t.Errorf("%d kB of files are resident, %d before", after, before)
	}
}

// TestFewNeighbours: the system knows the program's file in parts of four pages, beyond
// which it brings no neighbours of a page that is read.
func TestFewNeighbours(t *testing.T) {
	parts, err := programParts()
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	found := 0
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if _, err := fmt.Sscanf(line, "%x-%x ", &from, &to); err != nil {
			t.Fatal(line, err)
		}
		for _, p := range parts {
			if p.from <= from && to <= p.to {
				if found++; to-from > 4*uintptr(os.Getpagesize()) {
					t.Errorf("%d kB are one part: %s", (to-from)>>10, line)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d parts of the program", found)
	}
}
