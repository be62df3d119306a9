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

// programParts are the parts of memory that show the program's own file: starting reads
// most of it, since every library sets itself up, and a run little. Where they lie does not
// change as long as the program runs.
func programParts() ([]addresses, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	defer maps.Close()
	parts, err := asInFile(maps, program)
	if err != nil {
		return nil, err
	}
	return parts, fewNeighbours(parts)
}

// fewNeighbours has the system bring few neighbours of a page that is read: it brings up to 64 kB
// around it, but nothing beyond the part of memory that it knows as one. What is said to be
// read at random is another part than what is not, so every second piece is said to be.
func fewNeighbours(parts []addresses) error {
	piece := uintptr(4 * os.Getpagesize())
	for _, p := range parts {
		for from := p.from; from < p.to; from = from - from%piece + piece {
			if from/piece%2 == 0 {
				continue
			}
			if err := advise(addresses{from, min(from-from%piece+piece, p.to)}, syscall.MADV_RANDOM); err != nil {
				return err
			}
		}
	}
	return nil
}

func advise(p addresses, advice uintptr) error {
	if _, _, fault := syscall.Syscall(syscall.SYS_MADVISE, p.from, p.to-p.from, advice); fault != 0 {
		return fmt.Errorf("advise the system on %x-%x: %w", p.from, p.to, fault)
	}
	return nil
}

// forget gives parts back: what is needed comes back from the file by itself.
func forget(parts []addresses) error {
	for _, p := range parts {
		if err := advise(p, syscall.MADV_DONTNEED); err != nil {
			return err
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
