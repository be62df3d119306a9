package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// forgetStart gives back the pages of the program's own file: starting reads most of it,
// since every library sets itself up, and a run little, which comes back from the file by
// itself.
func forgetStart() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer maps.Close()
	parts, err := asInFile(maps, program)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, _, fault := syscall.Syscall(syscall.SYS_MADVISE, p.from, p.to-p.from, syscall.MADV_DONTNEED); fault != 0 {
			return fmt.Errorf("give back %x-%x: %w", p.from, p.to, fault)
		}
	}
	return nil
}

// addresses are a part of a process's memory.
type addresses struct{ from, to uintptr }

// asInFile lists, from a process's smaps, the parts that show a file just as it is: those
// that can be written are left out, and those that a loader or a debugger has written to.
func asInFile(smaps io.Reader, file string) ([]addresses, error) {
	var found []addresses
	var at addresses
	ours := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		// Either "00400000-0187f000 r-xp 00000000 fe:00 10339936   /path", or "Anonymous:  0 kB".
		words := strings.Fields(lines.Text())
		switch {
		case len(words) >= 5 && strings.Contains(words[0], "-"):
			low, high, _ := strings.Cut(words[0], "-")
			from, err := strconv.ParseUint(low, 16, strconv.IntSize)
			to, err2 := strconv.ParseUint(high, 16, strconv.IntSize)
			if err != nil || err2 != nil {
				return nil, fmt.Errorf("smaps: %q is no part of memory", words[0])
			}
			at = addresses{uintptr(from), uintptr(to)}
			ours = strings.Join(words[5:], " ") == file && !strings.Contains(words[1], "w")
		case ours && len(words) == 3 && words[0] == "Anonymous:" && words[1] == "0":
			found = append(found, at)
		}
	}
	return found, lines.Err()
}
