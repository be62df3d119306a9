// Package layout holds what all pages share: style, badges, facts, the privacy label.
package layout

import (
	"bytes"
	_ "embed" // style and parts are in the binary
	"fmt"
	"html/template"
	"io"
)

//go:embed style.css
var styleText string

//go:embed parts.gohtml
var partsText string

var parts = template.Must(template.New("parts").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(styleText) },
}).Parse(partsText))

// Style is the style of all pages, for one whose content security policy names its hash.
func Style() string { return styleText }

// Parse is a page's template, which may use the shared parts.
func Parse(text string) *template.Template {
	return template.Must(template.Must(parts.Clone()).New("page").Parse(text))
}

// Write fills a page and writes it; nothing is written if it cannot be filled.
func Write(w io.Writer, t *template.Template, view any) error {
	var page bytes.Buffer
	if err := t.Execute(&page, view); err != nil {
		return fmt.Errorf("filling the page: %w", err)
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// Badge is a word with a shape of its own, so that it can be told apart without
// colour, and a sentence that says what it means where there is one.
type Badge struct {
	Word     string
	Class    string
	Icon     template.HTML
	Sentence string
}

// Icon is a shape in the size of a letter.
func Icon(shape string) template.HTML {
	return template.HTML(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">` + shape + `</svg>`)
}

// Fact is a line of a list of facts; Code says that it is set in type of one width.
type Fact struct {
	Name, Value string
	Code        bool
}
