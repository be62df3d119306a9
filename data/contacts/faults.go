package contacts

import (
	"errors"
	"fmt"
	"strings"
)

// ErrFiles marks files that hold no population as they are.
var ErrFiles = errors.New("the population's files have faults")

// Fault is what is wrong in one place.
type Fault struct {
	File string
	Line int // 0: the file as a whole
	What string
}

func (f Fault) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.What
	}
	return fmt.Sprintf("%s, line %d: %s", f.File, f.Line, f.What)
}

// mostFaults is how many faults of a file are listed; after that the file is left.
const mostFaults = 20

// Faults are what is wrong with a population's files, all at once.
type Faults struct {
	List []Fault
	// Left names files that were left after so many faults that others may follow.
	Left []string
}

func (f *Faults) Error() string {
	lines := []string{fmt.Sprintf("%v: %d found", ErrFiles, len(f.List))}
	for _, one := range f.List {
		lines = append(lines, "  "+one.String())
	}
	for _, name := range f.Left {
		lines = append(lines, fmt.Sprintf("  %s was left after %d faults: mend those first", name, mostFaults))
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.Is(err, ErrFiles) hold.
func (f *Faults) Unwrap() error { return ErrFiles }

// add notes a fault of a file as a whole, or one that was found after the file was read.
func (f *Faults) add(file string, line int, format string, args ...any) {
	f.List = append(f.List, Fault{file, line, fmt.Sprintf(format, args...)})
}

// orNil is the error, if there is one.
func (f *Faults) orNil() error {
	if len(f.List) == 0 {
		return nil
	}
	return f
}
