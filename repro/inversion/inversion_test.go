package inversion

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
)

// TestInversionSmoke: rows, strips and charts for both attacks, a page, and cells
// that are remembered.
func TestInversionSmoke(t *testing.T) {
	l := labtest.New(t, dlg, labtest.Options(t, lab.Smoke))
	s, err := runDLG(l)
	if err != nil {
		t.Fatal(err)
	}
	plan := effortOf(lab.Smoke)
	cells, _ := filepath.Glob(filepath.Join(l.Out, "cells", "*.json"))
	if want := len(plan.noise) * len(plan.networks); len(cells) != want {
		t.Errorf("%d cells, want %d", len(cells), want)
	}
	if want := 3*len(plan.noise)*3 + 3; len(s.Rows) != want { // three tables of three measures, and the control
		t.Errorf("%d rows, want %d", len(s.Rows), want)
	}
	if len(s.Strips) != 3 || len(s.Charts) != 2 || len(s.Charts[0].Series) != 3 {
		t.Errorf("%d strips, %d charts", len(s.Strips), len(s.Charts))
	}
	exact := rowOf(s, "closed form: "+denseTitle, "nu 0", "recovered")
	if exact == nil || *exact.Measured != 1 {
		t.Errorf("a linear first layer without noise: %+v", exact)
	}
	if err := study.WritePage(filepath.Join(l.Out, "report.html"), s); err != nil {
		t.Error(err)
	}
	// What is remembered is believed, so a second run gives the same figures.
	if err := os.WriteFile(cells[0], []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := runDLG(l)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range again.Rows {
		if *r.Measured != *s.Rows[i].Measured {
			t.Errorf("%s, %s: %v, then %v", r.Section, r.Label, *s.Rows[i].Measured, *r.Measured)
		}
	}
}

func rowOf(s study.Study, section, label, metric string) *study.Row {
	for i, r := range s.Rows {
		if r.Section == section && r.Label == label && r.Metric == metric {
			return &s.Rows[i]
		}
	}
	return nil
}

// TestInversionVerdicts holds figures of our own making against the papers' prose: by all
// pictures together, with their interval.
func TestInversionVerdicts(t *testing.T) {
	var claims papersClaims
	if err := lab.Expected("dlg.json", &claims); err != nil {
		t.Fatal(err)
	}
	verdict := func(nu float64, psnr, ssim []float64) study.Verdict {
		scores := make([]attackScore, len(psnr))
		for i := range scores {
			scores[i] = attackScore{PSNR: psnr[i], SSIM: ssim[i]}
		}
		rows := claims.rows(network{name: "lenet"}, nu, scores)
		switch len(rows) {
		case 0:
			return study.NoNumber
		case 1:
			return rows[0].Verdict
		}
		t.Errorf("nu %v has %d claims", nu, len(rows))
		return ""
	}
	all := func(v float64) []float64 { return []float64{v, v, v, v, v, v} }
	for _, c := range []struct {
		nu         float64
		psnr, ssim []float64
		want       study.Verdict
	}{
		{0, all(40), all(1), study.Agrees}, {0.001, all(40), all(1), study.Agrees}, {0.001, all(20), all(0.8), study.Differs},
		{0.001, []float64{40, 40, 40, 40, 20, 20}, all(1), study.Differs}, // four of six: may be a half
		{0.1, all(15), all(0.5), study.Agrees}, {0.1, all(5), all(0.1), study.Differs}, {0.01, all(5), all(0.1), study.Differs},
		{0.1, all(15), []float64{1, 0, 1, 0, 1, 0}, study.Differs}, // 0.5 in the mean
		{1, all(5), all(0.1), study.Agrees}, {1, all(30), all(0.9), study.Differs}, {1, all(9), all(0.5), study.Differs},
		{1, all(5), []float64{0, 0.9, 0, 0.1, 0, 0.2}, study.Differs}, // 0.2 in the mean
		{15, all(5), all(0.1), study.Agrees}, {100, all(5), all(0.1), study.NoNumber},
		{15, all(5)[:1], all(0.1)[:1], study.Incomparable},
	} {
		if got := verdict(c.nu, c.psnr, c.ssim); got != c.want {
			t.Errorf("nu %v, %v dB, SSIM %v: %s, want %s", c.nu, c.psnr, c.ssim, got, c.want)
		}
	}
}

// TestAuditPages are such that the report accepts them.
func TestAuditPages(t *testing.T) {
	n, label := event.Number(20), 3
	picture := make([]float64, 784)
	pages := []study.Study{
		InspectionPage(audit.Inspection{Kind: "pictures", Attacks: []audit.Finding{
			{Attack: audit.NameDLG, PSNR: &n, SSIM: &n, Label: &label, TrueLabel: &label, Original: picture, Found: picture},
			{Attack: audit.NameClosedForm, Fault: "no linear layer"},
		}}, "test", "test"),
		InspectionPage(audit.Inspection{Kind: "rows", Attacks: []audit.Finding{{Attack: audit.NameDLG, Error: &n}}}, "test", "test"),
		SurveyPage(audit.Survey{Samples: 1, Attacks: []audit.SurveyAttack{{Attack: audit.NameDLG}}, Trials: []audit.Trial{
			{Picture: audit.Picture{Pixels: picture}, Closed: &audit.Recovered{Picture: picture}, DLG: &audit.Recovered{Picture: picture}},
		}}, "test"),
	}
	for i, p := range pages {
		if err := study.WritePage(filepath.Join(t.TempDir(), "page.html"), p); err != nil {
			t.Errorf("page %d: %v", i, err)
		}
		if len(p.Rows) == 0 {
			t.Errorf("page %d has no rows", i)
		}
	}
}
