// Package report turns a run directory into one HTML file with SVG, tables, JSON and progress on a terminal.
package report

import (
	"bytes"
	_ "embed" // the page and its style are part of the binary
	"errors"
	"fmt"
	"html/template"
	"io"

	"github.com/coterie-fl/coterie/sim"
)

//go:embed page.gohtml
var pageText string

//go:embed style.css
var styleText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// HTML writes the report of one run, or of several side by side, as one file
// that needs nothing else: no script, no font, no request. The same results give
// the same bytes. Nothing is written if the report cannot be made.
func HTML(w io.Writer, title string, results []sim.Result) error {
	if len(results) == 0 {
		return errors.New("report: there is no result to show; finish a run first")
	}
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, newPage(title, results)); err != nil {
		return fmt.Errorf("report: filling the page: %w", err)
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("report: writing the page: %w", err)
	}
	return nil
}
