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
		if crowd.Clients() != len(held.Train) || len(held.Train) > 299 || !reflect.DeepEqual(crowd.Report.LeftOut, held.Report.LeftOut) || crowd.Report.Kept != held.Report.Kept || crowd.Report.Kept == 1500 || !reflect.DeepEqual(crowd.NotCovered, held.NotCovered) {
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

// TestASpoolTellsItsRows: clients that are not held are told from others by any value, any
// name and whose a row is, without being read again.
func TestASpoolTellsItsRows(t *testing.T) {
	was := "client,y,f00,f01\na,1,1,2\nb,0,3,4\na,0,5,6\nb,1,7,8\nc,1,9,10\nc,0,1,1\na,1,4,4\nb,0,2,2\nc,1,3,3\n"
	digest := func(text string) data.Digest {
		d := wide(folder(t, map[string]string{"t.csv": text})+"/t.csv", 2)
		d.TestShare = 0.1
		f, err := (*data.Folder)(nil).LoadCrowd(d, 5)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Crowd.Close()
		return f.Digest()
	}
	taken := digest(was).Fingerprint()
	if what := digest(was).Changed(taken); what != "" {
		t.Errorf("the same table: %s", what)
	}
	for name, text := range map[string]string{
		"a value": strings.Replace(was, "5,6", "5,7", 1), "a target": strings.Replace(was, "a,1,1,2", "a,0,1,2", 1), "a name": strings.ReplaceAll(was, "b,", "d,"),
		"whose a row is": strings.Replace(was, "c,1,9,10", "a,1,9,10", 1), "a row less": strings.Replace(was, "a,0,5,6\n", "", 1),
		"names change places": strings.NewReplacer("\na,", "\nb,", "\nb,", "\na,").Replace(was),
	} {
		if text == was || digest(text).Changed(taken) == "" {
			t.Errorf("%s was changed, and nobody is told", name)
		}
	}
}
