package data

import (
	"testing"

	"github.com/coterie-fl/coterie/config"
)

// TestWholeCIFAR: all pictures to train on are one client's, the test part is what it
// holds out, and the silos of the same folder share its pixels.
func TestWholeCIFAR(t *testing.T) {
	folder := t.TempDir()
	putBatches(t, folder)
	files := NewFolder(folder)
	run := config.Default("cifar10", "", "sound")
	f, err := files.Load(run.Data, 1)
	if err != nil {
		t.Fatal(err)
	}
	all := &f.Train[0]
	if len(f.Train) != 1 || all.Name != "all" || all.Len() != 10 || all.Held.Len() != 1 || f.Report.Kept != 11 || len(f.Report.Notes) > 0 {
		t.Errorf("%d clients, %q with %d and %d; %s", len(f.Train), all.Name, all.Len(), all.Held.Len(), f.Report)
	}
	if announced, whole := ShapeOf(run.Data); !whole || announced != f.Shape() {
		t.Errorf("announced %+v, has %+v", announced, f.Shape())
	}
	p, err := loadCIFARParts(files)
	if err != nil || all.Images != p.train || all.Held.Images != p.test {
		t.Errorf("the pictures were read twice (%v)", err)
	}
	if run.Privacy.PublicSize != 50000 || run.Privacy.Epsilon != 8 || run.Model.Name != "resnet8" || run.Judge.By != "test" {
		t.Errorf("a public size of %d, epsilon %v, network %q, judged by %s", run.Privacy.PublicSize, run.Privacy.Epsilon, run.Model.Name, run.Judge.By)
	}
}
