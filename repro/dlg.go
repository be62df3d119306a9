package repro

import (
	"fmt"
	"time"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
)

var inversion = Experiment{
	ID: "dlg", Title: "Gradient inversion of one client's update",
	Paper: "paper 000, figure 5; thesis 001, section 2.5.1 and figure 2.5",
	Needs: []string{"unipen-by-writer"},
	Quick: "2 min", Full: "20 min",
	seeds:  map[string]int{Smoke: 1, Quick: 10, Full: 20}, // pictures, each of another writer
	launch: runInversion,
}

// Names of the attacks.
const (
	attackDLG    = "DLG"
	attackClosed = "closed form"
)

// inversionPlan is how much a scale does.
type inversionPlan struct {
	noise    []float64
	networks []inversionNetwork
	sketch   bool // too few evaluations to hold against the papers
}

type inversionNetwork struct {
	name, title string
	evaluations int  // of each attack, a restart
	restarts    int  // of DLG; 0: the closed form alone
	papers      bool // smooth, as the papers' DLG needs it: their prose is about it
}

func (n inversionNetwork) attacks() []string {
	if n.restarts == 0 {
		return []string{attackClosed}
	}
	return []string{attackDLG, attackClosed}
}

// figure5 is the papers' list of noise multipliers: table 2.4 of thesis 001.
var figure5 = []float64{0, 0.001, 0.01, 0.1, 1, 3, 5, 10, 15}

const (
	lenetTitle  = "LeNet with sigmoids, the network of DLG's authors"
	papersTitle = "The papers' network (1,206,590 parameters) with sigmoids"
	reluTitle   = "The papers' network as clients train it: ReLUs, maxima, PyTorch's start"
	denseTitle  = "A network that begins with a linear layer"
)

func planInversion(scale string) inversionPlan {
	lenet := inversionNetwork{"lenet", lenetTitle, 300, 3, true}
	papers := inversionNetwork{"papers", papersTitle, 150, 0, true} // DLG takes seconds a picture
	relu := inversionNetwork{"relu", reluTitle, 150, 0, false}
	dense := inversionNetwork{"dense", denseTitle, 1, 0, false} // nothing to search
	switch scale {
	case Smoke:
		lenet.evaluations, lenet.restarts = 40, 1
		return inversionPlan{[]float64{0, 0.1, 1}, []inversionNetwork{lenet, dense}, true}
	case Full:
		lenet.restarts = 4
		papers.evaluations, papers.restarts = 200, 2
		relu.evaluations, relu.restarts = 200, 1
	}
	return inversionPlan{figure5, []inversionNetwork{lenet, papers, relu, dense}, false}
}

// inversionKey is everything that a cell depends on.
type inversionKey struct {
	Study                 string
	Network               string
	Nu                    float64
	Sample                int
	Evaluations, Restarts int
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

// inversionData are pictures of the pipeline's own clients, each of another writer,
// and the mean picture of the writers held out.
type inversionData struct {
	pictures []audit.Picture
	mean     []float64
	classes  int
}

func loadInversion(l *lab) (inversionData, error) {
	run := config.Default("synthetic", "group-private", "paper")
	run.Data.Kind, run.Data.Set, run.Data.TrainShare = "writers", "unipen", 0.9
	f, err := l.folder.Load(run.Data, 1)
	if err != nil {
		return inversionData{}, err
	}
	pictures, err := audit.DrawPictures(f, l.seeds, 1)
	return inversionData{pictures, audit.MeanExample(f.Validation, f.Features), f.Classes}, err
}

// attack makes one cell. Parameters, noise and dummies are drawn afresh for every
// picture.
func (l *lab) attack(k inversionKey, d inversionData) (inversionCell, error) {
	began := time.Now()
	n, err := audit.NamedNetwork(k.Network, d.classes)
	if err != nil {
		return inversionCell{}, err
	}
	setup := audit.Setup{
		Network: n, Sanitiser: audit.Sanitiser{Multiplier: k.Nu}, Step: 0.1, Evaluations: k.Evaluations, Restarts: k.Restarts,
	}
	t, err := setup.Try(l.ctx, d.pictures[k.Sample], uint64(k.Sample+1))
	if err != nil {
		return inversionCell{}, err
	}
	cell := inversionCell{Original: audit.Bytes(t.Picture.Pixels)}
	if cell.Closed, err = scoreOf(n, t, t.Closed); err != nil {
		return inversionCell{}, err
	}
	cell.Closed.Features = audit.Cosine(t.Features, t.Closed.Features)
	if t.DLG != nil {
		if cell.DLG, err = scoreOf(n, t, t.DLG); err != nil {
			return inversionCell{}, err
		}
	}
	cell.Seconds = time.Since(began).Seconds()
	return cell, nil
}

func scoreOf(n audit.Network, t audit.Trial, r *audit.Recovered) (*attackScore, error) {
	q, err := audit.Judge(t.Picture.Pixels, r.Picture, n.Input.Height, n.Input.Width)
	if err != nil {
		return nil, err
	}
	return &attackScore{PSNR: q.PSNR, SSIM: q.SSIM, Label: r.Label == t.Picture.Label, Picture: audit.Bytes(r.Picture)}, nil
}

func runInversion(l *lab) (study.Study, error) {
	plan := planInversion(l.options.Scale)
	d, err := loadInversion(l)
	if err != nil {
		return study.Study{}, err
	}
	cells := make([][][]inversionCell, len(plan.networks)) // by network, noise and picture
	var jobs []func() error
	for i, n := range plan.networks {
		for _, nu := range plan.noise {
			row := make([]inversionCell, len(d.pictures))
			cells[i] = append(cells[i], row)
			for s := range d.pictures {
				k := inversionKey{Study: "dlg", Network: n.name, Nu: nu, Sample: s, Evaluations: n.evaluations, Restarts: n.restarts}
				jobs = append(jobs, func() error {
					err := l.remember(k, &row[s], func() (any, error) { return l.attack(k, d) })
					if err != nil {
						return fmt.Errorf("%s at nu %v, picture %d: %w", k.Network, nu, s, err)
					}
					return nil
				})
			}
		}
	}
	if err := l.all(jobs); err != nil {
		return study.Study{}, err
	}
	return inversionStudy(plan, cells, d)
}
