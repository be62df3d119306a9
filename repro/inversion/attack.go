// Package inversion reproduces the attacks that find pictures in updates, and makes the pages of `coterie audit inversion`.
package inversion

import (
	"fmt"
	"time"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// Experiments are listed in this order.
var Experiments = []lab.Experiment{dlg}

var dlg = lab.Experiment{
	ID: "dlg", Title: "Gradient inversion of one client's update",
	Paper: "paper 000, figure 5; thesis 001, section 2.5.1 and figure 2.5",
	Needs: []string{"unipen-by-writer"},
	Quick: "2 min", Full: "12 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 10, lab.Full: 20}, // pictures, each of another writer
	Timed:  true,
	Launch: runDLG,
}

// Names of the attacks.
const (
	attackDLG    = "DLG"
	attackClosed = "closed form"
)

// effort is how much a scale does.
type effort struct {
	noise    []float64
	networks []network
	sketch   bool // too few evaluations to hold against the papers
}

type network struct {
	name, title string
	evaluations int  // of each attack, a restart
	restarts    int  // of DLG; 0: the closed form alone
	papers      bool // smooth, as the papers' DLG needs it: their prose is about it
}

func (n network) attacks() []string {
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

func effortOf(scale string) effort {
	lenet := network{"lenet", lenetTitle, 300, 3, true}
	papers := network{"papers", papersTitle, 150, 0, true} // DLG takes seconds a picture
	relu := network{"relu", reluTitle, 150, 0, false}
	dense := network{"dense", denseTitle, 1, 0, false} // nothing to search
	switch scale {
	case lab.Smoke:
		lenet.evaluations, lenet.restarts = 40, 1
		return effort{[]float64{0, 0.1, 1}, []network{lenet, dense}, true}
	case lab.Full:
		lenet.restarts = 4
		papers.evaluations, papers.restarts = 200, 2
		relu.evaluations, relu.restarts = 200, 1
	}
	return effort{figure5, []network{lenet, papers, relu, dense}, false}
}

// cellKey is everything that a cell depends on.
type cellKey struct {
	Study                 string
	Network               string
	Nu                    float64
	Sample                int
	Evaluations, Restarts int
}

// cell is one picture, sent once and attacked twice.
type cell struct {
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

// victims are pictures of the pipeline's own clients, each of another writer,
// and the mean picture of the writers held out.
type victims struct {
	pictures []audit.Picture
	mean     []float64
	classes  int
}

func loadVictims(l *lab.Lab) (victims, error) {
	run := config.Default("synthetic", "group-private", "paper")
	run.Data.Kind, run.Data.Set, run.Data.TrainShare = "writers", "unipen", 0.9
	f, err := l.Folder.Load(run.Data, 1)
	if err != nil {
		return victims{}, err
	}
	pictures, err := audit.DrawPictures(f, l.Seeds, 1)
	return victims{pictures, audit.MeanExample(f.Validation, f.Features), f.Classes}, err
}

// attack makes one cell. Parameters, noise and dummies are drawn afresh for every
// picture.
func attack(l *lab.Lab, k cellKey, d victims) (cell, error) {
	began := time.Now()
	n, err := audit.NamedNetwork(k.Network, d.classes)
	if err != nil {
		return cell{}, err
	}
	setup := audit.Setup{
		Network: n, Sanitiser: audit.Sanitiser{Multiplier: k.Nu}, Step: 0.1, Evaluations: k.Evaluations, Restarts: k.Restarts,
	}
	t, err := setup.Try(l.Context, d.pictures[k.Sample], uint64(k.Sample+1))
	if err != nil {
		return cell{}, err
	}
	out := cell{Original: audit.Bytes(t.Picture.Pixels)}
	if out.Closed, err = scoreOf(n, t, t.Closed); err != nil {
		return cell{}, err
	}
	out.Closed.Features = audit.Cosine(t.Features, t.Closed.Features)
	if t.DLG != nil {
		if out.DLG, err = scoreOf(n, t, t.DLG); err != nil {
			return cell{}, err
		}
	}
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

func scoreOf(n audit.Network, t audit.Trial, r *audit.Recovered) (*attackScore, error) {
	q, err := audit.Judge(t.Picture.Pixels, r.Picture, n.Input.Height, n.Input.Width)
	if err != nil {
		return nil, err
	}
	return &attackScore{PSNR: q.PSNR, SSIM: q.SSIM, Label: r.Label == t.Picture.Label, Picture: audit.Bytes(r.Picture)}, nil
}

func runDLG(l *lab.Lab) (study.Study, error) {
	plan := effortOf(l.Scale)
	d, err := loadVictims(l)
	if err != nil {
		return study.Study{}, err
	}
	cells := make([][][]cell, len(plan.networks)) // by network, noise and picture
	var jobs []func() error
	for i, n := range plan.networks {
		for _, nu := range plan.noise {
			row := make([]cell, len(d.pictures))
			cells[i] = append(cells[i], row)
			for s := range d.pictures {
				k := cellKey{Study: "dlg", Network: n.name, Nu: nu, Sample: s, Evaluations: n.evaluations, Restarts: n.restarts}
				jobs = append(jobs, func() error {
					err := l.Remember(k, &row[s], func(l *lab.Lab) (any, error) { return attack(l, k, d) })
					if err != nil {
						return fmt.Errorf("%s at nu %v, picture %d: %w", k.Network, nu, s, err)
					}
					return nil
				})
			}
		}
	}
	if err := l.All(jobs); err != nil {
		return study.Study{}, err
	}
	return studyOf(plan, cells, d)
}
