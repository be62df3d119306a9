package report

import (
	"fmt"
	"math"
	"math/rand/v2"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/sim"
)

// shape says what a made-up result looks like.
type shape struct {
	algorithm  string
	mode       string
	hypotheses int
	parameters int
	rounds     int
	clients    int
	scale      float64 // of parameters and losses
	noise      float64
	truth      bool
	ceiling    float64
}

func paperShape(algorithm string) shape {
	s := shape{algorithm: algorithm, mode: "paper", hypotheses: 2, parameters: 2, rounds: 85, clients: 100, scale: 1, truth: true}
	switch algorithm {
	case "fedavg":
		s.hypotheses = 1
	case "group-private":
		s.noise = 5
	}
	return s
}

// made is a result that looks like a run: hypotheses move to the truth.
func made(s shape) sim.Result {
	random := rand.New(rand.NewPCG(1, uint64(s.hypotheses*1000+s.parameters)))
	inf := event.Number(math.Inf(1))
	r := sim.Result{Command: "coterie run run.yaml", Config: fmt.Sprintf("name: %s\nseed: 1\nalgorithm:\n  kind: %s\n", s.algorithm, s.algorithm)}
	r.RunID, r.Name, r.Algorithm, r.Mode, r.Seed = "20261115-"+s.algorithm, s.algorithm, s.algorithm, s.mode, 1
	r.Dataset, r.Judge = "synthetic", "clients"
	r.Rounds, r.BestRound, r.Returned, r.Stopped = s.rounds, max(1, s.rounds-3), "best", sim.StoppedPatience
	r.Clients, r.Hypotheses, r.Parameters = s.clients, s.hypotheses, s.parameters
	r.ModelSHA256, r.ConfigSHA256, r.Kernel, r.Version, r.WallSeconds = "ab12", "cd34", "go-amd64", "0.1.0", 0.25

	h := &r.History
	h.Stride = 1
	target := make([][]float64, s.hypotheses)
	for j := range s.hypotheses {
		start, end := make([]float64, s.parameters), make([]float64, s.parameters)
		for i := range start {
			start[i], end[i] = s.scale*random.NormFloat64(), s.scale*5*random.NormFloat64()
		}
		target[j] = end
		h.Start, h.Returned = append(h.Start, start), append(h.Returned, end)
	}
	if s.truth {
		h.Truth = target
		d := event.Number(0.3 * s.scale)
		r.Metrics.WorstDistance = &d
	}
	perRelease := inf
	if s.noise > 0 {
		perRelease = event.Number(float64(s.parameters) / s.noise)
	}
	totals := make([]float64, s.clients)
	for t := 1; t <= s.rounds; t++ {
		share := 1 - math.Exp(-3*float64(t)/float64(s.rounds))
		rec := sim.RoundRecord{Round: t, Loss: event.Number(s.scale * (3.5 - 2.9*share + 0.05*random.Float64()))}
		for j := range s.hypotheses {
			at := [2]float64{}
			for i := range min(2, s.parameters) {
				at[i] = h.Start[j][i]*(1-share) + target[j][i]*share
			}
			rec.Hypotheses = append(rec.Hypotheses, at)
			rec.Sizes = append(rec.Sizes, 1)
			for range 4 {
				v := sim.Release{Round: t, Cluster: j}
				for i := range min(2, s.parameters) {
					v.At[i] = at[i] + s.scale*(0.1+s.noise*0.2*(1-share))*random.NormFloat64()
				}
				if t <= 5 {
					h.Early = append(h.Early, v)
				}
				if t > s.rounds-5 {
					h.Late = append(h.Late, v)
				}
			}
		}
		for range max(1, s.clients/14) {
			c := random.IntN(s.clients)
			if s.ceiling == 0 || totals[c]+float64(perRelease) <= s.ceiling {
				totals[c] += float64(perRelease)
			} else {
				r.Privacy.Declined, r.Privacy.DeclinedRequests = 3, 7
			}
		}
		_, most := fl.MedianAndMax(append([]float64(nil), totals...))
		for range s.hypotheses {
			rec.MaxLeakage = append(rec.MaxLeakage, event.Number(most))
		}
		h.Rounds = append(h.Rounds, rec)
	}
	for _, v := range totals {
		h.Budgets = append(h.Budgets, event.Number(v))
	}
	median, most := fl.MedianAndMax(totals)
	for range s.hypotheses {
		h.Clusters = append(h.Clusters, sim.ClusterBudget{Clients: s.clients / s.hypotheses, Median: event.Number(median), Max: event.Number(most)})
	}
	r.Metrics.Loss = event.Number(0.6 * s.scale)
	p := &r.Privacy
	p.EpsilonPerRelease, p.MedianEpsilon, p.MaxEpsilon, p.Epsilon = &perRelease, event.Number(median), event.Number(most), event.Number(most)
	p.NoiseMultiplier, p.Sampling, p.Relation = event.Number(s.noise), "uniform", event.Metric
	p.Protects, p.Claim, p.Unit, p.Trust = "nothing", event.ClaimNone, event.UnitClient, event.TrustNobody
	p.NotCovered = []string{"everything: the trained vectors are sent as they are"}
	if s.ceiling > 0 {
		c := event.Number(s.ceiling)
		p.Ceiling = &c
	}
	if s.noise > 0 {
		p.Protects, p.Claim, p.Unit, p.Trust = "update", event.ClaimHeuristic, event.UnitNeighbourhood, event.TrustLocal
		p.NotCovered = []string{"group membership", "participation: the server sees who is asked & who declines"}
		if s.mode == "sound" {
			radius, any, change := event.Number(0.3), event.Number(2*most), event.Number(40*most)
			p.Claim, p.Radius, p.EpsilonAnyUpdate, p.EpsilonSwitch = event.ClaimMetric, &radius, &any, &change
		}
	}
	return r
}

// paperRuns are the three methods of the papers.
func paperRuns() []sim.Result {
	return []sim.Result{made(paperShape("fedavg")), made(paperShape("ifca")), made(paperShape("group-private"))}
}
