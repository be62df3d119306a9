package study

import (
	"errors"
	"fmt"
	"math"
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
	}
	for i, c := range s.Charts {
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
