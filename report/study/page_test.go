package study

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/coterie-fl/coterie/report/layout/layouttest"
)

func render(t *testing.T, s Study) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var inlinePicture = regexp.MustCompile(`<img src="data:image/png;base64,([^"]*)" width="\d+" height="\d+" alt="[^"]+">`)

// pageFaults are those of any report; pictures that are part of the file load nothing.
func pageFaults(page string) []string {
	return layouttest.Faults(strings.NewReplacer("&#43;", "+").Replace(inlinePicture.ReplaceAllString(page, "")))
}

// unbalanced says where a page opens an element that it does not close.
func unbalanced(page string) error {
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var open []string
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.StartElement:
			if !slices.Contains(xml.HTMLAutoClose, e.Name.Local) {
				open = append(open, e.Name.Local)
			}
		case xml.EndElement:
			if slices.Contains(xml.HTMLAutoClose, e.Name.Local) {
				continue
			}
			if len(open) == 0 || open[len(open)-1] != e.Name.Local {
				return fmt.Errorf("</%s> closes %v", e.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%v is not closed", open)
	}
	return nil
}

func TestStudyPage(t *testing.T) {
	for _, s := range []Study{hospitalStudy(), fairnessStudy()} {
		page := render(t, s)
		for _, f := range pageFaults(page) {
			t.Errorf("%s: %s", s.ID, f)
		}
		if err := unbalanced(page); err != nil {
			t.Errorf("%s: %v", s.ID, err)
		}
		want := []string{"prefers-color-scheme: dark", "@media print", "Before you read the figures",
			s.Title, s.Paper, s.Command, s.Version, s.Kernel, summarySentence(s), duration(s.Seconds)}
		want = append(append(want, s.Intro...), s.Caveats...)
		for _, r := range s.Rows {
			want = append(want, r.Label, r.Note)
		}
		for _, c := range s.Charts {
			want = append(want, c.Title, c.Note, c.XTitle)
		}
		for _, strip := range s.Strips {
			for _, p := range strip.Pictures {
				want = append(want, p.Caption)
			}
		}
		for _, w := range want {
			if !strings.Contains(page, html.EscapeString(w)) {
				t.Errorf("%s: the page does not contain %q", s.ID, w)
			}
		}
		if !strings.Contains(page, "default-src 'none'") {
			t.Errorf("%s: the page may load things", s.ID)
		}
		if n := strings.Count(page, `<tr role="row">`); n != len(s.Rows)+strings.Count(page, "<thead") {
			t.Errorf("%s: %d rows shown, want %d", s.ID, n, len(s.Rows))
		}
		if n := strings.Count(page, `<svg class="chart"`); n != len(s.Charts) {
			t.Errorf("%s: %d charts shown, want %d", s.ID, n, len(s.Charts))
		}
		if before, after := strings.Index(page, `class="caveats"`), strings.Index(page, "<main>"); before < 0 || before > after {
			t.Errorf("%s: the caveats do not stand before the figures", s.ID)
		}
	}
}

// Sums by hand: of the hospital study 14 rows agree and 9 differ.
func TestStudySummary(t *testing.T) {
	if got, want := summarySentence(hospitalStudy()), "Of 47 figures, 14 agree with the paper, 9 differ and 24 have no number in the paper."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	one := Study{Paper: "P", Rows: []Row{{Verdict: Agrees}, {Verdict: Differs}, {Verdict: NoNumber}, {Verdict: Incomparable}, {Verdict: "perhaps"}}}
	if got, want := summarySentence(one), "Of 5 figures, 1 agrees with the paper, 1 differs, 1 has no number in the paper and 2 cannot be compared."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	one.Paper = ""
	if got, want := summarySentence(one), "5 figures were measured."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := summarySentence(Study{}); got != "No figure was measured." {
		t.Errorf("without rows: %q", got)
	}
}

// Verdicts are told by word and by shape, not by colour alone.
func TestVerdictsCannotBeMistaken(t *testing.T) {
	shapes := map[string]Verdict{}
	for _, v := range []Verdict{Agrees, Differs, NoNumber, Incomparable} {
		badge := verdictBadge(v)
		if other, ok := shapes[string(badge.Icon)]; ok {
			t.Errorf("%s has the shape of %s", v, other)
		}
		shapes[string(badge.Icon)] = v
		page := render(t, Study{Paper: "P", Rows: []Row{judged(v)}})
		if !strings.Contains(page, `class="badge `+badge.Class+`"`) || !strings.Contains(page, string(v)+"</span></td>") {
			t.Errorf("the page does not show %q", v)
		}
	}
	if verdictBadge("").Word != "no verdict" || verdictBadge("perhaps").Word != "perhaps" {
		t.Error("an unknown verdict is not told as it is")
	}
}

func TestStudyPicturesSurvive(t *testing.T) {
	s := hospitalStudy()
	found := inlinePicture.FindAllStringSubmatch(render(t, s), -1)
	if len(found) != len(s.Strips[0].Pictures) {
		t.Fatalf("%d pictures, want %d", len(found), len(s.Strips[0].Pictures))
	}
	for i, m := range found {
		raw, err := base64.StdEncoding.DecodeString(html.UnescapeString(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := png.Decode(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		grey, ok := decoded.(*image.Gray)
		if !ok || !bytes.Equal(grey.Pix, s.Strips[0].Pictures[i].Pixels) {
			t.Errorf("picture %d is not the one that was given", i)
		}
	}
}

func TestSameStudyGivesSameBytes(t *testing.T) {
	made := func() Study {
		s := hospitalStudy()
		for i := range 6 { // only their settings tell these apart
			s.Rows = append(s.Rows, Row{Label: "x", Settings: map[string]any{"a": i, "b": 1, "c": 2, "d": 3, "e": 4}})
		}
		return s
	}
	first := render(t, made())
	for range 2 {
		if render(t, made()) != first {
			t.Fatal("the same study gave another page")
		}
	}
}

func TestHostileStudyIsEscaped(t *testing.T) {
	const evil = "<script>alert('x')</script>\"><img src=x onerror=\"y\"> \x00\x1b[31m\xff --> ]]> ${x} https://example.org"
	s := Study{ID: evil, Title: evil, Paper: evil, Scale: evil, Intro: []string{evil}, Caveats: []string{evil}, Command: evil, Version: evil, Kernel: evil,
		Rows: []Row{
			{Section: evil, Label: evil, Metric: evil, Unit: evil, Verdict: evil, Note: evil, Measured: number(1)},
			{Section: evil, Label: evil, Metric: evil, Unit: evil, Settings: map[string]any{evil: evil}, Measured: number(2)},
		},
		Charts: []Chart{
			{Title: evil, Note: evil, XTitle: evil, YTitle: evil, Series: []Series{{Name: evil, Points: []Point{{X: 1, Y: 2}, {X: math.NaN()}}}}},
			{Title: evil, Bars: true, Series: []Series{{Name: evil, Paper: true, Points: []Point{{X: 1, Y: 2}}}}},
		},
		Strips: []Strip{{Title: evil, Note: evil, Pictures: []Picture{{evil, 1, 1, []byte{7}}}}},
	}
	page := inlinePicture.ReplaceAllString(render(t, s), "")
	for _, bad := range []string{"<script", "<img"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, f := range layouttest.SVGFaults(page) {
		t.Error(f)
	}
	var b bytes.Buffer
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("the table holds %q, which can steer the terminal", r)
		}
	}
}

func TestStudyEdgeCases(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	many := Study{Title: "many"}
	for i := range 600 {
		many.Rows = append(many.Rows, Row{Section: []string{"a", "b", ""}[i%3], Label: "x", Metric: "m", Settings: map[string]any{"i": i},
			Paper: number(float64(i)), Measured: number(float64(i) + 0.5), Low: number(float64(i)), High: number(float64(i) + 1), Verdict: Agrees})
	}
	long := Series{Name: "long"}
	for i := range 20000 {
		y := math.Sin(float64(i) / 900)
		long.Points = append(long.Points, Point{float64(i), y, y - 0.1, y + 0.1})
	}
	crowd := Chart{}
	for i := range 40 {
		crowd.Series = append(crowd.Series, Series{Name: strings.Repeat("s", i+1), Points: []Point{{float64(i), 1, 0, 2}}})
	}
	chart := func(c Chart, points ...Point) Study {
		c.Series = append(c.Series, Series{Name: "ours", Points: points}, Series{Name: "theirs", Paper: true, Points: points})
		return Study{Charts: []Chart{c}}
	}
	cases := map[string]Study{
		"nothing at all":     {},
		"many rows":          many,
		"nil figures":        {Rows: []Row{{Label: "x"}, {Low: number(1)}, {High: number(1)}, {Paper: number(3)}}},
		"infinite figures":   {Rows: []Row{{Paper: number(inf), Measured: number(-inf), Low: number(-inf), High: number(inf)}, {Measured: number(nan), Low: number(nan), High: number(nan)}, {Measured: number(1), Paper: number(2)}}},
		"huge and tiny":      {Rows: []Row{{Paper: number(1e308), Measured: number(-1e308), Low: number(5e-324), High: number(1e-300)}, {Measured: number(1e-320), Paper: number(1e300)}}},
		"no series":          {Charts: []Chart{{Title: "x"}, {Title: "y", Bars: true}}},
		"no points":          chart(Chart{}),
		"one point":          chart(Chart{}, Point{X: 3, Y: 4}),
		"one zero on logs":   chart(Chart{LogX: true, LogY: true}, Point{}),
		"zeros on logs":      chart(Chart{LogX: true, LogY: true}, Point{0, 0, 0, 3}, Point{1, 5, 0, 9}, Point{10, 50, 40, inf}),
		"narrow log":         chart(Chart{LogX: true, LogY: true}, Point{X: 5.2, Y: 6.1}, Point{X: 5.3, Y: 6.9}),
		"wide log":           chart(Chart{LogX: true, LogY: true}, Point{X: 1e-280, Y: 1e290}, Point{X: 1e280, Y: 1e-280}),
		"denormal on logs":   chart(Chart{LogX: true, LogY: true}, Point{X: 5e-324, Y: 1}, Point{X: 1, Y: 5e-324}, Point{X: 1, Y: 1}),
		"not finite":         chart(Chart{}, Point{X: nan, Y: 1}, Point{X: 1, Y: inf}, Point{X: -inf, Y: -inf}, Point{1, 2, -inf, inf}, Point{2, 3, nan, nan}),
		"only not finite":    chart(Chart{Bars: true}, Point{X: nan, Y: 1}),
		"huge":               chart(Chart{}, Point{X: -1e300, Y: 1e300}, Point{X: 1e300, Y: -1e300}, Point{X: 1e308, Y: 1}),
		"nearly equal":       chart(Chart{}, Point{X: 1, Y: 1}, Point{X: 1 + 1e-15, Y: 1 + 1e-15}),
		"twice at one place": chart(Chart{}, Point{X: 1, Y: 1}, Point{X: 1, Y: 2}),
		"one bar":            chart(Chart{Bars: true}, Point{X: 3, Y: 4}),
		"bars of nothing":    chart(Chart{Bars: true}, Point{X: 3, Y: 0}, Point{X: 4, Y: 0}),
		"bars below zero":    chart(Chart{Bars: true}, Point{X: 1, Y: -3}, Point{X: 2, Y: 4}),
		"bars on logs":       chart(Chart{Bars: true, LogX: true, LogY: true}, Point{X: 0, Y: 3}, Point{X: 1, Y: 0}, Point{X: 10, Y: 100}),
		"uneven bars":        chart(Chart{Bars: true}, Point{X: 0, Y: 3}, Point{X: 1e-9, Y: 2}, Point{X: 10, Y: 100}),
		"many points":        {Charts: []Chart{{Series: []Series{long}}, {Bars: true, Series: []Series{long}}}},
		"many series":        {Charts: []Chart{crowd, {Bars: true, Series: crowd.Series}}},
		"no pictures":        {Strips: []Strip{{Title: "x"}, {}}},
		"odd pictures":       {Strips: []Strip{{Pictures: []Picture{{"", 1, 1, []byte{0}}, {"wide", 1, 900, make([]byte, 900)}, {"high", 300, 1, make([]byte, 300)}}}}},
		"odd times":          {Seconds: nan, Seeds: -1},
	}
	for name, s := range cases {
		t.Run(name, func(t *testing.T) {
			page := render(t, s)
			for _, f := range pageFaults(page) {
				t.Error(f)
			}
			if err := unbalanced(page); err != nil {
				t.Error(err)
			}
			if len(page) > 1<<20 {
				t.Errorf("the page has %d bytes", len(page))
			}
			if err := Table(io.Discard, s); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStudySaysWhatIsNotDrawn(t *testing.T) {
	s := Study{Charts: []Chart{{Note: "Note.", Series: []Series{
		{Name: "a", Points: []Point{{X: 1, Y: math.Inf(1)}, {X: 1, Y: 1}}}, {Name: "b"},
	}}, {Series: make([]Series, mostSeries+3)}}}
	page := render(t, s)
	for _, want := range []string{"Note. Not drawn: 1 point of “a” without a finite place. “b” has no points.",
		"The first 24 series are drawn, 3 are not.", "There is nothing to draw."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestStudyFaultsAreRefusedTogether(t *testing.T) {
	chart := func(c Chart, p Point) Study {
		c.Title, c.Series = "C", []Series{{Name: "S", Points: []Point{{X: 1, Y: 1}, p}}}
		return Study{Charts: []Chart{c}}
	}
	picture := func(h, w, n int) Study {
		return Study{Strips: []Strip{{Title: "T", Pictures: []Picture{{"P", h, w, make([]byte, n)}}}}}
	}
	cases := map[string]struct {
		s    Study
		want string
	}{
		"negative x":        {chart(Chart{LogX: true}, Point{X: -1, Y: 1}), `chart 1 ("C"), series 1 ("S"), point 2: x is -1`},
		"negative y":        {chart(Chart{LogY: true}, Point{X: 1, Y: -2}), "y is -2"},
		"minus infinity":    {chart(Chart{LogY: true}, Point{X: 1, Y: math.Inf(-1)}), "y is -Inf"},
		"negative interval": {chart(Chart{LogY: true}, Point{1, 1, -0.5, 2}), "interval from -0.5 to 2"},
		"turned interval":   {chart(Chart{}, Point{1, 1, 2, 0}), "exchange low and high"},
		"turned spread":     {Study{Rows: []Row{{Label: "L", Low: number(2), High: number(1)}}}, `row 1 ("L")`},
		"picture too short": {picture(2, 3, 5), `strip 1 ("T"), picture 1 ("P"): 5 bytes do not fill 2 x 3 pixels`},
		"picture too long":  {picture(2, 3, 7), "7 bytes"},
		"no height":         {picture(0, 3, 0), "at least 1"},
		"negative size":     {picture(-2, -3, 6), "at least 1"},
		"overflowing size":  {picture(math.MaxInt/2+1, 4, 0), "do not fill"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			err := HTML(&b, c.s)
			if err == nil || !strings.Contains(err.Error(), c.want) || b.Len() > 0 {
				t.Errorf("error %v, %d bytes written; want %q and none", err, b.Len(), c.want)
			}
		})
	}
	both := picture(2, 3, 5)
	both.Rows = []Row{{Low: number(2), High: number(1)}}
	if err := HTML(io.Discard, both); err == nil || !strings.Contains(err.Error(), "row 1") || !strings.Contains(err.Error(), "5 bytes") {
		t.Errorf("not all faults are named: %v", err)
	}
	if err := HTML(io.Discard, chart(Chart{}, Point{-1, -1, -2, 0})); err != nil {
		t.Errorf("negative values on linear axes are refused: %v", err)
	}
}

func TestWriteStudy(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "study.html")
	if err := WritePage(path, hospitalStudy()); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil || string(written) != render(t, hospitalStudy()) {
		t.Errorf("the file is not the page (%v)", err)
	}
	bad := Study{Rows: []Row{{Low: number(2), High: number(1)}}}
	if err := WritePage(path, bad); err == nil {
		t.Error("a faulty study was written")
	}
	if now, _ := os.ReadFile(path); !bytes.Equal(now, written) {
		t.Error("a faulty study spoilt the file")
	}
	if err := WritePage(filepath.Join(dir, "missing", "study.html"), Study{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	if err := HTML(layouttest.BrokenWriter{}, Study{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("StudyHTML on a broken writer: %v", err)
	}
	if err := Table(layouttest.BrokenWriter{}, Study{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("StudyTable on a broken writer: %v", err)
	}
}

// The checks above can fail: each of these pages has one fault.
func TestStudyFaultsAreFound(t *testing.T) {
	if unbalanced("<div><p>x</div>") == nil || unbalanced("<div>") == nil {
		t.Error("an element that is not closed is not found")
	}
	for _, page := range []string{
		`<img src="https://example.org/x.png" width="1" height="1" alt="x">`, `<img src="data:image/png;base64,AA" width="1" height="1" alt="">`,
		"<td>NaN</td>", `<svg class="chart"><rect x="-9" y="3"/></svg>`,
	} {
		if len(pageFaults(page)) == 0 {
			t.Errorf("no fault found in %s", page)
		}
	}
}

// TestContentsAreShort: sections that go on with the one before are not listed, those that
// only begin alike are.
func TestContentsAreShort(t *testing.T) {
	p := page{Sections: []section{{Title: "Table"}, {Title: "Table: what the text claims"}, {Title: "Table 2"}, {Title: "Other: what the text claims"}}}
	var listed []string
	for _, s := range p.Contents() {
		listed = append(listed, s.Title)
	}
	if got := strings.Join(listed, "|"); got != "Table|Table 2|Other: what the text claims" {
		t.Errorf("listed are %s", got)
	}
}
