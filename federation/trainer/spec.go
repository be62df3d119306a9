package trainer

import (
	"encoding/json"
	"math"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
)

// The modes: who protects what a trainer returns.
const (
	// ModeMethod puts the trainer in the place of the plan's model: the plan's own
	// method clips, pays and noises.
	ModeMethod = "method"
	// ModeUpdate clips the returned update as a whole and noises it: the unit is the
	// participant's whole dataset.
	ModeUpdate = "update"
	// ModePerExample asks for every example's gradient and takes the noised steps in
	// Go: the unit is one example.
	ModePerExample = "per-example"
	// ModeAttested sends what the trainer returns, on its author's word.
	ModeAttested = "attested"
)

// Spec is the trainer block of a participant's file.
type Spec struct {
	Command        []string `yaml:"command" jsonschema_description:"program and arguments of the trainer; empty: there is none"`
	Directory      string   `yaml:"directory" jsonschema_description:"folder that it runs in; empty: the one that coterie was started in"`
	Environment    []string `yaml:"environment" jsonschema_description:"names of further environment variables that it may see; empty: none"`
	StartSeconds   float64  `yaml:"start_seconds" jsonschema:"minimum=0" jsonschema_description:"how long it may take to get ready; 0: 60"`
	RequestSeconds float64  `yaml:"request_seconds" jsonschema:"minimum=0" jsonschema_description:"how long one answer may take; 0: 600"`
	Mode           string   `yaml:"mode" jsonschema:"enum=method,enum=update,enum=per-example,enum=attested" jsonschema_description:"who protects what it returns: method, the plan's method; update and per-example, this participant; attested, nobody but the trainer; empty: method"`
	Clip           float64  `yaml:"clip" jsonschema:"minimum=0" only:".mode=update|per-example" jsonschema_description:"largest norm of an update, or of an example's gradient"`
	Noise          float64  `yaml:"noise" jsonschema:"minimum=0" only:".mode=update|per-example" jsonschema_description:"noise multiplier: standard deviation divided by clip"`
	Steps          int      `yaml:"steps" jsonschema:"minimum=0,maximum=1000000" only:".mode=per-example" jsonschema_description:"steps in a round"`
	Rate           float64  `yaml:"rate" jsonschema:"minimum=0,maximum=1" only:".mode=per-example" jsonschema_description:"probability with which each example is in a step's batch"`
	Batch          int      `yaml:"batch" jsonschema:"minimum=0,maximum=1000000000" only:".mode=per-example" jsonschema_description:"public batch size that the noised sum is divided by"`
	Step           float64  `yaml:"step" jsonschema:"minimum=0" only:".mode=per-example" jsonschema_description:"step size"`
	Release        string   `yaml:"release" only:".mode=attested" jsonschema_description:"the release that the trainer's author vouches for, as JSON"`
}

// IsSet says whether the participant's file has a trainer.
func (s Spec) IsSet() bool { return len(s.Command) > 0 }

// mode is the mode with its default.
func (s Spec) mode() string {
	if s.Mode == "" {
		return ModeMethod
	}
	return s.Mode
}

// Check lists what is wrong with the block, which stands at path.
func (s Spec) Check(path string) config.Faults {
	var c config.Checker
	c.Require(len(s.Command) > 0 && s.Command[0] != "", path+".command", "is empty; give the program that trains")
	for name, v := range map[string]float64{"start_seconds": s.StartSeconds, "request_seconds": s.RequestSeconds} {
		c.Require(v >= 0 && v <= 1e7, path+"."+name, "is %v; allowed: 0 (the default) to 10000000", v)
	}
	positive := func(name string, v float64) {
		c.Require(v > 0 && !math.IsInf(v, 0), path+"."+name, "is %v; mode %s needs more than 0", v, s.Mode)
	}
	switch s.mode() {
	case ModeMethod:
	case ModePerExample:
		positive("step", s.Step)
		c.Require(s.Rate > 0 && s.Rate <= 1, path+".rate", "is %v; mode %s needs more than 0, up to 1", s.Rate, s.Mode)
		c.Require(s.Steps > 0, path+".steps", "is %d; mode %s needs 1 or more", s.Steps, s.Mode)
		c.Require(s.Batch > 0, path+".batch", "is %d; mode %s needs 1 or more", s.Batch, s.Mode)
		fallthrough
	case ModeUpdate:
		positive("clip", s.Clip)
		positive("noise", s.Noise)
	case ModeAttested:
		_, err := s.attested()
		c.Require(err == nil, path+".release", "is not a release: %v", err)
	default:
		c.Require(false, path+".mode", "is %q; allowed: %s, %s, %s, %s", s.Mode, ModeMethod, ModeUpdate, ModePerExample, ModeAttested)
	}
	return c.Faults()
}

func (s Spec) attested() (event.Release, error) {
	var r event.Release
	err := json.Unmarshal([]byte(s.Release), &r)
	return r, err
}

func (s Spec) startTime() time.Duration   { return seconds(s.StartSeconds, time.Minute) }
func (s Spec) requestTime() time.Duration { return seconds(s.RequestSeconds, 10*time.Minute) }

func seconds(s float64, otherwise time.Duration) time.Duration {
	if s <= 0 {
		return otherwise
	}
	return time.Duration(s * float64(time.Second))
}
