package study

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/report/chart"
)

// check lists all that would make the page wrong: a picture or a figure
// that is quietly bent would mislead.
func check(s Study) error {
	var errs []error
	for i, r := range s.Rows {
		if r.Low != nil && r.High != nil && *r.Low > *r.High {
			errs = append(errs, fmt.Errorf("row %d (%q): the spread runs from %v down to %v; exchange low and high",
				i+1, r.Label, float64(*r.Low), float64(*r.High)))
		}
		if err := checkVerdict(r); err != nil {
			errs = append(errs, fmt.Errorf("row %d (%q, %s): %w", i+1, r.Label, r.Metric, err))
		}
	}
	for i, c := range s.Charts {
		for _, p := range c.Reach {
			if err := checkPoint(c, p); err != nil || !chart.Drawable(p.X) || !chart.Drawable(p.Y) {
				errs = append(errs, fmt.Errorf("chart %d (%q): its axes cannot reach (%v, %v); give places that are finite and have one on these axes", i+1, c.Title, p.X, p.Y))
			}
		}
		for j, series := range c.Series {
			for k, p := range series.Points {
				if err := checkPoint(c, p); err != nil {
					errs = append(errs, fmt.Errorf("chart %d (%q), series %d (%q), point %d: %w", i+1, c.Title, j+1, series.Name, k+1, err))
					break // one fault a series says enough
				}
			}
		}
	}
	for i, strip := range s.Strips {
		for j, p := range strip.Pictures {
			if err := checkPicture(p); err != nil {
				errs = append(errs, fmt.Errorf("strip %d (%q), picture %d (%q): %w", i+1, strip.Title, j+1, p.Caption, err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkVerdict holds a verdict against what there is to compare with.
func checkVerdict(r Row) error {
	switch judged := r.Verdict == Agrees || r.Verdict == Differs; {
	case judged && r.Paper == nil && r.Sentence == "":
		return fmt.Errorf("the verdict is %q, but the row has neither a number nor a sentence of the paper; give one of them, or the verdict %q", r.Verdict, NoNumber)
	case r.Verdict == NoNumber && r.Paper != nil:
		return fmt.Errorf("the verdict is %q beside the paper's %v; if it is of something else, say %q", r.Verdict, float64(*r.Paper), Incomparable)
	case !judged && r.Sentence != "":
		return fmt.Errorf("the verdict is %q beside a sentence of the paper; leave the sentence out", r.Verdict)
	}
	return nil
}

func checkPoint(c Chart, p Point) error {
	switch {
	case c.LogX && p.X < 0:
		return fmt.Errorf("x is %v, and a log axis has no place for a negative value; use a linear axis", p.X)
	case c.LogY && p.Y < 0:
		return fmt.Errorf("y is %v, and a log axis has no place for a negative value; use a linear axis", p.Y)
	case c.LogY && p.Low != p.High && min(p.Low, p.High) < 0:
		return fmt.Errorf("the interval from %v to %v is partly negative, and a log axis has no place for it; use a linear axis", p.Low, p.High)
	case p.Low > p.High:
		return fmt.Errorf("the interval runs from %v down to %v; exchange low and high", p.Low, p.High)
	}
	return nil
}

func checkPicture(p Picture) error {
	if p.Height < 1 || p.Width < 1 {
		return fmt.Errorf("%d x %d pixels; height and width must be at least 1", p.Height, p.Width)
	}
	if p.Height > math.MaxInt/p.Width || p.Height*p.Width != len(p.Pixels) {
		return fmt.Errorf("%d bytes do not fill %d x %d pixels; give one byte a pixel, row by row", len(p.Pixels), p.Height, p.Width)
	}
	return nil
}
