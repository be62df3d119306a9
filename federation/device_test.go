package federation_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/internal/compute"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/sim"
)

func TestMain(m *testing.M) { os.Exit(cudatest.Main(m)) }

// digitsRun is a run of four silos with few pictures.
func digitsRun(protects string) string {
	return fmt.Sprintf(`name: digits
seed: 3
data: {kind: rotated-mnist, silos: 4}
algorithm: {kind: fedavg, mode: sound, rounds: 3, local: {step: 0.05, batch: 8}, stop: {patience: 0, return: last}}
privacy: {%s}
`, strings.Replace(protections[protects], "noise_multiplier: 5", "noise_multiplier: 5, radius: 1", 1))
}

// onDevice has four silos take part, some of which ask for a device, and returns what became of these,
// and the server's model. Between two rounds, if there is something, it is done.
func onDevice(t *testing.T, text, asked string, silos int, between func(round int)) (reports []participant.JoinResult, theta []float64, dir string) {
	t.Helper()
	folder, l := federationtest.Folder(t), newLoopback(t)
	l.write("run.yaml", text)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a, names, server := l.serveSilos(ctx, folder, 4)
	policy, err := plan.LoadPolicy([]byte(strings.Replace(anyPolicy, "metric, epsilon: 20", "metric, epsilon: 30000", 1))) // of 7850 values
	if err != nil {
		t.Fatal(err)
	}
	type ended struct {
		i   int
		res participant.JoinResult
		err error
	}
	joined := make(chan ended, len(names))
	for i, name := range names {
		l.enrol(ctx, a, name)
		file, log := "{}", l.log
		if i < silos {
			file = "device: " + asked
			log = slog.New(&betweenRounds{do: between})
		}
		own, err := plan.LoadJoinFile([]byte(file), filepath.Join(l.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			res, err := participant.Join(ctx, participant.JoinOptions{File: own, Policy: policy, Seeded: true, Folder: folder, Log: log})
			joined <- ended{i, res, err}
		}()
	}
	reports = make([]participant.JoinResult, silos)
	for range names {
		e := <-joined
		if e.err != nil {
			t.Fatal(names[e.i], e.err)
		}
		if e.i < silos {
			reports[e.i] = e.res
		} else if e.res.Device != nil {
			t.Errorf("%s asks for no device, and has %v", names[e.i], e.res.Device)
		}
	}
	if err := <-server; err != nil {
		t.Fatal(err)
	}
	return reports, tensors(t, filepath.Join(l.dir, "server", "model.safetensors"))[0].Values, l.dir
}

// betweenRounds is a log that has something done when a participant is asked for a round.
type betweenRounds struct{ do func(round int) }

func (b *betweenRounds) Enabled(context.Context, slog.Level) bool { return b.do != nil }
func (b *betweenRounds) WithAttrs([]slog.Attr) slog.Handler       { return b }
func (b *betweenRounds) WithGroup(string) slog.Handler            { return b }
func (b *betweenRounds) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "asked" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "round" {
				b.do(int(a.Value.Int64()))
			}
			return true
		})
	}
	return nil
}

// apart is how far a model is from another one, as a share of its length.
func apart(got, want []float64) float64 {
	var off, size float64
	for i, v := range want {
		off, size = off+(got[i]-v)*(got[i]-v), size+v*v
	}
	return math.Sqrt(off / size)
}

// TestMembersOnADevice: two of four members compute on a device; all pay what they would have paid, and
// the model is that of the simulation but for rounding. A device that is lost costs the round in which it is
// missing, whose release is noise, and the next one has it again.
func TestMembersOnADevice(t *testing.T) {
	cudatest.Use(t)
	run, err := plan.Resolve([]byte(digitsRun("update")))
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, federationtest.Folder(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	want := s.Returned()
	reports, theta, dir := onDevice(t, digitsRun("update"), "auto", 2, nil)
	if off := apart(theta, want); !(off < 1e-4) || off == 0 {
		t.Errorf("the models are %.2g apart", off)
	}
	for _, r := range reports {
		if r.Device == nil || r.Device.Name == "" || r.Device.Asked != "auto" || len(r.Device.Kernels) != 64 || r.Blank != 0 || r.Released != 3 {
			t.Errorf("%d released, %d blank, device %+v", r.Released, r.Blank, r.Device)
		}
	}
	if there, here := firstCharge(t, dir, "silo-0"), firstCharge(t, dir, "silo-3"); there != here || there.Claim != event.ClaimMetric {
		t.Errorf("charged are %+v with a device and %+v without", there, here)
	}
	reports, theta, _ = onDevice(t, digitsRun("update"), "cuda", 1, func(round int) {
		if round == 2 {
			endHelpers(t)
		}
	})
	if r := reports[0]; r.Blank != 1 || r.Released != 3 || r.Device == nil {
		t.Errorf("after a lost device: %d released, %d blank, device %+v", r.Released, r.Blank, r.Device)
	}
	if off := apart(theta, want); !(off > 1e-3) {
		t.Errorf("a blank release changes the model by %.2g only", off)
	}
}

// endHelpers kills the programs that talk to devices for this one.
func endHelpers(t *testing.T) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Error(err)
	}
	ended := 0
	for _, path := range all {
		var pid, parent int
		var name, state string
		text, err := os.ReadFile(path)
		if err != nil { // it has ended meanwhile
			continue
		}
		if _, err := fmt.Sscan(string(text), &pid, &name, &state, &parent); err != nil || parent != os.Getpid() || name != "(coterie-cuda)" || state == "Z" {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		ended++
	}
	if ended == 0 {
		t.Error("no helper runs")
	}
}

// firstCharge is what the first release of a silo was charged.
func firstCharge(t *testing.T, dir, name string) event.Release {
	t.Helper()
	book, err := ledger.Read(filepath.Join(dir, name, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	return book.Entries()[0].Release
}

// TestExactStepsOfMembers: sums of whole numbers have not run on a GPU, so that who has them made there
// claims no more than heuristic, which its own policy has to allow; auto leaves them to the processor.
func TestExactStepsOfMembers(t *testing.T) {
	cudatest.Use(t)
	for asked, claim := range map[string]event.Claim{"cuda": event.ClaimHeuristic, "auto": event.ClaimProved} {
		reports, _, dir := onDevice(t, digitsRun("example"), asked, 1, nil)
		r := reports[0]
		if got := firstCharge(t, dir, "silo-0"); got.Claim != claim {
			t.Errorf("%s: the claim is %s, want %s", asked, got.Claim, claim)
		}
		if got := firstCharge(t, dir, "silo-1"); got.Claim != event.ClaimProved {
			t.Errorf("%s: the claim of who computes on its processor is %s", asked, got.Claim)
		}
		if there := asked == "cuda"; r.Device == nil || (r.Device.Name != "") != there || strings.Contains(fmt.Sprint(r.NotCovered), compute.Uncovered) != there {
			t.Errorf("%s: %+v, %q", asked, r.Device, r.NotCovered)
		}
	}
}
