package draft_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all" // every data set, method and protection
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/draft"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// TestPolicyPaysForTheRun: the drafted ceiling allows the drafted run once nothing in it
// is taken from the data, refuses it before, and allows no second one.
func TestPolicyPaysForTheRun(t *testing.T) {
	for _, rows := range []int{1, 20, 100, 250, 600, 5000, 140_000} {
		var b strings.Builder
		b.WriteString("site,x,y\n")
		for i := range 2 * rows {
			fmt.Fprintf(&b, "s%d,%d.5,%d\n", i%2, i%89, i/2%2)
		}
		if rows == 1 {
			b.WriteString("s1,7,1\n")
		}
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "rows.csv"), b.String())
		d, err := draft.New(t.Context(), draft.Request{Path: filepath.Join(dir, "rows.csv"), Client: "site", Target: "y", Out: filepath.Join(dir, "study")})
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range d.Files {
			files[f.Name] = f.Text
		}
		policy, err := plan.LoadPolicy([]byte(files["policy.yaml"]))
		if err != nil {
			t.Fatal(err)
		}
		book, err := ledger.Open(filepath.Join(dir, "ledger"), policy.Budget())
		if err != nil {
			t.Fatal(err)
		}
		defer book.Close()
		run, err := plan.Resolve([]byte(files["run.yaml"]))
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Suitable(run); err != nil {
			t.Errorf("%d rows: %v", rows, err)
		}
		for _, taken := range []bool{true, false} {
			if !taken {
				run.Data.NotPublic = nil
			}
			shape, _ := data.ShapeOf(run.Data)
			m, err := model.Of(run, shape)
			if err != nil {
				t.Fatal(err)
			}
			a, err := fl.New(run, m, 2)
			if err != nil {
				t.Fatal(err)
			}
			p := fl.Participant{Data: &data.Client{Rows: data.Rows{X: []float64{0.1}, Y: []float64{1}, Features: 1}}}
			if err := a.Prepare(&p); err != nil {
				t.Fatal(err)
			}
			price, _, err := a.PriceAhead(&p, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := book.Check(price); (err == nil) == taken {
				t.Errorf("%d rows, taken from the data %v: %v", rows, taken, err)
			}
			if !taken && book.Check(price, price) == nil {
				t.Errorf("%d rows: a second run is paid for, too", rows)
			}
			if err := policy.Allows(plan.Plan{Minimum: 1, Participants: 2}, run, m); err != nil {
				t.Errorf("%d rows: %v", rows, err)
			}
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
