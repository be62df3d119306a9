package identity

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestRotationStopsAnywhere stops a rotation after each of its steps, as a crash would: the
// folder then holds the old authority or the new one, whole, and the next rotation works.
func TestRotationStopsAnywhere(t *testing.T) {
	const steps = 7
	for stop := range steps + 2 {
		t.Run(fmt.Sprint(stop), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "ca")
			at := time.Now()
			now := func() time.Time { return at }
			a, err := Init(dir, Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			federation := a.Federation()
			if _, err := a.Invite("north", time.Hour); err != nil {
				t.Fatal(err)
			}
			at = at.Add(2 * time.Second)
			if stop > steps { // all of it but what tidies up
				err = a.registry.change(func(r *registry) error {
					turn, err := a.newTurn(time.Hour)
					if err == nil {
						err = stepThrough(turn, steps)
						r.succeed(turn.link.Ends, a.now().Add(time.Second))
					}
					return err
				})
			} else {
				err = a.registry.change(func(*registry) error {
					turn, err := a.newTurn(time.Hour)
					if err != nil {
						return err
					}
					if got := len(turn.steps()); got != steps {
						return fmt.Errorf("%d steps, want %d", got, steps)
					}
					return stepThrough(turn, stop)
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, ".ca-1.key.new-123"), []byte("half a key"), 0o600); err != nil {
				t.Fatal(err)
			}
			again, err := Open(dir, Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			k, err := again.current()
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			if stop >= steps {
				want = 1
			}
			if k.number != want || again.Federation() != federation {
				t.Errorf("number %d, want %d; federation %s, want %s", k.number, want, again.Federation(), federation)
			}
			if left, err := again.leftovers(k); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".*.new-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			status := []string{"open", "cancelled"}[want] // it names the old authority
			if list, _, err := again.List(); err != nil || len(list) != 1 || list[0].Status != status {
				t.Errorf("%+v, %v; want one that is %s", list, err, status)
			}
			if r, err := again.Rotate(time.Hour); err != nil || r.Number != want+1 {
				t.Errorf("the next rotation: %+v, %v", r, err)
			}
		})
	}
}

func stepThrough(t *turn, count int) error {
	for _, step := range t.steps()[:count] {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
