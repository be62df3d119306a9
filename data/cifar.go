package data

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/rng"
)

func init() {
	Register(Kind{
		Get: cifarFiles,
		DataKind: SiloKind("cifar10-silos", func(r *config.Run) {
			classified(r, "cross-silo-cifar")
			r.Data.Silos, r.Data.SiloClasses = 30, 5
			r.Privacy.Clip, r.Privacy.Delta = 8, 1e-4 // the authors publish no delta: below n^-1.1, as the paper asks
		}, "silos", "silo_classes", "train_limit"),
		Check: func(c *config.Checker, d config.Data) {
			c.Require(d.Silos*d.SiloClasses%cifarClasses == 0, "data.silos", "is %d with %d classes each; allowed: silos*classes a multiple of %d, so that every class has as many silos", d.Silos, d.SiloClasses, cifarClasses)
		},
		Shape: wholeShape(Shape{Classes: cifarClasses, Height: cifarSide, Width: cifarSide, Channels: 3}),
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			p, err := loadCIFARParts(f)
			if err != nil {
				return nil, err
			}
			return CIFARSilos(p.train, p.test, p.report, seed, d.Silos, d.SiloClasses, d.TrainLimit)
		},
		Words: func(d config.Data) string { return "CIFAR-10’s pictures: every silo has some of the classes" },
	})
}

// A silo's part of a class is drawn between these, before the parts are made to add
// up: so do paper 002's silos come to differ in size (Shamsian et al. 2021,
// "Personalized federated learning using hypernetworks", whose split it uses).
const (
	leastPart = 0.4
	mostPart  = 0.6
)

// CIFARSilos gives every silo classes of its own, each class to equally many silos,
// and shares a class among its silos in parts of different size. Both parts of the
// data are shared alike.
func CIFARSilos(train, test *Images, report LoadReport, seed uint64, silos, classes, limit int) (*Federation, error) {
	if classes < 1 || classes > cifarClasses || silos < 1 || silos*classes%cifarClasses != 0 {
		return nil, fmt.Errorf("CIFAR silos: %d silos of %d classes; allowed: 1 to %d classes, silos*classes a multiple of %d", silos, classes, cifarClasses, cifarClasses)
	}
	family := rng.NewFamily(seed, "cifar silos")
	owners := dealClasses(family.Stream(0, 0), silos, classes)
	parts := [2]*Images{train, test}
	var held [2][][]int
	for p, im := range parts {
		held[p] = make([][]int, silos)
		of := make([][]int, cifarClasses)
		for _, i := range keyedOrder(&family, 1+p, im.Len()) {
			of[im.Labels[i]] = append(of[im.Labels[i]], i)
		}
		for class, pictures := range of {
			share(family.Stream(3, class), held[p], owners[class], pictures)
		}
	}
	order := family.Stream(4, 0)
	out := newPictureSilos(cifarClasses, limit, report)
	for k := range silos {
		order.Shuffle(held[0][k]) // classes lie one after another: a limit must meet all
		name := fmt.Sprintf("silo %d", k)
		out.add(Client{Pictures: Pictures{train, held[0][k]}, Name: name, Held: &Client{Pictures: Pictures{test, held[1][k]}, Name: name}})
	}
	out.keep()
	return out.done()
}

// dealClasses gives every silo different classes, by chance among those that have
// most places left, and returns the silos of every class.
func dealClasses(s *rng.Stream, silos, classes int) [][]int {
	owners, left := make([][]int, cifarClasses), make([]int, cifarClasses)
	for c := range left {
		left[c] = silos * classes / cifarClasses
	}
	for k := range silos {
		taken := [cifarClasses]bool{}
		for range classes {
			var best []int
			for c, n := range left {
				switch {
				case taken[c]:
				case len(best) == 0 || n > left[best[0]]:
					best = []int{c}
				case n == left[best[0]]:
					best = append(best, c)
				}
			}
			c := best[s.Below(len(best))]
			taken[c] = true
			left[c]--
			owners[c] = append(owners[c], k)
		}
	}
	return owners
}

// share gives a class's pictures to its silos. The stream is keyed by the class
// alone: both parts of the data are cut at the same places.
func share(s *rng.Stream, held [][]int, owners, pictures []int) {
	parts, total := make([]float64, len(owners)), 0.0
	for i := range parts {
		parts[i] = leastPart + (mostPart-leastPart)*s.Float64()
		total += parts[i]
	}
	from, upTo := 0, 0.0
	for i, k := range owners {
		upTo += parts[i] / total
		to := int(upTo*float64(len(pictures)) + 0.5)
		if i == len(owners)-1 {
			to = len(pictures)
		}
		held[k] = append(held[k], pictures[from:to]...)
		from = to
	}
}
