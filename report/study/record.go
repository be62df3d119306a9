package study

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/durable"
)

// RecordFile is the name of a study's record in its folder.
const RecordFile = "record.json"

// Record is what came of a study's claims, in short: what tables of studies are made of, and
// what is kept of them. Figures that no text has are left out.
type Record struct {
	ID         string  `json:"id"`
	Title      string  `json:"title"`
	Paper      string  `json:"paper"`
	Scale      string  `json:"scale"`
	Seeds      int     `json:"seeds"`
	Date       string  `json:"date"`        // of the last run
	CPUSeconds float64 `json:"cpu_seconds"` // of all runs that made its cells in this folder; 0: not known
	// CommittedSeconds are those of cells that came with the program, as their lines have
	// them: each by the clock, of one core or of a device.
	CommittedSeconds float64  `json:"committed_seconds,omitempty"`
	Version          string   `json:"version"`            // its commit, where it was built from a checkout
	CellsOf          string   `json:"cells_of,omitempty"` // that of an earlier program which made some cells
	Kernel           string   `json:"kernel"`
	Devices          []string `json:"devices,omitempty"` // what computed its cells, where not this kernel alone
	Claims           []Claim  `json:"claims"`
}

// Claim is a number or a sentence of a text, and what we found.
type Claim struct {
	Section  string        `json:"section"`
	Label    string        `json:"label"`
	Metric   string        `json:"metric"`
	Verdict  Verdict       `json:"verdict"`
	Paper    *event.Number `json:"paper,omitempty"`
	Measured *event.Number `json:"measured"`
	Low      *event.Number `json:"low"`
	High     *event.Number `json:"high"`
}

// RecordOf is a study's record.
func RecordOf(s Study, date string, cpuSeconds float64) Record {
	r := Record{
		ID: s.ID, Title: s.Title, Paper: s.Paper, Scale: s.Scale, Seeds: s.Seeds, Date: date, CPUSeconds: cpuSeconds, CommittedSeconds: s.CommittedSeconds,
		Version: Program(s.Version), CellsOf: Program(s.CellsOf), Kernel: s.Kernel, Devices: s.Devices,
	}
	for _, row := range s.Rows {
		if row.Verdict != NoNumber {
			r.Claims = append(r.Claims, Claim{row.Section, row.Label, row.Metric, row.Verdict, row.Paper, row.Measured, row.Low, row.High})
		}
	}
	return r
}

// ofCheckout is the version that the compiler gives to a program of a checkout: with its time
// and commit, and a mark where files were changed.
var ofCheckout = regexp.MustCompile(`^v[^+]*[.-]\d{14}-([0-9a-f]{7})[0-9a-f]{5}(\+.*)?$`)

// Program is a version as records name it: the commit of a program that was built from a
// checkout (go build -buildvcs=true), "dirty" if files were changed; others as they are.
func Program(version string) string {
	m := ofCheckout.FindStringSubmatch(version)
	if m == nil {
		return version
	}
	return m[1] + m[2]
}

// Write puts a record into a study's folder.
func (r Record) Write(folder string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(folder, RecordFile), append(text, '\n'), 0o644)
}

// ReadRecord reads a file that Write wrote.
func ReadRecord(path string) (r Record, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s is no record of a study: %w", path, err)
	}
	return r, nil
}

// count is how many claims have a verdict.
func (r Record) count(v Verdict) (n int) {
	for _, c := range r.Claims {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

var textNumber = regexp.MustCompile(`(?:paper|thesis) (00\d)`)

// text is the number of the first text that a study is about; empty: it is about none.
func (r Record) text() string {
	if m := textNumber.FindStringSubmatch(r.Paper); m != nil {
		return m[1]
	}
	return ""
}

// texts are the five, as tables and pictures name them.
var texts = []struct{ number, name string }{
	{"000", "Papers 000 and 004: group privacy"},
	{"003", "Paper 003: fairness"},
	{"001", "Thesis 001: sensitivity"},
	{"002", "Paper 002: silos and pandemic"},
	{"", "About none of the texts"},
}

// byText sorts records into the texts, each in the order in which they come.
func byText(records []Record) [][]Record {
	out := make([][]Record, len(texts))
	for _, r := range records {
		at := slices.IndexFunc(texts, func(t struct{ number, name string }) bool { return t.number == r.text() })
		if at < 0 {
			at = len(texts) - 1
		}
		out[at] = append(out[at], r)
	}
	return out
}
