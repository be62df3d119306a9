// Package calculator makes the accountant's page: one HTML file with the accountant compiled to WebAssembly in it.
package calculator

import (
	"crypto/sha256"
	_ "embed" // the page and the program in it are part of the binary
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/layout"
)

// module.wasm.gz is web/calculator/wasm, and module.json says what built it.
//go:generate go test -count=1 -run TestModuleBelongsToItsSource -rebuild

//go:embed module.wasm.gz
var packed []byte

//go:embed page.gohtml
var pageText string

//go:embed page.css
var styleText string

//go:embed page.js
var scriptText string

//go:embed worker.js
var workerText string

var pageTemplate = layout.Parse(pageText)

// page is all that the template shows.
type page struct {
	Title, Policy, Version string
	Style                  template.CSS
	Script                 template.JS
	Worker, Program        template.HTML // data, not run where they stand
	Asks                   []ask
}

// HTML writes the page.
func HTML(w io.Writer, version string) error {
	style, script := layout.Style()+styleText, strings.TrimSpace(scriptText)
	return layout.Write(w, pageTemplate, page{
		Title: "Privacy calculator", Version: version, Asks: asks,
		Style: template.CSS(style), Script: template.JS(script), Worker: template.HTML(workerText),
		Program: template.HTML(base64.StdEncoding.EncodeToString(packed)),
		Policy: strings.Join([]string{
			"default-src 'none'", "style-src " + hash(style), "script-src " + hash(script) + " 'wasm-unsafe-eval'", "worker-src blob:", "img-src data:",
			"base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types calculator",
		}, "; "),
	})
}

// hash names the only text that may run, or that may style the page.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// ask is one kind of question: a form of its own.
type ask struct {
	ID, Name, Words string
	Solves          []choice // what may be solved for; the first is chosen
	Fields          []field
	Choices         []menu
	Others          string // further lines of a silos' file; empty: the question has none
}

// choice is a word with its value.
type choice struct{ Value, Name string }

// menu is a flag with few values; the first is the command's own and not written down.
type menu struct {
	Flag, Name string
	Of         []choice
}

// field is a flag with a number: a slider over a range, and a place to type any other.
type field struct {
	Flag, Name, Hint string
	Value            string
	Low, High        float64
	Linear, Whole    bool
}

const targetHint = "claim proved, relation add-remove, unit example or client as chosen"

var (
	delta      = field{Flag: "delta", Name: "Delta", Hint: "well below one over the number of protected units", Value: "1e-5", Low: 1e-12, High: 1e-2}
	noise      = field{Flag: "noise", Name: "Noise S", Hint: "standard deviation over the clip bound", Value: "1.1", Low: 0.3, High: 100}
	rate       = field{Flag: "rate", Name: "Rate", Hint: "chance of an example to be in a batch: batch size over number of examples", Value: "0.01", Low: 1e-5, High: 1}
	steps      = field{Flag: "steps", Name: "Steps", Hint: "batches in all: epochs over rate", Value: "1000", Low: 1, High: 1e6, Whole: true}
	units      = menu{"unit", "What is protected", []choice{{string(event.UnitExample), "one example"}, {string(event.UnitClient), "one client with all its data"}}}
	accountant = menu{"accountant", "Accountant", []choice{{"best", "the smaller number of rdp and pld"}, {"rdp", "rdp alone"}}}
)

// asks are the questions of the page. Field names are the flags of `coterie account`.
var asks = []ask{
	{
		ID: "training", Name: "Training", Words: "Noised gradient steps on Poisson batches: give three of epsilon, noise, steps and rate, and get the fourth.",
		Solves: []choice{{"epsilon", "epsilon"}, {"noise", "noise"}, {"steps", "steps"}, {"rate", "rate"}},
		Fields: []field{
			{Flag: "epsilon", Name: "Target epsilon", Hint: targetHint, Value: "3", Low: 0.01, High: 100},
			noise, rate, steps, delta,
		},
		Choices: []menu{units, accountant},
	},
	{
		ID: "metric", Name: "Metric radius", Words: "d-private releases: what two trained vectors lose at the public radius, and at any other distance.",
		Fields: []field{
			{Flag: "dimension", Name: "Dimension", Hint: "number of parameters that are released", Value: "2", Low: 1, High: 1e7, Whole: true},
			{Flag: "noise-multiplier", Name: "Noise multiplier", Hint: "nu: more is more noise", Value: "5", Low: 0.1, High: 1e8},
			{Flag: "releases", Name: "Releases", Hint: "how often one participant releases", Value: "6", Low: 1, High: 10000, Whole: true},
			{Flag: "radius", Name: "Radius", Hint: "the public one that the noise was tuned to", Value: "0.5", Low: 0.001, High: 1000},
			{Flag: "distance", Name: "Distance", Hint: "between two vectors that somebody wants to tell apart", Value: "1", Low: 0.001, High: 1000},
		},
	},
	{
		ID: "silo", Name: "Silos", Words: "Example-level privacy of every silo by its own target: the noise that it needs, and what the federation as a whole promises.",
		Fields: []field{
			{Flag: "examples", Name: "Examples of your silo", Hint: "a public number", Value: "1000", Low: 10, High: 1e7, Whole: true},
			{Flag: "batch", Name: "Batch", Hint: "examples in a batch, on average", Value: "64", Low: 1, High: 10000, Whole: true},
			{Flag: "epochs", Name: "Epochs", Hint: "in all, over all rounds", Value: "10", Low: 1, High: 1000, Whole: true},
			{Flag: "epsilon", Name: "Target epsilon", Hint: "claim proved, unit example, relation add-remove", Value: "2", Low: 0.01, High: 100},
			delta,
		},
		Choices: []menu{accountant},
		Others:  "north,872,64,10,0.5,1e-7\nsouth,1933,64,10,6,1e-6",
	},
	{
		ID: "tuning", Name: "Tuning", Words: "The best of a random, secret number of runs: what the choice costs beside one run.",
		Fields: []field{
			{Flag: "mean-trials", Name: "Mean number of trials", Hint: "the number itself stays secret", Value: "10", Low: 1, High: 1000},
			{Flag: "eta", Name: "Eta", Hint: "shape of the truncated negative binomial: 1 geometric, 0 logarithmic", Value: "0", Low: -0.9, High: 5, Linear: true},
			noise, rate, steps, delta,
		},
		Choices: []menu{{"distribution", "Number of trials", []choice{{event.TruncatedNegativeBinomial, "truncated negative binomial"}, {event.PoissonTrials, "Poisson"}}}, units, accountant},
	},
}
