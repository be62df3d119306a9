package participant

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
)

// foreignPlan is a hostile server's: its run file says where the participant's rows lie.
func foreignPlan(t *testing.T, source string) plan.Plan {
	t.Helper()
	text := fmt.Sprintf("data: {kind: table, source: {%s}, target: y, task: yes/no, features: [{name: a, type: number, range: [0, 1]}]}\n", source) +
		"algorithm: {mode: sound, rounds: 2}\nprivacy: {noise: exact, public_size: 2}\n"
	run, err := plan.Resolve([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return plan.Plan{
		Version: plan.Version, Federation: "f", Run: "r", RunFile: string(resolved), Participants: 1,
		Shape: data.Shape{Features: 1, Classes: 2}, Quorum: 1, Minimum: 1, DeadlineSeconds: 60,
	}
}

// TestServerCannotSayWhereDataLie: a plan that names a file, or a database with a variable
// of the participant's environment for its password, is refused when it is read; and a
// participant that names no data of its own opens neither, even if such a plan got so far.
func TestServerCannotSayWhereDataLie(t *testing.T) {
	file := filepath.Join(t.TempDir(), "private.csv")
	if err := os.WriteFile(file, []byte("a,y\n0.5,yes\n0.1,no\n0.2,no\n0.9,yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	called := make(chan struct{}, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			called <- struct{}{}
			c.Close()
		}
	}()
	t.Setenv("PRIVATE_TOKEN", "hush")
	for name, source := range map[string]string{
		"a file":     fmt.Sprintf("path: %q", file),
		"a database": fmt.Sprintf("database: %q, query: SELECT 1, password_env: PRIVATE_TOKEN", "postgres://x@"+l.Addr().String()+"/y?sslmode=disable&connect_timeout=2"),
	} {
		asked := foreignPlan(t, source)
		text, _, err := asked.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := plan.Parse(text); !errors.Is(err, plan.ErrUnsuitable) || !strings.Contains(err.Error(), "data.source") {
			t.Errorf("%s: such a plan is read: %v", name, err)
		}
		run, err := plan.Resolve([]byte(asked.RunFile))
		if err != nil {
			t.Fatal(err)
		}
		var h Half
		if err := h.load(plan.Source{Kind: "run", Client: -1}, nil, nil, asked.Shape, run, 0); !errors.Is(err, fl.ErrRefused) || h.Data != nil {
			t.Errorf("%s: the participant goes where the server says: %v, %v", name, h.Data, err)
		}
	}
	l.Close()
	select {
	case <-called:
		t.Error("the participant called the server's database")
	case <-time.After(50 * time.Millisecond): // all calls have returned: what was dialled has been accepted
	}
}
