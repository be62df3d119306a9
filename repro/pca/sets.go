package pca

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/repro/lab"
)

// set is rows to find components of, and others to judge them by.
type set struct {
	name        string
	train, test []data.Client
	features    int
	pool        int // pixels of a side that are made one; 1: none
}

// each gives every row of some clients, small pictures of them where the set has it so.
func (s *set) each(clients []data.Client, do func(x []float64) error) error {
	side := int(math.Sqrt(float64(s.features))) * s.pool
	row, small := make([]float64, s.features*s.pool*s.pool), make([]float64, s.features)
	for c := range clients {
		for i := range clients[c].Len() {
			if err := clients[c].Values(row, i); err != nil {
				return err
			}
			x := row
			if s.pool > 1 {
				clear(small)
				for at, v := range row {
					small[at/side/s.pool*(side/s.pool)+at%side/s.pool] += v / float64(s.pool*s.pool)
				}
				x = small
			}
			if err := do(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// setsOf are those of a scale: all have drawn rows, smoke small pictures of a few digits,
// quick the two public sets of pictures and Adult, full handwriting by writer as well.
func setsOf(l *lab.Lab) ([]*set, error) {
	out := []*set{drawn()}
	if l.Scale == lab.Smoke {
		s, err := pictures(l, "mnist", "MNIST, 3,000 of 7x7", 3000, 4)
		return append(out, s), err
	}
	for _, load := range []func(l *lab.Lab) (*set, error){
		func(l *lab.Lab) (*set, error) { return pictures(l, "mnist", "MNIST", 60000, 1) },
		func(l *lab.Lab) (*set, error) { return pictures(l, "fashion-mnist", "Fashion-MNIST", 60000, 1) },
		adult, unipen,
	} {
		s, err := load(l)
		if err != nil {
			return nil, err
		}
		if out = append(out, s); l.Scale == lab.Quick && len(out) == 4 {
			break
		}
	}
	return out, nil
}

// drawnName says what is special about the drawn rows.
const drawnName = "Drawn rows, a fifth of them eight times as long and elsewhere"

// drawn are rows whose long ones point elsewhere than their short ones: a clip that shortens
// the long ones has the wrong directions win.
func drawn() *set {
	const features, short, long = 30, 5, 3
	s := &set{name: drawnName, features: features, pool: 1}
	family := rng.NewFamily(1, "rows of two lengths")
	for part, into := range []*[]data.Client{&s.train, &s.test} {
		src := family.Stream(0, part)
		rows := data.Rows{Features: features}
		for i := range 3000 {
			x := make([]float64, features)
			for j := range x {
				x[j] = 0.02 * src.Normal()
				switch {
				case i%5 > 0 && j < short:
					x[j] += src.Normal() / math.Sqrt(short)
				case i%5 == 0 && j >= short && j < short+long:
					x[j] += 8 * src.Normal() / math.Sqrt(long)
				}
			}
			rows.X, rows.Y = append(rows.X, x...), append(rows.Y, 0)
		}
		*into = []data.Client{{Rows: rows}}
	}
	return s
}

func pictures(l *lab.Lab, folder, name string, most, pool int) (*set, error) {
	s := &set{name: name, pool: pool}
	for part, into := range map[string]*[]data.Client{"train": &s.train, "t10k": &s.test} {
		im, err := data.LoadIDXImages(l.Data, folder, part, 10)
		if err != nil {
			return nil, err
		}
		c := data.Client{Pictures: data.Pictures{Images: im}}
		for i := range min(im.Len(), most) {
			c.Index = append(c.Index, i)
		}
		*into = []data.Client{c}
		s.features = im.Height * im.Width / (pool * pool)
	}
	return s, nil
}

// adult has its numeric columns, by the public scales of the loader.
func adult(l *lab.Lab) (*set, error) {
	s := &set{name: "Adult, numeric columns", pool: 1}
	for part, into := range map[string]*[]data.Client{"train": &s.train, "test": &s.test} {
		t, err := data.LoadAdult(l.Data, part, data.TabularOptions{})
		if err != nil {
			return nil, err
		}
		var numeric []int
		for j, name := range t.Names {
			if !strings.Contains(name, "=") {
				numeric = append(numeric, j)
			}
		}
		rows := data.Rows{Features: len(numeric), Y: t.Y}
		for i := range t.Len() {
			for _, j := range numeric {
				rows.X = append(rows.X, t.X[i*t.Features+j])
			}
		}
		*into = []data.Client{{Rows: rows}}
		s.features = len(numeric)
	}
	return s, nil
}

func unipen(l *lab.Lab) (*set, error) {
	d := config.Default("writers", "pca", "sound").Data
	d.Rotated = 0
	f, err := l.Folder.Load(d, 1)
	if err != nil {
		return nil, err
	}
	return &set{name: "UNIPEN by writer", train: f.Train, test: f.Validation, features: 28 * 28, pool: 1}, nil
}

// steps are where rows are clipped, as shares of the median norm.
var steps = []float64{1. / 16, 1. / 8, 1. / 4, 1. / 2, 1, 2, 4, 8, 16}

// sums are second moments of a set, at every clip and without one.
type sums struct {
	features int
	rows     int
	clips    []float64
	clipped  [][]float64 // triangles, by clip
	plain    []float64   // a triangle
	test     []float64   // a matrix, of the rows that judge
	length   float64     // its trace
}

// sum reads the rows twice: once for their median norm, which a user may not look at, and
// once for all clips. A row adds itself to the sums whose clip it fits, and its unit vector
// to the others, times the clip's square.
func (s *set) sum() (*sums, error) {
	var norms []float64
	err := s.each(s.train, func(x []float64) error {
		norm, err := mech.Norm(x)
		norms = append(norms, norm)
		return err
	})
	if err != nil {
		return nil, err
	}
	sorted := slices.Clone(norms)
	slices.Sort(sorted)
	out := &sums{features: s.features, rows: len(norms)}
	for _, share := range steps {
		out.clips = append(out.clips, share*sorted[len(sorted)/2])
	}
	whole, unit := make([]*mech.PlainMoments, len(steps)+1), make([]*mech.PlainMoments, len(steps)+1)
	at, row := 0, make([]float64, s.features)
	err = s.each(s.train, func(x []float64) error {
		norm := norms[at]
		at++
		first, _ := slices.BinarySearch(out.clips, norm) // the first clip that it fits
		if whole[first] == nil {
			whole[first], unit[first] = mech.NewPlainMoments(s.features), mech.NewPlainMoments(s.features)
		}
		for j, v := range x {
			row[j] = v / max(norm, math.SmallestNonzeroFloat64)
		}
		if err := unit[first].Add(row); err != nil {
			return err
		}
		return whole[first].Add(x)
	})
	if err != nil {
		return nil, err
	}
	length := mech.TriangleLength(s.features)
	out.plain = make([]float64, length)
	for range steps {
		out.clipped = append(out.clipped, make([]float64, length))
	}
	part := make([]float64, length)
	for first := range whole {
		if whole[first] == nil {
			continue
		}
		if err := whole[first].Unprotected(part); err != nil {
			return nil, err
		}
		for j, v := range part {
			out.plain[j] += v
			for i := first; i < len(steps); i++ {
				out.clipped[i][j] += v
			}
		}
		if err := unit[first].Unprotected(part); err != nil {
			return nil, err
		}
		for i := range first {
			for j, v := range part {
				out.clipped[i][j] += out.clips[i] * out.clips[i] * v
			}
		}
	}
	return out, out.judge(s)
}

// judge sums up the rows that judge.
func (m *sums) judge(s *set) error {
	plain, triangle := mech.NewPlainMoments(m.features), make([]float64, mech.TriangleLength(m.features))
	if err := s.each(s.test, plain.Add); err != nil {
		return err
	}
	if err := plain.Unprotected(triangle); err != nil {
		return err
	}
	for _, v := range triangle[:m.features] {
		m.length += v
	}
	if !(m.length > 0) {
		return fmt.Errorf("%s: the rows that judge are all zero", s.name)
	}
	m.test = make([]float64, m.features*m.features)
	return mech.Mirror(m.test, triangle, m.features)
}
