package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

// Picture is one labelled picture, values from 0 to 1.
type Picture struct {
	Pixels []float64
	Label  int
}

// DrawPictures draws pictures of a federation's clients, each of another client.
func DrawPictures(f *data.Federation, count int, seed uint64) ([]Picture, error) {
	if count < 1 || count > len(f.Train) {
		return nil, fmt.Errorf("audit: %d pictures of different clients; allowed: 1 to %d", count, len(f.Train))
	}
	order := make([]int, len(f.Train))
	for i := range order {
		order[i] = i
	}
	family := rng.NewFamily(seed, "audit: pictures")
	s := family.Stream(0, 0)
	s.Shuffle(order)
	var out []Picture
	for _, client := range order[:count] {
		c := &f.Train[client]
		if c.Images == nil || len(c.Index) == 0 {
			return nil, fmt.Errorf("audit: client %d has no pictures", client)
		}
		pixels, label := example(c, s.Below(len(c.Index)))
		out = append(out, Picture{pixels, label})
	}
	return out, nil
}

// Setup is how a victim trains and sanitises, and how hard it is attacked.
type Setup struct {
	Network     Network
	Sanitiser   Sanitiser
	Step        float64
	Evaluations int // of each attack
	Restarts    int // of DLG; 0: no DLG
}

// Trial is one picture, sent once and attacked twice.
type Trial struct {
	Picture     Picture
	Closed, DLG *Recovered // DLG is nil if it was not asked for
	// Features is the true input of the first linear layer.
	Features []float64
}

// Try lets a victim send a picture and attacks what it sends. Parameters, noise and
// dummies follow from the seed.
func (s Setup) Try(ctx context.Context, p Picture, seed uint64) (Trial, error) {
	victim, err := NewVictim(s.Network, "cross-entropy", s.Step, seed)
	if err != nil {
		return Trial{}, err
	}
	family := rng.NewFamily(seed, "audit: noise")
	sent, err := victim.Send(p.Pixels, p.Label, s.Sanitiser, family.Stream(0, 0))
	if err != nil {
		return Trial{}, err
	}
	t := Trial{Picture: p}
	if t.Features, err = Features(s.Network, sent.Before, p.Pixels); err != nil {
		return Trial{}, err
	}
	closed, err := ClosedForm{Loss: "cross-entropy", Evaluations: s.Evaluations}.Attack(ctx, s.Network, sent.Update)
	if err != nil {
		return Trial{}, err
	}
	t.Closed = &closed
	if s.Restarts == 0 {
		return t, nil
	}
	dlg := DLG{
		Loss: "cross-entropy", Evaluations: s.Evaluations, Restarts: s.Restarts, Seed: seed,
		Floor: NoiseFloor(s.Sanitiser.Multiplier),
	}
	leaked, err := dlg.Attack(ctx, s.Network, sent.Update)
	if err != nil {
		return Trial{}, err
	}
	t.DLG = &leaked
	return t, nil
}

// Survey is how two attacks fare on several pictures.
type Survey struct {
	Network         string         `json:"network"`
	Parameters      int            `json:"parameters"`
	NoiseMultiplier event.Number   `json:"noise_multiplier"`
	PerLayer        bool           `json:"per_layer"`
	Samples         int            `json:"samples"`
	Claim           event.Claim    `json:"claim"`
	Attacks         []SurveyAttack `json:"attacks"`
	Stronger        string         `json:"stronger"`
	Verdict         string         `json:"verdict"`
	Trials          []Trial        `json:"-"`
}

// SurveyAttack is one attack's result: medians, and shares of the pictures.
type SurveyAttack struct {
	Attack    string       `json:"attack"`
	PSNR      event.Number `json:"psnr"`
	SSIM      event.Number `json:"ssim"`
	Recovered event.Number `json:"recovered"` // share of pictures above 25 dB
	Labels    event.Number `json:"labels"`    // share of labels found
}

// Run attacks every picture, two at a time.
func (s Setup) Run(ctx context.Context, pictures []Picture, seed uint64, tick func(done int)) (Survey, error) {
	if len(pictures) == 0 {
		return Survey{}, fmt.Errorf("audit: no pictures")
	}
	net, err := s.Network.build()
	if err != nil {
		return Survey{}, err
	}
	out := Survey{
		Network: s.Network.Name, Parameters: net.Parameters(), NoiseMultiplier: event.Number(s.Sanitiser.Multiplier),
		PerLayer: !s.Sanitiser.Whole, Samples: len(pictures), Claim: event.ClaimHeuristic, Trials: make([]Trial, len(pictures)),
	}
	if s.Sanitiser.Multiplier == 0 {
		out.Claim = event.ClaimNone
	}
	errs := make([]error, len(pictures))
	var mu sync.Mutex
	done := 0
	var wg sync.WaitGroup
	for worker := range 2 {
		wg.Go(func() {
			for i := worker; i < len(pictures); i += 2 {
				out.Trials[i], errs[i] = s.Try(ctx, pictures[i], seed+uint64(i))
				if errs[i] != nil {
					return
				}
				mu.Lock()
				done++
				tick(done)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return Survey{}, fmt.Errorf("audit: picture %d: %w", i, err)
		}
	}
	return out, out.sum(s.Network)
}

// sum fills in the attacks' figures and the verdict.
func (s *Survey) sum(n Network) error {
	for _, name := range []string{NameClosedForm, NameDLG} {
		var psnr, ssim []float64
		var recovered, labels int
		for _, t := range s.Trials {
			r := t.Closed
			if name == NameDLG {
				r = t.DLG
			}
			if r == nil {
				continue
			}
			q, err := Judge(t.Picture.Pixels, r.Picture, n.Input.Height, n.Input.Width)
			if err != nil {
				return err
			}
			psnr, ssim = append(psnr, q.PSNR), append(ssim, q.SSIM)
			if q.Success() {
				recovered++
			}
			if r.Label == t.Picture.Label {
				labels++
			}
		}
		if len(psnr) == 0 {
			continue
		}
		all := float64(len(psnr))
		a := SurveyAttack{name, event.Number(middle(psnr)), event.Number(middle(ssim)), event.Number(float64(recovered) / all), event.Number(float64(labels) / all)}
		if s.Stronger == "" || a.PSNR > s.best().PSNR {
			s.Stronger = name
		}
		s.Attacks = append(s.Attacks, a)
	}
	best, alike := s.best(), slices.MaxFunc(s.Attacks, func(a, b SurveyAttack) int { return cmp.Compare(a.SSIM, b.SSIM) })
	switch {
	case best.Recovered > 0:
		s.Verdict = fmt.Sprintf("the server can recover %.0f %% of the pictures by the %s attack", 100*float64(best.Recovered), best.Attack)
	case alike.SSIM >= ResemblesSSIM:
		s.Verdict = fmt.Sprintf("no picture is recovered above %d dB, but what the %s attack finds resembles the original (median SSIM %.2f)",
			SuccessPSNR, alike.Attack, float64(alike.SSIM))
	default:
		s.Verdict = "these attacks recover no picture; that does not show that others would not"
	}
	return nil
}

// best is the stronger attack's result.
func (s *Survey) best() SurveyAttack {
	for _, a := range s.Attacks {
		if a.Attack == s.Stronger {
			return a
		}
	}
	return SurveyAttack{}
}

// middle is the median.
func middle(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
