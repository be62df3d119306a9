package federation_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/ledger"
)

// allocated is how many bytes f takes, garbage included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestTextsFromOutsideTakeLittleMemory: whatever a server or a participant writes into
// a plan, a statement or a receipt, the reader refuses it cheaply. The depth rises, so
// that a reader without bounds fails early and does not take the machine with it.
func TestTextsFromOutsideTakeLittleMemory(t *testing.T) {
	const most = 128 << 20
	deep := func(n int, left, right string) string { return strings.Repeat(left, n) + strings.Repeat(right, n) }
	refused := func(what string, n int, read func() error) {
		t.Helper()
		var err error
		if got := allocated(func() { err = read() }); got > most || err == nil {
			t.Fatalf("%s, %d deep: %d MB were allocated, at most %d are allowed; error %.200v", what, n, got>>20, most>>20, err)
		}
	}
	for _, n := range []int{15_000, 100_000, 250_000} {
		for left, right := range map[string]string{"[": "]", "- ": "", "{a: ": "}"} {
			yaml := "data:\n  parameters: " + deep(n, left, right)
			refused("a plan's run file", n, func() error {
				p := federationtest.Plan(t)
				p.RunFile = yaml
				text, _, err := p.Encode()
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = plan.Parse(text)
				return err
			})
			refused("a serve file", n, func() error { _, err := plan.LoadServeFile([]byte(yaml), ""); return err })
			refused("a join file", n, func() error { _, err := plan.LoadJoinFile([]byte(yaml), ""); return err })
			refused("a policy", n, func() error { _, err := plan.LoadPolicy([]byte(yaml)); return err })
			refused("a run file", n, func() error { _, err := config.Resolve([]byte(yaml), nil); return err })
			refused("a --set value", n, func() error {
				_, err := config.Resolve(nil, []string{"data.parameters=" + deep(n, left, right)})
				return err
			})
		}
		for left, right := range map[string]string{
			"[": "]", `{"a":`: "}", `{"kind":"repeated","times":1,"of":`: "}", `{"kind":"composed","parts":[`: "]}",
		} {
			nested := deep(n, left, right)
			refused("a plan in JSON", n, func() error { _, _, err := plan.Parse([]byte(`{"version":2,"shape":` + nested + `}`)); return err })
			for _, key := range []string{"release", "spent", "charge", "slot"} {
				statement := `{"version":1,"` + key + `":` + nested + `}`
				refused("a statement", n, func() error { _, err := ledger.ParseReceipt([]byte(statement)); return err })
				signed := `{"receipt":` + statement + `}`
				refused("a receipt", n, func() error { _, err := ledger.ParseSignedReceipt([]byte(signed)); return err })
			}
		}
	}
}
