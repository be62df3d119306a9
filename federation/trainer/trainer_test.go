package trainer

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
)

// checkLeaks fails if goroutines or open files are left when the test ends.
func checkLeaks(t *testing.T) {
	t.Helper()
	files := func() int {
		list, _ := os.ReadDir("/proc/self/fd")
		return len(list)
	}
	goroutines, open := runtime.NumGoroutine(), files()
	t.Cleanup(func() {
		for range 500 {
			if runtime.NumGoroutine() <= goroutines && files() <= open {
				return
			}
			time.Sleep(10 * time.Millisecond) // they are on their way out
		}
		stacks := make([]byte, 1<<20)
		t.Errorf("left behind: %d goroutines (were %d), %d open files (were %d)\n%s",
			runtime.NumGoroutine(), goroutines, files(), open, stacks[:runtime.Stack(stacks, true)])
	})
}

func ones(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1 + float64(i%7)
	}
	return v
}

func TestGoodTrainer(t *testing.T) {
	checkLeaks(t)
	tr, err := Start(context.Background(), player("well"), testParameters)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	theta := ones(testParameters)
	delta, err := tr.train(config.Local{Epochs: 1, Step: 0.1}, theta)
	if err != nil || delta[6] != 7 || len(delta) != testParameters {
		t.Fatalf("update %v, %v", delta[:10], err)
	}
	loss, _, err := tr.loss([]float64{0.5, 0.25})
	if err != nil || loss != 0.75 {
		t.Fatalf("loss %v, %v", loss, err)
	}
	batch := make([]int, 2*maxChunk/testParameters+1) // three answers
	for i := range batch {
		batch[i] = i % 50
	}
	seen := 0
	err = tr.gradients(theta, batch, func(k int, g []float64) error {
		if k != seen || g[3] != float64(batch[k])+theta[3] {
			t.Errorf("gradient %d after %d: %v", k, seen, g[3])
		}
		seen++
		return nil
	})
	if err != nil || seen != len(batch) || tr.Examples() != 50 || tr.Client().Len() != 50 {
		t.Fatalf("%d gradients, %d examples, %v", seen, tr.Examples(), err)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.train(config.Local{}, theta); !errors.Is(err, ErrTrainer) {
		t.Errorf("a closed trainer answered: %v", err)
	}
}

// TestContained: whatever a trainer does, there is an error that says what, in
// bounded time, and nothing is left.
func TestContained(t *testing.T) {
	const short = 0.4 // seconds; only for those that never answer
	for _, c := range []struct {
		name    string
		limited bool
		want    string // in the error of Start or of the request
	}{
		{"silent", true, "hello failed: it did not finish within"},
		{"dies at once", false, "exit status 3"},
		{"dies at once", false, "no module named torch"},
		{"prints", false, `print to standard error`},
		{"floods before hello", false, "which is for frames only"},
		{"other model", false, "its model has 20001 parameters, the plan's has 20000"},
		{"other protocol", false, "protocol 2"},
		{"answers unasked", false, "it answered request 1, expected is 2"},
		{"closes its input", false, "it closed its input"},
		{"does not read", true, "train failed: it did not finish within"},
		{"hangs", true, "train failed: it did not finish within"},
		{"stops itself", true, "it did not finish within"},
		{"dies", false, "exit status 7"},
		{"dies", false, "·[31mout of memory"},
		{"is killed", false, "signal: killed"},
		{"floods stderr and hangs", true, "yyyy"},
		{"announces terabytes", false, "announced 4398046511104 bytes"},
		{"announces a long header", false, "its header has 2147483648 bytes"},
		{"NaN", false, "value 19999 is NaN"},
		{"infinity", false, "value 0 is -Inf"},
		{"one value too few", false, "announced 79996 bytes of values, expected are 80000"},
		{"one value too many", false, "announced 80004 bytes"},
		{"no JSON", false, "its header is not what the protocol allows"},
		{"unknown key", false, `unknown field "epsilon"`},
		{"two objects", false, "more than one JSON object"},
		{"other id", false, "it answered request 3, expected is 2"},
		{"wrong magic", false, "which is for frames only"},
		{"ends within the values", false, "of which 0 of 20000 had come"},
		{"stops within the values", true, "did not finish within"},
		{"drips", true, "did not finish within"},
		{"reports an error", false, "it refused train: cuda is gone·"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			spec := player(c.name)
			if c.limited {
				spec.RequestSeconds = short
			}
			if c.name == "silent" {
				spec.StartSeconds = short
			}
			tr, err := Start(context.Background(), spec, testParameters)
			if err == nil {
				defer tr.Close()
				_, err = tr.train(config.Local{Epochs: 1}, ones(testParameters))
			}
			if !errors.Is(err, ErrTrainer) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v\nwant %q", err, c.want)
			}
			if len(err.Error()) > 2*tailSize {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if tr != nil && tr.Failure() == nil {
				t.Error("Failure knows of nothing")
			}
		})
	}
}

// TestFloodsDoNotHarm: noise on standard error is thrown away while answers go
// through; what floods standard output after its answer fails the next request.
func TestFloodsDoNotHarm(t *testing.T) {
	checkLeaks(t)
	theta := ones(testParameters)
	for _, name := range []string{"floods stderr", "floods stdout"} {
		tr, err := Start(context.Background(), player(name), testParameters)
		if err != nil {
			t.Fatal(err)
		}
		var errs [2]error
		for i := range errs {
			_, errs[i] = tr.train(config.Local{Epochs: 1}, theta)
		}
		if errs[0] != nil || (errs[1] != nil) != (name == "floods stdout") {
			t.Errorf("%s: %v", name, errs)
		}
		tr.Close()
	}
}

// TestRestartsAfterAFailure: the next request has a new process.
func TestRestartsAfterAFailure(t *testing.T) {
	checkLeaks(t)
	tr, err := Start(context.Background(), player("NaN"), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if _, err := tr.train(config.Local{}, ones(3)); err == nil {
		t.Fatal("NaN passed")
	}
	if loss, _, err := tr.loss(ones(3)); err == nil || tr.child != nil {
		t.Fatalf("loss %v of NaN passed", loss) // the child writes NaN, which is no JSON
	}
	if err := tr.ready(); err != nil || tr.child == nil {
		t.Errorf("it was not started again: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		n    int
	}{
		"no command":       {Spec{}, 3},
		"no such program":  {Spec{Command: []string{"/no/such/program"}}, 3},
		"no parameters":    {player("well"), 0},
		"unknown mode":     {Spec{Command: []string{"x"}, Mode: "trusted"}, 3},
		"update, no clip":  {Spec{Command: []string{"x"}, Mode: ModeUpdate, Noise: 1}, 3},
		"clip NaN":         {Spec{Command: []string{"x"}, Mode: ModeUpdate, Noise: 1, Clip: math.NaN()}, 3},
		"examples, no q":   {Spec{Command: []string{"x"}, Mode: ModePerExample, Noise: 1, Clip: 1, Steps: 1, Step: 1, Batch: 1}, 3},
		"attested nothing": {Spec{Command: []string{"x"}, Mode: ModeAttested}, 3},
	} {
		checkLeaks(t)
		if tr, err := Start(context.Background(), c.spec, c.n); err == nil {
			t.Errorf("%s: started", name)
			tr.Close()
		}
	}
}

// TestEnvironmentStaysHere: keys and passwords in our environment are not handed on.
func TestEnvironmentStaysHere(t *testing.T) {
	t.Setenv("COTERIE_TEST_SECRET", "s3cret")
	t.Setenv("COTERIE_TEST_NAMED", "public")
	spec := Spec{Command: []string{"sh", "-c", `echo "[$COTERIE_TEST_SECRET] [$COTERIE_TEST_NAMED]" >&2; exit 1`}, Environment: []string{"COTERIE_TEST_NAMED"}}
	_, err := Start(context.Background(), spec, 3)
	if err == nil || !strings.Contains(err.Error(), "[] [public]") {
		t.Errorf("the trainer saw: %v", err)
	}
}
