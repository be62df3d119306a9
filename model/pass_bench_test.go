package model

import (
	"os"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/rng"
)

func schoolData(tb testing.TB) *data.Federation {
	folder := os.Getenv("COTERIE_DATA")
	if folder == "" {
		tb.Skip("COTERIE_DATA is not set: no School data")
	}
	run := config.Default("school", "local", "paper")
	f, err := data.NewFolder(folder).Load(run.Data, 1)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// BenchmarkSchoolEpoch is one epoch of all 139 schools in batches of 32, clipped
// and noised, on one core; the metric is the time of one example's gradient.
func BenchmarkSchoolEpoch(b *testing.B) {
	f := schoolData(b)
	m, err := Of(runOf(config.Model{Kind: "linear", Intercept: true}, HalfSquaredError), f.Shape())
	if err != nil {
		b.Fatal(err)
	}
	l := learnerOf(b, m)
	theta, grad := make([]float64, m.Parameters()), make([]float64, m.Parameters())
	family := rng.NewFamily(1, "bench")
	stream := family.Stream(0, 0)
	order := make([]int, 300)
	for i := range order {
		order[i] = i
	}
	examples := 0
	steps := paidSteps(b, 1, 2, mech.Randomness{Keyed: stream})
	b.ReportAllocs()
	for b.Loop() {
		for k := range f.Train {
			c := &f.Train[k]
			size := min(32, c.Len())
			for from := 0; from+size <= c.Len(); from += size {
				step := Step{Paid: steps, Divisor: size}
				if err := l.Gradient(grad, theta, c, order[from:from+size], begin(b, step)); err != nil {
					b.Fatal(err)
				}
				examples += size
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(examples), "ns/example")
}

// BenchmarkRotatedMNIST is what one worker does for one silo's epoch of rotated
// MNIST: 15 batches of 100 pictures; the metric is the time of one picture.
func BenchmarkRotatedMNIST(b *testing.B) {
	m, c := randomPictures(b, "cross-silo-mnist", 28, 28, 1, 1500)
	l := learnerOf(b, m)
	theta, grad := make([]float64, m.Parameters()), make([]float64, m.Parameters())
	s := stream("bench")
	m.Initialise(theta, s)
	shift := normals[float64]("shift", len(theta), 1e-3)
	order := make([]int, c.Len())
	for i := range order {
		order[i] = i
	}
	s.Shuffle(order)
	for _, v := range []struct {
		name string
		step Step
	}{
		{"plain", Step{}},
		{"clipped", Step{Paid: paidSteps(b, 1, 1, mech.Randomness{Keyed: s}), Divisor: 100}},
		{"shifted", Step{Paid: paidSteps(b, 1, 1, mech.Randomness{Keyed: s}), Divisor: 100, Shift: shift}},
		{"exact", Step{Paid: paidSteps(b, 1, 1, mech.Randomness{Exact: mech.SystemEntropy()}), Divisor: 100}},
	} {
		b.Run(v.name, func(b *testing.B) {
			pictures := 0
			for b.Loop() {
				for from := 0; from < len(order); from += 100 {
					if err := l.Gradient(grad, theta, c, order[from:from+100], begin(b, v.step)); err != nil {
						b.Fatal(err)
					}
					pictures += 100
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(pictures), "us/picture")
		})
	}
	b.Run("judge", func(b *testing.B) {
		pictures := 0
		for b.Loop() {
			if _, _, err := l.Judge(theta, c); err != nil {
				b.Fatal(err)
			}
			pictures += c.Len()
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(pictures), "us/picture")
	})
}

// randomPictures is a named network and a client with pictures of noise.
func randomPictures(tb testing.TB, name string, height, width, channels, n int) (Model, *data.Client) {
	s := stream("pictures")
	im := &data.Images{Height: height, Width: width, Channels: channels, Pixels: make([]byte, n*height*width*channels)}
	for i := range im.Pixels {
		im.Pixels[i] = byte(s.Below(256))
	}
	c := data.Client{Pictures: data.Pictures{Images: im}}
	for i := range n {
		im.Labels = append(im.Labels, s.Below(10))
		c.Index = append(c.Index, i)
	}
	f := &data.Federation{Classes: 10, Train: []data.Client{c}}
	m, err := Of(runOf(config.Model{Kind: "network", Name: name}, CrossEntropy), f.Shape())
	if err != nil {
		tb.Fatal(err)
	}
	return m, &c
}
