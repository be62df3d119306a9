package repro

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/report"
)

func TestTmp(t *testing.T) {
	o := Options{Scale: os.Getenv("SCALE"), Out: os.Getenv("OUT"), Version: "test", Tick: func(a, b int) {}}
	l := &lab{ctx: context.Background(), options: o, seeds: inversion.seeds[o.Scale], folder: data.NewFolder(os.Getenv("COTERIE_DATA")), cells: o.Out + "/cells"}
	os.MkdirAll(l.cells, 0o755)
	b := time.Now()
	s, err := runInversion(l)
	if err != nil {
		t.Fatal(err)
	}
	s.Title = inversion.Title
	t.Log(time.Since(b))
	report.StudyTable(os.Stdout, s)
	if err := report.WriteStudy(o.Out+"/report.html", s); err != nil {
		t.Fatal(err)
	}
}
