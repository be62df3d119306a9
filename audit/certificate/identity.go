package certificate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report"
	"github.com/coterie-fl/coterie/sim"
)

// ErrChanged means that what a certificate speaks of is not what is there.
var ErrChanged = errors.New("changed since it was made")

// Identity is what was looked at, and by what.
type Identity struct {
	Run       string `json:"run"` // its id
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Model     string `json:"model_sha256"`  // of its tensors, as model.json has it
	Config    string `json:"config_sha256"` // of the resolved run file
	// ResultFile is of result.json, whose figures and claim are repeated here.
	ResultFile string `json:"result_sha256"`
	// TrainedBy is the version that trained, as the result says; the others are of the
	// program that looked at it.
	TrainedBy string `json:"trained_by_version"`
	Version   string `json:"version"`
	Program   string `json:"program_sha256"` // of the executable file
	Go        string `json:"go"`
	Kernel    string `json:"kernel"`
}

// Subject is a run directory that a certificate is about.
type Subject struct {
	Identity
	Target membership.Target
	Result sim.Result
}

// Open reads a run directory and hashes it and the program itself. Model, run file and
// result must belong together.
func Open(dir string) (Subject, error) {
	s, err := open(dir)
	if err != nil {
		return s, fmt.Errorf("certificate: %s: %w", dir, err)
	}
	return s, nil
}

func open(dir string) (s Subject, err error) {
	if s.Result, err = report.Load(dir); err != nil {
		return s, err
	}
	if s.Target.Run, err = config.Resolve([]byte(s.Result.Config), nil, sim.Checks()...); err != nil {
		return s, err
	}
	if s.Target.Models, err = artifact.Open(dir); err != nil { // which checks the tensors' hash
		return s, err
	}
	s.Identity = Identity{
		Run: s.Result.RunID, Name: s.Result.Name, Algorithm: s.Result.Algorithm, Model: s.Target.Models.ModelSHA256, TrainedBy: s.Result.Version,
		Version: artifact.Version(), Go: runtime.Version(), Kernel: model.Kernel(),
	}
	if s.Model != s.Result.ModelSHA256 {
		return s, fmt.Errorf("%w: %s is of a model with the hash %s, and the model here has %s", ErrChanged, sim.ResultFile, s.Result.ModelSHA256, s.Model)
	}
	if s.Config, err = s.Target.Run.Hash(); err != nil {
		return s, err
	}
	if s.Config != s.Result.ConfigSHA256 {
		return s, fmt.Errorf("%w: the run file in %s has the hash %s, and it says %s", ErrChanged, sim.ResultFile, s.Config, s.Result.ConfigSHA256)
	}
	program, err := os.Executable()
	if err != nil {
		return s, fmt.Errorf("which program is this: %w", err)
	}
	if s.Program, err = fileHash(program); err != nil {
		return s, err
	}
	s.ResultFile, err = fileHash(filepath.Join(dir, sim.ResultFile))
	return s, err
}

// seed are 8 bytes that follow from what was trained.
func (id Identity) seed() []byte {
	sum := sha256.Sum256([]byte("coterie certificate seed\n" + id.Model + "\n" + id.Config))
	return sum[:8]
}

func fileHash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
