// Package federation is server and participant over the network: the same fl, another shell.
package federation

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// planVersion is raised when participants of an older version could misread a plan.
const planVersion = 1

// maxPlan bounds what a participant reads before it knows what it is asked for.
const maxPlan = config.MaxBytes + 64<<10

// Plan is what a server asks of its participants, for a whole run. Every participant
// is shown the same bytes; their SHA-256 names the plan in every request, ledger
// and receipt.
type Plan struct {
	Version    int    `json:"version"`
	Federation string `json:"federation"`
	Run        string `json:"run"`
	// RunFile is the resolved run file: what is trained, how, with how much noise.
	RunFile      string `json:"run_file"`
	Participants int    `json:"participants"`
	// Shape is what a model must know of the data.
	Shape data.Shape `json:"shape"`
	// Quorum releases close a round before its deadline; with fewer than Minimum at
	// the deadline it is abandoned.
	Quorum          int     `json:"quorum"`
	Minimum         int     `json:"minimum"`
	DeadlineSeconds float64 `json:"deadline_seconds"`
}

// asked is how many participants a round asks.
func asked(run config.Run, participants int) int {
	if run.Algorithm.ClientsPerRound == 0 {
		return participants
	}
	return run.Algorithm.ClientsPerRound
}

// checks are all packages' checks of a run file.
func checks() []func(config.Run) config.Faults {
	return []func(config.Run) config.Faults{data.Check, model.Check, fl.Check}
}

// Encode gives the plan's bytes and their hash.
func (p Plan) Encode() (text []byte, sum [32]byte, err error) {
	text, err = json.Marshal(p)
	if err != nil {
		return nil, sum, fmt.Errorf("write the plan: %w", err)
	}
	return text, sha256.Sum256(text), nil
}

// ParsePlan reads a plan strictly and resolves its run file.
func ParsePlan(text []byte) (Plan, config.Run, error) {
	var p Plan
	if len(text) > maxPlan {
		return p, config.Run{}, fmt.Errorf("the plan has %d bytes; allowed: %d", len(text), maxPlan)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return p, config.Run{}, fmt.Errorf("the plan cannot be read: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return p, config.Run{}, errors.New("the plan cannot be read: something follows it")
	}
	if p.Version != planVersion {
		return p, config.Run{}, fmt.Errorf("the plan has version %d, this program knows %d: use the same release of coterie on both sides", p.Version, planVersion)
	}
	run, err := config.Resolve([]byte(p.RunFile), nil, checks()...)
	if err != nil {
		return p, config.Run{}, fmt.Errorf("the plan's run file: %w", err)
	}
	return p, run, Suitable(run)
}

// ErrUnsuitable means that a run file serves simulation only.
var ErrUnsuitable = errors.New("not for a federation")

// Suitable says whether a run file may be run among real participants: what a
// simulation may do freely, they would have to pay for.
func Suitable(run config.Run) error {
	var wrong []error
	stop, p := run.Algorithm.Stop, run.Privacy
	if stop.Patience > 0 {
		wrong = append(wrong, fmt.Errorf("algorithm.stop.patience is %d: stopping on validation losses is a release that nobody pays for; set 0", stop.Patience))
	}
	if stop.Return != "last" {
		wrong = append(wrong, fmt.Errorf("algorithm.stop.return is %q: choosing by validation losses is a release that nobody pays for; set last", stop.Return))
	}
	if p.Noise == "simulated" && addsNoise(run) {
		wrong = append(wrong, errors.New("privacy.noise is simulated: its floats give data away; set exact"))
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnsuitable, errors.Join(wrong...))
}

// addsNoise says whether participants add noise, by the run file or by a target of
// their own.
func addsNoise(run config.Run) bool {
	return run.Privacy.Protects != "nothing"
}

// Seeded says whether what a run draws can be repeated, and so its noise subtracted,
// by everyone who knows the seed.
func Seeded(run config.Run) bool { return run.Privacy.Noise == fl.NoiseSeeded }
