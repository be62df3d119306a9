package repro

import (
	"fmt"
	"time"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/report"
)

var inversion = Experiment{
	ID: "dlg", Title: "Gradient inversion of one client's update",
	Paper: "paper 000, figure 5; thesis 001, section 2.5.1 and figure 2.5",
	Needs: []string{"unipen-by-writer"},
	Quick: "2 min", Full: "1 h",
	seeds:  map[string]int{Smoke: 1, Quick: 5, Full: 24}, // pictures, each of another writer
	launch: runInversion,
}

// Names of the attacks.
const (
	attackDLG    = "DLG"
	attackClosed = "closed form"
)

// inversionPlan is how much a scale does.
type inversionPlan struct {
	noise       []float64
	evaluations int // of DLG's matching loss, a restart
	restarts    int
	leastSquare int // evaluations of the closed form's least squares
	networks    []inversionNetwork
	sketch      bool // too few evaluations to hold against the papers
}

type inversionNetwork struct {
	name, title string
	dlg         bool
	evaluations int // 0: the plan's
	restarts    int
}

// figure5 is the papers' list of noise multipliers: table 2.4 of thesis 001.
var figure5 = []float64{0, 0.001, 0.01, 0.1, 1, 3, 5, 10, 15}

const (
	lenetTitle  = "LeNet with sigmoids, the network of DLG's authors"
	papersTitle = "The papers' network (1,206,590 parameters) with sigmoids"
	denseTitle  = "A network that begins with a linear layer"
)

func planInversion(scale string) inversionPlan {
	p := inversionPlan{
		noise: figure5, evaluations: 300, restarts: 3, leastSquare: 150,
		networks: []inversionNetwork{
			{name: "lenet", title: lenetTitle, dlg: true},
			{name: "papers", title: papersTitle},
			{name: "dense", title: denseTitle},
		},
	}
	switch scale {
	case Smoke:
		p.sketch = true
		p.noise, p.evaluations, p.restarts, p.leastSquare = []float64{0, 0.1, 1}, 40, 1, 30
		p.networks = []inversionNetwork{p.networks[0], p.networks[2]}
	case Full:
		p.restarts, p.leastSquare = 4, 300
		p.networks[1].dlg, p.networks[1].evaluations, p.networks[1].restarts = true, 200, 2
	}
	return p
}

// inversionKey is everything that a cell depends on.
type inversionKey struct {
	Study                 string
	Network               string
	Nu                    float64
	Sample                int
	DLG                   bool
	Evaluations, Restarts int
	LeastSquares          int
}

// inversionCell is one picture, sent once and attacked twice.
type inversionCell struct {
	Seconds  float64      `json:"seconds"`
	Original []byte       `json:"original"`
	DLG      *attackScore `json:"dlg"`
	Closed   *attackScore `json:"closed_form"`
}

// attackScore is what an attack made of it.
type attackScore struct {
	PSNR     float64 `json:"psnr"`
	SSIM     float64 `json:"ssim"`
	Label    bool    `json:"label"`    // found
	Features float64 `json:"features"` // closed form: cosine with the true input of the linear layer
	Picture  []byte  `json:"picture"`
}

// handwritten is a picture to be attacked.
type handwritten struct {
	pixels []float64
	label  int
}

// inversionSamples draws pictures of the pipeline's own clients, each of another
// writer, and the mean picture of the writers held out.
func inversionSamples(l *lab) (samples []handwritten, mean []float64, classes int, err error) {
	run := config.Default("group-private", "paper")
	run.Data.Kind, run.Data.Set, run.Data.TrainShare = "writers", "unipen", 0.9
	f, err := l.folder.Load(run.Data, 1)
	if err != nil {
		return nil, nil, 0, err
	}
	if l.seeds > len(f.Train) {
		return nil, nil, 0, fmt.Errorf("%d pictures of different writers; allowed: up to %d", l.seeds, len(f.Train))
	}
	picture := func(pixels []byte) []float64 {
		out := make([]float64, len(pixels))
		for i, b := range pixels {
			out[i] = float64(b) / 255
		}
		return out
	}
	order := make([]int, len(f.Train))
	for i := range order {
		order[i] = i
	}
	family := rng.NewFamily(1, "dlg: pictures")
	s := family.Stream(0, 0)
	s.Shuffle(order)
	for _, client := range order[:l.seeds] {
		c := &f.Train[client]
		i := c.Index[s.Below(len(c.Index))]
		samples = append(samples, handwritten{picture(c.Images.Pixels[i*f.Features : (i+1)*f.Features]), c.Images.Labels[i]})
	}
	mean = make([]float64, f.Features)
	count := 0
	for c := range f.Validation {
		for _, i := range f.Validation[c].Index {
			count++
			for j, b := range f.Validation[c].Images.Pixels[i*f.Features : (i+1)*f.Features] {
				mean[j] += float64(b) / 255
			}
		}
	}
	for j := range mean {
		mean[j] /= float64(max(1, count))
	}
	return samples, mean, f.Classes, nil
}

// attack makes one cell.
func (l *lab) attack(k inversionKey, x handwritten, classes int) (inversionCell, error) {
	began := time.Now()
	n, err := audit.NamedNetwork(k.Network, classes)
	if err != nil {
		return inversionCell{}, err
	}
	// Parameters and noise are drawn afresh for every picture.
	victim, err := audit.NewVictim(n, "cross-entropy", 0.1, uint64(k.Sample+1))
	if err != nil {
		return inversionCell{}, err
	}
	family := rng.NewFamily(uint64(k.Sample+1), "dlg: noise")
	sent, err := victim.Send(x.pixels, x.label, audit.Sanitiser{Multiplier: k.Nu}, family.Stream(0, 0))
	if err != nil {
		return inversionCell{}, err
	}
	cell := inversionCell{Original: audit.Bytes(x.pixels)}
	score := func(r audit.Recovered, err error) (*attackScore, error) {
		if err != nil {
			return nil, err
		}
		q, err := audit.Judge(x.pixels, r.Picture, n.Input.Height, n.Input.Width)
		if err != nil {
			return nil, err
		}
		a := &attackScore{PSNR: q.PSNR, SSIM: q.SSIM, Label: r.Label == x.label, Picture: audit.Bytes(r.Picture)}
		if r.Features != nil {
			truth, err := audit.Features(n, sent.Before, x.pixels)
			if err != nil {
				return nil, err
			}
			a.Features = audit.Cosine(truth, r.Features)
		}
		return a, nil
	}
	closed := audit.ClosedForm{Loss: "cross-entropy", Evaluations: k.LeastSquares}
	if cell.Closed, err = score(closed.Attack(l.ctx, n, sent.Update)); err != nil {
		return inversionCell{}, err
	}
	if k.DLG {
		dlg := audit.DLG{
			Loss: "cross-entropy", Evaluations: k.Evaluations, Restarts: k.Restarts,
			Seed: uint64(k.Sample + 1), Floor: audit.NoiseFloor(k.Nu),
		}
		if cell.DLG, err = score(dlg.Attack(l.ctx, n, sent.Update)); err != nil {
			return inversionCell{}, err
		}
	}
	cell.Seconds = time.Since(began).Seconds()
	return cell, nil
}

func runInversion(l *lab) (report.Study, error) {
	plan := planInversion(l.options.Scale)
	samples, mean, classes, err := inversionSamples(l)
	if err != nil {
		return report.Study{}, err
	}
	cells := make([][][]inversionCell, len(plan.networks)) // by network, noise and picture
	var jobs []func() error
	for i, n := range plan.networks {
		for j, nu := range plan.noise {
			row := make([]inversionCell, len(samples))
			cells[i] = append(cells[i], row)
			for s := range samples {
				k := inversionKey{
					Study: "dlg", Network: n.name, Nu: plan.noise[j], Sample: s, DLG: n.dlg,
					Evaluations: plan.evaluations, Restarts: plan.restarts, LeastSquares: plan.leastSquare,
				}
				if n.evaluations > 0 {
					k.Evaluations, k.Restarts = n.evaluations, n.restarts
				}
				jobs = append(jobs, func() error {
					err := l.remember(k, &row[s], func() (any, error) { return l.attack(k, samples[s], classes) })
					if err != nil {
						return fmt.Errorf("%s at nu %v, picture %d: %w", k.Network, nu, s, err)
					}
					return nil
				})
			}
		}
	}
	if err := l.all(jobs); err != nil {
		return report.Study{}, err
	}
	return inversionStudy(plan, cells, samples, mean)
}
