package account

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// num reads a number or the strings "inf" and null of the golden files.
type num float64

func (n *num) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"inf"`:
		*n = num(math.Inf(1))
		return nil
	case "null":
		*n = 0
		return nil
	}
	v, err := strconv.ParseFloat(string(data), 64)
	*n = num(v)
	return err
}

func golden(t testing.TB, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

type dpsgdRow struct {
	NM, Q, Delta, Eps, Order num
	Steps                    int64
}

type rdpVector struct {
	NM, Q      num
	RDPPerStep []num `json:"rdp_per_step"`
}

type googleFile struct {
	Meta struct {
		DefaultOrders []float64 `json:"default_orders"`
	}
	A struct {
		Rows       []dpsgdRow
		RDPVectors []rdpVector `json:"rdp_vectors"`
	} `json:"a_rdp_poisson_gaussian"`
	B struct {
		Rows []struct {
			NM, Q  num
			Steps  int64
			Eps1e5 num `json:"eps_1e5"`
			Eps1e6 num `json:"eps_1e6"`
		}
	} `json:"b_pld_poisson_gaussian"`
	Laplace []struct {
		Scale        float64
		Sensitivity  float64
		Compositions int64
		Eps1e5       float64 `json:"eps_1e5"`
		Eps1e6       float64 `json:"eps_1e6"`
		DeltaAtEps1  float64 `json:"delta_at_eps1"`
	} `json:"c_pld_laplace"`
	DiscreteGaussian []struct {
		Sigma        float64
		Sensitivity  int64
		Compositions int64
		Eps1e5       float64 `json:"eps_1e5"`
		Eps1e6       float64 `json:"eps_1e6"`
		DeltaAtEps1  float64 `json:"delta_at_eps1"`
	} `json:"c_pld_discrete_gaussian"`
	D struct {
		OrdersInt []float64 `json:"orders_int"`
		Rows      []struct {
			NM         float64
			N, M       int64
			Orders     string
			RDPPerStep []num `json:"rdp_per_step"`
			Eps        json.RawMessage
		}
		Plain struct {
			NM, Delta, Eps float64
			Steps          int64
		} `json:"plain_gaussian_replace_one"`
	} `json:"d_rdp_wor_replace_one"`
	E struct {
		Rows []struct {
			Accountant      string
			Q, Delta        float64
			Steps           int64
			TargetEps       float64 `json:"target_eps"`
			NoiseMultiplier float64 `json:"noise_multiplier"`
		}
		Grid []struct {
			TargetEps       float64 `json:"target_eps"`
			Runs            int64
			StepsTotal      int64 `json:"steps_total"`
			Q, Delta        float64
			NoiseMultiplier float64 `json:"noise_multiplier"`
		} `json:"grid_budget_rows"`
	} `json:"e_calibrated_mnist"`
	F struct {
		Rows []struct {
			Shape, Mean, NM, Gamma num
			Eps1e5                 float64 `json:"eps_1e5"`
			BaseEps1e5             float64 `json:"base_eps_1e5"`
			RDP                    []num
		}
	} `json:"f_repeat_and_select"`
}

type exactFile struct {
	Meta struct {
		OpacusAlphas []float64 `json:"opacus_alphas"`
		Orders       []float64
	}
	ExactVectors []struct {
		rdpVector
		Method string
	} `json:"exact_vectors"`
	ExactEps []dpsgdRow `json:"exact_eps"`
	Checks   []struct {
		NM, Q, Order            float64
		TFP, Quadrature, Google num
	}
	OpacusEps []struct {
		NM, Q, Delta float64
		Steps        int64
		RDPEps       float64 `json:"rdp_eps"`
		RDPAlpha     float64 `json:"rdp_alpha"`
		PRVEps       float64 `json:"prv_eps"`
	} `json:"opacus_eps"`
	OpacusCalibration []struct {
		Target          float64 `json:"target_eps"`
		Rate            float64 `json:"sample_rate"`
		Steps           int64
		Delta           float64
		NoiseMultiplier float64 `json:"noise_multiplier"`
		Tolerance       float64 `json:"epsilon_tolerance"`
	} `json:"opacus_calibration"`
}

var (
	exampleTerms = Terms{event.UnitExample, event.AddRemove, event.ClaimProved}
	replaceTerms = Terms{event.UnitExample, event.ReplaceOne, event.ClaimProved}
)

func releaseOn(t Terms, e event.Event) event.Release {
	return event.Release{Unit: t.Unit, Relation: t.Relation, Claim: t.Claim, Trust: event.TrustLocal, What: e}
}

// dpsgd is steps of the Gaussian mechanism on Poisson batches.
func dpsgd(noise, rate float64, steps int64) event.Event {
	return event.Repeated{Times: steps, Of: event.Sampled{Sampling: event.Poisson, Rate: rate, Of: event.Gaussian{Noise: noise}}}
}

func rdpEpsilon(t testing.TB, terms Terms, e event.Event, delta float64, options ...Option) (epsilon, order float64) {
	t.Helper()
	a, err := NewRDP(terms, options...)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Compose(releaseOn(terms, e)); err != nil {
		t.Fatal(err)
	}
	epsilon, order, err = a.Epsilon(delta)
	if err != nil {
		t.Fatal(err)
	}
	return epsilon, order
}

// apart is the relative difference.
func apart(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / math.Max(math.Abs(want), math.SmallestNonzeroFloat64)
}

func above101(orders []float64) []float64 {
	var kept []float64
	for _, a := range orders {
		if a > 1.01 {
			kept = append(kept, a)
		}
	}
	return kept
}
