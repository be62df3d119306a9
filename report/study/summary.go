package study

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/report/prose"
)

// counted are the verdicts that summaries count, in their order.
var counted = []Verdict{Agrees, Differs, Incomparable}

// totals are how many claims of all records have these verdicts.
func totals(records []Record) (n [3]int) {
	for _, r := range records {
		for i, v := range counted {
			n[i] += r.count(v)
		}
	}
	return n
}

// took is processor time as a person would say it, with that of committed cells.
func (r Record) took() string {
	if r.CPUSeconds+r.CommittedSeconds == 0 {
		return "–"
	}
	return duration(r.CPUSeconds + r.CommittedSeconds)
}

// helped says that some cells were computed by a GPU, whose time no processor counts.
func (r Record) helped() string {
	if slices.ContainsFunc(r.Devices, func(d string) bool { return strings.Contains(d, "CUDA") }) {
		return ", and a GPU"
	}
	return ""
}

// programs are those that made the cells and the rows, where these are two.
func (r Record) programs() string {
	if r.CellsOf == "" {
		return r.Version
	}
	return "cells " + r.CellsOf + ", rows " + r.Version
}

// Summary prints studies beside one another: how many claims agree, differ, and cannot be
// compared, and how many do of all.
func Summary(w io.Writer, records []Record) error {
	var b strings.Builder
	line := func(name, scale, seeds, took string, n [3]int) {
		fmt.Fprintf(&b, "%-22s %-6s %5s %12s %7d %8d %19d\n", name, scale, seeds, took, n[0], n[1], n[2])
	}
	fmt.Fprintf(&b, "%-22s %-6s %5s %12s %7s %8s %19s\n", "study", "scale", "seeds", "cpu time", "agree", "differ", "cannot be compared")
	for i, of := range byText(records) {
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", texts[i].name)
		for _, r := range of {
			line(r.ID, r.Scale, prose.Count(r.Seeds), r.took(), totals([]Record{r}))
		}
	}
	b.WriteByte('\n')
	line("all", "", "", "", totals(records))
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown is the same as a table of a document, with date and program.
func Markdown(records []Record) string {
	var b strings.Builder
	b.WriteString("| study | scale | seeds | processor time | date | program | agree | differ | cannot be compared |\n| --- | --- | ---: | ---: | --- | --- | ---: | ---: | ---: |\n")
	for i, of := range byText(records) {
		if len(of) == 0 {
			continue
		}
		n := totals(of)
		fmt.Fprintf(&b, "| **%s** | | | | | | **%d** | **%d** | **%d** |\n", texts[i].name, n[0], n[1], n[2])
		for _, r := range of {
			n := totals([]Record{r})
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %d | %d | %d |\n", r.ID, r.Scale, prose.Count(r.Seeds), r.took()+r.helped(), cmp.Or(r.Date, "–"), r.programs(), n[0], n[1], n[2])
		}
	}
	n := totals(records)
	fmt.Fprintf(&b, "| **all** | | | | | | **%d** | **%d** | **%d** |\n", n[0], n[1], n[2])
	return b.String()
}

// The files that WriteSummary leaves.
const (
	SummaryTable   = "summary.md"
	SummaryPicture = "summary.svg"
)

// WriteSummary leaves the table and the picture of studies in a folder.
func WriteSummary(folder string, records []Record) error {
	if err := durable.WriteFile(filepath.Join(folder, SummaryTable), []byte(Markdown(records)), 0o644); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(folder, SummaryPicture), []byte(Drawing(records)), 0o644)
}
