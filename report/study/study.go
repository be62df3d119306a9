// Package study shows an experiment of a paper, ours beside theirs: a page and a table for a terminal.
package study

import "github.com/coterie-fl/coterie/dp/event"

// Study is an experiment of a paper, ours beside theirs: what `coterie reproduce`
// shows. Without a paper it is one's own figures alone.
type Study struct {
	ID      string  `json:"id"`
	Title   string  `json:"title"`
	Paper   string  `json:"paper"` // paper and figure or table; empty: there is none to compare with
	Scale   string  `json:"scale"`
	Seeds   int     `json:"seeds"`
	Seconds float64 `json:"seconds"` // 0: not measured
	// Intro says in a few sentences what is tried and what the papers claim.
	Intro []string `json:"intro"`
	// Caveats are printed before the figures: what they do not show.
	Caveats []string `json:"caveats"`
	Rows    []Row    `json:"rows"`
	Charts  []Chart  `json:"charts"`
	Strips  []Strip  `json:"strips"`
	Command string   `json:"command"`
	Version string   `json:"version"`
	Kernel  string   `json:"kernel"`
	// Devices say what the figures were computed by, where that is not Kernel alone.
	Devices []string `json:"devices,omitempty"`
	// CellsOf is the version of the earlier program that made some of its cells; empty: none did.
	CellsOf string `json:"cells_of,omitempty"`
	// CommittedSeconds are those of cells that came with the program.
	CommittedSeconds float64 `json:"-"`
	Report           string  `json:"report"`
}

// Row is one figure: the paper's, ours with its spread over seeds, and a verdict.
type Row struct {
	Section  string         `json:"section"` // rows of a section form a table
	Label    string         `json:"label"`
	Metric   string         `json:"metric"`
	Settings map[string]any `json:"settings"`
	Paper    *event.Number  `json:"paper"`    // null: the paper has no number
	Sentence string         `json:"sentence"` // of the paper, that a verdict without a number is on
	Measured *event.Number  `json:"measured"`
	Low      *event.Number  `json:"low"`
	High     *event.Number  `json:"high"`
	Unit     string         `json:"unit"`
	Verdict  Verdict        `json:"verdict"`
	Note     string         `json:"note"`
	// Why is, of a row that differs, the reason that we believe and how it was tested.
	Why string `json:"why,omitempty"`
}

// Verdict is a plain word on a row.
type Verdict string

// The verdicts. Agrees and Differs are for rows with a number or a sentence of the paper.
const (
	Agrees       Verdict = "agrees"
	Differs      Verdict = "differs"
	NoNumber     Verdict = "no number in the paper"
	Incomparable Verdict = "cannot be compared" // the paper has a number, of something else
)

// Chart is curves or points with intervals, of one or several series.
type Chart struct {
	Title  string `json:"title"`
	Note   string `json:"note"`
	XTitle string `json:"x_title"`
	YTitle string `json:"y_title"`
	LogX   bool   `json:"log_x"` // zeros are drawn apart, at the left
	LogY   bool   `json:"log_y"`
	Bars   bool   `json:"bars"` // a histogram: X is the middle of each bar
	// Reach are places that the axes reach at least, so that charts beside one another have
	// the same.
	Reach  []Point  `json:"reach,omitempty"`
	Series []Series `json:"series"`
}

// Series is one curve.
type Series struct {
	Name  string `json:"name"`
	Paper bool   `json:"paper"` // the paper's own figures: drawn apart
	// Loose points are not joined by a line: a cloud, or single places.
	Loose bool `json:"loose,omitempty"`
	// Of is the name of a series that this one is in another way, such as its closed form: it
	// has the same colour.
	Of     string  `json:"of,omitempty"`
	Points []Point `json:"points"`
}

// Point has an interval if Low and High differ.
type Point struct {
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Strip is a row of grey pictures with captions, such as an original and what an
// attack made of it.
type Strip struct {
	Title    string    `json:"title"`
	Note     string    `json:"note"`
	Pictures []Picture `json:"pictures"`
}

// Picture is grey, 0 black and 255 white.
type Picture struct {
	Caption string `json:"caption"`
	Height  int    `json:"height"`
	Width   int    `json:"width"`
	Pixels  []byte `json:"pixels"`
}
