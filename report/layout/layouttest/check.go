// Package layouttest finds what is wrong with a page, for the tests of all packages that make one.
package layouttest

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
)

var (
	svgElement  = regexp.MustCompile(`(?s)<svg .*?</svg>`)
	notANumber  = regexp.MustCompile(`\b(NaN|[+-]?Inf)\b`)
	loads       = regexp.MustCompile(`(?i)<(script|iframe|object|embed|img|video|audio|base|form)\b|\bsrc=|url\(|@import|\bon[a-z]+="|xlink`)
	linkTarget  = regexp.MustCompile(`href="([^"]*)"`)
	identity    = regexp.MustCompile(` id="([^"]*)"`)
	openingPath = regexp.MustCompile(`^M(-?[0-9.]+) (-?[0-9.]+)`)
)

// Faults lists what no report may have.
func Faults(page string) (out []string) {
	if m := notANumber.FindString(page); m != "" {
		out = append(out, "prints "+m)
	}
	if m := loads.FindString(page); m != "" {
		out = append(out, "loads or runs something: "+m)
	}
	for _, m := range linkTarget.FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(m[1], "#") && m[1] != "data:," {
			out = append(out, "links to "+m[1])
		}
	}
	seen := map[string]bool{}
	for _, m := range identity.FindAllStringSubmatch(page, -1) {
		if seen[m[1]] {
			out = append(out, "two elements are called "+m[1])
		}
		seen[m[1]] = true
	}
	return append(out, SVGFaults(page)...)
}

// SVGFaults lists what is wrong with a page's pictures.
func SVGFaults(page string) (out []string) {
	for _, s := range svgElement.FindAllString(page, -1) {
		if err := CheckSVG(s); err != nil {
			out = append(out, err.Error())
		}
	}
	return out
}

// CheckSVG says whether a picture is well-formed and inside its frame.
func CheckSVG(s string) error {
	d := xml.NewDecoder(strings.NewReader(s))
	inChart := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("not well-formed: %w", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range start.Attr {
			if start.Name.Local == "svg" && a.Name.Local == "class" {
				inChart = a.Value == "chart"
			}
			if !inChart {
				continue
			}
			limit := -1.0
			switch a.Name.Local {
			case "x", "x1", "x2", "cx":
				limit = chart.Width
			case "y", "y1", "y2", "cy":
				limit = chart.Height
			case "d":
				if m := openingPath.FindStringSubmatch(a.Value); m == nil || outside(m[1], chart.Width) || outside(m[2], chart.Height) {
					return fmt.Errorf("a path begins outside: %.40s", a.Value)
				}
			}
			if limit > 0 && outside(a.Value, limit) {
				return fmt.Errorf("<%s %s=%q> lies outside", start.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
}

func outside(value string, limit float64) bool {
	v, err := strconv.ParseFloat(value, 64)
	return err != nil || !(v >= -2 && v <= limit+2)
}

// BrokenWriter takes nothing.
type BrokenWriter struct{}

func (BrokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
