// Package report turns run directories into one HTML file, and results into tables for a terminal.
package report

import (
	"bytes"
	_ "embed" // the page and its style are part of the binary
	"errors"
	"fmt"
	"io"

	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/sim"
)

//go:embed page.gohtml
var pageText string

var pageTemplate = layout.Parse(pageText)

// HTML writes the report of one run, or of several side by side, as one file
// that needs nothing else: no script, no font, no request. The same results give
// the same bytes. Nothing is written if the report cannot be made.
func HTML(w io.Writer, title string, results []sim.Result) error {
	if len(results) == 0 {
		return errors.New("report: there is no result to show; finish a run first")
	}
	if err := layout.Write(w, pageTemplate, newPage(title, results)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// Page writes one report about several finished runs to a file.
func Page(path, title string, results []sim.Result) error {
	var page bytes.Buffer
	if err := HTML(&page, title, results); err != nil {
		return err
	}
	return sim.WriteFile(path, page.Bytes())
}
