package config

import (
	"errors"
	"fmt"
	"strings"
)

// ErrInvalid is what every Faults wraps.
var ErrInvalid = errors.New("invalid configuration")

// Fault is one thing that is wrong with a run file. Line and Column are 0 when
// the value came from the command line.
type Fault struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func (f Fault) String() string {
	place := "command line"
	if f.Line > 0 {
		place = fmt.Sprintf("line %d, column %d", f.Line, f.Column)
	}
	if f.Path == "" {
		return place + ": " + f.Message
	}
	return fmt.Sprintf("%s: %s: %s", place, f.Path, f.Message)
}

// Faults is everything that is wrong, at once.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, 0, len(f)+1)
	lines = append(lines, fmt.Sprintf("%v: %s", ErrInvalid, count(len(f), "fault")))
	for _, x := range f {
		lines = append(lines, "  "+x.String())
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.Is(err, ErrInvalid) hold.
func (f Faults) Unwrap() error { return ErrInvalid }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Checker collects the faults of one block: each package checks its own.
type Checker struct{ faults Faults }

// Require records a fault at path unless ok.
func (c *Checker) Require(ok bool, path, format string, args ...any) {
	if !ok {
		c.faults = append(c.faults, Fault{Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

// Faults are those recorded.
func (c *Checker) Faults() Faults { return c.faults }
