// Package plan is what people and servers write down before a run: the plan, the
// participant's policy, and the files that coterie serve and coterie join read.
package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// Version is raised when participants of another version could misread a plan, or answer
// it with other releases.
const Version = 2

// MaxBytes bounds what a participant reads before it knows what it is asked for.
const MaxBytes = config.MaxBytes + 64<<10

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

// New is the plan, but for the run's ID.
func New(f *ServeFile, run config.Run, federation string, folder *data.Folder) (Plan, error) {
	n := len(f.Participants)
	cohort := Asked(run, n)
	var c config.Checker
	c.Require(cohort <= n, "algorithm.clients_per_round", "%d is more than the %d participants", cohort, n)
	if k, err := data.KindOf(run.Data); err == nil && k.Clients != nil {
		train, _ := k.Clients(run.Data)
		c.Require(train == n, "data.users", "is %d, but %d participants are listed: every one of them is one client of the %s data", train, n, k.Name)
	}
	if faults := c.Faults(); faults != nil {
		return Plan{}, fmt.Errorf("%s: %w", f.Run, faults)
	}
	if err := f.settle(cohort); err != nil {
		return Plan{}, err
	}
	run.Data = Shared(run.Data)
	if shape, whole := data.ShapeOf(run.Data); whole && f.Shape == (data.Shape{}) {
		f.Shape = shape
	}
	if f.Shape == (data.Shape{}) {
		all, err := folder.Load(run.Data, run.Seed)
		if err != nil {
			return Plan{}, fmt.Errorf("%w: shape says nothing about the data, and the server has none to look at: %w", config.ErrInvalid, err)
		}
		f.Shape = all.Shape()
	}
	text, err := run.Encode()
	if err != nil {
		return Plan{}, err
	}
	return Plan{
		Version: Version, Federation: federation, RunFile: string(text), Participants: n, Shape: f.Shape,
		Quorum: f.Quorum, Minimum: f.Minimum, DeadlineSeconds: f.DeadlineSeconds,
	}, nil
}

// Shared is the part of a data block that everybody may see: what examples are, not
// where somebody's lie.
func Shared(d config.Data) config.Data {
	d.Source = config.Source{}
	if d.Test.Path != "" {
		d.Test.Path = "own" // of every participant: only that there is one
	}
	return d
}

// Asked is how many participants a round asks.
func Asked(run config.Run, participants int) int {
	if run.Algorithm.ClientsPerRound == 0 {
		return participants
	}
	return run.Algorithm.ClientsPerRound
}

// Resolve reads a run file, held against the checks of all packages.
func Resolve(text []byte) (config.Run, error) {
	return config.Resolve(text, nil, data.Check, model.Check, fl.Check)
}

// Encode gives the plan's bytes and their hash.
func (p Plan) Encode() (text []byte, sum [32]byte, err error) {
	text, err = json.Marshal(p)
	if err != nil {
		return nil, sum, fmt.Errorf("write the plan: %w", err)
	}
	return text, sha256.Sum256(text), nil
}

// Parse reads a plan strictly and resolves its run file.
func Parse(text []byte) (Plan, config.Run, error) {
	var p Plan
	if len(text) > MaxBytes {
		return p, config.Run{}, fmt.Errorf("the plan has %d bytes; allowed: %d", len(text), MaxBytes)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return p, config.Run{}, fmt.Errorf("the plan cannot be read: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return p, config.Run{}, errors.New("the plan cannot be read: something follows it")
	}
	if p.Version != Version {
		return p, config.Run{}, fmt.Errorf("the plan has version %d, this program knows %d: use the same release of coterie on both sides", p.Version, Version)
	}
	run, err := Resolve([]byte(p.RunFile))
	if err != nil {
		return p, config.Run{}, fmt.Errorf("the plan's run file: %w", err)
	}
	if shared := Shared(run.Data); run.Data.Source != shared.Source || run.Data.Test != shared.Test {
		return p, config.Run{}, fmt.Errorf("%w: the plan's data.source or data.test says where data lie: that is for every participant's own file to say, never for a server", ErrUnsuitable)
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
	if len(run.Judge.Compare) > 0 {
		wrong = append(wrong, fmt.Errorf("judge.compare is %v: among real participants every compared method is a run of its own, which they must agree to and pay for; leave it out", run.Judge.Compare))
	}
	if run.Judge.Hostile.Attack != "" {
		wrong = append(wrong, errors.New("judge.hostile asks some clients to lie, which is for simulations; leave it out (algorithm.robust guards against those that do)"))
	}
	if p.Protects == "node" && run.Algorithm.Local.Batch > 0 {
		wrong = append(wrong, fmt.Errorf("algorithm.local.batch is %d: batches of persons are drawn from as many places as the plan declares, and whether a participant's persons fit in would tell of them; set 0, steps on everybody", run.Algorithm.Local.Batch))
	}
	if fl.IsCentral(run.Algorithm.Kind) {
		wrong = append(wrong, fmt.Errorf("algorithm.kind is %s, which trains where all examples are: a federation has them in many places; set fedavg, or another method", run.Algorithm.Kind))
	}
	if shape, _ := data.ShapeOf(run.Data); shape.Windows > 0 && run.Data.Partition != contacts.Own {
		wrong = append(wrong, fmt.Errorf("data.partition is %s, of a population that somebody holds or generates: participants bring files of their own; set own", run.Data.Partition))
	}
	if run.Data.Projection != "" {
		wrong = append(wrong, fmt.Errorf("data.projection is %s, a folder of whoever wrote the run file: plans do not carry projections to participants yet; leave it out", run.Data.Projection))
	}
	if run.Model.Start != "" {
		wrong = append(wrong, fmt.Errorf("model.start is %s, a file of whoever wrote the run file: plans do not carry starts to participants yet; leave it out", run.Model.Start))
	}
	if p.Noise == "simulated" && p.Protects != "nothing" {
		wrong = append(wrong, errors.New("privacy.noise is simulated: its floats give data away; set exact"))
	}
	if p.Noise == "simulated" && run.Judge.Evaluate.Epsilon > 0 {
		wrong = append(wrong, errors.New("privacy.noise is simulated, but judge.evaluate releases counts: its floats give data away; set exact"))
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnsuitable, errors.Join(wrong...))
}

// Seeded says whether what a run draws can be repeated, and so its noise subtracted,
// by everyone who knows the seed.
func Seeded(run config.Run) bool { return run.Privacy.Noise == fl.NoiseSeeded }

// Read reads a run file and lists all that is wrong with it.
func Read(path string) (config.Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return config.Run{}, fmt.Errorf("%w: read the run file: %w", config.ErrInvalid, err)
	}
	run, err := Resolve(text)
	if err != nil {
		return config.Run{}, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}
