package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// TestResumeAfterEveryRound stops a run between any two rounds and goes on from
// the file: models, budgets and history must be those of a run in one piece.
func TestResumeAfterEveryRound(t *testing.T) {
	ceiling := 1.2
	run := config.Default("synthetic", "group-private", "sound")
	run.Algorithm.Rounds, run.Algorithm.Sampling = 25, "balanced"
	run.Data.Users, run.Data.ValidationUsers = 20, 20
	run.Algorithm.Stop.ValidationClients = 5
	run.Privacy.Ceiling = &ceiling
	run.Run.Workers, run.Run.CheckpointSeconds = 1, 0
	whole, err := execute(t, context.Background(), directory(t, run), run, nil, nothing)
	if err != nil {
		t.Fatal(err)
	}
	for stop := 1; stop < whole.Rounds; stop++ {
		d := directory(t, run)
		ctx, cancel := context.WithCancel(context.Background())
		_, err := execute(t, ctx, d, run, nil, func(m Moment) {
			if m.Round == stop {
				cancel()
			}
		})
		if !errors.Is(err, ErrInterrupted) || d.Finished() {
			t.Fatalf("stop after round %d: %v", stop, err)
		}
		res, err := execute(t, context.Background(), d, run, nil, nothing)
		if err != nil {
			t.Fatal(err)
		}
		res.WallSeconds, whole.WallSeconds = 0, 0
		if got, want := encoded(t, res.History), encoded(t, whole.History); res.ModelSHA256 != whole.ModelSHA256 || got != want {
			t.Fatalf("stopped after round %d, the run ends otherwise", stop)
		}
		if res.Privacy.DeclinedRequests != whole.Privacy.DeclinedRequests || *res.Privacy.EpsilonSwitch != *whole.Privacy.EpsilonSwitch {
			t.Fatalf("stopped after round %d, the budgets end otherwise: %+v", stop, res.Privacy)
		}
	}
}

// encoded is what a value says, wherever its figures lie.
func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDamagedCheckpointIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing runs side by side while a checkpoint is read")
	}
	run := config.Default("synthetic", "ifca", "paper")
	run.Run.CheckpointSeconds = 0
	d := directory(t, run)
	ctx, cancel := context.WithCancel(context.Background())
	_, err := execute(t, ctx, d, run, nil, func(m Moment) {
		if m.Round == 3 {
			cancel()
		}
	})
	if !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	good, err := os.ReadFile(d.File(CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	try := func(raw []byte) error {
		if err := os.WriteFile(d.File(CheckpointFile), raw, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := execute(t, context.Background(), d, run, nil, nothing)
		return err
	}
	for i := 0; i < len(good); i += 7 {
		bad := slices.Clone(good)
		bad[i] ^= 0x10
		if try(bad) == nil {
			t.Fatalf("byte %d was changed and nobody noticed", i)
		}
	}
	for _, n := range []int{0, 10, len(good) / 2, len(good) - 1} {
		if try(good[:n]) == nil {
			t.Errorf("a checkpoint cut to %d bytes was accepted", n)
		}
	}
	other := run
	other.Algorithm.Rounds = 499
	if err := os.WriteFile(d.File(CheckpointFile), good, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := execute(t, context.Background(), d, other, nil, nothing); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a checkpoint of another run file: %v", err)
	}
	if err := try(good); err != nil {
		t.Errorf("the undamaged checkpoint: %v", err)
	}
}

func TestDirectoryIsWholeOrAbsent(t *testing.T) {
	base := t.TempDir()
	if err := os.WriteFile(base+"/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateDirectory(base, []byte("x")); err == nil {
		t.Error("a folder with something in it was taken")
	}
	if _, err := CreateDirectory(base+"/file", []byte("x")); err == nil {
		t.Error("a file was taken for a folder")
	}
	if err := os.Mkdir(base+"/empty", 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := CreateDirectory(base+"/empty", []byte("seed: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenDirectory(d.Path); !errors.Is(err, ErrBusy) {
		t.Errorf("a second process was let in: %v", err)
	}
	d.Close()
	again, run, err := OpenDirectory(d.Path)
	if err != nil || run.Seed != 1 {
		t.Fatal(run.Seed, err)
	}
	again.Close()
	if _, _, err := OpenDirectory(base); err == nil {
		t.Error("a folder without a run file was opened")
	}
	left, _ := os.ReadDir(base)
	if len(left) != 2 {
		t.Errorf("%d entries are left, want 2", len(left))
	}
}

// TestCheckpointsOfAnotherSplitAreRefused: a run that was begun when other examples were
// held out must not go on with these.
func TestCheckpointsOfAnotherSplitAreRefused(t *testing.T) {
	folder, run := smallSchools(t), smallRun("mr-mtl")
	s, err := New(run, folder)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hash, err := run.Hash()
	if err != nil {
		t.Fatal(err)
	}
	d := directory(t, run)
	var raw bytes.Buffer
	if err := s.snapshot(hash, 1).write(&raw); err != nil {
		t.Fatal(err)
	}
	body, ok := bytes.CutPrefix(raw.Bytes(), []byte(checkpointMagic))
	if !ok {
		t.Fatal("a checkpoint does not begin with its version")
	}
	for magic, refused := range map[string]bool{
		checkpointMagic: false, "coterie checkpoint 1\n": true, "coterie silo checkpoint 1\n": true, "coterie checkpoint 2\n": true, "coterie checkpoint 3\n": true, "coterie checkpoint 5\n": true,
	} {
		if err := d.Write(CheckpointFile, append([]byte(magic), body...)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.restore(d, hash); (err != nil) != refused || refused && !strings.Contains(err.Error(), "this version") {
			t.Errorf("%s: %v", magic, err)
		}
	}
}
