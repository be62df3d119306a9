package source

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// crowdTable has rows of many clients, mixed, some with one row only.
func crowdTable(clients, rows int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("client,y,f00,f01\n")
	for range rows {
		fmt.Fprintf(&b, "c%d,%d,%d,%d\n", r.IntN(clients), r.IntN(2), r.IntN(1800)-900, r.IntN(1800)-900)
	}
	return b.String()
}

// What is read client by client is what is read at once, and no file stays behind.
func TestASpoolHoldsTheTable(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	d := wide(folder(t, map[string]string{"t.csv": crowdTable(300, 1500)})+"/t.csv", 2)
	for _, standardise := range []string{"none", "silo"} {
		d.Standardise = standardise
		held, err := (*data.Folder)(nil).Load(d, 5)
		if err != nil {
			t.Fatal(err)
		}
		crowd, err := (*data.Folder)(nil).LoadCrowd(d, 5)
		if err != nil {
			t.Fatal(err)
		}
		if crowd.Clients() != len(held.Train) || len(held.Train) > 299 || !reflect.DeepEqual(crowd.Report.LeftOut, held.Report.LeftOut) || !reflect.DeepEqual(crowd.NotCovered, held.NotCovered) {
			t.Fatalf("%d clients, of %d that are held; left out %v and %v", crowd.Clients(), len(held.Train), crowd.Report.LeftOut, held.Report.LeftOut)
		}
		var c data.Client
		for _, i := range []int{7, 0, 7, len(held.Train) - 1, 100, 101} {
			if err := crowd.Crowd.Read(&c, i); err != nil {
				t.Fatal(err)
			}
			want := &held.Train[i]
			if c.Name != want.Name || !reflect.DeepEqual(c.Rows, want.Rows) || !reflect.DeepEqual(c.Held.Rows, want.Held.Rows) {
				t.Errorf("%s: client %d is %+v, held %+v", standardise, i, c, *want)
			}
		}
		left, err := os.ReadDir(temporary)
		if err != nil || len(left) > 0 {
			t.Errorf("rows lie in %v, %v", left, err)
		}
		if err := crowd.Crowd.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatASpoolCannotHold(t *testing.T) {
	path := folder(t, map[string]string{"t.csv": crowdTable(3, 20), "empty.csv": "client,y,f00,f01\n", "bad.csv": "client,y,f00,f01\na,1,x,2\n"})
	t.Setenv("TMPDIR", path)
	d := wide(path+"/t.csv", 2)
	limited := d
	limited.TrainLimit = 4
	empty, bad := wide(path+"/empty.csv", 2), wide(path+"/bad.csv", 2)
	for want, d := range map[string]config.Data{"run.hold to all": limited, "no rows after the header": empty, "column f00": bad} {
		if _, err := (*data.Folder)(nil).LoadCrowd(d, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if left, err := os.ReadDir(path); err != nil || len(left) != 3 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
